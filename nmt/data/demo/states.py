"""Constructions of being and having: who and what there is, where, and what it is like."""

from __future__ import annotations

from nmt.data.demo import words as w
from nmt.data.demo.draw import Draw
from nmt.data.demo.grammar import Pair, clause, fact, question, say
from nmt.data.demo.words import NOTHING, Adjective, Phrase, Term, article, join, rows, terms

OWNED = "pet pet pet sibling mate book cloth worn bike small bag gadget car seat furniture"
THINGS = """
pet pet wild wild fruit fruit dish meal meal meal drink book letter pic show song cloth worn bike car ware bag
gadget seat furniture
"""
STATIVE = rows("需要 need: goods car drink; 想要 want: goods car drink; 认识 know: job mate folk boy girl")


def have(g: Draw) -> Pair:
    # Mostly pets and pronouns: the unseen sentence is to be met from every side.
    subject = g.one(w.PRONOUN) if g.chance(0.3) else g.who()
    owned = g.thing("pet" if g.chance(0.4) else OWNED, "a a a num", 0.15)
    if g.word("有 有 有 有 有 也有") == "也有":
        return say((f"{subject.zh}也有{owned.zh}", clause(subject, w.HAVE, "present", owned.en, adverb="also")))
    return g.state(subject, w.HAVE, owned, ask=0.05, no=0)


def have_not(g: Draw) -> Pair:
    """Under 有 asked or denied, a bare noun is any one: 没有狗."""
    noun = g.noun(OWNED)
    return g.state(g.who(), w.HAVE, Term(noun.zh, article(noun.one())), ask=0.4, no=1)


def who_is(g: Draw) -> Pair:
    """Occupation, nationality, and what somebody is to somebody."""
    subject, noun = g.who(known=True), g.noun("job")
    many = subject.be == "are" and subject.zh != "你"
    what = Term(noun.zh, noun.plural if many else article(noun.en))
    if g.chance(0.5):
        what = g.one(w.NATIONS)
    elif g.chance(0.3):
        subject = g.one([*w.NAMED, w.BACK["他"], w.BACK["她"], w.BACK["他们"]])
        noun = g.noun("mate mate 老师 医生 学生 经理")
        owner = g.one([w.BACK["我"], w.BACK["你"], w.BACK["我们"]])
        what = owner.own(noun.zh, noun.plural if subject.be == "are" else noun.en)
    return g.state(subject, w.IS, what)


def this_is(g: Draw) -> Pair:
    many = g.chance(0.3)
    noun = g.noun("pet wild fruit book bike car bag gadget small" if many else f"{THINGS} small")
    word = g.one(terms("这些 these; 那些 those" if many else "这 this; 那 that"))
    owned = not noun.unit and noun.kind != "wild"
    what = g.phrase(noun, "bare" if many else "a my" if owned else "a")
    return g.state(Phrase(word.zh, word.en, "are" if many else "is"), w.IS, what)


def describe(g: Draw) -> Pair:
    time, moody = NOTHING, g.chance(0.5)
    if g.chance(0.2):
        town, tongue, kind = g.one(w.TOWNS), g.one(w.TONGUES), g.word("city language language language")
        named: Term = town if kind == "city" else tongue
        subject, look = Phrase(named.zh, named.en), g.one(w.TRAITS[kind])
    elif g.chance(0.5):
        noun, look = g.trait()
        own = "these" if noun.kind == "wild" else "my"
        subject = g.phrase(noun, f"this that those {own}", 0)
        if noun.kind in w.HUES and g.chance(0.3):
            hue = g.one(w.HUES[noun.kind])
            return g.state(subject, w.IS, Term(hue.attribute, hue.en))
    else:
        subject = g.who()
        look = g.one((w.MOODS if moody else w.TRAITS)[subject.kind])
        time = g.time("past", g.act(), 0.4) if moody else NOTHING
    if g.chance(0.12):
        return question(fact(subject, w.IS_SO, look, time, ask=True))
    quality, no = _quality(g, look)
    return say(fact(subject, w.IS_SO, quality, time, no=no))


def _quality(g: Draw, look: Adjective) -> tuple[Term, bool]:
    """很高, 非常贵, 有点累, 太大了, or denied."""
    degree = g.word("很 很 很 非常 不 有点 太" if look.unwelcome else "很 很 很 非常 不")
    if degree == "不":
        return look, True
    word = {"很": "", "非常": "very", "有点": "a little", "太": "too"}[degree]
    return Term(f"{degree}{look.zh}{'了' if degree == '太' else ''}", join(word, look.en)), False


