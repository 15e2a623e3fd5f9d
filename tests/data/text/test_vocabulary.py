"""Vocabularies: order, special tokens, unknown tokens, and files, vocab.json among them, that keep every token."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer.data.special_tokens import EOS, UNK
from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary, read_vocabulary_json, split_tokens
from tests import user_error

ODD = ["\u2028", "\u00a0", "\ufeff", "\ufeffa", "\t", "a\rb", "\x85", "#version:", "3", "@@", "ß", "😀"]
TOKEN = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_characters=" \n", exclude_categories=["Cs"])))
TOKENS = st.lists(TOKEN.filter(lambda token: token and token not in SPECIALS), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vocabulary")


def test_a_text_without_tokens_is_refused() -> None:
    with user_error("a side of the training text has no tokens: its lines are empty"):
        Vocabulary.build(["", " "])


@given(TOKENS)
def test_every_token_survives_encoding_and_the_file(folder: Path, tokens: list[str]) -> None:
    line = " ".join(tokens)
    vocabulary = Vocabulary.build([line])
    vocabulary.save(folder / "v.txt")
    loaded = Vocabulary.load(folder / "v.txt")
    assert loaded == vocabulary
    assert loaded.counts == vocabulary.counts
    assert loaded.fingerprint == vocabulary.fingerprint
    ids = loaded.encode(line)
    assert ids.dtype == np.int32 and len(ids) == len(tokens) + 1 and ids[-1] == EOS and ids[:-1].min() > UNK
    assert loaded.decode(ids) == line


@given(st.lists(TOKENS, min_size=1, max_size=4))
def test_order_is_falling_count_then_token(lines: list[list[str]]) -> None:
    counts = Counter(token for line in lines for token in line)
    vocabulary = Vocabulary.build(map(" ".join, lines))
    assert vocabulary.tokens[:4] == SPECIALS and vocabulary.counts[:4] == (0, 0, 0, 0)
    learned = list(zip(vocabulary.tokens, vocabulary.counts, strict=True))[4:]
    assert dict(learned) == counts
    assert learned == sorted(learned, key=lambda item: (-item[1], item[0]))


def test_ids() -> None:
    vocabulary = Vocabulary.build(["b a b", "c  b "])
    assert vocabulary.tokens == ("<s>", "<pad>", "</s>", "<unk>", "b", "a", "c")
    assert len(vocabulary) == 7
    assert vocabulary.encode(" c  b x").tolist() == [6, 4, 3, 2]
    assert vocabulary.encode("").tolist() == [2]
    assert vocabulary.decode([2]) == ""
    assert vocabulary.decode([0, 6, 1, 3, 4, 2, 5, 5]) == "c <unk> b"
    assert vocabulary.decode(np.array([5, 4], np.int32)) == "a b"
    assert split_tokens("a\u00a0b  c\td ") == ["a\u00a0b", "c\td"]


def test_special_tokens_in_the_text_are_unknown() -> None:
    vocabulary = Vocabulary.build(["a </s> <pad> b <unk> <s>"])
    assert vocabulary.tokens == (*SPECIALS, "a", "b")
    assert vocabulary.encode("a </s> <pad> b <s> <unk>").tolist() == [4, UNK, UNK, 5, UNK, UNK, EOS]


def test_fingerprint_depends_only_on_tokens_and_their_order() -> None:
    one, other = Vocabulary.build(["a a b"]), Vocabulary.build(["a a a b"])
    assert one == other and one.fingerprint == other.fingerprint and one.counts != other.counts
    assert one.fingerprint != Vocabulary.build(["b b a"]).fingerprint
    assert one.fingerprint == "e8111e772a1f70c5f62bf5cdd058bc77"  # runs store it, so it must not change


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a 2\nb\n", r"line 2: 'b' is not of the form `token count`"),
        ("a 2\n\nb 1\n", r"line 2: '' is not"),
        (" 2\n", r"line 1: ' 2' is not"),
        ("a 2.5\n", r"line 1: 'a 2.5' is not"),
        ("a --2\n", r"line 1: 'a --2' is not"),
        ("a ²\n", r"line 1: 'a ²' is not"),
        ("a 2\nb 1\na 1\n", r"line 3: 'a' is already in line 1"),
        ("a 2\n<pad> 1\n", r"line 2: '<pad>' is a special token"),
        ("a 2\nb " + "9" * 5000 + "\n", r"line 2: 'b 9{190,198}.* is not of the form"),
        ("a 2\n" + "b " * 2**19 + "\n", r"line 2: 'b b .* is not of the form"),  # in no time that grows with a square
    ],
)
def test_malformed_files(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "v.txt").write_text(content, encoding="utf-8")
    with user_error(rf"v\.txt, {message}"):
        Vocabulary.load(tmp_path / "v.txt")


def test_a_token_that_is_there_twice() -> None:
    with user_error("'a' more than once"):
        Vocabulary((*SPECIALS, "a", "b", "a"))


def test_missing_counts_are_written_as_zeros(tmp_path: Path) -> None:
    Vocabulary((*SPECIALS, "a")).save(tmp_path / "v.txt")
    assert (tmp_path / "v.txt").read_text() == "a 0\n"


def test_fairseqs_dictionary_has_the_same_order(shared: Path) -> None:
    path = shared / "data/iwslt14/fairseq_dict.de.txt"
    vocabulary = Vocabulary.load(path)
    assert len(vocabulary) == 4 + len(read_lines(path)) == 4 + 8844
    learned = [item for item in zip(vocabulary.tokens, vocabulary.counts, strict=True) if item[1]]
    assert learned == sorted(learned, key=lambda item: (-item[1], item[0]))
    line = read_lines(shared / "data/iwslt14/test.bpe10k.de")[0]
    assert vocabulary.decode(vocabulary.encode(line)) == line


KEYS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters=" \n"), min_size=1), unique=True)
RANKED = {token: number for number, token in enumerate(SPECIALS)}


@given(KEYS, st.randoms(), st.booleans())
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
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"a": ' + "1" * 5000 + "}", "cannot be read as JSON"),
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
    with user_error(rf"vocab\.json[:,]? .*{message}" if "JSON object" not in message else message):
        read_vocabulary_json(tmp_path / "vocab.json")
