"""A file is its old content or its new, never a half."""

from __future__ import annotations

import pytest

from one_layer.files import replacing, write_atomically


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
