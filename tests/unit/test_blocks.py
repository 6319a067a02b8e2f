"""Lines as batches: how many, how large, and in which order (what becomes of their translations: e2e/test_lines.py)."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from nmt.blocks import Block, Blocks
from nmt.errors import DataError
from nmt.tokenizer import TOKENIZERS

RNG = random.Random(3)
LINES = ["".join(RNG.choices("abc", k=RNG.randint(1, 30))) for _ in range(400)]
TOKENIZER = TOKENIZERS["char"](vocab_size=20)(LINES, LINES, lambda _: None)


def make(lines: list[str], size: int = 1000, places: int = 500, shares: int = 1, first: int = 1) -> list[Block]:
    blocks = Blocks(TOKENIZER, 1000, 1000)
    return list(blocks.make([(line, "") for line in lines], size, first, places, shares, print))


def sizes(block: Block) -> list[int]:
    """Places of each batch, padding counted."""
    return [len(batch) * max(len(part.ids) for part in batch) for batch in block.waiting]


@pytest.mark.parametrize("shares", [1, 2, 4, 8])
@pytest.mark.parametrize("places", [1, 100, 2000, 100_000])
def test_batches_hold_every_line_once_within_their_budget(places: int, shares: int) -> None:
    [block] = make(LINES, places=places, shares=shares)
    parts = list(chain.from_iterable(block.waiting))
    assert sorted(part.line for part in parts) == list(range(1, 401))
    assert all(size <= places or len(batch) == 1 for size, batch in zip(sizes(block), block.waiting, strict=True))
    assert [len(part.ids) for part in parts] == sorted((len(part.ids) for part in parts), reverse=True)


@pytest.mark.parametrize("shares", [2, 3, 4, 8])
@pytest.mark.parametrize("places", [2000, 5000, 100_000])
def test_few_batches_are_dealt_out_evenly(places: int, shares: int) -> None:
    """As many for each share, and of about the same size, however many would have been enough."""
    [block] = make(LINES, places=places, shares=shares)
    assert len(block.waiting) % shares == 0
    assert max(sizes(block)) < 1.5 * min(sizes(block))
    [enough] = make(LINES, places=places)
    assert len(enough.waiting) <= len(block.waiting) < len(enough.waiting) + shares


def test_fewer_lines_than_shares_are_a_batch_each() -> None:
    [block] = make(["a", "", "bb", "c"], shares=8)
    assert [len(batch) for batch in block.waiting] == [1, 1, 1]


def test_numbers_go_on_from_block_to_block() -> None:
    blocks = make([*LINES[:5], "", " "], size=3, first=10)
    assert [[part.line for parts in block.parts for part in parts] for block in blocks] == [
        [10, 11, 12],
        [13, 14],
        [],
    ]
    assert list(blocks[2].waiting) == [[]], "a block of blank lines has a batch too"


def test_words_beside_blank_lines_are_passed_over() -> None:
    [block] = Blocks(TOKENIZER, 1000, 1000).make([("", "ab"), ("a", "bc"), ("b", " ")], 9, 1, 99, 1, print)
    [_, [given], [free]] = block.parts
    assert TOKENIZER.decode([given.begin]) == ["bc"] and free.begin == []
    with pytest.raises(DataError, match="line 7: its target prefix 'xyz'"):
        list(Blocks(TOKENIZER, 1000, 1000).make([("a", "xyz")], 9, 7, 99, 1, print))
