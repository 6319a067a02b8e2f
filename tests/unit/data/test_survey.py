"""The first look at a corpus, chunk by chunk: nothing is lost between chunks, and every count has its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nmt.choice import Choice
from nmt.data import survey
from nmt.data.corpora import Corpus
from nmt.data.duplicates import KEY
from nmt.data.filters import Characters, Duplicates, Empty, Overlap, Same, TextFilter
from nmt.data.languages import Sides
from nmt.data.survey import COLUMNS, Chunk, Raw, Survey, Surveyed, chunks


def corpus(root: Path, src: list[str], tgt: list[str], *more: list[str], **options: Any) -> Corpus:
    names = []
    for number, lines in enumerate((src, tgt, *more)):
        names.append(f"f{number}")
        (root / names[-1]).write_bytes("".join(f"{line}\n" for line in lines).encode())
    tgts = names[1] if not more else names[1:]
    return Corpus.open(Choice("plain", {"src": "f0", "tgt": tgts, **options}), root)


def surveyed(
    of: Corpus, dropping: list[TextFilter] | None = None, noting: list[TextFilter] | None = None
) -> list[Surveyed]:
    work = Survey(dropping or [], noting or [], Duplicates(), Sides("en", "de"))
    return [work(chunk) for chunk in chunks(of, 3)]


def kept(found: list[Surveyed]) -> list[tuple[str, str, str]]:
    """Source, target and place of the pairs that passed."""
    return [
        (row["src"], row["tgt"], f"{result.names[row['file']]}:{row['line']}")
        for result in found
        for row in result.kept.to_pylist()
    ]


# --- chunks ---


def whole(of: Corpus, number: int) -> list[Chunk]:
    """Chunks as a worker makes them."""
    return [chunk.decoded() if isinstance(chunk, Raw) else chunk for chunk in chunks(of, number)]


@pytest.mark.parametrize("pairs", [10, 20, 1_000])
def test_chunks_hold_all_pairs_in_order_with_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pairs: int
) -> None:
    monkeypatch.setattr(survey, "PAIRS", pairs)
    src, tgt = [f"s{i}" for i in range(47)], [f"t{i}" for i in range(47)]
    found = whole(corpus(tmp_path, src, tgt), 5)
    assert [line for chunk in found for line in chunk.src] == src
    assert [line for chunk in found for line in chunk.tgt] == tgt
    places = [chunk.where(row) for chunk in found for row in range(len(chunk.src))]
    assert places == [f"{tmp_path}/f0:{line}" for line in range(1, 48)]
    assert {chunk.corpus for chunk in found} == {5}
    assert len(found) == -(-47 // pairs)
    assert all(len(chunk.src) <= pairs for chunk in found)


def test_long_lines_make_small_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 11: a corpus of books is not held in memory."""
    monkeypatch.setattr(survey, "PAIRS", 100)
    monkeypatch.setattr(survey, "CHARACTERS", 5_000)
    found = whole(corpus(tmp_path, ["x" * 1_000] * 95, ["y"] * 95), 0)
    assert [len(chunk.src) for chunk in found] == [10] * 9 + [5]


def test_files_of_a_corpus_keep_their_names(tmp_path: Path) -> None:
    for name, lines in (("1.en", "a\nb\n"), ("1.de", "x\ny\n"), ("2.en", "c\n"), ("2.de", "z\n")):
        (tmp_path / name).write_text(lines)
    several = Corpus.open(Choice("plain", {"src": "*.en", "tgt": "*.de"}), tmp_path)
    (chunk,) = whole(several, 0)
    assert [chunk.where(row) for row in range(3)] == [f"{tmp_path}/{place}" for place in ("1.en:1", "1.en:2", "2.en:1")]


def test_several_translations_are_several_pairs_of_one_place(tmp_path: Path) -> None:
    found = surveyed(corpus(tmp_path, ["a", "b"], ["x", "y"], ["1", "2"]))
    first, second = f"{tmp_path}/f0:1", f"{tmp_path}/f0:2"
    assert kept(found) == [("a", "x", first), ("a", "1", first), ("b", "y", second), ("b", "2", second)]
    assert found[0].tally.read == found[0].tally.kept == 4


