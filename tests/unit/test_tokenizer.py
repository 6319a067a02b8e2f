"""Text to ids and back: reserved ids never come from text, odd characters break nothing, sizes adapt or say why not."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import sentencepiece

from nmt.errors import CheckpointError, DataError, NmtError
from nmt.tokenizer import BOS, EOS, PAD, TOKENIZERS, UNK, Tokenizer, blank, clean
from nmt.tokenizer.sampling import BpeSampler

KINDS = [kind for kind in TOKENIZERS if kind != "ready"]  # those that are trained

BREAKS = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"
UNSEEN = "\0\x01\x07\x1b\x1f\x7f\ufeff"
LITERALS = ["<s>", "</s>", "<unk>", "<pad>", "⁇", "|||", "@@", "<0x0A>", "a </s> b", "<s>x</s>", "</s></s>"]


def sentences(count: int = 400) -> list[str]:
    """Words of random syllables, and a few Chinese characters, markup and digits."""
    rng = random.Random(7)
    words = ["".join(rng.choice("kstnmr") + rng.choice("aeiou") for _ in range(rng.randint(1, 4))) for _ in range(150)]
    words += ["我", "有", "一只猫", "2016", "<b>", "it's", "|||", "@@", "</s>!", "a/b", "ß"]
    return [" ".join(rng.choices(words, k=rng.randint(2, 9))) for _ in range(count)]


def nothing_said(message: str) -> None:
    raise AssertionError(message)


def train(kind: str, lines: list[str], say: object = nothing_said, **options: object) -> Tokenizer:
    tokenizer: Tokenizer = TOKENIZERS[kind](**options)(lines, lines, say)  # type: ignore[arg-type]
    return tokenizer


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Tokenizer]:
    """One of each kind."""
    return {kind: train(kind, sentences(), vocab_size=150) for kind in KINDS}


@pytest.fixture(scope="module")
def bytewise() -> Tokenizer:
    """With byte fallback: no character is unknown."""
    return train("bpe", sentences(), vocab_size=450, byte_fallback=True)


def encode(tokenizer: Tokenizer, line: str) -> list[int]:
    ids: list[int] = tokenizer.encode_src([line])[0].tolist()
    return ids


def round_trip(tokenizer: Tokenizer, line: str) -> str:
    return tokenizer.decode([encode(tokenizer, line)[:-1]])[0]


# --- lines ---


@pytest.mark.parametrize("odd", BREAKS, ids=lambda c: f"U+{ord(c):04X}")
def test_what_breaks_lines_elsewhere_becomes_a_space(odd: str) -> None:
    """Case 1."""
    assert clean(f"a{odd}b") == "a b"


@pytest.mark.parametrize("odd", UNSEEN, ids=lambda c: f"U+{ord(c):04X}")
def test_what_nobody_sees_is_removed(odd: str) -> None:
    """Cases 3 and 4."""
    assert clean(f"a{odd}b") == "ab"


def test_other_text_is_left_alone() -> None:
    text = "Ça va? 我有 “zwei” 🐈\u200d⬛ e\u0301 \u00a0\u3000 <s> ▁ ﷽"
    assert clean(text) == text


@pytest.mark.parametrize("text", ["", " ", "  \t", "\u200b", "\u3000", "\u00a0\u2028", "\ufeff", "\0", "\u200e \u200f"])
def test_lines_that_show_nothing_are_blank(text: str) -> None:
    """Case 9."""
    assert blank(text)


@pytest.mark.parametrize("text", ["a", ".", " 猫 ", "▁", "\u0301", "0", "\ufffd"])
def test_lines_that_show_something_are_not(text: str) -> None:
    assert not blank(text)


# --- ids ---


@pytest.mark.parametrize("kind", KINDS)
def test_ids_end_in_eos_and_hold_no_other_reserved_id(tokenizers: dict[str, Tokenizer], kind: str) -> None:
    """Case 12."""
    lines = [*sentences(50), *LITERALS, "", " ", "a\tb", "x ▁ y", "\0", "🐈", "<s>" * 20]
    for line, ids in zip(lines, tokenizers[kind].encode_tgt(lines), strict=True):
        assert ids.dtype == np.int32
        assert ids[-1] == EOS == 3, line
        assert not {PAD, BOS, EOS} & set(ids[:-1].tolist()), line
        assert ids.max() < len(tokenizers[kind].tgt)


@pytest.mark.parametrize("kind", KINDS)
def test_text_of_the_training_kind_comes_back(tokenizers: dict[str, Tokenizer], kind: str) -> None:
    for line in sentences(50):
        ids = encode(tokenizers[kind], line)
        if kind == "none" and UNK in ids:  # a word too rare for 150 pieces
            continue
        assert round_trip(tokenizers[kind], line) == line


@pytest.mark.parametrize("text", LITERALS)
def test_markup_of_tokenizers_is_ordinary_text(bytewise: Tokenizer, text: str) -> None:
    """Case 12: nothing ends early, nothing is lost."""
    ids = encode(bytewise, text)
    assert not {PAD, UNK, BOS, EOS} & set(ids[:-1])
    assert round_trip(bytewise, text) == text
    assert round_trip(bytewise, f"kasa {text} nomi") == f"kasa {text} nomi"


def test_the_underline_of_sentencepiece_may_come_back_as_a_space(bytewise: Tokenizer) -> None:
    """Case 12."""
    assert round_trip(bytewise, "kasa▁nomi") == "kasa nomi"


def test_odd_separators_encode_as_spaces_and_unseen_characters_as_nothing(bytewise: Tokenizer) -> None:
    """Cases 1, 3 and 4: the ids are those of the text that one sees."""
    expected = encode(bytewise, "kasa nomi")
    for odd in BREAKS:
        assert encode(bytewise, f"kasa{odd}nomi") == expected
    assert encode(bytewise, "\ufeffka\0sa nomi\r") == expected


def test_with_bytes_every_character_comes_back_and_without_it_is_unknown(
    bytewise: Tokenizer, tokenizers: dict[str, Tokenizer]
) -> None:
    for text in ("🐈", "ꙮ", "\U0010fffd", "naïve €5"):
        assert round_trip(bytewise, text) == text
        assert UNK not in encode(bytewise, text)
    assert UNK in encode(tokenizers["bpe"], "🐈")


def test_nothing_and_very_much_can_be_encoded(bytewise: Tokenizer) -> None:
    """Case 11: no line is too long for the tokenizer."""
    assert bytewise.encode_src([]) == []
    assert encode(bytewise, "") == [EOS]
    assert bytewise.decode([]) == []
    assert bytewise.decode([[]]) == [""]
    assert bytewise.decode([[], encode(bytewise, "kasa")[:-1]]) == ["", "kasa"]
    long = "ka" * 100_000
    assert round_trip(bytewise, long) == long


def byte_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """The byte pieces that spell a text, whether or not it has pieces of its own."""
    names = tokenizer.pieces(range(len(tokenizer.tgt)))
    return [names.index(f"<0x{byte:02X}>") for byte in text.encode()]


def test_a_decoded_line_never_contains_a_line_break(bytewise: Tokenizer) -> None:
    """Case 1: whatever bytes a model puts together."""
    kasa, nomi = (encode(bytewise, word)[:-1] for word in ("kasa", "nomi"))
    for odd in BREAKS + UNSEEN:
        (text,) = bytewise.decode([kasa + byte_ids(bytewise, odd) + nomi])
        assert odd not in text
        assert text.startswith("kasa") and text.endswith("nomi")


def test_a_broken_byte_sequence_becomes_a_replacement_character(bytewise: Tokenizer) -> None:
    broken = byte_ids(bytewise, "猫")[:2]
    (text,) = bytewise.decode([encode(bytewise, "kasa")[:-1] + broken])
    assert set(text.removeprefix("kasa").strip()) == {"\ufffd"}


def test_ids_that_no_translation_may_contain(bytewise: Tokenizer, tokenizers: dict[str, Tokenizer]) -> None:
    assert {PAD, UNK, BOS, *byte_ids(bytewise, "\n\r\0\x0b\x0c\x1c\x1d\x1e")} == set(bytewise.forbidden())
    assert set(tokenizers["bpe"].forbidden()) == {PAD, UNK, BOS}


def test_no_segmentation_splits_at_spaces_alone() -> None:
    tokenizer = train("none", ["low@@ er , please", "low@@ er please"], vocab_size=100)
    assert tokenizer.pieces(encode(tokenizer, "please  low@@ er")[:-1]) == ["▁please", "▁low@@", "▁er"]
    assert encode(tokenizer, "lower")[:-1] == [UNK]


# --- vocabularies ---


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_too_large_for_the_text_is_lowered_and_said(kind: str) -> None:
    """Case 17."""
    said: list[str] = []
    tokenizer = train(kind, sentences(100), said.append, vocab_size=32000)
    (message,) = said
    assert "32000" in message and str(len(tokenizer.src)) in message
    assert round_trip(tokenizer, "kasa 猫") == "kasa 猫"
    said.clear()
    separate = train(kind, sentences(100), said.append, vocab_size=32000, joint=False)
    assert "source side" in said[0] and "target side" in said[1]
    assert len(separate.src) == len(separate.tgt)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("line", ["a", "猫", "a b", "aaaa", "<s>"])
def test_the_smallest_corpora_can_be_learnt_from(kind: str, line: str) -> None:
    """Case 17."""
    tokenizer = train(kind, [line], lambda _: None, vocab_size=32000)
    assert round_trip(tokenizer, line) == line


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_vocabulary_too_small_for_the_characters_names_the_least_size_that_works(kind: str) -> None:
    """Case 18."""
    chinese = ["".join(chr(0x4E00 + i) for i in range(start, start + 20)) for start in range(0, 200, 20)]
    with pytest.raises(DataError, match=r"vocab_size 30 is too small.*at least (\d+) pieces") as error:
        train(kind, chinese, vocab_size=30)
    least = int(str(error.value).split("at least ")[1].split(" ")[0])
    assert len(train(kind, chinese, vocab_size=least).src) == least
    with pytest.raises(DataError, match="too small"):
        train(kind, chinese, vocab_size=least - 1)


@pytest.mark.parametrize("size", [-1, 0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_an_impossible_vocabulary_size_is_said_in_our_words(kind: str, size: int) -> None:
    """Cases 17 and 18: not a C++ stack."""
    with pytest.raises(NmtError) as error:
        train(kind, ["a b"], vocab_size=size)
    assert "vocab_size" in str(error.value)
    assert ".cc(" not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_text_without_a_single_usable_character_is_said_in_our_words(kind: str) -> None:
    with pytest.raises(DataError) as error:
        train(kind, ["▁", "▁▁"], vocab_size=100)
    assert ".cc(" not in str(error.value)


def test_byte_fallback_comes_with_4000_pieces() -> None:
    """`auto`: below, 256 of them would be too many."""
    said: list[str] = []
    assert UNK in encode(train("bpe", sentences(), said.append, vocab_size=200), "🐈")
    assert UNK not in encode(train("bpe", sentences(), said.append, vocab_size=4000), "🐈")


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same_bytes(kind: str, tokenizers: dict[str, Tokenizer]) -> None:
    assert train(kind, sentences(), vocab_size=150).digest() == tokenizers[kind].digest()


def test_one_vocabulary_or_two() -> None:
    src, tgt = ["aa ab", "ab aa"], ["xx xyz", "xyz xx"]
    joint = TOKENIZERS["char"](vocab_size=50, joint=True)(src, tgt, nothing_said)
    assert joint.joint and len(joint.src) == len(joint.tgt)
    assert joint.encode_src(["ax"])[0].tolist() == joint.encode_tgt(["ax"])[0].tolist()
    separate = TOKENIZERS["char"](vocab_size=50, joint=False)(src, tgt, nothing_said)
    assert not separate.joint
    assert UNK in separate.encode_src(["x"])[0] and UNK not in separate.encode_tgt(["x"])[0]
    assert joint.digest() != separate.digest()


# --- files ---


@pytest.mark.parametrize("joint", [True, False])
def test_a_saved_tokenizer_is_the_same(tmp_path: Path, joint: bool) -> None:
    tokenizer = train("bpe", sentences(), vocab_size=150, joint=joint)
    tokenizer.save(tmp_path)
    names = ["tokenizer.model"] if joint else ["src.model", "tgt.model"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    loaded = Tokenizer.load(tmp_path)
    assert (loaded.digest(), loaded.joint) == (tokenizer.digest(), joint)
    assert encode(loaded, "kasa nomi") == encode(tokenizer, "kasa nomi")


def test_what_is_no_tokenizer_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no tokenizer"):
        Tokenizer.load(tmp_path)
    for garbage in (b"", b"nonsense"):
        (tmp_path / "tokenizer.model").write_bytes(garbage)
        with pytest.raises(CheckpointError, match="tokenizer"):
            Tokenizer.load(tmp_path)


def test_a_model_with_other_reserved_ids_is_refused() -> None:
    """sentencepiece's own default is unk 0, bos 1, eos 2 and no pad."""
    with pytest.raises(CheckpointError, match="ids 0, 1, 2, 3"):
        Tokenizer(stock())


