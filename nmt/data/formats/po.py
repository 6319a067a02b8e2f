"""Translations of software and its manuals: gettext PO files, read by `polib`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polib

from nmt.data.formats.paths import Names, expand, title
from nmt.data.formats.unit import Unit
from nmt.errors import DataError
from nmt.files import open_bytes

STRING = re.compile(r'\s*(msg|")')
WHOLE_STRING = re.compile(r'\s*(msg\w+(\[\d\])?\s*)?"([^"\\]|\\.)*"\s*')  # polib takes the quotes on trust


class Po:
    """Each msgid with its msgstr, the forms of a plural as pairs of their own; `path` may have wildcards or be a list.
    Entries that are untranslated, obsolete or, without `fuzzy: true`, fuzzy are left out.
    """

    def __init__(self, root: Path, *, path: Names, fuzzy: bool = False) -> None:
        self.root, self.path = root, path
        self.fuzzy = fuzzy
        self.name = title(path)

    def read(self) -> Iterator[Unit]:
        for file in self.inputs():
            for entry in _entries(file):
                if entry.obsolete or ("fuzzy" in entry.flags and not self.fuzzy):
                    continue
                for src, tgt in _pairs(entry):
                    if src and tgt:
                        yield Unit(src, (tgt,), str(file), entry.linenum or 1)  # polib says 0 of the first entry

    def inputs(self) -> list[Path]:
        return expand(self.root, self.path)


def _pairs(entry: polib.POEntry) -> list[tuple[str, str]]:
    if not entry.msgid_plural:
        return [(entry.msgid, entry.msgstr)]
    forms = [form for _, form in sorted(entry.msgstr_plural.items())]
    if len(forms) == 1:  # the language has no plural: its form goes with any number, as the source's plural nearly does
        return [(entry.msgid_plural, forms[0])]
    return list(zip([entry.msgid] + [entry.msgid_plural] * (len(forms) - 1), forms, strict=True))


class _Text(str):
    """Content for polib, which splits what is no file by `splitlines`; but U+2028 and its like end no line."""

    def splitlines(self, keepends: bool = False) -> list[str]:
        return self.split("\n")


def _entries(file: Path) -> polib.POFile:
    with open_bytes(file) as stream:
        content = stream.read()
    charset = polib.detect_encoding(content)
    try:
        text = content.decode(charset)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{file}:{line}: byte 0x{content[error.start]:02x} is not {charset}, the charset of its header"
        ) from None
    for number, row in enumerate(text.split("\n"), 1):
        if STRING.match(row) and not WHOLE_STRING.fullmatch(row):
            raise DataError(f"{file}:{number}: has no text in double quotes, as a PO file should have here")
    try:
        return polib.pofile(_Text(text + "\n"))
    except OSError as error:  # what polib raises for bad syntax, with the line in its message
        place = re.search(r"\(line (\d+)\)", str(error))
        where = f"{file}:{place[1]}" if place else str(file)
        raise DataError(f"{where}: is not written as a PO file should be") from None
