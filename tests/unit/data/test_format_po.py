"""PO: which entries become pairs, plurals, charsets, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from nmt.data.formats import FORMATS, Unit
from nmt.errors import DataError

HEADER = 'msgid ""\nmsgstr ""\n"Project: x\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def read(root: Path, content: str | bytes, **options: Any) -> list[Unit]:
    (root / "x.po").write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(FORMATS["po"](root, path="x.po", **options).read())


def pairs(units: list[Unit]) -> list[tuple[str, ...]]:
    return [(unit.src, *unit.tgts) for unit in units]


def fault(root: Path, content: str | bytes) -> str:
    with pytest.raises(DataError) as error:
        read(root, content)
    assert "\n" not in str(error.value)
    return str(error.value)


ENTRIES = """msgid "open"
msgstr "öffnen"

#. a comment
#: a.c:1 b.c:2
msgctxt "menu"
msgid "open"
msgstr "Öffnen"

msgctxt "door"
msgid "open"
msgstr "offen"

#, fuzzy, c-format
msgid "guessed %d"
msgstr "geraten %d"

#~ msgid "obsolete"
#~ msgstr "veraltet"

msgid "untranslated"
msgstr ""

msgid ""
"two "
"lines\\n"
msgstr "zwei\\t\\"Zeilen\\"\\n"
"""


def test_translated_entries_become_pairs(tmp_path: Path) -> None:
    units = read(tmp_path, HEADER + ENTRIES)
    assert pairs(units) == [
        ("open", "öffnen"),
        ("open", "Öffnen"),
        ("open", "offen"),
        ("two lines\n", 'zwei\t"Zeilen"\n'),
    ]
    assert [unit.where for unit in units] == [f"{tmp_path}/x.po:{line}" for line in (6, 9, 15, 29)]


def test_fuzzy_entries_are_read_when_asked_for(tmp_path: Path) -> None:
    assert ("guessed %d", "geraten %d") in pairs(read(tmp_path, HEADER + ENTRIES, fuzzy=True))
    assert len(read(tmp_path, HEADER + ENTRIES, fuzzy=True)) == 5


def test_without_a_header_the_first_entry_is_text(tmp_path: Path) -> None:
    assert read(tmp_path, 'msgid "a"\nmsgstr "b"\n') == [Unit("a", ("b",), f"{tmp_path}/x.po", 1)]
    assert read(tmp_path, HEADER) == read(tmp_path, "") == []


@pytest.mark.parametrize(
    ("forms", "expected"),
    [
        (["Datei", "Dateien"], [("%d file", "Datei"), ("%d files", "Dateien")]),
        (["文件"], [("%d files", "文件")]),
        (["plik", "pliki", "plików"], [("%d file", "plik"), ("%d files", "pliki"), ("%d files", "plików")]),
        (["Datei", ""], [("%d file", "Datei")]),
    ],
)
def test_each_form_of_a_plural_goes_with_its_source(
    tmp_path: Path, forms: list[str], expected: list[tuple[str, str]]
) -> None:
    entry = 'msgid "%d file"\nmsgid_plural "%d files"\n'
    entry += "".join(f'msgstr[{number}] "{form}"\n' for number, form in enumerate(forms))
    assert pairs(read(tmp_path, HEADER + entry)) == expected


@pytest.mark.parametrize("odd", ["\u2028", "\u0085", "\x0c", "\x1c"])
def test_only_a_line_feed_ends_a_line(tmp_path: Path, odd: str) -> None:
    """Case 1."""
    assert pairs(read(tmp_path, f'{HEADER}msgid "a{odd}b"\nmsgstr "c"\n')) == [(f"a{odd}b", "c")]


def test_carriage_returns_byte_order_marks_and_packed_files(tmp_path: Path) -> None:
    """Cases 2 and 3."""
    expected = pairs(read(tmp_path, HEADER + ENTRIES))
    content = (HEADER + ENTRIES).encode()
    assert pairs(read(tmp_path, content.replace(b"\n", b"\r\n"))) == expected
    assert pairs(read(tmp_path, b"\xef\xbb\xbf" + content)) == expected
    assert pairs(read(tmp_path, gzip.compress(content))) == expected


def test_the_charset_is_that_of_the_header(tmp_path: Path) -> None:
    latin = HEADER.replace("UTF-8", "ISO-8859-1") + 'msgid "a"\nmsgstr "é"\n'
    assert pairs(read(tmp_path, latin.encode("latin1"))) == [("a", "é")]
    template = HEADER.replace("UTF-8", "CHARSET") + 'msgid "a"\nmsgstr "é"\n'
    assert pairs(read(tmp_path, template)) == [("a", "é")]


def test_bytes_of_another_charset_are_named_with_their_line(tmp_path: Path) -> None:
    """Case 5."""
    message = fault(tmp_path, (HEADER + 'msgid "a"\nmsgstr "é"\n').encode("latin1"))
    assert f"{tmp_path}/x.po:7: byte 0xe9 is not UTF-8" in message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("This is no PO file.\n", 1),
        ('msgid "a"\nmsgstr "b"c"\n', 2),
        ('msgid "a"\nmsgstr b\n', 2),
        ('msgid "a"\nmsgstr "b', 2),
        ('msgid "a"\nmsgstr "b"\n"c\n', 3),
        ('msgid "a"\nmsgstr "b"\n\nmsgstr "c"\n', 4),
        ('msgid "a"\nmsgid_plural "as"\nmsgstr[x] "b"\n', 3),
    ],
)
def test_what_is_no_po_is_named_with_its_line(tmp_path: Path, content: str, line: int) -> None:
    assert f"{tmp_path}/x.po:{line}: " in fault(tmp_path, content)


def test_content_that_looks_like_a_path_is_content(tmp_path: Path) -> None:
    (tmp_path / "other.po").write_text(HEADER + ENTRIES)
    assert "x.po:1: " in fault(tmp_path, f"{tmp_path}/other.po")


def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.po").write_text(f'msgid "{name}"\nmsgstr "{name.upper()}"\n')
    assert pairs(list(FORMATS["po"](tmp_path, path="[ab].po").read())) == [("a", "A"), ("b", "B")]
    assert pairs(list(FORMATS["po"](tmp_path, path=["c.po", "a.po"]).read())) == [("c", "C"), ("a", "A")]
