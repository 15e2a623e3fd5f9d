"""Distillation by sentences: the student's training text is what its teacher makes of the source lines, however it came to be."""

import errno
import fcntl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import one_layer
from one_layer.data.sources.toy import grammar
from one_layer.data.text.lines import read_lines
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.errors import UserError
from one_layer.system.files import continued
from one_layer.tasks.translation.model import TranslationModel
from one_layer.training import teaching
from one_layer.training.teacher import teacher_of
from one_layer.training.train import train
from tests import tiny, user_error

PART = 16  # lines


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teaching, "_LINES", PART)


def student(teacher: Path, changes: dict | None = None) -> RunConfig:
    return tiny.run({"data.teacher": str(teacher), "optim.warmup": 1, "train.updates": 2, **(changes or {})})


def taught(run: RunConfig, folder: RunFolder) -> RunConfig:
    return teaching.taught(run, folder, teacher_of(run, folder))


def text_of(run: RunConfig) -> tuple[list[str], list[str]]:
    """The training pairs that the run sees, as lines of tokens."""
    corpus = run.task.corpus(run.data)
    source, target = corpus.train.source, corpus.train.target
    return [*map(corpus.source_vocabulary.decode, source)], [*map(corpus.target_vocabulary.decode, target)]


def test_a_student_learns_from_the_translations_in_the_place_of_the_references_or_from_both(tiny_run, tmp_path):
    german, english = grammar.generate(1, train=60, valid=12, test=8)["train"]
    model = one_layer.load(tiny_run)
    expected = [line for first in range(0, 60, PART) for line in model.translate(german[first : first + PART])]
    assert any(expected)

    run = taught(student(tiny_run), RunFolder(tmp_path))
    assert read_lines(run.data.translations) == expected
    full = [place for place, line in enumerate(expected) if line]
    assert text_of(run) == ([german[place] for place in full], [expected[place] for place in full])

    both = taught(student(tiny_run, {"data.teacher_mix": "both"}), RunFolder(tmp_path))
    assert both.data.translations == run.data.translations, "the mix does not change the translations"
    source, target = text_of(both)
    assert (source, target) == (
        german + [german[place] for place in full],
        english + [expected[place] for place in full],
    )


def test_an_interrupted_translation_goes_on_where_it_stopped(tiny_run, tmp_path, monkeypatch):
    whole = Path(taught(student(tiny_run), RunFolder(tmp_path / "whole")).data.translations)
    given: list[int] = []

    def two_parts(model: TranslationModel, lines: list[str]) -> list[str]:
        if len(given) == 2:
            raise KeyboardInterrupt
        given.append(len(lines))
        return TranslationModel.translate(model, lines)

    monkeypatch.setattr(TranslationModel, "lines", two_parts)
    folder = RunFolder(tmp_path / "interrupted")
    with pytest.raises(KeyboardInterrupt):
        taught(student(tiny_run), folder)
    (unfinished,) = folder.path.iterdir()
    with unfinished.open("a") as file:
        file.write("the line that a kill cut")
    given.clear()
    resumed = Path(taught(student(tiny_run), folder).data.translations)
    assert given == [PART, 60 - 3 * PART], "two parts of four were there"
    assert resumed.name == whole.name and resumed.read_bytes() == whole.read_bytes()
    assert [path.name for path in folder.path.iterdir()] == [resumed.name]


def test_one_waits_while_another_process_writes_and_then_has_what_it_wrote(tmp_path, caplog):
    file, begun = tmp_path / "lines", threading.Event()

    def read() -> bool:
        begun.set()
        with continued(file, "translations") as out:
            return out is None

    with ThreadPoolExecutor(1) as pool, caplog.at_level("INFO"):
        with continued(file, "translations") as out:  # a second open file is to a lock what another process is
            other = pool.submit(read)
            begun.wait()
            end = time.monotonic() + 60
            while "waits for it" not in caplog.text and not other.done() and time.monotonic() < end:
                time.sleep(0.01)
            assert not other.done()
            out.write(b"whole")
        assert other.result() and file.read_bytes() == b"whole" and list(tmp_path.iterdir()) == [file]


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with user_error(r"lines\.part cannot be locked \(No locks available\)"), continued(tmp_path / "lines", "x"):
        pass


