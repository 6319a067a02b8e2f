"""What surrounds a translation: N lines in and out, forms of output, columns, long lines, streams, what looks wrong."""

from __future__ import annotations

import gzip
import inspect
import io
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import torch
from conftest import copy_lines, write
from copier import Copier, Copying
from torch import Tensor

from nmt import runtime
from nmt.blocks import LONGEST, Translation
from nmt.choice import Choice
from nmt.errors import NmtError
from nmt.lines import FORMS, Faults, repeats, translated
from nmt.rows import Row
from nmt.search.methods import Hypothesis
from nmt.tokenizer import EOS, TOKENIZERS
from nmt.translate import Translator

ROOT = Path(__file__).parents[2]
TEXT = ["the cats sat. the dogs ran! <2de> 猫。狗。", *copy_lines(50, 1)]


@pytest.fixture(scope="module")
def translator(copy_run: Path) -> Translator:
    return Translator(str(copy_run / "run"), device="cpu", threads=1)


def around(model: Any, **search: Any) -> Translator:
    """A translator around a model that needs no training; its pieces are characters."""
    tokenizer = TOKENIZERS["char"](vocab_size=100)(TEXT, TEXT, lambda _: None)
    settings = Choice("beam", {"beam": 2, **search})
    return Translator.of(model(len(tokenizer.tgt)), tokenizer, settings, runtime.choose("cpu", "fp32", 1))


@pytest.fixture
def copier() -> Translator:
    return around(Copier)


class Endless(Copier):
    """Says the first letter of its source for ever."""

    def step(self, tokens_R: Tensor, state: Copying) -> Tensor:
        state.at = 1
        return super().step(tokens_R, state).index_fill(1, torch.tensor([EOS]), -torch.inf)


class Silent(Copier):
    """Ends before it has begun."""

    def step(self, tokens_R: Tensor, state: Copying) -> Tensor:
        return super().step(tokens_R, state).index_fill(1, torch.tensor([EOS]), 50.0).log_softmax(-1)


def half_blank(count: int) -> list[str]:
    rng = random.Random(count)
    lines = copy_lines(count, count)
    return [rng.choice(["", " ", "\t", "\u3000"]) if rng.random() < 0.5 else line for line in lines]


# --- N lines in, N lines out ---


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("batch_tokens", [1, 64, 1_000_000])
@pytest.mark.parametrize("count", [0, 1, 7, 60])
def test_every_form_has_an_entry_for_every_line(
    copy_run: Path, translator: Translator, count: int, batch_tokens: int, workers: int
) -> None:
    """Case 45: half of the lines blank, from one line a batch to all, in one process and in two."""
    lines = half_blank(count)
    several = Translator(str(copy_run / "run"), device="cpu", threads=1, workers=workers)
    expected = translator.translate(lines)
    found = {
        key: list(
            translated(several, map(Row, lines), form, nbest=2 if key[1] else 1, batch_tokens=batch_tokens, block=10)
        )
        for key, form in FORMS.items()
    }
    assert {len(some) for some in found.values()} == {count}
    assert found[False, False] == expected
    for number, (line, text) in enumerate(zip(lines, expected, strict=True)):
        first = found[False, True][number].split("\n")[0].split(" ||| ")
        assert first[:2] == [str(number), text] and bool(first[2]) == bool(line.strip())
        for key in ((True, False), (True, True)):
            tree = json.loads(found[key][number])
            assert tree["text"] == text and (tree["score"] is None) == (not line.strip())
    assert [text for line, text in zip(lines, expected, strict=True) if not line.strip()] == [
        line for line in lines if not line.strip()
    ]


@pytest.mark.parametrize("options", [[], ["--nbest", "2"], ["--json"], ["--stream"], ["--json", "--nbest", "2"]])
def test_a_file_and_stdin_give_the_same(command, copy_run: Path, tmp_path: Path, options: list[str]):
    """Case 45."""
    source = write(tmp_path / "in", half_blank(20))
    code, from_file, _ = command("translate", copy_run / "run", source, "-o", tmp_path / "out", *options)
    assert (code, from_file) == (0, b"")
    code, from_stdin, _ = command("translate", copy_run / "run", *options, stdin=source.read_bytes())
    assert code == 0
    assert (tmp_path / "out").read_bytes() == from_stdin


