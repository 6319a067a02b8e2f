"""Translation memories: TMX files of any version."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from nmt.data.formats.markup import events
from nmt.data.formats.paths import Names, expand, some, title
from nmt.data.formats.unit import Unit
from nmt.errors import DataError

CODES = {"bpt", "ept", "it", "ph", "ut"}  # elements that hold the markup of the translated document


class Tmx:
    """`src` and `tgt` are languages: en means en-US or EN_gb too, where a unit has no plain en. `tags` says what
    becomes of inline codes: drop them, or keep the markup that they hold. A unit with several variants of a language
    gives a pair for each source, with several translations, or only its first ones. `path` may have wildcards or be a
    list.
    """

    def __init__(
        self,
        root: Path,
        *,
        path: Names,
        src: str,
        tgt: str,
        tags: Literal["drop", "keep"] = "drop",
        variants: Literal["all", "first"] = "all",
    ) -> None:
        self.root, self.path = root, path
        self.src, self.tgt = src, tgt
        self.hidden = CODES if tags == "drop" else set()
        self.limit = 1 if variants == "first" else None
        self.name = title(path)

    def read(self) -> Iterator[Unit]:
        languages: dict[str, None] = {}  # a set in order
        found = False
        for file in self.inputs():
            for line, texts in _read(file, self.hidden):
                languages.update(dict.fromkeys(language for language, _ in texts))
                srcs = _in_language(texts, self.src)[: self.limit]
                tgts = tuple(_in_language(texts, self.tgt)[: self.limit])
                for src in srcs if tgts else []:
                    found = True
                    yield Unit(src, tgts, str(file), line)
        if not found:
            raise DataError(
                f"{some(self.inputs())}: no unit has both `{self.src}` and `{self.tgt}`; "
                f"the languages there are: {', '.join(languages) or 'none'}"
            )

    def inputs(self) -> list[Path]:
        return expand(self.root, self.path)


Texts = list[tuple[str, str]]  # language, text


def _in_language(texts: Texts, wanted: str) -> list[str]:
    """Those in just this language or else in its variants by region."""
    wanted = _normal(wanted)
    exact = [text for language, text in texts if _normal(language) == wanted]
    return exact or [text for language, text in texts if _normal(language).startswith(f"{wanted}-")]


def _normal(language: str) -> str:
    return language.lower().replace("_", "-")


def _read(file: Path, hidden: set[str]) -> Iterator[tuple[int, Texts]]:
    """The line of each translation unit, and its texts without what is inside `hidden` elements."""
    line, language, texts = 0, "", Texts()
    pieces: list[str] = []  # of the text since a <seg> began or ended
    depth = 0  # of hidden elements
    for what, value, attributes, number in events(file):
        if what == "text":
            if not depth:
                pieces.append(value)
        elif value in hidden:
            depth += 1 if what == "start" else -1
        elif value == "seg":
            if what == "end":
                texts.append((language, "".join(pieces)))
            pieces.clear()
        elif value == "tuv" and what == "start":
            language = attributes.get("xml:lang") or attributes.get("lang", "")  # as it was called before TMX 1.4
        elif value == "tu" and what == "start":
            line, texts = number, Texts()
        elif value == "tu":
            yield line, texts
