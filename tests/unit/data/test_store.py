"""The store gives back what was put in, by number, over the borders of its record batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmt.data import store
from nmt.data.store import Row, Store, Writer
from nmt.errors import DataError


def rows(count: int) -> list[Row]:
    """Pairs of different lengths; every third has two references."""
    return [
        Row(
            f"quelle {i} 猫",
            (f"target {i}",) if i % 3 else (f"target {i}", f"second {i}"),
            np.arange(i % 7 + 1, dtype=np.int32) + i,
            np.arange(i % 5 + 1, dtype=np.int32) + 2 * i,
            f"corpus:{i + 1}",
        )
        for i in range(count)
    ]


def write(path: Path, content: list[Row]) -> Store:
    with Writer(path) as writer:
        for row in content:
            writer.add(row)
    return Store(path)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record batches of four pairs, so that few pairs cross their borders."""
    monkeypatch.setattr(store, "ROWS", 4)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 11])
def test_everything_comes_back(tmp_path: Path, count: int) -> None:
    content = rows(count)
    made = write(tmp_path / "s.arrow", content)
    assert len(made) == count
    assert list(made.texts()) == [(row.src, row.tgts) for row in content]
    assert [made.where(i) for i in range(count)] == [row.where for row in content]
    src, tgt = made.ids(range(count))
    assert [ids.tolist() for ids in src] == [row.src_ids.tolist() for row in content]
    assert [ids.tolist() for ids in tgt] == [row.tgt_ids.tolist() for row in content]


@pytest.mark.usefixtures("small_batches")
def test_pairs_are_found_in_any_order_and_more_than_once(tmp_path: Path) -> None:
    content = rows(11)
    made = write(tmp_path / "s.arrow", content)
    wanted = np.array([10, 0, 7, 7, 3, 4])
    src, tgt = made.ids(wanted)
    assert [ids.tolist() for ids in src] == [content[i].src_ids.tolist() for i in wanted]
    src_lengths, tgt_lengths = made.lengths(wanted)
    assert src_lengths.tolist() == list(map(len, src))
    assert tgt_lengths.tolist() == list(map(len, tgt))


def test_without_pairs_there_are_no_lengths(tmp_path: Path) -> None:
    made = write(tmp_path / "s.arrow", rows(3))
    none = np.empty(0, np.int64)
    assert [part.tolist() for part in made.lengths(none)] == [[], []]
    assert made.ids(none) == ([], [])


def test_an_epoch_has_all_pairs(tmp_path: Path) -> None:
    made = write(tmp_path / "s.arrow", rows(5))
    for epoch in (0, 1, 7):
        assert len(made.epoch(epoch)) == 5
        assert [i.tolist() for i in made.epoch(epoch).ids([2])[0]] == [rows(5)[2].src_ids.tolist()]


def test_the_same_rows_make_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, rows(9))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("spoil", ["missing", "empty", "cut", "other"])
def test_a_damaged_store_is_one_error(tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "s.arrow"
    if spoil != "missing":
        write(path, rows(50))
        whole = path.read_bytes()
        path.write_bytes({"empty": b"", "cut": whole[: len(whole) // 2], "other": b"text\n" * 1000}[spoil])
    with pytest.raises(DataError, match=f"{path}.*--fresh"):
        Store(path)
