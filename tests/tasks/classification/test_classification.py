"""A classifier from labelled files, and from a data set of TFDS, to a score, a ticket and labels of new lines."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow_datasets as tfds
from safetensors.numpy import load_file, save_file
from tokenizers import ByteLevelBPETokenizer

from one_layer.data.config import DataConfig
from one_layer.data.special_tokens import BOS, EOS
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.runs.evaluate import evaluate
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import resolve
from one_layer.tasks import TASKS
from one_layer.tickets import restore_ticket
from one_layer.training.train import train
from tests import tfds_sets, tiny, user_error

WORDS = ("tram", "bridge", "garden", "letter", "window", "river")
CHANGES = {
    "task": "classification",
    "model.decoder_layers": 0,
    "model.dropout": 0.0,
    "data.source": "labelled",
    "data.labels": "sst2",
    "data.source_language": "en",
    "data.tokenize": True,
    "data.lowercase": True,
    "data.max_length": 12,
    "train.select": "accuracy",
    "train.updates": 40,
    "train.evaluate_every": 20,
    "optim.lr": 0.02,
    "optim.label_smoothing": 0.0,
}


def texts(count: int, seed: int) -> list[tuple[str, int]]:
    """Sentences that are positive where they have `fine` in them, and else have `poor`."""
    dice = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        label, words = int(dice.integers(2)), list(dice.choice(WORDS, dice.integers(2, 6)))
        words.insert(int(dice.integers(len(words) + 1)), ("Poor", "fine")[label])
        found.append((" ".join(words), label))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts")
    for seed, (name, count) in enumerate({"train": 120, "valid": 30, "test": 30}.items()):
        rows = "".join(f"{text}\t{label}\n" for text, label in texts(count, seed))
        (path / f"{name}.tsv").write_text(f"sentence\tlabel\n{rows}")
    return path


def values(folder: Path, **changes):
    names = {"data.train": "train.tsv", "data.valid": "valid.tsv", "data.tests": ("test.tsv",)}
    return tiny.config({**CHANGES, "data.directory": str(folder), **names, **changes})


@pytest.fixture(scope="module")
def workdir(folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run"
    train(resolve(values(folder)), path, [])
    return path


@pytest.mark.slow
def test_it_learns_what_its_masks_can_tell(workdir):
    result = json.loads((workdir / "result.json").read_text())
    assert result["task"] == "classification" and result["valid"]["select"] == "accuracy"
    assert result["test"]["test.tsv"]["accuracy"] > 0.9  # one label is given to about half of them
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().split("\n") if line]
    assert [set(line) >= {"valid/nll", "valid/accuracy", "mask/flips"} for line in lines if "valid/nll" in line] == [
        True
    ] * 2


def test_checkpoint_and_ticket_give_the_same_labels_and_scores(workdir, tmp_path):
    result = json.loads((workdir / "result.json").read_text())["test"]["test.tsv"]
    labels = (workdir / "hypotheses-test.tsv.txt").read_text().split("\n")[:-1]
    truths = [("negative", "positive")[label] for _, label in texts(30, 2)]
    assert np.mean(np.array(labels) == np.array(truths)) == result["accuracy"]
    ticket = workdir / "ticket.safetensors"
    models = [restore_run(workdir, "best"), restore_ticket(ticket), restore_ticket(ticket, packed=True)]
    for restored in (*models, models[1].with_masks(models[0].masks)):
        found = evaluate(restored, "test", RunFolder(tmp_path))["test.tsv"]
        assert {name: found[name] for name in result} == pytest.approx(result, rel=1e-5)
        assert (tmp_path / "hypotheses-test.tsv.txt").read_text().split("\n")[:-1] == labels
        given = restored.classify([text for text, _ in texts(30, 2)])
        assert [label.name for label in given] == labels
        assert all(0.5 <= label.probability <= 1.0 for label in given)


def test_lines_in_labels_out(workdir):
    model = restore_run(workdir, "best")
    first, empty, third = model.lines(["a FINE river", "", "a poor garden"])
    assert first.startswith("positive	") and third.startswith("negative	") and empty == ""
    assert model.classify(["", " "]) == [None, None]
    with user_error(r"line 2, 'fine\\tpoor', has 1 tab, but this model labels one text"):
        model.classify(["fine", "fine	poor"])
    with user_error("this is a classification model, which does not translate; give --mode=classify"):
        model.check_verb("translate")


def test_an_encoder_is_taken_over_for_any_spelling_of_its_language(workdir, folder):
    source, task = restore_run(workdir, "best"), TASKS["classification"]
    data = resolve(values(folder, **{"data.source_language": "en-GB"})).data
    corpus = task.corpus_in_vocabularies_of(source, data)
    assert corpus.languages[0] == "en-GB" and corpus.source_vocabulary == source.assets.source_vocabulary
    with user_error(r"data.source_language is 'de', but the encoder of train.init_from reads 'en'"):
        task.corpus_in_vocabularies_of(source, resolve(values(folder, **{"data.source_language": "de"})).data)
    alone = replace(source, config=source.config.replace(family="decoder", encoder_layers=0, decoder_layers=1))
    with user_error(r"the model of train\.init_from has no encoder: its task is classification"):
        task.corpus_in_vocabularies_of(alone, data)


def test_texts_that_are_cut_are_counted(workdir, caplog):
    model = restore_run(workdir, "best")
    long = "fine " + "tram " * 20
    assert model.classify([long, "poor", ""])[0] == model.classify(["fine " + "tram " * 9])[0]
    assert [record.message for record in caplog.records] == [
        "1 of 2 lines have more than 12 tokens (data.max_length); only these are read"
    ]
    pairs = replace(model, data=replace(model.data, labels="qqp"))
    caplog.clear()
    pairs.classify([(long, "poor"), f"poor\t{long}", ("poor", "fi\tne")])
    assert [record.message for record in caplog.records] == [
        "2 of 3 lines have more than 12 tokens (data.max_length); only these are read"
    ]


@pytest.fixture(scope="module")
def roberta(folder, tmp_path_factory):
    """The files of a RoBERTa of width 16 whose byte-level pieces are of these texts, as its library and safetensors write them."""
    path = tmp_path_factory.mktemp("roberta")
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train([str(folder / "train.tsv")], vocab_size=350, show_progress=False, special_tokens=list(SPECIALS))
    tokenizer.save_model(str(path))
    names = {"word": tokenizer.get_vocab_size(), "position": 42}
    dice = np.random.default_rng(0)
    save_file(
        {
            f"roberta.embeddings.{name}_embeddings.weight": dice.normal(0, 0.3, (rows, 16)).astype(np.float32)
            for name, rows in names.items()
        },
        path / "model.safetensors",
    )
    return path


@pytest.mark.slow
def test_roberta_s_words_and_positions_stay_as_they_are(folder, roberta, tmp_path):
    changes = {
        "model.embedding": "frozen",
        "model.embedding_source": "roberta",
        "model.embedding_path": str(roberta),
        "model.positions": "frozen",
        "model.max_positions": 40,
        "model.embedding_norm": True,
        "model.activation": "gelu",
        "data.tokenize": False,
        "data.lowercase": False,
        "data.bpe_kind": "byte-level",
        "data.bpe_codes": str(roberta / "merges.txt"),
        "data.vocabulary": str(roberta / "vocab.json"),
        "data.max_length": 40,
    }
    train(resolve(values(folder, **changes)), tmp_path / "run", [])
    tables = load_file(roberta / "model.safetensors")
    shutil.rmtree(roberta)  # whatever is needed of it now lies with the run
    best = restore_run(tmp_path / "run", "best")
    ticket = restore_ticket(tmp_path / "run" / "ticket.safetensors")
    for restored in (best, ticket):
        for name in ("word", "position"):
            path = {"word": "source_embedding", "position": "position_embedding"}[name]
            kept = np.asarray(restored.variables["frozen"][path]["kernel"])
            assert kept.tobytes() == tables[f"roberta.embeddings.{name}_embeddings.weight"].tobytes()
    ids = best.assets.source_vocabulary.encode_texts(best.assets.source_preprocessing.apply(["A fine tram"])[0])
    assert ids[0] == BOS and ids[-1] == EOS and not set(ids[1:-1].tolist()) & {0, 1, 2, 3}
    lines = [text for text, _ in texts(30, 2)]
    labels = (tmp_path / "run" / "hypotheses-test.tsv.txt").read_text().split("\n")[:-1]
    assert [label.name for label in ticket.classify(lines)] == labels
    assert evaluate(best, "test", None)["test.tsv"]["accuracy"] > 0.9


PAIRS = [("How are you?", "How do you do?", 1), ("What is this?", "Who\tis\nthere?", 0), ("Why me?", "Why not you?", 0)]


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """QQP as TFDS has it, and the same as a file."""
    path = tmp_path_factory.mktemp("tfds")
    names = tfds.features.ClassLabel(names=["not_duplicate", "duplicate"])
    features = {"question1": tfds.features.Text(), "question2": tfds.features.Text(), "label": names}
    examples = [{"question1": a, "question2": b, "label": label} for a, b, label in PAIRS]
    parts = {"train": examples * 5, "validation": [*examples, {"question1": "x", "question2": "y", "label": -1}]}
    tfds_sets.write(path, "glue/qqp", tfds.features.FeaturesDict(features), parts)
    rows = [f"{label}\t{' '.join(a.split())}\t{' '.join(b.split())}\n" for a, b, label in PAIRS]
    (path / "train").write_text("".join(rows * 5))
    (path / "validation").write_text("".join(rows))
    return path


corpus_of = TASKS["classification"].corpus


def data(sets: Path, **keys):
    parts = {"train": "train", "valid": "validation", "tests": ("validation",)}
    return DataConfig(labels="qqp", directory=str(sets), source_language="en", tokenize=True, **parts, **keys)


def test_tfds_and_files_give_the_same_corpus(sets, tmp_path):
    files, records = data(sets, source="labelled"), data(sets, source="tfds", tfds_name="glue/qqp")
    one, other = corpus_of(files), corpus_of(records)
    assert one.source_vocabulary == other.source_vocabulary
    words = {word for pair in PAIRS for text in pair[:2] for word in text.replace("?", " ?").split()}
    assert set(one.source_vocabulary.tokens[4:]) == words  # no label, and no two words with a tab between
    assert one.target_vocabulary.tokens[4:] == other.target_vocabulary.tokens[4:] == ("not_duplicate", "duplicate")
    for ours, theirs in zip((one.train, one.valid), (other.train, other.valid), strict=True):
        ids = [
            sorted((tuple(a), tuple(b)) for a, b in zip(split.source, split.target, strict=True))
            for split in (ours, theirs)
        ]
        assert ids[0] == ids[1]
    assert other.report[0] == (
        "validation: 3 texts (1 duplicate, 2 not_duplicate; always not_duplicate: 66.7 %); left out: 1 without an agreed label"
    )
    for ids, text in zip(one.valid.source, one.valid.source_text, strict=True):
        first, second = (
            one.source_vocabulary.encode(side) for side in one.source_preprocessing.apply([text])[0].split("\t")
        )
        assert ids.tolist() == [BOS, *first, EOS, *second] and first[-1] == second[-1] == EOS
    stored = data(sets, source="labelled", store=str(tmp_path))
    for again in (corpus_of(stored), corpus_of(stored)):
        assert [ids.tolist() for ids in again.train.source] == [ids.tolist() for ids in one.train.source]
        assert again.source_vocabulary == one.source_vocabulary and again.source_preprocessing.pairs
    cut = corpus_of(data(sets, source="labelled", max_length=7))
    assert [len(ids) for ids in cut.valid.source] == [7, 7, 7] and all(ids[-1] == EOS for ids in cut.valid.source)
    assert any("; 15 of 15 texts have 7 tokens, the most that data.max_length allows" in line for line in cut.report)
    assert any("; 0 texts have 175 tokens, the most that data.max_length allows" in line for line in one.report)


def test_cut_texts_are_counted_in_every_part(sets):
    """Both texts keep some of their words."""

    def said(corpus):
        return [line.partition("; ")[2] for line in corpus.report if "that data.max_length allows" in line]

    short, task = data(sets, source="labelled", max_length=6), TASKS["classification"]
    corpus = corpus_of(short)
    each = (
        "{0} of {0} texts have 6 tokens, the most that data.max_length allows; if any was longer, it was cut, of two texts the longer one "
        "first"
    )
    assert said(corpus) == [each.format(15), each.format(3), each.format(3)]
    scored = task.scored_corpus(short, corpus, "valid")
    assert said(scored) == [each.format(3)]
    whole = corpus_of(data(sets, source="labelled"))
    assert len(said(whole)) == 1, "where nothing was cut, only the training part says so"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "translation"}, "model.decoder_layers is 0; a translation model needs at least 1"),
        ({"task": "translation", "model.decoder_layers": 1}, "task=translation, but data.source='labelled'"),
        ({"model.decoder_layers": 1}, "model.decoder_layers is 1; a classifier has no decoder: give 0"),
        ({"train.select": "f1"}, "train.select is 'f1', but the validation set is measured by nll and accuracy"),
        ({"data.labels": ""}, "data.source='labelled' and data.labels=''; give data.source=labelled or"),
        ({"data.source": "text"}, "data.source='text' and data.labels='sst2'"),
        ({"data.joined_vocabulary": True}, "labels are not text"),
        ({"data.directory": ""}, "data.directory is empty: give the folder with the files"),
        ({"data.labels": "qqp", "data.max_length": 5}, r"data\.max_length is 5; two texts need at least 6 tokens"),
        (
            {
                "model.positions": "frozen",
                "model.embedding_source": "roberta",
                "model.embedding_path": "x",
                "model.max_positions": 8,
            },
            "data.max_length is 12, but model.max_positions is 8",
        ),
    ],
)
def test_what_no_classification_can_have_is_refused(changes, message, folder):
    with user_error(message):
        resolve(values(folder, **changes))


def test_labels_of_another_task_are_refused(folder):
    config, task = resolve(values(folder)).data, TASKS["classification"]
    words, steps = Vocabulary((*SPECIALS, "fine", "poor")), (Preprocessing("en", pairs=True), Preprocessing("label"))

    def scored(*labels):
        return task.scored_corpus(config, TextAssets(words, Vocabulary((*SPECIALS, *labels)), *steps))

    assert scored("negative", "positive").valid
    for strange in (("positive", "negative"), ("negative", "positive", "neither")):
        with user_error(f"the labels of this model are {' '.join(strange)}, but sst2 has negative"):
            scored(*strange)
