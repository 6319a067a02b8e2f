"""Scripts of languages, and sides that are swapped."""

from __future__ import annotations

import gzip
import os
import pickle
import random
from pathlib import Path

import pytest

from nmt.data.languages import Sides, script_of, script_share, scripts, spaced, words_of

CORPORA = os.environ.get("NMT_TEST_CORPORA")


@pytest.mark.parametrize(
    ("characters", "script"),
    [
        ("aßÆőªﬁＡ𝐀", "LATIN"),
        ("яЇ", "CYRILLIC"),
        ("ωΆ", "GREEK"),
        ("漢々㐀\uf900", "HAN"),
        ("ひ", "HIRAGANA"),
        ("カーｶ", "KATAKANA"),
        ("한ㅏ", "HANGUL"),
        ("عﷺ\u064e", "ARABIC"),
        ("אָ"[:1], "HEBREW"),
        ("कि्"[:3], "DEVANAGARI"),
        ("กำ", "THAI"),
        (" 1१½.,!€\u0301\ufe0f🙂\n\ud800", ""),
    ],
)
def test_the_script_of_characters(characters: str, script: str) -> None:
    assert {character: script_of(character) for character in characters} == dict.fromkeys(characters, script)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("zh", "HAN BOPOMOFO"),
        ("zh-CN", "HAN BOPOMOFO"),
        ("zh_TW", "HAN BOPOMOFO"),
        ("zho_Hans", "HAN BOPOMOFO"),
        ("ja", "HAN HIRAGANA KATAKANA"),
        ("ko", "HANGUL HAN"),
        ("ru", "CYRILLIC"),
        ("sr", "CYRILLIC LATIN"),
        ("sr-Latn", "LATIN"),
        ("uz", "LATIN"),
        ("uz-Cyrl", "CYRILLIC"),
        ("eng_Latn", "LATIN"),
        ("deu", "LATIN"),
        ("EN-us", "LATIN"),
        ("npi_Deva", "DEVANAGARI"),
        ("fas", "ARABIC"),
        ("src", ""),
        ("", ""),
    ],
)
def test_the_scripts_of_a_language(language: str, expected: str) -> None:
    assert scripts(language) == frozenset(expected.split())


def test_some_languages_put_no_spaces_between_words() -> None:
    assert not any(map(spaced, ["zh", "zho_Hant", "yue", "ja-JP", "th", "lo", "km", "my", "bo"]))
    assert all(map(spaced, ["ko", "en", "vi", "ar", "hi", "sr", "xx"]))


def test_the_share_of_expected_letters() -> None:
    chinese = scripts("zh")
    assert script_share("我有 Python 3", chinese) == 2 / 8
    assert script_share("我有猫。", chinese) == 1
    assert script_share("12 !?", chinese) == script_share("", chinese) == 1
    assert script_share("Größe", scripts("de")) == script_share("size", scripts("en")) == 1
    assert script_share("Größe в", scripts("de")) == script_share("в Größe", scripts("de")) == 5 / 6
    assert script_share("size", scripts("el")) == 0
    assert script_share("हिन्दी", scripts("hi")) == 1
    assert script_share("我有", chinese) == 1, "the same after other texts"


SENTENCES = {
    "en": "The dog is in the house and it was not for you. He was at the window with a cat from the street. ",
    "de": "Der Hund ist nicht in dem Haus und sie war auf der Straße. Ich habe es mit einem Auto für die Frau. ",
    "es": "El perro no está en la casa y los niños comen con su madre. Pero las flores son muy bonitas para mí. ",
    "pt": "O cão não está em casa e os meninos comem com uma mãe. Mas as flores são do jardim e da casa. ",
    "ca": "El gos no és a la casa i els nens mengen amb la mare. Però les flors són més boniques dels jardins. ",
    "sv": "Hunden är inte i huset och jag har det för att han inte var med. Vi är på en gata som är av sten. ",
    "da": "Hunden er ikke i huset og jeg har det af ham. Hvad har du set efter det? Nu blev noget af det mig og dig. ",
    "nb": "Hunden er ikke i huset og jeg har det av ham. Hva har du sett etter det? Nå ble noe av det meg og deg. ",
    "cs": "Pes je v domě, ale já jsem s ním. Co jsou ty věci, které by byl při domě? Jsem pro to, ve městě se to ví. ",
    "sk": "Pes je v dome, ale ja som s ním. Čo sú tie veci, ktoré by bol pri dome? Som pre to, vo meste sa to vie. ",
    "ru": "Собака была в доме, и он не мог это понять, так как она только что пришла. Мы все из города. ",
    "uk": "Собака була в домі, і він не міг це зрозуміти, як вона вже прийшла. Ми всі з міста, та що це є? ",
    "bg": "Кучето е в къщата и той не може да го види, но това е много добре за мен. Ще отида със сестра ми. ",
    "zh": "我有一只猫，它在房子里。 ",
    "ja": "私は猫を一匹飼っています。家の中にいます。 ",
}
PAIRS = ["en-de", "es-pt", "es-ca", "sv-da", "da-nb", "cs-sk", "ru-uk", "ru-bg", "zh-ja", "en-zh", "en-ru", "de-ja"]


def watched(src_language: str, tgt_language: str, srcs: list[str], tgts: list[str]) -> Sides:
    sides = Sides(src_language, tgt_language)
    sides.add(srcs, tgts)
    return sides


