"""Two or more text files, aligned line by line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from nmt.choice import Range
from nmt.data.formats.unit import Unit
from nmt.errors import DataError
from nmt.files import read_lines
from nmt.tokenizer import blank


class Plain:
    """Line n of `src` is translated by line n of `tgt`; a list of files gives several references."""

    def __init__(self, root: Path, *, src: str, tgt: str | Annotated[list[str], Range(ge=1)], label: str = "") -> None:
        self.src = root / src
        self.tgts = [root / name for name in ([tgt] if isinstance(tgt, str) else tgt)]
        self.label = label or Path(src).name

    def read(self) -> Iterator[Unit]:
        files = [self.src, *self.tgts]
        streams = [read_lines(file) for file in files]
        for number, lines in enumerate(zip_longest(*streams), 1):
            if None in lines:
                raise DataError(_unequal(files, streams, number - 1, lines))
            yield Unit(lines[0], lines[1:], f"{self.src}:{number}")

    def inputs(self) -> list[Path]:
        return [self.src, *self.tgts]


def _unequal(files: list[Path], streams: list[Iterator[str]], shared: int, lines: tuple[str | None, ...]) -> str:
    """Names every file with its count, after `shared` lines that all have."""
    counts, extra_is_blank = [], True
    for file, stream, line in zip(files, streams, lines, strict=True):
        extra = [] if line is None else [line]
        count = shared + len(extra)
        for text in stream:
            count += 1
            extra = [*extra[:1], text]
        extra_is_blank = extra_is_blank and all(map(blank, extra)) and count <= shared + 2
        counts.append(f"{file} has {count:,} line{'' if count == 1 else 's'}")
    hint = (
        "; the extra lines at its end are blank: remove them"
        if extra_is_blank
        else "; they must be aligned line by line"
    )
    return ", but ".join(counts) + hint