def test_an_empty_corpus_has_no_chunks(tmp_path: Path) -> None:
    assert list(chunks(corpus(tmp_path, [], []), 0)) == []


# --- what is found ---


def test_lines_are_cleaned_before_they_are_filtered(tmp_path: Path) -> None:
    """Cases 1 to 4: a line that holds nothing but a NUL is empty."""
    found = surveyed(corpus(tmp_path, ["a\u2028b", "\0"], ["x\ufeff", "y"]), [Empty()])
    assert kept(found) == [("a b", "x", f"{tmp_path}/f0:1")]
    assert found[0].tally.dropped == {"source empty": 1}
    assert found[0].oddities.tree() == {
        "U+0000": {"lines": 1, "first": f"{tmp_path}/f0:2"},
        "U+2028": {"lines": 1, "first": f"{tmp_path}/f0:1"},
        "U+FEFF": {"lines": 1, "first": f"{tmp_path}/f0:1 (target)"},
    }


def test_the_first_filter_that_drops_a_pair_has_it_and_others_only_note(tmp_path: Path) -> None:
    src, tgt = ["a", "same", "", "held", "too long"], ["b", "same", "", "t", "c"]
    overlap = Overlap([("test.t", "held", "?"), ("test.t", "too long", "?")])
    (found,) = surveyed(corpus(tmp_path, src, tgt), [Empty(), Characters(max=5)], [overlap, Same()])
    where = f"{tmp_path}/f0"
    assert kept([found]) == [("a", "b", f"{where}:1"), ("same", "same", f"{where}:2"), ("held", "t", f"{where}:4")]
    assert found.tally.dropped == {"both sides empty": 1, "too long (limit 5 characters)": 1}
    assert found.tally.noted == {"source is in test.t": 1, "source equals target": 1}  # of those that were kept
    examples = {reason: [e.where for e in some] for reason, some in found.tally.examples.items()}
    assert examples == {
        "both sides empty": [f"{where}:3"],
        "too long (limit 5 characters)": [f"{where}:5"],
        "source is in test.t": [f"{where}:4"],
        "source equals target": [f"{where}:2"],
    }
    assert (found.tally.read, found.tally.kept) == (5, 3)


def test_a_prefix_comes_after_the_filters_and_before_the_search_for_duplicates(tmp_path: Path) -> None:
    """The same pair in two directions is no duplicate."""
    (plain,) = surveyed(corpus(tmp_path, ["ab"], ["x"]), [Characters(max=2)])
    (tagged,) = surveyed(corpus(tmp_path, ["ab"], ["x"], prefix="<2de> "), [Characters(max=2)])
    assert kept([tagged])[0][:2] == ("<2de> ab", "x")
    assert len(plain.keys) == len(tagged.keys) == KEY
    assert plain.keys != tagged.keys


def test_alignment_looks_at_all_pairs_and_words_at_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "LOOKED_AT", 4)
    (found,) = surveyed(corpus(tmp_path, ["a <b>"] * 9, ["a"] * 9), [Characters(max=1)])
    assert found.kept.schema == COLUMNS and len(found.kept) == 0 and found.keys == b""
    assert found.features.shape == (9, 4)  # dropped ones, too
    assert found.sides.pairs == found.markup.pairs == found.markup.marked == 4


def test_places_are_kept_where_files_begin_and_of_others_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report can say about where something is wrong."""
    monkeypatch.setattr(survey, "PLACED", 4)
    for name, count in (("1", 6), ("2", 1), ("3", 3)):
        for side in ("en", "de"):
            (tmp_path / f"{name}.{side}").write_text("line\n" * count)
    (found,) = surveyed(Corpus.open(Choice("plain", {"src": "*.en", "tgt": "*.de"}), tmp_path))
    expected = [(0, "1.en", 1), (4, "1.en", 5), (6, "2.en", 1), (7, "3.en", 1), (8, "3.en", 2)]
    assert found.places == [(row, f"{tmp_path}/{name}", line) for row, name, line in expected]
