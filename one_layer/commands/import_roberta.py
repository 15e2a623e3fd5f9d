"""Converts a RoBERTa in Hugging Face's format into a run folder.

    python -m one_layer import_roberta --folder=roberta-base --workdir=runs/roberta
    echo "The <mask> is open." | python main.py --mode=fill --workdir=runs/roberta

    python main.py --mode=export --workdir=runs/roberta --format=huggingface --output=FOLDER

The folder has config.json, model.safetensors, vocab.json and merges.txt; the last command writes such a folder. A masked language model
(RobertaForMaskedLM, or RobertaModel, whose head is then new) and a classifier (RobertaForSequenceClassification) can be imported. The
run can be evaluated, and other runs can begin with it: --config.train.init_from=runs/roberta.

Other keys of --config are allowed where config.json does not decide them: the text to score (data.directory, data.valid, data.tests), a
classifier's data.labels and data.columns, and model.weights=multi_layer with model.keep, which puts new masks over RoBERTa's weights.
"""

import logging
import re
from pathlib import Path
from typing import Any

from one_layer.commands.importing import Imported, main_of, run_of
from one_layer.data.text import byte_level
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import LABEL, Preprocessing, read_codes
from one_layer.data.text.units import MASK
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary, read_vocabulary_json
from one_layer.importers.config_json import ConfigJson
from one_layer.importers.parameters import StateDict
from one_layer.importers.roberta import Options, convert, read_options
from one_layer.importers.safetensors_files import folder_state
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError
from one_layer.tasks.classification.glue import TASKS
from one_layer.tasks.classification.labels import label_set, spelled

log = logging.getLogger(__name__)

_NO_NAME = re.compile(r"[,:\x00-\x1f\x7f-\x9f\ud800-\udfff]")  # characters that no label may have


def import_folder(source: Path, overrides: dict[str, Any]) -> Imported:
    """A run that ended with the model of `source`. Raises: UserError for a folder or a value that cannot be imported."""
    options = read_options(ConfigJson(source / "config.json"))
    vocabulary, state = read_vocabulary_json(source / "vocab.json"), folder_state(source)
    vocabulary = _named_rows(source, options, vocabulary, state)
    run = _run(source, options, state, overrides)
    assets = _assets(run, source, vocabulary)
    variables, report = convert(state, run.model_config(*map(len, assets.vocabularies)), run.seed)
    return run, assets, variables, report


def _named_rows(source: Path, options: Options, vocabulary: Vocabulary, state: StateDict) -> Vocabulary:
    """The vocabulary with a name for every row of the word embeddings. Programs pad these tables, so that they have more rows than tokens.

    Raises: UserError if tokenizer, weights and config.json do not fit together, or if a masked language model has no mask.
    """
    table = next((array for name, array in state.items() if name.endswith("embeddings.word_embeddings.weight")), None)
    rows = len(table) if table is not None and table.ndim else 0
    if not len(vocabulary) <= rows == options.vocabulary:
        raise UserError(
            f"in {source}, vocab.json has {len(vocabulary):,} tokens, the word embeddings of model.safetensors have {rows:,} rows, and "
            f"vocab_size of config.json is {options.vocabulary:,}; give the tokenizer and the weights of one model"
        )
    if options.task == "masked_lm" and MASK not in vocabulary.tokens:
        raise UserError(f"{source / 'vocab.json'} has no token {MASK}, which masked language models need")
    if len(vocabulary) == rows:
        return vocabulary
    log.info("%d rows of the word embeddings have no token in vocab.json: no text has them", rows - len(vocabulary))
    return Vocabulary((*vocabulary.tokens, *(f"<row:{number}>" for number in range(len(vocabulary), rows))))


