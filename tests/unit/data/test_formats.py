"""The corpus formats: what they yield, and the one line with which each refuses a fault."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from format_reading import fault, pairs, read, write

from nmt.data import demo
from nmt.data.formats import FORMATS
from nmt.errors import DataError

# --- plain ---


def test_plain_files_are_aligned_line_by_line(tmp_path: Path) -> None:
    write(tmp_path / "a", "eins\nzwei\u2028drei\n\nvier")
    write(tmp_path / "b.gz", gzip.compress(b"one\r\ntwo three\r\n\r\nfour\r\n"))
    units = read("plain", tmp_path, src="a", tgt="b.gz")
    assert pairs(units) == [("eins", "one"), ("zwei\u2028drei", "two three"), ("", ""), ("vier", "four")]
    assert [unit.where for unit in units] == [f"{tmp_path}/a:{n}" for n in (1, 2, 3, 4)]


def test_a_unit_names_its_source_file_and_line(tmp_path: Path) -> None:
    write(tmp_path / "a", "x\ny\n")
    write(tmp_path / "b", "1\n2\n")
    assert [(unit.file, unit.line) for unit in read("plain", tmp_path, src="a", tgt="b")] == [
        (f"{tmp_path}/a", 1),
        (f"{tmp_path}/a", 2),
    ]


def test_several_references_and_absolute_paths(tmp_path: Path) -> None:
    for name in "abc":
        write(tmp_path / name, f"{name}1\n{name}2\n")
    units = read("plain", Path("/nowhere"), src=str(tmp_path / "a"), tgt=[str(tmp_path / "b"), str(tmp_path / "c")])
    assert pairs(units) == [("a1", "b1", "c1"), ("a2", "b2", "c2")]


@pytest.mark.parametrize(
    ("src", "tgt", "counts"),
    [
        ("1\n2\n3\n", "1\n2\n", ("3 lines", "2 lines")),
        ("1\n", "1\n2\n3\n4\n", ("1 line,", "4 lines")),
        ("", "1\n2\n", ("0 lines", "2 lines")),
        ("1\n2\n", "", ("2 lines", "0 lines")),
        ("\ufeff", "1\n", ("0 lines", "1 line;")),
        ("x\n" * 1234, "x\n", ("1,234 lines", "1 line;")),
    ],
)
def test_unequal_counts_name_both_files_and_both_counts(
    tmp_path: Path, src: str, tgt: str, counts: tuple[str, str]
) -> None:
    """Case 7."""
    write(tmp_path / "a", src)
    write(tmp_path / "b", tgt)
    message = fault("plain", tmp_path, src="a", tgt="b")
    assert f"{tmp_path}/a has {counts[0]}" in message
    assert f"{tmp_path}/b has {counts[1]}" in message
    assert "aligned line by line" in message


def test_an_unequal_reference_is_named_among_several(tmp_path: Path) -> None:
    """Case 7."""
    for name, text in (("a", "1\n2\n"), ("b", "1\n2\n"), ("c", "1\n")):
        write(tmp_path / name, text)
    message = fault("plain", tmp_path, src="a", tgt=["b", "c"])
    assert f"{tmp_path}/c has 1 line" in message


@pytest.mark.parametrize("blank", ["\n", "  \n", "\u3000\n", "\r\n"])
def test_an_extra_blank_line_on_one_side_is_named_as_such(tmp_path: Path, blank: str) -> None:
    """Case 8."""
    write(tmp_path / "a", "1\n2\n" + blank)
    write(tmp_path / "b", "1\n2\n")
    for src, tgt in (("a", "b"), ("b", "a")):
        message = fault("plain", tmp_path, src=src, tgt=tgt)
        assert "3 lines" in message and "2 lines" in message
        assert "blank: remove" in message


def test_an_extra_line_with_text_is_not_called_blank(tmp_path: Path) -> None:
    """Case 8."""
    write(tmp_path / "a", "1\n2\n\nx\n")
    write(tmp_path / "b", "1\n2\n")
    assert "blank" not in fault("plain", tmp_path, src="a", tgt="b")


def test_no_newline_at_the_end_and_blank_lines_on_both_sides_are_fine(tmp_path: Path) -> None:
    """Case 8."""
    write(tmp_path / "a", "1\n2\n\n")
    write(tmp_path / "b", "1\n2\n\n")
    assert len(read("plain", tmp_path, src="a", tgt="b")) == 3
    write(tmp_path / "a", "1\n2")
    write(tmp_path / "b", "1\n2\n")
    assert pairs(read("plain", tmp_path, src="a", tgt="b")) == [("1", "1"), ("2", "2")]


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Two languages in three parts each; each line says which part it is of."""
    for language in ("en", "de"):
        (tmp_path / language).mkdir()
        for part in ("1", "2", "10"):
            write(tmp_path / language / f"part-{part}.{language}", f"{language} {part}\n")
    return tmp_path


