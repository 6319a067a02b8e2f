"""Data sets of the Hugging Face hub, and local json, csv and parquet files, through the `datasets` package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from nmt.choice import Range
from nmt.data.formats.unit import Unit
from nmt.errors import DataError


class Hub:
    """`dataset` is a name on the hub, or json, csv or parquet with `files`. Columns may be dotted: translation.en."""

    def __init__(
        self,
        root: Path,
        *,
        dataset: str,
        src: str,
        tgt: str,
        config: str | None = None,
        split: str = "train",
        files: str | Annotated[list[str], Range(ge=1)] | None = None,
        label: str = "",
    ) -> None:
        self.dataset, self.config, self.split = dataset, config, split
        self.files = [root / name for name in ([files] if isinstance(files, str) else files or [])]
        self.src, self.tgt = src.split("."), tgt.split(".")
        self.label = label or dataset

    def read(self) -> Iterator[Unit]:
        number = 0
        try:
            for number, row in enumerate(self._load()):
                where = f"{self.dataset}[{self.split}] row {number}"
                yield Unit(_field(row, self.src, where), (_field(row, self.tgt, where),), where)
        except UnicodeDecodeError as error:  # Arrow checks text only when it is looked at
            raise DataError(f"{self._what()} after row {number}: is not UTF-8: {error.reason}") from None

    def _load(self) -> Any:
        import datasets

        datasets.disable_progress_bars()
        datasets.logging.set_verbosity_error()
        for file in self.files:
            if not file.is_file():
                raise DataError(f"{file}: no such file")
        if self.dataset in ("json", "csv", "parquet") and not self.files:
            raise DataError(f"a hub corpus of {self.dataset} files needs the option `files`")
        options: dict[str, Any] = {"data_files": [str(file) for file in self.files]} if self.files else {}
        if self.dataset == "csv":  # cells are text, also those that say NA or 007
            options |= {"converters": {self.src[0]: str, self.tgt[0]: str}, "keep_default_na": False}
        try:
            return datasets.load_dataset(self.dataset, self.config, split=self.split, **options)
        except Exception as error:
            # datasets raises what its readers and the network raise; the user needs one line that names the set.
            cause: BaseException = error
            while cause.__cause__ is not None:  # the outermost only says that something went wrong
                cause = cause.__cause__
            reason = str(cause).strip().splitlines() or [type(cause).__name__]
            raise DataError(f"data set {self._what()} (split {self.split}) cannot be loaded: {reason[0]}") from None

    def _what(self) -> str:
        return ", ".join(map(str, self.files)) or self.dataset

    def inputs(self) -> list[Path]:
        return list(self.files)


def _field(row: Any, path: list[str], where: str) -> str:
    for key in path:
        if not isinstance(row, dict) or key not in row:
            known = ", ".join(map(str, row)) if isinstance(row, dict) else "none, it is a single value"
            raise DataError(f"{where}: has no column `{'.'.join(path)}`; at `{key}` the columns are: {known}")
        row = row[key]
    if not isinstance(row, str):
        raise DataError(f"{where}: column `{'.'.join(path)}` must be text, but is {type(row).__name__} instead")
    return row
