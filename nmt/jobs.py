"""Work on many things in several processes, with the results in order."""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, TypeVar

from nmt.errors import NmtError

In = TypeVar("In")
Out = TypeVar("Out")

FEW = 8  # things that are done sooner than other processes have started afresh
MOST = 8  # processes a core: more only fill the memory
WAITING = 2  # things a process that are read ahead: enough to keep it busy, few enough to be held in memory


def processors() -> int:
    """The processor cores that this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """No garbage collection meanwhile: looking for circles among a million strings takes long, and there are none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def ordered_map(
    work: Callable[[In], Out],
    items: Iterable[In],
    jobs: int,
    forked: bool = False,
    mend: str = "try again with fewer --jobs",
) -> Generator[Out]:
    """work(item) for every item, in the order of the items, by as many processes.

    `work` is copied into each process once; a forked one starts at once and shares what `work` holds, but the caller
    must have no threads, which it would inherit half. Few items are not worth a process. What `work` raises is raised
    here; if a process is killed, NmtError says how to `mend` it. It also refuses far more processes than cores.
    """
    if jobs > MOST * processors():
        raise NmtError(
            f"{jobs:,} processes were asked for, but there are {processors()} processor cores; "
            f"use at most {MOST * processors()}"
        )
    items = iter(items)
    first = list(itertools.islice(items, 0 if jobs == 1 else 2 if forked else FEW))  # one process waits for no others
    items = itertools.chain(first, items)
    if jobs == 1 or len(first) < (2 if forked else FEW):
        yield from map(work, items)
        return
    context = multiprocessing.get_context("fork" if forked else "spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(work,))
    try:
        running: deque[Future[Out]] = deque()
        for item in items:
            running.append(pool.submit(_do, item))
            if len(running) > WAITING * jobs:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    except BrokenProcessPool:
        raise NmtError(f"a process at work was killed, most likely for want of memory; {mend}") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_work: Callable[[Any], Any]


def _begin(work: Callable[[Any], Any]) -> None:
    global _work
    _work = work
    gc.disable()  # as in `without_collecting`
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one decides
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _do(item: Any) -> Any:
    return _work(item)
