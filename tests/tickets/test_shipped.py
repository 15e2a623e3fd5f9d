"""The tickets that come with the project: each can be used as it is, and tickets/README.md says what it is."""

import re
from pathlib import Path

import numpy as np
import pytest

import one_layer
from one_layer import tickets
from one_layer.models import roles, shapes
from one_layer.models.accounting import describe_ticket, ticket_bytes
from one_layer.tickets.inspection import inspect
from tests import ROOT
from tests.ticket_reader import TicketReader
from tests.tiny_tickets import flat

SHIPPED = sorted((ROOT / "tickets").glob("*.safetensors"))
TABLE = (ROOT / "tickets" / "README.md").read_text("utf-8")
LINES = {
    "translate": ["a man in a red shirt is playing the guitar .", "two dogs run through the snow ."],
    "classify": ["a warm and funny film", "a dull , lifeless mess"],
}
VECTORS = ("bias", "scale", "column_gain")  # what `vector_precision` is about
# The README's example: a line, the ticket that translates it, and what is printed.
EXAMPLE = re.search(
    r'^echo "(.*)" \| .* --ticket=tickets/(\S+)\n```\n\nIt prints `(.*?)`',
    (ROOT / "README.md").read_text("utf-8"),
    re.MULTILINE,
)
by_ticket = pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)


def test_together_they_are_small():
    assert SHIPPED
    assert sum(path.stat().st_size for path in SHIPPED) < 6_500_000


@by_ticket
def test_the_table_has_its_size_and_its_settings(path: Path):
    rows = re.findall(r"^\| `(.*?)` .*\| (.*?) \| (.*?) \|$", TABLE, re.MULTILINE)
    size, model = next((size, model) for name, size, model in rows if name == path.name)
    config = tickets.load(path).config
    assert size == f"{path.stat().st_size:,} bytes"
    assert f"keep {config.keep:g}" in model and f"width {config.d_model}," in model
    assert f"feed-forward width {config.ffn}," in model


@by_ticket
def test_it_names_no_folder_of_the_machine_that_trained_it(path: Path):
    assert not Path(tickets.load(path).data.directory).is_absolute()
    header = path.read_bytes()[:100_000].decode("latin-1")
    assert not re.search(r'"/\w+/|\\"/\w+/', header)


@by_ticket
def test_the_log_before_training_promises_the_size_of_the_weights_alone(path: Path):
    """Vocabularies, codes and the header may take tens of thousands of bytes more."""
    found = inspect(path)
    weights = sum(each.stored for each in found.matrices) + found.arrays
    most = ticket_bytes(found.settings.config)
    assert weights <= most
    (line,) = describe_ticket(found.settings.config)
    assert f"at most {most:,}" in line
    assert line.startswith("the weights in the ticket") and line.endswith("settings come on top")


@by_ticket
def test_another_program_reads_each_of_its_weights(path: Path):
    ticket, reader = tickets.load(path), TicketReader(path)
    names, used, arrays = roles(ticket.config), set(), dict(reader.arrays)
    if (precision := ticket.config.vector_precision) != "float32":
        leaves = {path: shape for path, shape in shapes(ticket.config).items() if path[-1] in VECTORS}
        named = {f"params/{names[path[1:-1]]}/{path[-1]}": shape for path, shape in leaves.items()}
        arrays |= reader.joined("vectors", precision, named)
    for name, leaf in flat(tickets.variables(ticket)).items():
        collection, *module, kind = name.split("/")
        role = names[tuple(module)]
        used.add(role)
        if collection == "materialized":
            expected = reader.weights[role] * reader.masks[role]
            if (factors := arrays.get(f"params/{role}/column_gain")) is not None:
                expected = expected * np.expand_dims(factors, -2)
        else:
            expected = reader.weights[role] if collection == "random" else arrays[f"{collection}/{role}/{kind}"]
        np.testing.assert_array_equal(leaf, expected, err_msg=name)
    assert used >= reader.weights.keys() | reader.masks.keys()
    assert {side: tuple(words) for side, words in reader.vocabularies.items()} == {
        "source": ticket.assets.vocabularies[0].tokens,
        "target": ticket.assets.vocabularies[1].tokens,
    }


@pytest.mark.slow
@by_ticket
def test_it_does_its_task(path: Path):
    model = one_layer.load(path)
    found = list(model.lines(LINES[model.verb]))
    assert len(found) == 2 and all(found) and found[0] != found[1]


@pytest.mark.slow
def test_the_readme_prints_what_its_ticket_gives():
    assert EXAMPLE is not None
    line, ticket, printed = EXAMPLE.groups()
    assert list(one_layer.load(ROOT / "tickets" / ticket).lines([line])) == [printed]
