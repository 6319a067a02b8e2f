"""Filters drop pairs as pairs and say why; at their limits they let pass."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from nmt.choice import Choice, build, options_of
from nmt.data.filters import FILTERS, ID_FILTERS, TEXT_FILTERS, Duplicates, Empty, Length, Ratio, Tally, choices


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("a", "b", None),
        ("", "b", "source empty"),
        ("a", "", "target empty"),
        ("", "", "both sides empty"),
        ("  ", "b", "source empty"),
        ("a", "\u200b", "target empty"),
        ("\u3000", "\t", "both sides empty"),
        ("0", ".", None),
    ],
)
def test_empty_sides_are_told_apart(src: str, tgt: str, reason: str | None) -> None:
    """Case 9."""
    assert Empty().text(src, tgt) == reason


def test_a_pair_that_came_before_is_a_duplicate_and_a_half_is_not() -> None:
    """Case 13."""
    seen = Duplicates()
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("a\nx", ""), ("a", "\nx"), ("a", "x")]
    assert [seen.text(*pair) for pair in pairs] == [None, None, None, "duplicate", None, None, "duplicate"]


def test_a_new_filter_has_seen_nothing() -> None:
    assert Duplicates().text("a", "x") is None
    assert Duplicates().text("a", "x") is None


def test_length_counts_the_longer_side_and_its_limit_passes() -> None:
    limit = Length(max_tokens=5)
    assert limit.lengths(5, 5) is None
    for lengths in ((6, 1), (1, 6)):
        assert limit.lengths(*lengths) == "too long (limit 5 pieces)"


def test_ratio_works_both_ways_and_its_limit_passes() -> None:
    ratio = Ratio(max=3)
    assert ratio.lengths(2, 6) is ratio.lengths(6, 2) is None
    assert ratio.lengths(2, 7) == ratio.lengths(7, 2) == "lengths differ more than 3 to 1"
    assert Ratio(max=1.5).lengths(2, 3) is None
    assert "1.5 to 1" in str(Ratio(max=1.5).lengths(2, 4))


def test_all_filters_are_on_until_they_are_kept_out() -> None:
    assert set(choices({})) == set(FILTERS)
    assert set(choices({"ratio": "keep", "duplicates": "drop"})) == set(FILTERS) - {"ratio"}
    assert choices({"length": {"max_tokens": 7}})["length"] == Choice("length", {"max_tokens": 7})


@pytest.mark.parametrize("settings", [{"lenght": "drop"}, {"length": 7}, {"duplicates": "yes"}, {"ratio": None}])
def test_a_setting_that_means_nothing_cannot_be_built(settings: dict[str, Any]) -> None:
    name, choice = next((n, c) for n, c in choices(settings).items() if n in settings)
    with pytest.raises(Exception, match=name):
        build(FILTERS, choice)


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_is_explained_has_defaults_and_works_at_one_stage(name: str) -> None:
    constructor = FILTERS[name]
    assert inspect.getdoc(constructor)
    assert all(p.default is not inspect.Parameter.empty for p in options_of(constructor).values())
    made = constructor()
    assert hasattr(made, "text") is (name in TEXT_FILTERS)
    assert hasattr(made, "lengths") is (name in ID_FILTERS)
    # An ordinary pair passes with the defaults.
    assert (made.text("ein Haus", "a house") if name in TEXT_FILTERS else made.lengths(10, 12)) is None


def test_a_tally_counts_by_reason_and_keeps_the_first_places() -> None:
    tally = Tally()
    for number in range(10):
        tally.drop("duplicate", f"f:{number}")
    tally.drop("source empty", "f:99")
    assert tally.dropped == {"duplicate": 10, "source empty": 1}
    assert tally.examples == {"duplicate": ["f:0", "f:1", "f:2"], "source empty": ["f:99"]}
