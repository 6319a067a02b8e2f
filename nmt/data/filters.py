"""Which pairs are left out of training. A pair is dropped as a pair, and every drop is counted with its reason."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from nmt.choice import Choice, Count, Range
from nmt.tokenizer import blank


class TextFilter(Protocol):
    """Looks at a pair before it is encoded."""

    def text(self, src: str, tgt: str) -> str | None:
        """Why the pair is dropped, or None."""


class IdFilter(Protocol):
    """Looks at the number of pieces on both sides, end of sentence counted."""

    def lengths(self, src: int, tgt: int) -> str | None: ...


class Empty:
    """Pairs with a side that shows nothing."""

    def text(self, src: str, tgt: str) -> str | None:
        if blank(src):
            return "both sides empty" if blank(tgt) else "source empty"
        return "target empty" if blank(tgt) else None


class Duplicates:
    """Pairs that came before, exactly the same on both sides."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()

    def text(self, src: str, tgt: str) -> str | None:
        key = hashlib.blake2b(f"{src}\n{tgt}".encode(errors="surrogatepass"), digest_size=16).digest()
        if key in self.seen:
            return "duplicate"
        self.seen.add(key)
        return None


class Length:
    """Pairs with a side of more than `max_tokens` pieces."""

    def __init__(self, *, max_tokens: Count = 250) -> None:
        self.max_tokens = max_tokens

    def lengths(self, src: int, tgt: int) -> str | None:
        return f"too long (limit {self.max_tokens} pieces)" if max(src, tgt) > self.max_tokens else None


class Ratio:
    """Pairs with a side of more than `max` times the pieces of the other."""

    def __init__(self, *, max: Annotated[float, Range(ge=1)] = 9) -> None:
        self.max = max

    def lengths(self, src: int, tgt: int) -> str | None:
        return f"lengths differ more than {self.max:g} to 1" if max(src, tgt) > self.max * min(src, tgt) else None


TEXT_FILTERS: Mapping[str, Callable[..., TextFilter]] = {"empty": Empty, "duplicates": Duplicates}
ID_FILTERS: Mapping[str, Callable[..., IdFilter]] = {"length": Length, "ratio": Ratio}
FILTERS: Mapping[str, Callable[..., Any]] = {**TEXT_FILTERS, **ID_FILTERS}
DROP, KEEP = "drop", "keep"  # a filter's setting may be one of these, or its options


def choices(settings: Mapping[str, Any]) -> dict[str, Choice]:
    """The filters that are on, with their options: all of FILTERS that the settings do not `keep` out."""
    named = {name: settings.get(name, DROP) for name in [*FILTERS, *settings]}
    return {
        name: Choice(name, value if isinstance(value, dict) else {} if value == DROP else {str(value): value})
        for name, value in named.items()
        if value != KEEP
    }


@dataclass
class Tally:
    """What became of the pairs of one corpus."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    EXAMPLES = 3

    def drop(self, reason: str, where: str) -> None:
        self.dropped[reason] += 1
        places = self.examples.setdefault(reason, [])
        if len(places) < self.EXAMPLES:
            places.append(where)
