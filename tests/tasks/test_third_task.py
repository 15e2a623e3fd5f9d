"""A task of one's own, in one file: an encoder learns to reverse words, and everything else of the program takes it as it is.

It trains, resumes, is evaluated, is exported to a ticket and served, without a change anywhere else.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.data.batches import evaluation_batches
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.tokens import TokenStore
from one_layer.layers.matrix import Projection
from one_layer.models import build
from one_layer.models.families import FAMILIES, Family, Head
from one_layer.models.networks import NETWORKS, Network
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import resolve
from one_layer.system.errors import UserError
from one_layer.tasks import TASKS
from one_layer.tasks.losses import nll_program, summed
from one_layer.tasks.model import TrainedModel, prepared
from one_layer.tasks.protocol import Task
from one_layer.training.metrics import read_metrics
from one_layer.training.train import train
from tests import tiny, user_error
from tests.tasks.conftest import assert_ticket_is_checkpoint

LETTERS = "abcd"


class Reverser(Network):
    """An encoder with a trained projection to letters at every place."""

    def setup(self):
        super().setup()
        self.letters = Projection(self.config.target_vocab, "trained", self.config.supermask, True, "float32")

    def __call__(self, source):
        return self.letters(self.encoded(self.table("source"), source))


class ReverserFamily(Family):
    stacks = ("encoder",)

    def heads(self, config):
        return (Head("letters", "head/letters", (config.d_model, config.target_vocab)),)

    def check(self, config):
        if config.decoder_layers:
            raise UserError(
                f"model.decoder_layers is {config.decoder_layers}; words are reversed without a decoder: give 0"
            )

    def describe(self, config):
        return f"reverser with {config.encoder_layers} layers"


@dataclass(frozen=True)
class ReversalSettings:
    """Padded tokens of a batch."""

    max_tokens: int = 4096


class ReversalModel(TrainedModel):
    """Reverses words of letters."""

    task = "reversal"
    verb = "reverse"

    def lines(self, lines: Sequence[str]) -> list[str]:
        ids = [self.assets.source_vocabulary.encode(" ".join(line)) for line in lines]
        return [self.assets.target_vocabulary.decode(row).replace(" ", "") for row in self._best(ids)]

    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        given = self.lines([text.replace(" ", "") for text in split.source_text])
        right = np.mean([one == other for one, other in zip(given, split.reference, strict=True)])
        return {"accuracy": float(right)}, {"plain": given}

    @cached_property
    def _apply(self):
        return jax.jit(build(self.config).apply)

    def _best(self, ids):
        rows = {}
        for batch in evaluation_batches(ids, None, self.settings.max_tokens, 1):
            best = np.asarray(self._apply(self.prepared, batch["source"])).argmax(-1)
            rows |= dict(zip(batch["index"].tolist(), best.astype(np.int32), strict=True))
        return [rows[place] for place in range(len(ids))]


class Reversal(Task):
    family, settings, model = "reverser", ReversalSettings, ReversalModel

    def check(self, data, model, settings):
        if data.source != "toy":
            raise UserError(f"data.source is {data.source!r}; words are made up here: leave it out")

    def selectable(self, data, settings):
        return ("nll",)

    def corpus(self, data: DataConfig, saved: TextAssets | None = None) -> Corpus:
        vocabulary = saved.source_vocabulary if saved else Vocabulary.build([" ".join(LETTERS)])
        steps = Preprocessing("letters")
        parts = {
            name: split(vocabulary, count, seed)
            for seed, (name, count) in enumerate({"train": 64, "valid": 16, "test": 8}.items())
        }
        assets = TextAssets(vocabulary, vocabulary, steps, steps)
        return Corpus(
            **vars(assets), train=parts["train"], valid=parts["valid"], tests={"test": parts["test"]}, report=[]
        )

    def scored_corpus(self, data: DataConfig, saved: TextAssets, wanted: str = "") -> Corpus:
        return self.corpus(data, saved)

    def validator(self, model, data, settings, corpus):
        program, valid = nll_program(model, ("source",)), corpus.valid

        def values(params, fixed, between):
            batches = evaluation_batches(valid.source, valid.target, settings.max_tokens, 1)
            nll, letters = summed(program, prepared(model, {"params": params, **fixed}), batches, between)
            return {"valid/nll": float(nll / letters)}

        return values


def split(vocabulary: Vocabulary, count: int, seed: int) -> Split:
    dice = np.random.default_rng(seed)
    words = [" ".join(dice.choice(list(LETTERS), 3)) for _ in range(count)]
    backwards = [word[::-1] for word in words]
    source, target = (TokenStore.of([vocabulary.encode(word) for word in side]) for side in (words, backwards))
    return Split(source, target, words, [word.replace(" ", "") for word in backwards], [])


CHANGES = {
    "task": "reversal",
    "model.decoder_layers": 0,
    "model.dropout": 0.0,
    "train.updates": 30,
    "train.evaluate_every": 15,
    "optim.lr": 0.03,
    "optim.label_smoothing": 0.0,
}


@pytest.fixture(scope="module", autouse=True)
def _third_task():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS, "reversal", Reversal())
        patch.setitem(FAMILIES, "reverser", ReverserFamily())
        patch.setitem(NETWORKS, "reverser", Reverser)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory, _third_task):
    path = tmp_path_factory.mktemp("run") / "run"
    train(resolve(tiny.config(CHANGES)), path, [])
    return RunFolder(path)


@pytest.mark.slow
def test_it_learns(folder):
    nll = [line["valid/nll"] for line in read_metrics(folder.metrics_file) if "valid/nll" in line]
    assert nll[-1] < nll[0] and nll[-1] < 0.9 * np.log(len(LETTERS) + 1)
    result = json.loads((folder.path / "result.json").read_text())
    assert result["task"] == "reversal" and result["test"]["test"].keys() == {"accuracy"}
    assert 0 < result["parameters"]["kept"] < result["parameters"]["trained"]


@pytest.mark.slow
def test_it_resumes(folder, tmp_path):
    for updates in (15, 30):
        train(resolve(tiny.config(CHANGES | {"train.updates": updates})), tmp_path / "run", [])
    again = RunFolder(tmp_path / "run")
    assert again.ticket_file.read_bytes() == folder.ticket_file.read_bytes()


@pytest.mark.slow
def test_its_ticket_is_its_checkpoint(folder, tmp_path):
    words, model = ["abc", "ddd", "cab"], restore_run(folder)
    whole = assert_ticket_is_checkpoint(model, folder.ticket_file, tmp_path, words, "accuracy")
    leaves = jax.tree.leaves(whole.variables["params"])
    assert leaves and all(leaf.dtype == jnp.float32 for leaf in leaves)  # the head alone: masks are bits


def test_other_tasks_keys_and_verbs_are_refused(folder):
    with user_error("this is a reversal model, which does not translate; give --mode=reverse"):
        restore_run(folder).check_verb("translate")
    with user_error(r"model\.decoder_layers is 1; words are reversed without a decoder"):
        resolve(tiny.config(CHANGES | {"model.decoder_layers": 1}))
    with user_error(r"train\.select is 'bleu', but the validation set is measured by nll"):
        resolve(tiny.config(CHANGES | {"train.select": "bleu"}))
