"""Whether the lines of two sides belong together: finds corpora that are shifted or shuffled.

Lengths of translations go together, and so do the numbers in them. Of each window of WINDOW pairs, `Alignment` keeps
how well its source lengths go with the target lengths at each lag, from REACH lines before to REACH lines after, and
how many numbers agree there. At the end, the likeliest way through the windows, from lag to lag, says where the pairs
are out of step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float64]

WINDOW = 50  # pairs
REACH = 20  # the largest shift that is looked for, in lines
LAGS = 2 * REACH + 1
MOST_WINDOWS = 1 << 15  # then two become one, so that memory stays bounded
LEAST_PAIRS = 200  # nothing is said of fewer


@dataclass(frozen=True)
class Verdict:
    """What was found: the first fault, and how well the two sides go together.

    Pairs are numbered from 0. With a lag of k, the translation of source line i stands in target line i + k: k > 0
    means that target lines were added or source lines lost, k < 0 the other way round.
    """

    kind: Literal["shifted", "shuffled"] | None
    first: int  # the pair with which the fault begins
    last: int | None  # the last pair of it; None: it goes on to the end
    lag: int  # of the first shift; 0 unless shifted
    length_correlation: float  # of the logarithms of the lengths of all pairs as they are, within windows
    number_agreement: (
        float | None
    )  # the share of pairs with numbers on both sides that have the same; None: no such pair


@cache
def _digits() -> NDArray[np.uint8]:
    """For each character the value of its digit plus one, 0 for other characters. There are no digits further up."""
    return np.array([int(chr(code)) + 1 if chr(code).isdecimal() else 0 for code in range(0x20000)], np.uint8)


# What each digit adds to the signature of a line: the digits count, not their order, nor how they are grouped.
_WEIGHTS = np.array([0, 7919, 1299709, 15485863, 86028121, 24036583, 55350011, 67867967, 32452843, 49979687, 97654321])


def _measure(lines: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The characters and the number signature of each line."""
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    characters = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), "<u4")
    digits = np.take(_digits(), characters, mode="clip")
    places = np.flatnonzero(digits)
    owners = np.searchsorted(np.cumsum(lengths), places, side="right")
    sums = np.bincount(owners, _WEIGHTS[digits[places]], len(lines)).astype(np.int64)
    return lengths, sums & 0x7FFFFFFF


def features(src: list[str], tgt: list[str]) -> NDArray[np.int32]:
    """What `Alignment` looks at, [n, 4]: characters of src and of tgt, and a number signature of each.

    Signatures are equal where the lines hold the same digits, in whatever script, and 0 where they hold none.
    """
    (src_lengths, src_numbers), (tgt_lengths, tgt_numbers) = _measure(src), _measure(tgt)
    return np.stack([src_lengths, tgt_lengths, src_numbers, tgt_numbers], axis=1).astype(np.int32)


# The columns of a window's summary, all of them sums, so that windows can be added to each other: pairs with both sides
# there, sums and squares of their log-lengths, and squares about the window's mean; then what each lag has to show.
_COLUMNS = 10 + 2 * LAGS
_WEIGHT, _NUMBERS, _PAIRS, _X, _XX, _Y, _YY, _XY, _XX_INSIDE, _YY_INSIDE = range(10)
_PRODUCTS, _AGREEING = slice(10, 10 + LAGS), slice(10 + LAGS, 10 + 2 * LAGS)


def _standardised(values: Floats, there: NDArray[np.bool_]) -> Floats:
    """Each row with mean 0 and variance 1 over what is there, 0 elsewhere.

    Seen from so near, a sorted corpus or a change of subject makes no correlation.
    """
    count = np.maximum(there.sum(1, keepdims=True), 1)
    centred = np.where(there, values - np.where(there, values, 0).sum(1, keepdims=True) / count, 0)
    variance = (centred**2).sum(1, keepdims=True) / count
    # One line out of all proportion must not speak for its window.
    standardised: Floats = np.clip(centred / np.sqrt(np.maximum(variance, 1e-3)), -3, 3)
    return standardised


