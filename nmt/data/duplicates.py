"""Which of very many keys came before, without holding them in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

KEY = 16  # bytes
PARTITIONS = 256  # a key goes to the one that its first byte says: a billion keys make 100 MB each
BUFFERED = 500_000  # keys in memory at once


class Seen:
    """Keys of rows 0, 1, 2, …, kept in files in a directory by their first byte."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self.rows = 0
        self.buffer: list[np.ndarray] = []
        self.buffered = 0

    def add(self, keys: bytes) -> None:
        """The keys of the next rows, one after the other."""
        parts = np.frombuffer(keys, ">u8").reshape(-1, 2).astype(np.uint64)
        count = len(parts)
        numbers = np.arange(self.rows, self.rows + count, dtype=np.uint64)
        self.buffer.append(np.column_stack([parts, numbers]))
        self.rows += count
        self.buffered += count
        if self.buffered >= BUFFERED:
            self._flush()

    def _flush(self) -> None:
        if not self.buffered:
            return
        records = np.concatenate(self.buffer)
        self.buffer, self.buffered = [], 0
        where = (records[:, 0] >> np.uint64(56)).astype(np.int64)
        order = np.argsort(where, kind="stable")
        for part in np.split(records[order], np.flatnonzero(np.diff(where[order])) + 1):
            with open(self._file(int(part[0, 0] >> np.uint64(56))), "ab") as stream:
                stream.write(part.tobytes())

    def _file(self, partition: int) -> Path:
        return self.directory / f"{partition:02x}"

    def repeated(self) -> np.ndarray:
        """For each row whether its key came in an earlier one, mapped from a file. Shape: [rows], of bool."""
        self._flush()
        if not self.rows:
            return np.zeros(0, np.bool_)
        found = np.memmap(self.directory / "repeated", np.bool_, "w+", shape=(self.rows,))
        for partition in range(PARTITIONS):
            file = self._file(partition)
            if not file.exists():
                continue
            records = np.fromfile(file, np.uint64).reshape(-1, 3)
            file.unlink()
            records = records[np.lexsort((records[:, 2], records[:, 1], records[:, 0]))]
            same = (records[1:, :2] == records[:-1, :2]).all(axis=1)
            found[records[1:][same, 2].astype(np.int64)] = True
        return found
