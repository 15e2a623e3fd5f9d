"""The task of classification."""

import jax.numpy as jnp
from jaxtyping import Array

from one_layer.data import loading
from one_layer.data.config import NO_LANGUAGE, DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.special_tokens import PAD
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.languages import code
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.data.tokens import LEAST_OF_PAIRS
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.classification.corpus import LabelledReader
from one_layer.tasks.classification.glue import TASKS
from one_layer.tasks.classification.labels import FROM_TRAIN, label_set
from one_layer.tasks.classification.model import ClassificationModel
from one_layer.tasks.classification.scoring import LabellingSettings, label_probabilities, label_scores, paired_labels
from one_layer.tasks.losses import Smoothing, label_nll
from one_layer.tasks.model import TrainedModel, prepared
from one_layer.tasks.protocol import Batch, Between, Paired, Sums, Task, Validator, Variables, check_positions


class Classification(Task):
    """Labels texts or pairs of texts (paper A, section 4, on QQP and MNLI)."""

    family = "classifier"
    settings = LabellingSettings
    limits = {"max_tokens": 2**24, "buckets": 1000}  # noqa: RUF012  # a ClassVar of Task
    model = ClassificationModel

    def check(self, data: DataConfig, model: ModelConfig, settings: LabellingSettings) -> None:
        if data.source not in ("labelled", "tfds") or not data.labels:
            raise UserError(
                f"task=classification, but data.source={data.source!r:.200} and data.labels={data.labels!r:.200}; give "
                f"data.source=labelled or tfds, and as data.labels one of {', '.join(TASKS)}, a list such as "
                f"entails,neutral, or {FROM_TRAIN}"
            )
        texts = label_set(data).texts
        if data.joined_vocabulary:
            raise UserError("data.joined_vocabulary is True, but labels are not text; leave it out in classification")
        check_positions(model, "data.max_length", data.max_length)
        if texts == 2 and 0 < data.max_length < LEAST_OF_PAIRS:
            raise UserError(
                f"data.max_length is {data.max_length}; two texts need at least {LEAST_OF_PAIRS} tokens, 4 of which are around them"
            )

    def selectable(self, data: DataConfig, settings: LabellingSettings) -> tuple[str, ...]:
        return ("nll", *label_set(data).scores)

    def reader(self) -> LabelledReader:
        return LabelledReader()

    def corpus_in_vocabularies_of(self, source: TrainedModel, data: DataConfig) -> Corpus:
        """The text in the vocabulary that the encoder of any other run reads; the labels are those of `data`, also of its training text."""
        theirs = source.assets.languages[0]  # a masked language model's is `text`, which stands for any language
        if "encoder" not in source.config.network_family.stacks:
            raise UserError(
                f"the model of train.init_from has no encoder: its task is {source.task}; give a run of translation, masked_lm or "
                "classification"
            )
        if code(theirs) not in (code(data.source_language), NO_LANGUAGE):
            raise UserError(
                f"data.source_language is {data.source_language!r:.60}, but the encoder of train.init_from reads "
                f"{theirs!r:.60}; give a run whose encoder reads the language of the texts"
            )
        reader, labels = self.reader(), label_set(data).labels
        if not labels:
            opened = reader.open(data)
            labels = reader.labels(data, opened.read(opened.train)[1])
        vocabularies = source.assets.source_vocabulary, Vocabulary(SPECIALS + labels)
        return loading.load(data, vocabularies, source.assets.codes, reader)

    def paired(
        self, split: Split, systems: tuple[list[str], list[str]], assets: TextAssets, settings: LabellingSettings
    ) -> Paired:
        """Which labels are right."""
        return paired_labels(split.reference, systems)

    def predictions(self, data: DataConfig, tokens: int, longest: int) -> int:
        return -(-tokens // longest)  # one for each sequence

    def arrays(self, data: DataConfig, length: int) -> dict[str, int]:
        return {"source": length, "target": 2}  # the label and eos

    def sums(self, logits: Array, batch: Batch, smoothing: Smoothing) -> Sums:
        """Label-smoothed cross entropy, summed over texts; an empty row of a batch has a pad as its label."""
        loss, nll, texts = label_nll(logits, batch["target"], smoothing)
        tokens = jnp.sum((batch["source"] != PAD) & (batch["target"][:, :1] != PAD), dtype=jnp.float32)
        return {"loss": loss, "nll": nll, "targets": texts, "tokens": tokens}

    def validator(self, model: ModelConfig, data: DataConfig, settings: LabellingSettings, corpus: Corpus) -> Validator:
        """Measures `valid/nll` in nats per text, and the scores of the labelled task, such as `valid/accuracy`."""
        valid, names = corpus.valid, label_set(data).scores

        def values(params: Variables, fixed: dict[str, Variables], between: Between = lambda: None) -> dict[str, float]:
            variables = prepared(model, {"params": params, **fixed})
            log_p = label_probabilities(model, settings, variables, valid.source, "valid", between)
            return {f"valid/{name}": value for name, value in label_scores(log_p, valid, names).items()}

        return values
