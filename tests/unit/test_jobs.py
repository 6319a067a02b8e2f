"""Work in several processes: in order, with its errors, and nobody left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from nmt.errors import DataError, NmtError
from nmt.jobs import FEW, WAITING, ordered_map, processors, without_collecting

MANY = 4 * FEW


def square(number: int) -> tuple[int, int]:
    """Late items are done first. The process that did it comes along."""
    time.sleep(0.02 if number % 4 == 0 else 0)
    return number * number, os.getpid()


def stumble(number: int) -> int:
    if number == 2 * FEW:
        raise DataError("file:7: is wrong")
    return number


def die(number: int) -> int:
    if number == 2 * FEW:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@dataclass
class Meeting:
    """Work that waits until so many processes are at it; says how many came."""

    place: Path
    expected: int

    def __call__(self, number: int) -> int:
        (self.place / str(os.getpid())).touch()
        give_up = time.monotonic() + 30
        while (met := len(list(self.place.iterdir()))) < self.expected and time.monotonic() < give_up:
            time.sleep(0.01)
        return met


class Counting:
    """Has a state, which each process has a copy of."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, number: int) -> tuple[int, bool]:
        self.calls += 1
        return self.calls, gc.isenabled()


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    before = set(multiprocessing.active_children())
    yield
    assert set(multiprocessing.active_children()) == before


def test_results_come_in_order_from_as_many_processes_and_are_those_of_one() -> None:
    found = list(ordered_map(square, range(MANY), 3))
    assert [number for number, _ in found] == [number for number, _ in ordered_map(square, range(MANY), 1)]
    assert [number for number, _ in found] == [i * i for i in range(MANY)]
    assert os.getpid() not in {process for _, process in found}


def test_as_many_processes_work_at_once(tmp_path: Path) -> None:
    assert set(ordered_map(Meeting(tmp_path, 2), range(MANY), 2)) == {2}


@pytest.mark.parametrize(("count", "jobs"), [(0, 3), (1, 3), (FEW - 1, 3), (MANY, 1)])
def test_few_items_and_one_job_stay_in_this_process(count: int, jobs: int) -> None:
    assert list(ordered_map(square, iter(range(count)), jobs)) == [(i * i, os.getpid()) for i in range(count)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_the_work_raises_is_raised_after_the_results_before_it(jobs: int) -> None:
    found = []
    with pytest.raises(DataError, match=r"^file:7: is wrong$"):
        for result in ordered_map(stumble, range(MANY), jobs):
            found.append(result)
    assert found == list(range(2 * FEW))


def test_what_reading_the_items_raises_is_raised() -> None:
    def items() -> Iterator[int]:
        yield from range(2 * FEW)
        raise DataError("file:9: ends here")

    with pytest.raises(DataError, match=r"^file:9: ends here$"):
        list(ordered_map(stumble, items(), 2))


def test_a_killed_process_is_one_error_that_says_what_to_do() -> None:
    """As the system does when memory runs out."""
    with pytest.raises(NmtError, match=r"was killed.*fewer --jobs") as error:
        list(ordered_map(die, range(MANY), 2))
    assert "\n" not in str(error.value)


def test_a_consumer_that_stops_early_ends_the_processes_and_the_reading() -> None:
    read = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            read.append(number)
            yield number

    with closing(ordered_map(square, items(), 2)) as results:
        assert [next(results)[0] for _ in range(3)] == [0, 1, 4]
        assert len(multiprocessing.active_children()) == 2
    assert len(read) <= FEW + 3 + WAITING * 2 + 1  # read ahead no further than that


def test_the_work_is_copied_into_each_process_once_and_does_not_collect_garbage_there() -> None:
    found = list(ordered_map(Counting(), range(MANY), 2))
    calls = [number for number, _ in found]
    assert max(calls) > 1 and calls.count(1) <= 2
    assert not any(collecting for _, collecting in found)


def test_garbage_is_not_collected_meanwhile() -> None:
    assert gc.isenabled()
    with without_collecting():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError), without_collecting():
        raise ValueError
    assert gc.isenabled()


def test_there_is_a_processor() -> None:
    assert 1 <= processors() <= (os.cpu_count() or 1)


def test_a_single_process_waits_for_nothing_that_comes_after() -> None:
    """As an answer to the first line of a dialogue must not wait for the second."""
    asked: list[int] = []

    def items() -> Iterator[int]:
        for number in range(3):
            asked.append(number)
            yield number

    results = ordered_map(square, items(), 1, forked=True)
    assert next(results)[0] == 0
    assert asked == [0]


def test_far_more_processes_than_cores_are_refused() -> None:
    with pytest.raises(NmtError, match=r"1,000,000 processes were asked for, but there are \d+ processor cores"):
        next(ordered_map(square, range(3), 1_000_000))
