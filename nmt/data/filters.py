"""Which pairs are left out of training. A pair is dropped as a pair, and every drop is counted with its reason.

A filter works at one of four stages: on the text of a pair, on the text beside that of the validation and test sets, on
all text at once (duplicates, of which the first stays), or on the number of pieces.
"""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Annotated, Any, Literal, Protocol

import numpy as np

from nmt.choice import Choice, Count, Range, did_you_mean
from nmt.data.languages import known_scripts, script_share, scripts
from nmt.errors import ConfigError
from nmt.tokenizer import blank, clean

Share = Annotated[float, Range(ge=0, le=1)]
By = Literal["pair", "source", "target", "either"]


class TextFilter(Protocol):
    """Looks at pairs before they are encoded."""

    def reasons(self, src: list[str], tgt: list[str]) -> list[str | None]:
        """For each pair why it is dropped, or None."""


class PairFilter(ABC):
    """A text filter that looks at one pair at a time."""

    def reasons(self, src: list[str], tgt: list[str]) -> list[str | None]:
        return list(map(self.reason, src, tgt))

    @abstractmethod
    def reason(self, src: str, tgt: str) -> str | None:
        """Why the pair is dropped, or None."""


class LengthFilter(Protocol):
    """Looks at the pieces of both sides."""

    def lengths(self, src: np.ndarray, tgt: np.ndarray) -> np.ndarray:
        """Which pairs are dropped, by their numbers of pieces, end of sentence counted."""

    reason: str


class Empty:
    """Drops pairs with a side that shows nothing."""

    def reasons(self, src: list[str], tgt: list[str]) -> list[str | None]:
        # Nearly all lines start with something that can be seen.
        return [
            None if s[:1].isalnum() and t[:1].isalnum() else self._reason(s, t) for s, t in zip(src, tgt, strict=True)
        ]

    def _reason(self, src: str, tgt: str) -> str | None:
        if blank(src):
            return "both sides empty" if blank(tgt) else "source empty"
        return "target empty" if blank(tgt) else None


class Characters:
    """Drops pairs with a side of fewer than `min` or more than `max` characters."""

    def __init__(self, *, min: Count = 1, max: Count = 5_000) -> None:
        _check_order("characters", "min", min, "max", max)
        self.min, self.max = min, max

    def reasons(self, src: list[str], tgt: list[str]) -> list[str | None]:
        least, most = self.min, self.max
        return [
            None if least <= len(s) <= most and least <= len(t) <= most else self._reason(s, t)
            for s, t in zip(src, tgt, strict=True)
        ]

    def _reason(self, src: str, tgt: str) -> str:
        if max(len(src), len(tgt)) > self.max:
            return f"too long (limit {self.max} characters)"
        return f"too short (least {self.min} characters)"


class Same(PairFilter):
    """Drops pairs whose source is also the target."""

    def reason(self, src: str, tgt: str) -> str | None:
        return "source equals target" if src.strip() == tgt.strip() else None


class Script(PairFilter):
    """Drops pairs with a side of which less than `min` of the letters are in a script of its language.

    `src` and `tgt` name scripts, such as [LATIN] or [HAN, HIRAGANA], where the language is not enough to know them.
    """

    def __init__(
        self,
        languages: tuple[str, str],
        *,
        min: Share = 0.5,
        src: list[str] = [],  # noqa: B006 - lists, as YAML has them, that nobody changes
        tgt: list[str] = [],  # noqa: B006
    ) -> None:
        self.min = min
        for name in map(str.upper, (*src, *tgt)):
            if name not in known_scripts():
                raise ConfigError(
                    f"data.filters.script: there is no script `{name}`{did_you_mean(name, known_scripts())}; "
                    "write its Unicode name, such as LATIN or HAN"
                )
        self.expected = [
            frozenset(map(str.upper, names)) or scripts(language)
            for names, language in zip((src, tgt), languages, strict=True)
        ]

    def reason(self, src: str, tgt: str) -> str | None:
        for name, line, expected in zip(("source", "target"), (src, tgt), self.expected, strict=True):
            if expected and script_share(line, expected) < self.min:
                return f"{name} in another script"
        return None


