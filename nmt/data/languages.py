"""What text in a language looks like: its scripts, its most frequent words, and whether two sides are swapped."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

# Language codes by the scripts that they are written in; a script may also be asked for by its ISO 15924 code.
_SCRIPTS = {
    "HAN BOPOMOFO": "zh yue wuu nan lzh hak gan cdo hans hant hani bopo",
    "HAN HIRAGANA KATAKANA": "ja jpan hira kana",
    "HANGUL HAN": "ko kore hang",
    "CYRILLIC": "ru uk be bg mk kk ky tg mn ba cv tt os sah ce ab av udm kv mhr myv mdf tyv bua xal rue cyrl",
    "CYRILLIC LATIN": "sr sh",
    "GREEK": "el grc grek",
    "ARABIC": "ar arz apc ary ars acm ajp aeb fa prs ur ps ckb sd ug arab",
    "HEBREW": "he yi lad hebr",
    "DEVANAGARI": "hi mr ne sa mai bho awa mag hne kok gom doi brx deva",
    "BENGALI": "bn as mni beng",
    "TAMIL": "ta taml",
    "TELUGU": "te telu",
    "KANNADA": "kn knda",
    "MALAYALAM": "ml mlym",
    "GUJARATI": "gu gujr",
    "GURMUKHI ARABIC": "pa",
    "GURMUKHI": "guru",
    "ORIYA": "or orya",
    "SINHALA": "si sinh",
    "THAI": "th thai",
    "LAO": "lo laoo",
    "KHMER": "km khmr",
    "MYANMAR": "my shn mymr",
    "TIBETAN": "bo dz tibt",
    "GEORGIAN": "ka xmf geor",
    "ARMENIAN": "hy hyw armn",
    "ETHIOPIC": "am ti ethi",
    "THAANA": "dv thaa",
    "OL": "sat olck",
    "TIFINAGH": "tfng zgh",
    "LATIN": "af ak als an ast ay az bar bci bi bm br bs ca ceb cs cy da de en eo es et eu ee ff fi fil fj fo fr "
    "fur fy ga gd gl gn gv ha haw hmn hr hsb ht hu ia id ig ilo io is it jv kab kg ki kl kw la lb lg li "
    "lij lmo ln lt lv mg mi ms mt nap nb nds nl nn no nso ny oc om pag pap pl pms pt qu rm rn ro rw sc "
    "scn se sg sk sl sm sn so sq ss st su sv sw szl tk tl tn to tpi tr ts tw ty uz vec vi vo wa war wo xh "
    "yo za zu latn",
}
_BY_CODE = {code: frozenset(names.split()) for names, codes in _SCRIPTS.items() for code in codes.split()}

# Three-letter codes (both kinds of ISO 639-2, and those of FLORES) of languages whose usual code has two letters.
_TWO_LETTERS_TABLE = """
afr=af aka=ak amh=am ara=ar arb=ar asm=as azj=az aze=az bak=ba bel=be ben=bn bod=bo tib=bo bos=bs bul=bg
cat=ca ces=cs cze=cs chi=zh zho=zh cmn=zh chv=cv cym=cy wel=cy dan=da deu=de ger=de dzo=dz ell=el gre=el
eng=en epo=eo est=et ekk=et eus=eu baq=eu ewe=ee fao=fo fas=fa per=fa pes=fa fij=fj fin=fi fra=fr fre=fr
gla=gd gle=ga glg=gl grn=gn guj=gu hat=ht hau=ha heb=he hin=hi hrv=hr hun=hu hye=hy arm=hy ibo=ig ind=id
isl=is ice=is ita=it jav=jv jpn=ja kan=kn kat=ka geo=ka kaz=kk khm=km kin=rw kir=ky kor=ko lao=lo lat=la
lav=lv lvs=lv lit=lt ltz=lb lug=lg mal=ml mar=mr mkd=mk mac=mk mlg=mg plt=mg mlt=mt mon=mn khk=mn mri=mi
mao=mi msa=ms may=ms zsm=ms mya=my bur=my nep=ne npi=ne nld=nl dut=nl nno=nn nob=nb nor=no nya=ny oci=oc
ori=or ory=or orm=om gaz=om pan=pa pol=pl por=pt pus=ps pbt=ps que=qu quy=qu ron=ro rum=ro run=rn rus=ru
san=sa sin=si slk=sk slo=sk slv=sl smo=sm sna=sn snd=sd som=so sot=st spa=es sqi=sq alb=sq als=sq srp=sr
sun=su swa=sw swh=sw swe=sv tam=ta tat=tt tel=te tgk=tg tgl=tl tha=th tir=ti tuk=tk tur=tr uig=ug ukr=uk
urd=ur uzb=uz uzn=uz vie=vi wol=wo xho=xh yid=yi ydd=yi yor=yo zul=zu
"""
_TWO_LETTERS = dict(pair.split("=") for pair in _TWO_LETTERS_TABLE.split())

# What is sometimes written in place of a code.
_NAMES_TABLE = """
arabic=ar bulgarian=bg catalan=ca chinese=zh mandarin=zh cantonese=yue croatian=hr czech=cs danish=da dutch=nl
english=en estonian=et farsi=fa finnish=fi french=fr german=de deutsch=de greek=el hebrew=he hindi=hi hungarian=hu
indonesian=id italian=it japanese=ja jp=ja korean=ko latvian=lv lithuanian=lt norwegian=no persian=fa polish=pl
portuguese=pt romanian=ro russian=ru serbian=sr slovak=sk slovenian=sl spanish=es swedish=sv thai=th turkish=tr
ukrainian=uk vietnamese=vi
"""
_NAMES = dict(pair.split("=") for pair in _NAMES_TABLE.split())

# Very frequent short words. A word that both languages of a pair have says nothing about it and is left out then, so
# languages near to each other are told apart by the words that only one of them has.
_WORDS = {
    "en": "the of and to is in a that it was for with you he are on at this have from by",
    "de": "der die und das ist ein eine nicht ich zu den mit sie auf von dem es sich für im auch wir",
    "fr": "le la les de des et est un une que dans pour qui il pas je sur au du ce vous en à",
    "es": "el la los las de y que en es un una por con no se del para su lo al está muy pero",
    "it": "il di che la e è un una per non del della in sono gli con si le da ho nel anche ma",
    "pt": "o a os as de e que do da em um uma não para com é no na se por dos eu mas são ao",
    "nl": "de het een van en in is dat niet op te zijn met voor ik er aan je hij die maar ook wordt",
    "sv": "och att det som en är på för av jag inte den med till har ett om han var men vi",
    "da": "og at det er der jeg ikke en af hvad mig dig sig noget nogen efter blev ud op nu kunne meget",
    "nb": "og at det er der jeg ikke en av hva meg deg seg noe noen etter ble ut opp nå å fra",
    "nn": "og at det er der eg ikkje ein av kva meg deg seg noko nokon etter vart ut opp no å frå dei eit",
    "fi": "ja on ei se että hän oli en ole mutta hänen joka kun niin myös minä ovat tämä sen mitä",
    "cs": "a je se v na že to ne s z jsem do jako ale jsou by byl pro co si jeho při který ve",
    "sk": "a je sa v na že to nie s z som do ako ale sú by bol pre čo si jeho pri ktorý vo",
    "pl": "i w nie na się z to jest że do jak ale o po co tak za od przez był dla są jego",
    "hu": "a az és hogy nem egy is van ez de meg volt csak ha azt el már mint ki én vagy",
    "ro": "și în de a la nu este un o cu să pe că din care mai pentru sunt lui are se ce",
    "tr": "bir ve bu da de için ben o ne çok var ile gibi daha değil kadar mi ama sen olarak",
    "vi": "là của và có không một được cho tôi những người trong với này các đã để anh ở thì",
    "id": "yang dan di ini itu dengan untuk tidak dari dalam akan pada saya ada ke adalah orang bisa kami",
    "ca": "el la els les de i que en és un una per amb no es del als va seu ho al són dels però més",
    "hr": "i je u se na da su za što ne ja od li sam s to kao o koji ali biti iz nije samo",
    "sl": "in je v na se da so za ki ne pa bi z ali sem od kot tudi še s po ni bil bo pri",
    "lt": "ir yra kad į su iš jis ne tai buvo kaip aš bet apie už po jo ar tik nuo mano jie",
    "lv": "un ir uz ar no ka viņš es par bija tas kas bet tā kā nav lai pie arī vai tom līdz",
    "et": "ja on ei et see oli ta ma ka oma mis kui aga ning selle välja siis nii või seda mu",
    "sq": "të e në dhe një për me që nga është u si ka nuk do më kjo së i tij por janë",
    "af": "die en van het is in nie dat ek te wat vir met sy om hy op was aan dit deur kan",
    "ru": "и в не на я что он с это как но у по из его то все мы так был она за от был только",
    "uk": "і в не на що я він з це як але у та за його до є ми від вона був про чи ще для",
    "be": "і ў не на што я ён з гэта як але у па яго да ёсць мы ад яна быў пра ці яшчэ для",
    "bg": "и в не на е да се от за с че по са като ще ще той му но това аз бях си един много",
    "mk": "и во не на е да се од за со дека по се како ќе тој му но ова јас беше си еден многу",
    "sr": "и је у се на да су за што не ја од ли сам с то као али или i je u se na da su za što ne ja od li sam",
    "el": "και το η να του της ο για με που είναι δεν τα την από θα σε τον στο οι ένα μου αυτό",
}
_SAME_WORDS = {"no": "nb", "bs": "hr", "sh": "sr", "ms": "id"}
# Single characters of scripts that put no spaces between words (Thai, Lao, Burmese, Khmer, kana, Han), or words.
_TOKEN = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]+")

_UNSPACED = frozenset(["HAN", "BOPOMOFO", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"])

_EXPECTED, _OTHER, _NEITHER = 1, 2, 0  # a letter of the expected scripts, a letter of others, no letter
# First words of names that are not the script: the signs of three of them belong to any script.
_SCRIPT_OF_WORD = {"CJK": "HAN", "IDEOGRAPHIC": "HAN", "KATAKANA-HIRAGANA": "KATAKANA"} | dict.fromkeys(
    ["COMBINING", "MODIFIER", "VARIATION"], ""
)


@cache
def script_of(character: str) -> str:
    """The script of a letter or of a sign on one, as the first word of its Unicode name: LATIN, HAN…; "" for the rest.

    Wide, narrow, mathematical and other compatibility forms count as the letter that they stand for.
    """
    if unicodedata.category(character)[0] not in "LM":
        return ""
    word = unicodedata.name(unicodedata.normalize("NFKC", character)[0], "").split(" ")[0]
    return _SCRIPT_OF_WORD.get(word, word)


def scripts(language: str) -> frozenset[str]:
    """The scripts that text in a language is expected to be written in; none if the language is not known.

    Takes codes of two and three letters with or without region and script: `zh`, `zh-CN`, `sr-Latn`, `zho_Hans`.
    """
    for subtag in re.split("[-_]", language.lower())[1:]:
        if len(subtag) == 4 and subtag in _BY_CODE:
            return _BY_CODE[subtag]
    return _BY_CODE.get(base_language(language), frozenset())


def not_a_code(language: str) -> str:
    """What is wrong with a language that has not the form of a code, or is a name; empty if nothing is.

    Most of what depends on the language does without one that it does not know, so a name would pass unseen.
    """
    if re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*", language) and language.lower() not in _NAMES:
        return ""
    meant = next((_NAMES[word] for word in re.findall(r"[a-z]+", language.lower()) if word in _NAMES), "")
    hint = f" (did you mean `{meant}`?)" if meant else ""
    return f"must be a language code like de, zh-CN or eng_Latn, but is {language!r} instead{hint}"


def spaced(language: str) -> bool:
    """Whether text in a language has spaces between its words; what is not known has."""
    found = scripts(language)
    return not found or not found <= _UNSPACED


def base_language(language: str) -> str:
    """The language itself, without region and script, of two letters where it has such a code."""
    name = re.split("[-_]", language.lower())[0]
    return _TWO_LETTERS.get(name, name)


class _Kinds(dict[str, int]):
    """Whether a character is a letter of the expected scripts, of others, or none; filled as characters are met."""

    def __init__(self, expected: frozenset[str]) -> None:
        self.expected = expected
        self.fine: set[str] = set()  # all met so far but letters of other scripts

    def __missing__(self, character: str) -> int:
        script = script_of(character)
        kind = (_EXPECTED if script in self.expected else _OTHER) if script else _NEITHER
        self[character] = kind
        if kind != _OTHER:
            self.fine.add(character)
        return kind


_kinds = cache(_Kinds)


def known_scripts() -> list[str]:
    """The names of all scripts that some language here is written in."""
    return sorted(frozenset().union(*_BY_CODE.values()))


def script_share(text: str, expected: frozenset[str]) -> float:
    """The share of a text's letters that are of the expected scripts; 1 for a text without letters."""
    if "LATIN" in expected and text.isascii():
        return 1.0
    kinds = _kinds(expected)
    if kinds.fine.issuperset(text):  # much faster than counting
        return 1.0
    found = bytes(map(kinds.__getitem__, text))
    inside, outside = found.count(_EXPECTED), found.count(_OTHER)
    return inside / (inside + outside) if inside + outside else 1.0


