"""The command that converts a RoBERTa folder into a run folder, and a run folder into a RoBERTa folder; and what neither can be."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from configs import common, labelled
from one_layer.commands import import_roberta
from one_layer.data.special_tokens import PAD
from one_layer.data.stream_corpus import unit_of
from one_layer.data.text.units import MASK
from one_layer.importers import engines, roberta
from one_layer.models import ModelConfig, build, shapes
from one_layer.runs.evaluate import evaluate
from one_layer.runs.folder import RunFolder
from one_layer.runs.model_of import with_model_of
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import resolve
from one_layer.training.fine_tuning import source_of, start
from tests import user_error
from tests.tiny_roberta import CLASSIFIER, FFN, LAYERS, MERGES, OPTIONS, ROWS, TOKENS, D, tensors

pytestmark = pytest.mark.slow


def fine_tuning(init_from, changes, **sections):
    """The resolved config of a classifier that begins with an imported run."""
    config = common.get_config().to_dict()
    config["task"] = "classification"
    config["model"] |= {"d_model": D, "ffn": FFN, "heads": 2, "encoder_layers": LAYERS, "decoder_layers": 0}
    config["model"] |= {"weights": "dense", "positions": "learned", "max_positions": ROWS - 2, "embedding_norm": True}
    config["model"] |= {"activation": "gelu", "norm_epsilon": OPTIONS["layer_norm_eps"], **changes}
    config["data"] |= {"source": "labelled", "labels": "no,yes", "columns": "text,label", "source_language": "en"}
    config["data"] |= {"bpe_kind": "byte-level", "max_length": 16, **sections["data"]}
    config["train"] |= {"updates": 1, "select": "nll", "init_from": str(init_from)}
    return resolve(config)


@pytest.fixture
def texts(tmp_path):
    for name in ("train.tsv", "valid.tsv", "test.tsv"):
        (tmp_path / name).write_text("text\tlabel\na the\tno\nthe the\tyes\n", "utf-8")
    (tmp_path / "plain.txt").write_text("the the a the\nthen the\n" * 20, "utf-8")
    return tmp_path


def test_a_masked_language_model_fills_masks_and_is_scored(roberta, command, texts):
    text = [f"--config.data.directory={texts}", "--config.data.valid=plain.txt", "--config.data.tests=('plain.txt',)"]
    workdir = command(roberta(), *text)
    model = restore_run(workdir)
    config = model.config
    assert (config.d_model, config.ffn, config.max_positions, config.dropout) == (D, FFN, ROWS - 2, 0.2)
    assert config.weights == "dense" and config.positions == "learned" and not (workdir / "frozen.npz").exists()
    ((candidates,),) = model.fill([f"a {MASK} the"])
    assert len(candidates) == 5 and sum(each.probability for each in candidates) <= 1
    scores = evaluate(model, "test", RunFolder(workdir))["plain.txt"]
    assert scores["masked"] > 0 and np.isfinite(scores["perplexity"])


def test_what_is_read_is_written_back(roberta, command, tmp_path):
    """All tensors keep their bits; only the vector of the one type of tokens moves into the positions."""
    folder = roberta()
    engines.export(restore_run(command(folder)), "huggingface", tmp_path / "back")
    before, after = (load_file(each / "model.safetensors") for each in (folder, tmp_path / "back"))
    types = before.pop("roberta.embeddings.token_type_embeddings.weight")
    assert not after.pop("roberta.embeddings.token_type_embeddings.weight").any()
    before["roberta.embeddings.position_embeddings.weight"] += types
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, name)
    for name in ("vocab.json", "config.json"):
        read, written = (json.loads((each / name).read_text("utf-8")) for each in (folder, tmp_path / "back"))
        assert read.items() <= written.items()
    assert (tmp_path / "back" / "merges.txt").read_text("utf-8") == MERGES


def test_a_table_may_have_more_rows_than_the_tokenizer_has_tokens(roberta, command, texts):
    """Programs pad tables to a multiple of 8 or 64. No text has such rows, and nothing else changes."""
    line = f"a {MASK} the"
    text = [f"--config.data.directory={texts}", "--config.data.valid=plain.txt", "--config.data.tests=('plain.txt',)"]
    padded = dict(tensors())
    for name in ("roberta.embeddings.word_embeddings.weight", "lm_head.bias"):
        fill = -1e9 if name == "lm_head.bias" else 0.0
        padded[name] = np.concatenate([padded[name], np.full((5, *padded[name].shape[1:]), fill, np.float32)])
    workdir = command(roberta(options={"vocab_size": len(TOKENS) + 5}, state=padded), *text)
    model = restore_run(workdir)
    assert len(model.assets.target_vocabulary) == len(TOKENS) + 5
    assert model.assets.target_vocabulary.tokens[: len(TOKENS)] == TOKENS
    import_roberta.main([f"--folder={roberta()}", f"--workdir={texts / 'exact'}", *text])
    exact = restore_run(texts / "exact")
    ((mine,), (theirs,)) = model.fill([line])[0], exact.fill([line])[0]
    assert [each.text for each in mine] == [each.text for each in theirs]
    np.testing.assert_allclose([each.probability for each in mine], [each.probability for each in theirs], rtol=1e-5)


def test_a_classifier_has_the_labels_of_its_config(roberta, command, tmp_path):
    labels = {"id2label": {"1": "so so", "0": "good"}}
    workdir = command(roberta({**CLASSIFIER, **labels}, "classifier"))
    model = restore_run(workdir)
    assert model.config.head_dropout == 0.2
    (label,) = model.classify(["the the"])
    assert label is not None and label.name in ("good", "so_so")
    engines.export(model, "huggingface", tmp_path / "back")
    assert json.loads((tmp_path / "back" / "config.json").read_text("utf-8"))["id2label"] == {"0": "good", "1": "so_so"}


def test_labels_without_names_are_numbers_in_files_and_can_be_named(roberta, command, texts):
    folder = roberta(CLASSIFIER, "classifier")
    own = ["--config.data.labels=no,yes", "--config.data.columns=text,label", f"--config.data.directory={texts}"]
    with user_error(r"data\.labels is 'a,b,c', but the classifier of .* has 2 labels"):
        command(folder, "--config.data.labels=a,b,c", *own[1:2])
    with user_error(r"does not name its labels, .* --config\.data\.labels=negative,positive if it"):
        command(folder, "--config.data.labels=sst2")
    workdir = command(folder, *own, "--config.data.valid=valid.tsv", "--config.data.tests=('test.tsv',)")
    assert restore_run(workdir).assets.target_vocabulary.tokens[4:] == ("no", "yes")
    assert evaluate(restore_run(workdir), "test", RunFolder(workdir))["test.tsv"]["texts"] == 2


def test_labels_in_another_order_than_the_model_s_are_refused(roberta, command):
    """Each output would get the name of another one."""
    folder = roberta({**CLASSIFIER, "id2label": {"0": "Yes", "1": "NO"}}, "classifier")
    with user_error(r"data\.labels='no,yes' stands for no, yes, but .* in the order Yes, NO; list them"):
        command(folder, "--config.data.labels=no,yes", "--config.data.columns=text,label")
    workdir = command(folder, "--config.data.labels=yes,no", "--config.data.columns=text,label")
    assert restore_run(workdir).assets.target_vocabulary.tokens[4:] == ("yes", "no")


def test_a_classifier_begins_with_the_encoder_and_the_embeddings(roberta, command, texts):
    folder = roberta()
    workdir = command(folder)
    text = {"directory": str(texts), "train": "train.tsv", "valid": "valid.tsv", "tests": ("test.tsv",)}
    run = fine_tuning(workdir, {}, data={**text, "bpe_codes": str(folder / "merges.txt")})
    source = source_of(run)
    corpus = run.task.corpus_in_vocabularies_of(source, run.data)
    begun = start(run, run.model_config(*map(len, corpus.vocabularies)), corpus, source, {})
    assert begun.params.keys() == {"encoder", "source_embedding", "position_embedding", "embedding_norm"}
    assert begun.report[1] == "new: head_dense 2, head_output 2"
    shorter = fine_tuning(workdir, {"max_positions": 16 + 1}, data={**text, "bpe_codes": str(folder / "merges.txt")})
    with user_error(r"model\.max_positions is 17, but it is 16 there; "):
        source_of(shorter)


def test_masks_over_its_weights_can_be_trained(roberta, command, texts):
    """The weights become fixed arrays of the run, and those that begin with it have them too."""
    folder = roberta()
    workdir = command(folder, "--config.model.weights=multi_layer", "--config.model.keep=0.8")
    model = restore_run(workdir)
    kernel = model.variables["random"]["encoder"]["layers"]["ffn_in"]["kernel"]
    theirs = load_file(folder / "model.safetensors")
    np.testing.assert_array_equal(kernel[1], theirs["roberta.encoder.layer.1.intermediate.dense.weight"].T)
    leaves = {path[-1] for path in shapes(model.config) if path[1:3] == ("encoder", "layers")}
    assert model.config.keep == 0.8 and leaves >= {"scores", "bias"}
    config = labelled.get_config("multi_layer_cpu")
    text = {"directory": str(texts), "train": "train.tsv", "valid": "valid.tsv", "tests": ("test.tsv",)}
    text["max_length"] = 16
    given = {**{f"data.{name}": value for name, value in text.items()}, "data.columns": "text,label"}
    given["train.model_of"] = str(workdir)
    config.update_from_flattened_dict(given)
    run = resolve(with_model_of(config.to_dict(), given, texts / "further"))
    source = source_of(run)
    corpus = run.task.corpus_in_vocabularies_of(source, run.data)
    begun = start(run, run.model_config(*map(len, corpus.vocabularies)), corpus, source, {})
    assert run.model["keep"] == 0.8
    np.testing.assert_array_equal(begun.fixed["random"]["encoder"]["layers"]["ffn_in"]["kernel"], kernel)


def test_a_model_without_a_head_gets_a_new_one(roberta, command, caplog):
    state = {name.removeprefix("roberta."): array for name, array in tensors(head="").items()}
    state["pooler.dense.weight"], state["pooler.dense.bias"] = np.ones((D, D), np.float32), np.ones(D, np.float32)
    caplog.set_level("INFO")
    workdir = command(roberta({"architectures": ["RobertaModel"]}, state=state))
    assert "the head is new: the file has none" in caplog.text and "left out: pooler.dense.weight" in caplog.text
    assert np.any(restore_run(workdir).variables["params"]["head_dense"]["kernel"])


def test_transformers_reads_what_is_written_and_writes_what_is_read(roberta, command, tmp_path):
    """Its models have the same logits, and its tokenizer gives the same ids."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(1)
    folder = roberta()
    config = transformers.RobertaConfig(**{**OPTIONS, "type_vocab_size": 2})
    transformers.RobertaForMaskedLM(config).save_pretrained(folder)
    model = restore_run(command(folder))
    engines.export(model, "huggingface", tmp_path / "back")
    source = np.array([[0, 5, 260, 263, 2, 7, 2], [0, 8, 263, 2, PAD, PAD, PAD]], np.int32)
    ours = np.asarray(build(model.config).apply(model.variables, source, np.broadcast_to(np.arange(7), (2, 7))))
    for each in (folder, tmp_path / "back"):
        reader = transformers.RobertaForMaskedLM.from_pretrained(each).eval()
        their = reader(torch.tensor(source).long(), attention_mask=torch.tensor(source != PAD).long()).logits
        np.testing.assert_allclose(ours[source != PAD], their.detach().numpy()[source != PAD], rtol=1e-5, atol=1e-5)
    tokenizer = transformers.RobertaTokenizer.from_pretrained(tmp_path / "back")
    for line in ("the then  The\u00e4 the", "\u4e16 the."):
        ids = [0, *unit_of(model.data, model.assets).ids(line).tolist(), 2]
        assert tokenizer(line)["input_ids"] == ids


