"""Sentences of two clauses: one that says which thing is meant, or why, when, if or in spite of what."""

from __future__ import annotations

from nmt.data.demo import words as w
from nmt.data.demo.draw import Draw
from nmt.data.demo.grammar import Action, Pair, clause, event, fact, link, say
from nmt.data.demo.words import Phrase, Place, Term, article, join, lines, terms

LEAVING_A_THING = "buy borrow write read watch draw eat make sell lose find wash repair take"
ADVICE = lines("""
累: 休息 rest; 上床 go to bed
饿: 吃饭 eat
渴: 喝水 drink water
难过: 听音乐 listen to music
紧张: 散步 take a walk; 休息 rest
生气: 散步 take a walk
""")


def who_clause(g: Draw) -> Pair:
    """穿着一件红色的衬衫的女孩是我的同学."""
    noun, (clause_zh, clause_en) = g.noun("boy girl boy girl folk job"), _relative(g)
    that_zh, that = g.one((("", "the"), (f"那{noun.measure}", "that")))
    zh, en = f"{that_zh}{clause_zh}的{noun.zh}", f"{that} {noun.en} {clause_en}"
    subject, mode = Phrase(zh, en, kind=noun.kind), g.random()
    if mode < 0.35:
        owner = g.one([*w.SINGLE, *w.NAMED])
        family = {"boy": w.NOUN["brother"][:2], "girl": w.NOUN["sister"][:2]}.get(noun.kind, [])
        role = g.one(w.NOUN["mate"] + family)
        return say(fact(subject, w.IS, owner.own(role.zh, role.en)))
    if mode < 0.65:
        return say(fact(subject, w.IS_SO, g.one(w.TRAITS[noun.kind]).so))
    verb = g.one((w.LIKE, Term("认识", "know")))
    return g.state(g.who(), verb, subject, ask=0.1)


def _relative(g: Draw) -> Pair:
    """A clause that says which person: 正在跳舞, 住在北京; who is dancing, who lives in Beijing."""
    one, mode, town = Phrase("", "who"), g.random(), g.one(w.TOWNS)
    if mode < 0.3:
        action = g.act()
        return event(one, "now", action, place=g.perhaps(action.place, 0.3))
    if mode < 0.6:
        zh, kind = g.one((("穿着", "cloth"), ("戴着", "worn")))
        noun, hue = g.noun(kind), g.one(w.HUES[kind])
        en = clause(one, Term("", "wear"), "now", article(noun.one(hue.en)))
        return f"{zh}一{noun.measure}{hue.attribute}{noun.zh}", en
    if mode < 0.75:
        return fact(one, w.LIVE, town.at)
    if mode < 0.85:
        tongue = g.one(w.TONGUES)
        return event(one, "knows", Action(Term(f"说{tongue.zh}", f"speak {tongue.en}")))
    return fact(one, w.LIKE, g.thing("animal fruit drink book", "bare", 0))


def that_clause(g: Draw) -> Pair:
    """我昨天买的书很有趣."""
    subject = g.who()
    deed = g.one([deed for deed in w.DEED if deed.verb.en in LEAVING_A_THING.split()])
    verb, noun = deed.verb, g.noun(deed.kinds)
    time = g.time("past", Action(verb, daily="d" in deed.uses))
    that = g.chance(0.3)
    zh = f"{subject.zh}{time.zh}{verb.zh}的{f'那{noun.measure}' if that else ''}{noun.zh}"
    head = f"that {noun.one()}" if that else f"the {noun.en}"
    be = "are" if noun.unit and not that and not noun.mass else "is"
    thing = Phrase(zh, f"{head} that {clause(subject, verb, 'past', time.en)}", be)
    if noun.kind in w.HUES and g.chance(0.3):
        hue = g.one(w.HUES[noun.kind])
        return say(fact(thing, w.IS, Term(hue.attribute, hue.en)))
    if noun.kind in w.TRAITS and g.chance(0.7):
        return say(fact(thing, w.IS_SO, g.one(w.TRAITS[noun.kind]).so))
    return g.state(g.other(subject), w.LIKE, thing, ask=0.1)


def because(g: Draw) -> Pair:
    subject, him, mode, action, place = _scene(g)
    if mode < 0.35:
        why = fact(subject, w.IS_SO, g.one(w.BAD_MOODS).so, g.time("past", action))
        then = event(him, "did-not", action)
    elif mode < 0.6:
        why = _weather(g, "past")
        then = event(subject, "did-not", Action(w.GO, place.to))
    elif mode < 0.75:
        thing = g.thing("cloth bike car gadget seat furniture book", "this that these those", 0.1)
        why = fact(thing, w.IS_SO, Term("太贵了", "too expensive"))
        then = event(subject, "wants-not", Action(Term("买", "buy"), Term("", w.BACK[thing.pronoun].object)))
    else:
        thing = g.thing("pet book show cloth bike car gadget seat", "this that these those my", 0)
        look = g.one(w.TRAITS[thing.kind])
        liking = fact(subject, w.LIKE, thing, no=look.unwelcome)
        return link("{}，因为{}", "{} because {}", liking, fact(w.BACK[thing.pronoun], w.IS_SO, look.so))
    return link("因为{}，所以{}", "because {}, {}", why, then)


