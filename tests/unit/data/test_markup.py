"""Markup and placeholders are seen, and worth a word where they are many."""

from __future__ import annotations

import pytest

from nmt.data.markup import Markup


def look(*pairs: tuple[str, str], first: int = 1) -> Markup:
    found = Markup()
    found.look([src for src, _ in pairs], [tgt for _, tgt in pairs], lambda index: f"f:{first + index}")
    return found


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("press <b>OK</b>", "<b>"),
        ("end</seg>", "</seg>"),
        ('<a href="x">', '<a href="x">'),
        ("a &amp; b", "&amp;"),
        ("&#8217;s", "&#8217;"),
        ("see ``list``", "``"),
        ("see :class:`int`", ":class:`"),
        ("`the docs`_", "`_"),
        ("%s files", "%s"),
        ("%1$d of %2$d", "%1$d"),
        ("%(name)s", "%(name)s"),
        ("%@ is gone", "%@"),
        ("{0} and {}", "{0}"),
        ("{{user}}", "{{user}}"),
        ("$HOME", "$HOME"),
        (r"\emph{so}", r"\emph{"),
    ],
)
def test_markup_is_seen_on_either_side(line: str, text: str) -> None:
    for found in (look(("plain", "x"), (line, "y")), look(("plain", "x"), ("y", line))):
        assert (found.pairs, found.marked) == (2, 1)
        assert found.example == ("f:2", text)


@pytest.mark.parametrize(
    "line",
    ["plain", "a < b and b > c", "50% off", "100 %", "AT&T", "it costs $5", "3 <4", "a/b", "re: this", "<3", "猫"],
)
def test_ordinary_text_has_none(line: str) -> None:
    assert look((line, line)).marked == 0


def test_a_word_is_said_from_one_pair_in_twenty_on() -> None:
    plain, marked = ("a", "b"), ("a <i>", "b")
    sentence = look(*[plain] * 19, marked).sentence("po")
    assert sentence.startswith("po: markup or placeholders in 5% of the pairs looked at, first <i> at f:20; ")
    assert "tokenizer.symbols" in sentence
    assert look(*[plain] * 20, marked).sentence("po") == ""
    assert Markup().sentence("po") == ""


def test_parts_add_up_as_if_they_were_looked_at_together() -> None:
    pairs = [("a", "b"), ("c", "%s"), ("<b>", "d"), ("e", "f")]
    for cut in range(len(pairs) + 1):
        parts = look(*pairs[:cut])
        parts.add(look(*pairs[cut:], first=1 + cut))
        assert parts == look(*pairs)
