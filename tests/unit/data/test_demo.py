"""The built-in demo corpus keeps what its docstring promises."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from nmt.data import demo
from nmt.data.demo.draw import Draw

Pair = tuple[str, str]


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[Pair]]:
    return {split: demo.pairs(split) for split in demo.SPLITS}


@pytest.fixture(scope="module")
def everything(corpus: dict[str, list[Pair]]) -> list[Pair]:
    return [pair for split in demo.SPLITS for pair in corpus[split]]


def bare(chinese: str) -> str:
    return chinese.removesuffix("。")


def test_sizes(corpus: dict[str, list[Pair]], everything: list[Pair]) -> None:
    assert 21_000 <= len(corpus["train"]) <= 23_500
    assert len(corpus["valid"]) == len(corpus["test"]) == 500
    assert len({(bare(zh), en) for zh, en in everything}) == len(everything) >= 20_000


def test_the_same_bytes_in_every_process(everything: list[Pair]) -> None:
    code = """
import hashlib
from nmt.data import demo
print(hashlib.sha256(repr([p for s in demo.SPLITS for p in demo.pairs(s)]).encode()).hexdigest())
"""
    environment = {
        **os.environ,
        "PYTHONHASHSEED": "1",
        "PYTHONPATH": str(Path(demo.__file__).parents[3]),
    }
    other = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == hashlib.sha256(repr(everything).encode()).hexdigest()


def test_a_caller_cannot_spoil_the_corpus() -> None:
    demo.pairs("test").clear()
    assert len(demo.pairs("test")) == 500


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'dev'.*train, valid, test"):
        demo.pairs("dev")


def test_english_is_a_function_of_chinese(everything: list[Pair]) -> None:
    readings: dict[str, str] = {}
    for zh, en in everything:
        assert readings.setdefault(bare(zh), en) == en


def test_two_readings_of_one_sentence_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "CONSTRUCTIONS", ((2, lambda g: ("他来", g.word("Heads. Tails."))),))
    with pytest.raises(ValueError, match="他来"):
        demo._sentences()


@pytest.mark.parametrize(("held", "seen"), [("test", "train"), ("valid", "train"), ("test", "valid")])
def test_splits_share_no_sentence_on_either_side(corpus: dict[str, list[Pair]], held: str, seen: str) -> None:
    assert not {bare(zh) for zh, _ in corpus[held]} & {bare(zh) for zh, _ in corpus[seen]}
    assert not {en for _, en in corpus[held]} & {en for _, en in corpus[seen]}


def test_the_cat_is_new_but_its_words_are_not(corpus: dict[str, list[Pair]], everything: list[Pair]) -> None:
    assert not [zh for zh, en in everything if "我有一只猫" in zh or en.startswith("I have a cat")]
    train = [bare(zh) for zh, _ in corpus["train"]]
    assert sum(zh.endswith("有一只猫") for zh in train) >= 10
    assert sum(zh.startswith("我有一只") for zh in train) >= 5
    assert sum(zh.startswith("我有一") for zh in train) >= 30
    assert sum("一只猫" in zh for zh in train) >= 40


def test_lexicon(corpus: dict[str, list[Pair]]) -> None:
    entries = demo.lexicon()
    assert len(set(entries)) == len(entries) >= 300
    train = "\n".join(zh for zh, _ in corpus["train"])
    assert not [zh for zh, _ in entries if train.count(zh) < 30]


def test_every_construction_is_well_represented() -> None:
    for quota, make in demo.CONSTRUCTIONS:
        g = Draw(make.__name__)
        assert len({make(g) for _ in range(quota)}) >= quota / 2, make.__name__


MARKS = """
了 过 在 着 不 没 吗 比 把 的 因为 如果 虽然 一只 两 几 这 那
谁 什么 哪里 什么时候 为什么 怎么 哪 还是 昨天 明天 每天
"""


def test_coverage(corpus: dict[str, list[Pair]]) -> None:
    for mark in MARKS.split():
        assert sum(mark in zh for zh, _ in corpus["train"]) >= 50, mark
        assert any(mark in zh for split in ("valid", "test") for zh, _ in corpus[split]), mark


def test_how_sentences_begin_and_end(corpus: dict[str, list[Pair]], everything: list[Pair]) -> None:
    for zh, en in everything:
        assert en[0].isupper() and en[-1] in ".?"
        assert zh.endswith("？") == en.endswith("?")
        assert "  " not in en and " " not in zh and en == en.strip()
        assert not any(mark in en[:-1] for mark in ".?") and " ," not in en
    for split in demo.SPLITS:
        stops = sum(zh.endswith("。") for zh, _ in corpus[split])
        statements = sum(en.endswith(".") for _, en in corpus[split])
        assert 0.4 < stops / statements < 0.6


def test_articles_and_agreement(everything: list[Pair]) -> None:
    wrong = {"I is", "I are", "He have", "He are", "She have", "They is", "They has", "You is", "We is"}
    for _, en in everything:
        for first, second in pairwise(en.rstrip(".?").split()):
            assert f"{first} {second}" not in wrong, en
            if first in ("a", "an"):
                assert (first == "an") == (second[0] in "aeiou" and second != "useful"), en