def _summaries(rows: NDArray[np.int32]) -> Floats:
    """[w, _COLUMNS] of the w windows within rows [REACH + w * WINDOW + REACH, 4]."""
    repeated = np.zeros(len(rows), bool)
    repeated[1:] = (rows[1:] == rows[:-1]).all(1)
    rows = np.where(repeated[:, None], 0, rows)  # a pair given several times in a row is one piece of evidence
    src, tgt = np.log1p(rows[:, 0]), np.log1p(rows[:, 1])
    x = src[REACH:-REACH].reshape(-1, WINDOW)
    y = sliding_window_view(tgt, WINDOW + 2 * REACH)[::WINDOW]
    u, v = _standardised(x, x > 0), sliding_window_view(_standardised(y, y > 0), WINDOW, axis=1)
    y = y[:, REACH:-REACH]
    out = np.zeros((len(x), _COLUMNS))

    norms = np.sqrt((u**2).sum(1, keepdims=True) * (v**2).sum(2))
    out[:, _WEIGHT] = norms[:, REACH]
    out[:, _PRODUCTS] = np.einsum("wi,wki->wk", u, v) * norms[:, [REACH]] / np.maximum(norms, 1e-9)

    numbers = np.flatnonzero(rows[REACH:-REACH, 2])  # few lines have any
    around = sliding_window_view(rows[:, 3], LAGS)[numbers]
    np.add.at(out[:, _AGREEING], numbers // WINDOW, around == rows[REACH:-REACH, 2][numbers, None])
    np.add.at(out[:, _NUMBERS], numbers // WINDOW, around[:, REACH] > 0)

    both = (x > 0) & (y > 0)
    x, y = np.where(both, x, 0), np.where(both, y, 0)
    out[:, _PAIRS] = both.sum(1)
    for column, values in ((_X, x), (_XX, x * x), (_Y, y), (_YY, y * y), (_XY, x * y)):
        out[:, column] = values.sum(1)
    for column, total, square in ((_XX_INSIDE, _X, _XX), (_YY_INSIDE, _Y, _YY)):
        out[:, column] = out[:, square] - out[:, total] ** 2 / np.maximum(out[:, _PAIRS], 1)
    return out


class Alignment:
    """Watches the pairs of one corpus go by, in order, and says at the end whether they are out of step.

    Add all pairs as they are read, also those that are dropped later. Memory is bounded: with the length of the corpus
    only the windows grow, and with them the uncertainty about the place of a fault.
    """

    def __init__(self) -> None:
        # Summaries of `fold` windows each.
        self.windows = np.zeros((MOST_WINDOWS, _COLUMNS), np.float32)
        self.fold = 1
        self.pairs = 0
        self.done = 0  # windows
        self.rest = np.zeros((REACH, 4), np.int32)  # the last REACH pairs summarised, and those that still wait

    def add(self, features: NDArray[np.int32]) -> None:
        """Take the features [n, 4] of the next n pairs."""
        self.pairs += len(features)
        rows = np.concatenate([self.rest, features])
        whole = max(0, len(rows) - 2 * REACH) // WINDOW * WINDOW
        self.rest = rows[whole:]
        if whole:
            self._keep(_summaries(rows[: whole + 2 * REACH]))

    def _keep(self, summaries: Floats) -> None:
        places = np.arange(self.done, self.done + len(summaries))
        self.done += len(summaries)
        while (self.done - 1) // self.fold >= MOST_WINDOWS:
            self.windows[: MOST_WINDOWS // 2] = self.windows[0::2] + self.windows[1::2]
            self.windows[MOST_WINDOWS // 2 :] = 0
            self.fold *= 2
        np.add.at(self.windows, places // self.fold, summaries)

    def verdict(self) -> Verdict:
        """What the pairs look like; to be asked when all of them were added."""
        waiting = len(self.rest) - REACH
        if waiting > 0:
            self._keep(_summaries(np.pad(self.rest, ((0, REACH + -waiting % WINDOW), (0, 0)))))
            self.rest = self.rest[-REACH:]
        windows = self.windows[: -(-self.done // self.fold)].astype(float)
        return _verdict(windows, self.fold * WINDOW, self.pairs)


@dataclass(frozen=True)
class _Stretch:
    """Windows one after the other that belong to one lag, or (None) to none."""

    first: int
    stop: int
    lag: int | None


SWITCH = 25.0  # what a change of lag must gain, in nats: by chance alone, not once in any corpus
SWITCH_NONE = 10.0  # what a change to or from no lag must gain; a shuffle is tested in other ways too


def _evidence(windows: Floats, block: int) -> Floats:
    """[windows, LAGS + 1]: the log-likelihood of each window given each lag, less that given no lag (the last one)."""
    blocks = np.add.reduceat(windows, range(0, len(windows), block))
    products, agreeing, weight = blocks[:, _PRODUCTS], blocks[:, _AGREEING], np.maximum(blocks[:, [_WEIGHT]], 1)
    chance = np.median(agreeing, axis=1, keepdims=True)  # the numbers that agree at most lags
    # The lag that does best, as seen in both, shows how strongly lengths and numbers go together when in step.
    best = (products / np.sqrt(weight) + (agreeing - chance) / np.sqrt(chance + 1)).argmax(1)
    rows = np.arange(len(blocks))
    correlation = float(np.clip(np.median(products[rows, best] / weight[:, 0]), 0.3, 0.8))
    pairs = windows[:, _PAIRS].sum() + 2
    apart = (chance.sum() + 1) / pairs
    together = max(apart, (agreeing[rows, best].sum() + 1) / pairs)

    evidence = np.zeros((len(windows), LAGS + 1))
    square = correlation**2
    evidence[:, :-1] = (
        # Two normal variables with this correlation against two without any; then agreement as the toss of a coin.
        (-0.5 * np.log(1 - square) - square / (1 - square)) * windows[:, [_WEIGHT]]
        + correlation / (1 - square) * windows[:, _PRODUCTS]
        + np.log(together / apart) * windows[:, _AGREEING]
        + np.log((1 - together) / (1 - apart)) * (windows[:, [_PAIRS]] - windows[:, _AGREEING])
    )
    return evidence


def _path(evidence: Floats) -> list[_Stretch]:
    """The likeliest way through the windows, from lag to lag (Viterbi), beginning in step."""
    switch = np.full(LAGS + 1, SWITCH)
    switch[-1] = SWITCH_NONE
    score = -switch
    score[[REACH, -1]] = 0
    came_from = np.zeros(evidence.shape, np.int64)
    stay = np.arange(LAGS + 1)
    for number, gain in enumerate(evidence):
        best = int(score.argmax())
        moved = score[best] - switch
        came_from[number] = np.where(moved > score, best, stay)
        score = np.maximum(score, moved) + gain
    states = [int(score.argmax())]
    for number in range(len(evidence) - 1, 0, -1):
        states.append(int(came_from[number][states[-1]]))
    states.reverse()
    starts = [0, *(i for i in range(1, len(states)) if states[i] != states[i - 1])]
    return [
        _Stretch(start, stop, None if states[start] == LAGS else states[start] - REACH)
        for start, stop in zip(starts, [*starts[1:], len(states)], strict=True)
    ]


def _correlations(total: Floats) -> Floats:
    """The length correlation at each lag of a stretch with these sums."""
    correlations: Floats = total[_PRODUCTS] / max(1.0, total[_WEIGHT])
    return correlations


def _shifted(total: Floats, lag: int) -> bool:
    """Whether a stretch with these sums goes better with this lag than with any other, and not by a hair."""
    at = REACH + lag
    correlation, agreeing = _correlations(total), total[_AGREEING]
    longest = max(abs(correlation[REACH]), np.delete(correlation, at).max())
    return bool(correlation[at] > max(0.2, longest + 0.1) or agreeing[at] > 2 * np.delete(agreeing, at).max() + 10)


def _shuffled(total: Floats, rest: Floats) -> bool:
    """Whether a stretch with these sums goes together neither in step nor out of step, unlike the rest."""
    pairs = min(total[_PAIRS], total[_WEIGHT])
    if pairs < 400 or total[_PAIRS] < total[_WEIGHT] / 2 or not _telling(total):
        return False
    # Poor text has stretches without any correlation by chance, and this one was found by looking for such a stretch.
    if rest[_PAIRS] > total[_PAIRS] / 10 and (pairs < 800 or _correlations(rest).max() < 0.3):
        return False
    correlation, agreeing, error = _correlations(total), total[_AGREEING], pairs**-0.5
    chance = np.median(agreeing)
    lengths_apart = abs(correlation[REACH]) < 0.05 + 2.5 * error and correlation.max() < 0.05 + 4 * error
    return bool(lengths_apart and agreeing[REACH] < chance + 4 * np.sqrt(chance + 1))


def _telling(total: Floats) -> bool:
    """Whether the lengths in a stretch with these sums vary enough, and within windows, to say something.

    They do not in a sorted corpus; then the windows together must show no correlation either.
    """
    n = max(1.0, total[_PAIRS])
    xx, yy = total[_XX] - total[_X] ** 2 / n, total[_YY] - total[_Y] ** 2 / n
    xy = total[_XY] - total[_X] * total[_Y] / n
    inside = total[_XX_INSIDE] > 0.5 * xx and total[_YY_INSIDE] > 0.5 * yy
    return bool(min(xx, yy) > 0.02 * n and (inside or abs(xy) < 0.1 * np.sqrt(xx * yy)))


def _verdict(windows: Floats, size: int, pairs: int) -> Verdict:
    """The first fault in windows of `size` pairs; it ends where the lines are in step again."""
    total = windows.sum(0)
    numbers = total[_NUMBERS]
    correlation = float(_correlations(total)[REACH])
    agreement = float(total[_AGREEING][REACH] / numbers) if numbers else None
    clean = Verdict(None, 0, None, 0, correlation, agreement)
    if pairs < LEAST_PAIRS:
        return clean
    faults: list[_Stretch] = []
    last = None
    for stretch in _path(_evidence(windows, max(1, 1000 // size))):
        inside = windows[stretch.first : stretch.stop].sum(0)
        if stretch.lag == 0 and faults:
            last = stretch.first * size - 1
            break
        if stretch.lag is None:
            fault = _shuffled(inside, total - inside)
        else:
            fault = stretch.lag != 0 and _shifted(inside, stretch.lag)
        if fault:
            faults.append(stretch)
    if not faults:
        return clean
    first = faults[0]
    kind: Literal["shifted", "shuffled"] = "shuffled" if first.lag is None else "shifted"
    return Verdict(kind, first.first * size, last, first.lag or 0, correlation, agreement)
