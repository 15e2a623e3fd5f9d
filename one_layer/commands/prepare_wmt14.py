"""Prepares WMT14 English-German from statmt.org's archives as training text, as the literature does.

    python -m one_layer prepare_wmt14 --download --archives=DIR --out=DIR
    python -m one_layer prepare_wmt14 --archives=DIR --out=DIR

The training text is Europarl v7, Common Crawl and News Commentary v9: 4.5 million pairs. The steps are:
- normalise punctuation as Moses does, and replace characters that cannot be printed by spaces;
- apply Moses' tokenisation, with hyphens split (`a @-@ b`); the text stays cased;
- put every 100th pair into the validation set;
- learn a joint BPE of 40,000 merges on the training set, and apply it;
- keep pairs with 1 to 250 tokens per side whose longer side has at most 1.5 times as many tokens as the shorter side.

The test set is newstest2014, tokenised without normalisation and never filtered.

Afterwards --out holds train, valid and test .en and .de, the codes (`code`) and manifest.json. Until then it also holds the unpacked
archives, up to 6 GB, and the folder for temporary files (TMPDIR) the text in work. It takes all cores (taskset gives it fewer).
"""

import logging
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from one_layer.cli.command import parser_of, positive
from one_layer.data.preparation import published, streaming
from one_layer.data.preparation.archives import Archive, extract, fetch
from one_layer.data.preparation.parallel import chunks
from one_layer.data.preparation.spill import Spill
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.lines import stream_parallel
from one_layer.data.text.preprocess import Preprocessing
from one_layer.runs.lock import locked
from one_layer.system.files import UNFINISHED, write_atomically

log = logging.getLogger(__name__)

LANGUAGES = ("en", "de")
# Sizes and published.checksums are from TensorFlow Datasets 4.9.10 (url_checksums/wmt14_translate.txt).
EUROPARL = Archive(
    "training-parallel-europarl-v7.tgz",
    ("https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",),
    657_632_379,
    "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
)
COMMON_CRAWL = Archive(
    "training-parallel-commoncrawl.tgz",
    ("https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",),
    918_311_367,
    "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
)
NEWS_COMMENTARY = Archive(
    "training-parallel-nc-v9.tgz",
    ("https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",),
    80_418_416,
    "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
)
TEST = Archive("test-full.tgz", ("https://www.statmt.org/wmt14/test-full.tgz",))  # no checksum is published
TEST_FILES = ("newstest2014-deen-src.en.sgm", "newstest2014-deen-ref.de.sgm")

VALID_EVERY = 100

Sources = list[tuple[Archive, str]]

# The archives of the training text, each with the name of its English-German files without the language.
TRAINING = [
    (EUROPARL, "europarl-v7.de-en"),
    (COMMON_CRAWL, "commoncrawl.de-en"),
    (NEWS_COMMENTARY, "news-commentary-v9.de-en"),
]


def prepare(
    training: Sources, test: Archive, archives: Path, out: Path, merges: int = 40_000, download: bool = False
) -> None:
    """Prepares the training text in the folder `out`; the archives are in the folder `archives`.

    Raises: UserError for archives and text that cannot be used.
    """
    published.refuse_finished(out)
    paths = [fetch(archive, archives, download) for archive in [*(archive for archive, _ in training), test]]
    out.mkdir(parents=True, exist_ok=True)
    read = published.checksums(paths)
    with tempfile.TemporaryDirectory(UNFINISHED, ".unpacked.", out) as place:
        log.info("unpacking %d archives", len(paths))
        unpacked = [
            extract(path, [f"{name}.{language}" for language in LANGUAGES], Path(place))
            for path, (_, name) in zip(paths[:-1], training, strict=True)
        ]
        scored = published.both_sides(extract(paths[-1], list(TEST_FILES), Path(place)), published.segments)
        raw = _parts(chain.from_iterable(stream_parallel(source, target) for source, target in unpacked))
    steps = [Preprocessing(language, tokenize=True, split_hyphens=True) for language in LANGUAGES]
    words = {name: streaming.words(sides, len(sides[0]), (steps[0], steps[1])) for name, sides in raw.items()}
    log.info("learning BPE on %d different words", len(words["train"][1]))
    codes = learn_bpe_from_counts(words["train"][1], merges)
    write_atomically(out / "code", codes)
    outputs, counts = [out / "code"], Counter[str]()
    source, target = (replace(step, codes=codes) for step in steps)
    for name, (sides, _) in words.items():
        pieces = streaming.subwords(sides, len(raw[name][0]), (source, target))
        outputs += published.write_pairs(out, name, LANGUAGES, _kept(zip(*pieces, strict=True), name, counts))
    tested = [replace(step, normalize=False).apply(side) for step, side in zip((source, target), scored, strict=True)]
    outputs += published.write_pairs(out, "test", LANGUAGES, zip(*tested, strict=True))
    counts["test"] = len(tested[0])
    published.write_manifest(
        out, read, outputs, counts, corpus="WMT14 en-de", training=[name for _, name in training], merges=merges
    )


def _parts(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[Spill, Spill]]:
    """The pairs for training and for validation, which every 100th is for."""
    parts = {"train": (Spill(), Spill()), "valid": (Spill(), Spill())}
    for some in chunks(pairs, VALID_EVERY):
        for name, members in {"train": some[: VALID_EVERY - 1], "valid": some[VALID_EVERY - 1 :]}.items():
            for place, side in enumerate(parts[name]):
                side.write(pair[place] for pair in members)
    return parts


def _kept(pairs: Iterable[tuple[str, str]], name: str, counts: Counter[str]) -> Iterator[tuple[str, str]]:
    """The pairs of a part that the filter keeps. Adds to `counts` how many it kept, and how many it left out and why."""
    for pair in pairs:
        reason = published.why_left_out(*pair, 250)
        counts[reason or name] += 1
        if not reason:
            yield pair


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder for the prepared text")
    parser.add_argument("--archives", type=Path, help="the folder with statmt.org's archives (default: --out)")
    parser.add_argument("--download", action="store_true", help="download the missing archives (1.7 GB in all)")
    parser.add_argument("--merges", type=positive, default=40_000, help="number of BPE merges (default: %(default)s)")
    given = parser.parse_args(argv)
    with locked(given.out, "prepares a corpus in it"):
        prepare(TRAINING, TEST, given.archives or given.out, given.out, given.merges, given.download)
