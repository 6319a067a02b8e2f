"""Markup and placeholders in text: what a translation has to carry over unchanged, and a model may garble."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MARKUP = re.compile(
    r"</?[a-zA-Z][^<>]*>"  # tags
    r"|&#?\w+;"  # entities
    r"|``|:\w+:`|`_"  # reStructuredText
    r"|%(?:\d+\$)?[@dsuif]|%\(\w+\)[ds]|\{\{?\w*\}?\}|\$[^\W\d]\w*"  # placeholders
    r"|\\[a-z]+\{"  # TeX
)
LEAST = 0.05  # of the pairs, to be worth a word


@dataclass
class Markup:
    """Counted in samples of pairs."""

    pairs: int = 0
    marked: int = 0
    example: tuple[str, str] = ("", "")  # place and text

    def look(self, src: list[str], tgt: list[str], where: Callable[[int], str]) -> None:
        """`where` says the place of a pair by its index."""
        self.pairs += len(src)
        for index, lines in enumerate(zip(src, tgt, strict=True)):
            if found := next(filter(None, map(MARKUP.search, lines)), None):
                self.marked += 1
                if not self.example[0]:
                    self.example = where(index), found[0]

    def add(self, later: Markup) -> None:
        self.pairs += later.pairs
        self.marked += later.marked
        self.example = self.example if self.example[0] else later.example

    def sentence(self, label: str) -> str:
        """For people, if there is enough of it."""
        if not self.pairs or self.marked / self.pairs < LEAST:
            return ""
        where, text = self.example
        return (
            f"{label}: markup or placeholders in {self.marked / self.pairs:.0%} of the pairs looked at, "
            f"first {text} at {where}; tokenizer.symbols can keep what must stay whole"
        )
