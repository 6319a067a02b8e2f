"""One file with a pair on each line, its columns separated by tabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from nmt.choice import Natural, did_you_mean
from nmt.data.formats.unit import Unit
from nmt.errors import DataError
from nmt.files import read_lines


class Tsv:
    """Columns are given by number, from 0, or by the names in the file's first line."""

    def __init__(
        self, root: Path, *, path: str, src: Natural | str = 0, tgt: Natural | str = 1, label: str = ""
    ) -> None:
        self.path = root / path
        self.src, self.tgt = src, tgt
        self.label = label or Path(path).name

    def read(self) -> Iterator[Unit]:
        lines = enumerate(read_lines(self.path), 1)
        src, tgt = self.src, self.tgt
        if isinstance(src, str) or isinstance(tgt, str):
            header = next(lines, (0, ""))[1].split("\t")
            src, tgt = self._column(src, header), self._column(tgt, header)
        for number, line in lines:
            columns = line.split("\t")
            if len(columns) <= max(src, tgt):
                raise DataError(
                    f"{self.path}:{number}: has {len(columns)} column{'s' * (len(columns) != 1)}, "
                    f"expected at least {max(src, tgt) + 1} separated by tabs"
                )
            yield Unit(columns[src], (columns[tgt],), f"{self.path}:{number}")

    def _column(self, name: int | str, header: list[str]) -> int:
        if isinstance(name, int):
            return name
        if name not in header:
            raise DataError(
                f"{self.path}:1: has no column `{name}`{did_you_mean(name, header)}; "
                f"its columns are {', '.join(header)}"
            )
        return header.index(name)

    def inputs(self) -> list[Path]:
        return [self.path]
