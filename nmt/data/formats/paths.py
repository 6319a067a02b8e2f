"""Names of files in a config: `~`, wildcards and lists."""

from __future__ import annotations

import glob
import os
import re
from pathlib import Path
from typing import Annotated

from nmt.choice import Range
from nmt.errors import DataError

Names = str | Annotated[list[str], Range(ge=1)]
WILDCARD = re.compile(r"\*|\?|\[!?\]?[^]/]*\]")


def locate(root: Path, name: str) -> Path:
    """The path that a config means: `~` is the home directory, and what is not absolute stands in `root`."""
    return root / os.path.expanduser(name)


def expand(root: Path, names: Names) -> list[Path]:
    """The files of one name or of several, in order; a name with wildcards stands for its matches, sorted.

    A file that is called just so wins over what its `*`, `?` or `[` would match. Raises DataError when nothing
    matches; a name without wildcards need not exist.
    """
    return [path for name in listed(names) for path in _matches(root, name).values()]


def listed(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def title(names: Names) -> str:
    """What a report calls a corpus of these files."""
    first, *more = listed(names)
    return Path(first).name + (f" and {len(more)} more" if more else "")


def some(paths: list[Path]) -> str:
    """The first few, for a message."""
    return ", ".join(map(str, paths[:3])) + (f" and {len(paths) - 3:,} more" if len(paths) > 3 else "")


def align(root: Path, first: str, second: str) -> list[tuple[Path, Path]]:
    """Pairs the files of two names.

    If both have the same wildcards, files go together for which these stand for the same text: en/part-*.en and
    de/part-*.de pair part-7.en with part-7.de. Otherwise the sorted matches are paired in their order. Raises
    DataError for a file that is left without a partner.
    """
    ones, others = _matches(root, first), _matches(root, second)
    if WILDCARD.findall(first) != WILDCARD.findall(second):
        ones, others = _numbered(ones), _numbered(others)
    if alone := [ones.get(key) or others[key] for key in ones | others if key not in ones or key not in others]:
        counts = [f"{len(files):,} file{'s' * (len(files) != 1)}" for files in (ones, others)]
        raise DataError(
            f"{locate(root, first)} matches {counts[0]}, {locate(root, second)} {counts[1]}; "
            f"they go together file by file, but without a partner: {some(alone)}"
        )
    return [(path, others[key]) for key, path in ones.items()]


def _matches(root: Path, name: str) -> dict[tuple[str, ...], Path]:
    """What a name stands for, sorted by path: the text that each wildcard stands for -> path."""
    path = locate(root, name)
    if not WILDCARD.search(name) or os.path.exists(path):
        return {(): path}
    pattern = str(Path(os.path.expanduser(name)))  # without //, so that the matches look like it
    literal = map(re.escape, WILDCARD.split(pattern))
    divide = re.compile("([^/]*)".join(literal), re.DOTALL)
    found = {match: divide.fullmatch(match) for match in sorted(glob.glob(pattern, root_dir=root))}
    if not found:
        raise DataError(f"{path}: no file has such a name")
    return {division.groups() if division else (match,): root / match for match, division in found.items()}


def _numbered(files: dict[tuple[str, ...], Path]) -> dict[tuple[str, ...], Path]:
    return {(str(number),): path for number, path in enumerate(files.values())}
