"""Test sets as the WMT workshops publish them: SGML files until 2020, one XML file since then."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nmt.data.formats.markup import Event, events
from nmt.data.formats.paths import Names, expand, listed, locate, some
from nmt.data.formats.unit import Unit
from nmt.errors import DataError
from nmt.files import read_lines

KINDS = {"srcset": "src", "src": "src", "refset": "ref", "ref": "ref", "tstset": "hyp", "hyp": "hyp"}
TAG = re.compile(r"<(/?)(srcset|refset|tstset|doc|seg)\b([^<>]*)>", re.IGNORECASE)
ATTRIBUTE = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))""")
ENTITY = re.compile(r"&(amp|lt|gt|quot|apos|#\d+|#x[0-9a-fA-F]+);")

Key = tuple[str, str]  # the ids of a document and of a segment in it


class Wmt:
    """Either `path`, an XML file with source and references, or `src` and `tgt`, SGML files (a list of `tgt` gives
    several references). `refs` chooses some of the references: A or [A, B], their translators or, in SGML, sysids.
    """

    def __init__(
        self,
        root: Path,
        *,
        path: str | None = None,
        src: str | None = None,
        tgt: Names | None = None,
        refs: Names = "all",
    ) -> None:
        if (path is None) == (src is None) or (src is None) != (tgt is None):
            raise DataError("a wmt corpus needs either `path`, an XML file, or `src` and `tgt`, SGML files")
        self.root = root
        self.events = _sgml_events if path is None else events
        self.src, self.tgt = src or path or "", tgt or path or ""
        self.refs = None if refs == "all" else listed(refs)
        self.name = Path(self.src).name

    def read(self) -> Iterator[Unit]:
        src_file = locate(self.root, self.src)
        references: dict[Key, list[str]] = defaultdict(list)
        for reference in self._references():
            references[reference.key].append(reference.text)
        expected = max(map(len, references.values()))
        for segment in self._segments("src", src_file):
            tgts = tuple(references.pop(segment.key, ()))
            if len(tgts) != expected:
                raise DataError(
                    f"{src_file}:{segment.line}: document {segment.key[0]}, segment {segment.key[1]} "
                    f"has {len(tgts)} of {expected} references; choose some that are complete by `refs`"
                )
            yield Unit(segment.text, tgts, str(src_file), segment.line)
        for document, number in references:
            raise DataError(f"{src_file}: lacks document {document}, segment {number}, which a reference translates")

    def inputs(self) -> list[Path]:
        return list(dict.fromkeys([locate(self.root, self.src), *expand(self.root, self.tgt)]))

    def _references(self) -> list[Segment]:
        """By translator, in the order of `refs` or else of the files."""
        files = expand(self.root, self.tgt)
        found = [segment for file in files for segment in self._segments("ref", file)]
        names = list(dict.fromkeys(segment.name for segment in found))
        wanted = self.refs or names
        if missing := [name for name in wanted if name not in names]:
            raise DataError(f"{some(files)}: no reference is by {missing[0]}, but by: {', '.join(names)}")
        return sorted((s for s in found if s.name in wanted), key=lambda s: wanted.index(s.name))

    def _segments(self, kind: str, file: Path) -> list[Segment]:
        """Those of a kind; but a set that SGML calls a reference will do as a source, and the other way round."""
        segments = list(_segments(self.events(file)))
        found = [s for s in segments if s.kind == kind] or (segments if self.events is _sgml_events else [])
        if not found:
            raise DataError(f"{file}: has no <seg> of a {'source' if kind == 'src' else 'reference'}")
        return found


class Segment(NamedTuple):
    kind: str  # src, ref or hyp
    name: str  # of the translator
    key: Key
    text: str
    line: int


def _segments(found: Iterable[Event]) -> Iterator[Segment]:
    kind = name = translator = document = number = ""
    pieces: list[str] = []  # of the text since the last tag
    line = 0
    for what, value, attributes, at in found:
        if what == "text":
            pieces.append(value)
        elif what == "start" and value in KINDS:
            kind, translator = KINDS[value], attributes.get("translator") or attributes.get("sysid", "")
            name = translator
        elif what == "start" and value == "doc":
            document = attributes.get("docid") or attributes.get("id", "")
            name = attributes.get("sysid") or translator
        elif what == "start" and value == "seg":
            number, line = attributes.get("id", ""), at
            pieces.clear()
        elif value == "seg":
            yield Segment(kind, name, (document, number), "".join(pieces).strip(), line)


def _sgml_events(file: Path) -> Iterator[Event]:
    """Only the tags that matter are tags: this SGML has bare & and < in its text."""
    content = "\n".join(read_lines(file))
    line, end = 1, 0
    for tag in TAG.finditer(content):
        text = content[end : tag.start()]
        yield "text", ENTITY.sub(lambda entity: html.unescape(entity[0]), text), {}, 0
        line += text.count("\n")
        attributes = {name.lower(): "".join(values) for name, *values in ATTRIBUTE.findall(tag[3])}
        yield "end" if tag[1] else "start", tag[2].lower(), attributes, line
        line += tag[0].count("\n")
        end = tag.end()
