"""Clauses and sentences, said on both sides at once; nothing here is left to chance."""

from __future__ import annotations

from dataclasses import dataclass

from nmt.data.demo import words as w
from nmt.data.demo.words import NOTHING, Phrase, Place, Term, inflect, join

Pair = tuple[str, str]


@dataclass(frozen=True)
class Action:
    """A verb with its object; `daily` if last year is no time for it; `place` suits it, if any does."""

    verb: Term
    object: Term = NOTHING
    daily: bool = False
    place: Place | None = None

    def zh(self, mark: str = "") -> str:
        """The Chinese with an aspect marker: 买了书, 看过书, but 跑步了."""
        verb, _, own = self.verb.zh.partition("-")
        if mark == "了" and not self.object.zh:
            return f"{verb}{own}了"
        return f"{verb}{mark}{own}{self.object.zh}"

    def en(self, form: str = "base") -> str:
        """The English outside a finite clause, in one of the forms of its verb."""
        base, _, tail = self.verb.en.partition(" ")
        return join(inflect(base, form), tail, self.object.en)


def finite(be: str, base: str, tense: str, support: bool) -> tuple[str, str]:
    """The auxiliary (or "") and the main verb, agreeing with a subject that takes `be`."""
    third, was = be == "is", "were" if be == "are" else "was"
    if tense in ("now", "then"):
        return (be if tense == "now" else was), inflect(base, "ing")
    if tense == "perfect":
        return ("has" if third else "have"), inflect(base, "participle")
    if tense == "want":
        auxiliary, want = finite(be, "want", "present", support)
        return auxiliary, f"{want} to {base}"
    if tense not in ("present", "past"):
        return tense, base
    if base == "be":
        return (be if tense == "present" else was), ""
    if support:
        return ("did" if tense == "past" else "does" if third else "do"), base
    return "", inflect(base, "past" if tense == "past" else "third" if third else "base")


def clause(
    subject: Phrase, verb: Term, tense: str, *rest: str, no: bool = False, ask: bool = False, adverb: str = ""
) -> str:
    """English; `tense` is present, past, now, then (was doing), perfect, want, or a modal such as will."""
    base, _, tail = verb.en.partition(" ")
    auxiliary, main = finite(subject.be, base, tense, support=no or ask)
    head = (auxiliary, subject.en) if ask else (subject.en, auxiliary)
    return join(*head, "not" if no else "", adverb, main, tail, *rest).replace("can not", "cannot")


def fact(subject: Phrase, verb: Term, rest: Term, time: Term = NOTHING, *, no: bool = False, ask: bool = False) -> Pair:
    """Both sides of a state of things: 他昨天不高兴, 她有一只猫吗."""
    negative = ("没" if verb.zh == "有" else "不") if no else ""
    zh = f"{subject.zh}{time.zh}{negative}{verb.zh}{rest.zh}"
    return zh, clause(subject, verb, "past" if time.en else "present", rest.en, time.en, no=no, ask=ask)


def event(
    subject: Phrase,
    name: str,
    action: Action,
    time: Term = NOTHING,
    *,
    friend: Phrase | None = None,
    place: Place | None = None,
    ask: bool = False,
) -> Pair:
    """Both sides of something done, under the aspect of that name: 我昨天和她一起在公园跑步了."""
    aspect = w.ASPECT[name]
    company = Term(f"和{friend.zh}一起", f"with {friend.object}") if friend else NOTHING
    at = "" if aspect.before.endswith("在") else "在"
    where = Term(at + place.zh, place.at.en) if place else NOTHING
    zh = f"{subject.zh}{time.zh}{aspect.before}{company.zh}{where.zh}{action.zh(aspect.after)}"
    rest = (action.object.en, company.en, where.en, time.en)
    return zh, clause(subject, action.verb, aspect.tense, *rest, no=aspect.no, ask=ask, adverb=aspect.adverb)


def say(sides: Pair) -> Pair:
    zh, en = sides
    return zh, en[0].upper() + en[1:] + "."


def question(sides: Pair, word: str = "", particle: str = "吗") -> Pair:
    """A question; a question word leads the English, and in Chinese stands where its answer would."""
    zh, en = sides[0] + ("" if word else particle), join(word, sides[1])
    return zh + "？", en[0].upper() + en[1:] + "?"


def link(zh: str, en: str, *clauses: Pair) -> Pair:
    """A statement of several clauses, which fill the blanks of both sides."""
    return say((zh.format(*(one for one, _ in clauses)), en.format(*(other for _, other in clauses))))
