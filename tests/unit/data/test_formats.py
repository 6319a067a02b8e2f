"""The corpus formats: what they yield, and the one line with which each refuses a fault."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.data import demo
from nmt.data.formats import FORMATS, Unit
from nmt.errors import DataError


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(name: str, root: Path, **options: Any) -> list[Unit]:
    return list(FORMATS[name](root, **options).read())


def pairs(units: list[Unit]) -> list[tuple[str, ...]]:
    return [(unit.src, *unit.tgts) for unit in units]


def fault(name: str, root: Path, **options: Any) -> str:
    """The message of the error that reading ends with."""
    with pytest.raises(DataError) as error:
        read(name, root, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# --- plain ---


def test_plain_files_are_aligned_line_by_line(tmp_path: Path) -> None:
    write(tmp_path / "a", "eins\nzwei\u2028drei\n\nvier")
    write(tmp_path / "b.gz", gzip.compress(b"one\r\ntwo three\r\n\r\nfour\r\n"))
    units = read("plain", tmp_path, src="a", tgt="b.gz")
    assert pairs(units) == [("eins", "one"), ("zwei\u2028drei", "two three"), ("", ""), ("vier", "four")]
    assert [unit.where for unit in units] == [f"{tmp_path}/a:{n}" for n in (1, 2, 3, 4)]


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


# --- tsv ---


def test_tsv_columns_by_number_from_0(tmp_path: Path) -> None:
    write(tmp_path / "t", "one\teins\tignored\ntwo\tzwei\n")
    assert pairs(read("tsv", tmp_path, path="t")) == [("one", "eins"), ("two", "zwei")]
    assert pairs(read("tsv", tmp_path, path="t", src=1, tgt=0)) == [("eins", "one"), ("zwei", "two")]
    assert read("tsv", tmp_path, path="t")[1].where == f"{tmp_path}/t:2"


def test_tsv_columns_by_the_names_of_the_first_line(tmp_path: Path) -> None:
    write(tmp_path / "t", "\ufeffid\tde\ten\r\n7\teins\tone\r\n")
    assert pairs(read("tsv", tmp_path, path="t", src="en", tgt="de")) == [("one", "eins")]
    assert pairs(read("tsv", tmp_path, path="t", src="id", tgt=2)) == [("7", "one")]
    write(tmp_path / "t", "id\tde\ten\n")
    assert read("tsv", tmp_path, path="t", src="en", tgt="de") == []


def test_tsv_takes_quotes_and_empty_columns_as_they_are(tmp_path: Path) -> None:
    write(tmp_path / "t", '"quoted\tx"y\n\t\n')
    assert pairs(read("tsv", tmp_path, path="t")) == [('"quoted', 'x"y'), ("", "")]


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


# --- hub ---


@pytest.fixture(scope="module")
def hub_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What `datasets` caches goes to a temporary folder, and nothing goes to the network."""
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(folder))
        patch.setenv("HF_HUB_OFFLINE", "1")
        datasets = pytest.importorskip("datasets")
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "datasets")
        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        yield


ROWS = [
    {"id": 1, "translation": {"en": "one cat", "de": "eine Katze"}, "note": "null"},
    {"id": 2, "translation": {"en": "two\u2028cats", "de": "zwei <b>Katzen</b>"}, "note": "NA"},
]


def save_rows(path: Path) -> None:
    if path.suffix == ".json":
        write(path, "".join(json.dumps(row) + "\n" for row in ROWS))
    else:
        import pyarrow as pa
        import pyarrow.parquet

        pa.parquet.write_table(pa.Table.from_pylist(ROWS), path)


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_hub_reads_local_files_with_dotted_columns(tmp_path: Path, kind: str) -> None:
    save_rows(tmp_path / f"data.{kind}")
    corpus = FORMATS["hub"](tmp_path, dataset=kind, files=f"data.{kind}", src="translation.en", tgt="translation.de")
    units = list(corpus.read())
    assert pairs(units) == [(r["translation"]["en"], r["translation"]["de"]) for r in ROWS]
    assert corpus.inputs() == [tmp_path / f"data.{kind}"]
    assert len({unit.where for unit in units}) == 2


