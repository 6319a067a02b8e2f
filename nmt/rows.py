"""The lines of an input as what is to be translated and what stands around it: plain lines, or a column of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nmt.data.formats.tsv import numbered
from nmt.errors import DataError
from nmt.files import called, read_lines

ADDED = "translation"  # the column, or the field, that is added


class Row(NamedTuple):
    """A line of input, whose line of output is `before`, its translation as `written`, and `after`."""

    text: str
    before: str = ""
    after: str = ""
    written: Callable[[str], str] = str

    def line(self, translation: str) -> str:
        return self.before + self.written(translation) + self.after


def read_rows(path: str, column: str | None = None) -> Iterator[Row]:
    """The lines of a file to translate, or one column of it, to which the translation is added as the last.

    A file named .jsonl (or .jsonl.gz) has a JSON object on each line, and `column` is a field, dots for one inside
    another: doc.title. Any other has columns separated by tabs, by number from 0, or by the names in its first line.
    Raises DataError for a line that is not so.
    """
    lines = read_lines(path)
    if column is None:
        return map(Row, lines)
    return (_objects if ".jsonl" in Path(path).suffixes[-2:] else _table)(lines, called(path), column)


def _table(lines: Iterable[str], path: str, column: str) -> Iterator[Row]:
    named = not column.isdecimal()
    number = width = 0
    for at, line in enumerate(lines, 1):
        cells = line.split("\t")
        if at == 1:
            number = numbered(column if named else int(column), cells, path)
            width = len(cells)
        if not number < len(cells) == width:
            raise DataError(
                f"{path}:{at}: has {len(cells)} column{'s' * (len(cells) != 1)}, "
                f"expected {max(width, number + 1)} separated by tabs"
            )
        header = named and at == 1
        yield Row("", f"{line}\t{ADDED}") if header else Row(cells[number], line + "\t")


def _objects(lines: Iterable[str], path: str, column: str) -> Iterator[Row]:
    for at, line in enumerate(lines, 1):
        if not line.strip():
            raise DataError(f"{path}:{at}: is blank; expected a JSON object on each line")
        try:
            value = record = json.loads(line)
        except (ValueError, RecursionError) as error:
            why = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise DataError(f"{path}:{at}: is not JSON: {why}; expected an object on each line") from None
        for key in column.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, str):
            raise DataError(f"{path}:{at}: has no text in the field `{column}`")
        if ADDED in record:
            raise DataError(f"{path}:{at}: has a field `{ADDED}` already; rename it")
        # All else stays as it is written, so the line is opened at its end rather than written anew.
        yield Row(_whole(value), f'{line.rstrip()[:-1]}, "{ADDED}": ', "}", _quoted)


def _whole(text: str) -> str:
    """JSON may hold halves of characters, which no file may: they become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