def words_of(language: str) -> frozenset[str]:
    """Some of the most frequent words of a language; none if there is no table for it."""
    name = base_language(language)
    return frozenset(_WORDS.get(_SAME_WORDS.get(name, name), "").split())


FOREIGN_LEAST, FOREIGN_RATIO = 500, 9  # letters of the wrong script, and as many as of the right one


@dataclass
class Evidence:
    """How often what only one of two languages has was met on each side."""

    marks: tuple[frozenset[str], frozenset[str]]  # what only src's language has, and what only tgt's has
    straight: tuple[int, int] = (0, 0)  # src's marks in src, tgt's marks in tgt
    crossed: tuple[int, int] = (0, 0)  # tgt's marks in src, src's marks in tgt

    LEAST = 30  # marks on the wrong side
    RATIO = 3  # as many on the wrong side as on the right one

    def add(self, src: Counter[str], tgt: Counter[str]) -> None:
        src_marks, tgt_marks = self.marks
        self.straight = (self.straight[0] + _sum(src, src_marks), self.straight[1] + _sum(tgt, tgt_marks))
        self.crossed = (self.crossed[0] + _sum(src, tgt_marks), self.crossed[1] + _sum(tgt, src_marks))

    def merge(self, other: Evidence) -> None:
        self.straight = (self.straight[0] + other.straight[0], self.straight[1] + other.straight[1])
        self.crossed = (self.crossed[0] + other.crossed[0], self.crossed[1] + other.crossed[1])

    def swapped(self) -> bool:
        # Each language must be on the other's side: of one text given twice, the marks are on both sides.
        src_moved = self.crossed[1] >= self.RATIO * self.straight[0]
        tgt_moved = self.crossed[0] >= self.RATIO * self.straight[1]
        return src_moved and tgt_moved and sum(self.crossed) >= self.LEAST


