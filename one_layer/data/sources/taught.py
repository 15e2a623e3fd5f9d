"""A training text with translations that a teacher made, in the place of its references or beside them (Kim and Rush 2016, section 3.2)."""

from __future__ import annotations

from functools import partial
from itertools import chain
from pathlib import Path

from one_layer.data.config import DataConfig
from one_layer.data.sources.pairs import Again, ManyPairs, Pairs, Source
from one_layer.data.text.lines import existing_file, stream_lines
from one_layer.system.errors import UserError


class Taught(Source):
    """A source whose training text has `data.translations` as its target side; all other parts are read as before."""

    def __init__(self, whole: Source, config: DataConfig) -> None:
        super().__init__(config)
        self._whole, self.report = whole, whole.report
        self._translations = Path(config.translations)

    def read(self, name: str) -> Pairs:
        if name != self.train:
            return self._whole.read(name)
        source, target = map(list, self.lines(name))
        if len(source) != len(target):
            raise UserError(
                f"data.translations={self._translations} does not have a line for each of the training text's; give translations of "
                f"{self._config.describe('train')}"
            )
        return source, target

    def lines(self, name: str) -> ManyPairs:
        source, target = self._whole.lines(name)
        if name != self.train:
            return source, target
        taught = Again(partial(stream_lines, self._translations))
        if self._config.teacher_mix != "both":
            return source, taught
        return Again(partial(chain, source, source)), Again(partial(chain, target, taught))

    def files(self, name: str) -> list[Path]:
        return [*self._whole.files(name), *([existing_file(self._translations)] if name == self.train else [])]