class Repeats(PairFilter):
    """Drops pairs with a character, or a run of up to four, that comes more than `max` times in a row."""

    def __init__(self, *, max: Count = 10) -> None:
        self.pattern = re.compile(rf"(.{{1,4}}?)\1{{{max},}}")

    def reason(self, src: str, tgt: str) -> str | None:
        return "repeated characters" if self.pattern.search(src) or self.pattern.search(tgt) else None


class Letters(PairFilter):
    """Drops pairs with a side of which less than `min` of the visible characters are letters."""

    def __init__(self, *, min: Share = 0.3) -> None:
        self.min = min

    def reason(self, src: str, tgt: str) -> str | None:
        return "mostly no letters" if self._share(src) < self.min or self._share(tgt) < self.min else None

    def _share(self, line: str) -> float:
        visible = "".join(line.split())
        if visible.isalpha() or not visible:
            return 1.0
        # Vowel signs of Indic scripts are marks: as much letters as those that stand alone.
        return sum(c.isalpha() or unicodedata.category(c)[0] == "M" for c in visible) / len(visible)


class Numbers(PairFilter):
    """Drops pairs whose sides do not hold the same numbers, in any order and grouping, from `digits` digits on.

    The default lets single digits go, which are often written out: two cats, zwei Katzen.
    """

    def __init__(self, *, digits: Count = 2) -> None:
        self.digits = digits

    def reason(self, src: str, tgt: str) -> str | None:
        return None if self._numbers(src) == self._numbers(tgt) else "different numbers"

    def _numbers(self, line: str) -> list[str]:
        return sorted(number for number in numbers(line) if len(number) >= self.digits)


NUMBER = re.compile(r"\d+(?:[.,'’\u00a0\u202f]\d+)*")


def numbers(line: str) -> list[str]:
    """The digits of each number in a line, without what groups them, and in whatever script."""
    if not NUMBER.search(line):
        return []
    return ["".join(str(unicodedata.digit(c)) for c in n if c.isdecimal()) for n in NUMBER.findall(line)]


class Regex(PairFilter):
    """Drops pairs in which a regular expression finds something: in `src`, in `tgt`, or in `any` of them."""

    def __init__(
        self,
        *,
        src: list[str] = [],  # noqa: B006 - lists, as YAML has them, that nobody changes
        tgt: list[str] = [],  # noqa: B006
        any: list[str] = [],  # noqa: B006
    ) -> None:
        self.patterns = [
            (pattern, _compiled(pattern), where)
            for patterns, where in ((src, ("src",)), (tgt, ("tgt",)), (any, ("src", "tgt")))
            for pattern in patterns
        ]

    def reason(self, src: str, tgt: str) -> str | None:
        sides = {"src": src, "tgt": tgt}
        for text, pattern, where in self.patterns:
            if any(pattern.search(sides[side]) for side in where):
                return f"matches {text}"
        return None


def _check_order(name: str, low: str, least: int, high: str, most: int) -> None:
    if least > most:
        raise ConfigError(f"data.filters.{name}: {low} ({least}) is more than {high} ({most}), which drops every pair")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"data.filters.regex: {pattern!r} is no regular expression: {error}") from None


class Overlap:
    """Drops pairs that validation and test sets hold: the same `source` (or target, pair, or either side).

    Case and white space around them make no difference.
    """

    def __init__(self, held: Iterable[tuple[str, str, str]], *, by: By = "source") -> None:
        """`held` are the pairs of the sets: the set's name, source and target."""
        self.sides = ("source", "target") if by == "either" else (by,)
        self.held: dict[str, dict[str, str]] = {side: {} for side in self.sides}
        for name, src, tgt in held:
            for side in self.sides:
                [key] = _keys(side, [clean(src)], [clean(tgt)])
                self.held[side].setdefault(key, f"{side} is in {name}")

    def reasons(self, src: list[str], tgt: list[str]) -> list[str | None]:
        found = [list(map(self.held[side].get, _keys(side, src, tgt))) for side in self.sides]
        return found[0] if len(found) == 1 else [one or other for one, other in zip(*found, strict=True)]


