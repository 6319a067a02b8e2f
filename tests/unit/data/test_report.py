"""What was found, in words: counts with their places, suspicions in plain terms, and prepare.md."""

from __future__ import annotations

from typing import Any

import pytest

from nmt.data.alignment import Verdict
from nmt.data.languages import Sides
from nmt.data.report import Suspicion, corpus_sentence, lines, markdown
from nmt.data.tally import SHOWN, Example, Tally

# --- counts ---


def example(number: int) -> Example:
    return Example(f"f:{number}", f"src {number}", f"tgt {number}")


def test_a_tally_counts_by_reason_and_keeps_the_first_examples() -> None:
    tally = Tally()
    for number in range(10):
        tally.drop("duplicate", example(number))
    tally.note("source equals target", example(99))
    assert tally.dropped == {"duplicate": 10}
    assert tally.noted == {"source equals target": 1}
    assert tally.examples == {"duplicate": [example(0), example(1), example(2)], "source equals target": [example(99)]}
    assert tally.tree()["examples"]["source equals target"] == [{"where": "f:99", "src": "src 99", "tgt": "tgt 99"}]


def test_many_are_counted_at_once_and_no_more_examples_read_than_kept() -> None:
    tally, numbers = Tally(), iter(range(1000))
    tally.drop_many("duplicate", 1000, map(example, numbers))
    assert tally.dropped == {"duplicate": 1000}
    assert next(numbers) == 3
    tally.drop_many("too long", 0, iter(()))
    tally.drop_many("duplicate", 2, map(example, range(2)), noted=True)
    assert (tally.dropped, tally.noted) == ({"duplicate": 1000}, {"duplicate": 2})


def test_tallies_add_up_in_order() -> None:
    first, second = Tally(read=5, kept=3), Tally(read=7, kept=4)
    for number in range(2):
        first.drop("short", example(number))
    for number in range(2, 6):
        second.drop("short", example(number))
    second.note("odd", example(6))
    first.add(second)
    assert (first.read, first.kept, first.dropped, first.noted) == (12, 7, {"short": 6}, {"odd": 1})
    assert first.examples == {"short": [example(0), example(1), example(2)], "odd": [example(6)]}


def test_an_example_shows_the_start_of_a_long_line() -> None:
    """Case 11: a line of 200,000 characters is not printed."""
    shown = Example.of("f:1", "a" * SHOWN, "b" * 200_000)
    assert shown == Example("f:1", "a" * SHOWN, "b" * SHOWN + "…")


def test_a_corpus_is_a_sentence() -> None:
    tally = Tally(read=29_000, kept=28_989)
    assert corpus_sentence({"label": "captions", **tally.tree()}) == "captions: 29,000 pairs read, 28,989 kept"
    tally.drop_many("duplicate", 10, [example(17)])
    tally.drop("source empty", example(3))
    tally.note("source equals target", example(5))
    assert corpus_sentence({"label": "captions", **tally.tree()}) == (
        "captions: 29,000 pairs read, 28,989 kept; "
        "dropped: 10 duplicate (first at f:17), 1 source empty (first at f:3); "
        "kept, but: 1 source equals target (first at f:5)"
    )


# --- suspicions ---


def sides(same: int = 0, swapped: bool = False) -> Sides:
    """Of 100 pairs."""
    found = Sides("en", "ru")
    src, tgt = ("он и она", "he and she") if swapped else ("he and she", "он и она")
    found.add(["same"] * same + [src] * (100 - same), ["same"] * same + [tgt] * (100 - same))
    return found


def verdict(**change: Any) -> Verdict:
    clean: dict[str, Any] = {"kind": None, "first": 0, "last": None, "lag": 0}
    return Verdict(**{**clean, **change}, length_correlation=0.81234, number_agreement=None)


def suspicion(of: Sides, **change: Any) -> str:
    return Suspicion("c", verdict(**change), of, lambda pair: ("a.en", pair + 1)).sentence()