# --- normalisation, digits, symbols ---


def test_by_default_characters_stay_as_the_user_wrote_them() -> None:
    """Joiners are letters' neighbours in Persian and Hindi, and hold emoji together."""
    text = "می\u200cخواهم क्\u200dष 👩\u200d🚀 ﬁ Ａ ① e\u0301 é Straße"
    for kind in ("bpe", "unigram", "char"):
        tokenizer = train(kind, [text], lambda _: None, vocab_size=200)
        assert round_trip(tokenizer, text) == text
    words = train("none", [text], vocab_size=200)
    assert round_trip(words, text) == text


def test_nfkc_makes_forms_one_and_nfkc_cf_cases_too() -> None:
    lines = [*sentences(), "Straße ﬁ Ａ ① é"]
    for kind in ("bpe", "unigram", "char"):
        nfkc = train(kind, lines, vocab_size=150, normalization="nfkc")
        assert encode(nfkc, "ﬁ Ａ① e\u0301") == encode(nfkc, "fi A1 é")
        assert round_trip(nfkc, "ﬁ Ａ① e\u0301") == "fi A1 é"
        folded = train(kind, lines, vocab_size=150, normalization="nfkc_cf")
        assert encode(folded, "KASA Straße É") == encode(folded, "kasa straße é")
        plain = train(kind, lines, vocab_size=150)
        assert encode(plain, "ﬁ") != encode(plain, "fi")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_digits_are_pieces_of_their_own_if_wanted(kind: str) -> None:
    lines = [*sentences(), *["in 2016 and 2017"] * 50]
    whole = train(kind, lines, vocab_size=150)
    assert "▁2016" in whole.pieces(encode(whole, "2016"))
    split = train(kind, lines, vocab_size=150, split_digits=True)
    assert [piece for piece in split.pieces(encode(split, "2016 2")[:-1]) if piece != "▁"] == ["2", "0", "1", "6", "2"]
    assert round_trip(split, "in 2016") == "in 2016"


