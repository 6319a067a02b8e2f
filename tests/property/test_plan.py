"""The plan of an epoch, for any corpus: every pair exactly once, within the budget, from any place on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.plan import BLOCK, WINDOW, BatchSpec, plan_window, rows_for, rung, window_pairs, windows

SEEDS = st.integers(0, 2**32 - 1)
EPOCHS = st.integers(0, 1000)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[int, int, int]:
    """(pairs, window, block) with blocks no larger than windows."""
    window = draw(st.integers(1, 60))
    return draw(st.integers(1, 300)), window, draw(st.integers(1, window))


def lengths_of(pairs: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths that a pair has by its number: mostly short, some very long."""
    rng = np.random.default_rng(seed)
    table = np.maximum(1, rng.lognormal(2.5, 1.0, (2, int(pairs.max()) + 1)).astype(np.int64))
    return table[0, pairs], table[1, pairs]


@settings(deadline=None)
@given(corpus=corpora(), seed=SEEDS, epoch=EPOCHS)
def test_the_windows_of_an_epoch_hold_every_pair_once(corpus: tuple[int, int, int], seed: int, epoch: int) -> None:
    """Case 34."""
    pairs, window, block = corpus
    parts = [window_pairs(pairs, seed, epoch, i, window, block) for i in range(windows(pairs, window))]
    assert sorted(np.concatenate(parts).tolist()) == list(range(pairs))
    # No window is a small rest: they differ by no more than a block, and the last block of the corpus may be short.
    sizes = [len(part) for part in parts]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) < 2 * block


@settings(deadline=None)
@given(corpus=corpora(), seed=SEEDS, epoch=EPOCHS, data=st.data())
def test_a_window_is_a_function_of_its_number_alone(
    corpus: tuple[int, int, int], seed: int, epoch: int, data: st.DataObject
) -> None:
    """Seeking: a resumed run plans the window that it stands in, without those before."""
    pairs, window, block = corpus
    count = windows(pairs, window)
    parts = [window_pairs(pairs, seed, epoch, i, window, block) for i in range(count)]
    index = data.draw(st.integers(0, count - 1))
    np.random.default_rng(99).random(7)  # nobody else's random numbers matter
    assert window_pairs(pairs, seed, epoch, index, window, block).tolist() == parts[index].tolist()


