"""The score of a text under a masked language model: how well it predicts tokens that are always masked in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tqdm import tqdm

from one_layer.data.config import DataConfig
from one_layer.data.masking import Masking, validation_batches
from one_layer.data.stream import Stream
from one_layer.data.text.units import MASK
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks.masked_lm.settings import MaskedSettings
from one_layer.tasks.streams import Scorer, perplexity
from one_layer.tasks.summing import nll_program, summed

Variables = dict[str, Any]


def masking(data: DataConfig, vocabulary: Vocabulary) -> Masking:
    """How tokens of this vocabulary are masked."""
    return Masking(data.mask_share, vocabulary.tokens.index(MASK), len(vocabulary))


class MaskedScorer(Scorer):
    """Scores texts under masks that are always the same."""

    def __init__(self, model: ModelConfig, settings: MaskedSettings, masking: Masking) -> None:
        self._settings, self._masking = settings, masking
        self._sums = nll_program(model, ("source", "places"), right=True)

    def __call__(
        self,
        variables: Variables,
        text: Stream,
        title: str,
        between: Callable[[], None] = lambda: None,
        limit: int = 0,
    ) -> dict[str, float]:
        """`nll` in nats per masked token, `perplexity`, `accuracy`, and the number of `masked` tokens.

        `limit` is rounded up to whole blocks.
        """
        rows = max(1, self._settings.max_tokens // text.block)
        batches = validation_batches(text, self._masking, rows, limit)
        with tqdm(desc=title, unit="batch", disable=None, leave=False) as bar:
            nll, targets, right = summed(self._sums, variables, batches, between, bar.update).tolist()
        if not targets:
            raise UserError(
                f"no token of {title} is masked, so that there is nothing to score; give a longer text, or a larger data.mask_share"
            )
        mean = nll / targets
        return {"nll": mean, "perplexity": perplexity(mean), "accuracy": right / targets, "masked": targets}
