"""The second look: text that was put aside becomes ids, and rows of the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nmt.data.filters import LengthFilter
from nmt.data.languages import spaced
from nmt.data.store import content_digest, let_go, map_file, record_batch, schema
from nmt.data.tally import Example, Tally
from nmt.tokenizer import UNK, Pieces, Side, Tokenizer

LONGEST = 1_000  # lengths from here on are counted as one
TRIED = 500  # lines of a batch whose round trip is tried


@dataclass
class Usage:
    """How text of one side becomes pieces."""

    lines: int = 0
    words: int = 0  # separated by spaces
    characters: int = 0
    pieces: int = 0  # end of sentence counted
    unknown: int = 0  # pieces
    bytes: int = 0  # pieces
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(LONGEST + 1, np.int64))  # lines by number of pieces
    longest: int = 0
    tried: int = 0  # lines encoded and decoded
    changed: int = 0  # of these, those that come back other than they were
    spaces: int = 0  # of these, those that differ in white space only
    example: list[str] | None = None  # one that changed, and what came back

    def add(self, other: Usage) -> None:
        for name in ("lines", "words", "characters", "pieces", "unknown", "bytes", "tried", "changed", "spaces"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lengths += other.lengths
        self.longest = max(self.longest, other.longest)
        self.example = self.example or other.example

    def quantile(self, share: float) -> int:
        """A length that at least this share of the lines do not exceed."""
        return int(np.searchsorted(np.cumsum(self.lengths), share * self.lengths.sum()))

    def tree(self, language: str) -> dict[str, Any]:
        """For the manifest."""
        return {
            "unit": "word" if spaced(language) else "character",  # that pieces are counted by
            "lines": self.lines,
            "words": self.words,
            "characters": self.characters,
            "pieces": self.pieces,
            "unknown": self.unknown,
            "bytes": self.bytes,
            "lengths": {
                "mean": round(self.pieces / max(1, self.lines), 2),
                **{f"p{share}": self.quantile(share / 100) for share in (1, 10, 50, 90, 99)},
                "max": self.longest,
            },
            "round_trip": {
                "lines": self.tried,
                "changed": self.changed,
                "spaces": self.spaces,
                "example": self.example,
            },
        }


class Work(NamedTuple):
    """A batch of the text put aside, and which of its rows are duplicates."""

    batch: int
    dropped: np.ndarray
    names: list[str]  # of files, for examples


class Encoded(NamedTuple):
    """What came of it."""

    seen: int  # pairs, duplicates counted
    rows: pa.RecordBatch
    digest: bytes
    tally: Tally  # of the rows that were no duplicates
    usage: tuple[Usage, Usage]


@dataclass
class Encoding:
    """Encodes batches of a file of `survey.COLUMNS`."""

    models: tuple[bytes, bytes | None]
    text: Path
    filters: list[LengthFilter]

    def __post_init__(self) -> None:
        self.tokenizer: Tokenizer | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Each process opens the file and the tokenizer itself."""
        return {"models": self.models, "text": self.text, "filters": self.filters, "tokenizer": None}

    def __call__(self, work: Work) -> Encoded:
        if self.tokenizer is None:
            self.tokenizer = Tokenizer(*self.models)
            self.mapped, self.batches = map_file(self.text)
            self.bytewise = self.tokenizer.src.bytewise(), self.tokenizer.tgt.bytewise()
        batch = self.batches[work.batch]
        if work.dropped.any():
            batch = batch.filter(pa.array(~work.dropped))
        texts = batch.column("src").to_pylist(), batch.column("tgt").to_pylist()
        pieces = self.tokenizer.src.encode(texts[0]), self.tokenizer.tgt.encode(texts[1])
        tally, kept = self._filter(batch, pieces, work.names)
        if not kept.all():
            batch = batch.filter(pa.array(kept))
            pieces = _take(pieces[0], kept), _take(pieces[1], kept)
            texts = batch.column("src").to_pylist(), batch.column("tgt").to_pylist()
        sides = self.tokenizer.src, self.tokenizer.tgt
        usage = [_usage(side, *of) for side, *of in zip(sides, texts, pieces, self.bytewise, strict=True)]
        columns = schema(max(len(self.tokenizer.src), len(self.tokenizer.tgt)))
        ones = pa.array(np.arange(len(batch) + 1, dtype=np.int32))
        rows = record_batch(
            columns,
            batch.column("src"),
            pa.ListArray.from_arrays(ones, batch.column("tgt")),
            *pieces,
            batch.column("file"),
            batch.column("line"),
        )
        digest = content_digest(rows)
        let_go(self.mapped)
        return Encoded(len(work.dropped), rows, digest, tally, (usage[0], usage[1]))

    def _filter(
        self, batch: pa.RecordBatch, pieces: tuple[Pieces, Pieces], names: list[str]
    ) -> tuple[Tally, np.ndarray]:
        tally, kept = Tally(), np.ones(len(batch), np.bool_)
        lengths = [np.diff(side.offsets) for side in pieces]
        for filter in self.filters:
            bad = filter.lengths(*lengths) & kept
            kept &= ~bad
            rows = np.flatnonzero(bad)
            tally.drop_many(filter.reason, len(rows), (example(batch, row, names) for row in rows.tolist()))
        tally.kept = int(kept.sum())
        return tally, kept


def example(batch: pa.RecordBatch, row: int, names: list[str]) -> Example:
    """A row of `survey.COLUMNS` for a tally."""
    src, tgt, file, line = (batch.column(name)[row].as_py() for name in ("src", "tgt", "file", "line"))
    return Example.of(f"{names[file]}:{line}", src, tgt)


def _take(pieces: Pieces, kept: np.ndarray) -> Pieces:
    lengths = np.diff(pieces.offsets)
    ids = pieces.ids[np.repeat(kept, lengths)]
    return Pieces(ids, np.concatenate([[0], np.cumsum(lengths[kept])]))


def _usage(side: Side, lines: list[str], pieces: Pieces, bytewise: np.ndarray) -> Usage:
    lengths = np.diff(pieces.offsets)
    usage = Usage(
        lines=len(lines),
        words="".join(lines).count(" ") + len(lines),
        characters=sum(map(len, lines)),
        pieces=len(pieces.ids),
        unknown=int((pieces.ids == UNK).sum()),
        bytes=int(bytewise[pieces.ids].sum()),
        lengths=np.bincount(np.minimum(lengths, LONGEST), minlength=LONGEST + 1),
        longest=int(lengths.max(initial=0)),
    )
    ends = pieces.offsets[: TRIED + 1]
    tried = Pieces(pieces.ids[: ends[-1]], ends).lines()
    for line, back in zip(lines, side.decode([ids[:-1].tolist() for ids in tried]), strict=False):
        usage.tried += 1
        if back != line:
            usage.changed += 1
            usage.spaces += back.split() == line.split()
            if back.split() != line.split():
                usage.example = usage.example or [line, back]
    return usage
