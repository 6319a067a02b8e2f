"""Columns of tables: what is translated, and what comes through as it is."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.rows import read_rows


def upper(path: Path, column: str | None = None) -> list[str]:
    return [row.line(row.text.upper()) for row in read_rows(str(path), column)]


def file(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_plain_lines_are_whole(tmp_path: Path) -> None:
    assert upper(file(tmp_path / "in.jsonl", "a\tb", "", "{")) == ["A\tB", "", "{"]


def test_a_column_by_number_is_followed_by_its_translation(tmp_path: Path) -> None:
    """Without a header; quotes are text, and a cell may be empty."""
    path = file(tmp_path / "in.tsv", '1\t"a" b\tx', "2\t\tx", "3\tc \t")
    assert upper(path, "1") == ['1\t"a" b\tx\t"A" B', "2\t\tx\t", "3\tc \t\tC "]


def test_a_column_by_name_leaves_the_header_as_a_line(tmp_path: Path) -> None:
    path = file(tmp_path / "in.tsv", "id\ttext", "7\ta", "8\tb")
    assert upper(path, "text") == ["id\ttext\ttranslation", "7\ta\tA", "8\tb\tB"]


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz"])
def test_a_field_of_json_is_joined_by_its_translation(tmp_path: Path, name: str) -> None:
    """All else stays as it is written, to the digit and the space."""
    lines = ['{"n": 1.50, "doc": {"title": "a\\nü"} } ', '{"doc":{"title":""},"x":[1e400]}']
    (tmp_path / name).write_bytes(
        (gzip.compress if name.endswith("gz") else bytes)("".join(f"{line}\n" for line in lines).encode())
    )
    first, second = upper(tmp_path / name, "doc.title")
    assert first == '{"n": 1.50, "doc": {"title": "a\\nü"} , "translation": "A\\nÜ"}'
    assert second == '{"doc":{"title":""},"x":[1e400], "translation": ""}'
    assert json.loads(first)["translation"] == "A\nÜ"


def test_half_a_character_is_none(tmp_path: Path) -> None:
    [row] = read_rows(str(file(tmp_path / "in.jsonl", '{"t": "a\\ud83d \\ud83d\\ude00"}')), "t")
    assert row.text == "a\ufffd \U0001f600"


def test_stdin_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\tb\nc\n")))
    with pytest.raises(DataError, match=r"^stdin:2: has 1 column"):
        list(read_rows("-", "0"))


@pytest.mark.parametrize(
    ("name", "lines", "column", "message"),
    [
        ("in.tsv", ["a\tb", "c"], "0", "in.tsv:2: has 1 column, expected 2"),
        ("in.tsv", ["a\tb", ""], "0", "in.tsv:2: has 1 column, expected 2"),
        ("in.tsv", ["a\tb", "c\td\te"], "0", "in.tsv:2: has 3 columns, expected 2"),
        ("in.tsv", ["a\tb"], "2", "in.tsv:1: has 2 columns, expected 3"),
        ("in.tsv", ["id\ttext", "7\ta"], "txt", "in.tsv:1: has no column `txt` (did you mean `text`"),
        ("in.jsonl", ['{"t": "a"}', "[1,]"], "t", "in.jsonl:2: is not JSON: "),
        ("in.jsonl", ['{"t": "a"}', "hello"], "t", "in.jsonl:2: is not JSON: Expecting value at column 1; expected"),
        ("in.jsonl", ['{"t": "a"}', " "], "t", "in.jsonl:2: is blank; expected a JSON object on each line"),
        ("in.jsonl", ["[1]"], "t", "in.jsonl:1: has no text in the field `t`"),
        ("in.jsonl", ['{"t": 3}'], "t", "in.jsonl:1: has no text in the field `t`"),
        ("in.jsonl", ['{"t": {"u": "a"}}'], "t.v", "in.jsonl:1: has no text in the field `t.v`"),
        ("in.jsonl", ['{"t": "a", "translation": ""}'], "t", "in.jsonl:1: has a field `translation` already"),
    ],
)
def test_a_malformed_row_is_named(tmp_path: Path, name: str, lines: list[str], column: str, message: str) -> None:
    with pytest.raises(DataError, match=re.escape(message)):
        upper(file(tmp_path / name, *lines), column)
