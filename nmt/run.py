"""The run directory: where everything is, who may use it, and its record of numbers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.errors import NmtError
from nmt.files import append_line, check_writable, locked, remove_leftovers


class Run:
    """The paths of one run. `prepared` and `checkpoints` mark the directory as ours."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.config = self.directory / "config.yaml"
        self.prepared = self.directory / "prepared"
        self.checkpoints = self.directory / "checkpoints"
        self.valid = self.directory / "valid"
        self.evaluate = self.directory / "evaluate"
        self.metrics = self.directory / "metrics.jsonl"
        self.log = self.directory / "train.log"

    @property
    def exists(self) -> bool:
        return os.path.isdir(self.prepared) or os.path.isdir(self.checkpoints)

    def translations(self, valid: str | None, step: int, averaged: bool, tgt_lang: str) -> Path:
        """Where those of a validation are kept; the set has no name where it is the only one."""
        stem = f"{f'{valid}.' if valid else ''}step-{step:08d}{'.average' if averaged else ''}"
        return self.valid / f"{stem}.{tgt_lang}"

    def check(self) -> None:
        """Raises NmtError if something stands where a training is to write."""
        for file in (self.config, self.metrics, self.log):
            check_writable(file)
        for directory in (self.checkpoints, self.valid):
            if directory.exists() and not directory.is_dir():
                raise NmtError(f"{directory}: is a file, expected a directory to write into; move it away")

    @contextlib.contextmanager
    def claimed(self, what: str, by_me: bool = True) -> Iterator[None]:
        """Makes the directory if needed and keeps other processes out; takes it away again if nothing came of it.

        Of several processes at one work, one claims it for all: for the others this does nothing.

        Raises NmtError if it cannot be written, holds something else, or is in use.
        """
        if not by_me:
            yield
            return
        directory = self.directory
        if os.path.exists(directory) and not os.path.isdir(directory):
            raise NmtError(f"run_dir {directory}: is a file, expected a directory")
        lock = directory / ".lock"
        if os.path.isdir(directory) and not self.exists:
            foreign = sorted(p.name for p in directory.iterdir() if p != lock and not p.name.endswith(".tmp"))
            if foreign:
                raise NmtError(
                    f"run_dir {directory}: holds files but no run of ours ({foreign[0]}, …); name another directory"
                )
        made = [path for path in (directory, *directory.parents) if not os.path.exists(path)]
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock.touch()
        except OSError as error:
            raise NmtError(f"run_dir {directory}: cannot be written: {error.strerror}") from None
        with locked(lock, what):
            try:
                remove_leftovers(directory)
                yield
            finally:
                if not self.exists:
                    lock.unlink(missing_ok=True)  # somebody has moved the run away meanwhile
                    with contextlib.suppress(OSError):  # somebody else put a file there meanwhile
                        for path in made:
                            path.rmdir()


class Record:
    """metrics.jsonl: one JSON object a line, appended as the run goes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, kind: str, **values: Any) -> None:
        append_line(self.path, json.dumps({"kind": kind, **values}, ensure_ascii=False))

    def rows(self) -> list[dict[str, Any]]:
        """All that is on record; what others have written there is passed over."""
        lines = self.path.read_text(encoding="utf-8", errors="replace").split("\n") if self.path.exists() else []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return [row for row in found if isinstance(row, dict)]

    def last_step(self) -> int:
        """0 if there is none."""
        return next((row["step"] for row in reversed(self.rows()) if isinstance(row.get("step"), int)), 0)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def cut(path: Path, length: int) -> None:
    """Shortens a log to what it was, so that a resumed run writes no line twice. It then ends with a whole line, also
    if somebody has changed it meanwhile."""
    if path.exists():
        with open(path, "rb+") as stream:
            stream.truncate(stream.read(length).rfind(b"\n") + 1)
