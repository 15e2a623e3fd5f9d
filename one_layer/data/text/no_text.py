"""What is no text, told by the first bytes of a file: archives, packed files, pointers to other files, and text that is not UTF-8."""

from __future__ import annotations

import codecs

from one_layer.system.errors import UserError

BLOCK = 512  # bytes that say what a file is
# What would pass for text byte by byte, and where which bytes tell it.
_PACKED = {
    "gzip": (0, b"\x1f\x8b\x08"),
    "zip": (0, b"PK\x03\x04"),
    "bzip2": (4, b"1AY&SY"),
    "xz": (0, b"\xfd7zXZ\0"),
    "zstd": (0, b"\x28\xb5\x2f\xfd"),
    "7-Zip": (0, b"7z\xbc\xaf\x27\x1c"),
    "Parquet": (0, b"PAR1"),
    "a tar archive": (257, b"ustar"),
}
_POINTER = b"version https://git-lfs.github.com/"
_WIDE = {"UTF-16LE": 1, "UTF-16BE": 0}  # where the zeros of Latin letters lie


def check_text(begin: bytes, name: object, read: str = ".gz") -> None:
    """`begin` are the first `BLOCK` bytes of the file `name`, unpacked. `read`: the packed files that are read in its place.

    Raises: UserError, which says what the file is, if it is no text.
    """
    for kind, (place, mark) in _PACKED.items():
        if begin[place:].startswith(mark):
            raise UserError(f"{name} holds {kind}, which is not read; give the text itself, or one {read} of it")
    if begin.startswith(_POINTER):
        raise UserError(
            f"{name} is a pointer of Git LFS and not the text that it stands for; fetch that with git lfs pull"
        )
    if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return  # whoever decodes it says so
    for encoding, place in _WIDE.items():
        zeros = begin[place::2].count(0)
        if zeros > len(begin) // 4 and zeros > begin[1 - place :: 2].count(0):
            raise UserError(f"{name} is {encoding}; convert the file, for example with iconv -f {encoding} -t UTF-8")
