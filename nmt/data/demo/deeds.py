"""Constructions of doing: what somebody does, did, will do, wants, can or must do, and is asked to do."""

from __future__ import annotations

import re

from nmt.data.demo import words as w
from nmt.data.demo.draw import Draw
from nmt.data.demo.grammar import Action, Pair, clause, event, question, say
from nmt.data.demo.words import Term, rows, terms

DRESSED = rows("穿着 wear: cloth; 戴着 wear: worn; 拿着 hold: small book")
POSTURES = rows("""
坐 sit: 椅子上 沙发上 床上 树下面 窗户旁边
站 stand: 门后面 树下面 窗户旁边 学校后面
躺 lie: 床上 沙发上 树下面
""")
REQUESTS = rows("""
打开 open: door bag; 关上 close: door; 给我 give: small book drink fruit letter
带来 bring: small book gadget; 拿走 take away: small book bag
洗一下 wash: cloth ware fruit; 修一下 repair: bike gadget car
""")
SKILLS = terms("游泳 swim; 跳舞 dance; 唱歌 sing; 做饭 cook; 下棋 play chess; 弹钢琴 play the piano")
ABOUT_TOWN = "学校 医院 机场 博物馆 动物园 海边 酒店 书店 工厂 超市 火车站 银行 图书馆 公园 电影院"
# Where one puts a thing: nobody puts the cat there.
PUT = [(spot, re.sub("[猫狗]", "", kinds)) for spot, kinds in w.INDOOR if spot.zh[-1] in "上里"]


def did(g: Draw) -> Pair:
    action = g.deed("d l l", "a a a num num this that")
    return g.tell("did", action, g.time("past", action, 0.6))


def did_or_not(g: Draw) -> Pair:
    action = g.act() if g.chance(0.3) else g.deed("d l", "this that those")
    return g.tell("did did-not", action, g.time("past", action, 0.6), ask=0.25)


def act(g: Draw) -> Pair:
    """Activities, with when, where and with whom."""
    subject, action = g.who(), g.act()
    name = g.word("did did will does does")
    tense = w.ASPECT[name].tense
    time = g.one((w.EVER if tense == "present" else w.NEAR)[tense])
    friend = g.other(subject) if g.chance(0.25) else None
    return say(event(subject, name, action, time, friend=friend, place=g.perhaps(action.place, 0.5)))


def habit(g: Draw) -> Pair:
    """常常, 从来不, 每天."""
    if g.chance(0.25):
        return g.tell("does", g.deed("h", "bare", 0), g.time("present"))
    action = g.act() if g.chance(0.5) else g.deed("h", "bare", 0)
    return g.tell(w.OFTEN, action, place=g.perhaps(action.place, 0.5))


def routine(g: Draw) -> Pair:
    """At what hour."""
    (verb, hours), subject = g.one(w.ROUTINE), g.who()
    hour = g.one([count for count in w.COUNTS if count.zh in hours.split()])
    time = g.one(w.NEAR["past"][:2] + w.NEAR["present"][:1] + w.EVER["present"][5:])
    tense = "past" if time in w.NEAR["past"] else "present"
    if g.chance(0.25):
        zh, word = g.one((("几点", "what time"), ("什么时候", "when")))
        en = clause(subject, verb, tense, time.en, ask=True)
        return question((f"{subject.zh}{time.zh}{zh}{verb.zh}", en), word)
    en = clause(subject, verb, tense, f"at {hour.en} o'clock", time.en)
    return say((f"{subject.zh}{time.zh}{hour.zh}点{verb.zh}", en))


def will(g: Draw) -> Pair:
    action = g.deed("w", "a a num this that")
    return g.tell("will will will-not", action, g.time("will", action))


def now(g: Draw) -> Pair:
    action = g.act() if g.chance(0.45) else g.deed("p", "a a this that")
    return g.tell("now now still", action, place=g.perhaps(action.place, 0.4), ask=0.15)


def wearing(g: Draw) -> Pair:
    """着: what one wears or holds, and how and where one sits."""
    subject = g.who(single=True)
    if g.chance(0.7):
        verb, kinds = g.one(DRESSED)
        thing = g.thing(kinds, "a", 0.5)
        return say((f"{subject.zh}{verb.zh}{thing.zh}", clause(subject, verb, "now", thing.en)))
    verb, places = g.one(POSTURES)
    spot = g.one([spot for spot, _ in w.SPOT if spot.zh in places.split()])
    return say((f"{subject.zh}在{spot.zh}{verb.zh}着", clause(subject, verb, "now", spot.en)))


def ever(g: Draw) -> Pair:
    """去过, 没看过, 从来没...过."""
    gone = Action(Term("去", "be"), g.one(w.TOWNS + w.PLACE[:9]).to)
    action = g.one((gone, g.deed("g", "this that those", 0.1), g.deed("x", "bare", 0)))
    return g.tell("has has has-not has-never", action, ask=0.2)


