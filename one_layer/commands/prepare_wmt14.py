"""Prepares WMT14 English-German from statmt.org's archives as training text, as the literature does.

    python -m one_layer prepare_wmt14 --download --archives=DIR --out=DIR
    python -m one_layer prepare_wmt14 --archives=DIR --out=DIR [--news_commentary=v12]

The training text is Europarl v7, Common Crawl and News Commentary v9 (v12 with --news_commentary=v12): 4.5 million pairs. The steps
are:
- normalise punctuation as Moses does, and replace characters that cannot be printed by spaces;
- apply Moses' tokenisation, with hyphens split (`a @-@ b`); the text stays cased;
- put every 100th pair into the validation set;
- learn a joint BPE of 40,000 merges on the training set, and apply it;
- keep pairs with 1 to 250 tokens per side whose longer side has at most 1.5 times as many tokens as the shorter side.

The test set is newstest2014, tokenised without normalisation and never filtered.

Afterwards --out holds train, valid and test .en and .de, the codes (`code`) and manifest.json. Until then, its folder `work` holds
the intermediate files, up to 6 GB. The same command continues an interrupted preparation.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from one_layer.cli.command import parser_of, positive
from one_layer.data.preparation.archives import Archive, extract, fetch
from one_layer.data.preparation.manifest import checksums, refuse_finished, tool_versions, write_manifest
from one_layer.data.preparation.markup import segments
from one_layer.data.preparation.parallel import cores
from one_layer.data.preparation.shards import ShardedPreparation
from one_layer.data.text.cleaning import LengthFilter
from one_layer.data.text.lines import read_lines, stream_parallel
from one_layer.data.text.preprocess import Preprocessing
from one_layer.runs.lock import locked
from one_layer.runs.paths import read_object
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically

log = logging.getLogger(__name__)

LANGUAGES = ("en", "de")
# Sizes and checksums are from TensorFlow Datasets 4.9.10 (url_checksums/wmt14_translate.txt, wmt17_translate.txt).
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
NEWS_COMMENTARY = {
    "v9": Archive(
        "training-parallel-nc-v9.tgz",
        ("https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",),
        80_418_416,
        "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    ),
    "v12": Archive(
        "training-parallel-nc-v12.tgz",
        ("https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz",),
        168_591_139,
        "2b45f30ef1d550d302fd17dd3a5cbe19134ccc4c2cf50c2dae534aee600101a2",
    ),
}
TEST = Archive("test-full.tgz", ("https://www.statmt.org/wmt14/test-full.tgz",))  # no checksum is published
TEST_FILES = ("newstest2014-deen-src.en.sgm", "newstest2014-deen-ref.de.sgm")

Sources = list[tuple[Archive, str]]


def sources(news_commentary: str) -> Sources:
    """Returns the archives of the training text, each with the name of its English-German files without the language."""
    name = f"news-commentary-{news_commentary}.de-en"
    return [
        (EUROPARL, "europarl-v7.de-en"),
        (COMMON_CRAWL, "commoncrawl.de-en"),
        (NEWS_COMMENTARY[news_commentary], name),
    ]


def prepare(
    training: Sources,
    test: Archive,
    archives: Path,
    out: Path,
    merges: int = 40_000,
    download: bool = False,
    processes: int = 1,
    shard_size: int = 50_000,
) -> None:
    """Prepares the training text in the folder `out`; the archives are in the folder `archives`.

    Raises: UserError for archives and text that cannot be used, and if `out` holds unfinished work with other options.
    """
    refuse_finished(out)
    paths = [fetch(archive, archives, download) for archive in [archive for archive, _ in training] + [test]]
    facts = {"corpus": "WMT14 en-de", "training": [name for _, name in training], "merges": merges}
    work, read = out / "work", checksums(paths)
    _claim(work, {**facts, "shard_size": shard_size, "input": read, **tool_versions()})
    raw = [
        _extracted(path, [f"{name}.{language}" for language in LANGUAGES], work)
        for path, (_, name) in zip(paths[:-1], training, strict=True)
    ]
    words = _test_words(_extracted(paths[-1], list(TEST_FILES), work))
    steps = tuple(Preprocessing(language, tokenize=True, split_hyphens=True) for language in LANGUAGES)
    length = LengthFilter(1, 250, 1.5)
    preparation = ShardedPreparation(work, (steps[0], steps[1]), length, merges, 100, shard_size, processes)
    outputs, counts = preparation.run(_pairs(raw), out)
    codes = (out / "code").read_text(encoding="utf-8")
    for language, side in zip(LANGUAGES, words, strict=True):
        outputs.append(out / f"test.{language}")
        split = Preprocessing(language, codes=codes).subwords(side)
        write_atomically(outputs[-1], "".join(line + "\n" for line in split))
    counts["test"] = len(words[0])
    write_manifest(out, read, outputs, {**facts, "pairs": counts})
    shutil.rmtree(work)
    log.info("%s: %s", out, ", ".join(f"{name} {count:,}" for name, count in counts.items()))


def _claim(work: Path, options: dict[str, object]) -> None:
    path = work / "options.json"
    if work.exists() and not path.exists() and any(work.iterdir()):
        raise UserError(f"{work} holds files that no preparation wrote; move this folder away or give another --out")
    text = json.dumps(options, indent=1) + "\n"
    if path.exists():
        before, now = read_object(path), json.loads(text)
        for name in {**before, **now}:
            if before.get(name) != now.get(name):
                raise UserError(
                    f"{work} holds unfinished work with {name}={before.get(name)}, not {now.get(name)}; "
                    f"delete this folder, or continue with {name}={before.get(name)}"
                )
    write_atomically(path, text)


def _extracted(archive: Path, names: list[str], folder: Path) -> list[Path]:
    paths = [folder / name for name in names]
    if not all(path.exists() for path in paths):
        log.info("unpacking %s", archive)
        extract(archive, names, folder)
    return paths


def _pairs(raw: list[list[Path]]) -> Iterator[tuple[str, str]]:
    return chain.from_iterable(stream_parallel(source, target) for source, target in raw)


def _test_words(paths: list[Path]) -> list[list[str]]:
    """Both sides of the test set, tokenised."""
    source, target = (segments(read_lines(path), str(path)) for path in paths)
    if len(source) != len(target):
        raise UserError(
            f"{paths[0]} has {len(source):,} segments, but {paths[1]} has {len(target):,}; give the published archive"
        )
    plain = [Preprocessing(language, tokenize=True, normalize=False, split_hyphens=True) for language in LANGUAGES]
    return [step.words(side) for step, side in zip(plain, (source, target), strict=True)]


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder for the prepared text")
    parser.add_argument("--archives", type=Path, help="the folder with statmt.org's archives (default: --out)")
    parser.add_argument("--download", action="store_true", help="download the missing archives (1.7 GB in all)")
    parser.add_argument(
        "--news_commentary",
        choices=list(NEWS_COMMENTARY),
        default="v9",
        help="version of News Commentary (default: %(default)s)",
    )
    parser.add_argument("--merges", type=positive, default=40_000, help="number of BPE merges (default: %(default)s)")
    parser.add_argument(
        "--processes", type=positive, default=cores(), help="number of processes (default: one for each core)"
    )
    given = parser.parse_args(argv)
    training = sources(given.news_commentary)
    with locked(given.out, "prepares a corpus in it"):
        prepare(training, TEST, given.archives or given.out, given.out, given.merges, given.download, given.processes)
