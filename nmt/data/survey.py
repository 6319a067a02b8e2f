"""The first look at a chunk of a training corpus: clean it, filter its text, and count what there is to know."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nmt.data.alignment import features
from nmt.data.corpora import Corpus
from nmt.data.filters import Duplicates, TextFilter
from nmt.data.formats import Unit
from nmt.data.formats.unit import Block
from nmt.data.languages import Sides
from nmt.data.markup import Markup
from nmt.data.oddities import Oddities
from nmt.data.store import TEXT
from nmt.data.tally import Example, Tally
from nmt.tokenizer import clean_lines

PAIRS = 10_000  # of a chunk, at most
CHARACTERS = 8_000_000  # of a chunk, about: books are lines too
LOOKED_AT = 200  # pairs of a chunk whose words are looked at
PLACED = 500  # pairs from one whose place is kept to the next
COLUMNS = pa.schema([("src", TEXT), ("tgt", TEXT), ("file", pa.int32()), ("line", pa.int64())])


class Chunk(NamedTuple):
    """Neighbouring pairs of one corpus. `names` are the files that `files` numbers."""

    corpus: int
    prefix: str
    src: list[str]
    tgt: list[str]
    names: list[str]
    files: np.ndarray
    lines: np.ndarray

    def where(self, row: int) -> str:
        return f"{self.names[self.files[row]]}:{self.lines[row]}"

    def places(self) -> list[tuple[int, str, int]]:
        begins = np.diff(self.files, prepend=-1) != 0
        begins[::PLACED] = True
        return [(row, self.names[self.files[row]], int(self.lines[row])) for row in np.flatnonzero(begins).tolist()]


class Raw(NamedTuple):
    """A chunk that another process is to decode."""

    corpus: int
    prefix: str
    blocks: list[Block]

    def decoded(self) -> Chunk:
        columns = [block.columns() for block in self.blocks]
        names = list(dict.fromkeys(block.files[0] for block in self.blocks))
        counts = [len(src) for src, _ in columns]
        return Chunk(
            self.corpus,
            self.prefix,
            [line for src, _ in columns for line in src],
            [line for _, tgt in columns for line in tgt],
            names,
            np.repeat([names.index(block.files[0]) for block in self.blocks], counts).astype(np.int32),
            np.concatenate([block.line + np.arange(n) for block, n in zip(self.blocks, counts, strict=True)]),
        )


def chunks(corpus: Corpus, number: int) -> Iterator[Chunk | Raw]:
    """A corpus in pieces that fit into memory. A unit with several translations is several pairs."""
    blocks = corpus.blocks(PAIRS // 10)
    if blocks is None:
        yield from _of_units(corpus, number)
        return
    some: list[Block] = []
    size = 0
    for block in blocks:
        some.append(block)
        size += sum(map(len, block.sides))
        if len(some) * (PAIRS // 10) >= PAIRS or size >= CHARACTERS:
            yield Raw(number, corpus.options.prefix, some)
            some, size = [], 0
    if some:
        yield Raw(number, corpus.options.prefix, some)


def _of_units(corpus: Corpus, number: int) -> Iterator[Chunk]:
    units, size = [], 0
    reading = corpus.read()
    while some := list(islice(reading, PAIRS // 10)):
        units += some
        size += sum(len(unit.src) for unit in some)
        if len(units) >= PAIRS or size >= CHARACTERS:
            yield _chunk(number, corpus.options.prefix, units)
            units, size = [], 0
    if units:
        yield _chunk(number, corpus.options.prefix, units)


def _chunk(corpus: int, prefix: str, units: list[Unit]) -> Chunk:
    src, tgts, files, lines = map(list, zip(*units, strict=True))
    if any(len(some) != 1 for some in tgts):
        pairs = [(unit.src, (tgt,), unit.file, unit.line) for unit in units for tgt in unit.tgts]
        src, tgts, files, lines = map(list, zip(*pairs, strict=True))
    names = list(dict.fromkeys(files))
    numbers = {name: i for i, name in enumerate(names)}
    places = np.zeros(len(files), np.int32) if len(names) < 2 else np.array([numbers[f] for f in files], np.int32)
    return Chunk(corpus, prefix, src, [tgt for (tgt,) in tgts], names, places, np.array(lines, np.int64))


class Surveyed(NamedTuple):
    """What came of a chunk."""

    corpus: int
    tally: Tally
    oddities: Oddities
    features: np.ndarray  # of all pairs read, for `Alignment`
    sides: Sides
    markup: Markup
    places: list[tuple[int, str, int]]  # row, file and line of some pairs: the first of each file, and others
    names: list[str]
    kept: pa.RecordBatch  # COLUMNS
    keys: bytes  # of the pairs kept, for `Seen`


@dataclass
class Survey:
    """Does it, with filters that drop pairs and others that only note what they would drop."""

    filters: list[TextFilter]
    noting: list[TextFilter]
    duplicates: Duplicates
    sides: Sides  # without counts

    def __call__(self, chunk: Chunk | Raw) -> Surveyed:
        if isinstance(chunk, Raw):
            chunk = chunk.decoded()
        oddities = Oddities()
        oddities.look(chunk.src, chunk.where)
        oddities.look(chunk.tgt, lambda row: f"{chunk.where(row)} (target)")
        src, tgt = clean_lines(chunk.src), clean_lines(chunk.tgt)
        tally = Tally(read=len(src))
        sides = copy.deepcopy(self.sides)
        sides.add(src[:LOOKED_AT], tgt[:LOOKED_AT])
        markup = Markup()
        markup.look(src[:LOOKED_AT], tgt[:LOOKED_AT], chunk.where)
        measures = features(src, tgt)
        src, tgt, rows = self._filter(chunk, src, tgt, tally)
        if chunk.prefix:
            src = [chunk.prefix + line for line in src]
        tally.kept = len(rows)
        keys = self.duplicates.keys(src, tgt)
        arrays = [pa.array(src, TEXT), pa.array(tgt, TEXT), pa.array(chunk.files[rows]), pa.array(chunk.lines[rows])]
        kept = pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)
        return Surveyed(chunk.corpus, tally, oddities, measures, sides, markup, chunk.places(), chunk.names, kept, keys)

    def _filter(
        self, chunk: Chunk, src: list[str], tgt: list[str], tally: Tally
    ) -> tuple[list[str], list[str], np.ndarray]:
        """The pairs that pass, and their rows in the chunk."""
        rows = np.arange(len(src))
        for filter in (*self.filters, *self.noting):
            reasons = filter.reasons(src, tgt)
            if not any(reasons):
                continue
            count = tally.note if filter in self.noting else tally.drop
            for i, reason in enumerate(reasons):
                if reason:
                    count(reason, Example.of(chunk.where(rows[i]), src[i], tgt[i]))
            if filter in self.filters:
                kept = [i for i, reason in enumerate(reasons) if not reason]
                src, tgt, rows = [src[i] for i in kept], [tgt[i] for i in kept], rows[kept]
        return src, tgt, rows
