"""A file is its old content or its new, never a half; and nothing but a file is ever replaced."""

import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.system.files import at_home, new_folder, remove_leftovers, replacing, write_atomically
from tests import user_error


def test_what_breaks_off_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "folder" / "file"
    write_atomically(path, "alt")

    def half() -> None:
        with replacing(path) as file:
            file.write(b"ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert path.read_text() == "alt" and list(path.parent.iterdir()) == [path]
    write_atomically(path, "neü")
    assert path.read_bytes() == "neü".encode() and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_a_file_keeps_its_permissions_and_a_new_one_gets_the_usual_ones(tmp_path, mode):
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    old.touch()
    old.chmod(mode)
    usual.touch()
    for path in (old, new):
        write_atomically(path, "x")
    assert stat.S_IMODE(old.stat().st_mode) == mode
    assert new.stat().st_mode == usual.stat().st_mode


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_leads_to_the_new_content(tmp_path, there):
    target = tmp_path / "elsewhere" / "file"
    target.parent.mkdir()
    if there:
        target.write_text("old")
    first, second = tmp_path / "first", tmp_path / "second"
    second.symlink_to("elsewhere/file")
    first.symlink_to(second)
    write_atomically(first, "new")
    assert first.is_symlink() and second.is_symlink() and target.read_text() == "new"
    assert sorted(tmp_path.iterdir()) == [target.parent, first, second]


def test_a_pipe_is_written_to(tmp_path):
    path, read = tmp_path / "pipe", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    write_atomically(path, "line\n")
    reader.join(60)
    assert read == [b"line\n"] and stat.S_ISFIFO(path.stat().st_mode) and list(tmp_path.iterdir()) == [path]


def test_a_device_stays_a_device():
    before = os.stat("/dev/null")
    write_atomically("/dev/null", "x")
    assert stat.S_ISCHR(before.st_mode) and os.path.samestat(before, os.stat("/dev/null"))


def test_an_open_file_is_reached_through_its_descriptor(tmp_path):
    """As --output=/dev/stdout is, where a shell sent that into a file; also where the file has no name any more."""
    for unlinked in (False, True):
        with (tmp_path / "file").open("w+") as file:
            if unlinked:
                (tmp_path / "file").unlink()
            write_atomically(f"/dev/fd/{file.fileno()}", "x")
            assert unlinked or (tmp_path / "file").read_text() == "x"
            assert not unlinked or os.pread(file.fileno(), 9, 0) == b"x"
    assert list(tmp_path.iterdir()) == []


def test_content_is_on_the_disk_before_its_name_and_the_name_before_it_returns(tmp_path, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace

    def synced(handle):
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def renamed(old, new):
        calls.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    write_atomically(tmp_path / "file", "x")
    assert calls == ["file", "rename", "folder"]


def temporary_name(path: Path) -> str:
    """The name of the file that `replacing` writes before it becomes `path`."""
    with replacing(path):
        (found,) = path.parent.iterdir()
    path.unlink()
    return found.name


def test_what_a_killed_writer_left_is_removed_and_what_is_being_written_stays(tmp_path):
    """A temporary file is locked as long as its writer lives. Files with other names are nobody's leftovers."""
    others = {".hidden", ".result.json", "a.json.abcdefgh.unfinished", ".notes.md.abcdefgh"}
    left = [temporary_name(tmp_path / name) for name in ("result.json", "curves.svg", "ticket.safetensors", "x")]
    for name in (*others, *left):
        (tmp_path / name).write_text("half")
    with replacing(tmp_path / "config.json") as file:
        file.write(b"whole")
        remove_leftovers(tmp_path)
        assert len(list(tmp_path.iterdir())) == len(others) + 1
    assert {path.name for path in tmp_path.iterdir()} == others | {"config.json"}
    assert (tmp_path / "config.json").read_bytes() == b"whole"


@pytest.mark.parametrize("make", ["mkstemp", "mkdtemp"])
def test_what_another_process_removes_before_it_is_locked_is_made_again(make, tmp_path, monkeypatch):
    made, found = getattr(tempfile, make), []

    def removed_at_once(**names):
        found.append(made(**names))
        if len(found) == 1:
            remove_leftovers(tmp_path)
            assert not list(tmp_path.iterdir())
        return found[-1]

    monkeypatch.setattr(tempfile, make, removed_at_once)
    if make == "mkstemp":
        write_atomically(tmp_path / "file", "x")
    else:
        with new_folder(tmp_path / "folder", "--output") as unfinished:
            (unfinished / "file").write_text("x")
    assert len(found) == 2 and [path.read_text() for path in tmp_path.rglob("file")] == ["x"]


def test_a_file_system_on_which_nothing_stays_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    with pytest.raises(FileNotFoundError, match="what is made there vanishes at once"):
        write_atomically(tmp_path / "file", "x")


@settings(max_examples=50, deadline=None)
@given(
    option=st.from_regex(r"(--?[a-z.]{1,9}=)?", fullmatch=True), rest=st.text(st.sampled_from("x~/= ü\n"), max_size=6)
)
def test_a_path_begins_in_the_home_folder_where_a_shell_would_take_it_there(option, rest):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", "/home/of me")
        assert at_home(f"{option}~/{rest}") == f"{option}/home/of me/{rest}"
        assert at_home(f"{option}~root/{rest}") == f"{option}{os.path.expanduser('~root')}/{rest}"
        for other in (f"{option}x{rest}", f"{option}./~/{rest}", f"{option}~"):  # a delimiter may be ~
            assert at_home(other) == other
        with user_error("there is no home folder ~nobody_of_this_name"):
            at_home(f"{option}~nobody_of_this_name/{rest}")
