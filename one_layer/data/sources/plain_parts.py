"""The parts of a corpus of plain text: which files, or which bytes of them, are for training, for validation and for tests."""

from pathlib import Path

from one_layer.data.config import HELD_OUT, DataConfig
from one_layer.data.sources.plain_text import PlainText
from one_layer.data.text.lines import existing_file, existing_part, found_file
from one_layer.system.errors import UserError

# The standard split of enwik8, in bytes (Mahoney's Large Text Compression Benchmark; Al-Rfou et al. 2019, arXiv 1808.04444).
ENWIK8 = {"train": (0, 90_000_000), "valid": (90_000_000, 95_000_000), "test": (95_000_000, 100_000_000)}
ENWIK8_BYTES = 100_000_000


class PlainParts:
    """The parts of a corpus of plain text: files of their own, held-out ends of the training text, or enwik8's.

    With `data.held_out`, the last two such shares of the training text are `valid` and `test`, by position, as in enwik8. Their ends are
    at whole characters unless the unit is the byte. `lines`: the text is read in lines, which are whole characters whatever the unit.
    """

    def __init__(self, config: DataConfig, lines: bool = False) -> None:
        self._config, self._at_characters = config, lines or config.unit != "bytes"
        config.check_parts()
        self.train, self.valid, self.tests = config.train, config.valid, config.tests

    def part(self, name: str) -> PlainText:
        """The text of a part. Raises: UserError for missing, empty or unfit files."""
        config = self._config
        if config.source == "enwik8":
            whole = PlainText((existing_file(Path(config.directory) / "enwik8"),))
            if whole.size != ENWIK8_BYTES:
                raise UserError(
                    f"{whole} has {whole.size:,} bytes, but enwik8 has {ENWIK8_BYTES:,}; give the published file in data.directory, or "
                    "read another text with data.source=plain"
                )
            return whole.part(*ENWIK8[name], at_characters=self._at_characters)
        if not config.held_out or name not in (config.train, *HELD_OUT):
            return self._files(name)
        whole = self._files(config.train)
        share = int(whole.size * config.held_out)
        cuts = {"valid": (whole.size - 2 * share, whole.size - share), "test": (whole.size - share, whole.size)}
        return whole.part(*cuts.get(name, (0, whole.size - 2 * share)), at_characters=self._at_characters)

    def _files(self, name: str) -> PlainText:
        """The files of a part. A file that is there with the whole name is meant, whatever the name contains."""
        folder = Path(self._config.directory)
        names = [name] if found_file(folder / name) else [each.strip() for each in name.split(",")]
        if "" in names:
            key = {self.valid: "valid", self.train: "train"}.get(name, "tests")
            raise UserError(f"data.{key}={name!r:.200} has an empty name; give names with one comma between them")
        text = PlainText(tuple(self._existing(name, folder / each) for each in names))
        if not next(text.pieces(), b""):
            raise UserError(f"{text} is empty; give a text with at least one byte")
        return text

    def _existing(self, name: str, path: Path) -> Path:
        if name == self._config.train:
            return existing_file(path, "data.train")
        taken = "makes the last 4 % of the training text the parts valid and test" * (name in HELD_OUT)
        return existing_part(path, name, taken, validates=name == self.valid)
