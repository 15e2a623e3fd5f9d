"""Files that are no container of a ticket, with what is said of each. Both readers refuse each: Python's and the page's."""

import json

import numpy as np

from one_layer.tickets import file as ticket_file


def container(header: str | bytes, data: bytes = b"") -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return len(text).to_bytes(8, "little") + text + data


METADATA = '"__metadata__":{"format":"one_layer ticket","version":"1","codecs":"{}"}}'


def tensor(name: str, shape: object, begin: int, end: int, dtype: str = "U8") -> str:
    return f'{{"{name}":{{"dtype":"{dtype}","shape":{json.dumps(shape)},"data_offsets":[{begin},{end}]}},{METADATA}'


def of_one(name: str, shape: object, begin: int = 0, end: int = 1, dtype: str = "U8", data: bytes = b"a") -> bytes:
    """A file of one tensor."""
    return container(tensor(name, shape, begin, end, dtype), data)


def entry(text: str) -> bytes:
    return container(f'{{"a":{text},{METADATA}', b"a")


def two(begin: int, end: int) -> bytes:
    """Two tensors: one of the first byte, and one of one byte from `begin` to `end`."""
    return container(tensor("a", [1], 0, 1)[: -len(METADATA)] + tensor("b", [1], begin, end)[1:], b"abc")


def of_metadata(text: str) -> bytes:
    return container(f'{{"__metadata__":{text}}}')


NOT_JSON, IMPOSSIBLE = "its header is not valid JSON", "an impossible shape or place"
FIELDS, NOT_A_TICKET = "its header does not give dtype, shape and data_offsets of a", "but not a ticket"
DIGEST = "its digest does not match its content"
CONTAINERS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "ends within its header"),
    "no header": (bytes(8), NOT_JSON),
    "no safetensors": (b"PK\x03\x04" * 100, "ends within its header"),
    "a header of 100 MB": ((10**8).to_bytes(8, "little") + b" " * 10**4, "ends within its header"),
    "a header of 2 MB": (container(b" " * 2**21), "header has 2,097,152 bytes; no ticket's has more than"),
    "a JSON bomb": (container("[" * 10**6), NOT_JSON),
    "a nested bomb": (container('{"a":' * 10**5 + "1" + "}" * 10**5), NOT_JSON),
    "101 lists": (container("[" * 101 + "]" * 101), NOT_JSON),
    "100 lists": (container("[" * 100 + "]" * 100), "its header is not a JSON object"),
    "a text": (container('"a"'), "its header is not a JSON object"),
    "bytes that are no text": (container(b'{"\xff":1}'), NOT_JSON),
    "UTF-16": (container(("{" + METADATA).encode("utf-16-le")), NOT_JSON),
    "UTF-32": (container(("{" + METADATA).encode("utf-32-be")), NOT_JSON),
    "a byte order mark": (container(("{" + METADATA).encode("utf-8-sig")), NOT_JSON),
    "half a character": (container('{"a":"\\ud800"}'), NOT_JSON),
    "half a character in a name": (container('{"\\ud800":1}'), NOT_JSON),
    "a line in a text": (container('{"a":"\n"}'), NOT_JSON),
    "no number": (container('{"a":NaN}'), NOT_JSON),
    "infinity": (container('{"a":Infinity}'), NOT_JSON),
    "a number beyond float64": (container('{"a":1e999}'), NOT_JSON),
    "a whole number beyond float64": (container('{"a":-1' + "0" * 400 + "}"), NOT_JSON),
    "a number with a zero before it": (container('{"a":01}'), NOT_JSON),
    "a comma too many": (container('{"a":1,}'), NOT_JSON),
    "a no-break space": (container('{"a":1}\u00a0'), NOT_JSON),
    "duplicate names": (container('{"a":1,"b":2,"\\u0061":3}'), "has 'a' twice"),
    "duplicate names within": (container('{"b":[{"a":1,"a":{}}]}'), "has 'a' twice"),
    "no metadata": (container("{}"), "no metadata"),
    "a list of metadata": (of_metadata("[]"), "no metadata"),
    "a number in the metadata": (of_metadata('{"format":1}'), "no metadata"),
    "no format": (of_metadata("{}"), NOT_A_TICKET),
    "another safetensors file": (of_metadata('{"format":"pt"}'), NOT_A_TICKET),
    "a later version": (
        of_metadata('{"format":"one_layer ticket","version":"2"}'),
        "version '2'; this .* reads version 1",
    ),
    "an earlier version": (of_metadata('{"format":"one_layer ticket","version":"0"}'), "version '0'"),
    "no version": (of_metadata('{"format":"one_layer ticket"}'), "this .* reads version 1"),
    "a path in a name": (of_one("mask/../../x", [1]), "its header has the invalid tensor name 'mask/../../x'"),
    "an absolute path": (of_one("/etc/passwd", [1]), "invalid tensor name '/etc/passwd'"),
    "10^12 entries": (of_one("a", [10**12], 0, 10**12), "it ends within a"),
    "entries of no bytes": (of_one("a", [10**6, 10**6]), "has the shape .* but 1 bytes"),
    "bytes of no entries": (of_one("a", [0]), "has the shape .* but 1 bytes"),
    "a byte for a float": (of_one("a", [1], dtype="F32"), "has the shape .* but 1 bytes"),
    "10^100 entries": (of_one("a", [10**100]), IMPOSSIBLE),
    "no entries of 2^120": (of_one("a", [0, 2**40, 2**40, 2**40], 0, 0, data=b""), IMPOSSIBLE),
    "a negative shape": (of_one("a", [-1, -1]), IMPOSSIBLE),
    "a shape with a fraction": (of_one("a", [1.0]), IMPOSSIBLE),
    "a shape with an exponent": (container(tensor("a", [1], 0, 1).replace("[1]", "[1e0]"), b"a"), IMPOSSIBLE),
    "a shape that is true": (of_one("a", [True]), IMPOSSIBLE),
    "an object for a shape": (of_one("a", {}), IMPOSSIBLE),
    "a number": (entry("1"), FIELDS),
    "a number with a fraction": (entry("1.5"), FIELDS),
    "no place": (entry('{"dtype":"U8","shape":[1]}'), FIELDS),
    "one name more": (entry('{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}'), FIELDS),
    "half a place": (entry('{"dtype":"U8","shape":[1],"data_offsets":[1]}'), IMPOSSIBLE),
    "three places": (entry('{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}'), IMPOSSIBLE),
    "a place with a fraction": (entry('{"dtype":"U8","shape":[1],"data_offsets":[0.0,1.0]}'), IMPOSSIBLE),
    "a name of 100 letters": (of_one("a" * 100, [1]), DIGEST),
    "a name of 101 letters": (of_one("a" * 101, [1]), "invalid tensor name"),
    "four axes": (of_one("a", [1] * 4), DIGEST),
    "five axes": (of_one("a", [1] * 5), IMPOSSIBLE),
    "a header of 1 MiB": (container(tensor("a", [1], 0, 1).ljust(2**20), b"a"), DIGEST),
    "a header of 1 MiB and a byte": (container(tensor("a", [1], 0, 1).ljust(2**20 + 1), b"a"), "no ticket's has more"),
    "an axis of 2^40": (of_one("a", [0, 1, 2**40], 0, 0, data=b""), DIGEST),
    "an axis of more": (of_one("a", [0, 1, 2**40 + 1], 0, 0, data=b""), IMPOSSIBLE),
    "entries of more": (of_one("a", [0, 2, 2**39 + 1], 0, 0, data=b""), IMPOSSIBLE),
    "a gap": (of_one("a", [1], 1, 2, data=b"ab"), "starts at byte 1 of the data instead of 0"),
    "a byte of two": (two(0, 1), "b starts at byte 0 of the data instead of 1"),
    "two bytes for one": (two(1, 3), r"b has the shape \[1\] but 2 bytes"),
    "bytes of nobody": (of_one("a", [1], data=b"ab"), "1 bytes follow the last tensor"),
    "a pickle": (of_one("a", [1], dtype="O"), "has the dtype 'O'; a ticket's tensors are U8 or F32"),
    "no digest": (of_one("a", [1]), DIGEST),
    "spaces, an escaped name and minus zero": (
        container(f' {{ "\\u0061":\t{tensor("a", [1], 0, 1)[5:]}\n', b"a"),
        DIGEST,
    ),
}

