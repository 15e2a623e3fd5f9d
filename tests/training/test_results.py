"""What the end of a run leaves in result.json: of the checkpoint that it names, and also if there can be no ticket."""

import json
import shutil

import pytest

from one_layer import tickets
from one_layer.runs.restore import restore_run
from one_layer.system.errors import UserError
from one_layer.training.beginning import opened
from one_layer.training.train import train
from one_layer.training.trainer import Trainer
from tests import tiny
from tests.tiny_tickets import flat, same_numbers
from tests.training.test_train import result


@pytest.mark.slow
def test_the_score_is_that_of_the_checkpoint_beside_it(tmp_path, monkeypatch):
    """Also if the best checkpoint was damaged and was removed, as the message about it says."""
    losses = iter([1.0, 2.0, 3.0])
    monkeypatch.setattr(Trainer, "new_validator", lambda self: lambda *_: {"valid/nll": next(losses)})
    train(tiny.run(), tmp_path, [])
    assert result(tmp_path)["valid"] == {"select": "nll", "score": -1.0, "step": tiny.EVERY}
    shutil.rmtree(tmp_path / "checkpoints" / str(tiny.EVERY))
    train(tiny.run(), tmp_path, [])
    assert result(tmp_path)["valid"] == {"select": "nll", "score": -2.0, "step": 2 * tiny.EVERY}


def test_there_are_no_areas_under_a_curve_of_which_a_part_was_removed(tiny_run, tmp_path, caplog):
    """As the message about a damaged line says. What is left would give another area."""
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    assert result(folder)["convergence"].keys() == {"seconds", "updates", "flops"}
    file = folder / "metrics.jsonl"
    lines = [(line, json.loads(line)) for line in file.read_bytes().splitlines(keepends=True)]
    file.write_bytes(b"".join(line for line, found in lines if found["step"] != 8 or "valid/nll" not in found))
    train(tiny.run(), folder, [])
    assert result(folder)["convergence"] == {}
    assert "metrics.jsonl lacks 1 of 3 evaluations, the first at update 8" in caplog.text


@pytest.mark.slow
def test_a_dense_model_trained_in_few_bits_has_a_ticket_of_what_its_checkpoint_computes_with(tmp_path):
    precisions = {"model.trained_precision": "int4", "model.vector_precision": "int8"}
    changes = {"model.weights": "dense", "train.updates": tiny.EVERY, "data.tests": ()}
    train(tiny.run({**changes, **precisions}), tmp_path, [])
    best, ticket = restore_run(tmp_path), tickets.restore_ticket(tmp_path / "ticket.safetensors")
    same_numbers(flat(ticket.prepared), flat(best.prepared))
    same_numbers(flat(ticket.variables), flat(best.prepared))
    assert result(tmp_path)["bytes"]["ticket_file"] == (tmp_path / "ticket.safetensors").stat().st_size


def test_a_run_that_no_ticket_can_hold_still_has_its_result(tiny_run, tmp_path, monkeypatch):
    """Its settings are beyond what a ticket from a stranger may ask for."""
    shutil.copytree(tiny_run, tmp_path / "run")
    for name in ("result.json", "ticket.safetensors"):
        (tmp_path / "run" / name).unlink()

    def refuse(*_):
        raise UserError("evaluation.beam is 5000; a ticket's is at most 1000")

    monkeypatch.setattr(tickets, "export", refuse)
    result = train(tiny.run(), tmp_path / "run", [])
    assert "ticket_file" not in result["bytes"] and not (tmp_path / "run" / "ticket.safetensors").exists()
    assert json.loads((tmp_path / "run" / "result.json").read_text("utf-8"))["bytes"] == result["bytes"]


def test_a_run_that_is_too_large_for_a_ticket_says_so_at_its_beginning(tmp_path, caplog):
    with opened(tiny.run({"model.encoder_layers": 257}), tmp_path):
        pass
    assert "this run will have no ticket: model.encoder_layers is 257; a ticket's is at most 256" in caplog.text
