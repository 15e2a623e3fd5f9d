"""The tokenizer of a causal model as Hugging Face's `tokenizer.json`, which gives a text the ids of `one_layer.data.text.units`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from one_layer.data.special_tokens import EOS, PAD, UNK
from one_layer.data.text import byte_level
from one_layer.data.text.units import Bytes, Characters, Unit
from one_layer.data.text.vocabulary import SPECIALS
from one_layer.system.errors import UserError


def write_tokenizer(unit: Unit, merges: str | None, context: int, folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json. A text begins with `</s>`, as the prompts of this program do.

    The special tokens are in the vocabulary alone, and none is added to the tokenizer: an added one is found in text, and `<s>` in a text
    is three characters. Transformers adds them itself, and then leaves text alone by `split_special_tokens`.
    `context` is the longest text in tokens. Raises: UserError for a vocabulary without some piece of its merges.
    """
    from tokenizers import processors

    made = _characters(unit) if isinstance(unit, Characters) else _pieces(unit, merges or "")
    end = SPECIALS[EOS]
    made.post_processor = processors.TemplateProcessing(single=f"{end} $A", special_tokens=[(end, EOS)])
    made.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{"bos_token": end, "eos_token": end, "pad_token": SPECIALS[PAD], "unk_token": SPECIALS[UNK]},
        **{"model_max_length": context, "clean_up_tokenization_spaces": False},
        "split_special_tokens": True,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n", "utf-8")


def _characters(unit: Characters) -> Any:
    """Each character is a token."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(
        models.WordLevel({unit.written(number): number for number in range(len(unit.vocabulary))}, SPECIALS[UNK])
    )
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    made.decoder = decoders.Fuse()
    return made


def _pieces(unit: Unit, merges: str) -> Any:
    """The bytes of a text, merged if there are merges. Lines are split one by one, with their line ends."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    known = {token: number for number, token in enumerate(unit.vocabulary.tokens)}
    if missing := [piece for piece in byte_level.pieces(merges) if piece not in known]:
        raise UserError(
            f"the vocabulary lacks {missing[0]!r}, which the merges of its BPE make, so that no tokenizer.json says how a text is split; "
            "export a model whose vocabulary has all pieces"
        )
    pairs = [(left, right) for _, left, right in byte_level.pairs_of(merges, "the merges")] if merges else []
    made = Tokenizer(models.BPE(known, pairs))
    lines = pre_tokenizers.Split(Regex(r"[^\n]*\n|[^\n]+"), "isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not isinstance(unit, Bytes))
    made.pre_tokenizer = pre_tokenizers.Sequence([lines, letters])
    made.decoder = decoders.ByteLevel()
    return made
