"""Files with a pair on each line, its columns separated by tabs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

from nmt.choice import Natural, Range, did_you_mean
from nmt.data.formats.paths import Names, expand, title
from nmt.data.formats.unit import Unit
from nmt.errors import DataError
from nmt.files import read_lines


class Tsv:
    """Columns are given by number, from 0, or by the names in a file's first line; quotes are text, and every tab
    separates; empty lines are skipped. `path` may have wildcards or be a list; a list of `tgt` columns gives several
    references.
    """

    def __init__(
        self,
        root: Path,
        *,
        path: Names,
        src: Natural | str = 0,
        tgt: Natural | str | Annotated[list[Natural | str], Range(ge=1)] = 1,
    ) -> None:
        self.root, self.path = root, path
        self.columns = [src, *(tgt if isinstance(tgt, (list, tuple)) else [tgt])]
        self.name = title(path)

    def read(self) -> Iterator[Unit]:
        for file in self.inputs():
            yield from self._read(file)

    def _read(self, file: Path) -> Iterator[Unit]:
        lines = enumerate(read_lines(file), 1)
        header: list[str] = []
        if any(isinstance(column, str) for column in self.columns):
            header = next(lines, (0, ""))[1].split("\t")
        src, *tgts = [numbered(column, header, file) for column in self.columns]
        needed = max(src, *tgts) + 1
        name = str(file)
        for number, line in lines:
            if not line:
                continue
            cells = line.split("\t")
            if len(cells) < needed:
                raise DataError(
                    f"{file}:{number}: has {len(cells)} column{'s' * (len(cells) != 1)}, "
                    f"expected at least {needed} separated by tabs"
                )
            yield Unit(cells[src], tuple([cells[tgt] for tgt in tgts]), name, number)

    def unused(self) -> str:
        """What the columns hold that are not read, by the first line; nothing if there are none."""
        for file in self.inputs():
            header, line = [*islice(read_lines(file), 2), "", ""][:2]
            named = any(isinstance(column, str) for column in self.columns)
            used = {numbered(column, header.split("\t"), file) for column in self.columns}
            cells = (line if named else header).split("\t")
            if left := [f"{i} ({cell[:40]!r})" for i, cell in enumerate(cells) if i not in used]:
                return f"{file} has {len(cells)} columns; not used: {', '.join(left)}"
        return ""

    def inputs(self) -> list[Path]:
        return expand(self.root, self.path)


def numbered(column: int | str, header: list[str], file: str | Path) -> int:
    """A column's number, from 0; a name is looked for in the header. Raises DataError."""
    if isinstance(column, int):
        return column
    if column not in header:
        raise DataError(
            f"{file}:1: has no column `{column}`{did_you_mean(column, header)}; its columns are {', '.join(header)}"
        )
    return header.index(column)
