"""Which pairs go into which batch, as a pure function of (corpora, lengths, seed, epoch, window).

An epoch is cut into windows of about 100,000 pairs: blocks of neighbouring pairs are shuffled over all corpora, dealt
into windows, and the pairs of a window are shuffled and sorted into buckets of like length. So finding the place in
the middle of an epoch costs one window, and nothing per pair is held for a whole corpus.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

WINDOW = 100_000
BLOCK = 1_000
LEAST_WIDTH = 16  # of the padded form, in which only attention works: a CPU is slow at rows of fewer numbers


class Share(NamedTuple):
    """A corpus: how many pairs of the store are its, after those of the corpora before it, and its weight.

    An epoch sees the pairs of a corpus of weight 2 twice, and of a corpus of weight 0.5 one half, in turn.
    """

    pairs: int
    weight: float = 1.0

    def seen(self, epochs: int) -> int:
        """How many of its pairs that many epochs see."""
        return math.floor(Fraction(str(self.weight)) * self.pairs * epochs)


@dataclass(frozen=True)
class BatchSpec:
    """Pairs by number, and the lengths (S, T) to pad them to."""

    pairs: np.ndarray
    shape: tuple[int, int]


def epoch_size(shares: Sequence[Share], epoch: int) -> int:
    """Pairs of an epoch, those that it sees twice counted twice."""
    return sum(share.seen(epoch + 1) - share.seen(epoch) for share in shares)


def windows(pairs: int, window: int = WINDOW) -> int:
    """How many windows an epoch over `pairs` pairs has."""
    return max(1, -(-pairs // window))


def window_pairs(shares: Sequence[Share], seed: int, epoch: int, index: int, window: int = WINDOW) -> np.ndarray:
    """The pairs of one window of an epoch, in random order. Over all windows each comes as often as its weight says."""
    blocks = _epoch_blocks(shares, seed, epoch)
    if not len(blocks):  # small weights of small corpora leave an epoch without any
        return np.empty(0, np.int64)
    # Near-equal shares, so that no window is a small rest.
    ends = np.cumsum(blocks[:, 1] - blocks[:, 0])
    count = windows(int(ends[-1]), window)
    first, last = (np.searchsorted(ends, ends[-1] * i // count, side="right") for i in (index, index + 1))
    members = np.concatenate([np.arange(start, stop) for start, stop in blocks[first:last]])
    order: np.ndarray = np.random.default_rng([seed, epoch, index]).permutation(members)
    return order


def _epoch_blocks(shares: Sequence[Share], seed: int, epoch: int) -> np.ndarray:
    """Runs of neighbouring pairs that make up an epoch, in random order. Shape: [blocks, 2], first and past the last.

    The pairs of a corpus are seen pass after pass, each in an order of its own, and an epoch is the next piece of that
    endless row: so a weight of 0.3 leaves out nothing in the long run.
    """
    found, offset = [np.empty((0, 2), np.int64)], 0
    for corpus, share in enumerate(shares):
        start, stop = share.seen(epoch), share.seen(epoch + 1)
        for number in range(start // max(1, share.pairs), -(-stop // max(1, share.pairs))):
            begin = number * share.pairs
            blocks = _pass_blocks(share.pairs, [seed, corpus, number])
            found.append(offset + _cut(blocks, max(0, start - begin), min(share.pairs, stop - begin)))
        offset += share.pairs
    return np.random.default_rng([seed, epoch]).permutation(np.concatenate(found))


def _pass_blocks(pairs: int, seed: list[int]) -> np.ndarray:
    """All pairs of a corpus as blocks in random order; a thousand blocks or more, if there are as many pairs."""
    block = max(1, min(BLOCK, pairs // 1_000))
    starts = np.random.default_rng(seed).permutation(-(-pairs // block)) * block
    return np.stack([starts, np.minimum(starts + block, pairs)], axis=1)


def _cut(blocks: np.ndarray, start: int, stop: int) -> np.ndarray:
    """What lies between the pairs number `start` and `stop` of a row of blocks."""
    ends = np.cumsum(blocks[:, 1] - blocks[:, 0])
    begins = ends - (blocks[:, 1] - blocks[:, 0])
    kept = (ends > start) & (begins < stop)
    front, back = np.maximum(0, start - begins), np.maximum(0, ends - stop)
    cut: np.ndarray = np.stack([blocks[:, 0] + front, blocks[:, 1] - back], axis=1)[kept]
    return cut


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
        src_width, tgt_width = (max(LEAST_WIDTH, int(rungs[chosen].max())) for rungs in (src_rung, tgt_rung))
        batches.append(BatchSpec(members[chosen], (src_width, tgt_width)))
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
