"""Drawing by chance: who and what a sentence is about, and whether it is asserted, denied or asked."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from nmt.data.demo import words as w
from nmt.data.demo.grammar import Action, Pair, event, fact, question, say
from nmt.data.demo.words import NOTHING, Adjective, Noun, Phrase, Place, Term, article, kinds_in

T = TypeVar("T")


class Draw:
    """Random choices, made by `Random.random` alone."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed).random

    def one(self, options: Sequence[T]) -> T:
        return options[int(self.random() * len(options))]

    def word(self, words: str) -> str:
        return self.one(words.split())

    def chance(self, share: float) -> bool:
        return self.random() < share

    def perhaps(self, value: T, share: float) -> T | None:
        return value if self.chance(share) else None

    # ------------------------------------------------------------------------------ things and people

    def noun(self, kinds: str) -> Noun:
        return self.one(w.NOUN[self.one(kinds_in(kinds))])

    def thing(self, kinds: str, determiners: str, adjective: float = 0.2) -> Phrase:
        return self.phrase(self.noun(kinds), determiners, adjective)

    def phrase(self, noun: Noun, determiners: str, adjective: float = 0.2) -> Phrase:
        """A noun under one of the determiners: a, num, this, that, these, those, my, the, bare."""
        choice = self.word(determiners)
        looks = [look for look in w.LOOKS[noun.kind] if not noun.zh.startswith(look.zh)]
        look = self.one(looks) if looks and choice != "the" and self.chance(adjective) else Adjective()
        zh, single, whole = look.attribute + noun.zh, noun.one(look.en), noun.bare(look.en)
        near = "这" if choice in ("this", "these") else "那"
        be, bare_be = "is", "is" if noun.mass else "are"
        # Mine is one, unless it is of a stuff or comes in pairs: my book, my tea, my shoes.
        own, own_be = (whole, bare_be) if noun.unit else (single, "is")
        if choice == "a":
            zh, en = f"一{noun.measure}{zh}", article(single)
        elif choice == "num":
            count = self.one(w.COUNTS[:4])
            zh, en, be = f"{count.zh}{noun.measure}{zh}", f"{count.en} {noun.many(look.en)}", "are"
        elif choice in ("this", "that"):
            zh, en = f"{near}{noun.measure}{zh}", f"{choice} {single}"
        elif choice in ("these", "those") and not noun.mass:
            zh, en, be = f"{near}些{zh}", f"{choice} {whole}", "are"
        elif choice == "my":
            mine = self.one(self.one((w.PRONOUN, w.PRONOUN, w.PRONOUN, w.NAMED))).own(zh, own)
            zh, en, be = mine.zh, mine.en, own_be
        elif choice == "the":
            en, be = f"the {own}", own_be
        else:
            en, be = whole, bare_be
        return Phrase(zh, en, be, noun.kind, "它" if be == "is" else "它们")

    def trait(self) -> tuple[Noun, Adjective]:
        """A thing and what may be said of it, every adjective as often as any other."""
        look = self.one(list(w.SUITS))
        return self.noun(" ".join(w.SUITS[look])), look

    def kin(self) -> Phrase:
        """我妈妈, 汤姆的姐姐."""
        owner = self.one(w.SINGLE if self.chance(0.8) else w.NAMED)
        noun = self.noun(self.word("sibling sibling father mother"))
        kin = owner.own(noun.zh, noun.en)
        zh = kin.zh if owner in w.NAMED else owner.zh + noun.zh
        return Phrase(zh, kin.en, "is", noun.kind, "他" if noun.kind in ("brother", "father") else "她")

    def who(self, *, single: bool = False, known: bool = False) -> Phrase:
        """Somebody, as a subject; `single`: not several; `known`: as he or as she."""
        draw = self.random()
        if draw < 0.65:
            return self.one(w.NAMED if draw > 0.43 else w.SINGLE if single else w.PRONOUN)
        if known or draw < 0.82:
            return self.kin()
        if draw < 0.87:
            return self.thing("mate 老师 医生 经理", "my", 0)
        return self.thing("man", "this that" if single else "this that that these those", 0.15)

    def other(self, subject: Phrase) -> Phrase:
        """Somebody else than the subject."""
        while True:
            other = self.one(w.PRONOUN if self.chance(0.4) else w.NAMED)
            if other.zh[0] not in subject.zh:
                return other

    # ------------------------------------------------------------------------------- actions and times

    def act(self) -> Action:
        verb, places = self.one(w.ACT)
        return Action(verb, daily=True, place=self.one(places))

    def deed(self, uses: str, determiners: str, adjective: float = 0.2) -> Action:
        """A deed fit for one of the uses."""
        use = self.word(uses)
        deed = self.one([deed for deed in w.DEED if use in deed.uses])
        return Action(deed.verb, self.thing(deed.kinds, determiners, adjective), daily="d" in deed.uses)

    def time(self, tense: str, action: Action | None = None, share: float = 1.0) -> Term:
        """A time that goes with the tense and the action, or none."""
        return self.one((w.NEAR if action and action.daily else w.EVER)[tense]) if self.chance(share) else NOTHING

    # --------------------------------------------------------------------------------------- sentences

    def state(
        self, subject: Phrase, verb: Term, rest: Term, time: Term = NOTHING, ask: float = 0.15, no: float = 0.2
    ) -> Pair:
        """A state of things asserted, denied or asked."""
        if self.chance(ask):
            return question(fact(subject, verb, rest, time, ask=True))
        return say(fact(subject, verb, rest, time, no=self.chance(no)))

    def tell(
        self, names: str, action: Action, time: Term = NOTHING, *, place: Place | None = None, ask: float = 0.0
    ) -> Pair:
        """Somebody does something, under one of the named aspects, or is asked about under the first."""
        subject = self.who()
        if self.chance(ask):
            return question(event(subject, names.split()[0], action, time, place=place, ask=True))
        return say(event(subject, self.word(names), action, time, place=place))
