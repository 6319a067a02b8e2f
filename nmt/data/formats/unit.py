"""What every corpus format yields."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from nmt.files import decode_lines


class Unit(NamedTuple):
    """A source with its translation, or with several, and the place that it comes from.

    `file` is a path or whatever else a user calls the source of the text; `line` counts its lines or rows from 1.
    """

    src: str
    tgts: tuple[str, ...]
    file: str
    line: int

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"


class Block(NamedTuple):
    """Neighbouring lines of aligned files as they stand there: cheap to read, and to hand to another process."""

    sides: tuple[bytes, ...]
    files: tuple[str, ...]
    line: int  # of the first

    def columns(self) -> list[list[str]]:
        """The lines of each side. Raises DataError for what is not UTF-8."""
        return [decode_lines(side, file, self.line) for side, file in zip(self.sides, self.files, strict=True)]


class Format(Protocol):
    """Parallel text that can be read more than once. `name` is what a report calls it if the user gives no label."""

    name: str

    def read(self) -> Iterator[Unit]:
        """Yields all units in order. Raises DataError at the first fault, naming the place."""

    def inputs(self) -> list[Path]:
        """The local files that it reads, without reading them."""
