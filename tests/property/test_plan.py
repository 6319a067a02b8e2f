"""The plan of an epoch, for any corpora: every pair as often as its weight says, within the budget, from any place."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.plan import (
    BLOCK,
    WINDOW,
    BatchSpec,
    Share,
    epoch_size,
    plan_window,
    rows_for,
    rung,
    window_pairs,
    windows,
)

SEEDS = st.integers(0, 2**32 - 1)
EPOCHS = st.integers(0, 1000)
PAIRS = st.integers(0, 300) | st.sampled_from([2_000, 2_999, 7_001])  # from 2,000 on a block holds several pairs
WEIGHTS = st.sampled_from([0.01, 0.3, 0.5, 1 / 3, 0.7, 1.0, 1.5, 2.0, 3.7])


@st.composite
def corpora(draw: st.DrawFn, weights: st.SearchStrategy[float] = WEIGHTS) -> tuple[list[Share], int]:
    """Corpora, and a window for them: an epoch of weight 1 has up to some 20."""
    shares = draw(st.lists(st.builds(Share, PAIRS, weights), min_size=1, max_size=3))
    return shares, draw(st.integers(1 + sum(share.pairs for share in shares) // 20, 8_000))


WHOLE = corpora(st.just(1.0))


def windows_of(shares: list[Share], seed: int, epoch: int, window: int) -> list[np.ndarray]:
    count = windows(epoch_size(shares, epoch), window)
    return [window_pairs(shares, seed, epoch, i, window) for i in range(count)]


def pairs_of(shares: list[Share], seed: int, epoch: int, window: int = 100) -> list[int]:
    """All pairs of an epoch, as they come."""
    found: list[int] = np.concatenate(windows_of(shares, seed, epoch, window)).tolist()
    return found


def lengths_of(pairs: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Lengths that a pair has by its number: mostly short, some very long."""
    rng = np.random.default_rng(seed)
    table = np.maximum(1, rng.lognormal(2.5, 1.0, (2, int(pairs.max(initial=0)) + 1)).astype(np.int64))
    return table[0, pairs], table[1, pairs]


# --- which pairs ---