def test_stars_pair_the_files_for_which_they_mean_the_same(parts: Path) -> None:
    corpus = FORMATS["plain"](parts, src="en/part-*.en", tgt="de/part-*.de")
    units = list(corpus.read())
    assert pairs(units) == [("en 1", "de 1"), ("en 10", "de 10"), ("en 2", "de 2")]
    assert units[1].where == f"{parts}/en/part-10.en:1"
    assert [path.name for path in corpus.inputs()] == [
        *("part-1.en", "part-1.de", "part-10.en", "part-10.de", "part-2.en", "part-2.de")
    ]


def test_stars_may_have_several_references_too(parts: Path) -> None:
    units = read("plain", parts, src="en/part-?.en", tgt=["de/part-?.de", "en/part-?.en"])
    assert pairs(units) == [("en 1", "de 1", "en 1"), ("en 2", "de 2", "en 2")]


def test_a_file_without_a_partner_is_named_with_both_counts(parts: Path) -> None:
    (parts / "de" / "part-2.de").rename(parts / "de" / "part-3.de")
    message = fault("plain", parts, src="en/part-*.en", tgt="de/part-*.de")
    assert "3 files" in message and f"{parts}/en/part-2.en" in message and f"{parts}/de/part-3.de" in message
    assert "part-10" not in message
    (parts / "de" / "part-3.de").unlink()
    message = fault("plain", parts, src="en/part-*.en", tgt="de/*")
    assert "matches 3 files" in message and f"{parts}/de/* 2 files" in message
    assert "1 file;" in fault("plain", parts, src="en/part-*.en", tgt="de/part-1.de")


def test_different_wildcards_pair_in_sorted_order(parts: Path) -> None:
    units = read("plain", parts, src="en/part-*.en", tgt="de/*-*.de")
    assert pairs(units) == [("en 1", "de 1"), ("en 10", "de 10"), ("en 2", "de 2")]


def test_wildcards_that_match_nothing_are_an_error(parts: Path) -> None:
    assert f"{parts}/en/none-*" in fault("plain", parts, src="en/none-*", tgt="de/*")
    with pytest.raises(DataError, match=r"de/\*\.txt"):
        FORMATS["plain"](parts, src="en/*", tgt="de/*.txt").inputs()


def test_lists_of_files_pair_one_to_one_in_their_order(parts: Path) -> None:
    lists = {"src": ["en/part-2.en", "en/part-1.en"], "tgt": ["de/part-2.de", "de/part-10.de"]}
    assert pairs(read("plain", parts, **lists)) == [("en 2", "de 2"), ("en 1", "de 10")]
    message = fault("plain", parts, src=lists["src"], tgt=["de/part-1.de"])
    assert "2 files" in message and "1 in" in message


def test_an_unequal_pair_among_several_is_named(parts: Path) -> None:
    """Case 7."""
    write(parts / "de" / "part-2.de", "1\n2\n3\n")
    message = fault("plain", parts, src="en/part-*.en", tgt="de/part-*.de")
    assert f"{parts}/en/part-2.en has 1 line, but {parts}/de/part-2.de has 3 lines" in message


# --- tsv ---


