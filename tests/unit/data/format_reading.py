"""How tests of formats write files, read them, and look at the error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmt.data.formats import FORMATS, Unit
from nmt.errors import DataError


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(name: str, root: Path, **options: Any) -> list[Unit]:
    return list(FORMATS[name](root, **options).read())


def pairs(units: list[Unit]) -> list[tuple[str, ...]]:
    return [(unit.src, *unit.tgts) for unit in units]


def fault(name: str, root: Path, **options: Any) -> str:
    """The message of the error that reading ends with."""
    with pytest.raises(DataError) as error:
        read(name, root, **options)
    assert "\n" not in str(error.value)
    return str(error.value)
