"""Subwords drawn anew in every epoch are a function of (seed, epoch, pair), and still spell the text."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from nmt.choice import Choice, build
from nmt.data.sampling import SAMPLINGS, Sampled, sampled
from nmt.data.store import TEXT, Store, Writer, record_batch, schema
from nmt.errors import ConfigError
from nmt.tokenizer import EOS, TOKENIZERS, Tokenizer

SAMPLED = {"bpe": "bpe_dropout", "unigram": "unigram"}  # tokenizer: how it is sampled from
COUNT = 60


def lines(seed: int) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choice("kstnmr") + rng.choice("aeiou") for _ in range(rng.randint(2, 5))) for _ in range(40)]
    return [" ".join(rng.choices(words, k=rng.randint(1, 8))) for _ in range(COUNT)]


SRC, TGT = lines(1), lines(2)


@pytest.fixture(scope="module", params=SAMPLED)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Tokenizer, Any]:
    """A store of random lines, its tokenizer, and how to draw from it."""
    kind = request.param
    tokenizer = TOKENIZERS[kind](vocab_size=120)(SRC, TGT, print)
    path = tmp_path_factory.mktemp(kind) / "s.arrow"
    columns = schema(len(tokenizer.src))
    with Writer(path, columns) as writer:
        for start in range(0, COUNT, 25):
            src, tgt = SRC[start : start + 25], TGT[start : start + 25]
            writer.write(
                record_batch(
                    columns,
                    pa.array(src, TEXT),
                    pa.array([[line] for line in tgt], pa.list_(TEXT)),
                    tokenizer.src.encode(src),
                    tokenizer.tgt.encode(tgt),
                    pa.array(np.zeros(len(src), np.int32)),
                    pa.array(np.arange(len(src))),
                )
            )
    return Store(path, ["f"]), tokenizer, build(SAMPLINGS, Choice(SAMPLED[kind]))


Made = tuple[Store, Tokenizer, Any]


def fresh(made: Made, seed: int = 1, longest: int | None = 250) -> Sampled:
    store, tokenizer, sampling = made
    found = sampled(store, tokenizer, sampling, seed, longest)
    assert isinstance(found, Sampled)
    return found


def ids(pairs: Sampled, epoch: int, wanted: Any = range(COUNT)) -> list[list[list[int]]]:
    """Of the sources and of the targets."""
    return [[line.tolist() for line in side] for side in pairs.epoch(epoch).ids(wanted)]


def test_the_same_pair_of_the_same_epoch_is_the_same_in_any_order_and_window(made: Made) -> None:
    """Case 35: nothing of it needs to be saved."""
    expected = ids(fresh(made), 3)
    pairs, order = fresh(made), np.random.default_rng(1).permutation(COUNT)
    for window in (order[:20], order[20:], order[5:8]):  # as training asks: lengths of a window, then its batches
        lengths = pairs.epoch(3).lengths(window)
        for batch in (window[::2], window[1::2], window[:1]):
            found = ids(pairs, 3, batch)
            assert found == [[side[pair] for pair in batch] for side in expected]
        for side, of in zip(expected, lengths, strict=True):
            assert of.tolist() == [len(side[pair]) for pair in window]
    ids(pairs, 4)
    assert ids(pairs, 3) == expected


def test_other_epochs_and_seeds_draw_other_subwords(made: Made) -> None:
    drawn = [str(ids(fresh(made, seed), epoch)) for seed, epoch in ((1, 0), (1, 1), (1, 2), (2, 0), (12, 0))]
    assert len(set(drawn)) == 5


def test_equal_lines_at_other_places_and_sides_are_drawn_apart(tmp_path: Path) -> None:
    line = "kastonemu " * 4
    tokenizer = TOKENIZERS["bpe"](vocab_size=40)([line], [line], print)
    columns = schema(40)
    with Writer(tmp_path / "s", columns) as writer:
        both = tokenizer.src.encode([line] * 8)
        numbers = np.arange(8)
        texts = pa.array([line] * 8, TEXT), pa.array([[line]] * 8, pa.list_(TEXT))
        writer.write(record_batch(columns, *texts, both, both, pa.array(numbers.astype(np.int32)), pa.array(numbers)))
    pairs = fresh((Store(tmp_path / "s"), tokenizer, build(SAMPLINGS, Choice("bpe_dropout", {"rate": 0.5}))))
    src, tgt = ids(pairs, 0, range(8))
    assert len({str(drawn) for drawn in src + tgt}) > 8


def test_what_is_drawn_spells_the_text_and_ends_in_eos(made: Made) -> None:
    store, tokenizer, _ = made
    best = [[line.tolist() for line in side] for side in store.ids(range(COUNT))]
    for epoch in range(3):
        src, tgt = ids(fresh(made), epoch)
        assert [line[-1] for line in src + tgt] == [EOS] * 2 * COUNT
        assert tokenizer.src.decode([line[:-1] for line in src]) == SRC
        assert tokenizer.tgt.decode([line[:-1] for line in tgt]) == TGT
        assert [src, tgt] != best
        assert sum(map(len, src)) > sum(map(len, best[0]))  # the best way is a short one


def test_ids_are_those_of_the_store_in_kind_and_number(made: Made) -> None:
    store, pairs = made[0], fresh(made)
    assert len(pairs) == len(store)
    assert {line.dtype for line in pairs.epoch(0).ids([1, 2])[0]} == {line.dtype for line in store.ids([1])[0]}
    assert pairs.epoch(0).ids([]) == ([], [])
    assert [side.tolist() for side in pairs.epoch(0).lengths(np.empty(0, np.int64))] == [[], []]


def test_a_line_that_gets_too_long_is_split_the_best_way(made: Made) -> None:
    """A model with a limit on positions never sees a longer one."""
    store = made[0]
    best = [[line.tolist() for line in side] for side in store.ids(range(COUNT))]
    assert ids(fresh(made, longest=1), 0) == best
    limit = sorted(map(len, best[0]))[COUNT // 2]
    free, limited = ids(fresh(made, longest=None), 0), ids(fresh(made, longest=limit), 0)
    for side in (0, 1):
        for drawn, found, plain in zip(free[side], limited[side], best[side], strict=True):
            assert found == (plain if len(drawn) > limit else drawn)
    assert limited != free and limited != best


def test_without_sampling_the_store_is_used_as_it_is(made: Made) -> None:
    store, tokenizer, _ = made
    for choice in (Choice("none"), Choice("bpe_dropout", {"rate": 0.0})):
        assert sampled(store, tokenizer, build(SAMPLINGS, choice), 1, None) is store


@pytest.mark.parametrize(("kind", "way"), [("unigram", "bpe_dropout"), ("bpe", "unigram"), ("char", "unigram")])
def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path, kind: str, way: str) -> None:
    """It may be a model that exists, of which the config does not know the kind."""
    tokenizer = TOKENIZERS[kind](vocab_size=60)(SRC, TGT, lambda _: None)
    with Writer(tmp_path / "s", schema(60)):
        pass
    with pytest.raises(ConfigError, match=f"train.subword_sampling needs a .* tokenizer, but it is {kind}$"):
        sampled(Store(tmp_path / "s"), tokenizer, build(SAMPLINGS, Choice(way)), 1, None)