def _sum(counts: Counter[str], marks: frozenset[str]) -> int:
    return sum(counts[mark] for mark in marks)


def words(text: str) -> list[str]:
    """The words of a text, without numbers; in scripts that put no spaces between words, each character is one."""
    return _TOKEN.findall(text)


def _count_words(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in words(text.lower()))


def _count_scripts(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for character, count in Counter("".join(texts)).items():
        counts[script_of(character)] += count
    return counts


def _apart(src: frozenset[str], tgt: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """What only one of the two has; nothing at all unless both have something of their own."""
    return (src - tgt, tgt - src) if src - tgt and tgt - src else (frozenset(), frozenset())


class Sides:
    """Whether two sides are in each other's language, judged from samples of pairs.

    Where the two languages differ in script, letters decide; else the frequent words that only one of them has, from a
    table or, for languages without one, learned from text whose sides are known to be right. Both sides must look like
    the other language. Where nothing tells the two languages apart, no sides look swapped.
    """

    def __init__(self, src_language: str, tgt_language: str) -> None:
        self.same_language = base_language(src_language) == base_language(tgt_language)
        self.scripts = Evidence(_apart(scripts(src_language), scripts(tgt_language)))
        self.words = Evidence(_apart(words_of(src_language), words_of(tgt_language)))
        self.pairs = self.same = 0

    def learn(self, srcs: Sequence[str], tgts: Sequence[str]) -> None:
        """Take the words that tell the languages apart from these texts, if neither scripts nor the table do."""
        if self.same_language or any(self.scripts.marks) or any(self.words.marks):
            return
        src, tgt = _count_words(srcs), _count_words(tgts)
        self.words.marks = _apart(_own_words(src, tgt), _own_words(tgt, src))

    def add(self, srcs: Sequence[str], tgts: Sequence[str]) -> None:
        """Count a sample of pairs."""
        self.pairs += len(srcs)
        self.same += sum(src == tgt for src, tgt in zip(srcs, tgts, strict=True))
        if any(self.scripts.marks):
            self.scripts.add(_count_scripts(srcs), _count_scripts(tgts))
        elif any(self.words.marks):
            self.words.add(_count_words(srcs), _count_words(tgts))

    def merge(self, other: Sides) -> None:
        """Add what another one counted of the same two languages."""
        self.pairs += other.pairs
        self.same += other.same
        self.scripts.merge(other.scripts)
        self.words.merge(other.words)

    def swapped(self) -> bool:
        """Whether each side is clearly in the other's language."""
        return self.scripts.swapped() or self.words.swapped()

    def foreign(self) -> list[str]:
        """The sides that are hardly in a script of their language, but in one of the other language."""
        found = zip(("source", "target"), self.scripts.straight, self.scripts.crossed, strict=True)
        return [side for side, own, other in found if other >= FOREIGN_LEAST and other >= FOREIGN_RATIO * own]

    @property
    def same_text_share(self) -> float:
        """The share of pairs whose two sides are the same text."""
        return self.same / self.pairs if self.pairs else 0.0


def _own_words(counts: Counter[str], others: Counter[str], most: int = 50, least: int = 5) -> frozenset[str]:
    """The most frequent words of one text that are at least ten times rarer in another."""
    scale = others.total() / max(1, counts.total())
    own = (word for word, count in counts.most_common() if count >= least and others[word] * 10 < count * scale)
    return frozenset(islice(own, most))
