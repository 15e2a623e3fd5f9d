"""The page reads tickets as Python does: the same weights and arrays, and it refuses whatever Python's reader refuses, in a sentence."""

import dataclasses
import json
import random
import re
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
import zstandard

from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.initializers import ORTHOGONAL, SCHEMES, Recipe
from one_layer.models.keys import FOR_TRAINING, ModelKeys
from one_layer.system.errors import UserError
from one_layer.system.removed import IDLE
from one_layer.tasks import TASKS
from one_layer.tickets import file as ticket_file
from one_layer.tickets.content import checksum
from tests import fuzz_tickets
from tests.page.engine import outcomes, run
from tests.page.node import evaluate
from tests.tickets.containers import CONTAINERS
from tests.tickets.forged import FORGED, forge
from tests.tickets.forged import text as with_text
from tests.tickets.forged import value as with_value
from tests.tiny_tickets import TINY, ticket_of

FORGED_BY_CHANCE = 120


def test_the_draws_have_the_same_bits():
    recipes = [Recipe("a/b", (7, 5), scheme, 1.3, layers=2) for scheme in SCHEMES]
    recipes += [Recipe("é", (40, 33), scheme, fan_in=33, zero_row=1) for scheme in SCHEMES]
    recipes += [Recipe("x", shape, ORTHOGONAL, 0.5, layers=2) for shape in ((9, 4), (4, 9), (1, 1), (30, 30))]
    seeds = (0, 1, 2**32 - 1)
    script = """
        const { draw, checksum } = await import(`${page}/engine/random.js`);
        return given.seeds.map((seed) => given.recipes.map((recipe) => checksum(draw(seed, recipe))));
    """
    found = evaluate(script, {"seeds": seeds, "recipes": [dataclasses.asdict(each) for each in recipes]})
    assert found == [[checksum(each.draw(seed)) for each in recipes] for seed in seeds]


def decompressed(codes: list[bytes]) -> list[bytes | None]:
    """What the page reads in each frame; None where it refuses it."""
    script = """
        const { decompress } = await import(`${page}/engine/zstd.js`);
        return given.map((code) => {
            try {
                return Buffer.from(decompress(Uint8Array.from(Buffer.from(code, "hex")), 0, 2 ** 22)).toString("hex");
            } catch (error) {
                if (error.constructor.name !== "Refused") throw error;
                return null;
            }
        });
    """
    found = evaluate(script, [code.hex() for code in codes])
    return [None if each is None else bytes.fromhex(each) for each in found]


def test_zstd_frames_of_all_levels_are_read():
    dice, text = np.random.default_rng(0), Path(__file__).read_bytes()
    contents = [b"", b"a", bytes(70_000), text, text * 40, dice.bytes(5000)]
    contents += [dice.geometric(p, 3000).clip(0, 255).astype(np.uint8).tobytes() for p in (0.02, 0.3, 0.7, 0.95)]
    contents += [dice.integers(0, most, 200_000).astype(np.uint8).tobytes() for most in (2, 20)]
    for level in (1, 3, 19):
        compressor = zstandard.ZstdCompressor(level=level, write_checksum=level == 3)
        assert decompressed([compressor.compress(each) for each in contents]) == contents


def test_no_frame_is_read_that_the_library_refuses():
    """Every bit of small frames flipped, and each byte left out: what the library reads is the same, and more is refused."""
    dice = np.random.default_rng(0)
    texts = [dice.geometric(0.1, 72).clip(0, 255).astype(np.uint8).tobytes(), b"abcabcabcabdabc" * 3 + bytes(range(40))]
    texts.append(np.packbits(dice.random(24 * 72) < 0.1).tobytes())
    frames = [zstandard.ZstdCompressor(level=level).compress(text) for text in texts for level in (1, 19)]
    frames += [zstandard.ZstdCompressor(write_checksum=True).compress(text) for text in (*texts, b"", texts[1][:5])]
    # A block that is longer than its four literals.
    letters = (1 | 2 << 1 | 6 << 3).to_bytes(3, "little") + b"\x20abcd\0"
    codes = [b"\x28\xb5\x2f\xfd\x20\x04" + letters]
    sized = [b"\x28\xb5\x2f\xfd\x80" + bytes([window << 3]) + (4).to_bytes(4, "little") for window in (3, 31)]
    codes += [begin + letters for begin in sized]
    for code in frames:
        for place, byte in enumerate(code):
            changes = [bytes([byte ^ 1 << bit]) for bit in range(8)]
            codes += [code[:place] + change + code[place + 1 :] for change in (*changes, b"", b"\0" + code[place:][:1])]
    found = decompressed(codes)
    read = [(ours, code) for ours, code in zip(found, codes, strict=True) if ours is not None]
    assert 0 < len(read) < len(codes) and sum(each is not None for each in found[:3]) == 1
    for ours, code in read:
        assert ours == zstandard.ZstdDecompressor().decompress(code, allow_extra_data=False)


