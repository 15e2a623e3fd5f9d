"""The made-up runs that the tests of the report share."""

from __future__ import annotations

import pytest

from tests.report.made_runs import write_figures


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    return write_figures(tmp_path_factory.mktemp("made") / "runs")