def test_tsv_columns_by_number_from_0(tmp_path: Path) -> None:
    write(tmp_path / "t", "one\teins\tignored\ntwo\tzwei\n")
    assert pairs(read("tsv", tmp_path, path="t")) == [("one", "eins"), ("two", "zwei")]
    assert pairs(read("tsv", tmp_path, path="t", src=1, tgt=0)) == [("eins", "one"), ("zwei", "two")]
    assert read("tsv", tmp_path, path="t")[1].where == f"{tmp_path}/t:2"


def test_tsv_with_several_target_columns_and_several_files(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", "x\ty\tz\n")
    write(tmp_path / "b.tsv", "1\t2\t3\n")
    units = read("tsv", tmp_path, path="*.tsv", tgt=[2, 1])
    assert pairs(units) == [("x", "z", "y"), ("1", "3", "2")]
    assert [unit.where for unit in units] == [f"{tmp_path}/a.tsv:1", f"{tmp_path}/b.tsv:1"]
    assert pairs(read("tsv", tmp_path, path=["b.tsv", "a.tsv"])) == [("1", "2"), ("x", "y")]


def test_tsv_reads_a_header_in_each_file(tmp_path: Path) -> None:
    write(tmp_path / "a.tsv", "de\ten\teng\neins\tone\t1\n")
    write(tmp_path / "b.tsv", "eng\tde\ten\n2\tzwei\ttwo\n")
    units = read("tsv", tmp_path, path="*.tsv", src="de", tgt=["en", "eng"])
    assert pairs(units) == [("eins", "one", "1"), ("zwei", "two", "2")]


def test_tsv_columns_by_the_names_of_the_first_line(tmp_path: Path) -> None:
    write(tmp_path / "t", "\ufeffid\tde\ten\r\n7\teins\tone\r\n")
    assert pairs(read("tsv", tmp_path, path="t", src="en", tgt="de")) == [("one", "eins")]
    assert pairs(read("tsv", tmp_path, path="t", src="id", tgt=2)) == [("7", "one")]
    write(tmp_path / "t", "id\tde\ten\n")
    assert read("tsv", tmp_path, path="t", src="en", tgt="de") == []


def test_tsv_takes_quotes_and_empty_columns_as_they_are(tmp_path: Path) -> None:
    write(tmp_path / "t", '"quoted\tx"y\n\t\n')
    assert pairs(read("tsv", tmp_path, path="t")) == [('"quoted', 'x"y'), ("", "")]


def test_tsv_skips_empty_lines_and_counts_them_as_lines(tmp_path: Path) -> None:
    """Case 8."""
    write(tmp_path / "t", "a\tb\r\n\r\nc\td\r\n\r\n")
    assert [(*pair, unit.line) for unit in read("tsv", tmp_path, path="t") for pair in pairs([unit])] == [
        ("a", "b", 1),
        ("c", "d", 3),
    ]


def test_tsv_with_too_few_columns_names_the_line(tmp_path: Path) -> None:
    write(tmp_path / "t", "a\tb\nno tab\n")
    assert f"{tmp_path}/t:2: has 1 column, expected at least 2" in fault("tsv", tmp_path, path="t")
    assert f"{tmp_path}/t:1: has 2 columns, expected at least 6" in fault("tsv", tmp_path, path="t", tgt=5)


def test_tsv_without_the_named_column_says_what_there_is(tmp_path: Path) -> None:
    write(tmp_path / "t", "german\tenglish\na\tb\n")
    message = fault("tsv", tmp_path, path="t", src="germn", tgt="english")
    assert f"{tmp_path}/t:1: has no column `germn` (did you mean `german`?)" in message
    assert "german, english" in message
    write(tmp_path / "t", "")
    assert "has no column `en`" in fault("tsv", tmp_path, path="t", src="en")


# --- demo ---


@pytest.mark.parametrize("split", demo.SPLITS)
def test_demo_yields_the_built_in_pairs(tmp_path: Path, split: str) -> None:
    corpus = FORMATS["demo"](tmp_path, split=split)
    units = list(corpus.read())
    assert pairs(units) == demo.pairs(split)
    assert units[1].where == f"demo {split}:2"
    assert corpus.inputs() == []
