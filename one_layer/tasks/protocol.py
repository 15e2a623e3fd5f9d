"""The interface of a task: everything that the rest of the program needs from translation, classification or a new task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from jaxtyping import Array, Float

from one_layer.data.batches import TrainingBatches, Updates
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.languages import code
from one_layer.layers.trees import Variables
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.losses import Distil, Smoothing, label_smoothed_nll
from one_layer.tasks.model import TrainedModel
from one_layer.tasks.work import Work, encoder_work

if TYPE_CHECKING:
    from one_layer.data.reader import ParallelReader

Batch = dict[str, Array]
Sums = dict[str, Float[Array, ""]]
Between = Callable[[], None]
FEWEST = 10  # lines that must differ between two models: with fewer, resampling says nothing
Validator = Callable[[Variables, dict[str, Variables], Between], dict[str, float]]


class Paired(NamedTuple):
    """The scores of two models: of all lines together (`totals`), and for each line (`lines`), always the first model's first.

    More is better. `measure` says what was measured. `p` is the probability of a difference at least as large where the models are
    equally good, by `test`; None where fewer than `FEWEST` lines differ, or where the measure cannot measure this text.
    """

    measure: str
    totals: tuple[float, float]
    lines: list[tuple[float, float]]
    p: float | None = None
    test: str = ""

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many lines the first model has better, how many the second, and how many have equal scores."""
        first, second = (sum(each[place] > each[1 - place] for each in self.lines) for place in (0, 1))
        return first, second, len(self.lines) - first - second


def check_positions(model: ModelConfig, key: str, longest: int) -> None:
    """Raises: UserError if the model has fewer positions than the config's `key` lets a text have."""
    if model.position_rows and longest > model.max_positions:
        raise UserError(
            f"{key} is {longest}, but model.max_positions is {model.max_positions}; give a table with more positions, or a smaller {key}"
        )


