"""Questions with a question word: how many, where, when, what, who, why, how and which."""

from __future__ import annotations

from nmt.data.demo import words as w
from nmt.data.demo.draw import Draw
from nmt.data.demo.grammar import Action, Pair, clause, event, fact, question
from nmt.data.demo.states import OWNED
from nmt.data.demo.words import NOTHING, Term, terms

WHERE = Term("哪里")
MADE = terms("吃 eat; 喝 drink; 买 buy; 找 look for; 写 write; 画 draw; 做 do")


def how_many(g: Draw) -> Pair:
    if g.chance(0.5):
        spot, kinds = g.one(w.SPOT)
        zh, en = f"{spot.zh}有几", f"are there {spot.en}"
    else:
        (zh, en), kinds = fact(g.who(), w.HAVE, Term("几"), ask=True), OWNED
    noun = g.noun(kinds)
    return question((f"{zh}{noun.measure}{noun.zh}", en), f"how many {noun.many()}")


def where_and_when(g: Draw) -> Pair:
    subject, mode = g.who(), g.random()
    zh, word = g.one((("在哪里", "where"), ("什么时候", "when")))
    if mode < 0.2:
        return question(fact(subject, w.LIVE, WHERE, ask=True), "where")
    if mode < 0.4:
        subject = g.thing("small book gadget pet bike worn", "my", 0.1) if g.chance(0.7) else subject
        return question(fact(subject, w.IS_AT, WHERE, ask=True), "where")
    if mode < 0.6:
        plan = Term("打算什么时候去", "plan to go")
        return question(fact(subject, plan, g.one(w.TOWNS + w.PLACE).to, ask=True), "when")
    action = g.deed("d l", "this that", 0.1)
    en = clause(subject, action.verb, "past", action.object.en, ask=True)
    return question((f"{subject.zh}是{zh}{action.zh()}的", en), word)


def what(g: Draw) -> Pair:
    action, name = Action(g.one(MADE), Term("什么"), daily=True), g.word("now now did did will wants")
    tense = w.ASPECT[name].tense
    time = g.time(tense, action) if tense in w.NEAR else NOTHING
    return question(event(g.who(), name, action, time, ask=True), "what")


def who(g: Draw) -> Pair:
    """谁, as a subject and as an owner."""
    mode, noun = g.random(), g.noun(OWNED)
    zh, this = g.one((("这", "this"), ("那", "that")))
    if mode < 0.3:
        action = g.act()
        return question(event(w.NOBODY, "now", action, place=g.perhaps(action.place, 0.5)), particle="")
    if mode < 0.6:
        action = g.deed("d l", "this that those", 0.1)
        return question(event(w.NOBODY, "did", action, g.time("past", action, 0.4)), particle="")
    if mode < 0.75:
        return question(fact(w.NOBODY, w.HAVE, g.phrase(noun, "a num")), particle="")
    if mode < 0.85:
        man = g.noun("man")
        return question((f"{zh}{man.measure}{man.zh}是谁", f"is {this} {man.en}"), "who")
    owned = g.noun("pet book car") if noun.unit else noun
    return question((f"{zh}是谁的{owned.zh}", f"{owned.en} is {this}"), "whose")


def why_and_how(g: Draw) -> Pair:
    subject, action, mode = g.who(), g.act(), g.random()
    if mode < 0.3:
        thing = g.thing("animal fruit drink book car", "bare this that", 0)
        return question(fact(subject, Term("为什么喜欢", "like"), thing, ask=True), "why")
    if mode < 0.5:
        mood = g.one(w.MOODS["name"])
        so = Term(f"为什么这么{mood.zh}", f"so {mood.en}")
        return question(fact(subject, w.IS_SO, so, ask=True), "why")
    if mode < 0.75:
        time = g.time("past", action)
        return question(event(subject, "did-not", action, Term(f"{time.zh}为什么", time.en), ask=True), "why")
    place, name = g.one(w.PLACE), g.word("does will")
    time = g.one(w.NEAR[w.ASPECT[name].tense][:3])
    return question(event(subject, name, Action(Term("怎么去", "go"), place.to), time, ask=True), "how")


def which(g: Draw) -> Pair:
    """哪, 还是, 多少钱."""
    subject, mode = g.who(), g.random()
    noun = g.noun("pet wild book show song cloth worn car bike gadget fruit dish drink")
    if mode < 0.35:
        liked = Term(f"哪{noun.measure}{noun.zh}")
        return question(fact(subject, w.LIKE, liked, ask=True), f"which {noun.one()}")
    if mode < 0.7:
        other = g.one([other for other in w.NOUN[noun.kind] if other != noun])
        either = Term(f"{noun.zh}还是{other.zh}", f"{noun.bare()} or {other.bare()}")
        return question(fact(subject, w.LIKE, either, ask=True), particle="")
    thing = g.thing("goods fruit car", "this that these those", 0.1)
    return question(fact(thing, w.COST, Term("多少钱"), ask=True), "how much")
