"""Filters drop pairs as pairs and say why; at their limits they let pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nmt.choice import Choice, build, options_of
from nmt.data.filters import (
    FILTERS,
    LENGTH_FILTERS,
    ON,
    TEXT_FILTERS,
    Characters,
    Duplicates,
    Empty,
    Length,
    Letters,
    Numbers,
    Overlap,
    Ratio,
    Regex,
    Repeats,
    Same,
    Script,
    TextFilter,
    choices,
    longest,
)
from nmt.errors import ConfigError

# What the program supplies to a constructor, besides the options.
SUPPLIED: dict[str, tuple[Any, ...]] = {"script": (("en", "de"),), "overlap": ([("valid.dev", "held", "out")],)}


def reasons(filter: TextFilter, *pairs: tuple[str, str]) -> list[str | None]:
    """Of all pairs at once, and the same of each alone."""
    found = filter.reasons([src for src, _ in pairs], [tgt for _, tgt in pairs])
    assert found == [filter.reasons([src], [tgt])[0] for src, tgt in pairs]
    return found


def reason(filter: TextFilter, src: str, tgt: str) -> str | None:
    (found,) = reasons(filter, (src, tgt))
    return found


# --- text ---


@pytest.mark.parametrize(
    ("src", "tgt", "expected"),
    [
        ("a", "b", None),
        ("", "b", "source empty"),
        ("a", "", "target empty"),
        ("", "", "both sides empty"),
        ("  ", "b", "source empty"),
        ("a", "\u200b", "target empty"),
        ("\u3000", "\t", "both sides empty"),
        ("0", ".", None),
        (" a", "猫 ", None),
    ],
)
def test_empty_sides_are_told_apart(src: str, tgt: str, expected: str | None) -> None:
    """Case 9."""
    assert reason(Empty(), src, tgt) == expected


def test_characters_are_counted_on_both_sides_and_the_limits_pass() -> None:
    limit = Characters(min=2, max=4)
    assert reasons(limit, ("ab", "abcd"), ("猫猫猫猫", "ab")) == [None, None]
    assert reasons(limit, ("abcde", "ab"), ("ab", "abcde")) == ["too long (limit 4 characters)"] * 2
    assert reasons(limit, ("a", "ab"), ("ab", "a"), ("", "ab")) == ["too short (least 2 characters)"] * 3
    assert reason(limit, "a", "abcde") == "too long (limit 4 characters)"
    assert reasons(Characters(), ("a" * 5000, "b"), ("a" * 5001, "b")) == [None, "too long (limit 5000 characters)"]


def test_same_looks_at_what_is_between_the_white_space_around() -> None:
    assert reasons(Same(), ("OK", "OK"), (" OK", "OK\u3000")) == ["source equals target"] * 2
    assert reasons(Same(), ("OK", "Ok"), ("a b", "a  b")) == [None, None]


def test_script_wants_half_of_the_letters_to_be_of_the_language() -> None:
    filter = Script(("zh", "en"))
    assert reason(filter, "我有 Python 3.12", "I have Python 3.12") == "source in another script"
    assert reasons(filter, ("我有猫cat", "I"), ("我有cat", "I")) == [None, "source in another script"]
    assert reason(filter, "我有", "我有") == "target in another script"
    assert reasons(filter, ("12!", "34?"), ("", ""), ("我", "我a")) == [None, None, None]  # no letters; just half


def test_script_takes_another_share_and_other_scripts() -> None:
    assert reason(Script(("zh", "en"), min=0.2), "我有 Python", "I") is None
    assert reason(Script(("zh", "en"), min=1), "我有猫a", "I") == "source in another script"
    named = Script(("xx", "en"), src=["han", "HIRAGANA"], tgt=["CYRILLIC"])  # in any case, over what the language says
    assert reasons(named, ("猫です", "да"), ("cat", "да"), ("猫", "yes")) == [
        None,
        "source in another script",
        "target in another script",
    ]


def test_the_scripts_of_an_unknown_language_are_not_looked_at() -> None:
    assert reasons(Script(("xx", "de")), ("我", "ich"), ("a", "я")) == [None, "target in another script"]


def test_repeats_are_runs_of_up_to_four_characters() -> None:
    filter = Repeats(max=3)
    for run in ("a", "ha", "你好吗", "1234"):
        assert reason(filter, f"x{run * 3}y", "b") is None
        assert reason(filter, f"x{run * 4}y", "b") == reason(filter, "b", run * 4) == "repeated characters"
    assert reason(filter, "12345" * 9, "b") is None
    assert reasons(Repeats(), ("a" * 10, "b"), ("a" * 11, "b")) == [None, "repeated characters"]


def test_letters_are_counted_among_what_is_visible() -> None:
    filter = Letters(min=0.5)
    assert reasons(filter, ("ab12", "c"), ("ab 1 2", "c"), ("", "c")) == [None, None, None]
    assert reasons(filter, ("ab123", "c"), ("c", "-- 12 a")) == ["mostly no letters"] * 2
    assert reason(Letters(min=1), "हिन्दी", "हिन्दी") is None  # half of it are vowel signs
    assert reasons(Letters(), ("abc1234567", "c"), ("ab12345678", "c")) == [None, "mostly no letters"]


@pytest.mark.parametrize(
    ("src", "tgt", "same"),
    [
        ("in 2016", "im Jahr 2016", True),
        ("in 2016", "im Jahr 2017", False),
        ("in 2016", "damals", False),
        ("2016 to 17", "17 bis 2016", True),  # in any order
        ("1,000,000", "1.000.000", True),  # in any grouping
        ("1 000".replace(" ", "\u202f"), "1'000", True),
        ("3.14", "3,14", True),
        ("2 cats", "zwei Katzen", True),  # single digits are often written out
        ("12 and 12", "12", False),
        ("१२", "12", True),
        ("", "", True),
    ],
)
def test_numbers_must_be_on_both_sides(src: str, tgt: str, same: bool) -> None:
    assert reason(Numbers(), src, tgt) == (None if same else "different numbers")


def test_numbers_count_from_so_many_digits_on() -> None:
    assert reason(Numbers(digits=1), "2 cats", "zwei Katzen") == "different numbers"
    assert reasons(Numbers(digits=3), ("12", "zwölf"), ("123", "viele")) == [None, "different numbers"]


def test_regular_expressions_are_looked_for_on_the_sides_that_they_are_given_for() -> None:
    filter = Regex(src=["^Click"], tgt=[r"\bQQQ\b"], any=["http", "©"])
    assert reasons(filter, ("Click here", "Hier"), ("Hier Click", "Click")) == ["matches ^Click", None]
    assert reasons(filter, ("QQQ", "a"), ("a", "b QQQ")) == [None, r"matches \bQQQ\b"]
    assert reasons(filter, ("http://a", "b"), ("a", "© b")) == ["matches http", "matches ©"]
    assert reason(Regex(), "anything", "at all") is None


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Characters(min=9, max=5), r"characters: min \(9\) is more than max \(5\)"),
        (lambda: Length(min_tokens=9, max_tokens=5), r"length: min_tokens \(9\) is more than max_tokens \(5\)"),
    ],
)
def test_limits_that_drop_every_pair_are_refused(make: Callable[[], object], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        make()


def test_a_broken_regular_expression_is_one_error() -> None:
    with pytest.raises(ConfigError, match=r"data.filters.regex: '\(' is no regular expression") as error:
        Regex(any=["("])
    assert "\n" not in str(error.value)


# --- overlap ---

HELD = [("valid.dev", "one cat", "eine Katze"), ("test.news", "two\tcats", "zwei Katzen"), ("test.old", "one cat", "x")]


def test_overlap_names_the_set_and_takes_no_heed_of_case_and_white_space_around() -> None:
    filter = Overlap(HELD)
    assert reason(filter, "one cat", "etwas") == "source is in valid.dev"  # the first set that has it
    assert reason(filter, " ONE Cat ", "etwas") == "source is in valid.dev"
    assert reason(filter, "two cats", "etwas") == "source is in test.news"  # a tab is a space in train
    assert reasons(filter, ("one  cat", "x"), ("etwas", "eine Katze"), ("a", "one cat")) == [None, None, None]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("source", ["source is in valid.dev", "source is in valid.dev", None, None]),
        ("target", ["target is in valid.dev", None, "target is in valid.dev", None]),
        ("pair", ["pair is in valid.dev", None, None, None]),
        ("either", ["source is in valid.dev", "source is in valid.dev", "target is in valid.dev", None]),
    ],
)
def test_overlap_compares_sources_targets_pairs_or_either_side(by: Any, expected: list[str | None]) -> None:
    pairs = [("One cat", "eine Katze"), ("one cat", "anders"), ("other", "EINE Katze"), ("eine Katze", "one cat")]
    assert reasons(Overlap(HELD, by=by), *pairs) == expected


def test_sets_without_a_line_overlap_with_nothing() -> None:
    assert reason(Overlap([]), "a", "b") is None


# --- duplicates ---


def same(by: Any, one: tuple[str, str], other: tuple[str, str]) -> bool:
    keys = Duplicates(by=by).keys([one[0], other[0]], [one[1], other[1]])
    assert len(keys) == 32
    return keys[:16] == keys[16:]


@pytest.mark.parametrize(
    ("one", "other", "pair", "normalised", "source", "target"),
    [
        (("a", "x"), ("a", "x"), True, True, True, True),
        (("a", "x"), ("a", "y"), False, False, True, False),
        (("a", "x"), ("b", "x"), False, False, False, True),
        (("A  b ", "Straße"), ("a B", "STRASSE"), False, True, False, False),
        (("cafe\u0301", "ﬁ"), ("café", "fi"), False, True, False, False),
        (("ab", "c"), ("a", "bc"), False, False, False, False),
        (("a\nx", ""), ("a", "\nx"), False, False, False, False),
    ],
)
def test_what_makes_a_duplicate(
    one: tuple[str, str], other: tuple[str, str], pair: bool, normalised: bool, source: bool, target: bool
) -> None:
    """Case 13."""
    expected = {"pair": pair, "normalised": normalised, "source": source, "target": target}
    assert {by: same(by, one, other) for by in expected} == expected


def test_duplicates_say_by_what_they_go() -> None:
    assert Duplicates().reason == "duplicate"
    assert Duplicates(by="source").reason == "duplicate (source)"


# --- lengths ---


def dropped(filter: Any, *lengths: tuple[int, int]) -> list[bool]:
    found: list[bool] = filter.lengths(*np.array(lengths).T).tolist()
    return found


def test_length_counts_both_sides_and_its_limits_pass() -> None:
    limit = Length(max_tokens=5, min_tokens=2)
    assert dropped(limit, (5, 5), (2, 5), (6, 2), (2, 6), (1, 5), (5, 1)) == [False, False, True, True, True, True]
    assert limit.reason == "too long (limit 5 pieces, at least 2)"
    assert Length(max_tokens=5).reason == "too long (limit 5 pieces)"
    assert dropped(Length(), (250, 1), (251, 1)) == [False, True]


def test_ratio_works_both_ways_and_its_limit_passes() -> None:
    assert dropped(Ratio(max=3), (2, 6), (6, 2), (2, 7), (7, 2)) == [False, False, True, True]
    assert Ratio(max=3).reason == "lengths differ more than 3 to 1"
    assert dropped(Ratio(max=1.5), (2, 3), (2, 4)) == [False, True]
    assert Ratio(max=1.5).reason == "lengths differ more than 1.5 to 1"


# --- settings ---


def test_the_default_filters_are_on_until_they_are_kept_out() -> None:
    assert list(choices({})) == list(ON)
    assert set(choices({"ratio": "keep", "duplicates": "drop"})) == set(ON) - {"ratio"}
    assert set(choices({"numbers": "drop", "script": {}, "same": "keep"})) == {*ON, "numbers", "script"}
    assert choices({"length": {"max_tokens": 7}})["length"] == Choice("length", {"max_tokens": 7})


def test_filters_work_in_the_order_of_the_table_whatever_the_order_of_the_settings() -> None:
    assert list(choices(dict.fromkeys(reversed(FILTERS), "drop"))) == list(FILTERS)


@pytest.mark.parametrize("value", [7, "yes", None, True, ["drop"], "Drop"])
def test_a_setting_that_is_neither_drop_keep_nor_options_is_refused(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"`data.filters.length` must be drop, keep or options, but is"):
        choices({"length": value})


def test_a_filter_that_does_not_exist_cannot_be_built() -> None:
    choice = choices({"lenght": "drop"})["lenght"]
    with pytest.raises(ConfigError, match=r"`lenght` is none of: .*did you mean `length`"):
        build(FILTERS, choice)


def test_the_most_pieces_that_pass() -> None:
    assert longest({}) == 250
    assert longest({"length": {"max_tokens": 7}}) == 7
    assert longest({"length": {"min_tokens": 3}}) == 250
    assert longest({"length": "keep"}) is None


# --- what every filter promises ---


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_is_explained_has_defaults_and_works_at_one_stage(name: str) -> None:
    constructor = FILTERS[name]
    assert inspect.getdoc(constructor)
    assert all(p.default is not inspect.Parameter.empty for p in options_of(constructor).values())
    made = build(FILTERS, Choice(name), *SUPPLIED.get(name, ()))
    stages = {"reasons": name in TEXT_FILTERS, "keys": name == "duplicates", "lengths": name in LENGTH_FILTERS}
    assert {stage: hasattr(made, stage) for stage in stages} == stages
    # An ordinary pair passes with the defaults.
    if name in TEXT_FILTERS:
        assert reasons(made, ("a house", "ein Haus"), ("two red houses", "zwei rote Häuser")) == [None, None]
        assert made.reasons([], []) == []
    if name in LENGTH_FILTERS:
        assert dropped(made, (10, 12), (3, 2)) == [False, False]
        assert made.lengths(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
    if name == "duplicates":
        assert made.keys([], []) == b""


def test_a_script_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"there is no script `LATN` \(did you mean `LATIN`"):
        FILTERS["script"](("en", "de"), src=["latn"])
