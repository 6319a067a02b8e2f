"""The lexicon: kinds of word that know both of their renderings, and the tables read into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from nmt.data.demo import tables


def join(*words: str) -> str:
    return " ".join(filter(None, words))


def article(words: str) -> str:
    return ("an " if words[0] in "aeiou" and not words.startswith("us") else "a ") + words


def ends_in_i(word: str) -> bool:
    """Whether a final y turns into i before an ending: study, but not play."""
    return word.endswith("y") and word[-2] not in "aeou"


def with_s(word: str) -> str:
    if word.endswith(("s", "sh", "ch", "x")) or word in ("go", "do"):
        return word + "es"
    return word[:-1] + "ies" if ends_in_i(word) else word + "s"


def with_ed(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    return word[:-1] + "ied" if ends_in_i(word) else word + "ed"


def inflect(base: str, form: str) -> str:
    """A verb in one of its forms: base, third, past, participle, ing."""
    stem = base + base[-1] if base in DOUBLED else base
    past, participle = PASTS.get(base) or (with_ed(stem), with_ed(stem))
    third = "has" if base == "have" else with_s(base)
    ing = "lying" if base == "lie" else stem.removesuffix("e") + "ing"
    return {"base": base, "third": third, "past": past, "participle": participle, "ing": ing}[form]


# ------------------------------------------------------------------------------------------- kinds of word


@dataclass(frozen=True)
class Term:
    """A word or a predicate on each side; of a verb, the first English word is inflected (LOOK for, PLAY chess)."""

    zh: str = ""
    en: str = ""


NOTHING = Term()


@dataclass(frozen=True)
class Noun(Term):
    """A common noun; `unit` is the English of a measure word that must be said (a CUP of tea)."""

    measure: str = ""
    plural: str = ""
    kind: str = ""
    unit: str = ""

    @property
    def mass(self) -> bool:
        """Whether the bare noun is one stuff (tea is), rather than many things (cats, shoes, noodles are)."""
        return bool(self.unit) and not self.en.endswith("s")

    def one(self, adjective: str = "") -> str:
        return join(self.unit, "of" if self.unit else "", adjective, self.en)

    def many(self, adjective: str = "") -> str:
        return join(with_s(self.unit), "of", adjective, self.en) if self.unit else join(adjective, self.plural)

    def bare(self, adjective: str = "") -> str:
        return join(adjective, self.en if self.unit else self.plural)


@dataclass(frozen=True)
class Adjective(Term):
    """`attribute` is its Chinese before a noun, empty where that would be odd; an `unwelcome` one complains."""

    attribute: str = ""
    comparative: str = ""
    unwelcome: bool = False

    @property
    def so(self) -> Term:
        return Term(f"很{self.zh}", self.en)


@dataclass(frozen=True)
class Place(Term):
    """A place; `at` is where one is, `to` is what 去 takes."""

    at: Term = NOTHING
    to: Term = NOTHING


@dataclass(frozen=True)
class Phrase(Term):
    """A noun phrase: `be` carries person and number, `pronoun` is the Chinese that refers back to it."""

    be: str = "is"
    kind: str = ""
    pronoun: str = ""
    them: str = ""
    their: str = ""

    @property
    def object(self) -> str:
        return self.them or self.en

    def own(self, zh: str, en: str) -> Term:
        """What belongs to it: 汤姆的书, Tom's book."""
        whose = self.their or f"{self.en}'s"
        return Term(f"{self.zh}的{zh}", f"{whose} {en}")


@dataclass(frozen=True)
class Deed:
    """What one does to things of some kinds; `uses` are letters, as in `tables.DEEDS`."""

    verb: Term
    uses: str
    kinds: str


@dataclass(frozen=True)
class Aspect:
    """How Chinese marks a verb, before and after it, and how English inflects it."""

    before: str
    after: str
    tense: str
    adverb: str = ""
    no: bool = False


# ------------------------------------------------------------------------------------- reading the tables


def lines(table: str) -> list[tuple[str, str]]:
    """The lines of a table, each a head and its words."""
    parts = (line.partition(": ") for line in table.strip().split("\n"))
    return [(head, words) for head, _, words in parts]


def entries(table: str) -> list[str]:
    return [entry.strip() for entry in table.strip().replace("\n", ";").split(";")]


def terms(table: str) -> list[Term]:
    return [Term(*entry.split(" ", 1)) for entry in entries(table)]


def rows(table: str) -> list[tuple[Term, str]]:
    """The entries of a table, each a head and its words."""
    parts = (entry.partition(": ") for entry in entries(table))
    return [(Term(*head.split(" ", 1)), words) for head, _, words in parts]


@cache
def kinds_in(words: str) -> list[str]:
    """Group names expanded; what remains are kinds of noun, or single nouns."""
    groups = tables.GROUPS
    return [kind for word in words.split() for kind in (kinds_in(groups[word]) if word in groups else [word])]


def _nouns() -> dict[str, list[Noun]]:
    """The nouns of every kind, and every noun alone under its own Chinese."""
    table: dict[str, list[Noun]] = {}
    for kind, words in lines(tables.NOUNS):
        for zh, measure, word in (entry.split(" ", 2) for entry in entries(words)):
            unit, _, stuff = word.rpartition("~")
            en, _, plural = stuff.partition("=")
            table[zh] = [Noun(zh, en, measure, plural or with_s(en), kind, unit)]
            table.setdefault(kind, []).extend(table[zh])
    return table