SYMBOLS = ["<2de>", "{name}", "⟦1⟧", "@-@", "kasa"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
def test_symbols_are_single_pieces_wherever_they_stand(kind: str) -> None:
    tokenizer = train(kind, sentences(), vocab_size=170, symbols=SYMBOLS)
    for symbol in SYMBOLS:
        for text in (symbol, f"nomi {symbol} tu", f"nomi{symbol}tu", f"{symbol}{symbol}", f"{symbol}!", f"🐈{symbol}"):
            pieces = tokenizer.pieces(encode(tokenizer, text))
            assert pieces.count(symbol) == text.count(symbol), (text, pieces)
            if "🐈" not in text:
                assert round_trip(tokenizer, text) == text
    assert len(tokenizer.src) <= 170


def test_symbols_and_tags_are_pieces_even_of_text_that_never_holds_them() -> None:
    for kind in KINDS:
        tokenizer = TOKENIZERS[kind](vocab_size=150)(sentences(), sentences(), nothing_said, ["<2de>", "<2fr>"])
        pieces = tokenizer.pieces(encode(tokenizer, "<2de> kasa"))
        assert next(piece.lstrip("▁") for piece in pieces if piece != "▁") == "<2de>"
        assert UNK not in encode(tokenizer, "<2de>")
        assert round_trip(tokenizer, "<2fr> <2de>") == "<2fr> <2de>"
    separate = TOKENIZERS["bpe"](vocab_size=150, joint=False)(sentences(), sentences(), nothing_said, ["<2de>"])
    assert UNK not in separate.encode_src(["<2de>"])[0]


@pytest.mark.parametrize("symbol", ["a b", "", " ", "\t", "a\u2028", "\u200b", "\0", "a\ufeff", " a"])
def test_a_symbol_that_no_line_can_hold_is_refused(symbol: str) -> None:
    with pytest.raises(DataError, match=r"tokenizer.symbols: .* must be visible and without white space") as error:
        TOKENIZERS["bpe"](symbols=["fine", symbol])
    assert "\n" not in str(error.value)


def test_literal_markup_in_the_text_that_it_is_trained_on_is_text(bytewise: Tokenizer) -> None:
    """Case 12."""
    lines = [*sentences(), *["kasa <s> nomi </s> tu <unk>"] * 200]
    for kind in ("bpe", "unigram", "char"):
        tokenizer = train(kind, lines, vocab_size=150)
        for text in ("<s>", "</s>", "<unk>", "kasa <s> nomi </s> tu <unk>"):
            assert not {PAD, UNK, BOS, EOS} & set(encode(tokenizer, text)[:-1])
            assert round_trip(tokenizer, text) == text


# --- sampling ---


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 0.3), ("unigram", 0.2)])
def test_sampling_is_a_function_of_line_and_seed(tokenizers: dict[str, Tokenizer], kind: str, alpha: float) -> None:
    side, line = tokenizers[kind].src, " ".join(sentences()[:3])
    sample = side.sampler(alpha)
    drawn = [sample(line, seed).tolist() for seed in range(20)]
    assert [side.sampler(alpha)(line, seed).tolist() for seed in reversed(range(20))] == drawn[::-1]
    assert len({tuple(ids) for ids in drawn}) > 5
    assert {ids[-1] for ids in drawn} == {EOS}
    assert side.decode([ids[:-1] for ids in drawn]) == [line] * 20
    assert sample("", 1).tolist() == [EOS]
    assert sample("ka\u2028sa\0", 5).tolist() == sample("ka sa", 5).tolist()


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 0.3), ("unigram", 0.2)])
def test_another_process_draws_the_same(
    tokenizers: dict[str, Tokenizer], tmp_path: Path, kind: str, alpha: float
) -> None:
    """Case 35: a training that is taken up again, or that has several processes. sentencepiece's own draws differ."""
    lines = sentences()[:20]
    tokenizers[kind].save(tmp_path)
    code = (
        "import sys, json, pathlib; from nmt.tokenizer import Tokenizer; lines = json.load(sys.stdin)\n"
        f"draw = Tokenizer.load(pathlib.Path({str(tmp_path)!r})).src.sampler({alpha})\n"
        "json.dump([draw(line, 7).tolist() for line in lines], sys.stdout)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(lines), capture_output=True, text=True, check=True
    )
    draw = tokenizers[kind].src.sampler(alpha)
    assert json.loads(done.stdout) == [draw(line, 7).tolist() for line in lines]


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_bpe_that_leaves_out_no_merge_is_sentencepieces(byte_fallback: bool) -> None:
    """Symbols, several unknown characters in a row, odd spaces, and words that no training has seen among the lines."""
    lines, rng = sentences(), random.Random(3)
    side = train("bpe", lines, vocab_size=500, byte_fallback=byte_fallback, symbols=["<2de>", "<2d"]).src
    odd = ["", "  ", "a▁b", "x ▁ y", "é😀😁 zz", "<2de> ka <2de>sa<2d", "我有😀", "▁▁"]
    odd += [
        "".join(rng.choices(["k", "a", "s", "é", "▁", " ", "<2de>", "<", "我"], k=rng.randint(1, 20)))
        for _ in range(300)
    ]
    draw = BpeSampler(side.model, side.processor.Normalize, 0.0)
    for line in [*lines, *odd]:
        assert draw(line, 1) == side.processor.Encode(line), line


