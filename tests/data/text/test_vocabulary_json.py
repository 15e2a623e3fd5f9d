"""vocab.json: its ids are kept, and one sentence says why a file is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.data.text.vocabulary_json import read_vocabulary_json
from one_layer.system.errors import UserError

TOKENS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters=" \n"), min_size=1), unique=True)
RANKED = {token: number for number, token in enumerate(SPECIALS)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json")


@given(TOKENS, st.randoms(), st.booleans())
def test_ids_do_not_depend_on_the_order_in_the_file(folder: Path, tokens: list[str], random, escaped: bool) -> None:
    ordered = [*SPECIALS, *dict.fromkeys([token for token in tokens if token not in SPECIALS] or ["word"])]
    pairs = list(zip(ordered, range(len(ordered)), strict=True))
    random.shuffle(pairs)
    (folder / "vocab.json").write_text(
        json.dumps(dict(pairs), ensure_ascii=escaped, indent=random.choice([None, 1])), "utf-8"
    )
    vocabulary = read_vocabulary_json(folder / "vocab.json")
    assert vocabulary.tokens == tuple(ordered)
    vocabulary.save(folder / "vocabulary.txt")
    assert Vocabulary.load(folder / "vocabulary.txt") == vocabulary


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"<s>": 0,\n"<pad>": 1, "</s', r"cannot be read as JSON \(.*line 2 .*\); copy it again"),
        ("[]x", "cannot be read as JSON"),
        ('["a", "b"]', "must be a JSON object that maps every token to its id"),
        ('[["<s>", 0]]', "must be a JSON object that maps every token to its id"),
        ('{"<s>": true}', "must be a JSON object that maps every token to its id"),
        ('{"<s>": {"a": 1}}', "must be a JSON object that maps every token to its id"),
        ("3", "must be a JSON object that maps every token to its id"),
        ("{}", "the ids 0 to 3 are '';"),
        (
            json.dumps({"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3}),
            "0 to 3 are '<pad> <s> </s> <unk>'; they must be <s>",
        ),
        (json.dumps({"!": 0, '"': 1, "#": 2, "$": 3, "<s>": 4}), "they must be <s> <pad> </s> <unk>, as in RoBERTa's"),
        (json.dumps({**RANKED, "a": 4, "b": 6}), "no token has the id 5; 6 tokens must have the ids 0 to 5"),
        (json.dumps({**RANKED, "a": -1}), "must be a JSON object that maps every token to its id"),
        (json.dumps({**RANKED, "a": 4, "b": 4}), "'b' and 'a' have the same id, 4"),
        (json.dumps(RANKED)[:-1] + ', "a": 4, "a": 5}', "cannot be read as JSON .it has 'a' twice.; copy it again"),
        (json.dumps(RANKED), "holds only the four special tokens"),
        (json.dumps({**RANKED, "a b": 4}), "the token 'a b' must not be empty, nor contain a space"),
        (json.dumps({**RANKED, "": 4}), "the token '' must not be empty"),
        (json.dumps({**RANKED, "\ud800": 4}), "must not be empty, nor contain a space"),
    ],
)
def test_invalid_files_are_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "vocab.json").write_text(content)
    with pytest.raises(UserError, match=rf"vocab\.json[:,]? .*{message}" if "JSON object" not in message else message):
        read_vocabulary_json(tmp_path / "vocab.json")
