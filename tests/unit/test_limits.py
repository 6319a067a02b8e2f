"""When a run is over, how long it still takes, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmt import limits
from nmt.config import Train
from nmt.journal import Journal
from nmt.limits import Limits
from nmt.ranks import Ranks
from nmt.resume import TrainState
from nmt.run import Run


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(limits, "time", found)
    return found


def begun(state: TrainState, **settings: Any) -> Limits:
    made = Limits(Train(**settings), Ranks())
    made.begin(state)
    return made


def test_the_limit_that_comes_first_ends_a_run(clock: Clock):
    state = TrainState(step=10, epochs=0.5, seconds=30)
    both = begun(state, steps=100, epochs=1)
    assert both.passed == 0.5 and not both.over(state)
    state.step, state.epochs = 60, 1.0
    both.look(state)
    assert both.over(state) and both.reached(state)[0] == "1 epoch"
    timed = begun(state, minutes=2)
    assert timed.passed == 0.25
    clock.now += 91
    timed.look(state)
    assert timed.over(state) and timed.reached(state)[0] == "2 minutes"


def test_patience_ends_a_run(clock: Clock):
    state = TrainState(stale=1)
    patient = begun(state, steps=100, patience=2)
    assert not patient.over(state)
    state.stale = 2
    assert patient.over(state) and patient.reached(state) == (
        "no new best in 2 validations",
        "train.patience above 2, or 0",
    )
    assert not begun(state, steps=100).over(state)


@pytest.mark.parametrize("settings", [{"steps": 100}, {"epochs": 10}])
def test_the_time_left_goes_by_the_speed_of_this_session(clock: Clock, settings: dict[str, int]):
    """Ten hours went into the first half, on a machine that had other work; now a step takes a second."""
    state = TrainState(step=50, epochs=5.0, seconds=36_000)
    resumed = begun(state, **settings)
    clock.now += 10
    state.step, state.epochs = 60, 6.0
    resumed.look(state)
    assert resumed.left() == pytest.approx(40)


def test_the_time_left_of_a_run_limited_by_minutes_is_what_the_clock_says(clock: Clock):
    state = TrainState(seconds=60)
    timed = begun(state, minutes=3)
    clock.now += 30
    timed.look(state)
    assert timed.left() == pytest.approx(90)
    clock.now += 100  # the last update was a slow one
    timed.look(state)
    assert timed.left() == 0


@pytest.mark.parametrize(("left", "said"), [(0.0, "0 s"), (59.0, "59 s"), (60.0, "1 min"), (7_000.0, "117 min")])
def test_the_last_minute_is_told_in_seconds(tmp_path: Path, left: float, said: str):
    journal = Journal(Run(tmp_path), True, False)
    sums = dict.fromkeys(["steps", "tokens", "seconds", "used", "loss", "nll", "norm", "skipped", "lr", "padding"], 1.0)
    journal.updates(1, 0.1, sums, 1.0, 0.5, left, 1e9)
    assert journal.paths.log.read_text().endswith(f"1.0 GB  {said} left\n")


def test_a_raised_limit_that_is_used_up_already_says_what_to_set(clock: Clock):
    state = TrainState(step=7, seconds=312)
    assert begun(state, minutes=4).reached(state) == ("4 minutes", "train.minutes above 5.2, which are used up")
    state.seconds = 313  # never less than what it is
    assert begun(state, minutes=1).reached(state) == ("1 minute", "train.minutes above 5.3, which are used up")
    assert begun(state, steps=5).reached(state) == ("5 steps", "train.steps above 7")


def test_what_comes_on_top_of_a_limit_in_minutes_is_told(clock: Clock):
    state = TrainState(seconds=252)
    assert (
        begun(state, minutes=3).took(state) == "4.2 minutes (1.2 beyond the limit, for the last validation and saving)"
    )
    assert begun(state, minutes=4.2).took(state) == begun(state, steps=3).took(state) == "4.2 minutes"
