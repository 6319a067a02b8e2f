"""The table of a sweep: variants by the mean of their scores, and whether their differences are more than noise."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from nmt.metrics import LOWER_IS_BETTER
from nmt.sweep.outcomes import Outcome, Outcomes
from nmt.sweep.plan import Sweep

# Student's t, whose interval holds 95%, by degrees of freedom from 1; for more, the last one errs on the careful side
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
LEGEND = """\
sd: standard deviation over seeds; in brackets: 95% interval of the difference (Welch's t); within noise: it holds 0."""
CHANCE = """\
The best of many variants owes some of its lead to chance: before you rely on it, train it with further seeds."""


@dataclass
class Standing:
    """Of one variant."""

    variant: str
    settings: str
    runs: list[Outcome]  # that are finished
    of: int

    @property
    def scores(self) -> list[float]:
        return [run.result["score"] for run in self.runs]


def table(sweep: Sweep, outcomes: Outcomes, changed: Collection[tuple[str, int]] = ()) -> str:
    """Markdown that reads as plain text too: the best variant first, those without a finished run last.

    `changed`: runs that were trained with other settings, so that they have no outcome here.
    """
    lower = sweep.metric in LOWER_IS_BETTER
    standings = [_standing(sweep, variant, outcomes) for variant in sweep.settings]
    standings.sort(key=lambda one: fmean(one.scores) * (1 if lower else -1) if one.runs else math.inf)
    score = f"{sweep.metric}, {'lower' if lower else 'higher'} is better"
    head = ["variant", "settings", "runs", score, "sd", "behind the best", "minutes", "steps", "target tokens"]
    digits = 3 if sweep.metric == "nll" else 2
    rows = [_row(one, standings[0], digits) for one in standings]
    title = f"{sweep.file}: {sweep.metric} on {sweep.valid}, means over seeds"
    legend = [LEGEND, CHANCE] if sum(bool(one.runs) for one in standings) > 1 else [LEGEND]
    return "\n".join([title, "", *_aligned([head, *rows]), "", *legend, *_others(sweep, outcomes, changed), ""])


def _standing(sweep: Sweep, variant: str, outcomes: Outcomes) -> Standing:
    mine = [job for job in sweep.jobs if job.variant == variant]
    runs = [one for job in mine if (one := outcomes.get(job.key)) and one.state == "finished"]
    settings = " ".join(f"{key}={_text(value)}" for key, value, _ in sweep.settings[variant])
    return Standing(variant, settings, runs, len(mine))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _row(one: Standing, best: Standing, digits: int) -> list[str]:
    start = [one.variant, one.settings, f"{len(one.runs)} of {one.of}"]
    if not one.runs:
        return [*start, "", "", "", "", "", ""]
    results = [run.result for run in one.runs]
    return [
        *start,
        f"{fmean(one.scores):.{digits}f}",
        f"{stdev(one.scores):.{digits}f}" if len(one.runs) > 1 else "",
        "" if one is best else _behind(best.scores, one.scores, digits),
        f"{fmean(run.seconds for run in one.runs) / 60:.1f}",
        f"{fmean(result['steps'] for result in results):,.0f}",
        f"{fmean(result['target_tokens'] for result in results):,.0f}",
    ]


def _behind(best: Sequence[float], other: Sequence[float], digits: int) -> str:
    """By how much, and an interval for that where both have several seeds."""
    difference = abs(fmean(best) - fmean(other))
    if min(len(best), len(other)) < 2:
        return f"{difference:.{digits}f}"
    half = _half_interval(best, other)
    noise = " within noise" if difference <= half else ""
    return f"{difference:.{digits}f} [{difference - half:.{digits}f}, {difference + half:.{digits}f}]{noise}"


def _half_interval(one: Sequence[float], other: Sequence[float]) -> float:
    """Of the difference of two means, by Welch's t."""
    errors = [stdev(scores) ** 2 / len(scores) for scores in (one, other)]
    if not sum(errors):
        return 0.0
    freedom = sum(errors) ** 2 / sum(e**2 / (len(s) - 1) for e, s in zip(errors, (one, other), strict=True))
    return T95[min(int(freedom), len(T95)) - 1] * math.sqrt(sum(errors))


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    rows = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        yield f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        if not number:
            yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"


def _others(sweep: Sweep, outcomes: Outcomes, changed: Collection[tuple[str, int]]) -> Iterator[str]:
    """The runs that are not in the table."""
    yield from (f"{variant}, seed {seed}: trained with other settings" for variant, seed in changed)
    found = [(job, outcomes.get(job.key)) for job in sweep.jobs if job.key not in changed]
    yield from (f"{job.name}: failed: {one.why}" for job, one in found if one and one.state == "failed")
    if waiting := sum(one is None or one.state == "begun" for _, one in found):
        yield f"still to come: {waiting} of {len(sweep.jobs)} runs"
