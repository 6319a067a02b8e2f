"""The built-in synthetic corpus as a format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from nmt.data.demo import pairs
from nmt.data.formats.unit import Unit


class Demo:
    """Chinese-English pairs that the program writes itself; nothing is read."""

    def __init__(self, root: Path, *, split: Literal["train", "valid", "test"] = "train") -> None:
        self.split = split
        self.name = f"demo {split}"

    def read(self) -> Iterator[Unit]:
        for number, (src, tgt) in enumerate(pairs(self.split), 1):
            yield Unit(src, (tgt,), self.name, number)

    def inputs(self) -> list[Path]:
        return []
