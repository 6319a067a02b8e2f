"""What became of the pairs of a corpus, counted, with examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

EXAMPLES = 3
SHOWN = 80  # characters of a line that an example shows


@dataclass
class Example:
    """A pair and its place."""

    where: str
    src: str
    tgt: str

    @classmethod
    def of(cls, where: str, src: str, tgt: str) -> Example:
        return cls(where, *(line if len(line) <= SHOWN else line[:SHOWN] + "…" for line in (src, tgt)))


@dataclass
class Tally:
    """Pairs read, kept, and dropped by reason; `noted` are those that a filter would drop if it were on."""

    read: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[Example]] = field(default_factory=dict)

    def drop(self, reason: str, example: Example) -> None:
        self.dropped[reason] += 1
        self._keep(reason, example)

    def drop_many(self, reason: str, count: int, examples: Iterable[Example], noted: bool = False) -> None:
        """Drops or notes; `examples` is read no further than needed."""
        if count:
            (self.noted if noted else self.dropped)[reason] += count
            for example in islice(examples, EXAMPLES):
                self._keep(reason, example)

    def note(self, reason: str, example: Example) -> None:
        self.noted[reason] += 1
        self._keep(reason, example)

    def _keep(self, reason: str, example: Example) -> None:
        kept = self.examples.setdefault(reason, [])
        if len(kept) < EXAMPLES:
            kept.append(example)

    def add(self, later: Tally) -> None:
        """Adds the counts of pairs that come later in the corpus."""
        self.read += later.read
        self.kept += later.kept
        self.dropped += later.dropped
        self.noted += later.noted
        for reason, examples in later.examples.items():
            for example in examples:
                self._keep(reason, example)

    def tree(self) -> dict[str, Any]:
        """Plain mappings, as in JSON."""
        return {
            "read": self.read,
            "kept": self.kept,
            "dropped": dict(self.dropped),
            "noted": dict(self.noted),
            "examples": {reason: [asdict(e) for e in examples] for reason, examples in self.examples.items()},
        }