def _adjectives(table: str) -> dict[str, list[Adjective]]:
    """The adjectives that suit each kind."""
    suited: dict[str, list[Adjective]] = {}
    unwelcome = tables.UNWELCOME.split()
    for kinds, words in lines(table):
        for zh, en, *comparative in (entry.split() for entry in entries(words)):
            attribute = "" if zh.endswith("-") else zh if len(zh) == 1 else f"{zh}的"
            zh, more = zh.strip("-"), "".join(comparative) or f"more {en}"
            for kind in kinds_in(kinds):
                suited.setdefault(kind, []).append(Adjective(zh, en, attribute, more, zh in unwelcome))
    return suited


def _place(zh: str, en: str, preposition: str) -> Place:
    return Place(zh, en, Term(zh, f"{preposition} {en}"), Term(zh, f"to {en}"))


def _aspects() -> dict[str, Aspect]:
    table = {often.en: Aspect(often.zh, "", "present", often.en) for often in FREQUENCY}
    for name, before, after, tense, *rest in (entry.split() for entry in entries(tables.ASPECTS)):
        no = rest == ["not"]
        table[name] = Aspect(before.strip("-"), after.strip("-"), tense, "" if no else " ".join(rest), no)
    return table


# ------------------------------------------------------------------------------------------- what was read

PASTS = {base: (past, done) for base, past, done in (entry.split() for entry in entries(tables.IRREGULAR))}
DOUBLED = tables.DOUBLED.split()

NOUN = _nouns()
TRAITS, MOODS, HUES = _adjectives(tables.ADJECTIVES), _adjectives(tables.STATES), _adjectives(tables.COLORS)
LOOKS = {kind: [look for look in TRAITS.get(kind, []) + HUES.get(kind, []) if look.attribute] for kind in NOUN}
THING_KINDS = [kind for kind in NOUN if kind in TRAITS and kind not in kinds_in("person")]
SUITS = {look: [k for k in THING_KINDS if look in TRAITS[k]] for kind in THING_KINDS for look in TRAITS[kind]}
BAD_MOODS = [mood for mood in MOODS["name"] if mood.unwelcome]

_PRONOUNS = (entry.split() for entry in entries(tables.PRONOUNS))
PRONOUN = [Phrase(zh, en, be, "name", zh, them, their) for zh, en, them, their, be in _PRONOUNS]
SINGLE = [phrase for phrase in PRONOUN if not phrase.zh.endswith("们")]
NAMED = [
    Phrase(name.zh, name.en, "is", "name", pronoun)
    for table, pronoun in ((tables.MEN, "他"), (tables.WOMEN, "她"))
    for name in terms(table)
]
# What refers back to a phrase, by its `pronoun`.
BACK = {
    **{phrase.zh: phrase for phrase in PRONOUN},
    "它": Phrase("它", "it"),
    "它们": Phrase("它们", "they", "are", them="them"),
}
SKY, NOBODY = Phrase("", "it"), Phrase("谁", "who")

IS, IS_AT, HAVE, LIKE, LIVE, GO = terms("是 be; 在 be; 有 have; 喜欢 like; 住在 live; 去 go")
IS_SO, COST = Term("", "be"), Term("", "cost")

SITES = {site.zh: _place(site.zh, *site.en.rsplit(" ", 1)) for site in terms(tables.PLACES)}
PLACE, HOME = list(SITES.values()), Place("家", "home", Term("家", "at home"), Term("家", "home"))
LANDS = [(term.zh, *term.en.split()) for term in terms(tables.COUNTRIES)]
NATIONS = [Term(f"{zh}人", nation) for zh, _, nation in LANDS]
_TOWNS = terms(tables.CITIES) + [Term(zh, en) for zh, en, _ in LANDS]
TOWNS = [_place(town.zh, town.en, "in") for town in _TOWNS]
TONGUES, VEHICLES, WEATHER = terms(tables.LANGUAGES), terms(tables.RIDES), terms(tables.WEATHER)
INDOOR = rows(tables.SPOTS)
SPOT = INDOOR + rows(tables.OUTDOORS)

COUNTS, ROUND, FREQUENCY = terms(tables.NUMBERS), terms(tables.TENS), terms(tables.FREQUENCIES)
ASPECT, OFTEN = _aspects(), " ".join(often.en for often in FREQUENCY)
DAYS = terms(tables.WEEKDAYS)
NEAR = {"past": terms(tables.LATELY), "will": terms(tables.SOON)[:6], "present": terms(tables.HABITS)}
EVER = {
    "past": NEAR["past"] + terms(tables.LONG_AGO) + [Term(f"上周{day.zh}", f"last {day.en}") for day in DAYS],
    "will": terms(tables.SOON) + [Term(f"下周{day.zh}", f"next {day.en}") for day in DAYS],
    "present": NEAR["present"] + [Term(f"每周{day.zh}", f"every {day.en}") for day in DAYS],
}

ACT = [(verb, [SITES[word] for word in words.split()]) for verb, words in rows(tables.ACTS)]
DEED = [Deed(verb, *words.split(" ", 1)) for verb, words in rows(tables.DEEDS)]
ROUTINE, RESULT = rows(tables.ROUTINES), rows(tables.RESULTS)


def lexicon() -> list[tuple[str, str]]:
    """Every entry of the lexicon, Chinese and English."""
    by_kind: tuple[Mapping[str, Sequence[Term]], ...] = (NOUN, TRAITS, MOODS, HUES, EVER)
    found = [word for table in by_kind for words in table.values() for word in words]
    found += [deed.verb for deed in DEED] + [verb for verb, _ in ACT]
    found += [word for word, _ in (*ROUTINE, *RESULT, *SPOT)]
    found += [*PRONOUN, *NAMED, *PLACE, HOME, *TOWNS, *TONGUES, *NATIONS, *VEHICLES, *WEATHER]
    found += [*COUNTS, *ROUND, *FREQUENCY]
    return sorted({(word.zh.replace("-", ""), word.en) for word in found})
