"""WMT test sets: SGML pairs of files and single XML files, with one reference or several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmt.data.formats import FORMATS, Unit
from nmt.errors import DataError

SRC = """<srcset setid="newstest" srclang="any">
<doc sysid="src" docid="bbc.1" genre="news" origlang="en">
<p>
<seg id="1"> R&D costs < 5 &amp; &lt;b&gt; &not </seg>
<seg id="2">two</seg>
</p>
</doc>
<DOC docid='cnn' sysid="src">
<hl><SEG id=1>three</SEG></hl>
</DOC>
</srcset>
"""


def refset(name: str, *texts: str) -> str:
    """The documents in another order than in the source."""
    return (
        f'<refset setid="newstest" srclang="any" trglang="de">\n<doc sysid="{name}" docid="cnn">\n'
        f'<seg id="1">{texts[2]}</seg>\n</doc>\n<doc sysid="{name}" docid="bbc.1">\n'
        f'<seg id="1">{texts[0]}</seg>\n<seg id="2">{texts[1]}</seg>\n</doc>\n</refset>\n'
    )


XML = """<?xml version='1.0' encoding='utf-8'?>
<dataset id="newstest2021.en-de">
  <collection id="general">
  <doc origlang="en" id="d1">
    <src lang="en"><p><seg id="1">one &lt; two</seg>
      <seg id="2">two</seg></p></src>
    <ref lang="de" translator="A"><p><seg id="1">A eins</seg><seg id="2">A zwei</seg></p></ref>
    <ref lang="de" translator="B"><p><seg id="1">B eins</seg><seg id="2">B zwei</seg></p></ref>
    <hyp system="x" language="de"><p><seg id="1">wrong</seg><seg id="2">wrong</seg></p></hyp>
  </doc>
  <doc origlang="en" id="d2">
    <src lang="en"><p><seg id="1">three</seg></p></src>
    <ref lang="de" translator="B"><p><seg id="1">B drei</seg></p></ref>
    <ref lang="de" translator="A"><p><seg id="1">A drei</seg></p></ref>
  </doc>
  </collection>
