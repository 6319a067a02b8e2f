"""Real corpora: shipped configs prepare them, true faults are named, and clean ones are not accused.

Skipped unless NMT_TEST_CORPORA names their folder.
"""

from __future__ import annotations

import gzip
import os
import random
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Answer, toy_config, write

from nmt.data.prepare import prepare
from nmt.tokenizer import blank, clean
from nmt.variants import load

CORPORA = Path(os.environ.get("NMT_TEST_CORPORA", ""))
CONFIGS = Path(__file__).parents[2] / "configs"
Report = Callable[..., list[str]]
Lines = list[str]

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(Path() == CORPORA, reason="NMT_TEST_CORPORA is not set"),
]


@pytest.mark.parametrize(
    ("name", "read", "dropped", "valid"),
    [
        ("multi30k", 29_000, {"source is in valid": 1, "duplicate": 3}, 1_014),
        ("tatoeba_zh_en", 26_743, {}, 1_000),
    ],
)
def test_a_shipped_config_prepares_its_corpus(
    tmp_path: Path, name: str, read: int, dropped: dict[str, int], valid: int
) -> None:
    config = load(str(CONFIGS / f"{name}.yaml"), [f"data.root={CORPORA}/{name}", f"run_dir={tmp_path}/run"])
    prepared = prepare(config, False, lambda _: None)
    (corpus,) = prepared.manifest["corpora"]
    assert (corpus["read"], corpus["dropped"]) == (read, dropped)
    assert prepared.manifest["valid"] == {"valid": valid}
    assert len(prepared.train()) == corpus["kept"] == read - sum(dropped.values())


@pytest.fixture
def report(command: Callable[..., Answer], tmp_path: Path) -> Report:
    """The lines of `nmt prepare --check` for languages and a corpus, with sets if need be."""

    def check(languages: str, train: dict[str, Any], **sets: Any) -> list[str]:
        src, tgt = languages.split("-")
        tree = toy_config(tmp_path) | {"src_lang": src, "tgt_lang": tgt}
        tree["tokenizer"] = {"name": "bpe", "vocab_size": 5_000, "sample": 5_000}
        tree["data"] = {"root": str(CORPORA), "train": [train], **sets}
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(tree))
        code, out, err = command("prepare", "c.yaml", "--check")
        assert (code, out) == (0, b""), err
        assert not (tmp_path / "run").exists()
        return err.split("\n")[:-1]

    return check


def plain(folder: str, src: str, tgt: str) -> dict[str, Any]:
    return {"name": "plain", "src": f"{folder}/{src}.gz", "tgt": f"{folder}/{tgt}.gz"}


def lines_of(name: str) -> Lines:
    return gzip.decompress((CORPORA / name).read_bytes()).decode().split("\n")[:-1]


def line_about(lines: Lines, start: str, then: str = "") -> str:
    (found,) = [line for line in lines if line.startswith(start) and then in line]
    return found


def places(src: Lines, tgt: Lines, has: Callable[[str], bool]) -> tuple[int, int]:
    """How many lines of both sides have something, and the first of them, counted from 1."""
    numbers = sorted(i for side in (src, tgt) for i, line in enumerate(side, 1) if has(line))
    return len(numbers), numbers[0]


# --- true faults ---


def test_the_tatoeba_table(report: Report) -> None:
    """A byte order mark, and a third column with the names of authors."""
    file = CORPORA / "realworld/tatoeba_cmn_eng.tsv"
    rows = [line.split("\t") for line in file.read_bytes().decode("utf-8-sig").split("\n") if line]
    said = report("zh-en", {"name": "tsv", "path": "realworld/tatoeba_cmn_eng.tsv", "src": 1, "tgt": 0})
    assert line_about(said, "U+FEFF BYTE ORDER MARK").endswith(f"inside 1 line, first at {file}:1: removed")
    assert "has 3 columns; not used: 2 ('CC-BY 2.0 (France) Attribution" in line_about(said, str(file))
    unique = len({(row[1], row[0]) for row in rows})
    counts = line_about(said, "tatoeba_cmn_eng.tsv: ")
    assert f"{len(rows):,} pairs read, {unique:,} kept; dropped: {len(rows) - unique} duplicate (first" in counts
    count, first = places([row[1] for row in rows], [row[0] for row in rows], lambda line: "\u200b" in line)
    assert f"inside {count} lines, first at {file}:{first}: kept" in line_about(said, "U+200B ZERO WIDTH SPACE")


