"""A line as the program sees it: no line breaks inside, nothing that nobody sees."""

from __future__ import annotations

import re
import unicodedata

# What some program somewhere takes for a line break, and other control characters. None may be in a line of output.
BREAKS = re.compile("[\t\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029]")
UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f\ufeff]")


def clean(text: str) -> str:
    """A line without characters that break lines (they become spaces) or that nobody sees (NUL, U+FEFF: removed)."""
    if text.isprintable():  # which none of them is
        return text
    return UNSEEN.sub("", BREAKS.sub(" ", text))


def clean_lines(lines: list[str]) -> list[str]:
    """`clean` for many lines, fast where there is nothing to do."""
    return lines if "".join(lines).isprintable() else list(map(clean, lines))


def blank(text: str) -> bool:
    """Whether a line shows nothing: empty, or only white space, control and zero-width characters."""
    if text[:1].isalnum():
        return False
    return all(c.isspace() or unicodedata.category(c) in ("Cf", "Cc") for c in text)
