"""Archives are downloaded, resumed, checked and extracted, and each problem has a message."""

import hashlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from one_layer.data.preparation.archives import Archive, extract, fetch
from one_layer.system.files import continued
from tests import user_error
from tests.commands.test_prepare_iwslt14 import pack

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def remote(tmp_path: Path) -> Archive:
    """An archive at a file:// URL, with its true size and checksum."""
    (tmp_path / "remote").mkdir()
    (tmp_path / "remote/a.tgz").write_bytes(CONTENT)
    url = (tmp_path / "remote/a.tgz").as_uri()
    return Archive("a.tgz", (url,), len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


def test_an_archive_is_downloaded_once_and_only_on_request(tmp_path: Path, remote: Archive) -> None:
    with user_error(r"a\.tgz does not exist; save file:///.*a\.tgz there, or add --download"):
        fetch(remote, tmp_path / "here")
    path = fetch(remote, tmp_path / "here", download=True)
    assert path.read_bytes() == CONTENT and [file.name for file in path.parent.iterdir()] == ["a.tgz"]
    (tmp_path / "remote/a.tgz").unlink()
    assert fetch(remote, tmp_path / "here", download=True) == path


def test_the_next_url_is_tried(tmp_path: Path, remote: Archive) -> None:
    gone = (tmp_path / "gone.tgz").as_uri()
    assert fetch(Archive("a.tgz", (gone, *remote.urls)), tmp_path / "here", download=True).read_bytes() == CONTENT
    with user_error(r"b\.tgz cannot be downloaded from file:///.*gone\.tgz \(.*\); try again"):
        fetch(Archive("b.tgz", (gone,)), tmp_path / "nowhere", download=True)
    assert [(path.name, path.stat().st_size) for path in (tmp_path / "nowhere").iterdir()] == [("b.tgz.part", 0)]


def test_one_process_downloads_and_others_wait_for_it(tmp_path: Path, remote: Archive) -> None:
    (tmp_path / "remote/a.tgz").unlink()  # so that nobody else could
    with ThreadPoolExecutor(1) as pool:
        with continued(tmp_path / "a.tgz", "an archive") as part:
            other = pool.submit(fetch, remote, tmp_path, download=True)
            time.sleep(0.2)
            assert part is not None and part.write(CONTENT)
        assert other.result().read_bytes() == CONTENT and not (tmp_path / "a.tgz.part").exists()


def test_incomplete_and_changed_files_are_refused(tmp_path: Path, remote: Archive) -> None:
    (tmp_path / "a.tgz").write_bytes(CONTENT[:-1])
    with user_error(r"a\.tgz has 10,239 bytes, but the published file has 10,240; delete it"):
        fetch(remote, tmp_path)
    (tmp_path / "a.tgz").write_bytes(CONTENT[:-1] + b"x")
    with user_error(r"a\.tgz has the SHA-256 [0-9a-f]{64}, but the published file has [0-9a-f]{64}; delete it"):
        fetch(remote, tmp_path)
    (tmp_path / "remote/a.tgz").write_bytes(b"another")
    with user_error(r"a\.tgz\.part has 7 bytes"):
        fetch(remote, tmp_path / "here", download=True)
    assert not (tmp_path / "here/a.tgz").exists()


class _Halting(BaseHTTPRequestHandler):
    """A server that ends every response after 6,000 bytes and can resume there."""

    def do_GET(self) -> None:
        start = int(self.headers.get("Range", "bytes=0-")[len("bytes=") : -1])
        if start >= len(CONTENT):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        self.wfile.write(CONTENT[start : start + 6000])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def halting() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Halting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/a.tgz"
    server.shutdown()
    server.server_close()


def test_a_download_continues_after_a_broken_connection(tmp_path: Path, halting: str) -> None:
    archive = Archive("a.tgz", (halting,))
    with user_error(r"cannot be downloaded from http://.*the connection ended after 6,000 bytes"):
        fetch(archive, tmp_path, download=True)
    assert not (tmp_path / "a.tgz").exists() and (tmp_path / "a.tgz.part").stat().st_size == 6000
    assert fetch(archive, tmp_path, download=True).read_bytes() == CONTENT
    (tmp_path / "a.tgz").rename(tmp_path / "a.tgz.part")  # complete, but not yet renamed
    assert fetch(archive, tmp_path, download=True).read_bytes() == CONTENT


def test_members_are_found_by_their_last_path_component(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tgz", {"x/y/one": b"1", "two": b"2", "../three": b"3"})
    assert [file.read_bytes() for file in extract(path, ["two", "one"], tmp_path / "out")] == [b"2", b"1"]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["one", "two"]
    assert extract(path, ["three"], tmp_path / "out") == [tmp_path / "out/three"]  # never outside the folder
    with user_error(r"a\.tgz holds no file four; give the published archive"):
        extract(path, ["one", "four"], tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


def test_no_member_of_a_damaged_archive_is_used(tmp_path: Path) -> None:
    whole = pack(tmp_path / "a.tgz", {"one": CONTENT[::-7] * 9, "two": b"2"}).read_bytes()
    flipped = bytearray(whole)
    flipped[-6] ^= 1  # flips a bit of the checksum at the end
    for content in (whole[: len(whole) // 2], whole[:-1], bytes(flipped), b"", b"<html>404</html>", whole[:20]):
        (tmp_path / "a.tgz").write_bytes(content)
        with user_error(r"a\.tgz (is not a whole \.tgz archive \(.*\); delete it and download it again|holds no file)"):
            extract(tmp_path / "a.tgz", ["one"], tmp_path / "out")
        assert not (tmp_path / "out").exists()
