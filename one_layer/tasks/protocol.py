"""What a task is: everything that the rest of the program asks of translation, of classification, or of a task of your own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from jaxtyping import Array, Float

from one_layer.data.batches import TrainingBatches
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.text.assets import TextAssets
from one_layer.models import ModelConfig
from one_layer.tasks.model import TrainedModel

Variables = dict[str, Any]
Batch = dict[str, Array]
Sums = dict[str, Float[Array, ""]]
Validator = Callable[[Variables, dict[str, Variables]], dict[str, float]]


class Task(ABC):
    """One task. Training, evaluation, run folders, results and tickets know a task by this class alone.

    `name`: what users give as `task`. `family`: its networks (`one_layer.models.families`). `settings`: the frozen record that
    the config's section `evaluation` becomes; keys of other tasks there have no effect. `limits`: the largest values of these
    settings that a ticket may ask for; `validated_by`: those that decide what `validator` measures, and so must not change during
    a run. `model`: the class of its trained models.
    """

    name: ClassVar[str]
    family: ClassVar[str]
    settings: ClassVar[type]
    limits: ClassVar[dict[str, int]] = {}
    validated_by: ClassVar[tuple[str, ...]] = ()
    model: ClassVar[type[TrainedModel]]

    @abstractmethod
    def check(self, data: DataConfig, model: ModelConfig, settings: Any) -> None:
        """Raises: UserError for settings that do not go together, before any text is read."""

    @abstractmethod
    def selectable(self, data: DataConfig, settings: Any) -> tuple[str, ...]:
        """The values of `validator`, without `valid/`, that may choose the best checkpoint. All but `nll` are better when higher."""

    @abstractmethod
    def corpus(self, data: DataConfig, saved: TextAssets | None = None) -> Corpus:
        """All parts of the text as ids. `saved`: the vocabularies and codes of a run that goes on. Raises: UserError for bad files."""

    @abstractmethod
    def scored(self, data: DataConfig, saved: TextAssets, wanted: str = "") -> Corpus:
        """The parts that are scored, without the training text: `valid`, one test set, `test` (all test sets), or empty for all."""

    def batches(self, corpus: Corpus, data: DataConfig, accumulate: int, seed: int) -> TrainingBatches:
        """The endless sequence of updates that training reads."""
        return TrainingBatches(
            corpus.train.source,
            corpus.train.target,
            max_tokens=data.max_tokens,
            accumulate=accumulate,
            buckets=data.buckets,
            seed=seed,
        )

    @abstractmethod
    def loss(self, network: Any, variables: Variables, batch: Batch, smoothing: float, rngs: dict[str, Array]) -> Sums:
        """Sums over a micro-batch: `loss` and `nll` in nats, `targets` that gradients are divided by, and `tokens` for the speed."""

    @abstractmethod
    def validator(self, model: ModelConfig, data: DataConfig, settings: Any, corpus: Corpus) -> Validator:
        """What measures the validation set: (params, fixed collections) -> values, `valid/nll` (nats a target) among them."""
