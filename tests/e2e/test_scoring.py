"""nmt score: the numbers that translate reports, for lines that are given, as a user runs it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from conftest import copy_lines, write

from nmt.errors import NotFiniteError
from nmt.score import LONGEST, Scorer
from nmt.translate import Translator

LINES = [line for line in copy_lines(40, 7) if line]


@pytest.fixture(scope="module")
def scorer(copy_run: Path) -> Scorer:
    return Scorer(str(copy_run / "run"), device="cpu", threads=1)


@pytest.mark.parametrize("penalty", [None, 0.0, 1.5])
def test_what_translate_says_of_its_output_is_what_score_says_of_it(
    command, copy_run: Path, tmp_path: Path, penalty: float | None
):
    """Case 47: the same number within 1e-4, by the search's own penalty or another."""
    options = {} if penalty is None else {"length_penalty": penalty}
    translator = Translator(str(copy_run / "run"), "cpu", threads=1, search=options)
    found = list(translator.stream(LINES))
    assert not any(one.truncated for one in found)
    src, tgt = write(tmp_path / "src", LINES), write(tmp_path / "tgt", [one.text for one in found])
    given = [] if penalty is None else ["--length-penalty", str(penalty)]
    code, out, err = command("score", copy_run / "run", "--src", src, "--tgt", tgt, *given)
    assert (code, err) == (0, "")
    assert [float(line) for line in out.split()] == pytest.approx([one.score for one in found], abs=1e-4)


def test_a_wrong_translation_scores_lower(scorer: Scorer):
    right, wrong = scorer.stream([("a b c", "a b c"), ("a b c", "c a")])
    assert right.value is not None and wrong.value is not None and right.value > wrong.value + 1


def test_json_has_the_tokens_with_their_log_probabilities(command, copy_run: Path, tmp_path: Path):
    src, tgt = write(tmp_path / "src", ["a b c", "", "d"]), write(tmp_path / "tgt", ["a b c", " ", "e f"])
    code, out, _ = command("score", copy_run / "run", "--src", src, "--tgt", tgt, "--json")
    rows = [json.loads(line) for line in out.decode().split("\n")[:-1]]
    assert code == 0 and [len(row["tokens"]) for row in rows] == [3, 0, 2]
    assert rows[0]["tokens"] == ["\u2581a", "\u2581b", "\u2581c"]
    assert rows[1] == {"score": None, "tokens": [], "log_probs": []}
    for row in (rows[0], rows[2]):
        assert all(value <= 0 for value in row["log_probs"])
        assert len(row["log_probs"]) == len(row["tokens"]) + 1  # the end of sentence
        assert row["score"] == pytest.approx(sum(row["log_probs"]) / len(row["log_probs"]), abs=1e-5)


def test_every_pair_has_its_line_and_blank_pairs_stay_blank(command, copy_run: Path, tmp_path: Path):
    """Case 45; a pair with one blank side is scored as it is, and scores badly."""
    src, tgt = ["a b", "", "\u3000", "c", "", "d"], ["a b", "", "\u200b", "", "c", "d"]
    arguments = ("--src", write(tmp_path / "src", src), "--tgt", write(tmp_path / "tgt", tgt), "-o", tmp_path / "out")
    assert command("score", copy_run / "run", *arguments)[:2] == (0, b"")
    scores = (tmp_path / "out").read_text().split("\n")[:-1]
    assert [bool(score) for score in scores] == [True, False, False, True, True, True]
    assert max(float(scores[3]), float(scores[4])) < min(float(scores[0]), float(scores[5])) - 1


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_neither_blocks_nor_neighbours_change_a_score(scorer: Scorer, block: int):
    pairs = [(line, " ".join(reversed(line.split())) if i % 2 else line) for i, line in enumerate(["", *LINES])]
    usual = [one.value for one in scorer.stream(pairs)]
    assert usual[0] is None
    assert [one.value for one in scorer.stream(pairs, block=block)][1:] == pytest.approx(usual[1:], abs=1e-5)


def test_a_long_line_is_cut_with_a_warning_that_names_it(scorer: Scorer):
    """Case 11."""
    said: list[str] = []
    long = " ".join("abcdefgh"[i % 8] for i in range(LONGEST + 5))
    fitting = " ".join("abcdefgh"[i % 8] for i in range(LONGEST))
    scores = list(scorer.stream([("a", "a"), ("a", fitting), ("b", long), (long, "b")], block=2, warn=said.append))
    assert [len(one.tokens) for one in scores] == [1, LONGEST, LONGEST, 1]
    assert [len(one.log_probs) for one in scores] == [2, LONGEST + 1, LONGEST, 2], "what is cut has not ended"
    assert said == [
        "warning: line 3: the target has 1,029 pieces, cut to 1,024",
        "warning: line 4: the source has 1,029 pieces, cut to 1,024",
    ]


def test_files_of_unequal_length_are_refused_before_any_work(command, tmp_path: Path):
    """Case 1: not even the model is looked for."""
    src, tgt = write(tmp_path / "src", ["a", "b", "c"]), tmp_path / "tgt"
    tgt.write_bytes(b"a\nb")
    code, out, err = command("score", "nosuch", "--src", src, "--tgt", tgt, "-o", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, b"", 1)
    assert f"{src} has 3 lines, but {tgt} has 2" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("spoil", ["missing", "exists", "stdin", "pipe"])
def test_mistakes_are_one_line(command, copy_run: Path, tmp_path: Path, spoil: str):
    src, tgt, out = write(tmp_path / "src", ["a"]), write(tmp_path / "tgt", ["a"]), tmp_path / "out"
    said = {"missing": "no such file", "exists": "exists already", "stdin": "is a pipe", "pipe": "is a pipe"}[spoil]
    if spoil == "missing":
        src.unlink()
    elif spoil == "exists":
        out.write_text("precious\n")
    elif spoil == "pipe":
        src.unlink()
        os.mkfifo(src)
        threading.Thread(target=lambda: open(src, "w").close(), daemon=True).start()
    code, printed, err = command(
        "score", copy_run / "run", "--src", "-" if spoil == "stdin" else src, "--tgt", tgt, "-o", out
    )
    assert (code, printed, err.count("\n")) == (2, b"", 1) and said in err
    assert not out.exists() or out.read_text() == "precious\n"


def test_a_model_that_has_diverged_gives_no_numbers(copy_run: Path):
    scorer = Scorer(str(copy_run / "run"), device="cpu", threads=1)
    scorer.model.decoder_norm.weight.data.fill_(float("nan"))
    with pytest.raises(NotFiniteError, match="line 2: "):
        list(scorer.stream([("", ""), ("a", "a")]))


def test_white_space_around_a_line_is_no_part_of_it(scorer: Scorer) -> None:
    """As in translating, where it comes back around the translation."""
    plain, spaced = scorer.stream([("a b c", "a b c"), ("\u00a0a b c", "\u3000 a b c\t")])
    assert plain == spaced


def test_nothing_is_written_over_what_is_read(command, copy_run: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in", ["a b"])
    code, _, err = command("score", copy_run / "run", "--src", "in", "--tgt", "in", "-o", source, "--overwrite")
    assert code == 2 and "is named twice" in err
    code, _, err = command("translate", copy_run / "run", "in", "-o", "in", "--overwrite")
    assert code == 2 and "in: is named twice" in err
    assert source.read_bytes() == b"a b\n"