class Task(ABC):
    """One task. Training, evaluation, run folders, results and tickets use a task only through this class.

    - `family`: the family of its networks (`one_layer.models.families`).
    - `settings`: the frozen record of the config's section `evaluation`; keys of other tasks in that section have no effect.
    - `limits`: the largest values of these settings that a ticket may have.
    - `validated_by`: the settings that decide what `validator` measures, and so must not change during a run.
    - `inputs`: the arrays of a batch that its networks take.
    - `model`: the class of its trained models.
    """

    family: ClassVar[str]
    settings: ClassVar[type]
    limits: ClassVar[dict[str, int]] = {}
    validated_by: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ("source",)
    model: ClassVar[type[TrainedModel]]

    @property
    def name(self) -> str:
        """The value that users give as `task`."""
        return self.model.task

    @abstractmethod
    def check(self, data: DataConfig, model: ModelConfig, settings: Any) -> None:
        """Checks that the settings fit together, before any text is read. Raises: UserError if they do not."""

    @abstractmethod
    def selectable(self, data: DataConfig, settings: Any) -> tuple[str, ...]:
        """The values of `validator`, without `valid/`, that may select the best checkpoint. For all but `nll`, higher is better."""

    def reader(self) -> ParallelReader:
        """How text is read; by default as pairs of sentences."""
        from one_layer.data.loading import PARALLEL  # late: one line is translated without it

        return PARALLEL

    def corpus(self, data: DataConfig, saved: TextAssets | None = None) -> Corpus:
        """All splits as ids. `saved`: the vocabularies and codes of a resumed run. Raises: UserError for files that cannot be used."""
        from one_layer.data import loading

        if saved is None:
            return loading.load(data, reader=self.reader())
        return loading.load(data, saved.vocabularies, saved.codes, self.reader(), saved.steps)

    def corpus_in_vocabularies_of(self, source: TrainedModel, data: DataConfig) -> Corpus:
        """All splits as ids of the vocabularies of another run's model, for fine-tuning. Raises: UserError if the model has no such ids."""
        if source.task != self.name:
            raise UserError(
                f"train.init_from is the run of a {source.task} model, but task is {self.name}; give the run of a {self.name} model"
            )
        if [*map(code, source.assets.languages)] != [*map(code, data.languages)]:
            raise UserError(
                f"data.source_language and data.target_language are {' and '.join(data.languages)}, but the run of train.init_from has "
                f"{' and '.join(source.assets.languages)}; give a run of the same languages"
            )
        return self.corpus(data, source.assets)

    def scored_corpus(self, data: DataConfig, saved: TextAssets, wanted: str = "") -> Corpus:
        """The scored splits, without the training text. `wanted`: `valid`, one test set, `test` for all test sets, or empty for all."""
        from one_layer.data import loading

        return loading.load_scored(data, saved.vocabularies, saved.codes, wanted, self.reader(), saved.steps)

    def batches(self, corpus: Corpus, data: DataConfig, accumulate: int, seed: int) -> Updates:
        """The endless sequence of updates that training reads."""
        return TrainingBatches(
            corpus.train.source,
            corpus.train.target,
            max_tokens=data.max_tokens,
            accumulate=accumulate,
            buckets=data.buckets,
            seed=seed,
        )

    def logits(
        self, network: Any, variables: Variables, batch: Batch, rngs: dict[str, Array]
    ) -> Float[Array, "rows *places classes"]:
        """The logits of a micro-batch, for each position of its `target`, or one for each row. Without `rngs`, nothing is dropped."""
        return network.apply(variables, *(batch[name] for name in self.inputs), rngs=rngs)

    def sums(self, logits: Float[Array, "rows *places classes"], batch: Batch, smoothing: Smoothing) -> Sums:
        """Sums over a micro-batch: `loss` and `nll` in nats, `targets` (the divisor of gradients), and `tokens` (to measure the speed).

        Here, label-smoothed cross entropy of target tokens.
        """
        loss, nll, tokens = label_smoothed_nll(logits, batch["target"], smoothing)
        return {"loss": loss, "nll": nll, "targets": tokens, "tokens": tokens}

    def loss(
        self,
        network: Any,
        variables: Variables,
        batch: Batch,
        smoothing: Smoothing,
        rngs: dict[str, Array],
        distil: Distil | None = None,
    ) -> Sums:
        """`sums` of the network's `logits`. With `distil`, the loss has the teacher's share, and `batch` what the teacher says."""
        logits = self.logits(network, variables, batch, rngs)
        sums = self.sums(logits, batch, smoothing)
        if distil is None:
            return sums
        return {**sums, "loss": distil.mixed(sums["loss"], logits, batch["teacher_ids"], batch["teacher_p"])}

    @abstractmethod
    def validator(self, model: ModelConfig, data: DataConfig, settings: Any, corpus: Corpus) -> Validator:
        """A function that measures the validation set: (params, fixed collections, between) -> values, with `valid/nll` in nats per target.

        It calls `between` before every batch: an exception from it ends the evaluation, for instance after Ctrl-C.
        """

    def arrays(self, data: DataConfig, length: int) -> dict[str, int]:
        """The arrays of a micro-batch of sequences padded to `length`, and how many positions a row of each has."""
        return dict.fromkeys(("source", "target_in", "target"), length)

    def predictions(self, data: DataConfig, tokens: int, longest: int) -> int:
        """At how many positions of a micro-batch logits are computed, at least. It has `tokens` tokens, a sequence at most `longest`."""
        return tokens

    def paired(
        self, split: Split, systems: tuple[list[str], list[str]], assets: TextAssets, settings: Any
    ) -> Paired | None:
        """The hypotheses of two models (of the kind `plain`) for a split, line by line; None for a task that has no such lines."""
        return None

    def line_work(self, model: ModelConfig, settings: Any, tokens: int) -> Work:
        """An approximate upper bound of the work for a line of `tokens` tokens; by default the work of the encoder."""
        return encoder_work(model, tokens)
