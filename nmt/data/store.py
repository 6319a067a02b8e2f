"""Pairs on disk: text and token ids in one memory-mapped Arrow file, read without holding them in memory."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from nmt.errors import DataError
from nmt.tokenizer import Pieces

REDO = "redo it with `nmt prepare CONFIG --fresh`"
TEXT = pa.large_string()
SMALL = 1 << 16  # ids below it fit into two bytes


def schema(vocabulary: int) -> pa.Schema:
    """The columns of a store whose ids are all below `vocabulary`."""
    ids = pa.list_(pa.uint16() if vocabulary <= SMALL else pa.int32())
    return pa.schema(
        [
            ("src", TEXT),
            ("tgts", pa.list_(TEXT)),
            ("src_ids", ids),
            ("tgt_ids", ids),
            ("file", pa.int32()),
            ("line", pa.int64()),
        ]
    )


def record_batch(
    columns: pa.Schema,
    src: pa.Array,
    tgts: pa.Array,
    src_pieces: Pieces,
    tgt_pieces: Pieces,
    files: pa.Array,
    lines: pa.Array,
) -> pa.RecordBatch:
    """Rows of a store. `src` is text, `tgts` lists of text."""
    kind = columns.field("src_ids").type
    ids = [
        pa.ListArray.from_arrays(
            pa.array(pieces.offsets.astype(np.int32)), pa.array(pieces.ids.astype(kind.value_type.to_pandas_dtype()))
        )
        for pieces in (src_pieces, tgt_pieces)
    ]
    return pa.RecordBatch.from_arrays([src, tgts, *ids, files, lines], schema=columns)


def content_digest(batch: pa.RecordBatch) -> bytes:
    """Names text and ids of a batch, not the places that they come from."""
    digest = hashlib.sha256()
    for name in ("src", "tgts", "src_ids", "tgt_ids"):
        column = batch.column(name)
        while True:
            offsets = column.offsets if pa.types.is_list(column.type) else _text_offsets(column)
            digest.update(np.diff(np.asarray(offsets)).astype(np.int64).tobytes())
            if not pa.types.is_list(column.type):
                digest.update(_bytes(column))
                break
            column = column.values
            if not pa.types.is_large_string(column.type):
                digest.update(np.ascontiguousarray(column.to_numpy()).tobytes())
                break
    return digest.digest()


def _text_offsets(column: pa.Array) -> np.ndarray:
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]


def _bytes(column: pa.Array) -> memoryview:
    offsets, data = _text_offsets(column), column.buffers()[2]
    return memoryview(data)[offsets[0] : offsets[-1]] if data is not None and len(column) else memoryview(b"")


class Writer:
    """Appends record batches to a file; complete only when the `with` block has ended."""

    def __init__(self, path: Path, columns: pa.Schema) -> None:
        self.file = pa.OSFile(str(path), "wb")
        self.writer = pa.ipc.new_file(self.file, columns)

    def write(self, batch: pa.RecordBatch) -> None:
        if len(batch):
            self.writer.write_batch(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()
        self.file.close()


def map_file(path: Path) -> tuple[mmap.mmap, list[pa.RecordBatch]]:
    """A file of record batches without reading it. Raises DataError if it is none."""
    try:
        with open(path, "rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        file = pa.ipc.open_file(pa.py_buffer(mapped))
        return mapped, [file.get_batch(i) for i in range(file.num_record_batches)]
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise DataError(f"{path}: is damaged: {error}; {REDO}") from None


def let_go(mapped: mmap.mmap) -> None:
    """Tells the system that what was read of the map is not needed soon: memory stays flat over a large file."""
    if hasattr(mapped, "madvise"):
        mapped.madvise(mmap.MADV_DONTNEED)


class _Lists(NamedTuple):
    """One column of lists of one record batch, as views of the mapped file."""

    offsets: np.ndarray
    values: np.ndarray


class Store:
    """The pairs of a store file, by number. `files` are the names that its rows refer to."""

    def __init__(self, path: Path, files: Sequence[str] = ()) -> None:
        self.map, self.batches = map_file(path)
        self.files = files
        self.starts = np.cumsum([0, *map(len, self.batches)])  # of the batches, and the end
        self.src, self.tgt = self._lists("src_ids"), self._lists("tgt_ids")

    def _lists(self, name: str) -> list[_Lists]:
        columns = [batch.column(name) for batch in self.batches]
        return [_Lists(column.offsets.to_numpy(), column.values.to_numpy()) for column in columns]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def epoch(self, epoch: int) -> Store:
        """The pairs as they are seen in an epoch: the same in each."""
        return self

    def lengths(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pieces of the sources and of the targets, end of sentence counted. For the pairs of a window, so rarely."""
        let_go(self.map)
        return self._lengths(self.src, pairs), self._lengths(self.tgt, pairs)

    def _lengths(self, lists: list[_Lists], pairs: np.ndarray) -> np.ndarray:
        found = np.empty(len(pairs), np.int64)
        batch = self._batch(pairs)
        for index in np.unique(batch):
            at = np.flatnonzero(batch == index)
            rows, offsets = pairs[at] - self.starts[index], lists[index].offsets
            found[at] = offsets[rows + 1] - offsets[rows]
        return found

    def ids(self, pairs: Iterable[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Token ids of the sources and of the targets."""
        places = self._places(pairs)
        return [_item(self.src[b], row) for b, row in places], [_item(self.tgt[b], row) for b, row in places]

    def pair_texts(self, pairs: Iterable[int]) -> list[tuple[str, str]]:
        """Source and first target of each pair."""
        rows = ((self.batches[b], row) for b, row in self._places(pairs))
        return [(batch.column("src")[row].as_py(), batch.column("tgts")[row][0].as_py()) for batch, row in rows]

    def where(self, pair: int) -> str:
        """The place in a corpus that a pair comes from: file:line."""
        [(index, row)] = self._places([pair])
        batch = self.batches[index]
        return f"{self.files[batch.column('file')[row].as_py()]}:{batch.column('line')[row]}"

    def texts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Source and references of every pair, in order, as they were read."""
        for batch in self.batches:
            src, tgts = batch.column("src").to_pylist(), batch.column("tgts").to_pylist()
            yield from ((s, tuple(t)) for s, t in zip(src, tgts, strict=True))

    def _batch(self, pairs: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.starts, pairs, side="right") - 1

    def _places(self, pairs: Iterable[int]) -> list[tuple[int, int]]:
        """Batch and row of each pair."""
        wanted = np.fromiter(pairs, np.int64)
        batch = self._batch(wanted)
        return list(zip(batch.tolist(), (wanted - self.starts[batch]).tolist(), strict=True))


def _item(lists: _Lists, row: int) -> np.ndarray:
    return lists.values[lists.offsets[row] : lists.offsets[row + 1]]