</dataset>
"""


def read(root: Path, **options: Any) -> list[Unit]:
    return list(FORMATS["wmt"](root, **options).read())


def pairs(units: list[Unit]) -> list[tuple[str, ...]]:
    return [(unit.src, *unit.tgts) for unit in units]


def fault(root: Path, **options: Any) -> str:
    with pytest.raises(DataError) as error:
        read(root, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def sgml(tmp_path: Path) -> Path:
    (tmp_path / "src.sgm").write_text(SRC)
    (tmp_path / "ref.sgm").write_text(refset("ref", "eins", "zwei", "drei"))
    (tmp_path / "more.sgm").write_text(refset("ann", "a1", "a2", "a3") + refset("bob", "b1", "b2", "b3"))
    return tmp_path


def test_sgml_segments_are_matched_by_document_and_id_in_the_order_of_the_source(sgml: Path) -> None:
    units = read(sgml, src="src.sgm", tgt="ref.sgm")
    assert pairs(units) == [("R&D costs < 5 & <b> &not", "eins"), ("two", "zwei"), ("three", "drei")]
    assert [unit.where for unit in units] == [f"{sgml}/src.sgm:{line}" for line in (4, 5, 9)]


def test_sgml_references_may_be_in_one_file_or_several(sgml: Path) -> None:
    assert pairs(read(sgml, src="src.sgm", tgt="more.sgm"))[1] == ("two", "a2", "b2")
    assert pairs(read(sgml, src="src.sgm", tgt=["ref.sgm", "more.sgm"]))[1] == ("two", "zwei", "a2", "b2")
    assert pairs(read(sgml, src="src.sgm", tgt=["more.sgm", "ref.sgm"], refs=["ref", "bob"]))[1] == (
        *("two", "zwei", "b2"),
    )
    assert "by carl, but by: ann, bob" in fault(sgml, src="src.sgm", tgt="more.sgm", refs="carl")


def test_sgml_references_with_one_sysid_in_two_files_are_two(sgml: Path) -> None:
    (sgml / "ref2.sgm").write_text(refset("ref", "1", "2", "3"))
    assert pairs(read(sgml, src="src.sgm", tgt=["ref2.sgm", "ref.sgm"]))[1] == ("two", "2", "zwei")


def test_a_set_may_be_read_in_the_other_direction(sgml: Path) -> None:
    assert pairs(read(sgml, src="ref.sgm", tgt="src.sgm")) == [
        *(("drei", "three"), ("eins", "R&D costs < 5 & <b> &not"), ("zwei", "two")),
    ]


def test_source_and_references_in_one_file(sgml: Path) -> None:
    (sgml / "all.sgm").write_text(SRC + refset("ref", "eins", "zwei", "drei"))
    assert pairs(read(sgml, src="all.sgm", tgt="all.sgm"))[1:] == [("two", "zwei"), ("three", "drei")]


def test_missing_segments_are_named_with_their_document(sgml: Path) -> None:
    text = (sgml / "ref.sgm").read_text()
    (sgml / "ref.sgm").write_text(text.replace('<seg id="2">zwei</seg>', ""))
    message = fault(sgml, src="src.sgm", tgt="ref.sgm")
    assert f"{sgml}/src.sgm:5: document bbc.1, segment 2 has 0 of 1 references" in message
    message = fault(sgml, src="src.sgm", tgt=["ref.sgm", "more.sgm"])
    assert f"{sgml}/src.sgm:5: document bbc.1, segment 2 has 2 of 3 references" in message
    (sgml / "ref.sgm").write_text(text.replace("zwei</seg>", 'zwei</seg><seg id="3">more</seg>'))
    message = fault(sgml, src="src.sgm", tgt="ref.sgm")
    assert f"{sgml}/src.sgm: lacks document bbc.1, segment 3" in message


def test_files_without_segments_are_named(sgml: Path) -> None:
    (sgml / "empty.sgm").write_text("not a set")
    assert f"{sgml}/empty.sgm: has no <seg> of a reference" in fault(sgml, src="src.sgm", tgt="empty.sgm")
    assert f"{sgml}/empty.sgm: has no <seg> of a source" in fault(sgml, src="empty.sgm", tgt="ref.sgm")


def test_xml_has_its_references_by_translator(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(XML)
    corpus = FORMATS["wmt"](tmp_path, path="t.xml")
    units = list(corpus.read())
    assert pairs(units) == [
        ("one < two", "A eins", "B eins"),
        ("two", "A zwei", "B zwei"),
        ("three", "A drei", "B drei"),
    ]
    assert [unit.where for unit in units] == [f"{tmp_path}/t.xml:{line}" for line in (5, 6, 12)]
    assert corpus.inputs() == [tmp_path / "t.xml"]
    assert pairs(read(tmp_path, path="t.xml", refs="B"))[2] == ("three", "B drei")
    assert pairs(read(tmp_path, path="t.xml", refs=["B", "A"]))[0] == ("one < two", "B eins", "A eins")
    assert f"{tmp_path}/t.xml: no reference is by C, but by: A, B" in fault(tmp_path, path="t.xml", refs=["A", "C"])


def test_xml_with_an_incomplete_translator_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(
        XML.replace('<ref lang="de" translator="B"><p><seg id="1">B drei</seg></p></ref>', "")
    )
    message = fault(tmp_path, path="t.xml")
    assert "t.xml:12: document d2, segment 1 has 1 of 2 references" in message and "`refs`" in message
    assert len(read(tmp_path, path="t.xml", refs="A")) == 3


def test_xml_without_references_or_not_well_formed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text("<dataset><doc id='a'><src><seg id='1'>a</seg></src></doc></dataset>")
    assert "t.xml: has no <seg> of a reference" in fault(tmp_path, path="t.xml")
    (tmp_path / "t.xml").write_text(XML[:-20])
    assert "t.xml:16: is no well-formed XML" in fault(tmp_path, path="t.xml")


@pytest.mark.parametrize(
    "options", [{}, {"src": "a"}, {"tgt": "a"}, {"path": "a", "src": "b", "tgt": "c"}, {"path": "a", "tgt": "c"}]
)
def test_either_one_file_or_two_sides_must_be_given(tmp_path: Path, options: dict[str, str]) -> None:
    assert "either `path`" in fault(tmp_path, **options)
