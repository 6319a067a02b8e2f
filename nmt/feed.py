"""The batches of a training, in order, made ahead in a thread of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from nmt.data import plan
from nmt.data.batches import Batch, collate
from nmt.packing import rows_for

AHEAD = 4  # batches that are ready before they are asked for


class Epoch(Protocol):
    """Training pairs as ids, by number, as they are seen in an epoch."""

    def lengths(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def ids(self, pairs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]: ...


class Pairs(Protocol):
    """Training pairs."""

    def __len__(self) -> int: ...

    def epoch(self, epoch: int) -> Epoch: ...

    def where(self, pair: int) -> str:
        """The place that a pair comes from, for people."""


class Position(NamedTuple):
    """A batch of a window of an epoch."""

    epoch: int
    window: int
    batch: int


@dataclass
class Ready:
    """A batch with all that is needed to use it, wholly or in parts."""

    at: Position
    batches: int  # of its window
    windows: int  # of its epoch
    pairs: np.ndarray
    src: list[np.ndarray]
    tgt: list[np.ndarray]
    shape: tuple[int, int]
    parts: int
    mine: list[Batch | None]  # the parts of this process; None where there are fewer rows than parts

    @property
    def tokens(self) -> int:
        """Real target tokens, of all processes."""
        return sum(map(len, self.tgt))

    @property
    def padding(self) -> float:
        """Share of the rows that the model computes and nobody needs, both sides and all parts together."""
        lengths = [np.fromiter(map(len, side), np.int64, len(side)) for side in (self.src, self.tgt)]
        parts = [part for side in lengths for part in np.array_split(side, self.parts) if len(part)]
        return 1 - float(sum(side.sum() for side in lengths)) / sum(rows_for(int(part.sum())) for part in parts)

    @property
    def next(self) -> Position:
        epoch, window, batch = self.at
        if batch + 1 < self.batches:
            return Position(epoch, window, batch + 1)
        return Position(epoch, window + 1, 0) if window + 1 < self.windows else Position(epoch + 1, 0, 0)

    @property
    def epochs(self) -> float:
        """Passes over the data when this batch has been used, with fractions."""
        return self.at.epoch + (self.at.window + (self.at.batch + 1) / self.batches) / self.windows


class Judged(NamedTuple):
    """An epoch, as far as its first window tells."""

    batches: int
    tokens: float  # real target tokens of a batch
    padding: float  # as of a batch that is Ready


@dataclass(frozen=True)
class Feed:
    """Where batches come from: pairs, in the order that seed and position say, split among processes and micro-batches.

    Parts are numbered over all processes, so that n processes with k micro-batches each see what one with n * k sees.
    """

    pairs: Pairs
    shares: list[plan.Share]
    batch_tokens: int
    seed: int
    device: torch.device
    rank: int = 0
    world: int = 1
    left_out: Collection[Position] = ()

    def split(self, ready: Ready, accumulate: int) -> Ready:
        """The batch in `accumulate` micro-batches for each process."""
        parts = self.world * accumulate
        mine = np.array_split(np.arange(len(ready.src)), parts)[self.rank * accumulate : (self.rank + 1) * accumulate]
        batches = [
            collate([ready.src[i] for i in rows], [ready.tgt[i] for i in rows], ready.shape, self.device)
            if len(rows)
            else None
            for rows in mine
        ]
        return replace(ready, parts=parts, mine=batches)

    def specs(self, epoch: int, window: int) -> list[plan.BatchSpec]:
        members = plan.window_pairs(self.shares, self.seed, epoch, window)
        lengths = self.pairs.epoch(epoch).lengths(members)
        return plan.plan_window(members, *lengths, self.batch_tokens, self.seed, epoch, window)

    def windows(self, epoch: int) -> int:
        return plan.windows(plan.epoch_size(self.shares, epoch))

    def judged(self) -> Judged:
        specs, pairs = self.specs(0, 0), self.pairs.epoch(0)
        lengths = [pairs.lengths(spec.pairs) for spec in specs[:100]]
        sums = [int(side.sum()) for sides in lengths for side in sides]
        padding = 1 - sum(sums) / max(1, sum(map(rows_for, sums)))
        tokens = sum(int(tgt.sum()) for _, tgt in lengths) / max(1, len(lengths))
        return Judged(len(specs) * self.windows(0), tokens, padding)

    def batches(self, start: Position, accumulate: int) -> Iterator[Ready]:
        """All batches from a position on, without end. A position past its window is the start of the next one."""
        epoch, window, batch = start
        while True:
            windows = self.windows(epoch)
            while window < windows:
                specs = self.specs(epoch, window)
                for number in range(batch, len(specs)):
                    at = Position(epoch, window, number)
                    if at in self.left_out:
                        continue
                    spec = specs[number]
                    src, tgt = self.pairs.epoch(epoch).ids(spec.pairs)
                    ready = Ready(at, len(specs), windows, spec.pairs, src, tgt, spec.shape, 0, [])
                    yield self.split(ready, accumulate)
                window, batch = window + 1, 0
            epoch, window, batch = epoch + 1, 0, 0

    def ahead(self, start: Position, accumulate: int) -> Ahead:
        return Ahead(self.batches(start, accumulate))


class Ahead:
    """Items of an iterator, taken from it in a thread before they are asked for."""

    def __init__(self, items: Iterator[Ready]) -> None:
        self.items = items
        self.made: queue.Queue[Any] = queue.Queue(AHEAD)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._make, daemon=True)
        self.thread.start()

    def _make(self) -> None:
        try:
            for item in self.items:
                if not self._put(item):
                    return
        except BaseException as error:  # is raised where the item is asked for
            self._put(error)

    def _put(self, item: Any) -> bool:
        while not self.over.is_set():
            try:
                self.made.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def take(self) -> Ready:
        item = self.made.get()
        if isinstance(item, BaseException):
            raise item
        ready: Ready = item
        return ready

    def close(self) -> None:
        self.over.set()
        self.thread.join()
