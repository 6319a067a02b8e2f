"""When a run is over: after so many steps, epochs or minutes, or validations without a new best."""

from __future__ import annotations

import math
import time

from nmt.config import Train
from nmt.ranks import Ranks
from nmt.resume import TrainState


class Limits:
    """Knows how much of a run is over, by the limit that comes first; the same in all processes."""

    def __init__(self, settings: Train, ranks: Ranks) -> None:
        self.settings, self.ranks = settings, ranks
        self.started = time.monotonic()
        self.passed = 0.0  # the share that is over

    def begin(self, state: TrainState) -> None:
        """At the start, or going on from a checkpoint."""
        self.look(state)
        self.begun = time.monotonic(), self.passed

    def look(self, state: TrainState) -> None:
        """After an update."""
        settings = self.settings
        shares = [0.0]
        if settings.steps:
            shares.append(state.step / settings.steps)
        if settings.epochs:
            shares.append(state.epochs / settings.epochs)
        if settings.minutes:  # clocks differ
            shares.append(self.ranks.most(self.seconds(state) / (60 * settings.minutes))[0])
        self.passed = max(shares)

    def seconds(self, state: TrainState) -> float:
        """Of training, validation and saving, over all sessions of the run."""
        return state.seconds + time.monotonic() - self.started

    def left(self) -> float:
        """Seconds, at the speed since the beginning of this session, which may have another machine to itself."""
        began, before = self.begun
        return (time.monotonic() - began) * max(0.0, 1 - self.passed) / max(1e-9, self.passed - before)

    def over(self, state: TrainState) -> bool:
        return self.passed >= 1 or 0 < self.settings.patience <= state.stale

    def reached(self, state: TrainState) -> tuple[str, str]:
        """The limit that has ended the run, and what must be set for it to go on."""
        settings, minutes = self.settings, self.seconds(state) / 60
        if settings.steps and state.step >= settings.steps:
            return counted(settings.steps, "step"), f"train.steps above {state.step}"
        if settings.epochs and state.epochs >= settings.epochs:
            return counted(settings.epochs, "epoch"), f"train.epochs above {state.epochs:.10g}"
        if settings.minutes and minutes >= settings.minutes:
            used = math.ceil(10 * minutes) / 10
            return counted(settings.minutes, "minute"), f"train.minutes above {used:g}, which are used up"
        return f"no new best in {counted(settings.patience, 'validation')}", f"train.patience above {state.stale}, or 0"

    def took(self, state: TrainState) -> str:
        """How long the run took, also beyond a limit in minutes."""
        minutes = self.seconds(state) / 60
        beyond = minutes - (self.settings.minutes or math.inf)
        more = f" ({beyond:.1f} beyond the limit, for the last validation and saving)" if beyond >= 0.05 else ""
        return f"{minutes:.1f} minutes{more}"


def counted(number: float, unit: str, units: str = "") -> str:
    """1 batch, 2 batches."""
    return f"{number:,.10g} {unit if number == 1 else units or unit + 's'}"
