"""Single sentences of a validation set: which were translated well, which badly, and what differs."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.metrics import sentence_chrf

SHOWN = 10  # of the best, of the worst, and of those in the middle
LONGEST = 1_000  # characters of a line that are shown
BINS = 20  # of the histogram of scores
# Scripts written without spaces, by how the names of their letters begin.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
Marked = list[tuple[str, bool]]  # text in parts, each with whether it differs


class Sentence(NamedTuple):
    """A translation, the references that it is measured by, and its chrF."""

    number: int  # of its line, from 1
    src: str
    references: tuple[str, ...]
    translation: str
    score: float


def measured(texts: Sequence[tuple[str, tuple[str, ...]]], translations: Sequence[str]) -> list[Sentence]:
    """The sentences of a set, worst first."""
    values = [sentence_chrf(one, refs) for one, (_, refs) in zip(translations, texts, strict=True)]
    rows = enumerate(zip(texts, translations, values, strict=True), 1)
    return sorted((Sentence(i, *text, line, value) for i, (text, line, value) in rows), key=lambda one: one.score)


def tree(worst_first: Sequence[Sentence]) -> dict[str, Any]:
    """Examples with their differences marked, and how many sentences have which score."""
    middle = max(0, (len(worst_first) - SHOWN) // 2)
    counts = [0] * BINS
    for one in worst_first:
        counts[min(BINS - 1, int(one.score * BINS / 100))] += 1
    return {
        "lines": len(worst_first),
        "groups": {
            "worst": [_example(one) for one in worst_first[:SHOWN]],
            "middle": [_example(one) for one in worst_first[middle : middle + SHOWN]],
            "best": [_example(one) for one in worst_first[::-1][:SHOWN]],
        },
        "histogram": counts,
    }


def _example(one: Sentence) -> dict[str, Any]:
    values = [sentence_chrf(one.translation, [text]) for text in one.references]
    nearest = one.references[values.index(max(values))]
    translation, reference = differences(_cut(one.translation), _cut(nearest))
    return {
        "number": one.number,
        "score": one.score,
        "src": _cut(one.src),
        "translation": translation,
        "reference": reference,
        "references": len(one.references),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def differences(translation: str, reference: str) -> tuple[Marked, Marked]:
    """Both texts, with what stands only in one of them marked, by words."""
    ours, theirs = words(translation), words(reference)
    # A space takes no part in it: it goes with the word before it.
    matcher = difflib.SequenceMatcher(None, [w.strip() for w in ours], [w.strip() for w in theirs], autojunk=False)
    left: Marked = []
    right: Marked = []
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, part in ((left, ours[a:b]), (right, theirs[c:d])):
            if part:
                side.append(("".join(part), kind != "equal"))
    return left, right


def words(text: str) -> list[str]:
    """Words, signs and letters of scripts without spaces, each with the white space after it."""
    found: list[str] = []
    before = " "
    for char in text:
        goes_on = char.isspace() or unicodedata.category(char)[0] == "M"  # a mark belongs to its letter
        if not found or (not goes_on and (before.isspace() or _alone(before) or _alone(char))):
            found.append(char)
        else:
            found[-1] += char
        before = char
    return found


def _alone(char: str) -> bool:
    return unicodedata.category(char)[0] in "PS" or unicodedata.name(char, "").startswith(UNSPACED)