@pytest.mark.parametrize(
    ("name", "pairs", "same", "markup"), [("focus-for-ios", 224, 19, "%1$@"), ("mozillians", 129, 4, "{name}")]
)
def test_translation_memories(report: Report, name: str, pairs: int, same: int, markup: str) -> None:
    """Placeholders, and names that are not translated."""
    text = (CORPORA / f"realworld/ca.{name}.tmx").read_text(encoding="utf-8")
    assert text.count("<tu ") + text.count("<tu>") == pairs
    said = report("en-ca", {"name": "tmx", "path": f"realworld/ca.{name}.tmx", "src": "en", "tgt": "ca"})
    counts = line_about(said, f"ca.{name}.tmx: ", "pairs read")
    assert f"{pairs} pairs read" in counts and f"kept, but: {same} source equals target (first at" in counts
    marked = line_about(said, f"ca.{name}.tmx: ", "markup or placeholders in")
    (line,) = re.findall(rf"first {re.escape(markup)} at \S+\.tmx:(\d+)", marked)
    unit = text.split("\n")[int(line) - 1 :]
    assert "<tu" in unit[0] and markup in "".join(unit).partition("</tu>")[0]


def test_catalogues_of_messages(report: Report) -> None:
    """Markup, and code that stays what it is."""
    said = report("en-zh", {"name": "po", "path": "realworld/python_docs_po/*.po"})
    counts = line_about(said, "*.po: ", "pairs read")
    assert "261 pairs read, 261 kept" in counts and "68 source equals target (first at" in counts
    assert "floatingpoint.po:28" in line_about(said, "*.po: markup or placeholders in 32% of the pairs", "first ``")


def test_a_text_of_user_interfaces_and_bible(report: Report) -> None:
    """Duplicates, empty lines, joiners that the script needs, and lines that were not translated."""
    ne, en = (lines_of(f"realworld/ui_bible_ne_en.{side}.gz") for side in ("ne", "en"))
    file = CORPORA / "realworld/ui_bible_ne_en.ne.gz"
    said = report("ne-en", plain("realworld", "ui_bible_ne_en.ne", "ui_bible_ne_en.en"))
    for character, name in (("\u200c", "ZERO WIDTH NON-JOINER"), ("\u200d", "ZERO WIDTH JOINER")):
        count, first = places(ne, en, lambda line, character=character: character in line)
        assert count > 10
        expected = f"U+{ord(character):04X} {name} inside {count} lines, first at {file}:{first}: kept"
        assert line_about(said, expected[:6]) == expected
    pairs = [(clean(s), clean(t)) for s, t in zip(ne, en, strict=True)]
    both = sum(blank(s) and blank(t) for s, t in pairs)
    left = [(s, t) for s, t in pairs if not blank(s) and not blank(t)]
    counts = line_about(said, "ui_bible_ne_en.ne.gz: ", "pairs read")
    assert "20,000 pairs read, " in counts and f"{both} both sides empty (first at {file}:" in counts
    assert 2_300 < len(left) - len(set(left)) < 2_400
    assert f"{len(left) - len(set(left)):,} duplicate (first at {file}:" in counts
    assert re.search(r"kept, but: 1\d\d source equals target", counts)
    line_about(said, "ui_bible_ne_en.ne.gz: markup or placeholders in")


