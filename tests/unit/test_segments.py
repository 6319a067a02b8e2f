"""Long lines in parts, and whole again."""

from __future__ import annotations

import pytest

from nmt.tokenizer.segments import Segment, join, split


def words(texts: list[str]) -> list[int]:
    return [len(text.split()) for text in texts]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        (
            "He said: “No.” (Yes!) Then 3.5 m, at example.com.",
            ["He said: “No.”", "(Yes!)", "Then 3.5 m, at example.com."],
        ),
        ("What?! No...  Yes", ["What?!", "No...", "Yes"]),
        ("猫。狗！鸟？“鱼。”马", ["猫。", "狗！", "鸟？", "“鱼。”", "马"]),
        ("यह है। वह था॥ अब", ["यह है।", "वह था॥", "अब"]),
        ("ما هذا؟ هذا كتاب", ["ما هذا؟", "هذا كتاب"]),
        ("یہ ہے۔ وہ", ["یہ ہے۔", "وہ"]),
        ("no end at all", ["no end at all"]),
        (". . \u200b", [".", "."]),
    ],
)
def test_sentences_are_cut_at_their_ends(text: str, sentences: list[str]) -> None:
    assert [segment.text for segment in split(text, 100, words)] == sentences


def test_only_what_is_still_too_long_is_cut_at_white_space() -> None:
    found = [segment.text for segment in split("a b. c d e f g h. i", 3, words)]
    assert found == ["a b.", "c d e", "f g h.", "i"]


def test_parts_are_as_long_as_allowed_but_for_one_long_word() -> None:
    def letters(texts: list[str]) -> list[int]:
        return [sum(not c.isspace() for c in text) for text in texts]

    assert [s.text for s in split("ab cd efghijk lm", 4, letters)] == ["ab cd", "efghijk", "lm"]


@pytest.mark.parametrize(
    ("source", "translations", "line"),
    [
        ("One. Two.", ["Eins.", "Zwei."], "Eins. Zwei."),
        ("猫。狗。 鸟。", ["猫。", "狗。", "鸟。"], "猫。狗。 鸟。"),
        ("“猫。”狗。", ["“猫。”", "狗。"], "“猫。”狗。"),
        ("猫。狗。", ["A cat.", "A dog."], "A cat. A dog."),
        ("猫。狗。鸟。", ["A cat.", "", "A bird."], "A cat. A bird."),
        ("One. Two.", ["", "Zwei."], "Zwei."),
        ("a b c d", ["a b c", "d"], "a b c d"),
    ],
)
def test_translations_of_parts_become_one_line(source: str, translations: list[str], line: str) -> None:
    """With spaces, but for marks that no space follows, where none followed in the source."""
    parts = list(split(source, 3, words))
    assert len(parts) == len(translations)
    pairs = zip(parts, translations, strict=True)
    assert join([Segment(text, part.glued) for part, text in pairs]) == line