@pytest.mark.usefixtures("hub_cache")
def test_hub_reads_several_files_in_order(tmp_path: Path) -> None:
    for name in "ba":
        write(tmp_path / f"{name}.csv", f"en,de\n{name} one,{name} eins\n")
    units = read("hub", tmp_path, dataset="csv", files=["b.csv", "a.csv"], src="en", tgt="de")
    assert pairs(units) == [("b one", "b eins"), ("a one", "a eins")]


@pytest.mark.usefixtures("hub_cache")
def test_hub_reads_csv_cells_as_the_text_that_they_are(tmp_path: Path) -> None:
    """`null`, `NA` and `007` are words of a sentence pair, and an empty cell is an empty side."""
    rows = [("null", "nichts"), ("NA", "k. A."), ("007", "1e3"), ("", "leer"), ('a "b", c', "True")]
    write(tmp_path / "t.csv", "en,de\n" + "".join(f'"{en.replace(chr(34), chr(34) * 2)}",{de}\n' for en, de in rows))
    assert pairs(read("hub", tmp_path, dataset="csv", files="t.csv", src="en", tgt="de")) == rows
    write(tmp_path / "numbers.csv", "en,de\n007,1.50\n12,2\n")
    assert pairs(read("hub", tmp_path, dataset="csv", files="numbers.csv", src="en", tgt="de")) == [
        ("007", "1.50"),
        ("12", "2"),
    ]


@pytest.mark.usefixtures("hub_cache")
def test_hub_faults_are_one_line_each(tmp_path: Path) -> None:
    save_rows(tmp_path / "data.json")
    options = {"dataset": "json", "files": "data.json", "src": "translation.en", "tgt": "translation.de"}
    message = fault("hub", tmp_path, **{**options, "src": "translation.fr"})
    assert "`translation.fr`" in message and "en, de" in message
    assert "id, translation, note" in fault("hub", tmp_path, **{**options, "src": "en"})
    assert "single value" in fault("hub", tmp_path, **{**options, "src": "note.en"})
    assert "must be text, but is int" in fault("hub", tmp_path, **{**options, "src": "id"})
    assert "must be text, but is dict" in fault("hub", tmp_path, **{**options, "src": "translation"})
    assert "no such file" in fault("hub", tmp_path, **{**options, "files": "gone.json"})
    assert "test" in fault("hub", tmp_path, **{**options, "split": "test"})


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("json", '{"en": "a"\n{{{'),
        ("json", b'{"en": "caf\xe9", "de": "x"}\n'),
        ("parquet", "none"),
        ("csv", b"en,de\n\xe9,x\n"),
    ],
    ids=["json syntax", "json bytes", "parquet", "csv bytes"],
)
def test_hub_names_the_file_that_cannot_be_read_and_why(tmp_path: Path, kind: str, content: str | bytes) -> None:
    """Case 5. `datasets` by itself says "An error occurred while generating the dataset"."""
    path = write(tmp_path / f"broken.{kind}", content)
    message = fault("hub", tmp_path, dataset=kind, files=path.name, src="en", tgt="de")
    assert str(path) in message
    assert "while generating the dataset" not in message


@pytest.mark.usefixtures("hub_cache")
def test_hub_reads_a_changed_file_anew(tmp_path: Path) -> None:
    for word in ("old", "new"):
        write(tmp_path / "t.csv", f"en,de\n{word},x\n")
        assert pairs(read("hub", tmp_path, dataset="csv", files="t.csv", src="en", tgt="de")) == [(word, "x")]


# --- demo ---


@pytest.mark.parametrize("split", demo.SPLITS)
def test_demo_yields_the_built_in_pairs(tmp_path: Path, split: str) -> None:
    corpus = FORMATS["demo"](tmp_path, split=split)
    units = list(corpus.read())
    assert pairs(units) == demo.pairs(split)
    assert units[1].where == f"demo {split}:2"
    assert corpus.inputs() == []
