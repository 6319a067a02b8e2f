"""What has come of the runs of a sweep so far: sweep.jsonl, an object for each run."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from nmt.files import write_file
from nmt.report import curves
from nmt.run import Record, Run


@dataclass
class Outcome:
    """Of one run."""

    variant: str
    seed: int
    config: str  # the digest of what it was trained with
    state: Literal["begun", "finished", "failed"] = "begun"
    seconds: float = 0.0  # of its processes, all that they did counted
    why: str = ""  # it has failed
    result: dict[str, Any] = field(default_factory=dict)  # of the best model: empty until it is finished


Outcomes = dict[tuple[str, int], Outcome]


def read(path: Path) -> Outcomes:
    """What is damaged is passed over: its run, when it goes on, finds that there is nothing to do."""
    found: Outcomes = {}
    for row in Record(path).rows():
        with contextlib.suppress(TypeError):
            outcome = Outcome(**row)
            found[outcome.variant, outcome.seed] = outcome
    return found


def write(path: Path, outcomes: Outcomes) -> None:
    with write_file(path) as stream:
        stream.write("".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in outcomes.values()).encode())


def result(run: Run, metric: str) -> Mapping[str, Any]:
    """The score that picks the best model of a run, on its first validation set. Empty if there is none."""
    rows = next(iter(curves.valid_rows(Record(run.metrics).rows()).values()), [])
    if not rows or curves.scores(curves.best(rows, metric)).get(metric) is None:
        return {}
    best, last = curves.best(rows, metric), rows[-1]
    return {
        "metric": metric,
        "score": curves.scores(best)[metric],
        "step": best["step"],
        "averaged": curves.averaged(best),
        "steps": last["step"],
        "target_tokens": last.get("target_tokens"),
    }
