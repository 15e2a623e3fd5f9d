"""Mutates a good ticket many times: every mutant must be refused in one sentence, or be the same ticket still.

    python -m tests.fuzz_tickets [--mutants=10000] [--seed=0]

`damaged` mutants are bytes changed anywhere. `forged` ones are well-formed files with a digest that fits, of which the metadata, the
shapes or the contents were changed by somebody who can compute one; such a file may be another whole ticket. Each is loaded,
inspected and used for a line in a process of its own kind, which may raise nothing but a UserError, and dies of more than so much
memory or time.
"""

import argparse
import dataclasses
import json
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import LABEL, Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import initialize
from one_layer.models.config import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tickets import content as ticket_content
from one_layer.tickets import file as ticket_file
from one_layer.tickets.inspection import describe, inspect
from tests import ROOT

# Bytes of address space, beside what Python and JAX have taken before: a line may take 2^31, twice.
MOST_MEMORY = 5 * 2**30
MOST_SECONDS = 60  # of a processor, for one mutant
MADE_OF: dict[str, Any] = {
    "checkpoint": "average:3",
    "training": {"optim": {"lr": 0.1, "freeze": "norms"}, "train": {"updates": 9}},
}
CODES = "#version: 0.2\na b</w>\nc d\n"
_NUMBERS = (0, -1, 1, 2**31, 2**40, 2**63, 10**12, 10**400, 0.5, 8.0, 1e308, float("inf"), float("nan"))
ODD: tuple[Any, ...] = (*_NUMBERS, True, None, "", "../../x", "float32", "int8", [], {}, "a" * 2000)


def assets(config: ModelConfig) -> TextAssets:
    """Vocabularies of a model's sizes; one for both sides where it has one table."""
    source, target = (
        Vocabulary.build([" ".join(f"{side}{number}" for number in range(types - 4))])
        for side, types in (("ä", config.source_vocab), ("ö", config.target_vocab))
    )
    sides = [Preprocessing(language, True, True, CODES) for language in ("de", "en")]
    return TextAssets(source, source if config.shared_embedding else target, *sides)


def good_ticket() -> bytes:
    """A file that has everything: coded and plain masks, arrays, drawn and stored weights, texts."""
    config = ModelConfig(
        11, 13, d_model=8, ffn=24, heads=2, encoder_layers=3, decoder_layers=2, keep=0.1, norm="affine"
    )
    variables = initialize(config, 7)
    variables["random"]["source_embedding"]["kernel"] += 1.0
    return ticket_content.to_bytes(tickets.make(config, 7, variables, assets(config), **MADE_OF))[0]


def good_classifier() -> bytes:
    """A file with a head, and words and positions from elsewhere."""
    sizes = {"d_model": 8, "ffn": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 0, "max_positions": 9}
    tables = {"embedding": "frozen", "embedding_source": "roberta", "embedding_path": "x", "positions": "frozen"}
    config = ModelConfig(11, 7, **sizes, **tables, embedding_norm=True)
    variables = initialize(config, 7)
    variables["frozen"] = jax.tree.map(jnp.ones_like, variables["frozen"])
    texts = assets(config)
    labels = dataclasses.replace(
        texts,
        source_preprocessing=dataclasses.replace(texts.source_preprocessing, pairs=True),
        target_preprocessing=Preprocessing(LABEL),
    )
    data = DataConfig(source="labelled", labels="mnli", directory="x", max_length=9)
    return ticket_content.to_bytes(tickets.make(config, 7, variables, labels, data=data, **MADE_OF))[0]


def damaged(good: bytes, dice: random.Random) -> bytes:
    """Some of the bytes changed, inserted, taken away or moved."""
    header = 8 + int.from_bytes(good[:8], "little")
    start, length = dice.randrange(dice.choice((8, header, len(good)))), dice.choice((1, 1, 2, 8, 64, 1024))
    before, part, after = good[:start], good[start : start + length], good[start + length :]
    flipped = bytes([good[start] ^ 1 << dice.randrange(8)]) + good[start + 1 :]
    changed = (dice.randbytes(length) + after, after, dice.randbytes(length) + part + after, bytes(length) + after)
    return before + dice.choice((flipped, *changed, b"", part + part + after))


def forged(good: bytes, dice: random.Random) -> bytes:
    """Values, names, shapes or contents changed, and the digest computed again."""
    file = ticket_file.from_bytes(good)
    metadata, tensors = dict(file.metadata), dict(file.tensors)
    name, kind = dice.choice(sorted(tensors)), dice.randrange(8)
    if kind == 0:
        del metadata[dice.choice(sorted(metadata))]
    elif kind == 1:
        texts = ('{"a":1}', "[" * 10**5, "NaN", '{"a":1,"a":2}', '"\\ud800"', "7", "7.0", "\ufeff7", "")
        metadata[dice.choice(sorted(metadata))] = dice.choice(texts)
    elif kind in (2, 3):
        key = dice.choice(("model", "data", "evaluation", "text", "training") if kind == 2 else ("random", "codecs"))
        metadata[key] = json.dumps(_changed(json.loads(metadata[key]), dice))
    elif kind == 4:
        del tensors[name]
    elif kind == 5:
        others = ("params/x", "mask/encoder/ffn/in", "text/x", "random/decoder/ffn/out/kernel")
        tensors[dice.choice(others)] = tensors[name]
    elif kind == 6:
        whole = tensors[name].reshape(-1)
        tensors[name] = whole[: dice.randrange(len(whole))] if dice.random() < 0.5 else np.concatenate([whole, whole])
    else:
        content = bytearray(tensors[name].tobytes())
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        tensors[name] = np.frombuffer(bytes(content), tensors[name].dtype).reshape(tensors[name].shape)
    return ticket_file.to_bytes(metadata, tensors)


