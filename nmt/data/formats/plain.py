"""Text files, aligned line by line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest
from pathlib import Path

from nmt.data.formats.paths import Names, align, listed, title
from nmt.data.formats.unit import Block, Unit
from nmt.errors import DataError
from nmt.files import count_lines, read_blocks, read_lines
from nmt.tokenizer import blank


class Plain:
    """Line n of `src` is translated by line n of `tgt`. A list of `tgt` files gives several references of one `src`;
    lists for both are pairs of files, read one after the other. Wildcards pair files for which they stand for the same:
    en/part-*.en with de/part-*.de.
    """

    def __init__(self, root: Path, *, src: Names, tgt: Names) -> None:
        self.root = root
        srcs, tgts = listed(src), listed(tgt)
        if isinstance(src, str):
            self.groups = [(src, tgts)]
        elif len(srcs) == len(tgts):
            self.groups = [(one, [other]) for one, other in zip(srcs, tgts, strict=True)]
        else:
            raise DataError(
                f"a plain corpus has {len(srcs)} files in the list `src`, but {len(tgts)} in `tgt`: "
                "they go together one to one"
            )
        self.references = max(len(tgts) for _, tgts in self.groups)
        self.name = title(src)

    def read(self) -> Iterator[Unit]:
        for files in self._files():
            name = str(files[0])
            try:
                for number, lines in enumerate(zip(*map(read_lines, files), strict=True), 1):
                    yield Unit(lines[0], lines[1:], name, number)
            except ValueError:  # from zip
                raise DataError(_unequal(files)) from None

    def blocks(self, lines: int) -> Iterator[Block]:
        """The same in blocks of so many lines, not decoded. Raises DataError where the files have not equally many."""
        for files in self._files():
            first, names = 1, tuple(map(str, files))
            for sides in zip_longest(*(read_blocks(file, lines) for file in files), fillvalue=b""):
                counts = {count_lines(side) if side else 0 for side in sides}
                if len(counts) > 1:
                    raise DataError(_unequal(files))
                yield Block(sides, names, first)
                first += counts.pop()

    def inputs(self) -> list[Path]:
        return [file for files in self._files() for file in files]

    def _files(self) -> Iterator[list[Path]]:
        """Each source file with its translations."""
        for src, tgts in self.groups:
            aligned = [align(self.root, src, tgt) for tgt in tgts]
            for rows in zip(*aligned, strict=True):
                yield [rows[0][0], *(tgt for _, tgt in rows)]


def _unequal(files: list[Path]) -> str:
    """Names every file with its count, and looks whether what is too much is blank."""
    counts = [sum(1 for _ in read_lines(file)) for file in files]
    shared = min(counts)
    sizes = [f"{file} has {count:,} line{'s' * (count != 1)}" for file, count in zip(files, counts, strict=True)]
    extra_lines = (line for file in files for line in islice(read_lines(file), shared, None))
    hint = (
        "the extra lines at its end are blank: remove them"
        if all(map(blank, extra_lines))
        else "they must be aligned line by line"
    )
    return f"{', but '.join(sizes)}; {hint}"
