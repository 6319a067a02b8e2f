"""Ctrl-C, SIGTERM and SIGUSR1 as a wish to stop, so that a training can save before it leaves."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any, Self


class Stop(Exception):
    """Raised where work may be broken off, when a signal has come."""


class Signals:
    """Notes SIGINT, SIGTERM and SIGUSR1 (what batch systems send before time is up) while its `with` block runs.

    A second signal ends the process at once.
    """

    def __init__(self) -> None:
        self.received = 0
        self.immediate = False
        self.old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            self.old[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.received:
            raise SystemExit(128 + number)
        self.received = number
        if self.immediate:
            raise Stop

    @contextlib.contextmanager
    def breaking_off(self) -> Iterator[None]:
        """Inside the block a signal raises Stop, instead of waiting for somebody to look at `received`."""
        self.immediate = True
        try:
            if self.received:
                raise Stop
            yield
        finally:
            self.immediate = False