@pytest.mark.parametrize(("kind", "alpha"), [("bpe", 0.1), ("bpe", 0.5), ("unigram", 0.1), ("unigram", 0.5)])
def test_draws_are_distributed_as_sentencepieces(tokenizers: dict[str, Tokenizer], kind: str, alpha: float) -> None:
    """Of 4,000 draws of each, every way to split a word is about as frequent: within 5 standard deviations."""
    side, word, count = tokenizers[kind].src, "sitateno", 4000
    draw = side.sampler(alpha)
    ours = Counter(tuple(draw(word, seed)[:-1].tolist()) for seed in range(count))
    theirs = Counter(
        tuple(side.processor.Encode(word, enable_sampling=True, nbest_size=-1, alpha=alpha)) for _ in range(count)
    )
    assert len(theirs) > 3
    for way in ours | theirs:
        assert abs(ours[way] - theirs[way]) < 5 * (ours[way] + theirs[way] + 1) ** 0.5, way


def test_more_dropout_makes_more_pieces_and_none_makes_none(tokenizers: dict[str, Tokenizer]) -> None:
    side, lines = tokenizers["bpe"].src, sentences(100)

    def pieces(rate: float) -> int:
        sample = side.sampler(rate)
        return sum(len(sample(line, seed)) for seed, line in enumerate(lines))

    assert len(side.encode(lines).ids) == pieces(0.0) < pieces(0.1) < pieces(0.5) < pieces(0.99)


