"""Shifted and shuffled corpora are found, and only those."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from nmt.data import alignment
from nmt.data.alignment import Alignment, Verdict, features

Features = NDArray[np.int32]
CORPORA = os.environ.get("NMT_TEST_CORPORA")


def parallel(pairs: int, correlation: float = 0.7, seed: int = 1, numbers: float = 0.0, letters: int = 40) -> Features:
    """Features of pairs in step, whose log-lengths have this correlation; a share of them with the same number."""
    random = np.random.default_rng(seed)
    src = random.normal(size=pairs)
    tgt = correlation * src + np.sqrt(1 - correlation**2) * random.normal(size=pairs)
    found = np.zeros((pairs, 4), np.int32)
    found[:, 0], found[:, 1] = letters * np.exp(0.5 * src) + 1, letters * np.exp(0.5 * tgt) + 1
    found[:, 2] = found[:, 3] = (random.random(pairs) < numbers) * random.integers(1, 100, pairs)
    return found


def paired(found: Features, src: NDArray[np.int64], tgt: NDArray[np.int64]) -> Features:
    """Sources and targets taken from these lines, as many as the shorter side has."""
    lines = min(len(src), len(tgt))
    return np.stack(
        [found[src[:lines], 0], found[tgt[:lines], 1], found[src[:lines], 2], found[tgt[:lines], 3]], axis=1
    )


def without(pairs: int, *lines: int) -> NDArray[np.int64]:
    return np.delete(np.arange(pairs), lines)


def judged(found: Features, chunk: int = 10_000) -> Verdict:
    watch = Alignment()
    for start in range(0, len(found), chunk):
        watch.add(found[start : start + chunk])
    return watch.verdict()


def permuted(found: Features, first: int = 0, stop: int | None = None, seed: int = 1) -> Features:
    order = np.arange(len(found))
    np.random.default_rng(seed).shuffle(order[first:stop])
    return paired(found, np.arange(len(found)), order)


def test_features_count_characters() -> None:
    found = features(["", "abc", "我有猫", "a\u2028b\r"], ["x", "", "I have a cat.", "\ud800"])
    assert found[:, 0].tolist() == [0, 3, 3, 4]
    assert found[:, 1].tolist() == [1, 0, 13, 1]
    assert not found[:, 2:].any()


def test_features_of_no_pairs() -> None:
    assert features([], []).shape == (0, 4)


def test_a_number_has_one_signature_in_every_script_and_grouping() -> None:
    lines = ["in 2,015", "२०१५ में", "٢٠١٥", "２０１５年", "", "5 1 0 2", "2.015 €"]
    signatures = features(lines, ["2015"] * len(lines))
    assert set(signatures[:, 2].tolist()) == {0, int(signatures[0, 3])}
    assert signatures[4, 2] == 0


def test_other_numbers_have_other_signatures() -> None:
    ordered = [f"{number:02}" for number in range(100) if number // 10 <= number % 10]  # 12 is not told from 21
    found = features([*map(str, range(10)), *ordered, "", "a", "½"], [""] * (len(ordered) + 13))
    assert len(set(found[:-3, 2].tolist())) == len(ordered) + 10
    assert found[:-3, 2].all() and not found[-3:, 2].any() and not found[:, 3].any()


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize(("place", "lines"), [(300, 1), (5_000, 1), (5_000, 3), (5_000, 20), (9_400, 1)])
def test_lost_lines_are_found_near_their_place(side: str, place: int, lines: int) -> None:
    found, kept = parallel(10_000), without(10_000, *range(place, place + lines))
    verdict = judged(paired(found, *([kept, np.arange(10_000)] if side == "src" else [np.arange(10_000), kept])))
    assert verdict.kind == "shifted"
    assert abs(verdict.first - place) <= 100
    assert verdict.last is None
    assert verdict.lag == (lines if side == "src" else -lines)


def test_a_shift_in_a_small_corpus() -> None:
    verdict = judged(paired(parallel(300), without(300, 150), np.arange(300)))
    assert (verdict.kind, verdict.lag) == ("shifted", 1)
    assert abs(verdict.first - 150) <= 50


def test_the_first_of_several_shifts_is_named() -> None:
    verdict = judged(paired(parallel(20_000), without(20_000, 4_000, 9_000, 9_500, 15_000), np.arange(20_000)))
    assert (verdict.kind, verdict.lag, verdict.last) == ("shifted", 1, None)
    assert abs(verdict.first - 4_000) <= 100


def test_a_shift_that_is_undone_has_an_end() -> None:
    verdict = judged(paired(parallel(10_000), without(10_000, 3_000), without(10_000, 6_000)))
    assert (verdict.kind, verdict.lag) == ("shifted", 1)
    assert verdict.last is not None
    assert abs(verdict.first - 3_000) <= 100 and abs(verdict.last - 6_000) <= 100


@pytest.mark.parametrize("seed", range(5))
def test_numbers_alone_show_a_shift(seed: int) -> None:
    found = parallel(5_000, correlation=0.0, numbers=0.1, seed=seed)
    verdict = judged(paired(found, without(5_000, 2_000), np.arange(5_000)))
    assert (verdict.kind, verdict.lag) == ("shifted", 1)
    assert abs(verdict.first - 2_000) <= 200


@pytest.mark.parametrize("pairs", [500, 1_000, 20_000])
@pytest.mark.parametrize("seed", range(10))
def test_permuted_targets_are_shuffled(pairs: int, seed: int) -> None:
    verdict = judged(permuted(parallel(pairs, numbers=0.1, seed=seed + 100), seed=seed))
    assert (verdict.kind, verdict.first, verdict.last, verdict.lag) == ("shuffled", 0, None, 0)


def test_a_long_part_that_is_shuffled_has_its_place() -> None:
    verdict = judged(permuted(parallel(10_000), 3_000, 6_000))
    assert verdict.kind == "shuffled"
    assert verdict.last is not None
    assert abs(verdict.first - 3_000) <= 200 and abs(verdict.last - 6_000) <= 200


def test_a_shuffle_within_blocks_is_one() -> None:
    order, random = np.arange(10_000), np.random.default_rng(1)
    for start, stop in pairwise(range(0, 10_001, 100)):
        random.shuffle(order[start:stop])
    assert judged(paired(parallel(10_000), np.arange(10_000), order)).kind == "shuffled"


def in_order(found: Features, key: NDArray[np.int32]) -> Features:
    return found[np.argsort(key, kind="stable")]


def with_column(found: Features, column: int, values: NDArray[np.int32] | int) -> Features:
    found[:, column] = values
    return found


CLEAN = {
    "parallel": parallel(10_000),
    "weakly correlated": parallel(10_000, 0.3),
    "sorted by src": in_order(parallel(10_000), parallel(10_000)[:, 0]),
    "sorted by tgt": in_order(parallel(10_000), parallel(10_000)[:, 1]),
    "sorted by both": in_order(parallel(10_000), parallel(10_000)[:, :2].sum(1)),
    "constant lengths": np.full((3_000, 4), [30, 32, 0, 0], np.int32),
    "constant tgt": with_column(parallel(3_000), 1, 30),
    "nearly constant lengths": np.random.default_rng(1).integers([30, 30, 0, 0], [36, 36, 1, 1], (5_000, 4), np.int32),
    "copies": with_column(parallel(3_000), 1, parallel(3_000)[:, 0]),
    "tgt mostly empty": with_column(
        parallel(20_000, 0.5), 1, parallel(20_000, 0.5)[:, 1] * (np.random.default_rng(1).random(20_000) < 0.05)
    ),
    "all empty": np.zeros((3_000, 4), np.int32),
    "two domains": np.concatenate([parallel(4_000, 0.9, letters=20), parallel(4_000, 0.3, letters=150)]),
    "repeated": np.tile(parallel(1_500), (12, 1)),
    "numbers instead of lengths": parallel(10_000, 0.0, numbers=0.1),
    "few numbers instead of lengths": parallel(10_000, 0.0, numbers=0.005),
    "tiny and shifted": paired(parallel(199, 0.9), without(199, 50), np.arange(199)),
    "one pair": parallel(1),
    "none": parallel(0),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_corpora_are_not_accused(name: str) -> None:
    assert judged(CLEAN[name]).kind is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("pairs", [250, 1_000, 3_000])
def test_sorted_by_length_is_not_taken_for_shifted(pairs: int, seed: int) -> None:
    found = parallel(pairs, 0.9, seed=seed)
    assert judged(in_order(found, found[:, 0] + found[:, 1])).kind is None
    assert judged(in_order(found, found[:, 0])).kind is None


@pytest.mark.parametrize("seed", range(35))
def test_repeated_and_weak_text_is_not_accused(seed: int) -> None:
    assert judged(np.repeat(parallel(1_500, seed=seed), 5, axis=0)).kind is None
    assert judged(parallel(20_000, 0.2, seed=seed)).kind is None
    assert judged(np.concatenate([parallel(4_000, seed=seed), parallel(4_000, 0.25, seed=seed + 100)])).kind is None


def test_how_it_is_cut_into_chunks_does_not_matter() -> None:
    found = paired(parallel(4_000, numbers=0.1), without(4_000, 2_500), np.arange(4_000))
    assert judged(found) == judged(found, 37) == judged(found, 1_049)


def test_asking_twice_gives_the_same_answer() -> None:
    watch = Alignment()
    watch.add(paired(parallel(3_020), without(3_020, 1_500), np.arange(3_020)))
    assert watch.verdict() == watch.verdict()


def test_memory_is_bounded_and_long_corpora_are_judged_in_wider_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "MOST_WINDOWS", 64)
    watch = Alignment()
    found = paired(parallel(50_000), without(50_000, 20_000), np.arange(50_000))
    for start in range(0, len(found), 1_000):
        watch.add(found[start : start + 1_000])
    assert len(watch.windows) == 64 and len(watch.rest) < 200
    verdict = watch.verdict()
    assert (verdict.kind, verdict.lag) == ("shifted", 1)
    assert abs(verdict.first - 20_000) <= 50_000 / 32


def test_the_figures_of_the_report() -> None:
    verdict = judged(parallel(10_000, 0.7, numbers=0.1))
    assert verdict.length_correlation == pytest.approx(0.7, abs=0.03)
    assert verdict.number_agreement == 1
    assert judged(parallel(1_000)).number_agreement is None


def corpus(name: str) -> tuple[list[str], list[str]]:
    """Two sides of the real corpora; the file names hold the languages where a star stands."""
    assert CORPORA is not None
    path, src, tgt = name.split(" ")
    files = [Path(CORPORA) / path.replace("*", language) for language in (src, tgt)]
    return tuple(gzip.decompress(file.read_bytes()).decode().removesuffix("\n").split("\n") for file in files)  # type: ignore[return-value]


needs_corpora = pytest.mark.skipif(not CORPORA, reason="NMT_TEST_CORPORA is not set")
REAL = [
    "multi30k/train.*.gz en de",
    "multi30k/val.lc.norm.tok.*.gz en de",
    "tatoeba_zh_en/train.*.gz zh en",
    "tatoeba_de_en/dev.*.gz de en",
    "ntrex/newstest2019.*.gz en zh",
    "ntrex/newstest2019.*.gz de zh",
    "realworld/python_docs_dev.*.gz en zh",
    "realworld/ui_bible_ne_en.*.gz ne en",
]


@pytest.mark.corpora
@needs_corpora
@pytest.mark.parametrize("name", REAL)
def test_real_corpora_are_clean_until_they_are_shuffled(name: str) -> None:
    found = features(*corpus(name))
    assert judged(found).kind is None
    assert judged(in_order(found, found[:, 0])).kind is None
    verdict = judged(permuted(found))
    assert (verdict.kind, verdict.first, verdict.last) == ("shuffled", 0, None)


@pytest.mark.corpora
@needs_corpora
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_a_line_lost_in_multi30k_is_found(side: str) -> None:
    src, tgt = corpus(REAL[0])
    lines = src if side == "src" else tgt
    del lines[12_344]
    lines.append("A line to make up for it.")
    verdict = judged(features(src, tgt))
    assert (verdict.kind, verdict.lag, verdict.last) == ("shifted", 1 if side == "src" else -1, None)
    assert abs(verdict.first - 12_344) <= 500
