"""When a run is over: after so many steps, epochs or minutes, or validations without a new best."""

from __future__ import annotations

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

    def over(self, state: TrainState) -> bool:
        return self.passed >= 1 or 0 < self.settings.patience <= state.stale

    def reached(self, state: TrainState) -> str:
        """The limit that has ended the run."""
        settings = self.settings
        if settings.steps and state.step >= settings.steps:
            return f"{settings.steps} steps"
        if settings.epochs and state.epochs >= settings.epochs:
            return f"{settings.epochs} epochs"
        if settings.minutes and self.seconds(state) >= 60 * settings.minutes:
            return f"{settings.minutes:g} minutes"
        return f"no new best in {settings.patience} validations"
