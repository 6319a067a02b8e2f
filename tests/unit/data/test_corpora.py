"""A corpus of the config: what any corpus may be told, whatever its format."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from nmt.choice import Choice, problems
from nmt.data.corpora import UNPACKED, Corpus, CorpusOptions
from nmt.data.formats import FORMATS, Unit
from nmt.errors import DataError

SRC, TGT, OTHER = ["a", "b", "c"], ["x", "y", "z"], ["1", "2", "3"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, lines in (("a.en", SRC), ("a.de", TGT), ("b.de", OTHER)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def opened(root: Path, **options: Any) -> Corpus:
    choice = Choice("plain", {"src": "a.en", "tgt": "a.de", **options})
    assert problems(FORMATS, choice, CorpusOptions) == []
    return Corpus.open(choice, root)


def texts(corpus: Corpus) -> list[tuple[str, tuple[str, ...]]]:
    return [(unit.src, unit.tgts) for unit in corpus.read()]


def test_a_corpus_is_read_as_its_format_reads_it(root: Path) -> None:
    corpus = opened(root)
    assert list(corpus.read()) == [
        Unit(s, (t,), str(root / "a.en"), i) for i, (s, t) in enumerate(zip("abc", "xyz", strict=True), 1)
    ]
    assert corpus.inputs() == [root / "a.en", root / "a.de"]
    assert list(corpus.read()) == list(corpus.read())


def test_its_label_is_what_the_user_or_else_the_format_calls_it(root: Path) -> None:
    assert opened(root, label="captions").label == "captions"
    assert opened(root).label == opened(root).format.name != ""
    assert Corpus.open(Choice("demo", {}), root).label == "demo train"


def test_only_the_first_units_are_read(root: Path) -> None:
    assert [texts(opened(root, limit=n)) for n in (1, 2)] == [[("a", ("x",))], [("a", ("x",)), ("b", ("y",))]]
    assert len(texts(opened(root, limit=100))) == len(texts(opened(root, limit=None))) == 3


def test_what_comes_after_the_limit_is_not_even_looked_at(root: Path) -> None:
    """A sample of a huge corpus is read at once."""
    (root / "a.de").write_bytes(b"x\ny\n\xff\n")
    assert len(texts(opened(root, limit=2))) == 2
    with pytest.raises(DataError, match="is not UTF-8"):
        texts(opened(root))


def test_reversed_each_translation_is_a_source(root: Path) -> None:
    assert texts(opened(root, reverse=True)) == [("x", ("a",)), ("y", ("b",)), ("z", ("c",))]
    several = opened(root, tgt=["a.de", "b.de"], reverse=True, limit=2)
    assert texts(several) == [("x", ("a",)), ("1", ("a",)), ("y", ("b",)), ("2", ("b",))]  # limit: units
    assert [unit.where for unit in several.read()] == [f"{root}/a.en:{line}" for line in (1, 1, 2, 2)]


def test_a_prefix_is_for_the_model_to_see_not_for_the_text(root: Path) -> None:
    corpus = opened(root, prefix="<2de> ")
    assert texts(corpus)[0] == ("a", ("x",))
    assert [unit.src for unit in corpus.with_prefix()] == ["<2de> a", "<2de> b", "<2de> c"]
    assert opened(root, prefix="<2en> ", reverse=True).with_prefix()[0].src == "<2en> x"


@pytest.mark.parametrize(
    ("prefix", "tag"),
    [("<2de> ", "<2de>"), (" <BT>", "<BT>"), ("", None), ("  ", None), ("translate to German: ", None)],
)
def test_a_prefix_of_one_word_is_a_tag(root: Path, prefix: str, tag: str | None) -> None:
    assert opened(root, prefix=prefix).tag == tag


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": 0}, "`weight` of `plain` must be a number from 0.001 to 1000"),
        ({"weight": -1.0}, "`weight` of `plain` must be a number from 0.001 to 1000"),
        ({"limit": 0}, "`limit` of `plain` must be an integer >= 1 or null"),
        ({"prefix": 3}, "`prefix` of `plain` must be text"),
        ({"reverse": "yes"}, "`reverse` of `plain` must be true or false"),
        ({"wieght": 2}, "did you mean `weight`?"),
    ],
)
def test_a_wrong_option_is_told(options: dict[str, Any], message: str) -> None:
    ((_, sentence),) = problems(FORMATS, Choice("plain", {"src": "a", "tgt": "b", **options}), CorpusOptions)
    assert message in sentence


# --- files ---


def test_files_are_looked_for_before_any_work(root: Path) -> None:
    opened(root).check()
    with pytest.raises(DataError, match=r"no.en: no such file"):
        opened(root, src="no.en").check()
    with pytest.raises(DataError, match=r"is a directory"):
        opened(root, src=".").check()


def test_a_pipe_cannot_be_read_twice(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(DataError, match=r"pipe: must be a file on disk, since it is read more than once"):
        opened(root, src="pipe").check()


def test_a_packed_file_counts_for_more_than_its_bytes(root: Path) -> None:
    assert opened(root).size() == 12
    packed = gzip.compress(b"a\nb\nc\n")
    (root / "a.en").write_bytes(packed)
    assert opened(root).size() == UNPACKED * len(packed) + 6


def test_the_number_of_units_is_guessed_from_the_first_ones(root: Path) -> None:
    assert opened(root).estimate() == 3  # few are counted
    for name in ("a.en", "a.de"):
        (root / name).write_text("one two three\n" * 5_000)
    assert opened(root).estimate() == 5_000
    assert opened(root, limit=2_000).estimate() == 2_000
    assert Corpus.open(Choice("demo", {}), root).estimate() is None


def test_columns_that_are_not_read_are_named(root: Path) -> None:
    (root / "p.tsv").write_text("a\tx\tCC-BY\n")
    tsv = Corpus.open(Choice("tsv", {"path": "p.tsv"}), root)
    assert tsv.unused() == f"{root}/p.tsv has 3 columns; not used: 2 ('CC-BY')"
    assert opened(root).unused() == ""
