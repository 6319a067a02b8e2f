"""Where systems differ: figures counted by hand."""

from __future__ import annotations

import pytest

from nmt.compare import (
    Band,
    Comparison,
    Numbers,
    by_source_length,
    by_word_frequency,
    check_numbers,
    letter,
    most_different,
    worst,
)
from nmt.metrics import METRICS, Score, sentence_chrf

REFERENCES = ["the cat sat", "a dog", "two red birds sing", "猫坐着"]


def test_lines_are_put_together_by_the_words_of_their_sources():
    """Four parts with about as many lines each; a Chinese character is a word. Each is scored by itself."""
    sources = ["one", "one two", "一二三", "one two three four", "five words are in this", "six words are in this one"]
    references = [["a b c d", "e f g h", "i j k l", "m n o p", "q r s t", "u v w x"]]
    right, wrong = references[0], ["a b c d", "e f g h", "x", "x", "x", "x"]
    bands = by_source_length(sources, references, [right, wrong], METRICS["bleu"]("en"))
    assert [(band.kind, band.size) for band in bands] == [("1-2", 2), ("3-3", 1), ("4-5", 2), ("6-6", 1)]
    assert [band.figures[0] for band in bands] == pytest.approx([100] * 4)
    assert [band.figures[1] for band in bands] == pytest.approx([100, 0, 0, 0])


def test_sources_of_one_length_are_one_band():
    bands = by_source_length(["a b"] * 3, [REFERENCES[:3]], [REFERENCES[:3]], METRICS["chrf"]("en"))
    assert [(band.kind, band.size) for band in bands] == [("2-2", 3)]


def test_words_are_put_together_by_their_frequency_in_training():
    """F1 by hand: of the four words seen once to nine times, one is missing, and another one stands there instead."""
    seen = {"the": 1000, "a": 100, "cat": 9, "dog": 1, "birds": 5, "red": 5, "sat": 10, "fish": 2}
    system = ["the cat sat", "a fish", "two red birds cry", "猫坐着"]
    bands = by_word_frequency(REFERENCES, [REFERENCES, system], seen)
    assert [(band.kind, band.size) for band in bands] == [
        ("0", 5),  # two, sing and three characters
        ("1-9", 4),
        ("10-99", 1),
        ("100-999", 1),
        ("1000+", 1),
    ]
    assert all(band.figures[0] == pytest.approx(100) for band in bands)
    assert [band.figures[1] for band in bands] == pytest.approx([80, 75, 100, 100, 100])


def test_a_band_without_a_word_is_left_out():
    assert [band.kind for band in by_word_frequency(["a a"], [["b"]], {"a": 3, "b": 2000})] == ["1-9"]


@pytest.mark.parametrize(
    ("source", "references", "translation", "missing", "wrong"),
    [
        ("1,000 men", ["1.000 Männer"], "1 000 Männer", 1, 2),  # a plain space groups nothing: these are 1 and 000
        ("1,000 men", ["1.000 Männer"], "1000 Männer", 0, 0),
        ("in 1999", ["1999"], "1998", 1, 1),
        ("in 1999", ["1999"], "", 1, 0),
        ("two dogs", ["2 Hunde"], "zwei Hunde", 0, 0),  # written out in the source
        ("2 dogs", ["zwei Hunde"], "2 Hunde", 0, 0),
        ("two dogs", ["zwei Hunde"], "3 Hunde", 0, 1),
        ("5 dogs", ["5 Hunde", "fünf Hunde"], "fünf Hunde", 0, 0),  # as one of the references has it
        ("5 and 5", ["5 und 5"], "5", 1, 0),
        ("at 七点", ["at ７ o'clock"], "at 7 o'clock", 0, 0),
        (None, ["10 Uhr"], "11 Uhr", 1, 1),
    ],
)
def test_numbers_that_are_missing_or_wrong(
    source: str | None, references: list[str], translation: str, missing: int, wrong: int
):
    sources = ["nothing", source] if source is not None else []
    found = check_numbers(sources, [["nichts", reference] for reference in references], ["nichts", translation])
    assert (found.missing, found.wrong) == (missing, wrong)
    assert found.lines == ([2] if missing or wrong else [])


def test_the_sentences_that_differ_most_come_first():
    other = ["the cat sat", "x", "two red birds sang", "猫坐着"]
    pairs = most_different([], [REFERENCES], REFERENCES, other, 5)
    assert [pair.line for pair in pairs] == [2, 3]
    assert pairs[0].translations == ("a dog", "x") and pairs[0].references == ["a dog"]
    assert pairs[0].chrf == pytest.approx((100, 0)) and pairs[1].chrf[1] == sentence_chrf(other[2], [REFERENCES[2]])
    assert most_different([], [REFERENCES], other, REFERENCES, 1)[0].chrf == pytest.approx((0, 100))
    assert most_different([], [REFERENCES], REFERENCES, other, 0) == []


def test_the_worst_sentences_come_first():
    found = worst(["s"] * 4, [REFERENCES], ["the cat sat", "x", "two red birds sang", "猫坐着"], 2)
    assert [line.line for line in found] == [2, 3]
    assert found[0].text("") == "line 2: chrf 0.0\n  source     s\n  reference  a dog\n  output     x"
    assert found[0].text("B").startswith("line 2: chrf 0.0 of B\n") and found[0].text("B").endswith("\n  B          x")


def test_what_is_the_same_for_all_is_not_printed():
    """Rows and whole tables; a line that all have wrong is not named."""
    scores = [[Score("bleu", value, "")] for value in (1.0, 2.0)]
    lengths = [Band("1-2", 3, [10.0, 20.0]), Band("3-4", 5, [7.001, 7.002])]
    frequencies, right = [Band("0", 9, [5.0, 5.0])], Numbers(4, 0, 0, [])
    text = Comparison("a", scores, lengths, frequencies, [right, right], [[], []]).text()
    assert "1-2" in text and "3-4" not in text
    assert "F1 of words" not in text and "numbers in digits" not in text and "differs most" not in text
    numbers = [Numbers(4, 1, 1, [3, 8]), Numbers(4, 2, 1, [3, 9])]
    text = Comparison("a", scores, lengths, frequencies, numbers, [[], []]).text()
    rows = [line.split() for line in text.splitlines()]
    assert ["A", "4", "1", "1", "8"] in rows and ["B", "4", "2", "1", "9"] in rows


@pytest.mark.parametrize("name", ["chrf", "ter"])
def test_what_is_better_depends_on_the_metric(name: str):
    """TER falls where chrF rises; a chance difference has no winner; the first and its like are none."""
    good = [f"the {animal} sat on the mat {i} times" for i, animal in enumerate(["cat", "dog", "bird", "fish"] * 10)]
    bad = [line.replace("the", "a").replace("sat", "set") for line in good]
    nearly = [*good[:-1], bad[-1]]
    scores = [list(pair) for pair in zip(METRICS[name]("en").resampled([bad, good, bad, nearly], [good]), strict=True)]
    text = Comparison("bad", scores, [], [], [check_numbers([], [good], bad)] * 4, []).text()
    rows = [line.split() for line in text.splitlines()]
    assert [row[-1] for row in rows if row[:1] in (["B"], ["C"], ["D"])][:3] == ["better", "equal", "better"]
    scores = [list(pair) for pair in zip(METRICS[name]("en").resampled([good, nearly], [good]), strict=True)]
    text = Comparison("good", scores, [], [], [check_numbers([], [good], bad)] * 2, []).text()
    assert "not significant" in text


def test_letters_of_systems():
    assert [letter(number) for number in (0, 25, 26)] == ["A", "Z", "AA"]