def kind(hint: Any) -> str:
    """A field's type as keys.js names it."""
    if get_origin(hint) is tuple:
        return "texts"
    parts = list(get_args(hint) or (hint,))
    names = {int: "int", float: "float", bool: "bool", str: "text", type(None): "none"}
    return " or ".join(names[each] for each in parts)


def keys_of(record: Any, names: Any) -> dict[str, list[Any]]:
    hints = get_type_hints(record)
    fields = {each.name: each.default for each in dataclasses.fields(record) if names(each.name)}
    return {name: [kind(hints[name]), list(d) if isinstance(d, tuple) else d] for name, d in fields.items()}


def test_it_knows_the_keys_of_all_settings_that_it_computes_with():
    decided = ("source_vocab", "target_vocab", "family", *FOR_TRAINING)
    every = lambda name: True  # noqa: E731
    expected = {
        "model": keys_of(ModelKeys, lambda name: name not in decided),
        "data": keys_of(DataConfig, ("labels", "columns", "max_length", "unit", "block").__contains__),
        **{name: keys_of(task.settings, every) for name, task in TASKS.items()},
    }
    assert evaluate("return (await import(`${page}/engine/keys.js`)).KEYS;", None) == expected


def test_keys_that_are_gone_are_read_where_they_did_nothing(tmp_path):
    good, paths = fuzz_tickets.good_ticket(), []
    for name, idle in IDLE.items():
        if name.partition(".")[0] in ("model", "data", "evaluation"):
            paths.append(tmp_path / name)
            paths[-1].write_bytes(forge(good, with_value(name, idle)))
            tickets.load(paths[-1])
    assert outcomes(paths) == [""] * len(paths)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8", "int4"])
def test_arrays_and_masks_are_those_of_the_reader(precision, tmp_path):
    config = TINY.replace(norm="affine", bias=True, embedding="trained", selection="signed_threshold", threshold=0.1)
    path = tmp_path / "t.safetensors"
    tickets.save(path, ticket_of(config), precision)
    ticket = tickets.load(path)
    script = """
        const { checksum } = await import(`${page}/engine/random.js`);
        const ticket = openTicket(read(given.path));
        const masks = [...ticket.masks].map(([role, { mask, sign }]) => [role, [...mask], [...sign]]);
        return { arrays: [...ticket.arrays.values()].map(({ values }) => checksum(values)).sort(), masks: masks.sort() };
    """
    found = run(script, path=str(path))
    assert found["arrays"] == sorted(checksum(each) for each in ticket.arrays.values())
    masks = {path[:-1] for path in ticket.masks}
    packed = sorted([ticket.masks[*path, kind].ravel().tolist() for kind in ("mask", "sign")] for path in masks)
    assert sorted(each[1:] for each in found["masks"]) == packed


def test_a_byte_order_mark_before_codes_is_left_out(tmp_path):
    """As the reader leaves it out."""
    codes, good = "#version: 0.2\na b\n", fuzz_tickets.good_ticket()
    paths = [tmp_path / name for name in ("plain", "marked")]
    for path, before in zip(paths, ("", "\ufeff"), strict=True):
        path.write_bytes(forge(good, with_text("target.codes", f"{before}{codes}".encode())))
        assert tickets.load(path).assets.target_preprocessing.codes == codes
    script = "return given.paths.map((path) => openTicket(read(path)).assets.target.codes);"
    assert run(script, paths=[*map(str, paths)]) == [codes, codes]


def changed(content: bytes, dice: random.Random) -> bytes:
    """One of: cut off, a flipped bit."""
    place = dice.randrange(len(content))
    if dice.random() < 0.3:
        return content[:place]
    return content[:place] + bytes([content[place] ^ 1 << dice.randrange(8)]) + content[place + 1 :]


# Where the text came from, and how the model was trained: a page computes with neither.
UNREAD = (
    *("data.key", "data.A", "data.seed", "data.toy_train", "data.source_language"),
    *("training.optim", "training.train"),
)


