"""A corpus of the config: a format, and what any corpus may be told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

from nmt.choice import Choice, Count, Range, build, options_of
from nmt.data.formats import FORMATS, Format, Unit
from nmt.data.formats.plain import Plain
from nmt.data.formats.tsv import Tsv
from nmt.data.formats.unit import Block
from nmt.errors import DataError
from nmt.files import check_readable, packed

Weight = Annotated[float, Range(ge=0.001, le=1000)]  # an epoch is planned in memory, and has to hold some pair
UNPACKED = 4  # what a byte of a compressed corpus becomes, about
LOOKED_AT = 1_000  # units, for an estimate


class CorpusOptions:
    """`label` names it in reports. An epoch sees it `weight` times. Only the first `limit` units are read. `reverse`
    swaps its sides. `prefix` is put before every source, such as a tag: <2de>, which becomes a piece of its own."""

    def __init__(
        self,
        *,
        label: str = "",
        weight: Weight = 1.0,
        limit: Count | None = None,
        prefix: str = "",
        reverse: bool = False,
    ) -> None:
        self.label, self.weight, self.limit, self.prefix, self.reverse = label, weight, limit, prefix, reverse


@dataclass
class Corpus:
    """Parallel text, read as the config says."""

    format: Format
    options: CorpusOptions

    @classmethod
    def open(cls, choice: Choice, root: Path) -> Corpus:
        """From a choice without problems; nothing is read yet."""
        mine = {key: value for key, value in choice.options.items() if key in options_of(CorpusOptions)}
        theirs = {key: value for key, value in choice.options.items() if key not in mine}
        return cls(build(FORMATS, Choice(choice.name, theirs), root), CorpusOptions(**mine))

    @property
    def label(self) -> str:
        return self.options.label or self.format.name

    @property
    def tag(self) -> str | None:
        """What the prefix adds to the vocabulary, if it is one word."""
        words = self.options.prefix.split()
        return words[0] if len(words) == 1 else None

    def read(self) -> Iterator[Unit]:
        """Units in order. Text is as it stands in the corpus: the prefix is not added."""
        units = islice(self.format.read(), self.options.limit)
        if not self.options.reverse:
            return units
        return (Unit(tgt, (unit.src,), unit.file, unit.line) for unit in units for tgt in unit.tgts)

    def blocks(self, lines: int) -> Iterator[Block] | None:
        """The same in blocks of so many lines, if the corpus is nothing but lines of two files."""
        if not isinstance(self.format, Plain) or self.options.limit or self.format.references > 1:
            return None
        blocks = self.format.blocks(lines)
        if not self.options.reverse:
            return blocks
        return (block._replace(sides=block.sides[::-1], files=block.files[::-1]) for block in blocks)

    def with_prefix(self) -> list[Unit]:
        """All units, as a model gets to see them."""
        return [unit._replace(src=self.options.prefix + unit.src) for unit in self.read()]

    def unused(self) -> str:
        """What of its files is not read, as a sentence, if anything."""
        return self.format.unused() if isinstance(self.format, Tsv) else ""

    def inputs(self) -> list[Path]:
        return self.format.inputs()

    def size(self) -> int:
        """Bytes of text in its files, about."""
        return sum(path.stat().st_size * (UNPACKED if packed(path) else 1) for path in self.inputs())

    def estimate(self) -> int | None:
        """How many units it has, about; None if there is no file to tell."""
        if not self.inputs():
            return self.options.limit
        some = list(islice(self.read(), LOOKED_AT))
        if len(some) < LOOKED_AT:
            return len(some)
        length = sum(len(text.encode(errors="replace")) + 1 for unit in some for text in (unit.src, *unit.tgts))
        return min(self.size() * len(some) // length, self.options.limit or sys.maxsize)

    def check(self) -> None:
        """Raises DataError if a file cannot be read more than once."""
        for path in self.inputs():
            check_readable(path)
            if not path.is_file():
                raise DataError(f"{path}: must be a file on disk, since it is read more than once")