def test_nothing_is_said_of_a_corpus_that_looks_right() -> None:
    assert suspicion(sides()) == ""
    assert suspicion(sides(same=50)) == ""


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"kind": "shifted", "first": 12_300, "lag": -1},
            "looks shifted from about line 12301 on: translations stand 1 line earlier than they should (a.en)",
        ),
        (
            {"kind": "shifted", "first": 0, "last": 499, "lag": 3},
            "looks shifted from about line 1 on, up to about line 500: "
            "translations stand 3 lines later than they should (a.en)",
        ),
        ({"kind": "shuffled"}, "looks shuffled: sources and targets do not go together"),
        ({"kind": "shuffled", "first": 100}, "looks shuffled from about line 101 on (a.en)"),
        (
            {"kind": "shuffled", "first": 0, "last": 99},
            "looks shuffled from about line 1 on, up to about line 100 (a.en)",
        ),
    ],
)
def test_a_fault_is_said_in_plain_words_with_its_line(change: dict[str, Any], sentence: str) -> None:
    """Case 14."""
    assert suspicion(sides(), **change) == f"c: {sentence}"


def test_swapped_and_same_sides_are_said() -> None:
    """Case 14."""
    assert suspicion(sides(swapped=True)).startswith("c: looks swapped: ")
    assert suspicion(sides(same=51)) == "c: source and target are the same text in 51% of the pairs looked at"
    both = suspicion(sides(swapped=True), kind="shuffled")
    assert "looks swapped" in both and "; looks shuffled" in both


def test_a_side_in_a_foreign_script_is_said() -> None:
    found = Sides("en", "ru")
    found.add(["he and she"] * 200, ["lui e lei"] * 200)
    assert suspicion(found) == "c: the target is hardly in a script of its language"


def test_the_measures_are_rounded_for_the_manifest() -> None:
    made = Suspicion("c", verdict(), sides(), lambda pair: ("a", pair))
    assert made.tree() == {"length_correlation": 0.812, "number_agreement": None}


# --- all of it ---


def side(**change: Any) -> dict[str, Any]:
    lengths = {"mean": 12.5, "p1": 2, "p10": 4, "p50": 12, "p90": 20, "p99": 31, "max": 1_234}
    tree = {"lines": 100, "words": 800, "characters": 4_600, "pieces": 1_250, "unknown": 0, "bytes": 5}
    trip = {"lines": 100, "changed": 3, "spaces": 2, "example": ["a≤b", "a ⁇ b"]}
    return {**tree, "lengths": lengths, "round_trip": trip, **change}


@pytest.fixture
def manifest() -> dict[str, Any]:
    tally = Tally(read=103, kept=100)
    tally.drop_many("duplicate", 2, [Example("a.en:7", "one | two", "`x`"), Example("a.en:9", "", "y")])
    tally.drop("matches a|b", Example("a.en:8", "s", "t"))
    tally.note("source equals target", Example("a.en:1", "OK", "OK"))
    other = Tally(read=10, kept=10)
    return {
        "pairs": 110,
        "digest": "abc123",
        "pieces": {"src": 1_250, "tgt": 2_000},
        "vocabulary": {"src": 10_000, "tgt": 10_000, "joint": True},
        "corpora": [
            {"label": "captions", **tally.tree(), "length_correlation": 0.9, "number_agreement": None},
            {"label": "b|c", **other.tree(), "length_correlation": 0.812, "number_agreement": 0.5},
        ],
        "suspicions": ["captions: looks shuffled: sources and targets do not go together"],
        "unused": ["p.tsv has 3 columns; not used: 2 ('CC-BY')"],
        "markup": ["captions: markup or placeholders"],
        "odd_sentences": ["U+2028 LINE SEPARATOR inside 1 line"],
        "usage": {
            "src": side(),
            "tgt": side(unknown=25, bytes=0, round_trip={**side()["round_trip"], "example": None}),
        },
        "valid": {"dev": 100, "none": 0},
        "test": {},
    }


