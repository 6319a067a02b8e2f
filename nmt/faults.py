"""Updates that were skipped because their gradients are not finite: which they were, and when they are too many."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from nmt.feed import Ready
from nmt.resume import TrainState
from nmt.update import Updater

IN_ROW = 3  # updates skipped one after the other that are too many


class Faults:
    """Follows the updates of a run. What became of them is asked for later, so that a GPU is not waited for."""

    def __init__(self, updater: Updater, where: Callable[[int], str], say: Callable[[str], None]) -> None:
        """`where` names the place of a pair, `say` writes a line."""
        self.updater, self.where, self.say = updater, where, say
        self.recent: list[tuple[int, Ready]] = []  # updates since the last look, without their text
        updater.faults = []

    def follow(self, step: int, ready: Ready) -> None:
        """After each update."""
        self.recent.append((step, dataclasses.replace(ready, src=[], tgt=[], mine=[])))

    def too_many(self, state: TrainState) -> bool:
        """Names the updates since the last look that were skipped, and leaves their batches out from now on.

        Returns whether so many were in a row that the run has to go back.
        """
        recent, self.recent = self.recent, []
        for (step, ready), fault in zip(recent, self.updater.new_faults(), strict=True):
            state.faults_in_row = state.faults_in_row + 1 if fault else 0
            if fault:
                self._name(step, ready.pairs)
                state.left_out.append(list(ready.at))
            if state.faults_in_row == IN_ROW:
                return True
        return False

    def _name(self, step: int, pairs: np.ndarray) -> None:
        places = ", ".join(self.where(int(pair)) for pair in pairs[:3])
        more = f" and {len(pairs) - 3} more" if len(pairs) > 3 else ""
        self.say(f"update {step} skipped: its gradient is not finite; its pairs: {places}{more}")
