"""Pairs on disk: text and token ids in one memory-mapped Arrow file, read without holding them in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from nmt.errors import DataError

ROWS = 10_000  # pairs in a record batch
SCHEMA = pa.schema(
    [
        ("src", pa.large_string()),
        ("tgts", pa.list_(pa.large_string())),
        ("src_ids", pa.list_(pa.int32())),
        ("tgt_ids", pa.list_(pa.int32())),
        ("where", pa.large_string()),
    ]
)


class Row(NamedTuple):
    """A pair as written: text, ids ending in eos, and the place in the corpus that it comes from."""

    src: str
    tgts: tuple[str, ...]
    src_ids: np.ndarray
    tgt_ids: np.ndarray
    where: str


class Writer:
    """Appends rows to a store file; complete only when the `with` block has ended."""

    def __init__(self, path: Path) -> None:
        self.file = pa.OSFile(str(path), "wb")
        self.writer = pa.ipc.new_file(self.file, SCHEMA)
        self.rows: list[Row] = []

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if len(self.rows) == ROWS:
            self._flush()

    def _flush(self) -> None:
        if self.rows:
            columns = zip(*self.rows, strict=True)
            arrays = [pa.array(list(column), kind) for column, kind in zip(columns, SCHEMA.types, strict=True)]
            self.writer.write_batch(pa.record_batch(arrays, schema=SCHEMA))
            self.rows = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self.writer.close()
        self.file.close()


class _Lists(NamedTuple):
    """One column of lists of one record batch, as views of the mapped file."""

    offsets: np.ndarray
    values: np.ndarray


class Store:
    """The pairs of a store file, by number."""

    def __init__(self, path: Path) -> None:
        try:
            self.file = pa.ipc.open_file(pa.memory_map(str(path)))
            self.batches = [self.file.get_batch(i) for i in range(self.file.num_record_batches)]
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{path}: is damaged: {error}; run `nmt prepare CONFIG --fresh`") from None
        self.size = sum(batch.num_rows for batch in self.batches)
        self.src, self.tgt = self._lists("src_ids"), self._lists("tgt_ids")

    def _lists(self, name: str) -> list[_Lists]:
        columns = [batch.column(name) for batch in self.batches]
        return [_Lists(column.offsets.to_numpy(), column.values.to_numpy()) for column in columns]

    def __len__(self) -> int:
        return int(self.size)

    def epoch(self, epoch: int) -> Store:
        """The pairs as they are seen in an epoch; the ids of a pair may depend on it when subwords are sampled."""
        return self

    def lengths(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pieces of the sources and of the targets, end of sentence counted."""
        return _lengths(self.src, pairs), _lengths(self.tgt, pairs)

    def ids(self, pairs: Iterable[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Token ids of the sources and of the targets."""
        pairs = list(pairs)
        return [_item(self.src, i) for i in pairs], [_item(self.tgt, i) for i in pairs]

    def where(self, pair: int) -> str:
        return str(self.batches[pair // ROWS].column("where")[pair % ROWS])

    def texts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Source and references of every pair, in order, as they were read."""
        for batch in self.batches:
            src, tgts = batch.column("src").to_pylist(), batch.column("tgts").to_pylist()
            yield from ((s, tuple(t)) for s, t in zip(src, tgts, strict=True))


def _lengths(lists: list[_Lists], pairs: np.ndarray) -> np.ndarray:
    found = np.empty(len(pairs), np.int64)
    batch = pairs // ROWS
    for index in np.unique(batch):
        at = np.flatnonzero(batch == index)
        rows, offsets = pairs[at] % ROWS, lists[index].offsets
        found[at] = offsets[rows + 1] - offsets[rows]
    return found


def _item(lists: list[_Lists], pair: int) -> np.ndarray:
    offsets, values = lists[pair // ROWS]
    row = pair % ROWS
    return values[offsets[row] : offsets[row + 1]]
