"""A ticket says by which version of Unicode its text is tokenised or lower-cased, where anything of that is done."""

import dataclasses
import unicodedata

import pytest

from one_layer.runs.restore import restore_run
from one_layer.system.errors import UserError
from one_layer.tickets import restore_ticket
from one_layer.tickets.inspection import inspect
from one_layer.tickets.settings import Settings, read_settings, write_settings
from one_layer.tickets.ticket import export, load, save
from tests import tiny


@pytest.mark.parametrize("lowercase", [True, False])
def test_the_version_is_that_of_the_writer_and_another_reader_is_warned(
    tiny_run, tmp_path, monkeypatch, caplog, lowercase
):
    model, path = restore_run(tiny_run), tmp_path / "ticket.safetensors"
    steps = dataclasses.replace(model.assets.source_preprocessing, lowercase=lowercase)
    assets = dataclasses.replace(model.assets, source_preprocessing=steps)
    export(dataclasses.replace(model, assets=assets), path)
    known = unicodedata.unidata_version if lowercase else ""
    assert load(path).unicode == inspect(path).settings.unicode == known
    save(tmp_path / "copy.safetensors", load(path))
    assert load(tmp_path / "copy.safetensors").unicode == known
    restore_ticket(path)
    assert "Unicode" not in caplog.text
    monkeypatch.setattr(unicodedata, "unidata_version", "99.0.0")
    restore_ticket(path)
    assert (f"reads its text by Unicode {known}, and this Python has 99.0.0" in caplog.text) == lowercase


@pytest.mark.parametrize("version", ["latest", "14.0.0.0", "<b>"])
def test_what_is_no_version_is_refused(version):
    run = tiny.run()
    settings = Settings(run.task, run.model_config(10, 10), 1, 0, run.data, run.evaluation, unicode=version)
    with pytest.raises(UserError, match=r"its version of Unicode is .*, which is none"):
        read_settings(write_settings(settings))
