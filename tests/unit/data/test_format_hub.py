"""The hub format: files through `datasets`, columns, references, and errors in one line."""

from __future__ import annotations

import gzip
import json
import logging
import lzma
from collections.abc import Iterator
from pathlib import Path

import pytest
from format_reading import fault, pairs, read, write

from nmt.data.formats import FORMATS


@pytest.fixture(scope="module")
def hub_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What `datasets` caches goes to a temporary folder, and nothing goes to the network."""
    folder = tmp_path_factory.mktemp("hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(folder))
        patch.setenv("HF_HUB_OFFLINE", "1")
        datasets = pytest.importorskip("datasets")
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "datasets")
        patch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
        yield folder


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
@pytest.mark.parametrize("streaming", [False, True])
def test_hub_reads_wildcards_and_packed_files(tmp_path: Path, streaming: bool) -> None:
    write(tmp_path / "a.csv.gz", gzip.compress(b"en,de\none,eins\n"))
    write(tmp_path / "b.csv.xz", lzma.compress(b"en,de\ntwo,zwei\n"))
    corpus = FORMATS["hub"](tmp_path, dataset="csv", files="*.csv.*", src="en", tgt="de", streaming=streaming)
    units = list(corpus.read())
    assert pairs(units) == [("one", "eins"), ("two", "zwei")]
    assert [unit.line for unit in units] == [1, 2]
    assert corpus.inputs() == [tmp_path / "a.csv.gz", tmp_path / "b.csv.xz"]


@pytest.mark.usefixtures("hub_cache")
@pytest.mark.parametrize("streaming", [False, True])
def test_hub_takes_references_from_several_columns_and_from_lists(tmp_path: Path, streaming: bool) -> None:
    rows = [{"en": str(n), "de": [f"d{n}", f"D{n}"], "fr": f"f{n}"} for n in range(2_500)]
    write(tmp_path / "t.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    options = {"dataset": "json", "files": "t.jsonl", "src": "en", "streaming": streaming}
    units = read("hub", tmp_path, tgt=["fr", "de"], **options)
    assert pairs(units) == [(str(n), f"f{n}", f"d{n}", f"D{n}") for n in range(2_500)]
    assert units[2_499].where == f"{tmp_path}/t.jsonl:2500"
    assert "must be text, but is list" in fault("hub", tmp_path, **{**options, "src": "de"}, tgt="fr")


def test_hub_keeps_nothing_of_what_it_streams(tmp_path: Path, hub_cache: Path) -> None:
    write(tmp_path / "t.csv", "en,de\nstreamed,gestreamt\n")
    before = set(hub_cache.rglob("*.arrow"))
    assert len(read("hub", tmp_path, dataset="csv", files="t.csv", src="en", tgt="de", streaming=True)) == 1
    assert set(hub_cache.rglob("*.arrow")) == before


@pytest.mark.usefixtures("hub_cache")
def test_hub_rows_without_a_translation_are_refused_by_number(tmp_path: Path) -> None:
    for empty, why in (("[]", "empty list"), ("null", "null"), ("[null]", "null")):
        write(tmp_path / "t.jsonl", '{"en": "a", "de": ["b"]}\n{"en": "c", "de": ' + empty + "}\n")
        message = fault("hub", tmp_path, dataset="json", files="t.jsonl", src="en", tgt="de")
        assert f"{tmp_path}/t.jsonl:2: column `de`" in message and why in message


@pytest.mark.usefixtures("hub_cache")
def test_hub_without_the_network_names_the_set(tmp_path: Path) -> None:
    for streaming in (False, True):
        message = fault("hub", tmp_path, dataset="nobody/nothing", src="en", tgt="de", streaming=streaming)
        assert message.startswith("nobody/nothing[train]: ")


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
@pytest.mark.parametrize("streaming", [False, True])
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
def test_hub_names_the_file_that_cannot_be_read_and_why(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    content: str | bytes,
    streaming: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Case 5. `datasets` by itself says "An error occurred while generating the dataset"."""
    path = write(tmp_path / f"broken.{kind}", content)
    monkeypatch.setattr(logging.getLogger("datasets"), "propagate", True)
    message = fault("hub", tmp_path, dataset=kind, files=path.name, src="en", tgt="de", streaming=streaming)
    assert str(path) in message
    assert caplog.messages == []  # it logs, by itself, what it raises too
    assert "while generating the dataset" not in message


@pytest.mark.usefixtures("hub_cache")
def test_hub_reads_a_changed_file_anew(tmp_path: Path) -> None:
    for word in ("old", "new"):
        write(tmp_path / "t.csv", f"en,de\n{word},x\n")
        assert pairs(read("hub", tmp_path, dataset="csv", files="t.csv", src="en", tgt="de")) == [(word, "x")]
