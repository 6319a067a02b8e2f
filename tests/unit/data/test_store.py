"""The store gives back what was put in, by number, over the borders of its record batches."""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from nmt.data.store import SMALL, TEXT, Store, Writer, content_digest, map_file, record_batch, schema
from nmt.errors import DataError
from nmt.tokenizer import Pieces

FILES = ["a.en", "folder/b ü.en", "c.tsv"]


class Row(NamedTuple):
    """A pair as it is put in."""

    src: str
    tgts: tuple[str, ...]
    src_ids: list[int]
    tgt_ids: list[int]
    file: int
    line: int


def rows(count: int, vocabulary: int = SMALL, seed: int = 1) -> list[Row]:
    """Random pairs; some have several references, some texts are empty, ids reach the ends of their range."""
    rng = random.Random(seed)
    words = ["cat", "猫", "🐈\u200d⬛", "e\u0301", "<s>", "\u2028", "", " "]

    def text() -> str:
        return " ".join(rng.choices(words, k=rng.randint(0, 5)))

    def ids() -> list[int]:
        return [rng.choice((0, vocabulary - 1, rng.randrange(vocabulary))) for _ in range(rng.randint(1, 9))]

    def references() -> tuple[str, ...]:
        return tuple(text() for _ in range(rng.choice((1, 1, 1, 2, 3))))

    return [Row(text(), references(), ids(), ids(), rng.randrange(3), rng.randrange(1, 2**40)) for _ in range(count)]


def pieces(lines: list[list[int]]) -> Pieces:
    return Pieces(np.array([i for line in lines for i in line], np.int32), np.cumsum([0, *map(len, lines)]))


def batch(content: list[Row], vocabulary: int = SMALL) -> pa.RecordBatch:
    src, tgts, src_ids, tgt_ids, files, lines = map(list, zip(*content, strict=True)) if content else [[]] * 6
    return record_batch(
        schema(vocabulary),
        pa.array(src, TEXT),
        pa.array(tgts, pa.list_(TEXT)),
        pieces(src_ids),
        pieces(tgt_ids),
        pa.array(files, pa.int32()),
        pa.array(lines, pa.int64()),
    )


def write(path: Path, content: list[Row], sizes: list[int], vocabulary: int = SMALL) -> Store:
    """Record batches of these sizes, over and over, until nothing is left."""
    with Writer(path, schema(vocabulary)) as writer:
        start = number = 0
        while start < len(content):
            size = sizes[number % len(sizes)]
            writer.write(batch(content[start : start + size], vocabulary))
            start, number = start + size, number + 1
    return Store(path, FILES)


@pytest.mark.parametrize("sizes", [[1], [4], [7, 1, 3], [0, 5], [1000]], ids=str)
@pytest.mark.parametrize("count", [0, 1, 4, 11, 50])
def test_everything_comes_back(tmp_path: Path, count: int, sizes: list[int]) -> None:
    content = rows(count)
    made = write(tmp_path / "s.arrow", content, sizes)
    assert len(made) == count
    assert list(made.texts()) == [(row.src, row.tgts) for row in content]
    assert made.pair_texts(range(count)) == [(row.src, row.tgts[0]) for row in content]
    assert [made.where(i) for i in range(count)] == [f"{FILES[row.file]}:{row.line}" for row in content]
    src, tgt = made.ids(range(count))
    assert [ids.tolist() for ids in src] == [row.src_ids for row in content]
    assert [ids.tolist() for ids in tgt] == [row.tgt_ids for row in content]


def test_pairs_are_found_in_any_order_and_more_than_once(tmp_path: Path) -> None:
    content = rows(40)
    made = write(tmp_path / "s.arrow", content, [7, 1, 3])
    wanted = np.random.default_rng(3).integers(0, 40, 300)
    src, tgt = made.ids(wanted)
    assert [ids.tolist() for ids in src] == [content[i].src_ids for i in wanted]
    assert [ids.tolist() for ids in tgt] == [content[i].tgt_ids for i in wanted]
    assert made.pair_texts(wanted) == [(content[i].src, content[i].tgts[0]) for i in wanted]
    src_lengths, tgt_lengths = made.lengths(wanted)
    assert src_lengths.tolist() == list(map(len, src))
    assert tgt_lengths.tolist() == list(map(len, tgt))