def like(g: Draw) -> Pair:
    subject, action = g.who(), g.one((g.act(), g.deed("h", "bare", 0)))
    thing = g.thing(f"animal plant wild {THINGS}", "bare bare bare this that", 0.15)
    other, town = g.other(subject), g.one(w.TOWNS)
    doing, somebody = Term(action.zh(), action.en("ing")), Term(other.zh, other.object)
    what = g.one((thing, thing, thing, thing, thing, doing, doing, somebody, town))
    if g.chance(0.2):
        return say(fact(subject, Term("非常喜欢", "like"), Term(what.zh, f"{what.en} very much")))
    return g.state(subject, w.LIKE, what)


def stative(g: Draw) -> Pair:
    subject, (verb, kinds), town = g.who(), g.one(STATIVE), g.one(w.TOWNS)
    thing = g.thing(kinds, "this that those" if verb.en == "know" else "a a num")
    if not g.chance(0.5):
        return g.state(subject, verb, thing, no=0)
    if g.chance(0.5):
        return g.state(subject, w.LIVE, town.at)
    return g.state(subject, Term("来自", "come from"), town, no=0)


def compare(g: Draw) -> Pair:
    """比, 没有...那么, 和...一样."""
    left, right, look = _compared(g)
    how = g.word("比 比 得多 一点 一样 没有")
    if how in ("一样", "没有"):
        zh = f"没有{right.zh}那么{look.zh}" if how == "没有" else f"和{right.zh}一样{look.zh}"
        en = clause(left, w.IS, "present", f"as {look.en} as {right.object}", no=how == "没有")
        return say((left.zh + zh, en))
    tail, degree = {"比": ("", ""), "得多": (how, "much"), "一点": (how, "a little")}[how]
    rest = Term(f"比{right.zh}{look.zh}{tail}", join(degree, look.comparative, "than", right.object))
    return g.state(left, w.IS_SO, rest, ask=0 if tail else 0.2, no=0)


def _compared(g: Draw) -> tuple[Phrase, Phrase, Adjective]:
    """Two that may be compared, and in what: people, kinds of animal, languages or things."""
    noun, look = g.trait()
    if g.chance(0.45):
        somebody = g.who(single=True)
        return somebody, g.other(somebody), g.one(w.TRAITS["name"] + w.MOODS["name"][:3])
    if noun.kind in ("pet", "wild") and g.chance(0.3):
        others = [animal for animal in w.NOUN["pet"] + w.NOUN["wild"] if animal != noun]
        looks = [look for look in w.TRAITS["wild"] if look in w.TRAITS["pet"]]
        return g.phrase(noun, "bare", 0), g.phrase(g.one(others), "bare", 0), g.one(looks)
    if g.chance(0.1):
        one = g.one(w.TONGUES)
        other = g.one([tongue for tongue in w.TONGUES if tongue != one])
        return Phrase(one.zh, one.en), Phrase(other.zh, other.en), g.one(w.TRAITS["language"])
    words = "this/that" if noun.unit else g.word("this/that my/this these/those")
    left, right = (words.replace("my", "that") if noun.kind == "wild" else words).split("/")
    return g.phrase(noun, left, 0), g.phrase(noun, right, 0), look


def there_is(g: Draw) -> Pair:
    spot, kinds = g.one(w.SPOT)
    noun = g.noun(kinds)
    if g.chance(0.25):
        be, ask = "is" if noun.mass else "are", g.chance(0.4)
        zh, en = f"{'' if ask else '没'}有{noun.zh}", f"{'any' if ask else 'no'} {noun.bare()}"
    else:
        thing, ask = g.phrase(noun, "a a num"), g.chance(0.1)
        be, zh, en = thing.be, f"有{thing.zh}", thing.en
    sides = spot.zh + zh, clause(Phrase("", "there", be), w.IS, "present", en, spot.en, ask=ask)
    return question(sides) if ask else say(sides)


def is_at(g: Draw) -> Pair:
    if g.chance(0.5):
        spot, kinds = g.one(w.SPOT)
        return g.state(g.thing(kinds, "my my this that those", 0.1), w.IS_AT, spot)
    place = g.one([w.HOME, *w.PLACE, *w.TOWNS])
    time = g.time("past", g.act(), 0.4)
    return g.state(g.who(), w.IS_AT, place.at, time, no=0 if time.zh else 0.2)


def numbers(g: Draw) -> Pair:
    """Ages and prices."""
    if g.chance(0.5):
        subject, age = g.one([*w.SINGLE, *w.NAMED]), g.one(w.COUNTS[4:] + w.COUNTS[-2:] + w.ROUND)
        return say(fact(subject, w.IS_SO, Term(f"今年{age.zh}岁", f"{age.en} years old")))
    if g.chance(0.5):
        thing, price = g.thing("book small ware dish drink", "this that", 0.1), g.one(w.ROUND)
    else:
        thing, count = g.thing("bike gadget seat cloth furniture", "this that", 0.1), g.one(w.COUNTS[:8])
        price = Term(f"{count.zh}百", f"{count.en} hundred")
    return say(fact(thing, w.COST, Term(f"{price.zh}块钱", f"{price.en} yuan")))
