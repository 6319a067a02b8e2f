"""Characters that a text should rather not hold are counted by line, with the place of the first."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nmt.data.oddities import Oddities, name


def look(*lines: str, first: int = 1) -> Oddities:
    found = Oddities()
    found.look(list(lines), lambda index: f"f:{first + index}")
    return found


def test_a_character_is_counted_once_a_line_with_its_first_place() -> None:
    """Case 1."""
    found = look("a", "b\u2028c\u2028d", "e", "\u2028\0", "f\u2028")
    assert found.tree() == {"U+0000": {"lines": 1, "first": "f:4"}, "U+2028": {"lines": 3, "first": "f:2"}}
    assert found.sentences() == [
        "U+0000 NUL inside 1 line, first at f:4: removed",
        "U+2028 LINE SEPARATOR inside 3 lines, first at f:2: turned into spaces",
    ]


BREAKING = "\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029\n"
REMOVED = "\0\x01\x07\x1b\x1f\x7f\ufeff"
KEPT = "\u200b\u200c\u200d\u200e\u2060\u00ad\ufffd\ue000\U000e0001\x80\u0378"


@pytest.mark.parametrize(
    ("characters", "end"), [(BREAKING, "turned into spaces"), (REMOVED, "removed"), (KEPT, "kept")]
)
def test_what_becomes_of_a_character_is_said(characters: str, end: str) -> None:
    """Cases 1 to 4."""
    for character in characters:
        (sentence,) = look(f"a{character}b").sentences()
        assert sentence.startswith(f"U+{ord(character):04X}")
        assert sentence.endswith(f"inside 1 line, first at f:1: {end}")


@pytest.mark.parametrize("line", ["", "plain", "a\tb", "猫 🐈 é ￼ ▁ <s>", "a\u00a0b\u3000c\u202fd", "e\u0301"])
def test_ordinary_text_is_not_odd(line: str) -> None:
    """Tabs, spaces of all widths, marks and whatever else can be printed."""
    assert look("x", line, "y").sentences() == []


@pytest.mark.parametrize(
    ("character", "expected"),
    [
        ("\u2028", "U+2028 LINE SEPARATOR"),
        ("\x0c", "U+000C FORM FEED"),
        ("\ufeff", "U+FEFF BYTE ORDER MARK"),
        ("\x85", "U+0085 NEXT LINE"),
        ("\u200d", "U+200D ZERO WIDTH JOINER"),
        ("\ue000", "U+E000"),
        ("\x01", "U+0001"),
    ],
)
def test_characters_have_the_names_that_people_know(character: str, expected: str) -> None:
    assert name(character) == expected


def test_decomposed_characters_are_told_only_where_others_are_composed() -> None:
    decomposed, composed = "cafe\u0301", "café"
    assert look(decomposed, decomposed).sentences() == []
    assert look(composed).sentences() == []
    mixed = look("plain", decomposed, composed, decomposed)
    assert mixed.tree() == {"decomposed": {"lines": 2, "first": "f:2"}}
    (sentence,) = mixed.sentences()
    assert sentence.startswith("mixed normalisation forms: 2 lines hold decomposed characters (not NFC), first at f:2")
    assert "nfkc" in sentence
    # A character of one line does not go together with that of the next.
    assert look("e", "\u0301", composed).sentences() == []


def test_parts_add_up_as_if_they_were_looked_at_together() -> None:
    lines = ["a\u2028", "cafe\u0301", "\ufffd", "café", "b\u2028\0", "\ufffd\ufffd"]
    together = look(*lines)
    for cut in range(len(lines) + 1):
        parts = look(*lines[:cut])
        parts.add(look(*lines[cut:], first=1 + cut))
        assert parts == together
        assert parts.sentences() == together.sentences()
    assert together.tree()["U+FFFD"] == {"lines": 2, "first": "f:3"}


def test_a_byte_order_mark_at_the_start_of_a_file_is_counted(tmp_path: Path) -> None:
    """Case 3: also of a packed file; reading leaves it out."""
    files = {name: tmp_path / name for name in ("plain", "packed", "without", "empty")}
    files["plain"].write_bytes(b"\xef\xbb\xbfa\n")
    files["packed"].write_bytes(gzip.compress(b"\xef\xbb\xbfa\n"))
    files["without"].write_bytes(b"a\n\xef\xbb\xbfb\n")
    files["empty"].write_bytes(b"")
    found = Oddities()
    for file in files.values():
        found.look_at_start(file)
    assert found.sentences() == [f"U+FEFF BYTE ORDER MARK inside 2 lines, first at {files['plain']}:1: removed"]