def changed(name, array):
    return {**tensors(), name: array}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"options": {"model_type": "bert", "architectures": ["BertForMaskedLM"]}},
            r"type 'bert', .*BertForMaskedLM; known",
        ),
        (
            {"options": {"architectures": ["RobertaForTokenClassification"]}},
            "architecture RobertaForTokenClassification; known",
        ),
        (
            {"options": {"vocab_size": 99}},
            r"vocab_size of config\.json is 99; give the tokenizer and the weights of one model",
        ),
        (
            {"tokens": (*TOKENS, "more")},
            rf"vocab\.json has {len(TOKENS) + 1} tokens, the word embeddings .* have {len(TOKENS)} rows",
        ),
        (
            {"tokens": tuple("more" if token == "Ġthe" else token for token in TOKENS)},
            r"the merges make '\S+', which the vocabulary lacks; give the files of one tokenizer",
        ),
        (
            {"state": changed("roberta.embeddings.token_type_embeddings.weight", np.ones((), np.float32))},
            r"do not fit this model: unknown: embeddings\.token_type_embeddings\.weight",
        ),
        ({"tokens": (*TOKENS[:-1], "<other>")}, r"vocab\.json has no token <mask>, which masked language models need"),
        ({"state": tensors("classifier")}, r"do not fit this model: unknown: classifier\.dense\.bias \[8\], "),
        (
            {"state": changed("lm_head.decoder.bias", np.zeros(3, np.float32))},
            r"lm_head\.decoder\.bias is not the same as",
        ),
        (
            {"state": changed("lm_head.bias", np.full(264, np.nan, np.float32))},
            r"lm_head\.bias has a number that is not finite",
        ),
    ],
)
def test_folders_that_cannot_be_imported(roberta, command, tmp_path, given, message):
    with user_error(message) as caught:
        command(roberta(**given))
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"id2label": {"0": "a,b", "1": "c"}},
            r"the label 'a,b' of config\.json has a comma, a colon, .*; give other names",
        ),
        (
            {"id2label": {"0": "a", "2": "b"}},
            r"id2label is \{'0': 'a', '2': 'b'\}; it must be a name for each number from 0 on",
        ),
        ({"id2label": ["a", "b"]}, r"id2label is \['a', 'b'\]; it must be a name for each number"),
        ({"id2label": {"0": None, "1": "b"}}, r"id2label is .*; it must be a name for each number"),
        (
            {"id2label": {"0": "\ud800", "1": "b"}},
            r"the label '.ud800' of config\.json has a comma, a colon, or what is no letter; give",
        ),
        (
            {"problem_type": "regression"},
            r"problem_type is 'regression', but a classifier here gives each text exactly one",
        ),
    ],
)
def test_classifiers_that_cannot_be_imported(roberta, command, tmp_path, options, message):
    with user_error(message):
        command(roberta({**CLASSIFIER, **options}, "classifier"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config.model.d_model=16"], r"--config\.model\.d_model=16, but .* has 8; leave this option out"),
        (
            ["--config.model.weights=one_layer"],
            r"each layer of RoBERTa has parameters of its own; give model\.weights=dense",
        ),
        (["--config.data.directory=nowhere"], r"nowhere"),
    ],
)
def test_options_that_do_not_fit(roberta, command, tmp_path, arguments, message):
    with user_error(message):
        command(roberta(), *arguments)
    assert not (tmp_path / "run").exists()


def test_missing_files_are_named_together(roberta, command):
    folder = roberta()
    (folder / "merges.txt").unlink()
    (folder / "model.safetensors").unlink()
    with user_error(r"has no model\.safetensors and no merges\.txt; give the folder of a RoBERTa"):
        command(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"positions": "sinusoidal"},
            r"model\.positions is 'sinusoidal', but a model in RoBERTa's format has learned or frozen",
        ),
        ({"embedding_norm": False}, r"model\.embedding_norm is False"),
        ({"norm_position": "pre"}, r"model\.norm_position is 'pre'"),
        ({"encoder_layers": "LR", "reservoir": "ffn"}, r"model\.reservoir is 'ffn'"),
    ],
)
def test_models_that_are_no_roberta_are_not_written(changes, message):
    small = {"d_model": D, "ffn": FFN, "heads": 2, "encoder_layers": 1, "decoder_layers": 0, "family": "masked_lm"}
    config = ModelConfig(
        10, 10, **{**small, "weights": "dense", "positions": "learned", "embedding_norm": True, **changes}
    )
    with user_error(message):
        roberta.export({"params": {}, "random": {}}, config)
