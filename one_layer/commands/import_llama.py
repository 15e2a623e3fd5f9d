"""Converts a Llama or a GPT-2 in Hugging Face's format into a run folder: its weights are fixed, and masks over them are to be trained.

    python -m one_layer import_llama --folder=SmolLM --workdir=runs/llama --config.model.keep=0.9
    echo "Once upon a time" | python main.py --mode=generate --workdir=runs/llama

The folder has config.json, model.safetensors (or its parts with their index), vocab.json and merges.txt (byte-level BPE). The embedding
must be the output projection, and a Llama's rotary positions plain. The masks begin as those that keep the largest weights. Another run
trains them further with --config.train.init_from=runs/llama, and with data.unit=bpe, data.bpe_kind=byte-level and
data.bpe_codes=SmolLM/merges.txt.

Other keys of --config are allowed where config.json does not decide them: the text, model.keep, model.weights=dense, and model.embedding,
which is frozen by default.
"""

from pathlib import Path
from typing import Any

import numpy as np

from one_layer.commands.importing import Imported, main_of, run_of
from one_layer.data.special_tokens import EOS
from one_layer.data.text import byte_level
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing, read_codes
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary, read_ids
from one_layer.importers import gpt2, llama
from one_layer.importers.config_json import ConfigJson
from one_layer.importers.llama import Options
from one_layer.importers.safetensors_files import folder_state
from one_layer.runs.records import flatten
from one_layer.system.errors import UserError


def convert(source: Path, overrides: dict[str, Any]) -> Imported:
    """A run whose weights are those of the Llama or GPT-2 in `source`. Raises: UserError for what cannot be imported."""
    given = ConfigJson(source / "config.json")
    program = gpt2 if given.get("model_type") == "gpt2" else llama
    options = program.read_options(given)
    # GPT2LMHeadModel puts "transformer." before the names of GPT2Model.
    state = {name.removeprefix("transformer."): array for name, array in folder_state(source).items()}
    if not (options.tied or llama.OUTPUT in state):
        raise UserError(
            f"{source} has no {llama.OUTPUT}, though its config.json does not say that tie_word_embeddings is true; give a folder "
            "as it was written"
        )
    merges = read_codes(source / "merges.txt", "byte-level")
    tokens = (*SPECIALS, *byte_level.pieces(merges))
    rows = _rows(source, options, tokens, program.EMBEDDING, len(np.atleast_1d(state.get(program.EMBEDDING, ()))))
    stated = {"task": "causal_lm", "model": {"norm_position": "pre", "encoder_layers": 0, **options.model}}
    run = run_of(flatten(stated), overrides, _assumed(source, options))
    config = run.model_config(len(tokens), len(tokens))
    if config.weights == "one_layer":
        raise UserError(
            "model.weights is 'one_layer', but each layer of a Llama or a GPT-2 has weights of its own; give "
            "model.weights=multi_layer, or dense"
        )
    vocabulary, steps = Vocabulary(tokens), Preprocessing(run.data.languages[0], codes=merges, bpe_kind="byte-level")
    variables = program.convert(state, config, rows, options.key_heads)
    assets = TextAssets(vocabulary, vocabulary, steps, steps)
    absent = ", ".join(token for token, row in zip(tokens, rows, strict=True) if row is None)
    said = [f"the rows of {absent} are the mean of the others: the folder has no such tokens"] if absent else []
    return run, assets, variables, said


def _assumed(source: Path, options: Options) -> dict[str, Any]:
    """The config values that stand where the user gives none."""
    text = {"source": "plain", "directory": str(source), "block": options.context}
    pieces = {"unit": "bpe", "bpe_kind": "byte-level", "bpe_codes": str(source / "merges.txt")}
    return flatten(
        {
            "model": {"weights": "multi_layer", "embedding": "frozen", "keep": 0.9},
            "data": text | pieces,
            "optim": {"label_smoothing": 0.0},
            "train": {"select": "nll"},
            "evaluation": {"stride": min(256, options.context)},
        }
    )


def _rows(source: Path, options: Options, tokens: tuple[str, ...], table: str, count: int) -> list[int | None]:
    """The row of the embedding for each token; None for special tokens that the folder lacks."""
    ids = read_ids(source / "vocab.json")
    byte_level.check_pieces(tokens[len(SPECIALS) :], ids, str(source))
    found = {**{token: ids.get(token) for token in tokens}, SPECIALS[EOS]: options.eos}
    if outside := [row for row in found.values() if row is not None and not 0 <= row < count]:
        raise UserError(
            f"{source}: a token has the id {outside[0]:,}, but {table} has {count:,} rows; give the tokenizer and the weights of one model"
        )
    return [found[token] for token in tokens]


def main(argv: list[str]) -> None:
    """Runs the command line."""
    main_of(__doc__, argv, "Llama or a GPT-2", convert)