@settings(deadline=None)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), min_size=1, max_size=120),
    budget=st.integers(1, 3000),
    seed=SEEDS,
    epoch=EPOCHS,
)
def test_batches_hold_every_pair_of_a_window_once_and_keep_the_budget(
    lengths: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    """Case 34."""
    members = np.random.default_rng(seed).permutation(len(lengths)) + 1000
    src, tgt = np.array(lengths).T
    batches = plan_window(members, src, tgt, budget, seed, epoch, 0)
    assert sorted(np.concatenate([b.pairs for b in batches]).tolist()) == sorted(members.tolist())
    by_number = dict(zip(members.tolist(), lengths, strict=True))
    for batch in batches:
        longest = np.array([by_number[pair] for pair in batch.pairs.tolist()]).max(axis=0)
        assert (np.array(batch.shape) >= longest).all()
        # rows x longest side, padding counted; one pair that is longer makes a batch of its own
        assert len(batch.pairs) * max(batch.shape) <= budget or len(batch.pairs) == 1


def epoch_of(pairs: int, seed: int, epoch: int, window: int, block: int, budget: int = 256) -> list[BatchSpec]:
    batches = []
    for index in range(windows(pairs, window)):
        members = window_pairs(pairs, seed, epoch, index, window, block)
        batches += plan_window(members, *lengths_of(members, 5), budget, seed, epoch, index)
    return batches


@settings(deadline=None)
@given(corpus=corpora(), seed=SEEDS, epoch=EPOCHS, budget=st.integers(1, 2000))
def test_the_batches_of_an_epoch_hold_every_pair_once(
    corpus: tuple[int, int, int], seed: int, epoch: int, budget: int
) -> None:
    """Case 34, end to end."""
    batches = epoch_of(corpus[0], seed, epoch, *corpus[1:], budget)
    assert sorted(np.concatenate([b.pairs for b in batches]).tolist()) == list(range(corpus[0]))


def order(batches: list[BatchSpec]) -> list[list[int]]:
    return [batch.pairs.tolist() for batch in batches]


def test_the_order_repeats_with_the_seed_and_differs_by_epoch_and_seed() -> None:
    """Cases 34 and 55."""
    first = epoch_of(500, 1, 0, 200, 10)
    assert order(epoch_of(500, 1, 0, 200, 10)) == order(first)
    assert [b.shape for b in epoch_of(500, 1, 0, 200, 10)] == [b.shape for b in first]
    others = [order(epoch_of(500, seed, epoch, 200, 10)) for seed, epoch in ((1, 1), (1, 2), (2, 0), (0, 1))]
    assert all(other != order(first) for other in others)
    # Not only the batches' order: who stands beside whom differs too.
    assert all({frozenset(b) for b in other} != {frozenset(b) for b in order(first)} for other in others)


def test_the_pairs_of_a_window_are_others_in_every_epoch_and_for_every_seed() -> None:
    """Or a pair would meet the same companions for ever."""
    places = [(1, 0), (1, 1), (1, 2), (2, 0), (0, 1)]
    members = {frozenset(window_pairs(5000, seed, epoch, 0, 1000, 50).tolist()) for seed, epoch in places}
    assert len(members) == len(places)


def test_long_and_short_batches_are_mixed() -> None:
    """Sorted batches would teach long sentences first; the plan shuffles them."""
    longest = np.array([max(b.shape) for b in epoch_of(2000, 1, 0, WINDOW, BLOCK, 512)])
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_a_window_mixes_distant_parts_of_the_corpus() -> None:
    members = window_pairs(WINDOW * 5, 1, 0, 2)
    assert len(np.unique(members // WINDOW)) == 5
    assert abs(len(members) - WINDOW) <= 2 * BLOCK


@pytest.mark.parametrize(("pairs", "count"), [(1, 1), (WINDOW, 1), (WINDOW + 1, 2), (WINDOW * 10, 10)])
def test_how_many_windows(pairs: int, count: int) -> None:
    assert windows(pairs) == count


@settings(deadline=None)
@given(lengths=st.lists(st.integers(1, 5000), min_size=1, max_size=50))
def test_lengths_are_padded_to_few_values_and_by_little(lengths: list[int]) -> None:
    padded = rung(np.array(lengths))
    assert (padded >= lengths).all()
    assert (padded % 4 == 0).all()
    assert (padded - lengths < np.maximum(4, np.array(lengths) / 4)).all()
    assert (rung(padded) == padded).all()
    in_order = rung(np.sort(np.array(lengths)))
    assert (np.diff(in_order) >= 0).all()


def test_how_few() -> None:
    assert len(np.unique(rung(np.arange(1, 257)))) <= 24


@settings(deadline=None)
@given(longest=st.integers(1, 2000), budget=st.integers(1, 100_000))
def test_rows_fill_the_budget_in_eights(longest: int, budget: int) -> None:
    rows = rows_for(longest, budget)
    assert rows >= 1
    assert rows * longest <= budget or rows == 1
    assert rows % 8 == 0 or rows < 8
    assert (rows + 8) * longest > budget  # no more than seven rows are given away


def test_few_places_are_padding_and_few_batches_are_small() -> None:
    """With a corpus of ordinary lengths, buckets waste little."""
    members = np.arange(20_000)
    src, tgt = lengths_of(members, 3)
    batches = plan_window(members, src, tgt, 4096, 1, 0, 0)
    places = sum(len(b.pairs) * sum(b.shape) for b in batches)
    assert 1 - (src.sum() + tgt.sum()) / places < 0.35
    full = [len(b.pairs) * max(b.shape) > 2048 for b in batches]
    assert sum(full) / len(full) > 0.8