class Losing:
    """A translator with a bug."""

    def __init__(self, answers: int) -> None:
        self.answers = answers

    def stream(self, lines: Any, *, first: int = 1, **options: Any) -> Iterator[Translation]:
        for _ in lines:
            pass
        return (Translation("x") for _ in range(self.answers))


@pytest.mark.parametrize("answers", [0, 2, 4])
def test_a_line_that_is_lost_is_never_passed_over(answers: int) -> None:
    """Case 45: it can only be a bug of ours, and is looked for all the same."""
    with pytest.raises(NmtError, match=r"3 lines in, but .* lines? out"):
        list(translated(Losing(answers), map(Row, "abc")))
    assert list(translated(Losing(3), map(Row, "abc"))) == ["x"] * 3


@pytest.mark.parametrize("workers", [1, 2])
def test_no_more_than_a_few_blocks_are_read_ahead(copy_run: Path, workers: int) -> None:
    """Memory stays the same for any number of lines: here there is no end of them."""
    several = Translator(str(copy_run / "run"), device="cpu", threads=1, workers=workers)
    read = itertools.count()
    lines = (line for line in itertools.cycle(["a b", "", "c"]) if next(read) >= 0)
    for number, text in enumerate(itertools.islice(translated(several, map(Row, lines), block=10), 200)):
        assert text == ["a b", "", "c"][number % 3]
    assert next(read) - 200 <= 10 * (1 if workers == 1 else 3 * workers + 2)


def test_white_space_around_a_line_is_kept(translator: Translator, copier: Translator) -> None:
    """But for what some program takes for the end of a line."""
    lines = ["  a b", "\ta b \t", "a b\u3000", "a b\r", "\x0ca b\u2028"]
    assert translator.translate(lines) == ["  a b", "\ta b \t", "a b\u3000", "a b", "a b"]
    assert copier.translate(["  the cat ", "the cat"]) == ["  the cat ", "the cat"]


# --- lines that are too long ---


def limit(translator: Translator, most: int) -> None:
    """The most ids of a source, end of sentence counted."""
    translator.blocks.longest = translator.blocks.usual = most


def parts_of(translator: Translator, line: str, longest: int) -> tuple[list[str], Translation, list[str]]:
    """What the model gets to see of a line, its translation, and what is said."""
    limit(translator, longest + 1)
    seen: list[str] = []
    search = translator.search_ids

    def watched(src: Any, numbers: Any, prefixes: Any) -> Any:
        seen.extend(translator.tokenizer.decode([ids[:-1].tolist() for ids in src]))
        return search(src, numbers, prefixes)

    translator.search_ids = watched  # type: ignore[method-assign]
    said: list[str] = []
    _, found, _ = translator.stream(["", line, ""], batch_tokens=1, warn=said.append)
    return seen, found, said


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("the cats sat. the dogs ran! the", ["the cats sat.", "the dogs ran!", "the"]),
        ("猫。狗狗。 猫猫狗。猫狗狗狗。 the cat", ["猫。", "狗狗。", "猫猫狗。", "猫狗狗狗。", "the cat"]),
        (" the cat sat the dog ran the hen ", ["the cat sat the dog", "ran the hen"]),
    ],
)
def test_a_long_line_is_translated_in_parts(copier: Translator, line: str, parts: list[str]) -> None:
    """Case 11: at the ends of sentences, else at white space; a warning names the line."""
    seen, found, said = parts_of(copier, line, 20)
    assert (sorted(seen), found.text) == (sorted(parts), line)
    [warning] = said
    assert "line 2 has" in warning and "more than 20" in warning and f"in {len(parts)} parts" in warning


def test_a_long_word_is_cut_anywhere(copier: Translator) -> None:
    """Case 11."""
    seen, found, _ = parts_of(copier, "acegikmo" * 5, 20)
    assert found.text.replace(" ", "") == "acegikmo" * 5
    assert len(seen) == found.text.count(" ") + 1 == 3


