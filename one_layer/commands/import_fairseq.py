"""Converts a fairseq checkpoint into a run folder. Needs torch (requirements-torch.txt).

    python -m one_layer import_fairseq --checkpoint=FILE.pt --source_dict=dict.de.txt --target_dict=dict.en.txt --workdir=DIR \\
        --config.data.directory=TEXT --config.data.valid=valid.bpe10k --config.data.tests='("test.bpe10k",)'
    python main.py --mode=evaluate --workdir=DIR

Sizes are read from the tensors, and options from the file's `args` (or `cfg`). Give what the file does not say with --config: a file
that holds only tensors needs --config.model.heads and, if the model is masked, --config.model.keep, or --config.model.threshold where
--config.model.selection is one by a threshold. Also give the text that
`main.py --mode=evaluate` scores: files {directory}/{name}.{language}, already split by BPE. To translate raw lines with
--mode=translate, add how that text was prepared: data.prepared=True with data.tokenize, data.lowercase and data.bpe_codes.

The file is read without running any code in it. It may hold only tensors, plain values and argparse.Namespace objects.
"""

import logging
from pathlib import Path
from typing import Any

from one_layer.cli.command import parser_of
from one_layer.cli.config_files import defaults
from one_layer.cli.overrides import override
from one_layer.commands.importing import new_folder, run_of, write_run
from one_layer.data import loading
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers import fairseq
from one_layer.importers.fairseq_checkpoint import check_rows, read_checkpoint, read_options
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)


def import_checkpoint(path: Path, dictionaries: tuple[Path, Path], workdir: Path, overrides: dict[str, Any]) -> None:
    """Turns `workdir` into the folder of a run that ended with the model of `path`.

    `overrides` holds config values by dotted names. Everything is checked before anything is written.
    Raises: UserError for a checkpoint or an option that cannot be imported.
    """
    folder = new_folder(workdir)
    state, options = read_checkpoint(path)
    found = read_options(options, state)
    source, target = (Vocabulary.load(path, fairseq=True) for path in dictionaries)
    for vocabulary, file, stack in zip((source, target), dictionaries, ("encoder", "decoder"), strict=True):
        name = f"{stack}.embed_tokens.weight"
        check_rows(vocabulary, file, len(state[name]), name)
    run = _run(found, options, dictionaries, overrides)
    model = run.model_for((source, target))
    variables = fairseq.convert(state, model)
    codes = "".join(f"{line}\n" for line in read_lines(run.data.bpe_codes)) if run.data.bpe_codes else None
    assets = TextAssets(source, target, *loading.PARALLEL.preprocessing(run.data, codes))
    write_run(run, assets, variables, folder, overrides)
    log.info("%s holds the %s model of %s", workdir, model.weights, path)


def _run(
    found: dict[str, Any], options: dict[str, Any], dictionaries: tuple[Path, Path], overrides: dict[str, Any]
) -> RunConfig:
    """Returns the config: the common config, then the checkpoint's values, then the user's values for the rest."""
    stated = {f"model.{name}": value for name, value in found.items()}
    known = stated.keys() | overrides.keys()
    if "model.heads" not in known:
        raise UserError("the checkpoint does not say how many heads its model has; give --config.model.heads")
    selection = str(found.get("selection", overrides.get("model.selection")))
    key = "model.threshold" if selection.endswith("threshold") else "model.keep"
    if found["weights"] != "dense" and key not in known:
        raise UserError(f"the checkpoint does not say which of its weights the masks keep; give --config.{key}")
    data = {"source": "text", "directory": str(dictionaries[0].parent), "joined_vocabulary": found["shared_embedding"]}
    data["undo"] = "subword-nmt,moses"  # what fairseq's recipes prepare; data.undo=sentencepiece says another way
    data |= {
        f"{side}_language": options[f"{side}_lang"] for side in ("source", "target") if options.get(f"{side}_lang")
    }
    assumed = {f"data.{name}": value for name, value in data.items()}
    # By its embedding_path a report knows that the file's tables were pre-trained.
    return run_of(stated, overrides, assumed, but="model.embedding_path")


def main(argv: list[str]) -> None:
    """Runs the command line. Raises: UserError for options that are missing."""
    parser = parser_of(__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help="fairseq's file")
    parser.add_argument("--source_dict", type=Path, required=True, help="fairseq's dictionary of the source language")
    parser.add_argument("--target_dict", type=Path, required=True, help="fairseq's dictionary of the target language")
    parser.add_argument("--workdir", type=Path, required=True, help="the run folder")
    arguments, rest = parser.parse_known_args(argv)
    dictionaries = (arguments.source_dict, arguments.target_dict)
    import_checkpoint(arguments.checkpoint, dictionaries, arguments.workdir, override(defaults(), rest))