def test_a_side_knows_its_kind_and_which_pieces_are_bytes(
    tokenizers: dict[str, Tokenizer], bytewise: Tokenizer
) -> None:
    kinds = {kind: tokenizer.src.kind() for kind, tokenizer in tokenizers.items()}
    assert kinds == {"bpe": "bpe", "unigram": "unigram", "char": "char", "none": "word"}
    assert bytewise.src.bytewise().sum() == 256
    assert bytewise.src.bytewise()[byte_ids(bytewise, "猫")].all()
    assert not tokenizers["bpe"].src.bytewise().any()


def test_many_lines_are_one_array_and_its_parts() -> None:
    tokenizer = train("char", ["ab"], vocab_size=20)
    lines = ["ab", "", "b", "a\0b"]
    found = tokenizer.src.encode(lines)
    assert found.offsets.tolist() == [0, 4, 5, 8, 12]
    assert [part.tolist() for part in found.lines()] == [encode(tokenizer, line) for line in lines]
    assert tokenizer.src.encode([]).offsets.tolist() == [0]


# --- models that exist ---


def stock(**options: object) -> bytes:
    """As sentencepiece makes them by itself: unk 0, bos 1, eos 2, no pad."""
    model = io.BytesIO()
    options = {"vocab_size": 150, "minloglevel": 2, **options}
    sentencepiece.SentencePieceTrainer.Train(sentence_iterator=iter(sentences()), model_writer=model, **options)
    return model.getvalue()


