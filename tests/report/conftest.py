"""The made-up runs that the tests of the report share."""

import pytest

from one_layer.report import writing
from tests.report.made_runs import write_figures


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    return write_figures(tmp_path_factory.mktemp("made") / "runs")


@pytest.fixture(scope="session")
def written(runs):
    """The folder of a report on these runs."""
    out = runs.parent / "report"
    writing.report(str(runs), out)
    return out