@pytest.mark.parametrize(("vocabulary", "kind"), [(5, "uint16"), (65_536, "uint16"), (65_537, "int32")])
def test_ids_take_two_bytes_as_long_as_they_fit(tmp_path: Path, vocabulary: int, kind: str) -> None:
    content = rows(30, vocabulary)
    assert max(max(row.src_ids) for row in content) == vocabulary - 1
    made = write(tmp_path / "s.arrow", content, [8], vocabulary)
    src, tgt = made.ids(range(30))
    assert {str(ids.dtype) for ids in src + tgt} == {kind}
    assert [ids.tolist() for ids in src] == [row.src_ids for row in content]
    assert [ids.tolist() for ids in tgt] == [row.tgt_ids for row in content]


def test_without_pairs_there_are_no_lengths(tmp_path: Path) -> None:
    made = write(tmp_path / "s.arrow", rows(3), [2])
    none = np.empty(0, np.int64)
    assert [part.tolist() for part in made.lengths(none)] == [[], []]
    assert made.ids(none) == ([], [])
    assert made.pair_texts(none) == []


def test_an_epoch_has_all_pairs(tmp_path: Path) -> None:
    content = rows(5)
    made = write(tmp_path / "s.arrow", content, [2])
    for epoch in (0, 1, 7):
        assert len(made.epoch(epoch)) == 5
        assert [i.tolist() for i in made.epoch(epoch).ids([2])[0]] == [content[2].src_ids]


def test_the_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, rows(9), [4])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- digest of the content ---


def test_the_digest_names_text_and_ids_but_not_the_places() -> None:
    content = rows(12)
    digest = content_digest(batch(content))
    assert content_digest(batch(content)) == digest
    assert content_digest(batch([row._replace(file=2, line=row.line + 1) for row in content])) == digest


@pytest.mark.parametrize(
    "change",
    [
        {"src": "other"},
        {"tgts": ("other",)},
        {"tgts": ("a", "b")},
        {"src_ids": [9, 3]},
        {"tgt_ids": [9, 3]},
    ],
    ids=str,
)
def test_the_digest_changes_with_any_text_or_id(change: dict[str, object]) -> None:
    content = rows(12)
    other = [row._replace(**change) if i == 7 else row for i, row in enumerate(content)]
    assert content_digest(batch(other)) != content_digest(batch(content))


def test_the_digest_tells_where_one_text_ends_and_the_next_begins() -> None:
    def digest(*srcs: str, tgts: tuple[tuple[str, ...], ...] = (("t",), ("t",)), ids: list[list[int]]) -> bytes:
        pairs = zip(srcs, tgts, ids, strict=True)
        return content_digest(batch([Row(src, refs, some, [3], 0, 1) for src, refs, some in pairs]))

    digests = {
        digest("ab", "c", ids=[[1, 2], [3]]),
        digest("a", "bc", ids=[[1, 2], [3]]),
        digest("ab", "c", ids=[[1], [2, 3]]),
        digest("ab", "c", ids=[[1, 2], [3]], tgts=(("t", "t"), ())),
    }
    assert len(digests) == 4


def test_the_digest_of_a_part_is_that_of_the_same_rows_alone() -> None:
    content = rows(20)
    part = batch(content).filter(pa.array([i % 3 != 0 for i in range(20)]))
    assert content_digest(part) == content_digest(batch([row for i, row in enumerate(content) if i % 3]))


# --- damage ---


@pytest.mark.parametrize("spoil", ["missing", "empty", "cut", "other"])
def test_a_file_that_is_no_store_is_one_error(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "s.arrow"
    if spoil != "missing":
        write(path, rows(50), [20])
        whole = path.read_bytes()
        path.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "other": b"text\n" * 1000}[spoil])
    with pytest.raises(DataError, match=f"{path}.*--fresh") as error:
        Store(path)
    assert "\n" not in str(error.value)


def test_a_store_that_was_not_finished_is_no_store(tmp_path: Path) -> None:
    """Killed while it wrote."""
    path = tmp_path / "s.arrow"
    writer = Writer(path, schema(SMALL))
    writer.write(batch(rows(10)))
    writer.file.flush()
    with pytest.raises(DataError, match="is damaged"):
        map_file(path)