STOCK: dict[str, dict[str, object]] = {
    "unigram": {},
    "bpe": {"model_type": "bpe"},
    "char": {"model_type": "char", "vocab_size": 30},
    "word": {"model_type": "word", "vocab_size": 60, "use_all_vocab": False, "hard_vocab_limit": False},
    "bpe with bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 420},
    "unigram with bytes": {"byte_fallback": True, "vocab_size": 420},
    "symbols": {"model_type": "bpe", "user_defined_symbols": ["<2de>", "@-@"]},
    "control symbols": {"control_symbols": ["<mask>"]},
    "a pad": {"pad_id": 3},
    "other places": {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
    "neither bos nor eos": {"bos_id": -1, "eos_id": -1},
    "other names": {
        "unk_piece": "[UNK]",
        "bos_piece": "[CLS]",
        "eos_piece": "[SEP]",
        "pad_piece": "[PAD]",
        "pad_id": 3,
    },
    "other spaces": {
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "normalization_rule_name": "identity",
    },
}


@pytest.mark.parametrize("options", STOCK.values(), ids=STOCK)
def test_a_ready_model_of_any_kind_splits_as_before_with_our_ids(tmp_path: Path, options: dict[str, object]) -> None:
    model = stock(**options)
    file = tmp_path / "any.model"
    file.write_bytes(model)
    tokenizer = TOKENIZERS["ready"](src=str(file))([], [], nothing_said)
    assert tokenizer.joint and tokenizer.src.special_ids() == [0, 1, 2, 3]
    before, now = sentencepiece.SentencePieceProcessor(model_proto=model), tokenizer.src.processor
    lines = [*sentences(60), "a <2de> b@-@c", "🐈 x", "<s> a </s> <unk>", "<mask>", "", "  a   b ", "Ａ ① ﬁ", "kasa"]
    for line in lines:
        assert now.EncodeAsPieces(line) == before.EncodeAsPieces(line), line
        ids = encode(tokenizer, line)
        assert ids[-1] == EOS and not {PAD, BOS, EOS} & set(ids[:-1])
        assert tokenizer.decode([ids[:-1]]) == [before.Decode(before.Encode(line)).strip(" ")]
        assert (UNK in ids) is (before.unk_id() in before.Encode(line))
    names = {before.IdToPiece(i) for i in range(len(before))}
    assert names <= {now.IdToPiece(i) for i in range(len(now))}


def test_a_ready_model_with_our_ids_stays_as_it_is(tmp_path: Path, bytewise: Tokenizer) -> None:
    bytewise.save(tmp_path)
    again = TOKENIZERS["ready"](src=str(tmp_path / "tokenizer.model"))([], [], nothing_said)
    assert again.digest() == bytewise.digest()


def test_a_ready_model_can_be_sampled_from_saved_and_loaded(tmp_path: Path) -> None:
    (tmp_path / "any.model").write_bytes(stock(model_type="bpe"))
    tokenizer = TOKENIZERS["ready"](src=str(tmp_path / "any.model"))([], [], nothing_said)
    line = sentences()[0]
    assert tokenizer.src.kind() == "bpe"
    assert tokenizer.decode([tokenizer.src.sampler(0.5)(line, 1)[:-1].tolist()]) == [line]
    tokenizer.save(tmp_path)
    assert encode(Tokenizer.load(tmp_path), line) == encode(tokenizer, line)


def test_two_ready_models_are_one_a_side(tmp_path: Path) -> None:
    for name, kind in (("a", "bpe"), ("b", "char")):
        (tmp_path / name).write_bytes(stock(model_type=kind, vocab_size=30 if kind == "char" else 150))
    trainer = TOKENIZERS["ready"](src=str(tmp_path / "a"), tgt=str(tmp_path / "b"))
    assert not trainer.joint
    assert trainer.inputs() == [tmp_path / "a", tmp_path / "b"]
    tokenizer = trainer([], [], nothing_said)
    assert (tokenizer.src.kind(), tokenizer.tgt.kind(), tokenizer.joint) == ("bpe", "char", False)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"", "is not a sentencepiece model"),
        (b"this is a text\n" * 100, "is not a sentencepiece model"),
        (b"\x80" * 1000, "is not a sentencepiece model"),
    ],
)
def test_what_is_no_model_is_one_error_before_any_text_is_read(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "any.model"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=f"^{file}: {message}") as error:
        TOKENIZERS["ready"](src=str(file)).check()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("literal", ["<s>", "</s>", "<unk>", "<pad>"])
def test_literals_are_learnt_from_as_any_text(literal: str) -> None:
    """Case 12, in the text that a tokenizer is trained on: words and characters that stand nowhere else."""
    words = train("none", [f"a {literal} b c"] * 20, lambda _: None, vocab_size=50)
    assert UNK not in encode(words, f"a {literal} b")
    letters = train("char", ["a b c", literal] * 20, lambda _: None, vocab_size=50)
    assert UNK not in encode(letters, literal) and round_trip(letters, f"a {literal}") == f"a {literal}"