@pytest.mark.parametrize("pair", PAIRS)
def test_swapped_sides_are_told_from_straight_ones(pair: str) -> None:
    one, other = pair.split("-")
    srcs, tgts = [SENTENCES[one]] * 20, [SENTENCES[other]] * 20
    assert watched(one, other, tgts, srcs).swapped()
    assert watched(other, one, srcs, tgts).swapped()
    assert not watched(one, other, srcs, tgts).swapped()
    assert not watched(other, one, tgts, srcs).swapped()


@pytest.mark.parametrize("pair", PAIRS)
def test_one_text_given_twice_is_not_swapped_but_the_same(pair: str) -> None:
    one, other = pair.split("-")
    for language in (one, other):
        sides = watched(one, other, [SENTENCES[language]] * 20, [SENTENCES[language]] * 20)
        assert not sides.swapped()
        assert sides.same_text_share == 1


def test_tags_and_three_letters_name_the_same_language() -> None:
    assert words_of("en") == words_of("eng_Latn") == words_of("en-GB")
    assert words_of("no") == words_of("nob")
    assert not words_of("xx")


def test_little_text_is_not_enough() -> None:
    assert not watched("en", "de", ["Das ist nicht der Hund."], ["That is not the dog."]).swapped()
    assert watched("en", "de", [], []).same_text_share == 0


def letters(seed: int, lines: int) -> list[str]:
    source = random.Random(seed)
    return [" ".join(source.choices("abcdefghij", k=8)) for _ in range(lines)]


@pytest.mark.parametrize("languages", [("en", "en"), ("en-US", "en-GB"), ("src", "tgt"), ("en", "src"), ("en", "de")])
def test_a_copy_task_is_never_swapped(languages: tuple[str, str]) -> None:
    sides = Sides(*languages)
    sides.learn(letters(1, 500), letters(1, 500))
    sides.add(letters(2, 5_000), letters(2, 5_000))
    assert not sides.swapped()
    assert sides.same_text_share == 1


@pytest.mark.parametrize(("one", "other"), [("en", "de"), ("cs", "sk"), ("zh", "ja")])
def test_what_tells_unknown_languages_apart_is_learned(one: str, other: str) -> None:
    sides = [Sides("qaa", "qab") for _ in range(3)]
    for each in sides[:2]:
        each.learn([SENTENCES[one]] * 10, [SENTENCES[other]] * 10)
    sides[0].add([SENTENCES[other]] * 20, [SENTENCES[one]] * 20)
    sides[1].add([SENTENCES[one]] * 20, [SENTENCES[other]] * 20)
    sides[2].add([SENTENCES[other]] * 20, [SENTENCES[one]] * 20)
    assert [each.swapped() for each in sides] == [True, False, False]


def test_only_words_of_one_side_are_learned() -> None:
    shared = " ".join(f"w{'abcdefghij'[i // 10]}{'abcdefghij'[i % 10]}" for i in range(100))
    sides = Sides("qaa", "qab")
    sides.learn([f"{shared} {shared} foo"] * 20, [f"{shared} {shared} bar"] * 20)
    sides.add(["bar"] * 50, ["foo"] * 50)
    assert sides.swapped()


def test_two_sides_in_one_language_are_not_swapped() -> None:
    sides = Sides("qaa", "qaa_Latn")
    sides.learn([SENTENCES["en"]] * 10, [SENTENCES["de"]] * 10)
    sides.add([SENTENCES["de"]] * 20, [SENTENCES["en"]] * 20)
    assert not sides.swapped()


def test_known_languages_are_not_learned_anew() -> None:
    sides = Sides("en", "de")
    sides.learn([SENTENCES["de"]] * 10, [SENTENCES["en"]] * 10)
    sides.add([SENTENCES["en"]] * 20, [SENTENCES["de"]] * 20)
    assert not sides.swapped()


@pytest.mark.parametrize(("one", "other"), [("en", "de"), ("en", "zh")])
def test_counts_of_workers_add_up(one: str, other: str) -> None:
    total = Sides(one, other)
    for _ in range(10):
        worker = pickle.loads(pickle.dumps(Sides(one, other)))
        worker.add([SENTENCES[other], "same"], [SENTENCES[one], "same"])
        total.merge(worker)
    assert total.swapped()
    assert total.same_text_share == 0.5


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA, reason="NMT_TEST_CORPORA is not set")
@pytest.mark.parametrize(
    ("name", "src", "tgt"),
    [
        ("multi30k/train.*.gz", "en", "de"),
        ("multi30k/val.lc.norm.tok.*.gz", "en", "de"),
        ("tatoeba_de_en/dev.*.gz", "de", "en"),
        ("tatoeba_zh_en/dev.*.gz", "zh", "en"),
        ("ntrex/newstest2019.*.gz", "en", "de"),
        ("ntrex/newstest2019.*.gz", "en", "zh"),
        ("ntrex/newstest2019.*.gz", "de", "zh"),
        ("realworld/ui_bible_ne_en.*.gz", "ne", "en"),
        ("realworld/python_docs_train.*.gz", "en", "zh"),
    ],
)
def test_real_corpora_are_swapped_only_when_they_are(name: str, src: str, tgt: str) -> None:
    assert CORPORA is not None
    srcs, tgts = (
        gzip.decompress((Path(CORPORA) / name.replace("*", language)).read_bytes()).decode().split("\n")
        for language in (src, tgt)
    )
    source = random.Random(1)
    for _ in range(20):
        sample = source.sample(range(len(srcs)), 200)
        some, others = [srcs[i] for i in sample], [tgts[i] for i in sample]
        assert watched(src, tgt, others, some).swapped()
        assert not watched(src, tgt, some, others).swapped()
