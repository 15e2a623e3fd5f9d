"""What the page's view computes without a browser: words of pieces, attention between words, and calls that never pile up."""

import pytest

from one_layer.data.text.byte_level import pieces
from tests.page.node import evaluate

WORDS = "const { wordsOf, betweenWords } = await import(`${page}/view/words.js`); return given.map(wordsOf);"


def test_pieces_of_every_kind_become_words():
    kinds = [
        ["ein", "hol@@", "z@@", "haus", "&apos;s", "</s>"],
        ["▁ein", "▁hol", "z", "haus", "&apos;s", "</s>"],
        ["ein", "Ġhol", "z", "haus", "</s>"],
        ["constructor", "toString", "</s>"],
    ]
    subwords, metaspace, letters, names = evaluate(WORDS, kinds)
    assert [word["text"] for word in names] == ["constructor", "toString", "end"]
    assert [word["text"] for word in subwords] == ["ein", "holzhaus", "'s", "end"]
    assert [word["places"] for word in subwords] == [[0], [1, 2, 3], [4], [5]]
    assert [word["text"] for word in metaspace] == ["ein", "holzhaus's", "end"]
    assert [word["text"] for word in letters] == ["ein", "holzhaus", "end"]


def test_pieces_of_bytes_are_shown_as_text():
    script = """
        const { shownIds } = await import(`${page}/text/units.js`);
        const { wordsOf } = await import(`${page}/view/words.js`);
        const all = given.map((each) => shownIds(...each));
        return all.map((shown) => [shown, wordsOf(shown).map(({ text }) => text)]);
    """
    special, letters = ["<s>", "<pad>", "</s>", "<unk>"], pieces("")
    text = "für дом".encode()
    byte = [[4 + each for each in text] + [2], [*special, *letters], "byte-level"]
    # One of these pieces ends within a character.
    bpe = [
        [4, 5, 6, 2],
        [*special, "f" + letters[0xC3], letters[0xBC] + "r", "Ġ" + "".join(letters[each] for each in text[5:])],
        "byte-level",
    ]
    (shown, words), (few, of_few) = evaluate(script, [byte, bpe])
    assert shown == ["f", "", "ü", "r", "Ġ", "", "д", "", "о", "", "м", "</s>"] and words == ["für", "дом", "end"]
    assert few == ["f", "ür", "Ġдом", "</s>"] and of_few == ["für", "дом", "end"]


def test_bytes_of_a_character_are_shown_as_the_character_and_others_as_they_are():
    script = """
        const { shownIds } = await import(`${page}/text/units.js`);
        return given.map((tokens) => shownIds(tokens.map((_, id) => id), tokens, "metaspace"));
    """
    pizza = [f"<0x{each:02X}>" for each in "🍕é".encode()]
    assert evaluate(script, [["▁a", "▁", *pizza, "▁b"], ["▁a", *pizza[:3], "b", pizza[0]]]) == [
        ["▁a", "▁", "🍕é", "", "", "", "", "", "▁b"],
        ["▁a", *pizza[:3], "b", pizza[0]],
    ]


def test_attention_of_a_word_is_shared_out_over_all_the_words():
    script = """
        const { wordsOf, betweenWords } = await import(`${page}/view/words.js`);
        return betweenWords(given.attention, wordsOf(given.targets), wordsOf(given.sources));
    """
    attention = [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7], [0.0, 0.0, 1.0]]
    found = evaluate(script, {"attention": attention, "targets": ["a@@", "b", "</s>"], "sources": ["x", "y@@", "z"]})
    assert found == [pytest.approx([0.3, 0.7]), pytest.approx([0.0, 1.0])]
    assert [sum(row) for row in found] == pytest.approx([1, 1])


def test_only_the_newest_question_waits_and_a_failed_one_does_not_block():
    script = """
        const { newest } = await import(`${page}/view/client.js`);
        const [asked, shown, failed, open] = [[], [], [], []];
        const place = { setAttribute() {}, classList: { add() {}, remove() {} }, set textContent(text) { failed.push(text); } };
        const answer = (text) => new Promise((resolve, reject) => {
            asked.push(text);
            open.push(() => (text === "bad" ? reject(new Error("wrong")) : resolve(text.toUpperCase())));
        });
        const ask = newest(place, answer, (result) => shown.push(result));
        for (const text of ["a", "b", "c", "bad"]) ask(text);
        for (const text of [null, "d"]) {
            open.shift()();
            await new Promise((resolve) => setTimeout(resolve));
            if (text) ask(text);
        }
        open.shift()();
        await new Promise((resolve) => setTimeout(resolve));
        return { asked, shown, failed };
    """
    assert evaluate(script, None) == {"asked": ["a", "bad", "d"], "shown": ["D"], "failed": ["wrong"]}


def test_matrices_come_in_the_order_of_the_network():
    script = (
        "const { inOrder } = await import(`${page}/view/names.js`);"
        "return inOrder(given.map((role) => ({ role }))).map(({ role }) => role);"
    )
    order = [
        "encoder/self_attention/query",
        "encoder/self_attention/key",
        "encoder/ffn/in",
        "encoder/ffn/out",
        "encoder/embedding",
    ]
    order += [
        "decoder/self_attention/value",
        "decoder/cross_attention/output",
        "decoder/ffn/in",
        "shared/embedding",
        "head/dense",
    ]
    assert evaluate(script, sorted(order)) == order


def test_words_that_are_still_the_same():
    script = (
        "const { sameWords } = await import(`${page}/view/damage.js`); return given.map((pair) => sameWords(...pair));"
    )
    pairs = [["a b c", "a b c"], ["a a a", "a b c d"], ["", "a b"]]
    assert evaluate(script, pairs) == [1, 0.25, 0]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("How are you? I lost my keys.", ["How are you?", "I lost my keys."]),
        ("Mr. Smith met Dr. Who at 3. Mai. Really!", ["Mr. Smith met Dr. Who at 3. Mai.", "Really!"]),
        ('He said: "No!" Then he left…  Why? ', ['He said: "No!"', "Then he left…", "Why? "]),
        ("one line\n\n  another one. and more\r\n", ["one line", "", "  another one. and more", ""]),
        ("It costs 3.50 euros at www.a.de. \n", ["It costs 3.50 euros at www.a.de. ", ""]),
        ("今日は暑い。「雨だ。」と言った！傘を 3本？", ["今日は暑い。", "「雨だ。」と言った！", "傘を 3本？"]),
        ("“你好。”他说。真的？!『はい。』と", ["“你好。”他说。", "真的？!『はい。』と"]),
        ("هل أنت بخير؟ نعم. حسنا", ["هل أنت بخير؟", "نعم.", "حسنا"]),
        ("वह आया। डॉ. सिंह गया।", ["वह आया।", "डॉ. सिंह गया।"]),
        ("", [""]),
    ],
)
def test_a_text_is_translated_sentence_by_sentence_and_nothing_between_them_is_lost(text, sentences):
    script = "const { sentencesOf } = await import(`${page}/view/sentences.js`); return sentencesOf(given);"
    found = evaluate(script, text)
    assert [each["text"] for each in found] == sentences
    assert "".join(each["text"] + each["after"] for each in found) == text