def test_hostile_tickets_are_refused_in_a_sentence(tmp_path):
    """Those of the reader's own tests, and files that are cut off or have a flipped bit."""
    good, dice = fuzz_tickets.good_ticket(), random.Random(0)
    contents = {name: content for name, (content, _) in CONTAINERS.items()}
    contents |= {name: forge(good, change) for name, (change, _) in FORGED.items() if not name.startswith(UNREAD)}
    contents |= {f"damaged {number}": changed(good, dice) for number in range(80)}
    paths = [tmp_path / str(number) for number in range(len(contents) + 1)]
    for path, content in zip(paths, [*contents.values(), good], strict=True):
        path.write_bytes(content)
    *found, of_good = outcomes(paths)
    assert of_good == ""
    for name, sentence in zip(contents, found, strict=True):
        refused = sentence and sentence.isprintable() and len(sentence) < 1500 and "CRASH" not in sentence
        assert refused, (name, sentence)


def test_headers_are_read_where_the_reader_reads_them(tmp_path):
    """The same header in other words, with a digest that fits: some are JSON as docs/ticket-format.md has it, the others are not."""
    content = fuzz_tickets.good_ticket()
    length = int.from_bytes(content[:8], "little")
    header, data = content[8 : 8 + length].decode().rstrip(), content[8 + length :]
    (name, size), *_ = re.findall(r'"shape":\[(\d+)(,?)', header)
    taken = {
        "as it is": header,
        "spaces": f" \t\r\n{header}  \n",
        "escapes": header.replace('"dtype"', '"\\u0064type"').replace('"U8"', '"\\u00558"'),
        "of another order": json.dumps(dict(reversed(json.loads(header).items()))),
    }
    refused = {
        "a fraction": header.replace(f'"shape":[{name}{size}', f'"shape":[{name}.0{size}', 1),
        "an exponent": header.replace(f'"shape":[{name}{size}', f'"shape":[{name}e0{size}', 1),
        "a plus": header.replace(f'"shape":[{name}{size}', f'"shape":[+{name}{size}', 1),
        "a byte order mark": "\ufeff" + header,
        "a no-break space": header + "\u00a0",
        "a comment": header + "/**/",
        "half a character": header.replace('"dtype":"U8"', '"dtype":"U8\\udc00"', 1),
        "a name twice": header.replace('"dtype":"U8"', '"dtype":"U8","\\u0064type":"U8"', 1),
    }
    codings = {"UTF-16": "utf-16-le", "UTF-16 with a mark": "utf-16", "UTF-32": "utf-32-be", "Latin": "latin-1"}
    texts = {label: text.encode() for label, text in (taken | refused).items()}
    texts |= {
        label: header.replace("ä", "Ä").encode(coding) + b"\xe4" * (label == "Latin")
        for label, coding in codings.items()
    }
    paths = [tmp_path / str(number) for number in range(len(texts))]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    for label, path, sentence in zip(texts, paths, outcomes(paths), strict=True):
        assert (sentence == "") == (label in taken) and "CRASH" not in sentence, (label, sentence)
        if label in taken:
            tickets.load(path)
        else:
            with pytest.raises(UserError):
                tickets.load(path)


def read_by_pages(content: bytes, good: bytes) -> bytes:
    """The ticket with the settings of a good one where a page does not read them."""
    file, own = ticket_file.from_bytes(content), ticket_file.from_bytes(good).metadata
    checkpoint = json.loads(file.metadata["training"]).get("checkpoint", "")
    training = json.loads(own["training"]) | {"checkpoint": checkpoint}
    evaluation = json.loads(file.metadata["evaluation"])
    evaluation.pop("tokenize", None)
    changed = {"data": own["data"], "training": json.dumps(training), "evaluation": json.dumps(evaluation)}
    return ticket_file.to_bytes(file.metadata | changed, dict(file.tensors))


def test_it_refuses_the_mutants_that_the_reader_refuses_for_what_a_page_computes_with_and_no_other(tmp_path):
    dice, goods, expected, paths = random.Random(), (fuzz_tickets.good_ticket(), fuzz_tickets.good_classifier()), [], []
    for number in range(FORGED_BY_CHANCE):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(fuzz_tickets.forged(goods[number % 2], dice))
        try:
            tickets.load(paths[-1])
            expected.append("")
        except UserError as error:
            expected.append(str(error))
    for number, (path, ours, theirs) in enumerate(zip(paths, outcomes(paths), expected, strict=True)):
        assert bool(ours) <= bool(theirs) and "CRASH" not in ours, (path.read_bytes()[:3000], ours, theirs)
        if theirs and not ours:
            path.write_bytes(read_by_pages(path.read_bytes(), goods[number % 2]))
            tickets.load(path)