def _keys(side: str, src: list[str], tgt: list[str]) -> list[str]:
    """What is compared of each pair."""
    if side == "pair":
        return [f"{s.strip()}\n{t.strip()}".casefold() for s, t in zip(src, tgt, strict=True)]
    return [line.strip().casefold() for line in (src if side == "source" else tgt)]


class Duplicates:
    """Drops all but the first of pairs that are the same: exactly, but for case and white space, or by one side."""

    def __init__(self, *, by: Literal["pair", "normalised", "source", "target"] = "pair") -> None:
        self.by = by
        self.reason = "duplicate" if by == "pair" else f"duplicate ({by})"

    def keys(self, src: list[str], tgt: list[str]) -> bytes:
        """16 bytes for each pair; those with the same are duplicates."""
        if self.by == "normalised":
            src, tgt = list(map(_normalised, src)), list(map(_normalised, tgt))
        if self.by in ("source", "target"):
            lines = src if self.by == "source" else tgt
        else:
            lines = [f"{s}\n{t}" for s, t in zip(src, tgt, strict=True)]
        return b"".join([blake2b(line.encode(), digest_size=16).digest() for line in lines])


def _normalised(line: str) -> str:
    """A line without regard to case, white space, and how its characters are composed."""
    line = " ".join(line.casefold().split())
    return line if line.isascii() else unicodedata.normalize("NFKC", line)


class Length:
    """Drops pairs with a side of fewer than `min_tokens` or more than `max_tokens` pieces, end of sentence counted."""

    def __init__(self, *, max_tokens: Count = 250, min_tokens: Count = 1) -> None:
        _check_order("length", "min_tokens", min_tokens, "max_tokens", max_tokens)
        self.min_tokens, self.max_tokens = min_tokens, max_tokens
        least = f", at least {min_tokens}" if min_tokens > 1 else ""
        self.reason = f"too long (limit {max_tokens} pieces{least})"

    def lengths(self, src: np.ndarray, tgt: np.ndarray) -> np.ndarray:
        dropped: np.ndarray = (np.maximum(src, tgt) > self.max_tokens) | (np.minimum(src, tgt) < self.min_tokens)
        return dropped


class Ratio:
    """Drops pairs with a side of more than `max` times the pieces of the other."""

    def __init__(self, *, max: Annotated[float, Range(ge=1)] = 9) -> None:
        self.max = max
        self.reason = f"lengths differ more than {max:g} to 1"

    def lengths(self, src: np.ndarray, tgt: np.ndarray) -> np.ndarray:
        dropped: np.ndarray = np.maximum(src, tgt) > self.max * np.minimum(src, tgt)
        return dropped


TEXT_FILTERS: Mapping[str, Callable[..., TextFilter]] = {
    "empty": Empty,
    "characters": Characters,
    "same": Same,
    "script": Script,
    "repeats": Repeats,
    "letters": Letters,
    "numbers": Numbers,
    "regex": Regex,
    "overlap": Overlap,
}
LENGTH_FILTERS: Mapping[str, Callable[..., LengthFilter]] = {"length": Length, "ratio": Ratio}
FILTERS: Mapping[str, Callable[..., Any]] = {**TEXT_FILTERS, "duplicates": Duplicates, **LENGTH_FILTERS}
ON = ("empty", "characters", "overlap", "duplicates", "length", "ratio")  # unless the config keeps their pairs
DROP, KEEP = "drop", "keep"  # a filter's setting may be one of these, or its options


def choices(settings: Mapping[str, Any]) -> dict[str, Choice]:
    """The filters that drop pairs, with their options. Raises ConfigError for a setting that is neither."""
    found = {}
    for name in [*FILTERS, *(name for name in settings if name not in FILTERS)]:
        value = settings.get(name, DROP if name in ON else KEEP)
        if not isinstance(value, dict) and value not in (DROP, KEEP):
            raise ConfigError(f"`data.filters.{name}` must be drop, keep or options, but is {value!r} instead")
        if value != KEEP:
            found[name] = Choice(name, value if isinstance(value, dict) else {})
    return found


def longest(settings: Mapping[str, Any]) -> int | None:
    """The most pieces of a side, end of sentence counted, that the filters let pass; None if any number."""
    length = choices(settings).get("length")
    return int(length.options.get("max_tokens", Length().max_tokens)) if length else None
