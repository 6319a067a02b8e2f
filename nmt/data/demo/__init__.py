"""The built-in demo corpus: synthetic Chinese-English pairs, made by a small grammar.

Nothing here was collected: the tables and the rules are this project's own text, so the corpus needs no
download and no other licence. Every phrase is a small value that knows both of its renderings, and every
construction puts such phrases together on both sides at once. The English of a sentence is a function of its
Chinese: where Chinese may leave tense, number, definiteness or gender open, the grammar always writes the
word that settles it (昨天, 了, 一, 这, 些, 她). `_sentences` checks that promise, and raises when a new rule
breaks it.

A split is decided by the English sentence, so that neither side of a held-out pair, with or without its
final 。, is ever seen in training. All choices come from `Random.random`, the one method whose sequence
Python promises to keep, so the corpus is the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from nmt.data.demo import clauses, deeds, questions, states
from nmt.data.demo.draw import Draw
from nmt.data.demo.grammar import Pair
from nmt.data.demo.words import lexicon

__all__ = ["SPLITS", "lexicon", "pairs"]

SPLITS = ("train", "valid", "test")
HELD_OUT = 500  # pairs in each of valid and test

# Shown to users as a sentence the model has never met; so it may not even begin a longer one.
UNSEEN = ("我有一只猫", "I have a cat")

# How many different sentences the corpus wants of each construction; their order and names decide its bytes.
CONSTRUCTIONS: tuple[tuple[int, Callable[[Draw], Pair]], ...] = (
    (1500, states.have), (380, states.have_not), (270, questions.how_many), (850, states.who_is),
    (520, states.this_is), (1050, states.describe), (800, states.like), (400, states.stative),
    (1300, deeds.did), (750, deeds.did_or_not), (850, deeds.act), (700, deeds.habit), (400, deeds.routine),
    (560, deeds.will), (800, deeds.now), (600, deeds.wearing), (700, deeds.ever), (700, deeds.modal),
    (400, deeds.skill), (850, deeds.go), (1000, states.compare), (1050, deeds.ba), (300, deeds.please),
    (330, deeds.give), (800, states.there_is), (430, states.is_at), (320, questions.where_and_when),
    (270, questions.what), (320, questions.who), (320, questions.why_and_how), (320, questions.which),
    (520, states.numbers), (620, clauses.who_clause), (640, clauses.that_clause), (560, clauses.because),
    (600, clauses.if_clause), (560, clauses.although), (400, clauses.while_clause),
)  # fmt: skip


def _sentences() -> dict[str, list[str]]:
    """Every English sentence with its Chinese, which has no final 。 yet."""
    english: dict[str, str] = {}
    for quota, make in CONSTRUCTIONS:
        g, goal = Draw(f"nmt demo {make.__name__}"), len(english) + quota
        for _ in range(quota * 4):
            if len(english) >= goal:
                break
            zh, en = make(g)
            if UNSEEN[0] in zh or UNSEEN[1] in en:
                continue
            if english.setdefault(zh, en) != en:
                raise ValueError(f"the demo grammar reads {zh} as {english[zh]!r} and as {en!r} ({make.__name__})")
    chinese: dict[str, list[str]] = {}
    for zh, en in english.items():
        chinese.setdefault(en, []).append(zh)
    return chinese


@cache
def _corpus() -> dict[str, list[Pair]]:
    g, chinese = Draw("nmt demo split"), _sentences()
    order = sorted(chinese, key=lambda _: g.random())
    test, valid, train = order[:HELD_OUT], order[HELD_OUT : 2 * HELD_OUT], order[2 * HELD_OUT :]
    corpus = {}
    for split, sentences in (("train", train), ("valid", valid), ("test", test)):
        # A held-out English keeps one Chinese, so that it counts once.
        kept = None if split == "train" else 1
        found = [(zh, en) for en in sentences for zh in chinese[en][:kept]]
        corpus[split] = [(zh if zh[-1] == "？" or g.chance(0.5) else zh + "。", en) for zh, en in found]
    return corpus


def pairs(split: str) -> list[Pair]:
    """The (Chinese, English) pairs of one split."""
    if split not in SPLITS:
        raise ValueError(f"the demo corpus has no split {split!r}, only {', '.join(SPLITS)}")
    return list(_corpus()[split])
