"""Where --output writes: one sentence that names the path where it cannot, and nothing half-written."""

import os
import stat
import threading

import pytest

from one_layer.data.text.streams import check_output, read_input, write_output
from one_layer.system.errors import UserError
from tests import user_error


def test_lines_replace_a_file(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o600)
    write_output(str(path), ["ä", "b"])
    assert path.read_bytes() == "ä\nb\n".encode() and stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("path", ["nope/x", "nope/deep/x", "link"])
def test_a_missing_folder_is_not_made(tmp_path, path):
    (tmp_path / "link").symlink_to("nope/x")
    with user_error(f"--output={tmp_path / path}: there is no folder {tmp_path}/nope"):
        write_output(str(tmp_path / path), ["x"])
    assert [each.name for each in tmp_path.iterdir()] == ["link"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "is a folder; give a file"),
        ("file/x", "there is no folder"),
        ("loop", "Too many levels of symbolic links"),
        ("x" * 300, "File name too long"),
        ("full", "No space left on device"),
    ],
)
def test_what_cannot_be_written_is_named_and_stays(tmp_path, path, reason):
    (tmp_path / "file").write_text("old")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "full").symlink_to("/dev/full")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UserError) as caught:
        write_output(str(tmp_path / path), ["x"])
    assert str(caught.value).startswith(f"--output={tmp_path / path}")
    assert reason in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before and (tmp_path / "file").read_text() == "old"


def test_a_folder_without_the_right_to_write_is_refused_before_there_is_anything_to_write(tmp_path, monkeypatch):
    """Root may write everywhere, so the answer of the system is replaced."""
    (tmp_path / "out").write_text("old")
    asked = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append((path, mode)))
    for name in ("new", "out"):
        with user_error(f"--output={tmp_path / name} cannot be written: Permission denied; give"):
            check_output(str(tmp_path / name))
    assert asked == [(str(tmp_path), os.W_OK)] * 2


def test_a_pipe_is_read(tmp_path):
    """As the shell's <(...) gives one."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("ein\nzwei\n",))
    writer.start()
    assert read_input(str(tmp_path / "pipe")) == ["ein", "zwei"]
    writer.join()
