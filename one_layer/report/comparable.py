"""Which runs' validation scores can be compared: the one rule of tables, figures and claims.

Two runs can be compared where their scores are of one text, in the same tokens, and the task measured them alike. A run that has ended
says by a fingerprint what its text was. One that has not, and one of an earlier version, has none; there the keys of the configs decide.
"""

from collections.abc import Iterable, Sequence

from one_layer.report.reading import Record

# Keys of the text that say nothing about what the validation set is: places of files, the test sets, and the batches of training.
_NOT_OF_VALIDATION = {
    f"data.{name}"
    for name in ("directory", "store", "bpe_codes", "vocabulary", "tests", "toy_test", "max_tokens", "buckets")
}


def alike(run: Record, other: Record, score: str) -> bool:
    """Whether the `score` of `run` can be compared with that of `other`; also if one of them has no config."""
    if not run.config or not other.config:
        return True
    (task, text, *how), (other_task, other_text, *other_how) = run.validated(score), other.validated(score)
    known = [each.startswith("ids ") for each in (text, other_text)]
    same = text == other_text or known[0] != known[1]
    return (task, how) == (other_task, other_how) and same and (all(known) or _same_keys(run, other))


def _same_keys(run: Record, other: Record) -> bool:
    """Whether the configs say the same of the validation set. A key that only one has came with another version."""
    names = {name for name in run.config.keys() & other.config.keys() if name.startswith("data.")} - _NOT_OF_VALIDATION
    return all(run.get(name) == other.get(name) for name in names)


def groups(records: Iterable[Record], score: str) -> list[list[Record]]:
    """The records in groups, each of which can be compared as a whole. A run that fits several is in the first of them."""
    found: list[list[Record]] = []
    # Those with a fingerprint come first, so that none without joins two texts whose keys are the same.
    for record in sorted(records, key=lambda record: not record.validated(score)[1].startswith("ids ")):
        group = next((each for each in found if all(alike(record, other, score) for other in each)), None)
        if group is None:
            found.append([record])
        else:
            group.append(record)
    return found


def measured(records: Sequence[Record], score: str) -> tuple[str, ...]:
    """What the `score` of a group is of (`Record.validated`), with the fingerprint of the text if one of them has it."""
    every = [record.validated(score) for record in records]
    return next((each for each in every if each[1].startswith("ids ")), every[0])
