"""A trained causal language model: it continues prompts and scores texts."""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from one_layer.data.corpus import Split
from one_layer.data.special_tokens import EOS, UNK
from one_layer.data.stream_corpus import stream, unit_of
from one_layer.data.text.units import Ids, Unit
from one_layer.models.causal_decoding import CausalDecoder
from one_layer.system.errors import counted
from one_layer.tasks.causal_lm.sampling import NOT_FINITE, Sampler, sample
from one_layer.tasks.causal_lm.scoring import WindowScorer
from one_layer.tasks.model import TrainedModel, not_finite
from one_layer.tasks.streams import check_finite

log = logging.getLogger(__name__)

_LENGTHS = 64  # the buffer of a batch is a multiple of this many tokens, so that few programs are compiled
# What str.splitlines takes for the end of a line.
_LINE_ENDS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


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
        """`nll` in nats per token, `perplexity` per token, bits per byte or character, and the window's `context` and `stride`."""
        text = stream(split)
        values = check_finite(WindowScorer(self.config, self.settings, self._unit)(self.prepared, text, title))
        stride, measure = self.settings.stride, f"bits_per_{self._unit.measure}"
        log.info(
            "%s: %.4f %s, perplexity %.4g per token (%s tokens; windows of %s, stride %s)",
            *(title, values[measure], measure.replace("_", " "), values["perplexity"]),
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
                *(number, counted(unknown, "character" if self._unit.measure == "character" else "piece")),
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
        sampler = Sampler(settings.temperature, settings.top_k, settings.top_p)

        def run(variables: dict[str, Any], tokens: Array, filled: Array, first: Array) -> Array:
            decoder = CausalDecoder(config, variables)
            key = jax.random.key(settings.sample_seed)
            keys = jax.vmap(partial(jax.random.fold_in, key))(first + jnp.arange(len(tokens)))
            cache = decoder.start(len(tokens), context)
            step = partial(decoder.step, length=context)
            return sample(step, cache, tokens, filled, filled + settings.sample_length, keys, context, sampler)

        return jax.jit(run)


def _in_one_line(text: str) -> str:
    """`text` as a terminal may show it: a model may write any character, also one that moves the cursor."""
    shown = _LINE_ENDS.sub("↵", text)
    return "".join("�" if unicodedata.category(each) == "Cc" and each != "\t" else each for each in shown)
