"""Which keys came before, against a plain set."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nmt.data import duplicates
from nmt.data.duplicates import KEY, Seen


def keys(count: int, distinct: int, seed: int = 1) -> list[bytes]:
    """Random keys, most of which come many times; some begin alike, and some differ in the last byte only."""
    rng = random.Random(seed)
    pool = [rng.randbytes(KEY) for _ in range(distinct)]
    pool += [key[:-1] + bytes([key[-1] ^ 1]) for key in pool[: distinct // 3]]
    pool += [key[:8] + rng.randbytes(8) for key in pool[: distinct // 3]]
    pool += [b"\0" * KEY, b"\xff" * KEY]
    return [rng.choice(pool) for _ in range(count)]


def plainly(some: list[bytes]) -> list[bool]:
    seen: set[bytes] = set()
    return [key in seen or bool(seen.add(key)) for key in some]


@pytest.mark.parametrize("buffered", [1, 100, 5_000])
@pytest.mark.parametrize("distinct", [1, 30, 3_000])
def test_a_row_is_repeated_if_its_key_came_in_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffered: int, distinct: int
) -> None:
    """Case 13: whatever comes in one piece, and whenever it is written to the disk."""
    monkeypatch.setattr(duplicates, "BUFFERED", buffered)
    some, rng, start = keys(2_000, distinct), random.Random(2), 0
    seen = Seen(tmp_path / "seen")
    while start < len(some):
        size = rng.choice((0, 1, 7, 400))
        seen.add(b"".join(some[start : start + size]))
        start += size
    found = seen.repeated().tolist()
    assert found == plainly(some)
    assert any(found)


def test_no_row_and_no_repeat(tmp_path: Path) -> None:
    assert Seen(tmp_path / "a").repeated().tolist() == []
    seen = Seen(tmp_path / "b")
    seen.add(b"")
    assert seen.repeated().tolist() == []
    seen = Seen(tmp_path / "c")
    seen.add(bytes(range(2 * KEY)))
    assert seen.repeated().tolist() == [False, False]


def test_everything_is_in_its_directory_and_keys_are_gone_at_the_end(tmp_path: Path) -> None:
    seen = Seen(tmp_path / "seen")
    seen.add(b"".join(keys(500, 100)))
    seen.repeated()
    assert [path.name for path in tmp_path.iterdir()] == ["seen"]
    assert [path.name for path in (tmp_path / "seen").iterdir()] == ["repeated"]