def modal(g: Draw) -> Pair:
    action = g.act() if g.chance(0.4) else g.deed("w", "a a this that num")
    names = g.one(("should should-not must can cannot", "could", "wants wants-not"))
    return g.tell(names, action, ask=0 if names.startswith("should") else 0.3)


def skill(g: Draw) -> Pair:
    """Skills and languages; learning and teaching them; for how long."""
    subject, tongue, mode = g.who(), g.one(w.TONGUES), g.random()
    if mode < 0.5:
        speak = Term(f"说{tongue.zh}", f"speak {tongue.en}")
        return g.tell("knows knows knows-not", Action(g.one([speak, speak, *SKILLS])), ask=0.2)
    if mode < 0.75:
        pupil, name = g.other(subject), g.word("does will")
        lesson = Term(pupil.zh + tongue.zh, f"{pupil.object} {tongue.en}")
        return say(event(subject, name, Action(Term("教", "teach"), lesson), g.time(w.ASPECT[name].tense)))
    years = g.one(w.COUNTS[:9])
    course = Term(f"{years.zh}年{tongue.zh}", f"{tongue.en} for {years.en} years")
    return say(event(subject, "did", Action(Term("学", "study"), course)))


def go(g: Draw) -> Pair:
    """去: where, by what, and to do what."""
    subject, action, mode = g.who(), g.act(), g.random()
    name = g.word("did will does")
    tense = w.ASPECT[name].tense
    place = g.one(w.PLACE if tense == "present" else w.PLACE + w.TOWNS)
    if mode < 0.42:
        ride = g.one(w.VEHICLES[3:] if tense == "present" else w.VEHICLES[:3] + w.VEHICLES)
        place = g.one(w.TOWNS) if ride in w.VEHICLES[:3] else w.SITES[g.word(ABOUT_TOWN)]
        verb = Term(f"坐{ride.zh}去{place.zh}", f"go {place.to.en} by {ride.en}")
    elif mode < 0.67 and action.place:
        verb = Term(f"去{action.place.zh}{action.zh()}", f"go {action.place.to.en} to {action.en()}")
    else:
        name = g.one((name, "did-not", "will-not")) if g.chance(0.4) else name
        return say(event(subject, name, Action(w.GO, place.to), g.time(w.ASPECT[name].tense)))
    return say(event(subject, name, Action(verb), g.time(tense)))


def ba(g: Draw) -> Pair:
    """把: what one did with a thing, where one put it, to whom one gave it."""
    subject, mode, determiners = g.who(), g.random(), "the the this that my"
    time, other, place = g.time("past", g.act(), 0.3), g.other(subject), g.one(w.PLACE)
    if mode < 0.5:
        verb, kinds = g.one(w.RESULT)
        determiners = "the this that" if verb.en in ("eat", "drink") else determiners
        end = Term(verb.zh)
    elif mode < 0.75:
        spot, kinds = g.one(PUT)
        verb, end = Term("", "put"), Term(f"放在{spot.zh}了", spot.en)
    elif mode < 0.9:
        verb, kinds = g.one(terms("送给 give; 借给 lend; 卖给 sell")), "small book bike gadget bag worn"
        end = Term(f"{verb.zh}了{other.zh}", f"to {other.object}")
    else:
        verb, kinds = Term("", "leave"), "small gadget book worn"
        end = Term(f"忘在{place.zh}了", place.at.en)
    thing = g.thing(kinds, determiners, 0.1)
    en = clause(subject, verb, "past", thing.en, end.en, time.en)
    return say((f"{subject.zh}{time.zh}把{thing.zh}{end.zh}", en))


def please(g: Draw) -> Pair:
    action, (spot, kinds), (verb, targets) = g.act(), g.one(PUT), g.one(REQUESTS)
    if action.place and g.chance(0.25):
        zh, place = f"请不要在{action.place.zh}{action.zh()}", action.place.at
        return say((zh, f"please do not {action.en()} {place.en}"))
    if g.chance(0.4):
        thing = g.thing(kinds, "the this that my", 0.1)
        return say((f"请把{thing.zh}放在{spot.zh}", f"please put {thing.en} {spot.en}"))
    thing = g.thing(targets, "the the this that", 0.1)
    receiver = " to me" if verb.en == "give" else ""
    return say((f"请把{thing.zh}{verb.zh}", f"please {verb.en} {thing.en}{receiver}"))


def give(g: Draw) -> Pair:
    subject = g.who()
    other = g.other(subject)
    thing = g.thing("small book fruit plant cloth worn gadget 猫 狗", "a a a num")
    gift = Term(other.zh + thing.zh, f"{other.object} {thing.en}")
    return say(event(subject, "did", Action(Term("送", "give"), gift), g.time("past", None, 0.6)))