def if_clause(g: Draw) -> Pair:
    subject, him, mode, action, place = _scene(g)
    if mode < 0.45:
        given = _weather(g, "present")
        then = event(subject, "would-not", Action(w.GO, place.to) if g.chance(0.6) else action)
    elif mode < 0.8:
        means, town = g.one(terms("时间 time; 钱 money")), g.one(w.TOWNS)
        given = fact(subject, w.HAVE, means)
        if means.en == "money":
            action = Action(Term("买", "buy"), g.thing("book cloth car gadget worn bike", "a num"))
        then = event(him, "would", Action(w.GO, town.to) if g.chance(0.4) else action)
    else:
        mood, advice = g.one(ADVICE)
        given = fact(subject, w.IS_SO, next(look for look in w.MOODS["name"] if look.zh == mood).so)
        then = event(him, "ought", Action(g.one(terms(advice))))
    return link("如果{}，{}", "if {}, {}", given, then)


def although(g: Draw) -> Pair:
    subject, him, mode, action, place = _scene(g)
    if mode < 0.35:
        given = fact(subject, w.IS_SO, g.one(w.BAD_MOODS).so)
        then = event(him, "still", action)
    elif mode < 0.65:
        traits = {trait.zh: trait for trait in w.TRAITS["name"]}
        faults = [*(fault for zh, fault in traits.items() if zh in ("瘦", "懒", "年轻")), *w.BAD_MOODS[:2]]
        given = fact(subject, w.IS_SO, g.one(faults).so)
        virtues = [virtue for zh, virtue in traits.items() if zh in ("聪明", "善良", "勇敢", "友好")]
        then = fact(him, w.IS_SO, g.one(virtues).so)
    elif mode < 0.85:
        thing = g.thing("book cloth bike car gadget seat furniture bag", "this that these those my", 0)
        looks = w.TRAITS[thing.kind]
        bad = g.one([look for look in looks if look.unwelcome])
        # Not what the fault rules out, nor what is neither good nor bad.
        barred = ("大", "小", {"贵": "便宜", "旧": "新", "脏": "干净"}.get(bad.zh))
        good = g.one([look for look in looks if not look.unwelcome and look.zh not in barred])
        given, then = fact(thing, w.IS_SO, bad.so), fact(w.BACK[thing.pronoun], w.IS_SO, good.so)
    else:
        given = fact(w.SKY, w.IS_SO, g.one(terms("很冷 cold; 很热 hot")), g.time("past", action))
        then = event(subject, "did", Action(w.GO, place.to))
    return link("虽然{}，但是{}", "although {}, {}", given, then)


def _scene(g: Draw) -> tuple[Phrase, Phrase, float, Action, Place]:
    """Somebody and the pronoun for them, a share to choose by, something to do and somewhere to go."""
    subject = g.who(known=True)
    return subject, w.BACK[subject.pronoun], g.random(), g.act(), g.one(w.PLACE)


def _weather(g: Draw, tense: str) -> Pair:
    """昨天下雨了; or 明天下雪, of which English speaks in the present after "if"."""
    sky, time = g.one(w.WEATHER), g.time("past" if tense == "past" else "will")
    mark = "了" if tense == "past" else ""
    return f"{time.zh}{sky.zh}{mark}", clause(w.SKY, Term("", sky.en), tense, time.en)


def while_clause(g: Draw) -> Pair:
    """的时候, 以后."""
    subject, mode, action = g.who(), g.random(), g.act()
    if mode < 0.5:
        him, time = g.one(w.PRONOUN), g.time("past", action)
        other = g.other(him)
        home = f"{him.zh}{time.zh}到家", clause(him, Term("", "get home"), "past", time.en)
        doing = f"{other.zh}正在{action.zh()}", clause(other, action.verb, "then")
        return link("{}的时候，{}", "when {}, {}", home, doing)
    if mode < 0.7:
        sky, often = g.one(w.WEATHER), event(subject, g.word(w.OFTEN), action)
        return link("{}的时候，{}", "when {}, {}", (sky.zh, f"it {sky.en}s"), often)
    (first, _), name = g.one(w.ROUTINE[:8]), g.word("does did will")
    time = w.NEAR[w.ASPECT[name].tense][0]
    after = Term(f"{time.zh}{first.zh}以后", join("after", Action(first).en("ing"), time.en))
    return say(event(subject, name, action, after))
