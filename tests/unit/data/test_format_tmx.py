"""TMX: which variants of a unit become pairs, what inline tags become, and what is refused."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from nmt.data.formats import FORMATS, Unit
from nmt.errors import DataError

DOCTYPE = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'


def unit(*variants: tuple[str, str], attribute: str = "xml:lang") -> str:
    texts = "".join(f'  <tuv {attribute}="{language}"><seg>{text}</seg></tuv>\n' for language, text in variants)
    return f"<tu><note>not text</note>\n{texts}</tu>\n"


def memory(*units: str) -> str:
    return f"<tmx>\n<header srclang='en'><prop>no text</prop></header>\n<body>\n{''.join(units)}</body></tmx>"


def read(root: Path, content: str | bytes, **options: Any) -> list[Unit]:
    path = root / "m.tmx"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(FORMATS["tmx"](root, path="m.tmx", **{"src": "en", "tgt": "de", **options}).read())


def pairs(units: list[Unit]) -> list[tuple[str, ...]]:
    return [(unit.src, *unit.tgts) for unit in units]


def fault(root: Path, content: str | bytes, **options: Any) -> str:
    with pytest.raises(DataError) as error:
        read(root, content, **options)
    assert str(root / "m.tmx") in str(error.value) and "\n" not in str(error.value)
    return str(error.value)


def test_units_with_both_languages_become_pairs_with_their_line(tmp_path: Path) -> None:
    content = memory(
        unit(("en", "one &amp; only"), ("de", "eins")),
        unit(("en", "no German"), ("fr", "non")),
        unit(("de", "zwei\n Zeilen\u2028"), ("en", "two")),
    )
    units = read(tmp_path, content)
    assert pairs(units) == [("one & only", "eins"), ("two", "zwei\n Zeilen\u2028")]
    assert [unit.where for unit in units] == [f"{tmp_path}/m.tmx:4", f"{tmp_path}/m.tmx:12"]


@pytest.mark.parametrize("attribute", ["xml:lang", "lang"])
@pytest.mark.parametrize("language", ["en", "EN", "en-US", "en_GB", "EN-us", "en-Latn-US"])
def test_a_language_means_its_variants_by_region(tmp_path: Path, language: str, attribute: str) -> None:
    content = memory(unit((language, "one"), ("eng", "no"), ("de-AT", "eins"), attribute=attribute))
    assert pairs(read(tmp_path, content)) == [("one", "eins")]
    assert pairs(read(tmp_path, content, tgt="DE_at")) == [("one", "eins")]


def test_a_region_that_was_asked_for_is_no_other(tmp_path: Path) -> None:
    content = memory(unit(("en", "one"), ("pt-BR", "um"), ("pt-PT", "hum")))
    assert pairs(read(tmp_path, content, tgt="pt-PT")) == [("one", "hum")]
    assert "`de-CH`; the languages there are: en, pt-BR, pt-PT" in fault(tmp_path, content, tgt="de-CH")


def test_the_plain_language_is_preferred_to_its_regions(tmp_path: Path) -> None:
    content = memory(unit(("en-GB", "colour"), ("en", "color"), ("de", "Farbe")))
    assert pairs(read(tmp_path, content)) == [("color", "Farbe")]


def test_several_variants_are_several_pairs_and_references(tmp_path: Path) -> None:
    content = memory(unit(("en-GB", "colour"), ("en-US", "color"), ("de", "Farbe"), ("de", "Kolorit")))
    assert pairs(read(tmp_path, content)) == [("colour", "Farbe", "Kolorit"), ("color", "Farbe", "Kolorit")]
    assert pairs(read(tmp_path, content, variants="first")) == [("colour", "Farbe")]


TAGGED = (
    'a <bpt i="1">&lt;b x="<sub>t</sub>"&gt;</bpt>bold<ept i="1">&lt;/b&gt;</ept> '
    '<hi type="x">high <ph>{0<sub>a<ph>b</ph></sub>}</ph></hi><it pos="begin">[i]</it><ut>u</ut> z'
)


def test_inline_codes_are_dropped_or_kept_as_they_are_written(tmp_path: Path) -> None:
    content = memory(unit(("en", TAGGED), ("de", "x")))
    assert read(tmp_path, content)[0].src == "a bold high  z"
    assert read(tmp_path, content, tags="keep")[0].src == 'a <b x="t">bold</b> high {0ab}[i]u z'


def test_no_unit_with_both_languages_is_an_error_that_says_what_there_is(tmp_path: Path) -> None:
    content = memory(unit(("en", "one"), ("fr", "un")), unit(("de", "eins"), ("fr", "un")))
    assert "no unit has both `en` and `de`; the languages there are: en, fr, de" in fault(tmp_path, content)
    assert "the languages there are: none" in fault(tmp_path, memory())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    content = f'<?xml version="1.0" encoding="{declared}"?>\n' + memory(unit(("en", "a"), ("de", "ü")))
    assert pairs(read(tmp_path, content.encode(encoding))) == [("a", "ü")]
    assert pairs(read(tmp_path, gzip.compress(content.encode(encoding)))) == [("a", "ü")]


@pytest.mark.parametrize("encoding", ["gb2312", "nonsense"])
def test_an_encoding_that_cannot_be_read_is_said(tmp_path: Path, encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?>\n' + memory(unit(("en", "a"), ("de", "b")))
    assert "convert the file to UTF-8" in fault(tmp_path, content)


def test_a_doctype_is_not_fetched_and_its_entities_are_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "tmx14.dtd").write_text('<!ENTITY nbsp "fetched">')
    assert pairs(read(tmp_path, DOCTYPE + memory(unit(("en", "a"), ("de", "b"))))) == [("a", "b")]
    message = fault(tmp_path, DOCTYPE + memory(unit(("en", "a&nbsp;b"), ("de", "b"))))
    assert f"{tmp_path}/m.tmx:7: the entity &nbsp; is not defined" in message
    (tmp_path / "secret").write_text("secret")
    outside = f'<!DOCTYPE tmx [<!ENTITY x SYSTEM "{tmp_path}/secret">]>\n'
    assert "m.tmx:6: the entity" in fault(tmp_path, outside + memory(unit(("en", "&x;"), ("de", "b"))))


def test_an_entity_of_the_file_is_its_text(tmp_path: Path) -> None:
    content = '<!DOCTYPE tmx [<!ENTITY x "text">]>\n' + memory(unit(("en", "&x;&#x732b;"), ("de", "b")))
    assert pairs(read(tmp_path, content)) == [("text猫", "b")]


def test_entities_of_entities_of_entities_do_not_blow_up(tmp_path: Path) -> None:
    bombs = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    content = f'<!DOCTYPE tmx [<!ENTITY a0 "boom">{bombs}]>' + memory(unit(("en", "&a11;"), ("de", "b")))
    assert "amplification" in fault(tmp_path, content)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (memory(unit(("en", "a<b>c"), ("de", "x"))), 5),
        (memory(unit(("en", "a & b"), ("de", "x"))), 5),
        (memory(unit(("en", "a"), ("de", "x")))[:-10], 8),
        (memory(unit(("en", "a"), ("de", "X"))).encode().replace(b"X", b"\xe9"), 6),
        ("", 1),
        ("no XML at all", 1),
    ],
    ids=["tags", "ampersand", "cut", "latin1", "empty", "text"],
)
def test_what_is_no_xml_is_named_with_its_line(tmp_path: Path, content: str | bytes, line: int) -> None:
    """Case 5."""
    assert f"{tmp_path}/m.tmx:{line}: " in fault(tmp_path, content)


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 12_000):
        units = [unit(("en", f"text number {n}"), ("de", f"Text Nummer {n}")) for n in range(count)]
        (tmp_path / "m.tmx").write_text(memory(*units))
        tracemalloc.start()
        try:
            assert sum(1 for _ in FORMATS["tmx"](tmp_path, path="m.tmx", src="en", tgt="de").read()) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_several_files_are_one_corpus(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.tmx").write_text(memory(unit(("en", name), ("de", name.upper()))))
    (tmp_path / "c.tmx").write_text(memory(unit(("en", "c"), ("fr", "C"))))
    assert pairs(list(FORMATS["tmx"](tmp_path, path="*.tmx", src="en", tgt="de").read())) == [("a", "A"), ("b", "B")]
