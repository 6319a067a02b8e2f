"""metrics.jsonl as curves: columns over steps and over time, without what a run has gone back behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from nmt.metrics import LOWER_IS_BETTER

Row = dict[str, Any]
TRAIN = ("loss", "nll", "ppl", "lr", "grad_norm", "target_tokens_per_second", "memory_gb")


def number(value: Any) -> float | None:
    """A finite number as it is, None for anything else that stands on record."""
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return value if usable else None


def train_rows(rows: Iterable[Row]) -> list[Row]:
    return _kept(row for row in rows if row.get("kind") == "train")


def valid_rows(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """By validation set, in the order in which they were measured."""
    sets: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("kind") == "valid":
            sets.setdefault(str(row.get("set", "valid")), []).append(row)
    return {name: _kept(of_set) for name, of_set in sets.items()}


def scores(row: Row) -> dict[str, float | None]:
    """All that a validation has measured."""
    signed = row.get("signature")
    return {name: number(row.get(name)) for name in (*(signed if isinstance(signed, dict) else ()), "nll", "ppl")}


def best(rows: list[Row], metric: str) -> Row:
    """Of a validation set's, the one that training takes for the best."""
    return max(rows, key=lambda row: _rank(scores(row), metric))


def _rank(values: dict[str, float | None], metric: str) -> tuple[float, float]:
    """Larger is better, as in training; what is no number is the worst."""
    value, nll = values.get(metric), values["nll"]
    sign = -1 if metric in LOWER_IS_BETTER else 1
    worst = float("-inf")
    return worst if value is None else sign * value, worst if nll is None else -nll


def averaged(row: Row) -> int:
    """How many snapshots the model that a row measures is the mean of; 0 for a model as it was trained."""
    return int(number(row.get("averaged")) or 0)


def curves(train: list[Row], valid: dict[str, list[Row]]) -> dict[str, Any]:
    """Both kinds of rows as columns; seconds are None where the clock is not known."""
    clock = _clock(train)
    of_sets = []
    for name, rows in valid.items():
        measured = [scores(row) for row in rows]
        metrics = dict.fromkeys(key for row in measured for key in row)
        of_sets.append(
            {
                "set": name,
                "step": [row["step"] for row in rows],
                "seconds": [clock(row["step"]) for row in rows],
                "averaged": [averaged(row) for row in rows],
                "scores": {key: [row.get(key) for row in measured] for key in metrics},
            }
        )
    of_train: dict[str, Any] = {key: [number(row.get(key)) for row in train] for key in TRAIN}
    of_train |= {"step": [row["step"] for row in train], "seconds": [clock(row["step"]) for row in train]}
    return {"train": of_train, "valid": of_sets}


def _kept(rows: Iterable[Row]) -> list[Row]:
    """Rows in the order of their steps: where a run has gone back, what it did anew replaces what it did before."""
    kept: list[Row] = []
    for row in rows:
        if isinstance(row.get("step"), int):
            while kept and place(kept[-1]) >= place(row):
                kept.pop()
            kept.append(row)
    return kept


def place(row: Row) -> tuple[int, bool]:
    """Its step, and whether it is of the mean of the last snapshots, which is measured after that."""
    return row["step"], bool(averaged(row))


def _clock(train: list[Row]) -> Callable[[int], float | None]:
    """Seconds of the run at a step, between the rows that tell them; after the last one at the mean pace."""
    told = [(row["step"], row["seconds"]) for row in train if number(row.get("seconds")) is not None]
    if not told or not told[-1][0]:
        return lambda step: None
    steps, seconds = zip((0, 0.0), *told, strict=True)
    pace = seconds[-1] / steps[-1]
    return lambda step: float(np.interp(step, steps, seconds)) + max(0, step - steps[-1]) * pace
