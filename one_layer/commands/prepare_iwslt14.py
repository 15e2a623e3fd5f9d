"""Prepares IWSLT14 German-English from the official archive as training text, as the literature does.

    python -m one_layer prepare_iwslt14 --download --out=DIR
    python -m one_layer prepare_iwslt14 --archive=de-en.tgz --out=DIR

The steps are:
- remove the tags;
- apply Moses' tokenisation (sacremoses) without its normalisation of punctuation;
- keep pairs with 1 to 175 tokens per side whose longer side has at most 1.5 times as many tokens as the shorter side;
- lower-case the text;
- put every 23rd pair into the validation set; the test set is dev2010, dev2012, tst2010, tst2011 and tst2012;
- learn a joint BPE of 10,000 merges on the training set, and apply it.

Afterwards DIR holds train, valid and test .de and .en, the codes (`code`) and manifest.json. Its folder `raw` holds the files from
the archive. The literature has 160,239, 7,283 and 6,750 pairs in train, valid and test. Text with other counts is refused.
"""

import logging
from collections import Counter
from pathlib import Path

from one_layer.cli.command import parser_of, positive
from one_layer.data.preparation import published, streaming
from one_layer.data.preparation.archives import Archive, extract, fetch
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.preprocess import Preprocessing, count_words
from one_layer.runs.lock import locked
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically

log = logging.getLogger(__name__)

LANGUAGES = ("de", "en")
ARCHIVE = Archive(
    "de-en.tgz",  # no checksum is published; gzip's own CRC-32 is checked when the archive is unpacked
    (
        "https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",
        "https://wit3.fbk.eu/archive/2014-01/texts/de/en/de-en.tgz",
    ),
)
TRAIN = "train.tags.de-en"
TESTS = tuple(
    f"IWSLT14.{name}.de-en" for name in ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
)
PUBLISHED = {"train": 160_239, "valid": 7_283, "test": 6_750}
# The allowed deviation for train and valid. sacremoses splits a few lines differently from Moses' script, which changes their lengths
# and so what the filter keeps.
TOLERANCE = 0.001
VALID_EVERY = 23
STEPS = tuple(Preprocessing(language, tokenize=True, lowercase=True, normalize=False) for language in LANGUAGES)


def prepare(archive: Path, out: Path, merges: int) -> None:
    """Prepares the training text of `archive` in the folder `out`.

    Raises: UserError for an archive that cannot be used, and for other numbers of pairs.
    """
    files = [f"{TRAIN}.{language}" for language in LANGUAGES]
    files += [f"{test}.{language}.xml" for test in TESTS for language in LANGUAGES]
    raw = out / "raw"
    read = published.checksums([archive])
    extract(archive, files, raw)
    log.info("tokenising %s", archive)
    every = _words(*_sides(raw, TRAIN))
    reasons = [published.why_left_out(*pair, 175) for pair in every]
    train_and_valid = [pair for pair, reason in zip(every, reasons, strict=True) if not reason]
    left_out = Counter(filter(None, reasons))
    words = {
        "train": [pair for number, pair in enumerate(train_and_valid, start=1) if number % VALID_EVERY],
        "valid": train_and_valid[VALID_EVERY - 1 :: VALID_EVERY],
        "test": [pair for test in TESTS for pair in _words(*_sides(raw, test))],
    }
    counts = {name: len(pairs) for name, pairs in words.items()}
    log.info("left out: %s", ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "nothing")
    _check_counts(counts)
    log.info("learning BPE")
    codes = learn_bpe_from_counts(count_words(side for pair in words["train"] for side in pair), merges)
    write_atomically(out / "code", codes)
    outputs = [out / "code"]
    for name, pairs in words.items():
        split = (Preprocessing(language, codes=codes).subwords for language in LANGUAGES)
        sides = [step(side) for step, side in zip(split, zip(*pairs, strict=True), strict=False)]
        outputs += published.write_pairs(out, name, LANGUAGES, zip(*sides, strict=True))
    published.write_manifest(out, read, outputs, counts, corpus="IWSLT14 de-en", merges=merges, left_out=left_out)


def _sides(raw: Path, name: str) -> tuple[list[str], list[str]]:
    """Returns the lines of text of both languages, of the training file or of a test set."""
    ending, text = ("", published.talk_lines) if name == TRAIN else (".xml", published.segments)
    return published.both_sides([raw / f"{name}.{language}{ending}" for language in LANGUAGES], text)


def _words(source: list[str], target: list[str]) -> list[tuple[str, str]]:
    """Returns the tokenised and lower-cased pairs."""
    sides, _ = streaming.words((source, target), len(source), (STEPS[0], STEPS[1]))
    return list(zip(*sides, strict=True))


def _check_counts(counts: dict[str, int]) -> None:
    for name, wanted in PUBLISHED.items():
        if abs(counts[name] - wanted) > (TOLERANCE * wanted if name != "test" else 0):
            raise UserError(
                f"{name} has {counts[name]:,} pairs, but {wanted:,} in the literature; give the published archive"
            )
        if counts[name] != wanted:
            log.warning(
                "%s has %d pairs, but %d in the literature: the tokenisers split some lines differently",
                name,
                counts[name],
                wanted,
            )


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder for the prepared text")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--archive", type=Path, help="the file de-en.tgz (default: de-en.tgz in the folder --out)")
    source.add_argument(
        "--download", action="store_true", help="download de-en.tgz into the folder --out if it is missing"
    )
    parser.add_argument("--merges", type=positive, default=10_000, help="number of BPE merges (default: %(default)s)")
    given = parser.parse_args(argv)
    published.refuse_finished(given.out)
    with locked(given.out, "prepares a corpus in it"):
        archive = given.archive or fetch(ARCHIVE, given.out, given.download)
        if not archive.is_file():
            raise UserError(f"--archive={archive} is no file; give the file de-en.tgz, or --download")
        prepare(archive, given.out, given.merges)
