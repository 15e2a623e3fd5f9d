"""Causal language modelling: a trained model continues prompts and scores texts."""

import logging
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from tqdm import tqdm

from one_layer.data.batches import Updates
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.special_tokens import EOS, UNK
from one_layer.data.stream import Stream, StreamBatches, windows
from one_layer.data.stream_corpus import stream, unit_of
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.units import Ids, Unit
from one_layer.models import ModelConfig
from one_layer.models.decoding import CausalDecoder
from one_layer.system.errors import UserError, check_least, counted
from one_layer.tasks.causal_lm.sampling import NOT_FINITE, sample
from one_layer.tasks.losses import nll_program, summed
from one_layer.tasks.model import TrainedModel, Variables, not_finite
from one_layer.tasks.streams import Scorer, StreamTask, check_finite, perplexity
from one_layer.tasks.work import Work, decoder_work

log = logging.getLogger(__name__)

_LEAST_TEMPERATURE = 1e-6  # but for 0; logits are divided by it, in float32
_LENGTHS = 64  # the buffer of a batch is a multiple of this many tokens, so that few programs are compiled
# What str.splitlines takes for the end of a line.
_LINE_ENDS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class LanguageModelSettings:
    """configs/common.py comments on every key. Raises: UserError for a value out of range."""

    stride: int = 256
    valid_tokens: int = 0
    max_tokens: int = 4096
    temperature: float = 1.0
    sample_length: int = 200
    sample_seed: int = 1

    def __post_init__(self) -> None:
        check_least("evaluation", self, stride=1, max_tokens=1, sample_length=1, valid_tokens=0, sample_seed=0)
        if self.sample_seed >= 2**32:
            raise UserError(f"evaluation.sample_seed is {self.sample_seed}; it must be below 2**32")
        if self.temperature != 0.0 and not _LEAST_TEMPERATURE <= self.temperature < float("inf"):
            raise UserError(
                f"evaluation.temperature is {self.temperature}; it must be 0, which takes the most probable token, or a number of at "
                f"least {_LEAST_TEMPERATURE:g}"
            )


