"""Batches in order: each pair once an epoch, shared out among processes and micro-batches, made ahead in a thread."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data import plan
from nmt.data.batches import Batch
from nmt.data.plan import Share
from nmt.feed import AHEAD, Ahead, Feed, Position, Ready

EOS = 3


class Numbered:
    """Pairs whose first token says which pair it is."""

    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(1)
        sizes = rng.integers(0, 12, (count, 2))
        self.sides = [[np.array([4 + i, *[9] * size, EOS]) for i, size in enumerate(column)] for column in sizes.T]

    def __len__(self) -> int:
        return len(self.sides[0])

    def epoch(self, epoch: int) -> Numbered:
        return self

    def lengths(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        src, tgt = (np.array([len(side[i]) for i in pairs], np.int64) for side in self.sides)
        return src, tgt

    def ids(self, pairs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return [self.sides[0][i] for i in pairs], [self.sides[1][i] for i in pairs]

    def where(self, pair: int) -> str:
        return f"corpus:{pair + 1}"


PAIRS = Numbered(150)


def feed(batch_tokens: int = 64, **more: Any) -> Feed:
    return Feed(PAIRS, [Share(len(PAIRS))], batch_tokens, 1, torch.device("cpu"), **more)


def epoch_of(found: Feed, epoch: int, accumulate: int = 1) -> list[Ready]:
    start = Position(epoch, 0, 0)
    return list(itertools.takewhile(lambda ready: ready.at.epoch == epoch, found.batches(start, accumulate)))


def members(micro: Batch | None) -> list[int]:
    return [] if micro is None else (micro.src_BS[:, 0] - 4).tolist()


@pytest.fixture(params=[150, 40], ids=["one window", "four windows"], autouse=True)
def window(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small windows, so that there are several."""
    defaults = plan.windows.__defaults__, plan.window_pairs.__defaults__
    plan.windows.__defaults__ = plan.window_pairs.__defaults__ = (request.param,)
    yield
    plan.windows.__defaults__, plan.window_pairs.__defaults__ = defaults


@pytest.mark.parametrize("batch_tokens", [8, 64, 100_000])
@pytest.mark.parametrize(("world", "accumulate"), [(1, 1), (1, 3), (2, 1), (3, 2)])
def test_an_epoch_has_each_pair_once(batch_tokens: int, world: int, accumulate: int):
    """Case 34: over all processes and micro-batches, those without a row included."""
    seen = []
    for rank in range(world):
        for ready in epoch_of(feed(batch_tokens, rank=rank, world=world), 2, accumulate):
            assert len(ready.mine) == accumulate and ready.parts == world * accumulate
            seen += [pair for micro in ready.mine for pair in members(micro)]
    assert sorted(seen) == list(range(len(PAIRS)))


def test_epochs_have_orders_of_their_own_and_a_seed_repeats_them():
    first, again, second = (
        [pair for ready in epoch_of(feed(), epoch) for pair in ready.pairs.tolist()] for epoch in (0, 0, 1)
    )
    assert first == again
    assert first != second and sorted(first) == sorted(second)


def test_n_processes_with_k_micro_batches_see_those_of_one_with_n_times_k():
    alone = epoch_of(feed(), 0, 6)
    ranks = [epoch_of(feed(rank=rank, world=3), 0, 2) for rank in range(3)]
    for ready, *parts in zip(alone, *ranks, strict=True):
        together = [micro for part in parts for micro in part.mine]
        assert [members(micro) for micro in together] == [members(micro) for micro in ready.mine]
        assert len({part.tokens for part in parts}) == 1


def test_all_parts_of_a_batch_have_its_shape_and_together_its_tokens():
    for ready in epoch_of(feed(), 0, 4):
        parts = [micro for micro in ready.mine if micro is not None]
        assert {(p.src_BS.shape[1], p.tgt_in_BT.shape[1]) for p in parts} == {ready.shape}
        assert sum(p.tokens for p in parts) == ready.tokens == sum(map(len, ready.tgt))
        rows = sum(len(side.place_N) for part in parts for side in (part.src, part.tgt))
        real = sum(map(len, ready.src)) + ready.tokens
        assert ready.padding == pytest.approx(1 - real / rows)


def test_the_batches_from_any_place_are_the_rest_of_all():
    batches = [*epoch_of(feed(), 0), *epoch_of(feed(), 1)]
    for number in (1, 5, len(batches) // 2, len(batches) - 3):
        start = batches[number - 1].next
        for expected, found in zip(batches[number:], feed().batches(start, 1), strict=False):
            assert found.at == expected.at and found.pairs.tolist() == expected.pairs.tolist()
    assert [ready.next for ready in batches[:-1]] == [ready.at for ready in batches[1:]]


def test_passes_over_the_data_grow_from_one_whole_number_to_the_next():
    shares = [ready.epochs for ready in epoch_of(feed(), 3)]
    assert shares == sorted(shares) and shares[-1] == 4.0 and 3.0 < shares[0] < 3.5


def test_batches_that_are_left_out_do_not_move_the_others():
    batches = epoch_of(feed(), 0)
    left_out = [batches[0].at, batches[4].at]
    found = epoch_of(feed(left_out=left_out), 0)
    assert [ready.at for ready in found] == [ready.at for ready in batches if ready.at not in left_out]


# --- made ahead ---


def test_batches_made_ahead_are_the_same_in_the_same_order():
    """Case 64."""
    ahead = feed().ahead(Position(0, 0, 0), 2)
    try:
        for expected, _ in zip(feed().batches(Position(0, 0, 0), 2), range(30), strict=False):
            found = ahead.take()
            assert found.at == expected.at
            assert all(torch.equal(a.src_BS, b.src_BS) for a, b in zip(found.mine, expected.mine, strict=True) if a)
    finally:
        ahead.close()


def test_only_few_batches_are_made_ahead():
    made: list[int] = []

    def endless() -> Iterator[Any]:
        for number in itertools.count():
            made.append(number)
            yield number

    ahead = Ahead(endless())
    deadline = time.monotonic() + 5
    while len(made) < AHEAD + 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(made) == AHEAD + 1  # one waits for its place
    assert [ahead.take() for _ in range(3)] == [0, 1, 2]
    ahead.close()


def test_an_error_of_the_thread_is_raised_where_the_batch_is_asked_for():
    def failing() -> Iterator[Any]:
        yield 1
        raise OSError("the disk is gone")

    ahead = Ahead(failing())
    assert ahead.take() == 1
    with pytest.raises(OSError, match="the disk is gone"):
        ahead.take()
    ahead.close()


def test_closing_ends_the_thread():
    before = threading.active_count()
    ahead = feed().ahead(Position(0, 0, 0), 1)
    assert threading.active_count() == before + 1
    ahead.close()
    assert threading.active_count() == before
