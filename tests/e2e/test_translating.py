"""Lines in, lines out: translate and evaluate as a user runs them, on a model that has learnt to copy."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from conftest import copy_lines, make_toy, run_nmt, write
from copier import Copier

from nmt import checkpoint, runtime, variants
from nmt.blocks import Translation
from nmt.checkpoint import Checkpoint
from nmt.choice import Choice
from nmt.errors import ConfigError, NmtError
from nmt.model.transformer import Transformer
from nmt.score import log_probs
from nmt.tokenizer import EOS, TOKENIZERS, Tokenizer
from nmt.train import train
from nmt.translate import Translator

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def translator(copy_run: Path) -> Translator:
    return Translator(str(copy_run / "run"), device="cpu", threads=1)


def sentences(count: int, seed: int = 0, blank: float = 0.0) -> list[str]:
    rng = random.Random(seed)
    lines = copy_lines(count, seed + 100)
    return [rng.choice(["", "  ", "\u3000", "\u200b"]) if rng.random() < blank else line for line in lines]


# --- N lines in, N lines out (case 45) ---


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_every_line_has_its_line_in_the_output(command, copy_run: Path, tmp_path: Path, count: int):
    """Files with blanks. A model that copies (nearly always) shows when a line has gone astray; blanks come back."""
    lines = sentences(count, seed=count, blank=0.24)
    source, output = write(tmp_path / "in", lines), tmp_path / "out"
    code, printed, _ = command("translate", copy_run / "run", source, "-o", output)
    assert (code, printed) == (0, b"")
    *written, rest = output.read_bytes().decode().split("\n")
    assert (len(written), rest) == (count, "")
    different = [(a, b) for a, b in zip(lines, written, strict=True) if a != b]
    assert len(different) <= count // 100
    assert all(a.strip(" \u3000\u200b") for a, _ in different)


@pytest.mark.parametrize("batch_tokens", [1, 30, 64, 100_000])
def test_the_size_of_a_batch_changes_neither_text_nor_score(translator: Translator, batch_tokens: int):
    """Cases 45 and 46: one sentence at a time, a few, all; beside a line that is ten times longer."""
    lines = [*sentences(40, blank=0.2), " ".join("abcdefgh" * 10)]
    usual, other = list(translator.stream(lines)), list(translator.stream(lines, batch_tokens=batch_tokens))
    assert [t.text for t in usual] == [t.text for t in other]
    for one, two in zip(usual, other, strict=True):
        assert (one.score is None) == (two.score is None) == (not one.text.strip(" \u3000\u200b"))
        assert one.score is None or one.score == pytest.approx(two.score, abs=1e-4)


@pytest.mark.parametrize("blank", [0.0, 0.5, 1.0])
def test_the_number_of_workers_changes_nothing(copy_run: Path, translator: Translator, blank: float):
    """Case 45: the same lines in the same order, also where blocks are blank from end to end."""
    lines = [*sentences(60, blank=blank), *[""] * 20, *sentences(20, blank=blank)]
    several = Translator(str(copy_run / "run"), device="cpu", workers=2)
    for batch_tokens in (1, 64, 100_000):
        found = list(several.stream(lines, batch_tokens, block=10))
        assert found == list(translator.stream(lines, batch_tokens, block=10))
        assert len(found) == 100


def test_a_worker_that_is_killed_is_one_clear_error(copy_run: Path, monkeypatch: pytest.MonkeyPatch):
    several = Translator(str(copy_run / "run"), device="cpu", workers=2)
    monkeypatch.setattr(several, "search_ids", lambda src, numbers, prefixes: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(NmtError, match="was killed, most likely for want of memory; use fewer --workers"):
        several.translate(["a b"] * 40, batch_tokens=1)


def test_blocks_do_not_show(translator: Translator):
    """Lines are sorted by length in blocks, and memory does not grow with the input."""
    lines = sentences(50, blank=0.1)
    usual, other = list(translator.stream(lines)), list(translator.stream(lines, block=7))
    assert [t.text for t in usual] == [t.text for t in other]
    assert [t.tokens for t in usual] == [t.tokens for t in other]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", b""),
        (b"\n", b"\n"),
        (b"a b", b"a b\n"),
        (b"a b\n\n", b"a b\n\n"),
        (b"a b\nc", b"a b\nc\n"),
        (b"a b\r\nc\r\n", b"a b\nc\n"),
        (b"\xef\xbb\xbfa b\nc\n", b"a b\nc\n"),
        ("a\u2028b\nc\u2029d\ne\x85f\ng\x0bh\ni\x0cj\nk\x1cl\nm\x1dn\no\x1ep\n".encode(), None),
        (b"a\rb\nc\n", b"a b\nc\n"),
        (b"a\tb\n", b"a b\n"),
        (b"a \0b\n", b"a b\n"),
    ],
    ids=[
        "nothing",
        "a blank",
        "no end",
        "blank at the end",
        "no end at the last",
        "CRLF",
        "BOM",
        "separators",
        "CR",
        "tab",
        "NUL",
    ],
)
def test_lines_end_at_newlines_and_nowhere_else(
    command, copy_run: Path, tmp_path: Path, content: bytes, expected: bytes | None
):
    """Cases 1 to 4, 8: from a file and from stdin."""
    expected = expected if expected is not None else b"a b\nc d\ne f\ng h\ni j\nk l\nm n\no p\n"
    (tmp_path / "in").write_bytes(content)
    code, from_file, _ = command("translate", copy_run / "run", tmp_path / "in")
    assert (code, from_file) == (0, expected)
    code, from_stdin, _ = command("translate", copy_run / "run", stdin=content)
    assert (code, from_stdin) == (0, expected)


def test_gzip_is_read_and_written(command, copy_run: Path, tmp_path: Path):
    lines = sentences(20, blank=0.2)
    text = "".join(f"{line}\n" for line in lines).encode()
    (tmp_path / "in.gz").write_bytes(gzip.compress(text))
    assert command("translate", copy_run / "run", tmp_path / "in.gz", "-o", tmp_path / "out.gz")[0] == 0
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == text


def test_invalid_utf_8_is_one_line_with_its_place(command, copy_run: Path, tmp_path: Path):
    """Case 5: and nothing is written."""
    (tmp_path / "in").write_bytes(b"a b\ncaf\xe9\n")
    code, out, err = command("translate", copy_run / "run", tmp_path / "in", "-o", tmp_path / "out")
    assert (code, out) == (2, b"")
    assert err.startswith(f"error: {tmp_path / 'in'}:2: byte 0xe9") and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_an_output_that_exists_is_replaced_only_when_asked(command, copy_run: Path, tmp_path: Path):
    (tmp_path / "out").write_text("precious\n")
    arguments = ("translate", copy_run / "run", write(tmp_path / "in", ["a b"]), "-o", tmp_path / "out")
    code, _, err = command(*arguments)
    assert code == 2
    assert "exists already" in err and "--overwrite" in err
    assert (tmp_path / "out").read_text() == "precious\n"
    assert command(*arguments, "--overwrite")[0] == 0
    assert (tmp_path / "out").read_text() == "a b\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing", "in"], "missing: does not exist"),
        (["RUN", "missing"], "missing: no such file"),
        (["RUN", "."], "is a directory"),
        (["RUN", "in", "-o", "no/such/out"], "does not exist"),
        (["RUN", "in", "-o", "."], "is a directory"),
        (["RUN", "in", "--greedy", "--beam", "3"], "exclude each other"),
        (["RUN", "in", "-s", "search.bean=3"], "did you mean `beam`"),
        (["RUN", "in", "-s", "search.beam=0"], "beam"),
        (["RUN", "in", "-s", "search.beam=many"], "must be"),
        (["RUN", "in", "-s", "search=depth"], "none of: greedy, beam"),
        (["RUN", "in", "-s", "model.dim=3"], "search.KEY=VALUE"),
        (["RUN", "in", "--device", "gpu"], "must be auto, cpu"),
        (["RUN", "in", "--precision", "fp8"], "fp32, bf16 or fp16"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(command, copy_run: Path, tmp_path: Path, monkeypatch, arguments: list[str], said: str):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in", ["a b"])
    code, out, err = command("translate", *[str(copy_run / "run") if a == "RUN" else a for a in arguments])
    assert (code, out) == (2, b""), err
    assert said in err
    assert err.startswith("error: ") and err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


# --- a perfect model: what the words of a line do to the pipeline around the search ---


MARKUP = [
    "a </s> b",
    "<s> a <unk> <pad> </s>",
    "say ||| that @@ again &amp; <b>bold</b>",
    "x <0x0A> y",
    "\U0001f408\u200d\u2b1b cats",
    "e\u0301 caf\u00e9",
    "1,000.5% (sic)",
]


@pytest.fixture(scope="module", params=["char", "bpe", "unigram", "none", "bytes"])
def copier(request: pytest.FixtureRequest) -> tuple[Translator, str]:
    """A copying translator, and the kind of its vocabulary."""
    options: dict[str, Any] = {"vocab_size": 400}
    if request.param == "bytes":
        options["byte_fallback"] = True
    name = "bpe" if request.param == "bytes" else request.param
    # Names of special pieces teach a vocabulary nothing, so their letters come from other words.
    text = [*MARKUP, "< up / down > uks sunk pads", *copy_lines(200, 1)]
    tokenizer: Tokenizer = TOKENIZERS[name](**options)(text, text, lambda _: None)
    where = runtime.choose("cpu", "fp32", 1)
    model: Any = Copier(len(tokenizer.tgt))
    return Translator.of(model, tokenizer, Choice("beam", {"beam": 2}), where), request.param


def test_markup_in_a_line_is_text_like_any_other(copier: tuple[Translator, str]):
    """Case 12: no line ends early, and what comes back is what went in."""
    translator, kind = copier
    found = translator.translate(MARKUP)
    if kind == "none":  # the name of a special piece is an unknown word there, and the rest of the line stays
        assert found[0].startswith("a ") and found[0].endswith(" b")
        assert found[2:] == MARKUP[2:]
    else:
        assert found == MARKUP
    for ids in translator.tokenizer.encode_src(MARKUP):
        assert not {0, 2, 3} & set(ids[:-1].tolist()) and ids[-1] == EOS


def test_odd_spaces_and_separators_come_back_as_spaces(copier: tuple[Translator, str]):
    """Case 12: a tab, the mark that pieces begin with, and whatever some program takes for a line break."""
    translator, _ = copier
    lines = ["a\tb", "a\u2581b", "a\u2028b", "a\x85b", "a\rb", "a\x0cb"]
    for line in translator.translate(lines):
        assert line.split() == ["a", "b"]
        assert line.splitlines() == [line]


def test_characters_that_nobody_has_seen_never_end_or_split_a_line(copier: tuple[Translator, str]):
    """Without a piece they are unknown and never produced; with byte fallback they come back whole."""
    translator, kind = copier
    lines = ["a \u732b b", "\u732b", "\u0416", "a", "\ufffd"]
    found = list(translator.stream(lines))
    assert [t.text for t in found].count("a") >= 1
    assert len(found) == len(lines)
    assert all("\n" not in t.text and "\u2047" not in t.text for t in found)
    if kind == "bytes":
        assert [t.text for t in found] == lines


def test_blank_lines_are_never_given_to_the_model(copier: tuple[Translator, str]):
    translator, _ = copier
    blanks = ["", " ", "\t", "\u3000", "\u200b", "\u2028", "\x00", "\ufeff \u200d"]
    assert list(translator.stream(blanks)) == [Translation(blank) for blank in blanks]


# --- decoding ---


def test_a_beam_of_one_is_greedy(command, copy_run: Path, tmp_path: Path):
    """Case 47: the same text from `--beam 1`, `--greedy` and the settings that stand for them."""
    source = write(tmp_path / "in", [*sentences(30), "a z z b", " ".join("abcdefgh" * 4)])
    outputs = [
        command("translate", copy_run / "run", source, *options, "--length-penalty", "0.6")
        for options in (["--beam", "1"], ["--greedy"], ["-s", "search.beam=1"], ["-s", "search=greedy"])
    ]
    assert all(code == 0 for code, _, _ in outputs)
    assert len({out for _, out, _ in outputs}) == 1


def test_a_beam_of_one_scores_as_greedy_and_wider_ones_no_worse(copy_run: Path):
    """Case 47: on lines longer than any in training, so that the model is in doubt."""
    lines = [" ".join(random.Random(i).choices("abcdefghijklmnop", k=12)) for i in range(40)]
    found = {}
    for name, search in {
        "greedy": {"name": "greedy"},
        "beam 1": {"name": "beam", "beam": 1},
        "beam 5": {"name": "beam", "beam": 5},
    }.items():
        found[name] = list(Translator(str(copy_run / "run"), "cpu", threads=1, search=search).stream(lines))
    assert [t.text for t in found["greedy"]] == [t.text for t in found["beam 1"]]
    assert [t.score for t in found["greedy"]] == pytest.approx([t.score for t in found["beam 1"]], abs=1e-5)
    means = {name: sum(t.score or 0 for t in some) / len(some) for name, some in found.items()}
    assert means["beam 5"] >= means["greedy"] - 1e-6
    assert [t.text for t in found["beam 5"]] != [t.text for t in found["greedy"]], "the model is never in doubt"


def test_limits_and_penalties_of_the_config_hold_for_greedy_too(tmp_path: Path):
    """Case 47: `--greedy` replaces the search of a run that is configured otherwise, and nothing else."""
    config = make_toy(tmp_path, train=100, steps=2)
    search = "search={name: beam, beam: 2, length_penalty: 0.3, max_ratio: 0.5, max_extra: 0}"
    assert train(variants.load(str(config), [search]), fresh=False) == 0
    beam = Translator(str(tmp_path / "run"), "cpu", threads=1, search={"name": "beam", "beam": 1})
    greedy = Translator(str(tmp_path / "run"), "cpu", threads=1, search={"name": "greedy"})
    one, other = list(beam.stream(["a b c d e f g", "b"])), list(greedy.stream(["a b c d e f g", "b"]))
    assert [(t.text, t.tokens, t.truncated) for t in one] == [(t.text, t.tokens, t.truncated) for t in other]
    assert [t.score for t in one] == pytest.approx([t.score for t in other], abs=1e-5)
    assert max(t.tokens for t in one) <= 4


def test_scores_are_those_of_a_teacher_forced_pass(copy_run: Path, translator: Translator):
    """Case 47: score(translate(x)) within 1e-4."""
    lines = [line for line in sentences(25) if line]
    found = list(translator.stream(lines))
    tokenizer = translator.tokenizer
    targets = tokenizer.encode_tgt([t.text for t in found])
    rescored = log_probs(translator.model, tokenizer.encode_src(lines), targets, torch.device("cpu"))
    for translation, scores in zip(found, rescored, strict=True):
        assert not translation.truncated
        assert translation.tokens == len(scores) - 1
        assert translation.score == pytest.approx(float(scores.sum()) / len(scores), abs=1e-4)


def test_decoding_step_by_step_is_a_full_pass(translator: Translator):
    """Case 48, on the trained model."""
    [src] = translator.tokenizer.encode_src(["a b c d e f g h"])
    src_BS = torch.from_numpy(src.astype(np.int64))[None]
    tokens = torch.tensor([[2, *src[:-1].tolist()]])
    with torch.inference_mode():
        full = translator.model.logits(translator.model(src_BS, tokens)).log_softmax(-1)
        state = translator.model.start(src_BS, 1)
        for t in range(tokens.shape[1]):
            torch.testing.assert_close(translator.model.step(tokens[:, t], state), full[:, t], rtol=0, atol=1e-4)


def test_a_translation_that_hits_the_limit_says_so(copy_run: Path):
    short = Translator(str(copy_run / "run"), "cpu", threads=1, search={"max_ratio": 0.0, "max_extra": 3})
    [cut, whole] = short.stream(["a b c d e", "a b"])
    assert (cut.text, cut.truncated) == ("a b c", True)
    assert (whole.text, whole.truncated) == ("a b", False)


def test_translating_twice_gives_the_same_bytes(command, copy_run: Path, tmp_path: Path):
    """Case 55."""
    source = write(tmp_path / "in", sentences(30, blank=0.1))
    once, twice = (command("translate", copy_run / "run", source, "--threads", "2") for _ in range(2))
    assert once == twice


def test_the_library_translates_in_two_lines(copy_run: Path):
    import nmt

    assert nmt.Translator(str(copy_run / "run"), threads=1).translate(["c a b", ""]) == ["c a b", ""]


# --- the process ---


def spawn(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "nmt", *map(str, arguments)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_file_under_the_final_name(copy_run: Path, tmp_path: Path, number: int, code: int):
    """Case 39: the input is a pipe that does not end, so the command is stopped in the middle of its work."""
    process = spawn("translate", copy_run / "run", "-", "-o", tmp_path / "out", stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stderr is not None
    # More than the pipe holds: when all is written, the command has begun to read, and has opened its output.
    process.stdin.write(b"a b c\n" * 30_000)
    process.stdin.flush()
    process.send_signal(number)
    err = process.stderr.read()
    assert process.wait() == code, err.decode()
    assert b"Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error(copy_run: Path, tmp_path: Path):
    """`nmt translate ... | head -1`: no traceback, and no complaint."""
    source = write(tmp_path / "in", sentences(3000))
    process = spawn("translate", copy_run / "run", source, "--greedy", "--threads", "1", stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read().decode()
    process.wait()
    assert err == ""


def test_results_go_to_stdout_and_words_to_stderr(copy_run: Path, tmp_path: Path):
    """Case 62: a log without bars, and nothing but translations on stdout."""
    done = run_nmt(
        *("translate", copy_run / "run", "-s", "search.max_ratio=0.1", "--threads", "1"),
        stdin=("a b\n" + "a " * 1100 + "\n").encode(),
    )
    assert done.returncode == 0
    first, second, rest = done.stdout.split(b"\n")
    assert (first, rest) == (b"a b", b"") and second
    warnings = done.stderr.decode().splitlines()
    assert "line 2 has 1,100 pieces" in warnings[0]
    assert warnings[1:] and all(line.startswith("warning: 1 translation ") for line in warnings[1:])
    assert b"\r" not in done.stderr and b"%|" not in done.stderr


# --- evaluation ---


def sacrebleu_command(*arguments: str | Path) -> float:
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments), "-w", "10"]
    return float(json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["score"])


RAW = [
    "The cat  sat on the mat .",
    "Tom &amp; Jerry &quot;run&quot;",
    "\u00a1Hola! \u732b <unk> ok, then that is it",
    "one\u2028line, still one line and more",
    "what\x0cever it is that stands here",
    "\u201cquoted\u201d \u2013 and a dash, said she",
]


def test_a_reference_scores_100_against_itself_and_is_left_as_it_is(command, tmp_path: Path):
    """Case 56: unknown characters, double spaces, entities and separators are untouched."""
    reference = write(tmp_path / "ref", RAW)
    changed = write(tmp_path / "hyp", [line.replace("&amp;", "and").replace("cat  sat", "cat sat") for line in RAW])
    for hypothesis, exactly in ((reference, 100.0), (changed, None)):
        code, out, _ = command("evaluate", "--hyp", hypothesis, "--ref", reference, "--tgt-lang", "en", "--json")
        assert code == 0
        [result] = json.loads(out)
        bleu = result["scores"]["bleu"]["value"]
        assert bleu == pytest.approx(sacrebleu_command(reference, "-i", hypothesis, "-m", "bleu"), abs=1e-9)
        assert exactly is None or bleu == pytest.approx(exactly, abs=1e-9)
        assert result["lines"] == len(RAW)


def test_the_options_of_a_score(command, tmp_path: Path):
    """Two references, case, tokenizer and metrics: the same numbers as from the sacrebleu command."""
    hyp = write(tmp_path / "hyp", ["the Cat sat on a mat today", "Two men, here now"])
    ref1 = write(tmp_path / "ref1", ["The cat sat on the mat today", "two men are here now"])
    ref2 = write(tmp_path / "ref2", ["a cat sat on a mat", "Two men, there now"])

    def score(*options: str) -> dict[str, Any]:
        files = ("--hyp", hyp, "--ref", ref1, "--ref", ref2, "--tgt-lang", "en")
        code, out, err = command("evaluate", *files, "--json", *options)
        assert code == 0, err
        [result] = json.loads(out)
        return result["scores"]

    plain = score()
    assert plain.keys() == {"bleu", "chrf"}
    assert plain["bleu"]["value"] == pytest.approx(sacrebleu_command(ref1, ref2, "-i", hyp, "-m", "bleu"), abs=1e-9)
    assert "nrefs:2" in plain["bleu"]["signature"]
    lower = score("--lowercase", "--metric", "bleu")
    assert lower.keys() == {"bleu"} and "case:lc" in lower["bleu"]["signature"]
    assert lower["bleu"]["value"] == pytest.approx(sacrebleu_command(ref1, ref2, "-i", hyp, "-lc"), abs=1e-9)
    assert "tok:intl" in score("--tokenize", "intl")["bleu"]["signature"]
    ter = score("--metric", "ter", "--metric", "chrf")
    assert ter.keys() == {"ter", "chrf"}
    assert ter["ter"]["value"] == pytest.approx(sacrebleu_command(ref1, ref2, "-i", hyp, "-m", "ter"), abs=1e-9)


def test_the_number_in_the_log_is_the_number_of_evaluate(command, copy_run: Path):
    """Case 57: the same checkpoint on the validation set, by real translations."""
    run = copy_run / "run"
    recorded = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    checked = 0
    for directory in sorted((run / "checkpoints").glob("step-*")):
        step, averaged = int(directory.name[5:13]), directory.name.endswith(".average")
        [row] = [r for r in recorded if r["kind"] == "valid" and r["step"] == step and bool(r["averaged"]) == averaged]
        code, out, err = command("evaluate", directory, "-t", "valid", "--json", "--threads", "1")
        assert code == 0, err
        [result] = json.loads(out)
        for name in ("bleu", "chrf"):
            assert result["scores"][name] == {"value": row[name], "signature": row["signature"][name]}
        assert result["search"] == row["search"] and result["step"] == step
        stem = directory.name
        assert (run / "valid" / f"{stem}.en").read_bytes() == (run / "evaluate" / f"valid.{stem}.beam2.en").read_bytes()
        checked += 1
    assert checked >= 2


def test_results_are_kept_with_the_run(command, copy_run: Path):
    code, out, _ = command("evaluate", copy_run / "run", "--json", "-s", "search.beam=3", "--threads", "1")
    assert code == 0
    [result] = json.loads(out)
    assert result.keys() >= {
        "system",
        "test",
        "lines",
        "search",
        "scores",
        "step",
        "config",
        "data",
        "tokenizer",
        "nmt",
    }
    assert (result["test"], result["lines"], result["search"]["beam"]) == ("toy", 40, 3)
    best = checkpoint.find(str(copy_run / "run")).directory
    stem = copy_run / "run" / "evaluate" / f"toy.{best.name}.beam3"
    assert json.loads(Path(f"{stem}.json").read_text()) == result
    hypotheses = Path(f"{stem}.en").read_text().splitlines()
    references = (copy_run / "test.tgt").read_text().splitlines()
    assert result["scores"]["bleu"]["value"] == sacrebleu.corpus_bleu(hypotheses, [references]).score


def test_a_model_and_a_file_are_scored_alike(command, copy_run: Path, tmp_path: Path):
    """Own files instead of a set of the config; the table for people shows the same numbers."""
    lines = copy_lines(15, 77)
    source, reference = (
        write(tmp_path / "src", lines),
        write(tmp_path / "ref", [line.replace("a", "b") for line in lines]),
    )
    files = ("--src", source, "--ref", reference)
    code, out, err = command("evaluate", copy_run / "run", *files, "--json", "--threads", "1")
    assert code == 0, err
    [of_model] = json.loads(out)
    assert command("translate", copy_run / "run", source, "-o", tmp_path / "hyp", "--threads", "1")[0] == 0
    code, out, _ = command("evaluate", "--hyp", tmp_path / "hyp", "--ref", reference, "--tgt-lang", "en")
    assert code == 0
    text = out.decode()
    assert f"bleu {of_model['scores']['bleu']['value']:.2f}" in text
    assert of_model["scores"]["bleu"]["signature"] in text
    assert text.splitlines()[-1].startswith("  length ratio"), "of a file nothing more is known"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "MODEL"),
        (["--hyp", "hyp"], "--ref"),
        (["--hyp", "hyp", "--ref", "ref"], "--tgt-lang"),
        (["--hyp", "hyp", "--ref", "short", "--tgt-lang", "en"], "2 lines, but"),
        (["--hyp", "hyp", "--ref", "missing", "--tgt-lang", "en"], "missing: no such file"),
        (["RUN", "-t", "nonsense"], "there is no such set"),
        (["RUN", "--src", "hyp"], "--ref"),
        (["RUN", "--ref", "ref"], "--src"),
        (["RUN", "--metric", "blue"], "did you mean `bleu`"),
        (["RUN", "--tokenize", "nonsense"], "tokenize must be"),
        (["--hyp", "empty", "--ref", "empty", "--tgt-lang", "en"], "no lines"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_in_an_evaluation_are_one_line(
    command, copy_run: Path, tmp_path: Path, monkeypatch, arguments, said: str
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "hyp", ["a", "b"]), write(tmp_path / "ref", ["a", "b"])
    write(tmp_path / "short", ["a"]), write(tmp_path / "empty", [])
    code, out, err = command("evaluate", *[str(copy_run / "run") if a == "RUN" else a for a in arguments])
    assert (code, out) == (2, b""), err
    assert said in err
    assert err.startswith("error: ") and err.count("\n") == 1


def test_a_moved_run_is_evaluated_on_its_own_validation_set(copy_run: Path, tmp_path: Path, command):
    """Case 21: a run directory is whole, wherever it lies."""
    shutil.copytree(copy_run / "run", tmp_path / "moved")
    shutil.rmtree(tmp_path / "moved" / "evaluate", ignore_errors=True)
    (copy_run / "run").rename(copy_run / "away")
    try:
        code, out, err = command("evaluate", tmp_path / "moved", "-t", "valid", "--json", "--threads", "1")
    finally:
        (copy_run / "away").rename(copy_run / "run")
    assert code == 0, err
    assert json.loads(out)[0]["lines"] == 30
    assert list((tmp_path / "moved" / "evaluate").iterdir())


def test_a_checkpoint_outside_of_its_run_writes_nothing_around_it(copy_run: Path, tmp_path: Path, command):
    best = checkpoint.find(str(copy_run / "run")).directory
    shutil.copytree(best, tmp_path / "some" / "where" / "model")
    code, out, err = command("evaluate", tmp_path / "some" / "where" / "model", "--json", "--threads", "1")
    assert code == 0, err
    assert math.isfinite(json.loads(out)[0]["scores"]["bleu"]["value"])
    assert sorted(p.name for p in (tmp_path / "some").rglob("*") if p.is_dir()) == ["model", "where"]


def test_a_checkpoint_that_a_training_deletes_while_it_is_loaded_is_looked_for_again(
    copy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shutil.copytree(copy_run / "run", tmp_path / "run")
    best, load_model = checkpoint.find(str(tmp_path / "run")).directory, Checkpoint.load_model

    def too_late(found: Checkpoint) -> Transformer:
        if found.directory == best:
            shutil.rmtree(best)
        return load_model(found)

    monkeypatch.setattr(Checkpoint, "load_model", too_late)
    assert Translator(str(tmp_path / "run"), "cpu", threads=1).translate(["a b"]) == ["a b"]
    with pytest.raises(NmtError, match="does not exist"):
        Translator(str(best), "cpu", threads=1)


def test_a_wrong_search_is_an_error_before_the_model_is_used(copy_run: Path):
    with pytest.raises(ConfigError, match="did you mean `beam`"):
        Translator(str(copy_run / "run"), "cpu", threads=1, search={"beams": 3})
    with pytest.raises(NmtError, match="beam"):
        Translator(str(copy_run / "run"), "cpu", threads=1, search={"beam": 0})


@pytest.mark.parametrize("search", ["greedy", "beam"])
def test_a_model_that_diverged_is_one_clear_error(copy_run: Path, search: str) -> None:
    translator = Translator(str(copy_run / "run"), search={"name": search})
    with torch.no_grad():
        translator.model.projection.weight.fill_(3e38)
    with pytest.raises(NmtError, match=r"^line 2: the model's scores are no finite numbers"):
        translator.translate(["", "a b"])
