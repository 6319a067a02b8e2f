"""Scores and their signatures. Golden values come from the sacrebleu command and from counting by hand."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.metrics import LOWER_IS_BETTER, METRICS, bleu, chrf, ter

HYPOTHESES = ["The cat sat on the mat.", "A dog, barking &amp; running", "he  said: no", "", "Two men are here ."]
REFERENCES = [
    ["The cat is on the mat.", "A dog barks &amp; runs", "He said: \u201cno\u201d", "something", "Two men are here."],
    ["On the mat sat a cat.", "The dog, barking and running", "he  said no", "anything", "There are two men here."],
]


def command(tmp_path: Path, references: list[list[str]], *options: str) -> float:
    """The number that the sacrebleu command gives for the same files."""
    for i, lines in enumerate([HYPOTHESES, *references]):
        (tmp_path / str(i)).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    names = [str(tmp_path / str(i + 1)) for i in range(len(references))]
    out = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *names, "-i", str(tmp_path / "0"), "-w", "10", *options],
        capture_output=True,
        check=True,
    )
    return float(json.loads(out.stdout)["score"])


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (bleu("de"), ["-m", "bleu"]),
        (bleu("de", lowercase=True), ["-m", "bleu", "-lc"]),
        (bleu("zh"), ["-m", "bleu", "-tok", "zh"]),
        (chrf("de"), ["-m", "chrf"]),
        (ter("de"), ["-m", "ter"]),
    ],
    ids=["bleu", "bleu lowercase", "bleu zh", "chrf", "ter"],
)
def test_values_are_those_of_the_sacrebleu_command(tmp_path: Path, metric, options: list[str]):
    """With two references; the corpora hold double spaces, entities and an empty line, which nobody touches."""
    assert metric(HYPOTHESES, REFERENCES).value == pytest.approx(command(tmp_path, REFERENCES, *options), abs=1e-9)


def test_bleu_by_hand():
    """One word of six is wrong, so 5 words, 3 pairs, 2 triples and 1 group of four are right; lengths are equal."""
    value = bleu("en")(["the cat sat on a mat"], [["the cat sat on the mat"]]).value
    precisions = [5 / 6, 3 / 5, 2 / 4, 1 / 3]
    assert value == pytest.approx(100 * math.prod(precisions) ** 0.25, rel=1e-9)


def test_a_signature_says_how_the_number_was_made():
    score = bleu("de", lowercase=True)(HYPOTHESES, REFERENCES)
    parts = dict(part.split(":") for part in score.signature.split("|"))
    assert {"nrefs": "2", "case": "lc", "tok": "13a", "smooth": "exp"}.items() <= parts.items()
    assert "version" in parts
    assert score.tree() == {"value": score.value, "signature": score.signature}


@pytest.mark.parametrize(("language", "tokenizer"), [("en", "13a"), ("de_DE", "13a"), ("zh", "zh"), ("zh-TW", "zh")])
def test_the_target_language_chooses_the_tokenizer(language: str, tokenizer: str):
    assert f"tok:{tokenizer}" in bleu(language)(HYPOTHESES, REFERENCES).signature
    assert "tok:intl" in bleu(language, tokenize="intl")(HYPOTHESES, REFERENCES).signature


@pytest.mark.skipif(importlib.util.find_spec("MeCab") is not None, reason="the extra is installed")
def test_a_tokenizer_that_is_not_installed_is_named_with_the_way_to_get_it():
    """Case 58: never 13a silently."""
    with pytest.raises(ConfigError, match=r"pip install 'sacrebleu\[ja\]'"):
        bleu("ja")


def test_an_unknown_tokenizer_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"13a.*but is 'nonsense'"):
        bleu("de", tokenize="nonsense")


def test_ter_is_the_one_of_the_metrics_that_falls():
    assert {name for name in METRICS if name in LOWER_IS_BETTER} == {"ter"}


def test_ter_in_chinese_counts_characters():
    """One of four characters is wrong; without the support for Chinese it would be one of one word."""
    assert ter("zh")(["我有一猫"], [["我有二猫"]]).value == pytest.approx(25.0)


@pytest.mark.parametrize("code", ["zh", "zh-CN", "zho_Hans", "cmn", "yue"])
def test_chinese_is_chinese_by_any_code(code: str):
    """Case 58: never 13a in silence."""
    assert "tok:zh" in METRICS["bleu"](code)(["我有一只猫。"], [["我有一只猫。"]]).signature


def test_javanese_is_not_japanese():
    assert "asian:no" in METRICS["ter"]("jav")(["a b"], [["a b"]]).signature


@pytest.mark.parametrize(("tokenize", "advice"), [("none", 0), ("13a", 1)])
def test_text_said_to_be_tokenised_is_not_advised_against(
    tokenize: str, advice: int, caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["two men are here ."] * 200
    assert bleu("de", tokenize=tokenize)(lines, [lines]).value == pytest.approx(100)
    assert caplog.text.count("forgot to detokenize") == advice
