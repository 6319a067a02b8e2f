"""Data sets of the Hugging Face hub, and local json, csv and parquet files, through the `datasets` package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.data.formats.paths import Names, expand, listed, some, title
from nmt.data.formats.unit import Unit
from nmt.errors import DataError

BATCH = 1_000  # rows
LOCAL = ("json", "csv", "parquet")


class Hub:
    """`dataset` is a name on the hub, or json, csv or parquet with `files`, which may have wildcards. Columns may be
    dotted: translation.en. A list of `tgt` columns, or a column that holds lists of texts, gives several references.
    `streaming: true` reads from the hub while going on, with nothing downloaded whole or kept.
    """

    def __init__(
        self,
        root: Path,
        *,
        dataset: str,
        src: str,
        tgt: Names,
        config: str | None = None,
        split: str = "train",
        files: Names | None = None,
        streaming: bool = False,
    ) -> None:
        self.root, self.files = root, files
        self.dataset, self.config, self.split, self.streaming = dataset, config, split, streaming
        self.src, self.tgts = src.split("."), [column.split(".") for column in listed(tgt)]
        self.name = title(files) if files else dataset

    def read(self) -> Iterator[Unit]:
        name = self._what()
        for number, row in enumerate(self._rows(), 1):
            where = f"{name}:{number}"
            src = _text(_field(row, self.src, where), self.src, where)
            tgts = []
            for column in self.tgts:
                value = _field(row, column, where)
                tgts += [_text(item, column, where) for item in (value if isinstance(value, list) else [value])]
            if not tgts:
                raise DataError(f"{where}: column `{'.'.join(self.tgts[0])}` is an empty list, expected a translation")
            yield Unit(src, tuple(tgts), name, number)

    def _rows(self) -> Iterator[Any]:
        import datasets

        datasets.disable_progress_bars()
        datasets.logging.set_verbosity(datasets.logging.CRITICAL)  # it logs what it raises as well
        files = self.inputs()
        for file in files:
            if not file.is_file():
                raise DataError(f"{file}: no such file")
        if self.dataset in LOCAL and not files:
            raise DataError(f"a hub corpus of {self.dataset} files needs the option `files`")
        options: dict[str, Any] = {"data_files": [str(file) for file in files]} if files else {}
        if self.dataset == "csv":  # cells are text, also those that say NA or 007
            options |= {"converters": {column[0]: str for column in (self.src, *self.tgts)}, "keep_default_na": False}
        number = 0
        try:
            rows = datasets.load_dataset(
                self.dataset, self.config, split=self.split, streaming=self.streaming, **options
            )
            for columns in rows.iter(BATCH):  # a row at a time takes 15 times as long
                for values in zip(*columns.values(), strict=True):
                    number += 1
                    yield dict(zip(columns, values, strict=True))
        except Exception as error:
            # datasets raises what its readers and the network raise; the user needs one line that names the set.
            cause: BaseException = error
            while cause.__cause__ is not None:  # the outermost only says that something went wrong
                cause = cause.__cause__
            reason = str(cause).strip().splitlines() or [type(cause).__name__]
            place = f" after row {number}" if number else ""
            raise DataError(f"{self._what()}{place}: cannot be loaded by `datasets`: {reason[0]}") from None

    def _what(self) -> str:
        return some(self.inputs()) or f"{self.dataset}[{self.split}]"

    def inputs(self) -> list[Path]:
        return expand(self.root, self.files or [])


def _field(row: Any, path: list[str], where: str) -> Any:
    for key in path:
        if not isinstance(row, dict) or key not in row:
            known = ", ".join(map(str, row)) if isinstance(row, dict) else "none, it is a single value"
            raise DataError(f"{where}: has no column `{'.'.join(path)}`; at `{key}` the columns are: {known}")
        row = row[key]
    return row


def _text(value: Any, path: list[str], where: str) -> str:
    if not isinstance(value, str):
        kind = "empty (null)" if value is None else f"{type(value).__name__} instead"
        raise DataError(f"{where}: column `{'.'.join(path)}` must be text, but is {kind}")
    return value