_VECTOR, _ENTRY = np.zeros(3, np.uint8), {"codec": "zstd", "shape": [3]}
_NOT_CODED, _NOT_DESCRIBED = "'a', which is not a coded tensor", "'codecs' does not give codec and shape of a"


def coded(codecs: object, array: np.ndarray = _VECTOR) -> bytes:
    return ticket_file.to_bytes({"codecs": json.dumps(codecs)}, {"a": array})


CONTAINERS |= {
    f"codecs {number}": case
    for number, case in enumerate(
        [
            (coded([]), "its metadata 'codecs' is not a JSON object"),
            (coded({"b": _ENTRY}), "names 'b', which is not a coded tensor"),
            (coded({"a": _ENTRY}, np.zeros(3, np.float32)), _NOT_CODED),
            (coded({"a": _ENTRY}, np.zeros((1, 3), np.uint8)), _NOT_CODED),
            (coded({"a": _ENTRY}, np.zeros((), np.uint8)), _NOT_CODED),
            (coded({"a": []}), _NOT_DESCRIBED),
            (coded({"a": {"codec": "zstd"}}), _NOT_DESCRIBED),
            (coded({"a": {**_ENTRY, "x": 1}}), _NOT_DESCRIBED),
            (coded({"a": {**_ENTRY, "codec": 1}}), _NOT_DESCRIBED),
            (coded({"a": {**_ENTRY, "shape": [-1]}}), _NOT_DESCRIBED),
            (coded({"a": {**_ENTRY, "shape": [3.0]}}), _NOT_DESCRIBED),
            (coded({"a": {**_ENTRY, "shape": {}}}), _NOT_DESCRIBED),
            (ticket_file.to_bytes({}, {"a": _VECTOR}), "its metadata 'codecs' is not valid JSON"),
        ]
    )
}
