"""`--mode=export` for another engine, and `--mode=page`: what cannot be written is refused, and nothing is left."""

import gzip
import json
import re
import shutil

from one_layer.data.text.assets import load_text_assets
from one_layer.page import document
from tests import ROOT
from tests.page.embedded import held
from tests.tiny_tickets import TINY, ticket_of

TICKET = ROOT / "tickets" / "sst2.safetensors"


def test_a_ticket_becomes_a_folder(cli, tmp_path):
    ticket, folder = ROOT / "tickets" / "multi30k-en-de.safetensors", tmp_path / "out"
    code, out, _ = cli("--mode=export", f"--ticket={ticket}", "--format=huggingface", f"--output={folder}")
    assert not code and not out
    assert json.loads((folder / "config.json").read_text("utf-8"))["architectures"] == ["FSMTForConditionalGeneration"]
    assert load_text_assets(folder).languages == ("en", "de")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_cannot_be_written_leaves_nothing(refused, tmp_path):
    sentence = refused("--mode=export", f"--ticket={TICKET}", "--format=huggingface", f"--output={tmp_path / 'out'}")
    assert "reads text in another way than RoBERTa" in sentence
    sentence = refused("--mode=export", f"--ticket={TICKET}", "--format=huggingface", f"--output={tmp_path}")
    assert f"--output={tmp_path} is there already; give the name of a new folder" in sentence


def test_a_page_is_the_ticket_and_at_most_150_kilobytes(cli, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = cli("--mode=page", f"--ticket={TICKET}", f"--output={page}")
    assert not code and out == ""
    content = page.read_bytes()
    assert held(content, "ticket") == TICKET.read_bytes()
    assert len(content) - TICKET.stat().st_size < 150_000
    assert not re.search(rb"""(src|href|action)=(?!["']?data:)""", content), "a page asks for no file"

    shutil.copy(TICKET, tmp_path / "ticket.safetensors")
    again = tmp_path / "again.html"
    assert cli("--mode=page", f"--workdir={tmp_path}", f"--output={again}")[0] in (None, 0)
    assert again.read_bytes() == content, "the same page, of a run's folder"


def test_what_cannot_be_a_page(refused, tmp_path, monkeypatch):
    from one_layer.tickets import save

    save(tmp_path / "gru", ticket_of(TINY.replace(encoder_layers="SRS", reservoir="gru")))
    output = f"--output={tmp_path / 'page.html'}"
    assert "model.reservoir=gru, which a page cannot compute" in refused(
        "--mode=page", f"--ticket={tmp_path / 'gru'}", output
    )
    assert "ticket.safetensors cannot be used: there is no such file" in refused(
        "--mode=page", f"--workdir={tmp_path}", output
    )
    assert b"<p>A &lt;b&gt; &#228;</p>" in document.of_tickets(TICKET, note="A <b> ä")
    (tmp_path / "copy").write_bytes(TICKET.read_bytes())
    twice = refused("--mode=page", f"--ticket={TICKET}", f"--ticket={tmp_path / 'copy'}", output)
    assert "do the same (classification en label); a page has one for each task and direction" in twice
    assert "--ticket is given 2 times, but --mode=inspect takes one" in refused(
        "--mode=inspect", f"--ticket={TICKET}", f"--ticket={TICKET}"
    )
    monkeypatch.setattr(document, "LARGEST", 1000)
    sentence = refused("--mode=page", f"--ticket={TICKET}", output)
    size = f"{TICKET.stat().st_size:,}"
    assert f"has {size} bytes, but a page holds at most 1,000, because a browser keeps all of it in memory" in sentence


def test_the_page_that_comes_with_the_project_is_what_the_command_makes_today():
    """Scripts are compared as they are unpacked, because versions of zlib pack differently."""
    (note,) = re.findall('--note="(.*)"', (ROOT / "tickets" / "README.md").read_text("utf-8"))
    tickets = [ROOT / "tickets" / f"everyday-{direction}.safetensors" for direction in ("en-de", "de-en")]
    ours, today = (ROOT / "tickets" / "everyday.html").read_bytes(), document.of_tickets(*tickets, note=note)
    scripts = re.compile(rb'<script type="text/plain" id="scripts"[^<]*</script>')
    assert scripts.sub(b"", ours) == scripts.sub(b"", today)
    unpacked = [json.loads(gzip.decompress(held(each, "scripts"))) for each in (ours, today)]
    assert unpacked[0] == unpacked[1], "make it again: tickets/README.md has the command"
    assert len(ours) < 2_000_000
