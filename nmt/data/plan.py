"""Which pairs go into which batch, as a pure function of (lengths, seed, epoch, window).

An epoch is cut into windows of about 100,000 pairs: blocks of neighbouring pairs are shuffled over the corpus, dealt
into windows, and the pairs of a window are shuffled and sorted into buckets of like length. So finding the place in
the middle of an epoch costs one window, and nothing per pair is held for a whole corpus.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WINDOW = 100_000
BLOCK = 1_000


@dataclass(frozen=True)
class BatchSpec:
    """Pairs by number, and the lengths (S, T) to pad them to."""

    pairs: np.ndarray
    shape: tuple[int, int]


def windows(pairs: int, window: int = WINDOW) -> int:
    """How many windows an epoch over `pairs` pairs has."""
    return max(1, -(-pairs // window))


def window_pairs(pairs: int, seed: int, epoch: int, index: int, window: int = WINDOW, block: int = BLOCK) -> np.ndarray:
    """The pairs of one window of an epoch, in random order. Over all windows each pair comes exactly once."""
    blocks = -(-pairs // block)
    order = np.random.default_rng([seed, epoch]).permutation(blocks)
    count = windows(pairs, window)
    # Near-equal shares, so that no window is a small rest.
    mine = np.array_split(order, count)[index]
    members = np.concatenate([np.arange(b * block, min(pairs, (b + 1) * block)) for b in mine])
    return np.random.default_rng([seed, epoch, index]).permutation(members)


def plan_window(
    members: np.ndarray,
    src_lengths: np.ndarray,
    tgt_lengths: np.ndarray,
    batch_tokens: int,
    seed: int,
    epoch: int,
    index: int,
) -> list[BatchSpec]:
    """Cuts the pairs of a window into batches of like length, in random order.

    `src_lengths` and `tgt_lengths` belong to `members`. rows x longest padded side stays within `batch_tokens`, except
    for a single pair that is longer. Lengths are padded to few rungs: a new shape costs a CPU tens of milliseconds.
    """
    src_rung, tgt_rung = rung(src_lengths), rung(tgt_lengths)
    longest = np.maximum(src_rung, tgt_rung)
    order = np.lexsort((src_rung, tgt_rung, longest))  # stable: ties stay in the window's random order
    batches, start = [], 0
    # From the longest down, so that what is left over of one length joins the next shorter one and pads little.
    order = order[::-1]
    while start < len(order):
        rows = rows_for(int(longest[order[start]]), batch_tokens)
        chosen = order[start : start + rows]
        start += len(chosen)
        batches.append(BatchSpec(members[chosen], (int(src_rung[chosen].max()), int(tgt_rung[chosen].max()))))
    shuffled = np.random.default_rng([seed, epoch, index, 1]).permutation(len(batches))
    return [batches[i] for i in shuffled]


def rung(lengths: np.ndarray) -> np.ndarray:
    """Lengths rounded up: to multiples of 4 up to 32, of 8 up to 64, of 16 up to 128, and so on."""
    lengths = np.asarray(lengths, np.int64)
    step = np.maximum(4, 2 ** np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64) // 8)
    rounded: np.ndarray = -(-lengths // step) * step
    return rounded


def rows_for(longest: int, batch_tokens: int) -> int:
    """Rows of a batch whose longest side has this padded length: a multiple of 8 where there are that many."""
    rows = max(1, batch_tokens // longest)
    return rows - rows % 8 if rows >= 8 else rows