def _run(source: Path, options: Options, state: StateDict, overrides: dict[str, Any]) -> RunConfig:
    """The config: the common config, what this command assumes, what config.json states, and the user's values for the rest."""
    data: dict[str, Any] = {"directory": str(source), "bpe_kind": "byte-level", "bpe_codes": str(source / "merges.txt")}
    data["vocabulary"] = str(source / "vocab.json")
    if options.task == "masked_lm":
        data |= {"source": "plain", "unit": "bpe", "block": options.model["max_positions"]}
    else:
        data |= {"source": "labelled", "source_language": "en", "max_length": options.model["max_positions"]}
        if "data.labels" not in overrides:
            data["labels"] = _labels(options, state)
            data["columns"] = "text,label"
    assumed = {f"data.{name}": value for name, value in data.items()}
    assumed |= {f"model.{name}": value for name, value in options.dropout.items()}
    assumed |= {"model.weights": "dense", "train.select": "nll", "optim.label_smoothing": 0.0}
    stated = {"task": options.task, **{f"model.{name}": value for name, value in options.model.items()}}
    run = run_of(stated, overrides, assumed)
    if options.task == "classification":
        _check_labels(source, run.data.labels, label_set(run.data).labels, options, _outputs(state))
    return run


def _check_labels(source: Path, given: str, labels: tuple[str, ...], options: Options, count: int) -> None:
    """Raises: UserError for another number of labels than the classifier has, for those of config.json in another order, and for a
    published task whose order nothing in config.json confirms.
    """
    if len(labels) != count:
        raise UserError(
            f"data.labels is {given!r:.200}, but the classifier of {source} has {count} labels; list as many, in their order, "
            "for instance --config.data.labels=0:no,1:yes"
        )
    if given in TASKS and (options.labels or _nameless(count)) == _nameless(count):
        raise UserError(
            f"config.json of {source} does not name its labels, so that nothing says whether they have the order of data.labels={given}, "
            f"{', '.join(labels)}; list the names in the model's order, --config.data.labels={','.join(labels)} if it is this, and give "
            "data.columns"
        )
    ours, theirs = ([spelled(label).lower() for label in each] for each in (labels, options.labels or ()))
    if ours != theirs and sorted(ours) == sorted(theirs):
        raise UserError(
            f"data.labels={given!r:.200} stands for {', '.join(labels)}, but config.json of {source} has them in the order "
            f"{', '.join(options.labels)}; list them in this order"
        )


def _labels(options: Options, state: StateDict) -> str:
    """`data.labels` for the labels of config.json. Labels without names of their own are numbers in files."""
    default = _nameless(_outputs(state))
    names = tuple(map(spelled, options.labels or default))
    if wrong := [name for name in names if _NO_NAME.search(name)]:
        raise UserError(
            f"the label {wrong[0]!r:.200} of config.json has a comma, a colon, or what is no letter; give other names in the same order, "
            "for instance --config.data.labels=0:no,1:yes"
        )
    return ",".join(f"{number}:{name}" for number, name in enumerate(names)) if names == default else ",".join(names)


def _nameless(count: int) -> tuple[str, ...]:
    """The labels of a config.json that names none."""
    return tuple(f"LABEL_{number}" for number in range(count))


def _outputs(state: StateDict) -> int:
    """The labels that the classifier tells apart; 0 without a head."""
    bias = state.get("classifier.out_proj.bias")
    return 0 if bias is None else bias.size


def _assets(run: RunConfig, source: Path, vocabulary: Vocabulary) -> TextAssets:
    codes = read_codes(source / "merges.txt", "byte-level")
    byte_level.check_pieces(byte_level.pieces(codes)[len(byte_level.LETTERS) :], vocabulary.tokens, str(source))
    if run.task.name == "classification":
        labels = Vocabulary(SPECIALS + label_set(run.data).labels)
        steps = run.data.preprocessing(codes, run.data.source_language, pairs=True)
        return TextAssets(vocabulary, labels, steps, Preprocessing(LABEL))
    steps = Preprocessing(run.data.languages[0], codes=codes, bpe_kind="byte-level")
    return TextAssets(vocabulary, vocabulary, steps, steps)


def main(argv: list[str]) -> None:
    """Runs the command line."""
    main_of(__doc__, argv, "RoBERTa", import_folder)