def test_a_long_line_is_whole_but_for_its_score(copier: Translator) -> None:
    """Tokens are those of all parts; the score is the mean of theirs; one that was cut makes the line cut."""
    _, found, _ = parts_of(copier, "the cats sat. the dogs ran!", 15)
    alone = list(copier.stream(["the cats sat.", "the dogs ran!"]))
    assert found.tokens == sum(one.tokens for one in alone) == len(found.pieces)
    assert found.pieces == [piece for one in alone for piece in one.pieces]
    assert found.score == pytest.approx(sum(one.score or 0 for one in alone) / 2, abs=1e-6)
    assert found.truncated is False
    copier.search.max_ratio, copier.search.max_extra = 0.0, 3  # type: ignore[attr-defined]
    _, found, _ = parts_of(copier, "the cats sat. a", 14)
    assert (found.text, found.truncated) == ("th a", True)


def test_a_longer_part_counts_for_more(copier: Translator) -> None:
    copier.search = lambda _, sources, constraints: [[Hypothesis([5], -n)] for n in sources.lengths]  # type: ignore[assignment]
    limit(copier, 10)
    [found] = copier.stream(["the cat. a."], warn=lambda _: None)
    assert found.score == pytest.approx(-(10 * 10 + 4 * 4) / (10 + 4))  # with mark of a space and end of sentence


def test_every_part_has_the_prefix_of_its_line(copier: Translator) -> None:
    """A model of many directions is told the direction of each part."""
    copier.blocks.tags = ["", "<2", "<2de> "]
    seen, found, _ = parts_of(copier, "<2de> the cats sat. the dogs ran! the cat", 22)
    assert sorted(seen) == ["<2de> the cat", "<2de> the cats sat.", "<2de> the dogs ran!"]
    assert found.text.count("<2de>") == 3


def test_hypotheses_of_a_long_line_are_ordered(copier: Translator) -> None:
    limit(copier, 15)
    [found] = copier.stream(["the cats sat. the dogs ran!"], nbest=2, warn=lambda _: None)
    assert len(found.others) == 1 and found.others[0].text != found.text == "the cats sat. the dogs ran!"
    assert (found.score or 0) > (found.others[0].score or 0)


def test_lines_are_counted_over_all_blocks(copy_run: Path) -> None:
    """And a line of so many pieces as are allowed is whole."""
    brief = Translator(str(copy_run / "run"), "cpu", threads=1, search={"max_ratio": 0.0, "max_extra": 10})
    said: list[str] = []
    long, fitting = " ".join("a" * (LONGEST + 100)), " ".join("a" * LONGEST)
    assert len(list(brief.stream([*["a"] * 10, fitting, long], block=4, warn=said.append))) == 12
    [warning] = said
    assert "line 12 has 356 pieces, more than 249" in warning


def test_a_line_longer_than_those_of_training_is_translated_sentence_by_sentence(copier: Translator) -> None:
    """But a single sentence stays whole."""
    copier.blocks.usual = 16
    said: list[str] = []
    lines = ["the cats sat. the dogs ran!", "the cats sat the dogs ran"]
    assert copier.translate(lines) == lines
    list(copier.stream(lines, warn=said.append, first=11))
    assert said == ["warning: line 11 has 28 pieces, more than 15; it is translated in 2 parts"]


def test_the_longest_line_of_the_training_is_known(copy_run: Path, tmp_path: Path) -> None:
    assert Translator(str(copy_run / "run"), "cpu", threads=1).blocks.usual == 250, "what the length filter lets pass"


# --- words that are given ---


def test_a_translation_begins_with_the_words_given(command, copy_run: Path, tmp_path: Path) -> None:
    lines = ["", *copy_lines(30, 4), "a b"]
    given = ["c", *(["", "p o n", " "] * 10), "b"]
    source, prefixes = write(tmp_path / "in", lines), write(tmp_path / "begin", given)
    for options in ([], ["--greedy"], ["--workers", "2", "--batch-tokens", "100"], ["--stream"]):
        answer = command("translate", copy_run / "run", source, "--tgt-prefix", prefixes, *options)
        assert answer.code == 0, answer.err
        for line, words, text in zip(lines, given, answer.out.decode().split("\n")[:-1], strict=True):
            assert text.startswith(words.strip()) if line else not text
            assert words.strip() or text == line
    translator = Translator(str(copy_run / "run"), "cpu", threads=1)
    texts = [found.text for found in translator.stream(lines, tgt_prefixes=given)]
    assert texts == answer.out.decode().split("\n")[:-1]


