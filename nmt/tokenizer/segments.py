"""A line that is too long for a model as several shorter ones, and their translations as one line again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nmt.tokenizer.text import blank

# A sentence ends at . ! ? … before white space, and at marks that stand for nothing else wherever they are.
ENDS = re.compile(r"""[.!?…]+["'”’»)\]]*(?=\s)|[。！？।॥؟۔]+["'”’»)\]」』）》]*""")
WIDE_END = re.compile("[。！？][”’」』）》]*$")  # scripts with these marks put no space after them


class Segment(NamedTuple):
    text: str
    glued: bool = False  # no white space stood before it


def split(text: str, most: int, count: Callable[[list[str]], list[int]]) -> Iterator[Segment]:
    """The sentences of a text, and those of more than `most` pieces in parts, cut at white space.

    `count` tells how many pieces texts have. A part is longer than `most` only if it is one word.
    """
    sentences = list(_sentences(text))
    for sentence, pieces in zip(sentences, count([sentence.text for sentence in sentences]), strict=True):
        if pieces <= most:
            yield sentence
        else:
            yield from map(Segment, _packed(sentence.text.split(), most, count))


def _sentences(text: str) -> Iterator[Segment]:
    start = 0
    for end in [*(mark.end() for mark in ENDS.finditer(text)), len(text)]:
        part = text[start:end]
        if not blank(part):
            yield Segment(part.strip(), start > 0 and not part[0].isspace())
        start = end


def _packed(words: list[str], most: int, count: Callable[[list[str]], list[int]]) -> Iterator[str]:
    part: list[str] = []
    pieces = 0
    for word, its in zip(words, count(words), strict=True):
        if part and pieces + its > most:
            yield " ".join(part)
            part, pieces = [], 0
        part.append(word)
        pieces += its
    yield " ".join(part)


def join(translations: list[Segment]) -> str:
    """One line: with spaces between, but for a sentence that was glued to the one before, if that one's translation
    ends in a mark that no space follows. (So a line of Chinese becomes one of English with spaces.)"""
    line = ""
    for text, glued in translations:
        space = " " if line and text and not (glued and WIDE_END.search(line)) else ""
        line += space + text
    return line