def test_a_manual_with_markup(report: Report) -> None:
    """Markup in most lines, broken characters, and mixed forms of composition; the same lines in train and test."""
    said = report(
        "en-zh",
        plain("realworld", "python_docs_train.en", "python_docs_train.zh"),
        valid=plain("realworld", "python_docs_dev.en", "python_docs_dev.zh"),
        test={"test": plain("realworld", "python_docs_test.en", "python_docs_test.zh")},
    )
    sides = [
        [lines_of(f"realworld/python_docs_{s}.{side}.gz") for s in ("dev", "test", "train")] for side in ("en", "zh")
    ]
    every = [[line for lines in side for line in lines] for side in sides]
    count, _ = places(*every, lambda line: "\ufffd" in line)
    assert f"inside {count} lines, first at" in line_about(said, "U+FFFD REPLACEMENT CHARACTER")
    count, _ = places(*every, lambda line: not unicodedata.is_normalized("NFC", line))
    assert f"{count} lines hold decomposed characters" in line_about(said, "mixed normalisation forms")
    marked = line_about(said, "python_docs_train.en.gz: markup or placeholders in")
    (share,) = re.findall(r"in (\d+)% of the pairs", marked)
    assert 50 < int(share) < 80
    counts = line_about(said, "python_docs_train.en.gz: ", "pairs read")
    keys = [[line.strip().casefold() for line in lines] for lines in sides[0]]
    for number, name in enumerate(("valid", "test")):
        held = set(keys[number])
        shared = len([line for line in keys[2] if line in held])
        assert shared and f"{shared} source is in {name} (first at" in counts


# --- sides that do not go together, and sides that do ---

CLEAN = [
    ("en-de", plain("multi30k", "train.en", "train.de")),
    ("zh-en", plain("tatoeba_zh_en", "train.zh", "train.en")),
    ("de-en", plain("tatoeba_de_en", "train.de", "train.en")),
    ("en-de", plain("ntrex", "newstest2019.en", "newstest2019.de")),
    ("en-zh", plain("ntrex", "newstest2019.en", "newstest2019.zh")),
]


@pytest.mark.parametrize(("languages", "corpus"), CLEAN, ids=[f"{corpus['src']} {lang}" for lang, corpus in CLEAN])
def test_clean_corpora_are_not_accused(report: Report, languages: str, corpus: dict[str, Any]) -> None:
    said = report(languages, corpus)
    assert not [line for line in said if "looks" in line or line.startswith("warning")]
    assert "pairs read" in "".join(said)


LOST = 12_345


def lose_target(src: Lines, tgt: Lines) -> tuple[Lines, Lines]:
    return src, [*tgt[: LOST - 1], *tgt[LOST:], "Ein Ende."]


def lose_source(src: Lines, tgt: Lines) -> tuple[Lines, Lines]:
    return [*src[: LOST - 1], *src[LOST:], "An end."], tgt


def shuffle(src: Lines, tgt: Lines) -> tuple[Lines, Lines]:
    return src, random.Random(1).sample(tgt, len(tgt))


def swap(src: Lines, tgt: Lines) -> tuple[Lines, Lines]:
    return tgt, src


FAULTS: list[tuple[Any, str]] = [
    (lose_target, r"looks shifted from about line (\d+) on: translations stand 1 line earlier than"),
    (lose_source, r"looks shifted from about line (\d+) on: translations stand 1 line later than"),
    (shuffle, r"looks shuffled"),
    (swap, r"looks swapped"),
]


@pytest.mark.parametrize(("fault", "said"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
def test_a_fault_made_on_purpose_is_named(report: Report, tmp_path: Path, fault: Any, said: str) -> None:
    """Case 14, with 29,000 pairs; the place of a lost line within 500 lines."""
    sides = fault(lines_of("multi30k/train.en.gz"), lines_of("multi30k/train.de.gz"))
    files = [write(tmp_path / name, lines) for name, lines in zip(("src", "tgt"), sides, strict=True)]
    warning = line_about(
        report("en-de", {"name": "plain", "src": str(files[0]), "tgt": str(files[1])}), "warning: src: looks"
    )
    found = re.search(said, warning)
    assert found, warning
    assert warning.count("looks") == 1
    assert all(abs(int(line) - LOST) <= 500 for line in found.groups())
