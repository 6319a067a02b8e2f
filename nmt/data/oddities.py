"""Characters that a text should rather not hold, counted by line, with the first place of each."""

from __future__ import annotations

import unicodedata
from codecs import BOM_UTF8
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.files import open_bytes
from nmt.tokenizer import BREAKS, UNSEEN

REPLACEMENT, MARK = "\ufffd", "\ufeff"
DECOMPOSED = "decomposed"


@dataclass
class Found:
    lines: int
    first: str


@dataclass
class Oddities:
    """Separators of lines, control, zero-width and unassigned characters, U+FFFD, and forms of composition."""

    found: dict[str, Found] = field(default_factory=dict)  # by character, and DECOMPOSED
    composed: bool = False  # whether a line holds characters that can be decomposed

    def look(self, lines: list[str], where: Callable[[int], str]) -> None:
        """`where` says the place of a line by its index."""
        text = "".join(lines)
        if not text.isprintable():
            for index, line in enumerate(lines):
                if not line.isprintable():
                    for character in filter(_is_odd, set(line)):
                        self._count(character, 1, where(index))
        if text.isascii():
            return
        if REPLACEMENT in text:
            self._count_lines(REPLACEMENT, [REPLACEMENT in line for line in lines], where)
        if not unicodedata.is_normalized("NFC", "\n".join(lines)):
            self._count_lines(DECOMPOSED, [not unicodedata.is_normalized("NFC", line) for line in lines], where)
        self.composed = self.composed or not unicodedata.is_normalized("NFD", text)

    def look_at_start(self, file: Path) -> None:
        """Counts the byte order mark of a file, which reading it leaves out."""
        with open_bytes(file) as stream:
            if stream.read(len(BOM_UTF8)) == BOM_UTF8:
                self._count(MARK, 1, f"{file}:1")

    def _count_lines(self, what: str, has: list[bool], where: Callable[[int], str]) -> None:
        self._count(what, sum(has), where(has.index(True)))

    def _count(self, what: str, lines: int, first: str) -> None:
        self.found.setdefault(what, Found(0, first)).lines += lines

    def add(self, later: Oddities) -> None:
        self.composed = self.composed or later.composed
        for what, found in later.found.items():
            self._count(what, found.lines, found.first)

    def tree(self) -> dict[str, Any]:
        """By code point, for the manifest."""
        return {
            what if what == DECOMPOSED else f"U+{ord(what):04X}": {
                "lines": found.lines,
                "first": found.first,
            }
            for what, found in sorted(self.found.items())
        }

    def sentences(self) -> list[str]:
        """For people, one a kind of character, and one if the forms of composition are mixed."""
        lines = [
            f"{name(c)} inside {found.lines:,} line{'s' * (found.lines != 1)}, "
            f"first at {found.first}: {_what_becomes(c)}"
            for c, found in sorted(self.found.items())
            if c != DECOMPOSED
        ]
        if DECOMPOSED in self.found and self.composed:
            found = self.found[DECOMPOSED]
            hold = "line holds" if found.lines == 1 else "lines hold"
            lines.append(
                f"mixed normalisation forms: {found.lines:,} {hold} decomposed characters (not NFC), first at "
                f"{found.first}, while others are composed; tokenizer.normalization: nfkc makes them one"
            )
        return lines


def name(character: str) -> str:
    """U+2028 LINE SEPARATOR."""
    return f"U+{ord(character):04X} {NAMES.get(character) or unicodedata.name(character, '')}".rstrip()


NAMES = {  # of control characters, which Unicode leaves without, and what people say
    "\ufeff": "BYTE ORDER MARK",
    "\n": "LINE FEED",
    "\0": "NUL",
    "\x0b": "VERTICAL TAB",
    "\x0c": "FORM FEED",
    "\r": "CARRIAGE RETURN",
    "\x1c": "FILE SEPARATOR",
    "\x1d": "GROUP SEPARATOR",
    "\x1e": "RECORD SEPARATOR",
    "\x1f": "UNIT SEPARATOR",
    "\x7f": "DELETE",
    "\x85": "NEXT LINE",
}


def _is_odd(character: str) -> bool:
    """Whatever does not print but for spaces: controls, formats, separators of lines, unassigned, private use."""
    return not character.isprintable() and character != "\t" and unicodedata.category(character) != "Zs"


def _what_becomes(character: str) -> str:
    if UNSEEN.match(character):
        return "removed"
    return "turned into spaces" if BREAKS.match(character) else "kept"