def test_the_terminal_shows_counts_warnings_and_pieces(manifest: dict[str, Any]) -> None:
    shown = lines(manifest)
    assert shown[0] == "U+2028 LINE SEPARATOR inside 1 line"
    assert shown[1].startswith("captions: 103 pairs read, 100 kept; dropped: 2 duplicate (first at a.en:7)")
    assert shown[2] == "b|c: 10 pairs read, 10 kept"
    assert {"captions: markup or placeholders", "p.tsv has 3 columns; not used: 2 ('CC-BY')"} <= set(shown)
    assert "warning: captions: looks shuffled: sources and targets do not go together" in shown
    assert "warning: data.valid.none holds no lines; it is left out of validation" in shown
    assert not any("dev" in line for line in shown)
    assert (
        "source: 1.44 pieces a word, 4.00 characters a piece; none unknown, 5 (0.40%) bytes; "
        "1 of 100 lines tried do not come back as they were, for example 'a≤b' -> 'a ⁇ b'"
    ) in shown
    assert any(line.startswith("target: 1.44 pieces a word") and "25 (2.00%) unknown" in line for line in shown)
    assert shown[-1] == "110 pairs for training, 1,250 source and 2,000 target pieces; vocabulary 10,000"
    manifest["vocabulary"] = {"src": 10_000, "tgt": 9_000, "joint": False}
    assert lines(manifest)[-1].endswith("vocabulary 10,000 and 9,000")
    assert not any("\n" in line for line in shown)


def test_the_file_shows_all_of_it_with_examples(manifest: dict[str, Any]) -> None:
    text = markdown(manifest)
    assert text.startswith("# Prepared data\n\n110 pairs for training; digest abc123.\n")
    assert text.index("## Look at this first") < text.index("- captions: looks shuffled") < text.index("## Corpora")
    assert "| captions | 103 | 100 | 3 | 0.90 | – |" in text
    assert "p.tsv has 3 columns; not used: 2 ('CC-BY')" in text
    assert r"| b\|c | 10 | 10 | 0 | 0.81 | 0.50 |" in text  # what would end a cell is escaped
    assert "Valid: dev 100, none 0." in text and "Test: none." in text
    assert "### captions: 2 duplicate\n\n- a.en:7: `one | two` — `'x'`\n- a.en:9: (empty) — `y`\n" in text
    assert "### captions: 1 matches a\\|b\n" in text
    assert "### captions: 1 source equals target (kept)\n" in text
    assert "- U+2028 LINE SEPARATOR inside 1 line" in text
    assert "## Markup\n\n- captions: markup or placeholders" in text
    assert "Vocabulary: 10,000 and 10,000, one for both sides." in text
    for row in (
        "| unknown pieces | none | 25 (2.00%) |",
        "| pieces a line, p99 | 31 | 31 |",
        "| pieces a line, max | 1,234 | 1,234 |",
    ):
        assert row in text


def test_a_report_without_faults_has_no_empty_parts(manifest: dict[str, Any]) -> None:
    manifest |= {"suspicions": [], "unused": [], "markup": [], "odd_sentences": []}
    text = markdown(manifest)
    assert "## Look at this first" not in text and "## Markup" not in text
    assert "## Odd characters\n\nNone.\n" in text


def test_text_without_spaces_between_words_is_counted_by_the_character(manifest: dict[str, Any]) -> None:
    manifest["usage"]["tgt"] = side(unit="character")
    assert any(
        line.startswith("target: 0.25 pieces a character, 4.00 characters a piece; ") for line in lines(manifest)
    )
    assert "| pieces a word | 1.44 | 0.25 a character |" in markdown(manifest)


def test_nothing_is_divided_by_nothing(manifest: dict[str, Any]) -> None:
    empty = side(lines=0, words=0, characters=0, pieces=0, bytes=0)
    manifest["usage"] = {"src": empty, "tgt": empty}
    assert any(line.startswith("source: no pieces a word, no characters a piece") for line in lines(manifest))
    assert "| pieces a word | no | no |" in markdown(manifest)