@settings(deadline=None)
@given(corpus=WHOLE, seed=SEEDS, epoch=EPOCHS)
def test_the_windows_of_an_epoch_hold_every_pair_once(corpus: tuple[list[Share], int], seed: int, epoch: int) -> None:
    """Case 34: with weight 1, windows are disjoint."""
    shares, window = corpus
    total = sum(share.pairs for share in shares)
    parts = windows_of(shares, seed, epoch, window)
    assert epoch_size(shares, epoch) == total
    assert sorted(np.concatenate(parts).tolist()) == list(range(total))
    # No window is a small rest: they differ by few blocks, of a thousandth of a corpus.
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 2 * max(1, max(share.pairs for share in shares) // 1000)
    assert max(sizes) <= window + max(1, max(share.pairs for share in shares) // 1000)


@settings(deadline=None, max_examples=40)
@given(corpus=corpora(), seed=SEEDS, epochs=st.integers(1, 12))
def test_in_the_long_run_all_pairs_of_a_corpus_are_seen_equally_often(
    corpus: tuple[list[Share], int], seed: int, epochs: int
) -> None:
    """After any number of epochs, none more than once more than another, and in all as often as the weight says."""
    shares, window = corpus
    seen: Counter[int] = Counter()
    for epoch in range(epochs):
        pairs = pairs_of(shares, seed, epoch, window)
        assert len(pairs) == epoch_size(shares, epoch)
        seen.update(pairs)
    offset = 0
    for share in shares:
        counts = [seen[pair] for pair in range(offset, offset + share.pairs)]
        assert sum(counts) == math.floor(Fraction(str(share.weight)) * share.pairs * epochs)
        assert max(counts, default=0) - min(counts, default=0) <= 1
        offset += share.pairs
    assert all(0 <= pair < offset for pair in seen)


@pytest.mark.parametrize("pairs", [1, 2, 7, 100, 2_500])
def test_weight_two_sees_every_pair_twice_and_a_half_sees_halves_in_turn(pairs: int) -> None:
    assert Counter(pairs_of([Share(pairs, 2)], 1, 5)) == dict.fromkeys(range(pairs), 2)
    first, second = pairs_of([Share(pairs, 0.5)], 1, 4), pairs_of([Share(pairs, 0.5)], 1, 5)
    assert (len(first), len(second)) == (pairs // 2, pairs - pairs // 2)
    assert sorted(first + second) == list(range(pairs))


def test_the_halves_are_others_every_time_and_for_every_seed() -> None:
    """Or the same pairs would always be seen in the same epoch."""
    halves = {frozenset(pairs_of([Share(1_000, 0.5)], seed, epoch)) for seed in (1, 2) for epoch in range(6)}
    assert len(halves) == 12


@pytest.mark.parametrize("pairs", [10, 90, 2_010])
def test_weight_three_tenths_sees_every_pair_three_times_in_ten_epochs(pairs: int) -> None:
    seen = Counter(pair for epoch in range(20, 30) for pair in pairs_of([Share(pairs, 0.3)], 1, epoch))
    assert seen == dict.fromkeys(range(pairs), 3)
    assert {len(pairs_of([Share(pairs, 0.3)], 1, epoch)) for epoch in range(10)} == {pairs * 3 // 10}


def test_corpora_are_mixed_by_their_weights() -> None:
    shares = [Share(3_000, 0.5), Share(0), Share(500, 3), Share(1_000)]
    parts = windows_of(shares, 1, 3, 1_000)
    assert len(parts) == 4
    for part in parts:  # each window a like mixture
        counts = np.histogram(part, [0, 3_000, 3_500, 4_500])[0]
        assert np.abs(counts - np.array([1500, 1500, 1000]) / 4).max() < 100
    assert np.histogram(np.concatenate(parts), [0, 3_000, 3_500, 4_500])[0].tolist() == [1500, 1500, 1000]


def test_epochs_without_a_pair_are_empty() -> None:
    shares = [Share(1, 0.3), Share(0, 5)]
    assert [pairs_of(shares, 1, epoch) for epoch in range(10)] == [[], [], [], [0], [], [], [0], [], [], [0]]
    assert windows(epoch_size(shares, 0)) == 1
    assert epoch_size([], 0) == 0 and window_pairs([], 1, 0, 0).tolist() == []
    assert plan_window(window_pairs(shares, 1, 0, 0), *lengths_of(np.empty(0, np.int64), 1), 256, 1, 0, 0) == []


@settings(deadline=None)
@given(corpus=corpora(), seed=SEEDS, epoch=EPOCHS, data=st.data())
def test_a_window_is_a_function_of_its_number_alone(
    corpus: tuple[list[Share], int], seed: int, epoch: int, data: st.DataObject
) -> None:
    """Seeking: a resumed run plans the window that it stands in, without those before."""
    shares, window = corpus
    parts = windows_of(shares, seed, epoch, window)
    index = data.draw(st.integers(0, len(parts) - 1))
    np.random.default_rng(99).random(7)  # nobody else's random numbers matter
    assert window_pairs(shares, seed, epoch, index, window).tolist() == parts[index].tolist()


def test_ten_million_pairs_are_planned_in_little_time_and_memory() -> None:
    """Nothing is held for each pair of the corpus: 10 million numbers alone would be 80 MB."""
    shares = [Share(10_000_000), Share(1_000_000, 0.5)]
    tracemalloc.start()
    start = time.perf_counter()
    part = window_pairs(shares, 1, 7, 50)
    seconds, (_, peak) = time.perf_counter() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert windows(epoch_size(shares, 7)) == 105
    assert abs(len(part) - WINDOW) <= 2 * BLOCK
    assert seconds < 2
    assert peak < 10_000_000


# --- which batches ---


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


def epoch_of(shares: list[Share], seed: int, epoch: int, window: int, budget: int = 256) -> list[BatchSpec]:
    batches = []
    for index, members in enumerate(windows_of(shares, seed, epoch, window)):
        batches += plan_window(members, *lengths_of(members, 5), budget, seed, epoch, index)
    return batches


@settings(deadline=None, max_examples=40)
@given(corpus=WHOLE, seed=SEEDS, epoch=EPOCHS, budget=st.integers(1, 2000))
def test_the_batches_of_an_epoch_hold_every_pair_once(
    corpus: tuple[list[Share], int], seed: int, epoch: int, budget: int
) -> None:
    """Case 34, end to end."""
    shares, window = corpus
    pairs = [pair for batch in epoch_of(shares, seed, epoch, window, budget) for pair in batch.pairs.tolist()]
    assert sorted(pairs) == list(range(sum(share.pairs for share in shares)))


def order(batches: list[BatchSpec]) -> list[list[int]]:
    return [batch.pairs.tolist() for batch in batches]


def test_the_order_repeats_with_the_seed_and_differs_by_epoch_and_seed() -> None:
    """Cases 34 and 55."""
    first = epoch_of([Share(500)], 1, 0, 200)
    assert order(epoch_of([Share(500)], 1, 0, 200)) == order(first)
    assert [b.shape for b in epoch_of([Share(500)], 1, 0, 200)] == [b.shape for b in first]
    others = [order(epoch_of([Share(500)], seed, epoch, 200)) for seed, epoch in ((1, 1), (1, 2), (2, 0), (0, 1))]
    assert all(other != order(first) for other in others)
    # Not only the batches' order: who stands beside whom differs too.
    assert all({frozenset(b) for b in other} != {frozenset(b) for b in order(first)} for other in others)


def test_the_pairs_of_a_window_are_others_in_every_epoch_and_for_every_seed() -> None:
    """Or a pair would meet the same companions for ever."""
    places = [(1, 0), (1, 1), (1, 2), (2, 0), (0, 1)]
    members = {frozenset(window_pairs([Share(5000)], seed, epoch, 0, 1000).tolist()) for seed, epoch in places}
    assert len(members) == len(places)


def test_long_and_short_batches_are_mixed() -> None:
    """Sorted batches would teach long sentences first; the plan shuffles them."""
    longest = np.array([max(b.shape) for b in epoch_of([Share(2000)], 1, 0, WINDOW, 512)])
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.3


def test_a_window_mixes_distant_parts_of_the_corpus() -> None:
    members = window_pairs([Share(WINDOW * 5)], 1, 0, 2)
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
