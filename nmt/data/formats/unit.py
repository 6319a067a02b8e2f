"""What every corpus format yields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class Unit(NamedTuple):
    """A source with its translation, or with several in a test set, and the place it comes from."""

    src: str
    tgts: tuple[str, ...]
    where: str


class Corpus(Protocol):
    """Parallel text that can be read more than once."""

    def read(self) -> Iterator[Unit]:
        """Yields all units in order. Raises DataError at the first fault, naming the place."""

    def inputs(self) -> list[Path]:
        """The local files that it reads."""
