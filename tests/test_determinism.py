"""A run depends on its config and its text alone: not on threads, hashes, the locale or the order in which files were made."""

import numpy as np
import pytest

from one_layer.data.batches import training_iterator
from tests import tiny, tiny_runs


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_batches_do_not_depend_on_the_number_of_reading_threads(threads):
    run = tiny.run()
    batches = run.task.batches(run.task.corpus(run.data), run.data, 1, run.seed)
    read = training_iterator(batches, 3, threads=threads)
    for number, batch in zip(range(3, 40), read, strict=False):
        for name, array in batches[number].items():
            np.testing.assert_array_equal(array, batch[name])
    read.close()


@pytest.mark.slow
@pytest.mark.parametrize("task", tiny_runs.TASKS)
def test_processes_in_other_surroundings_end_alike(tmp_path, task):
    """As the process of the tests: with a fixed seed of Python's hashes, another locale and time zone, and files made in another order."""
    one, other = tmp_path / "one", tmp_path / "other"
    tiny_runs.write_text(one, task)
    (other / "text").mkdir(parents=True)
    for path in sorted((one / "text").iterdir(), reverse=True):
        (other / "text" / path.name).write_bytes(path.read_bytes())
    tiny_runs.run(one, task)
    surroundings = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "TZ": "Asia/Kathmandu"}
    tiny_runs.run(other, task, PYTHONHASHSEED="12345", **surroundings)
    assert len(tiny_runs.metrics(one)) > 10
    assert tiny_runs.differences(one, other) == []