@pytest.mark.slow
def test_runs_of_one_store_share_the_translations_of_prepared_text(tmp_path, monkeypatch):
    """The teacher is a ticket here, and its text has tokens already: so have its translations."""
    text = tmp_path / "text"
    text.mkdir()
    for name, pair in grammar.generate(1, train=60, valid=12, test=8).items():
        for language, lines in zip(("de", "en"), pair, strict=True):
            (text / f"{name}.{language}").write_text("".join(f"{line.replace('e', 'e@@ ')}\n" for line in lines))
    changes = {"data.source": "text", "data.directory": str(text), "data.prepared": True, "data.bpe_merges": 0}
    train(tiny.run({**changes, "train.updates": 8, "data.tests": ()}), tmp_path / "teacher", [])
    ticket = tmp_path / "teacher" / "ticket.safetensors"
    changes |= {"data.store": str(tmp_path / "store")}
    first = taught(student(ticket, changes), RunFolder(tmp_path / "first"))
    translations = Path(first.data.translations)
    assert translations.parent == tmp_path / "store"
    pieces = {token for line in read_lines(text / "train.en") for token in line.split()}
    lines = read_lines(translations)
    assert any(lines) and all(token in pieces for line in lines for token in line.split())

    monkeypatch.setattr(teaching, "_translate", None)  # nothing is translated again
    second = taught(student(ticket, {**changes, "seed": 2}), RunFolder(tmp_path / "second"))
    assert second.data.translations == str(translations)
    assert text_of(second) == text_of(first)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data.teacher_mix": "half"}, ["data.teacher_mix", "half", "both"]),
        ({"data.translations": "text.en"}, ["data.translations", "leave one of them out"]),
        (
            {"data.teacher": "", "data.translations": "text.en", "data.teacher_mix": "references"},
            ["data.translations has no use with teacher_mix=references", "leave one of them out"],
        ),
    ],
)
def test_a_teacher_that_does_not_fit_is_refused_in_a_sentence(tiny_run, tmp_path, changes, words):
    with pytest.raises(UserError) as error:
        taught(student(tiny_run, changes), RunFolder(tmp_path))
    assert all(word in str(error.value) for word in words), error.value
    assert not [*tmp_path.iterdir()]


def test_a_teacher_is_for_pairs_of_lines_and_not_the_run_itself(tiny_run, tmp_path):
    values = tiny.config({"data.teacher": str(tiny_run)})
    values["data"]["source"], values["data"]["directory"] = "fairseq", "bin"
    with user_error(r"data\.teacher is for pairs of lines.*data\.prepared"):
        resolve(values)
    with user_error("own folder"):
        taught(student(tiny_run), RunFolder(tiny_run))


def test_translations_of_another_text_are_refused(tmp_path):
    (tmp_path / "some.en").write_text("a line\n")
    run = tiny.run({"data.translations": str(tmp_path / "some.en")})
    with user_error(r"data\.translations=.*some\.en does not have a line for each"):
        run.task.corpus(run.data)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([f"the {number} sentence" for number in range(200)], ""),
        (["the same sentence"] * 200, "have only 1 different lines"),
        ([*["" for _ in range(3)], *(f"the {number} sentence" for number in range(197))], "3 of 200 are empty"),
        ([str(number) for number in range(200)], "less than half as many words"),
    ],
)
def test_translations_that_teach_little_are_warned_of(lines, problem, tmp_path, caplog):
    file = tmp_path / "teacher.en"
    file.write_text("\n".join(lines) + "\n")
    teaching.check_translations([f"der {number} satz" for number in range(200)], file, spaces=True)
    assert [problem in message for message in caplog.messages] == [True] * bool(problem)