def test_words_given_need_a_line_each_and_a_vocabulary(command, copy_run: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in", ["a", "b", "c"])
    prefixes, packed = tmp_path / "begin", tmp_path / "begin.gz"
    for given, name, said in (
        (["a"], prefixes, f"{source} has 3 lines, but {prefixes} has 1; there must be one target prefix for each line"),
        (["a"], packed, "the target prefixes end before number 2"),
        (["a"] * 4, packed, "the lines end before number 4"),
        (["", "a 猫", ""], prefixes, "line 2: its target prefix 'a 猫' has characters that the vocabulary lacks"),
        (["", "a b c d", "a b c"], prefixes, "line 2: its target prefix has 4 pieces, but a translation has at most"),
    ):
        write(prefixes, given)
        packed.write_bytes(gzip.compress(prefixes.read_bytes()))
        options = ["-o", tmp_path / "out", "--tgt-prefix", name, "--max-length", "3"]
        answer = command("translate", copy_run / "run", source, *options)
        assert answer.code == 2 and said in answer.err
        assert not (tmp_path / "out").exists()


def test_wrong_arguments_of_the_library_are_said_at_once(translator: Translator) -> None:
    for nbest in (0, 99):
        with pytest.raises(NmtError, match=f"{nbest} hypotheses of each line were asked for"):
            translator.stream(["a"], nbest=nbest)
    with pytest.raises(TypeError, match="line 2: must be a str, but is of type NoneType instead"):
        translator.translate(["a", None, "b"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="`tgt_prefixes` must be a list of lines"):
        translator.stream(["a"], tgt_prefixes="b")


# --- what looks wrong ---


def summary(translator: Translator, lines: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert len(list(translated(translator, map(Row, lines)))) == len(lines)
    return capsys.readouterr().err.splitlines()


def test_a_model_that_never_ends_is_stopped_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Case 51."""
    endless = around(Endless, max_ratio=1.0, max_extra=20)
    lines = ["a", "", *["b"] * 7]
    assert all(t.truncated and t.tokens == 23 for t in endless.stream(lines) if t.score is not None)
    assert summary(endless, lines, capsys) == [
        "warning: 8 translations ended at the length limit: lines 1, 3, 4, 5, 6, …",
        "warning: 8 translations ended in a repetition: lines 1, 3, 4, 5, 6, …",
    ]


def test_a_model_that_says_nothing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Case 51."""
    silent = around(Silent)
    assert silent.translate(["a b", "", "c"]) == ["", "", ""]
    assert summary(silent, ["a b", "", "c"], capsys) == ["warning: 2 translations came out empty: lines 1, 3"]


def test_what_is_not_translated_is_named(copier: Translator, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers and signs stay as they are in any language."""
    assert summary(copier, [" the cat", "", "...", "猫"], capsys) == [
        "warning: 2 translations came out equal to the source: lines 1, 4"
    ]
    assert summary(copier, ["", " ", "."], capsys) == []


def test_a_repetition_of_the_source_is_none(copier: Translator, capsys: pytest.CaptureFixture[str]) -> None:
    assert summary(copier, ["......", "the the the the the"], capsys) == [
        "warning: 1 translation came out equal to the source: line 2"
    ]


def test_words_that_the_source_repeats_may_be_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    faults = Faults()
    for line, source in enumerate(["hello hello hello hello", "hello"], 1):
        faults.look(line, source, Translation("hi hi hi hi", -1.0, pieces=["hi"] * 4))
    faults.tell()
    assert capsys.readouterr().err == "warning: 1 translation ended in a repetition: line 2\n"


def test_half_a_character_is_named_unless_the_source_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    faults = Faults()
    for line, source in enumerate(["a", "a \ufffd"], 1):
        faults.look(line, source, Translation("b \ufffd", -1.0, pieces=["b", "<0xE7>"]))
    faults.tell()
    assert capsys.readouterr().err == "warning: 1 translation came out with broken characters (U+FFFD): line 1\n"


@pytest.mark.parametrize(
    ("tokens", "yes"),
    [
        ("a a a a", True),
        ("x a b a b a b a b", True),
        ("a b c d " * 4, True),
        ("a a a", False),
        ("a a a a b", False),
        ("a b c d e " * 4, False),
        ("", False),
    ],
)
def test_a_repetition_is_four_times_the_same_at_the_end(tokens: str, yes: bool) -> None:
    assert repeats(tokens.split()) == yes


# --- several hypotheses, scores ---


def test_hypotheses_are_ordered_and_distinct(translator: Translator) -> None:
    """Case 49: on lines longer than any in training, so that the model is in doubt."""
    rng = random.Random(1)
    lines = ["", *(" ".join(rng.choices("abcdefghijklmnop", k=12)) for _ in range(20)), "a"]
    wide = translator.searching(beam=5)
    one, five = list(wide.stream(lines)), list(wide.stream(lines, nbest=5))
    assert [t.text for t in one] == [t.text for t in five]
    assert [t.score for t in one] == [t.score for t in five]
    assert all(t.others == [] for t in one) and five[0].others == []
    for best in five[1:]:
        ranked = [best, *best.others]
        assert 1 <= len(ranked) <= 5
        assert len({t.text for t in ranked}) == len(ranked)
        scores = [t.score for t in ranked if t.score is not None]
        assert len(scores) == len(ranked) and scores == sorted(scores, reverse=True)
    assert max(len(t.others) for t in five) == 4


def test_hypotheses_that_read_the_same_are_one(copier: Translator) -> None:
    """Case 49: the same text in other pieces is no other translation."""
    a, b, space = (copier.tokenizer.tgt.processor.PieceToId(piece) for piece in "ab▁")
    ranked = [Hypothesis([space, a], -1), Hypothesis([a], -2), Hypothesis([b], -3)]
    copier.search = lambda *_: [ranked]  # type: ignore[assignment]
    [found] = copier.stream(["a"], nbest=2)
    assert [(t.text, t.score) for t in (found, *found.others)] == [("a", -1), ("b", -3)]


def test_the_form_of_hypotheses(command, copy_run: Path):
    """Case 49: one line each, as Moses has it, blank lines with one entry."""
    code, out, _ = command("translate", copy_run / "run", "--beam", "3", "--nbest", "3", stdin=b"a b\n\nc d e\n")
    assert code == 0
    entries = [line.split(" ||| ") for line in out.decode().removesuffix("\n").split("\n")]
    assert [e for e in entries if e[0] == "1"] == [["1", "", ""]]
    assert sorted({e[0] for e in entries}) == ["0", "1", "2"]
    for number, best in (("0", "a b"), ("2", "c d e")):
        mine = [e for e in entries if e[0] == number]
        assert mine[0][1] == best and len(mine) <= 3
        assert [float(e[2]) for e in mine] == sorted((float(e[2]) for e in mine), reverse=True)


@pytest.mark.parametrize("options", [["--nbest", "3"], ["--nbest", "6", "--beam", "5"], ["--nbest", "2", "--greedy"]])
def test_more_hypotheses_than_beams_are_an_error(command, copy_run: Path, tmp_path: Path, options: list[str]):
    """Case 49: before anything is read or written."""
    write(tmp_path / "in", ["a b"])
    code, out, err = command("translate", copy_run / "run", "in", "-o", "out", *options)
    assert (code, out, err.count("\n")) == (2, b"", 1)
    assert f"{options[1]} hypotheses" in err and f"a beam of {options[1]} or more" in err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_json_tells_scores_and_tokens(command, copy_run: Path):
    code, out, _ = command("translate", copy_run / "run", "--json", stdin=b" a b\n\nc\n")
    assert code == 0
    first, second, third = map(json.loads, out.decode().splitlines())
    assert first["text"] == " a b" and first["tokens"] == ["▁a", "▁b"] and first["truncated"] is False
    assert first["score"] < 0 and third["text"] == "c"
    assert second == {"text": "", "score": None, "tokens": [], "log_probs": [], "truncated": False}


def test_json_holds_a_log_probability_for_each_token(copier: Translator) -> None:
    """Those that the search tells."""
    copier.search = lambda *_: [  # type: ignore[assignment]
        [Hypothesis([5, 6], -0.5, False, [-0.5, -0.25, -0.25]), Hypothesis([6], -1.5, True, [-1.5])]
    ]
    [line] = translated(copier, [Row("a")], FORMS[True, True], nbest=2)
    tree = json.loads(line)
    assert [one["log_probs"] for one in tree["nbest"]] == [[-0.5, -0.25, -0.25], [-1.5]]
    assert [one["truncated"] for one in tree["nbest"]] == [False, True]
    assert {key: value for key, value in tree.items() if key != "nbest"} == tree["nbest"][0]


def test_real_log_probabilities_make_up_the_score(translator: Translator) -> None:
    [found] = translator.stream(["a b c"])
    assert len(found.log_probs) == found.tokens + 1
    assert found.score == pytest.approx(sum(found.log_probs) / len(found.log_probs), abs=1e-4)


def test_a_translation_has_a_most_length(command, copy_run: Path):
    code, out, err = command("translate", copy_run / "run", "--max-length", "2", stdin=b"a b c d\ne\n")
    assert (code, out) == (0, b"a b\ne\n")
    assert "1 translation ended at the length limit: line 1" in err


# --- columns ---


def test_a_column_is_translated_and_the_rest_stays(command, copy_run: Path, tmp_path: Path):
    write(tmp_path / "in.tsv", ["id\ttext", "1\ta b", "2\t", "3\t c"])
    code, out, _ = command("translate", copy_run / "run", "in.tsv", "--column", "text")
    assert code == 0
    assert out == b"id\ttext\ttranslation\n1\ta b\ta b\n2\t\t\n3\t c\t c\n"
    code, out, _ = command("translate", copy_run / "run", "--column", "1", stdin=b"1\ta b\n")
    assert (code, out) == (0, b"1\ta b\ta b\n")
    write(tmp_path / "in.jsonl", ['{"n": 1.0, "doc": {"t": "a b"}}', '{"doc": {"t": ""}}'])
    code, out, _ = command("translate", copy_run / "run", "in.jsonl", "--column", "doc.t")
    assert code == 0
    assert out == b'{"n": 1.0, "doc": {"t": "a b"}, "translation": "a b"}\n{"doc": {"t": ""}, "translation": ""}\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--column", "0"], "in.tsv:3: has 1 column, expected 2"),
        (["--column", "2"], "in.tsv:1: has 2 columns, expected 3"),
        (["--column", "c"], "in.tsv:1: has no column `c`"),
        (["--column", "0", "--json"], "leave out --json and --nbest"),
        (["--column", "0", "--nbest", "2"], "leave out --json and --nbest"),
    ],
)
def test_a_wrong_column_leaves_no_output(command, copy_run: Path, tmp_path: Path, options: list[str], message: str):
    write(tmp_path / "in.tsv", ["a\tb", "a\tb", "a"])
    code, out, err = command("translate", copy_run / "run", "in.tsv", "-o", "out", *options)
    assert (code, out, err.count("\n")) == (2, b"", 1)
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["in.tsv"]


# --- line by line ---


@pytest.fixture
def stream(copy_run: Path) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO, BinaryIO]]:
    """`nmt translate --stream` with its stdin and stdout; killed if it keeps us waiting."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONUNBUFFERED", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt", "translate", copy_run / "run", "--stream", "--threads", "1"],
        **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(60, process.kill)
    timer.start()
    yield process, process.stdin, process.stdout
    timer.cancel()
    process.kill()
    process.wait()


def test_a_stream_is_answered_line_by_line(stream) -> None:
    """Case 53: each line, a blank one too, before the next one is sent; the last one without its end."""
    process, stdin, stdout = stream
    for line in (b"a b\n", b"\n", b"c d e\n", b" \n", b"f\n"):
        stdin.write(line)
        stdin.flush()
        assert stdout.readline() == line
    stdin.write(b"g h")
    stdin.close()
    assert stdout.read() == b"g h\n"
    assert process.wait() == 0


def test_a_stream_whose_reader_goes_away_ends_quietly(stream) -> None:
    """Case 53: `| head -1`."""
    process, stdin, stdout = stream
    stdin.write(b"a b\n")
    stdin.flush()
    assert stdout.readline() == b"a b\n"
    stdout.close()
    stdin.write(b"c d\n")
    stdin.close()
    assert process.stderr.read() == b""
    assert process.wait() == -signal.SIGPIPE


# --- progress, and the library ---


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("name", "total"), [("in", "/30 ["), ("-", "? lines/s")])
def test_a_bar_tells_the_rate_and_what_is_left(
    command, copy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, total: str
):
    """Of a file; of a pipe nobody knows how much is left."""
    source = write(tmp_path / "in", half_blank(30))
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(Terminal, "reconfigure", lambda *_, **__: None, raising=False)
    assert command("translate", copy_run / "run", name, "-o", "out", stdin=source.read_bytes())[0] == 0
    assert total in terminal.getvalue() and "lines/s" in terminal.getvalue()


def test_the_library_works_from_anywhere(copy_run: Path, tmp_path: Path) -> None:
    """`import nmt` does not wait for torch, and a beam may be chosen for one call."""
    code = f"""
import sys, nmt
assert "torch" not in sys.modules
from nmt import Translator
translator = Translator({str(copy_run / "run")!r}, threads=1)
print(translator.translate(["c a b", "", " d"], beam=3), translator.settings.options["beam"])
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, "['c a b', '', ' d'] 2\n"), done.stderr.decode()


def test_options_of_one_call_are_those_of_the_search(translator: Translator) -> None:
    [short] = translator.translate(["a b c d e"], max_ratio=0.0, max_extra=3)
    assert short == "a b c"
    assert translator.translate(["a b c d e"]) == ["a b c d e"]
    with pytest.raises(NmtError, match="did you mean `beam`"):
        translator.translate(["a"], beams=3)
    with pytest.raises(TypeError, match="list of lines"):
        translator.stream("a b")
    assert not inspect.isgeneratorfunction(Translator.stream)  # so that mistakes show at once


# --- searches ---


def test_a_sample_depends_on_its_seed_and_not_on_batches(command: Any, copy_run: Path, tmp_path: Path) -> None:
    """Case 55."""
    source = write(tmp_path / "in", copy_lines(30, 5))
    hot = ("--sample", "-s", "search.temperature=3.0", "--threads", "1")

    def draw(*arguments: str) -> bytes:
        code, out, _ = command("translate", copy_run / "run", source, *hot, *arguments)
        assert code == 0
        return bytes(out)

    first = draw("--seed", "3")
    assert first == draw("--seed", "3", "--batch-tokens", "1") == draw("--seed", "3", "--workers", "2")
    assert first != draw("--seed", "4")
    code, _, said = command("translate", copy_run / "run", source, "--sample", "--beam", "2")
    assert (code, said) == (2, "error: --beam and --sample exclude each other\n")


def test_an_ensemble_of_equal_models_is_that_model(command: Any, copy_run: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in", copy_lines(20, 6))
    arguments = ("translate", copy_run / "run", source, "--json")
    alone = [json.loads(line) for line in command(*arguments).out.splitlines()]
    both = [json.loads(line) for line in command(*arguments, "--ensemble", copy_run / "run").out.splitlines()]
    assert [one["text"] for one in both] == [one["text"] for one in alone]
    assert [one["score"] for one in both] == pytest.approx([one["score"] for one in alone], abs=1e-5)


def test_a_banned_phrase_is_not_in_any_translation(command: Any, copy_run: Path) -> None:
    usual = command("translate", copy_run / "run", stdin=b"a b c d\n").out
    assert usual == b"a b c d\n"
    banned = command("translate", copy_run / "run", "--ban", "b c", stdin=b"a b c d\n").out
    assert b"b c" not in banned and banned.startswith(b"a ")


@pytest.mark.parametrize("phrase", ["", "  "])
def test_a_blank_phrase_cannot_be_banned(command: Any, copy_run: Path, phrase: str) -> None:
    code, out, said = command("translate", copy_run / "run", "--ban", phrase, stdin=b"a\n")
    assert (code, out) == (2, b"")
    assert said.startswith("error: the banned phrase") and said.count("\n") == 1
