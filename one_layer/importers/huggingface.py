"""Writes a model as a folder of Hugging Face's transformers (docs/engines.md). The package itself is not needed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from one_layer.data.special_tokens import EOS, PAD, UNK
from one_layer.data.stream_corpus import unit_of
from one_layer.data.text import byte_level
from one_layer.data.text.assets import TextAssets, save_text_assets
from one_layer.data.text.units import Bytes, Unit
from one_layer.data.text.vocabulary import SPECIALS
from one_layer.importers import llama, roberta, translation_weights
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel

PRECISIONS = ("float32",)


def write(model: TrainedModel, folder: Path, precision: str) -> None:
    """Writes config.json, model.safetensors and what reads text into `folder`, in float32, the one `precision`.

    Raises: UserError for a model that no class of transformers computes.
    """
    {"translation": _translation, "decoder": _llama}.get(str(model.config.family), _roberta)(model, folder)


def _llama(model: TrainedModel, folder: Path) -> None:
    state = llama.export(model.config, model.variables)
    context = model.data.block
    _save(folder, state, llama.write_options(model.config, context))
    _tokenizer(unit_of(model.data, model.assets), model.assets.codes, context, folder)
    if model.assets.codes is not None:
        _merges(model.assets, folder)


def _translation(model: TrainedModel, folder: Path) -> None:
    """The texts are prepared by the files that a run has: no tokenizer of transformers does what this program does to text."""
    state = translation_weights.export(model.config, model.variables)
    _save(folder, state, translation_weights.options(model.config, model.assets.languages))
    search = {"num_beams": model.settings.beam, "length_penalty": model.settings.length_penalty, "early_stopping": True}
    ends = {"decoder_start_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD, "suppress_tokens": [PAD]}
    _json(folder / "generation_config.json", {**search, **ends, "max_new_tokens": 256})
    save_text_assets(model.assets, folder)


def _roberta(model: TrainedModel, folder: Path) -> None:
    steps = model.assets.source_preprocessing
    if steps.codes is None or steps.bpe_kind != "byte-level" or steps.tokenize or steps.lowercase:
        raise UserError(
            f"the model of {model.source} reads text in another way than RoBERTa, whose tokens are pieces of byte-level BPE without "
            "tokenisation or lower-casing; only models with data.bpe_kind=byte-level can be exported"
        )
    state = roberta.export(model.variables, model.config)
    labels = model.assets.target_vocabulary.tokens[len(SPECIALS) :] if model.task == "classification" else ()
    _save(folder, state, roberta.write_options(model.config, labels))
    _merges(model.assets, folder)


def _merges(assets: TextAssets, folder: Path) -> None:
    """Writes the byte-level BPE in GPT-2's files."""
    codes = assets.codes or ""
    _json(folder / "vocab.json", assets.source_vocabulary.ids)
    version = "" if codes.startswith("#version:") else "#version: 0.2\n"  # readers skip the first line
    (folder / "merges.txt").write_text(version + codes, "utf-8")


def _save(folder: Path, state: dict[str, np.ndarray], options: dict[str, Any]) -> None:
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    _json(folder / "config.json", options)


def _json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _tokenizer(unit: Unit, merges: str | None, context: int, folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json. A text begins with `</s>`, as the prompts of this program do.

    The special tokens are in the vocabulary alone, and none is added to the tokenizer: an added one is found in text, and `<s>` in a text
    is three characters. Transformers adds them itself, and then leaves text alone by `split_special_tokens`.
    `context` is the longest text in tokens. Raises: UserError for a vocabulary without some piece of its merges.
    """
    from tokenizers import processors

    made = _pieces(unit, merges or "")
    end = SPECIALS[EOS]
    made.post_processor = processors.TemplateProcessing(single=f"{end} $A", special_tokens=[(end, EOS)])
    made.save(str(folder / "tokenizer.json"))
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{"bos_token": end, "eos_token": end, "pad_token": SPECIALS[PAD], "unk_token": SPECIALS[UNK]},
        **{"model_max_length": context, "clean_up_tokenization_spaces": False},
        "split_special_tokens": True,
    }
    _json(folder / "tokenizer_config.json", settings)


def _pieces(unit: Unit, merges: str) -> Any:
    """The bytes of a text, merged if there are merges. Lines are split one by one, with their line ends."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    known = unit.vocabulary.ids
    byte_level.check_pieces(
        byte_level.pieces(merges), known, "no tokenizer.json says how a text of this model is split"
    )
    pairs = [(left, right) for _, left, right in byte_level.pairs_of(merges, "the merges")] if merges else []
    made = Tokenizer(models.BPE(known, pairs))
    lines = pre_tokenizers.Split(Regex(r"[^\n]*\n|[^\n]+"), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not isinstance(unit, Bytes))
    made.pre_tokenizer = pre_tokenizers.Sequence([lines, letters])
    made.decoder = decoders.ByteLevel()
    return made