class CausalLanguageModel(TrainedModel):
    """Continues prompts by sampling, with the settings of `evaluation`."""

    task = "causal_lm"
    verb = "generate"

    def generate(self, prompts: Iterable[str]) -> list[str]:
        """A continuation of every prompt, in order, without the prompt. An empty prompt stands for the beginning of a text.

        The same prompt at the same place of the list always has the same continuation. Of a prompt with more tokens than the context,
        only the last ones are read, and the log says so.

        Raises: UserError for anything but a list of texts.
        """
        prompts, rows = self.given(prompts), max(1, self.settings.max_tokens // self.data.block)
        prompts_ids = [self._prompt(number, prompt) for number, prompt in enumerate(prompts, start=1)]
        found: list[str] = []
        for first in range(0, len(prompts), rows):
            some = prompts_ids[first : first + rows]
            found += [self._unit.text(ids) for ids in self._continued(some, first)]
        return found

    def lines(self, lines: Iterable[str]) -> list[str]:
        """Every prompt with its continuation, in one line: a line end is shown as ↵, another control character but a tab as �."""
        lines = self.given(lines)
        return [_in_one_line(f"{line}{more}") for line, more in zip(lines, self.generate(lines), strict=True)]

    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """`nll` in nats per token, `perplexity` per token, bits per byte, and the window's `context` and `stride`."""
        text = stream(split)
        values = check_finite(scores(self.config, self.settings, self._unit, self.prepared, text, title))
        stride = self.settings.stride
        log.info(
            "%s: %.4f bits per byte, perplexity %.4g per token (%s tokens; windows of %s, stride %s)",
            *(title, values["bits_per_byte"], values["perplexity"]),
            *(f"{number:,}" for number in (len(text.tokens), text.block, stride)),
        )
        return {**values, "tokens": len(text.tokens), "context": text.block, "stride": stride}, {}

    @cached_property
    def _unit(self) -> Unit:
        return unit_of(self.data, self.assets)

    def _prompt(self, number: int, prompt: str) -> Ids:
        """The ids that a prompt begins with: eos, for the beginning of a text, and the prompt's; at most a whole context."""
        ids, context = self._unit.ids(prompt), self.data.block
        if unknown := int((ids == UNK).sum()):
            log.warning(
                "prompt %d has %s that the training text did not have, and the model reads as unknown",
                *(number, counted(unknown, "piece")),
            )
        if len(ids) > context:
            log.warning(
                "prompt %d has %s tokens, but the context has %s: only its last %s are read",
                *(number, *(f"{count:,}" for count in (len(ids), context, context))),
            )
        return np.concatenate([[EOS], ids]).astype(np.int32)[-context:]

    def _continued(self, prompts: Sequence[np.ndarray], first: int) -> list[np.ndarray]:
        """The ids that follow each prompt. `first`: the number of the first prompt, which decides the random numbers."""
        settings = self.settings
        filled = np.array([len(ids) for ids in prompts], np.int32)
        longest = -(-(int(filled.max()) + settings.sample_length) // _LENGTHS) * _LENGTHS
        tokens = np.zeros((len(prompts), longest), np.int32)
        for row, ids in enumerate(prompts):
            tokens[row, : len(ids)] = ids
        whole = np.asarray(self._sample(self.prepared, tokens, filled, np.int32(first)))
        if (whole == NOT_FINITE).any():
            raise not_finite("continue a text")
        return [row[count : count + settings.sample_length] for row, count in zip(whole, filled, strict=True)]

    @cached_property
    def _sample(self) -> Any:
        settings, context, config = self.settings, self.data.block, self.config

        def run(variables: Variables, tokens: Array, filled: Array, first: Array) -> Array:
            decoder = CausalDecoder(config, variables)
            key = jax.random.key(settings.sample_seed)
            keys = jax.vmap(partial(jax.random.fold_in, key))(first + jnp.arange(len(tokens)))
            cache = decoder.start(len(tokens), context)
            step = partial(decoder.step, length=context)
            goal = filled + settings.sample_length
            return sample(step, cache, tokens, filled, goal, keys, context, settings.temperature)

        return jax.jit(run)


def scores(
    model: ModelConfig,
    settings: LanguageModelSettings,
    unit: Unit,
    variables: Variables,
    text: Stream,
    title: str,
    between: Callable[[], None] = lambda: None,
    limit: int = 0,
) -> dict[str, float]:
    """`nll` in nats per token, `perplexity` per token, and `bits_per_byte` of the text.

    Every token counts once, the first ones too, whose context is short. See `one_layer.tasks.streams.Scorer` for the arguments.
    """
    total = min(len(text.tokens), limit) if limit else len(text.tokens)
    rows = max(1, settings.max_tokens // text.block)
    batches, program = windows(text, settings.stride, rows, limit), nll_program(model, ("source",))
    with tqdm(total=total, desc=title, unit="token", unit_scale=True, disable=None, leave=False) as bar:
        nll = float(summed(program, variables, batches, between, lambda: bar.update(rows * settings.stride))[0])
    measured = sum(int(unit.sizes[ids].sum()) for ids in Stream(text.tokens[:total], text.block).chunks())
    bits = nll / math.log(2) / max(measured, 1)
    return {"nll": nll / total, "perplexity": perplexity(nll / total), "bits_per_byte": bits}


def _in_one_line(text: str) -> str:
    """`text` as a terminal may show it: a model may write any character, also one that moves the cursor."""
    shown = _LINE_ENDS.sub("↵", text)
    return "".join("�" if unicodedata.category(each) == "Cc" and each != "\t" else each for each in shown)


class CausalLM(StreamTask):
    """Predicts each token of a text from those before it (arXiv 2012.15045 trains such a model on enwik8)."""

    family = "decoder"
    settings = LanguageModelSettings
    limits = {"stride": 2**16, "max_tokens": 2**24, "sample_length": 2**16}  # noqa: RUF012  # a ClassVar of Task
    masked = False
    validated_by = ("stride", "valid_tokens")
    model = CausalLanguageModel

    def check(self, data: DataConfig, model: ModelConfig, settings: LanguageModelSettings) -> None:
        super().check(data, model, settings)
        if settings.stride > data.block:
            raise UserError(
                f"evaluation.stride is {settings.stride}, but data.block is {data.block}: tokens between two windows would not be scored; "
                f"give at most {data.block}"
            )

    def selectable(self, data: DataConfig, settings: LanguageModelSettings) -> tuple[str, ...]:
        return ("nll",)

    def batches(self, corpus: Corpus, data: DataConfig, accumulate: int, seed: int) -> Updates:
        """Blocks of the text, in an order that depends on the seed and the epoch alone."""
        return StreamBatches(stream(corpus.train), max_tokens=data.max_tokens, accumulate=accumulate, seed=seed)

    def arrays(self, data: DataConfig, length: int) -> dict[str, int]:
        return {"source": length, "target": length}

    def scorer(
        self, model: ModelConfig, data: DataConfig, settings: LanguageModelSettings, assets: TextAssets
    ) -> Scorer:
        return partial(scores, model, settings, unit_of(data, assets))

    def line_work(self, model: ModelConfig, settings: LanguageModelSettings, tokens: int) -> Work:
        """The work of reading a prompt and writing on."""
        return decoder_work(model, tokens + settings.sample_length)
