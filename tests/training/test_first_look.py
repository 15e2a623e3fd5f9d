"""What a run says of the text that it trains on, before it trains."""

import re

import pytest

from one_layer.data.text.telling import swapped
from one_layer.tasks import TASKS
from one_layer.training.first_look import first_look
from tests import tiny

LINES = {
    "en": ["The dog is in the garden.", "A man of the city went to work with it."],
    "de": ["Der Hund ist in dem Garten.", "Ich habe das nicht mit der Frau und dem Kind gesehen."],
    "fr": ["Le chien est dans le jardin.", "Il a une maison et des enfants que les gens aiment."],
    "ru": ["Собака в саду.", "Человек пошёл на работу."],
    "ja": ["犬は庭にいます。", "彼は仕事に行きました。"],
}
PAIRS = [(one, other) for one in LINES for other in LINES if one != other]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_swapped_sides_are_seen_and_right_ones_are_not(source: str, target: str) -> None:
    assert swapped(LINES[target], LINES[source], (source, target))
    assert not swapped(LINES[source], LINES[target], (source, target))
    assert not swapped(LINES[source], LINES[source], (source, target)), "one side alone is no swap"


def test_languages_that_are_not_easy_to_tell_are_never_called_swapped() -> None:
    assert not swapped(LINES["de"], LINES["en"], ("en", "xx"))
    assert not swapped(LINES["de"], LINES["en"], ("en-GB", "en-US"))
    assert not swapped(["1 2 3"], ["4 5 6"], ("en", "de"))
    assert swapped(LINES["de"], LINES["en"], ("eng", "german")), "however their names are written"


@pytest.mark.parametrize("pieces", [{"tokenize": True, "lowercase": True}, {"bpe_kind": "metaspace"}])
@pytest.mark.parametrize("wrong", [False, True])
def test_the_first_pair_is_shown_as_text_pieces_and_ids(
    wrong: bool, pieces: dict[str, object], tmp_path, caplog
) -> None:
    languages = ("en", "de")
    for name, language in zip(languages, languages[::-1] if wrong else languages, strict=True):
        for part in ("train", "valid", "test"):
            (tmp_path / f"{part}.{name}").write_text("\n".join(LINES[language]) + "\n")
    source = {"source": "text", "directory": str(tmp_path), "source_language": "en", "target_language": "de"}
    run = tiny.run({f"data.{key}": value for key, value in {**source, **pieces, "bpe_merges": 20}.items()})
    corpus = TASKS["translation"].corpus(run.data)
    with caplog.at_level("INFO"):
        first_look(corpus)
    shown = caplog.messages[1:4]
    line = LINES["de" if wrong else "en"][0]
    assert shown[0].split(maxsplit=1) == ["en", line.lower() if "lowercase" in pieces else line]
    assert re.sub("@@ |[▁ ]", "", shown[1].partition("pieces ")[2]).lower().startswith("derhund" if wrong else "thedog")
    assert shown[2].partition("ids")[2].split() == [str(each) for each in corpus.train.source[0]]
    assert ("seem to be swapped" in caplog.text) == wrong
