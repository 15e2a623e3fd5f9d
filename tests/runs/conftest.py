"""A folder of small checkpoints."""

import pytest

from tests.runs.saved_checkpoints import SCORES, save


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """What is in it is never changed."""
    folder = tmp_path_factory.mktemp("saved")
    save(folder, SCORES, keep_last=2)
    return folder
