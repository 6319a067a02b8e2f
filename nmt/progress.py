"""What a user sees of work going on: a bar on a terminal, plain lines elsewhere. All on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm

from nmt.files import append_line

T = TypeVar("T")


def say(message: str) -> None:
    """One line, above any bar. Where nobody can read it any more (a closed pipe, a full disk), work goes on unheard."""
    try:
        tqdm.write(message, file=sys.stderr)
        sys.stderr.flush()
    except OSError:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # to the end of the process


def bar(
    items: Iterable[T], what: str, unit: str, total: int | None = None, count: Callable[[T], int] = lambda _: 1
) -> Iterator[T]:
    """The items, with a bar if somebody can see it; each moves it on by its `count` of units."""
    with tqdm(
        desc=what, unit=f" {unit}", total=total, file=sys.stderr, disable=not sys.stderr.isatty(), leave=False
    ) as shown:
        for item in items:
            yield item
            shown.update(count(item))


class TrainingProgress:
    """A bar of the run's share done, and lines that go to the log file and to stderr."""

    def __init__(self, log: Path | None) -> None:
        """Without a log, nothing is said at all."""
        self.log = log
        self.bar: tqdm[Any] | None = None
        if log is not None and sys.stderr.isatty():
            self.bar = tqdm(
                total=1.0, file=sys.stderr, bar_format="{percentage:5.1f}%|{bar}| {elapsed}<{remaining} {postfix}"
            )

    def line(self, message: str) -> None:
        if self.log is None:
            return
        append_line(self.log, f"{datetime.now():%Y-%m-%d %H:%M:%S} {message}")
        say(message)

    def at(self, share: float, postfix: str) -> None:
        if self.bar is not None:
            self.bar.n = min(1.0, share)
            self.bar.set_postfix_str(postfix)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
