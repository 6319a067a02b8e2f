"""What all contestants of `scripts/bench translate` share: the job that they are given, and the clock."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WARM_UP = 100  # lines that are translated before the clock runs
EXTRA, RATIO = 20, 2  # the longest translation has RATIO * source + EXTRA pieces, the source's end counted


@dataclass(frozen=True)
class Job:
    """One text to translate, given as JSON on the command line."""

    folder: str  # with src (text) and ids (the same in pieces, in decimal, no end of sentence), a line a sentence
    model: str  # a directory as `nmt export` writes it, in the format that the contestant reads
    architecture: dict[str, Any]  # the `model` section of the config
    forbidden: list[int]  # pieces that no translation may have
    beam: int
    steps: int  # pieces that each translation has; 0: as many as the model wants
    precision: str
    cores: int
    out: str  # file for the translations: text, or pieces as in ids

    @classmethod
    def given(cls) -> "Job":
        return cls(**json.loads(sys.argv[1]))

    def ids(self) -> list[list[int]]:
        lines = (Path(self.folder) / "ids").read_text().splitlines()
        return [[int(number) for number in line.split()] for line in lines]

    def longest(self, src: list[list[int]]) -> int:
        """Of the translations of these sources, none of which is longer."""
        return self.steps or RATIO * (max(map(len, src)) + 1) + EXTRA


def contend(job: Job, lines: list[Any], settings: dict[str, Callable[[list[Any]], list[Any]]]) -> list[Any]:
    """Translates the lines with each setting, prints sentences a second of each, and returns the last translations."""
    rates, found = {}, []
    for name, translate in settings.items():
        translate(lines[:WARM_UP])
        begin = time.perf_counter()
        found = translate(lines)
        rates[name] = len(lines) / (time.perf_counter() - begin)
    print(json.dumps({"rates": rates}), flush=True)
    return found


def write_ids(job: Job, found: list[list[int]]) -> None:
    Path(job.out).write_text("".join(" ".join(map(str, ids)) + "\n" for ids in found))
