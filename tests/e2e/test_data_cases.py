"""What is wrong with people's text, through the commands: nothing shifts, nothing is lost unsaid, faults are named."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from conftest import Answer, copy_lines, make_toy, toy_config, write

from nmt import checkpoint
from nmt.data.demo import pairs
from nmt.data.prepare import Prepared, open_prepared
from nmt.run import Run

Command = Callable[..., Answer]
KEEP = ("-s", "data.filters.duplicates=keep", "-s", "data.filters.overlap=keep")
SETS = ("train", "valid", "test")
SEPARATORS = "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"


def succeed(answer: Answer) -> Answer:
    assert answer.code == 0, answer.err
    return answer


def refusal(answer: Answer) -> str:
    """The one line that a mistake is answered with."""
    assert (answer.code, answer.out) == (2, b""), answer
    (line,) = [line for line in answer.err.split("\n") if line.startswith("error: ")]
    assert "Traceback" not in answer.err
    return line


def spoil(directory: Path, change: Callable[[list[str]], list[str]], sets: tuple[str, ...] = SETS) -> None:
    """Changes the lines of both sides of some sets."""
    for name in sets:
        for side in ("src", "tgt"):
            path = directory / f"{name}.{side}"
            write(path, change(path.read_text().split("\n")[:-1]))


def prepared(directory: Path, run: str = "run") -> Prepared:
    return open_prepared(Run(directory / run))


def train_texts(directory: Path) -> list[tuple[str, str]]:
    return [(src, tgt) for src, (tgt,) in prepared(directory).train().texts()]


def lines_of(path: Path) -> list[str]:
    """As every other program sees them that ends lines at newlines and nowhere else; all of them must have one."""
    *lines, rest = path.read_bytes().decode().split("\n")
    assert rest == ""
    return lines


# --- characters ---


def test_a_separator_inside_a_line_ends_no_line(command: Command, tmp_path: Path) -> None:
    """Case 1: in all sets, in both sides, in translations and in references."""
    config = make_toy(tmp_path, train=40, steps=2, validate_every=2)
    odd = [f"a b{separator}c {i}" for i, separator in enumerate(SEPARATORS)]
    spoil(tmp_path, lambda lines: [lines[0], *odd, *lines[9:]])
    said = succeed(command("prepare", config, *KEEP)).err
    for number, name in enumerate(["U+2028 LINE SEPARATOR", "U+2029 PARAGRAPH SEPARATOR", "U+0085 NEXT LINE"], 2):
        assert f"{name} inside 6 lines, first at {tmp_path}/valid.src:{number}: turned into spaces" in said
    for name in ("VERTICAL TAB", "FORM FEED", "FILE SEPARATOR", "GROUP SEPARATOR", "RECORD SEPARATOR"):
        assert f"{name} inside 6 lines" in said

    source = lines_of(tmp_path / "train.src")
    texts = train_texts(tmp_path)
    assert len(texts) == 40 and all(src == tgt for src, tgt in texts)
    assert [src for src, _ in texts[1:9]] == [f"a b c {i}" for i in range(8)]
    assert [texts[0][0], *(src for src, _ in texts[9:])] == [source[0], *source[9:]]

    succeed(command("train", config, *KEEP))
    assert len(lines_of(tmp_path / "run/valid/step-00000002.en")) == 30
    [result] = json.loads(succeed(command("evaluate", tmp_path / "run", "--json")).out)
    assert result["lines"] == 40
    [hypotheses] = (tmp_path / "run/evaluate").glob("*.en")
    assert len(hypotheses.read_text().splitlines()) == len(lines_of(hypotheses)) == 40
    scored = ("--hyp", tmp_path / "test.src", "--ref", tmp_path / "test.tgt", "--tgt-lang", "en", "--json")
    [result] = json.loads(succeed(command("evaluate", *scored)).out)
    assert (result["lines"], result["scores"]["bleu"]["value"]) == (40, pytest.approx(100.0))


def same_prepared(one: Path, other: Path) -> bool:
    names = ("tokenizer.model", "train.arrow", "valid.valid.arrow")
    return all((one / "run/prepared" / n).read_bytes() == (other / "run/prepared" / n).read_bytes() for n in names)


@pytest.fixture
def two_folders(tmp_path: Path) -> tuple[Path, Path]:
    """The same toy twice."""
    folders = tmp_path / "one", tmp_path / "other"
    for folder in folders:
        folder.mkdir()
        make_toy(folder, train=50)
    return folders


def as_bytes(directory: Path, change: Callable[[bytes], bytes]) -> None:
    for path in directory.glob("*.[st]??"):
        path.write_bytes(change(path.read_bytes()))


def score_of(command: Command, hypothesis: Path, reference: Path) -> float:
    files = ("--hyp", hypothesis, "--ref", reference, "--tgt-lang", "en", "--json")
    [result] = json.loads(succeed(command("evaluate", *files)).out)
    return float(result["scores"]["bleu"]["value"])


@pytest.mark.parametrize(
    "change",
    [lambda text: text.replace(b"\n", b"\r\n"), lambda text: b"\xef\xbb\xbf" + text, lambda text: text[:-1]],
    ids=["CRLF", "BOM", "no newline at the end"],
)
def test_the_form_of_a_file_changes_nothing(
    command: Command, two_folders: tuple[Path, Path], change: Callable[[bytes], bytes]
) -> None:
    """Cases 2, 3 and 8: the same pairs, pieces and BLEU."""
    plain, other = two_folders
    as_bytes(other, change)
    said = [succeed(command("prepare", folder / "toy.yaml")).err for folder in two_folders]
    assert same_prepared(plain, other)
    assert prepared(other).digest() == prepared(plain).digest()
    assert said[1].count("U+FEFF BYTE ORDER MARK inside 6 lines") == (change(b"").startswith(b"\xef"))
    assert score_of(command, other / "test.src", plain / "test.tgt") == pytest.approx(100.0)
    assert score_of(command, plain / "test.src", other / "test.tgt") == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("odd", "name", "becomes"),
    [
        ("a b\0c", "U+0000 NUL", "a bc"),
        ("a b\ufeffc", "U+FEFF BYTE ORDER MARK", "a bc"),
        ("a b\rc", "U+000D CARRIAGE RETURN", "a b c"),
        ("a b\u200dc", "U+200D ZERO WIDTH JOINER", "a b\u200dc"),
        ("a b\ufffdc", "U+FFFD REPLACEMENT CHARACTER", "a b\ufffdc"),
    ],
    ids=["NUL", "BOM", "CR", "ZWJ", "U+FFFD"],
)
def test_an_odd_character_inside_a_line_is_counted(
    command: Command, copy_run: Path, tmp_path: Path, odd: str, name: str, becomes: str
) -> None:
    """Cases 2, 3 and 4: nothing crashes, and no line is lost."""
    config = make_toy(tmp_path, train=20)
    spoil(tmp_path, lambda lines: [*lines[:6], odd, *lines[7:]], ("train",))
    said = succeed(command("prepare", config, *KEEP)).err
    assert f"{name} inside 2 lines, first at {tmp_path}/train.src:7" in said
    assert "20 pairs read, 20 kept" in said
    assert train_texts(tmp_path)[6] == (becomes, becomes)
    translated = succeed(command("translate", copy_run / "run", stdin=f"a\n{odd}\nb\n".encode())).out
    assert translated.split(b"\n")[0::2] == [b"a", b"b"] and translated.count(b"\n") == 3


def test_ids_read_back_as_the_text_that_was_written(command: Command, tmp_path: Path) -> None:
    """Case 12, and the store: random pairs of odd text, whatever names of pieces and signs of tools it holds."""
    words = ["</s>", "<s>", "<unk>", "<pad>", "a@@", "|||", "\u2047", "猫", "e\u0301", "é", "\U0001f408", "<0x0A>", "x"]
    rng = random.Random(7)
    sides = [[" ".join(rng.choices(words, k=rng.randint(1, 9))) for _ in range(500)] for _ in range(2)]
    config = make_toy(tmp_path, train=1)
    for side, lines in zip(("src", "tgt"), sides, strict=True):
        write(tmp_path / f"train.{side}", lines)
    bpe = "tokenizer={name: bpe, vocab_size: 400, byte_fallback: true}"
    succeed(command("prepare", config, *KEEP, "-s", "data.filters.ratio=keep", "-s", bpe))
    store, tokenizer = prepared(tmp_path).train(), prepared(tmp_path).tokenizer()
    chosen = [int(pair) for pair in np.random.default_rng(1).permutation(500)[:200]]
    assert store.pair_texts(chosen) == [(sides[0][i], sides[1][i]) for i in chosen]
    for ids, texts in zip(store.ids(chosen), sides, strict=True):
        assert tokenizer.decode([list(map(int, some[:-1])) for some in ids]) == [texts[i] for i in chosen]
        assert all(some[-1] == 3 and not np.isin(some[:-1], (0, 1, 2, 3)).any() for some in ids)
    assert [store.where(i) for i in chosen] == [f"{tmp_path}/train.src:{i + 1}" for i in chosen]


# --- lines ---


def test_blank_sides_are_dropped_from_training_only(command: Command, tmp_path: Path) -> None:
    """Cases 8 and 9: as pairs, counted by kind, and the pairs around them stay aligned."""
    config = make_toy(tmp_path, train=1, steps=2, validate_every=2)
    blanks = [("", "a"), ("b", ""), ("", ""), ("  ", "c"), ("d", "\u200b"), ("\u3000", " ")]
    rows = [("one", "eins"), *blanks[:3], ("two", "zwei"), *blanks[3:], ("three", "drei"), ("", "")]
    for name in SETS:
        write(tmp_path / f"{name}.src", [src for src, _ in rows]), write(tmp_path / f"{name}.tgt", [t for _, t in rows])
    said = succeed(command("prepare", config, *KEEP)).err
    assert "train.src: 10 pairs read, 3 kept; dropped: " in said
    for kind in ("2 source empty (first at", "2 target empty (first at", "3 both sides empty (first at"):
        assert f"{kind} {tmp_path}/train.src:" in said
    assert train_texts(tmp_path) == [("one", "eins"), ("two", "zwei"), ("three", "drei")]
    [valid] = prepared(tmp_path).valid().values()
    assert [(src, tgt) for src, (tgt,) in valid.texts()] == rows
    succeed(command("train", config, *KEEP))
    [result] = json.loads(succeed(command("evaluate", tmp_path / "run", "--json")).out)
    assert result["lines"] == 10
    [hypotheses] = (tmp_path / "run/evaluate").glob("*.en")
    came_back = lines_of(hypotheses)
    assert [came_back[i] for i in (1, 3, 5, 7, 9)] == ["", "", "  ", "\u3000", ""]


LONG = [" ".join(["a"] * 5_000), "b" * 200_000]


def test_lines_out_of_all_proportion_are_dropped_from_training(command: Command, tmp_path: Path) -> None:
    """Case 11: counted by what they exceed."""
    config = make_toy(tmp_path, train=100)
    spoil(tmp_path, lambda lines: [*lines[:10], *LONG, *lines[10:]], ("train",))
    said = succeed(command("prepare", config, *KEEP)).err
    first = f"(first at {tmp_path}/train.src:11)"
    assert f"102 pairs read, 100 kept; dropped: 2 too long (limit 5000 characters) {first}" in said
    assert max(len(src) for src, _ in train_texts(tmp_path)) < 20
    lenient = ("-s", "data.filters.characters=keep", "-s", f"run_dir={tmp_path}/lenient")
    said = succeed(command("prepare", config, *KEEP, *lenient)).err
    assert f"102 pairs read, 101 kept; dropped: 1 too long (limit 250 pieces) {first}" in said


def test_lines_out_of_all_proportion_are_translated_with_a_warning(command: Command, tmp_path: Path) -> None:
    """Case 11: cut, by name; the lines around them are whole, and N lines in are N lines out."""
    config = make_toy(tmp_path, train=100, steps=2, validate_every=2)
    succeed(command("train", config, "-s", "tokenizer=char"))
    lines = ["a b", LONG[0], "", LONG[1], "c"]
    write(tmp_path / "in", lines)
    brief = ("-s", "search.max_ratio=0.0", "-s", "search.max_extra=5")
    answer = succeed(command("translate", tmp_path / "run", "in", "-o", "out", *brief))
    assert [bool(line) for line in lines_of(tmp_path / "out")] == [True, True, False, True, True]
    assert answer.err.count("warning: line 2 has 10,000 pieces") == answer.err.count("line 4 has 200,001 pieces") == 1
    write(tmp_path / "ref", ["a b"] * 5)
    answer = succeed(command("evaluate", tmp_path / "run", "--src", "in", "--ref", "ref", "--json", *brief))
    assert json.loads(answer.out)[0]["lines"] == 5
    assert "line 2 has 10,000 pieces" in answer.err


# --- pairs ---


def test_duplicates_and_held_out_lines_in_train_are_named_and_dropped(command: Command, tmp_path: Path) -> None:
    """Case 13: or kept on demand, and still counted."""
    config = make_toy(tmp_path, train=1)
    train = ["x", "y", "x", "v w", "T U", "x", "z"]
    for name, lines in (("valid", ["v w"]), ("test", ["t u", "T u"]), ("train", train)):
        write(tmp_path / f"{name}.src", lines), write(tmp_path / f"{name}.tgt", [f"{line} ." for line in lines])
    said = succeed(command("prepare", config)).err
    assert "7 pairs read, 3 kept; dropped: " in said
    assert f"2 duplicate (first at {tmp_path}/train.src:3)" in said
    assert f"1 source is in valid (first at {tmp_path}/train.src:4)" in said
    assert f"1 source is in test.toy (first at {tmp_path}/train.src:5)" in said
    assert [src for src, _ in train_texts(tmp_path)] == ["x", "y", "z"]
    report = (tmp_path / "run/prepared/prepare.md").read_text()
    assert f"{tmp_path}/train.src:3: `x` — `x .`" in report
    said = succeed(command("prepare", config, *KEEP, "--fresh")).err
    assert "7 pairs read, 7 kept; kept, but: " in said
    assert "2 duplicate" in said and "1 source is in valid" in said and "1 source is in test.toy" in said


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """A config for Chinese and English text, of which a test may replace the files."""
    text = list(dict.fromkeys(pairs("train")))[:3_000]
    tree: dict[str, Any] = toy_config(tmp_path) | {"src_lang": "zh", "tokenizer": {"name": "char"}}
    for name, some in (("train", text), ("valid", text[:500]), ("test", text[-500:])):
        write(tmp_path / f"{name}.src", [src for src, _ in some]), write(tmp_path / f"{name}.tgt", [t for _, t in some])
    config = tmp_path / "demo.yaml"
    config.write_text(yaml.safe_dump(tree))
    return config


def swap(src: list[str], tgt: list[str]) -> tuple[list[str], list[str]]:
    return tgt, src


def give_one_twice(src: list[str], tgt: list[str]) -> tuple[list[str], list[str]]:
    return src, src


def shuffle(src: list[str], tgt: list[str]) -> tuple[list[str], list[str]]:
    return src, random.Random(1).sample(tgt, len(tgt))


def lose_a_line(src: list[str], tgt: list[str]) -> tuple[list[str], list[str]]:
    return src, [*tgt[:1_000], *tgt[1_001:], "The end."]


FAULTS: list[tuple[Any, str]] = [
    (swap, "looks swapped"),
    (give_one_twice, "source and target are the same text in 100% of the pairs"),
    (shuffle, "looks shuffled"),
    (lose_a_line, "looks shifted from about line 1"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
def test_sides_that_do_not_belong_together_are_a_warning(command: Command, demo: Path, fault: Any, said: str) -> None:
    """Case 14: nothing is said of clean text, the fault of another is named, and nothing is written."""
    check = ("prepare", demo, "--check", *KEEP)
    assert "warning" not in succeed(command(*check)).err
    files = [demo.parent / "train.src", demo.parent / "train.tgt"]
    for path, lines in zip(files, fault(*map(lines_of, files)), strict=True):
        write(path, lines)
    [warning] = [line for line in succeed(command(*check)).err.split("\n") if line.startswith("warning: ")]
    assert warning.startswith("warning: train.src: ") and said in warning
    assert not (demo.parent / "run").exists()


def test_a_test_set_that_is_swapped_is_a_warning_too(command: Command, demo: Path) -> None:
    """Case 14."""
    files = [demo.parent / "test.src", demo.parent / "test.tgt"]
    for path, lines in zip(files, swap(*map(lines_of, files)), strict=True):
        write(path, lines)
    assert "warning: data.test.toy: looks swapped" in succeed(command("prepare", demo, "--check", *KEEP)).err


# --- vocabularies ---


@pytest.mark.parametrize("name", ["bpe", "unigram"])
def test_a_vocabulary_too_large_for_the_text_is_lowered_and_trains(command: Command, tmp_path: Path, name: str) -> None:
    """Case 17: 32,000 pieces from 100 sentences."""
    config = make_toy(tmp_path, train=100, steps=2, validate_every=2)
    said = succeed(command("train", config, "-s", f"tokenizer={{name: {name}, vocab_size: 32000}}")).err
    size = len(prepared(tmp_path).tokenizer().src)
    assert f"allows at most {size} pieces, fewer than vocab_size 32000; using {size}" in said
    assert succeed(command("translate", tmp_path / "run", stdin=b"a b\n")).out.count(b"\n") == 1


@pytest.mark.parametrize("name", ["bpe", "unigram"])
def test_a_vocabulary_smaller_than_the_alphabet_is_refused_with_one_that_would_do(
    command: Command, demo: Path, name: str
) -> None:
    """Case 18: 30 pieces for Chinese."""
    line = refusal(command("prepare", demo, "-s", f"tokenizer={{name: {name}, vocab_size: 30}}"))
    assert "vocab_size 30 is too small" in line and "raise tokenizer.vocab_size" in line
    assert not (demo.parent / "run").exists()
    needed = int(line.partition("at least ")[2].split()[0])
    assert 200 < needed < 2_000
    succeed(command("prepare", demo, "-s", f"tokenizer={{name: {name}, vocab_size: {needed}}}"))


# --- the same data again ---


def test_a_tokenizer_that_was_swapped_is_refused(command: Command, copy_run: Path, tmp_path: Path) -> None:
    """Case 21: in a checkpoint, and in the prepared data."""
    shutil.copytree(copy_run / "run", tmp_path / "run")
    other = make_toy(tmp_path, train=1200)
    succeed(command("prepare", other, "-s", f"run_dir={tmp_path}/other", "-s", "seed=2", "-s", "tokenizer=char"))
    foreign = (tmp_path / "other/prepared/tokenizer.model").read_bytes()
    best = checkpoint.find(str(tmp_path / "run")).directory
    (best / "tokenizer.model").write_bytes(foreign)
    line = refusal(command("translate", tmp_path / "run", stdin=b"a b\n"))
    assert f"{best}/tokenizer.model: its content is not what was saved" in line
    (tmp_path / "other/prepared/tokenizer.model").write_bytes((tmp_path / "run/prepared/tokenizer.model").read_bytes())
    line = refusal(command("train", other, "-s", f"run_dir={tmp_path}/other", "-s", "seed=2", "-s", "tokenizer=char"))
    assert "its tokenizer is not the one that it was prepared with" in line


def test_prepared_anew_with_another_tokenizer_a_run_is_not_taken_up(command: Command, tmp_path: Path) -> None:
    """Case 23: neither by mistake, nor by force; only from the start."""
    config = make_toy(tmp_path, train=100, steps=2, validate_every=2)
    succeed(command("train", config))
    char = ("-s", "tokenizer=char")
    for verb in ("prepare", "train"):
        line = refusal(command(verb, config, *char, "-s", "data.train.0.limit=50"))
        assert "tokenizer:" in line and "data.train.0.limit: nothing -> 50" in line and "--fresh" in line
    succeed(command("prepare", config, *char, "--fresh"))
    assert "was trained with another tokenizer" in refusal(command("train", config, *char, "-s", "train.steps=4"))
    succeed(command("train", config, *char, "--fresh"))


def test_stores_of_another_preparation_are_refused(command: Command, tmp_path: Path) -> None:
    """Case 23: files copied over one by one."""
    config = make_toy(tmp_path, train=100)
    for number, lines in enumerate((copy_lines(100, 1), copy_lines(100, 5))):
        write(tmp_path / "train.src", lines), write(tmp_path / "train.tgt", lines)
        succeed(command("prepare", config, "-s", f"run_dir={tmp_path}/{number}"))
    for name in ("train.arrow", "manifest.json"):
        kept = (tmp_path / "1/prepared" / name).read_bytes()
        (tmp_path / "1/prepared" / name).write_bytes((tmp_path / "0/prepared" / name).read_bytes())
        line = refusal(command("train", config, "-s", f"run_dir={tmp_path}/1"))
        assert f"{tmp_path}/" in line and "--fresh" in line
        (tmp_path / "1/prepared" / name).write_bytes(kept)