def _changed(value: Any, dice: random.Random) -> Any:
    """A JSON value, of which one part is another one."""
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(sorted(value))
        changed = {**value, key: _changed(value[key], dice)}
        if dice.random() < 0.1:
            changed[dice.choice((key.upper(), "x", "seed"))] = changed.pop(key)
        return changed
    if isinstance(value, list) and value and dice.random() < 0.9:
        place = dice.randrange(len(value))
        return [*value[:place], _changed(value[place], dice), *value[place + 1 :]]
    if isinstance(value, int) and not isinstance(value, bool) and dice.random() < 0.5:
        return value + dice.choice((-1, 1, 7, value))
    return dice.choice(ODD)


class Child:
    """A process that uses tickets as a person would, under limits on time and on address space: what XLA takes counts too.

    It loads each, inspects it, and translates or classifies a line with it.
    """

    def __init__(self, goods: list[Path]) -> None:
        command = [sys.executable, "-m", "tests.fuzz_tickets", "--child", *map(str, goods)]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        assert self._answer() == "ready", self._death()

    def outcome(self, path: Path) -> str:
        """`refused`, `same` as the good ones, or `other`: another whole ticket. Raises: AssertionError for whatever else happens."""
        assert self._process.stdin
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        end = self._answer()
        assert end in ("refused", "same", "other"), self._death()
        return end

    def close(self) -> None:
        """Ends the process."""
        self._process.communicate()
        self._errors.close()

    def _answer(self) -> str:
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], MOST_SECONDS * 20)  # of a clock, not of a processor
        return self._process.stdout.readline().strip() if ready else ""

    def _death(self) -> str:
        self._process.kill()
        code = self._process.wait()
        self._errors.seek(0)
        return f"it ended with {code}: {self._errors.read()[-3000:]}"


def child(goods: list[Path]) -> None:
    """What `Child` runs: answers every path on stdin with one word on stdout, or dies."""
    contents = {path.read_bytes() for path in goods}
    used: set[str] = set()
    for path in goods:  # before the limit is set: what JAX takes to begin with is nobody's fault
        assert _use(path, contents, used) == "same"
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MOST_MEMORY, resource.RLIM_INFINITY))
    print("ready", flush=True)
    for line in sys.stdin:
        spent = resource.getrusage(resource.RUSAGE_SELF)
        seconds = int(spent.ru_utime + spent.ru_stime) + MOST_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        print(_use(Path(line.rstrip("\n")), contents, used), flush=True)


def _use(path: Path, goods: set[bytes], used: set[str]) -> str:
    """Models and searches that are in `used` have translated a line already, which a compilation takes."""
    try:
        ticket = tickets.load(path)
        describe(inspect(path))
        key = repr((ticket.config, ticket.evaluation, ticket.assets.source_preprocessing, ticket.data.max_length))
        if key not in used:
            used.add(key)
            restored = tickets.restore_ticket(path)
            restored.lines(["ä0 ä1 ä2\tä3" if restored.verb == "classify" else "ä0 ä1 ä2"])
    except UserError as error:
        sentence = str(error)
        assert len(sentence) < 3000 and sentence.isprintable(), sentence
        return "refused"
    return "same" if ticket_content.to_bytes(ticket)[0] in goods else "other"


def fuzz(mutants: int, seed: int, folder: Path) -> Counter[str]:
    """How many mutants of either kind ended how. Raises: AssertionError for a damaged one that is taken for another ticket."""
    goods, dice = (good_ticket(), good_classifier()), random.Random(seed)
    places = [folder / f"good{number}.safetensors" for number in range(len(goods))]
    for path, good in zip(places, goods, strict=True):
        path.write_bytes(good)
    counts: Counter[str] = Counter()
    user, place = Child(places), folder / "mutant.safetensors"
    for number in range(mutants):
        make, good = (damaged, forged)[number % 2], goods[number // 2 % 2]
        content = make(good, dice)
        place.write_bytes(content)
        try:
            end = "same" if content == good else user.outcome(place)
        except AssertionError as error:
            raise AssertionError(f"mutant {number} of seed {seed}: {error}") from None
        assert (make, end) != (damaged, "other"), (
            f"mutant {number} of seed {seed} is another ticket, and its digest fits"
        )
        counts[f"{make.__name__}, {end}"] += 1
    user.close()
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child)
    else:
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            for name, count in sorted(fuzz(arguments.mutants, arguments.seed, Path(folder)).items()):
                print(f"{name}: {count:,}")
            print(f"{time.perf_counter() - start:.0f} seconds")
