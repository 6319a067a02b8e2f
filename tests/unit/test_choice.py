"""Variants chosen by name: options are checked against the constructor before anything is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from nmt.choice import Choice, build, did_you_mean, problems, resolve
from nmt.errors import ConfigError


class Lamp:
    def __init__(
        self,
        room: str,
        *,
        watts: int,
        warm: bool = True,
        shade: Literal["red", "blue"] = "red",
        height: float = 1.5,
        hours: Literal["auto"] | int = "auto",
        colours: list[float] = [],  # noqa: B006
        label: str | None = None,
        anything: Any = None,
    ) -> None:
        self.room, self.options = room, (watts, warm, shade, height, hours, colours, label, anything)


def candle(room: str, *, scent: str = "none") -> tuple[str, str]:
    return room, scent


class Dark:
    pass


TABLE = {"lamp": Lamp, "candle": candle, "dark": Dark}


@pytest.mark.parametrize(
    ("value", "choice"),
    [
        ("lamp", Choice("lamp")),
        ({"name": "lamp"}, Choice("lamp")),
        ({"name": "lamp", "watts": 40}, Choice("lamp", {"watts": 40})),
        ({"watts": 40}, Choice("", {"watts": 40})),
        ({}, Choice("")),
        (Choice("lamp"), Choice("lamp")),
    ],
)
def test_reading(value: Any, choice: Choice) -> None:
    assert Choice.read(value) == choice


@pytest.mark.parametrize("value", [3, None, True, ["lamp"], {"name": 3}, {"name": None}, {3: "x"}])
def test_what_is_no_choice_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a name, or a mapping"):
        Choice.read(value)


def test_a_choice_is_written_as_it_is_read() -> None:
    choice = Choice("lamp", {"watts": 40, "warm": False})
    assert Choice.read(choice.tree()) == choice
    assert str(choice) == "lamp (watts 40, warm False)"
    assert str(Choice("dark")) == "dark"


def test_build_calls_the_constructor_with_what_the_program_supplies_and_the_user_set() -> None:
    lamp = build(TABLE, Choice("lamp", {"watts": 40, "shade": "blue", "hours": 3, "height": 2}), "hall")
    assert (lamp.room, lamp.options) == ("hall", (40, True, "blue", 2, 3, [], None, None))
    assert build(TABLE, Choice("candle"), "hall") == ("hall", "none")
    assert isinstance(build(TABLE, Choice("dark")), Dark)


def test_resolve_writes_every_option_out() -> None:
    assert resolve(TABLE, Choice("candle")) == Choice("candle", {"scent": "none"})
    full = resolve(TABLE, Choice("lamp", {"watts": 40}))
    assert list(full.options) == ["watts", "warm", "shade", "height", "hours", "colours", "label", "anything"]
    assert problems(TABLE, full) == []


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (Choice("lmap"), ["`lmap` is none of: lamp, candle, dark (did you mean `lamp`?)"]),
        (Choice("sun"), ["`sun` is none of: lamp, candle, dark"]),
        (Choice("lamp"), ["needs the option `watts`"]),
        (Choice("lamp", {"watts": 1, "wrm": True}), ["has no option `wrm` (did you mean `warm`?)"]),
        (Choice("lamp", {"watts": 1, "room": "x"}), ["has no option `room`"]),  # the program's own, not the user's
        (Choice("dark", {"deep": 1}), ["`dark` has no option `deep`; it has no options"]),
        (Choice("lamp", {"watts": 1.5}), ["`watts` of `lamp` must be an integer, but is 1.5 instead"]),
        (Choice("lamp", {"watts": True}), ["must be an integer, but is True"]),
        (Choice("lamp", {"watts": None}), ["must be an integer, but is None"]),
        (Choice("lamp", {"watts": 1, "warm": 1}), ["must be true or false, but is 1"]),
        (Choice("lamp", {"watts": 1, "shade": "green"}), ["must be red or blue, but is 'green'"]),
        (Choice("lamp", {"watts": 1, "height": "tall"}), ["must be a number, but is 'tall'"]),
        (Choice("lamp", {"watts": 1, "height": False}), ["must be a number, but is False"]),
        (Choice("lamp", {"watts": 1, "hours": "long"}), ["must be auto or an integer, but is 'long'"]),
        (Choice("lamp", {"watts": 1, "colours": [1, "x"]}), ["must be a list of a number"]),
        (Choice("lamp", {"watts": 1, "colours": 1}), ["must be a list of a number"]),
        (Choice("lamp", {"watts": 1, "label": 3}), ["must be text or null, but is 3"]),
        (Choice("lamp", {"warm": 0, "glow": 1}), ["`warm`", "`glow`", "needs the option `watts`"]),
    ],
    ids=str,
)
def test_every_problem_is_a_sentence_and_build_refuses_it(choice: Choice, expected: list[str]) -> None:
    found = problems(TABLE, choice)
    assert len(found) == len(expected)
    for part in expected:
        assert any(part in sentence for _, sentence in found), found
    with pytest.raises(ConfigError) as error:
        build(TABLE, choice, "hall")
    assert "\n" not in str(error.value)


def test_what_fits_has_no_problems() -> None:
    for options in ({"height": 2}, {"hours": "auto"}, {"colours": [1, 2.5]}, {"colours": ()}, {"label": None}):
        assert problems(TABLE, Choice("lamp", {"watts": 1, **options})) == []
    assert problems(TABLE, Choice("lamp", {"watts": 1, "anything": Path()})) == []


def test_a_near_name_is_suggested_and_a_far_one_not() -> None:
    assert did_you_mean("optimiser", ["optimizer", "schedule"]) == " (did you mean `optimizer`?)"
    assert did_you_mean("xyz", ["optimizer"]) == ""
    assert did_you_mean("x", []) == ""
