"""Preparing: pairs stay pairs whatever the text holds, everything dropped is counted, and it is whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.data.encoding import TRIED
from nmt.data.plan import Share
from nmt.data.prepare import Prepared, check, open_prepared, prepare, read_set, take_over
from nmt.errors import BusyError, ConfigError, DataError, NmtError
from nmt.run import Run
from nmt.variants import load

EN = ["one cat", "two cats", "a dog sees a cat", "the dog", "a red cat and a dog"]
DE = ["eine Katze", "zwei Katzen", "ein Hund sieht eine Katze", "der Hund", "eine rote Katze und ein Hund"]
VALID = ["the cat", "two dogs"], ["die Katze", "zwei Hunde"]
TEST = ["a dog", "a red dog", "dogs see cats"], ["ein Hund", "ein roter Hund", "Hunde sehen Katzen"]
WORDS = [f"w{number}" for number in range(300)]


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


class Place:
    """A folder with the files of a small corpus and a config for them; `files` replaces some."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "c.yaml"
        self.run = Run(directory / "run")
        self.said: list[str] = []
        self.write(train=(text(EN), text(DE)), valid=(text(VALID[0]), text(VALID[1])))
        self.write(test=(text(TEST[0]), text(TEST[1])))
        self.set()

    def write(self, **files: tuple[bytes, bytes]) -> None:
        for name, (src, tgt) in files.items():
            (self.directory / f"{name}.en").write_bytes(src)
            (self.directory / f"{name}.de").write_bytes(tgt)

    def set(self, **settings: Any) -> None:
        tree = {
            "run_dir": str(self.run.directory),
            "src_lang": "en",
            "tgt_lang": "de",
            "data": {
                "root": str(self.directory),
                "train": [{"name": "plain", "src": "train.en", "tgt": "train.de"}],
                "valid": {"name": "plain", "src": "valid.en", "tgt": "valid.de"},
                "test": {"t": {"name": "plain", "src": "test.en", "tgt": "test.de"}},
            },
            "tokenizer": {"name": "char", "vocab_size": 200},
            "model": {"dim": 8, "heads": 2, "ffn_dim": 8, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0},
            "train": {"steps": 1},
        }
        self.config.write_text(yaml.safe_dump({**tree, **settings}, allow_unicode=True))

    def prepare(self, *overrides: str, fresh: bool = False) -> Prepared:
        self.said = []
        return prepare(load(str(self.config), overrides), fresh, self.said.append, jobs=1)

    def check(self, *overrides: str) -> None:
        self.said = []
        check(load(str(self.config), overrides), self.said.append, jobs=1)

    def told(self) -> str:
        return "\n".join(self.said)

    def listing(self) -> list[str]:
        return sorted(str(p.relative_to(self.directory)) for p in self.directory.rglob("*"))

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        before = self.listing()
        yield
        assert self.listing() == before


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def training(prepared: Prepared) -> list[tuple[str, str, list[int], list[int]]]:
    """Text and ids of the training pairs."""
    store = prepared.train()
    src, tgt = store.ids(range(len(store)))
    texts = list(store.texts())
    return [(s, t[0], a.tolist(), b.tolist()) for (s, t), a, b in zip(texts, src, tgt, strict=True)]


def counts(prepared: Prepared, corpus: int = 0) -> tuple[int, int, dict[str, int]]:
    entry = prepared.manifest["corpora"][corpus]
    return entry["read"], entry["kept"], entry["dropped"]


# --- the ordinary way ---


def test_the_store_holds_text_and_its_ids_in_the_order_of_the_corpus(place: Place) -> None:
    prepared = place.prepare()
    rows = training(prepared)
    assert [row[:2] for row in rows] == list(zip(EN, DE, strict=True))
    tokenizer = prepared.tokenizer()
    assert [row[2] for row in rows] == [ids.tolist() for ids in tokenizer.encode_src(EN)]
    assert [row[3] for row in rows] == [ids.tolist() for ids in tokenizer.encode_tgt(DE)]
    assert prepared.train().where(3) == f"{place.directory}/train.en:4"
    valid = prepared.valid()["valid"]
    assert list(valid.texts()) == [(s, (t,)) for s, t in zip(*VALID, strict=True)]
    assert valid.where(1) == f"{place.directory}/valid.en:2"


def test_the_manifest_says_what_was_made(place: Place) -> None:
    place.write(train=(text([*EN, "a\u2028b", "", "one cat"]), text([*DE, "ab", "leer", "eine Katze"])))
    prepared = place.prepare()
    manifest, rows = prepared.manifest, training(open_prepared(place.run))
    assert json.loads((place.run.prepared / "manifest.json").read_text()) == manifest
    assert manifest["pairs"] == len(rows) == 6
    assert manifest["pieces"] == {"src": sum(len(r[2]) for r in rows), "tgt": sum(len(r[3]) for r in rows)}
    assert (manifest["valid"], manifest["test"]) == ({"valid": 2}, {"t": 3})
    assert [entry["path"] for entry in manifest["inputs"]] == ["train.en", "train.de", "valid.en", "valid.de"]
    assert all(len(entry["sha256"]) == 64 for entry in manifest["inputs"])
    size = len(prepared.tokenizer().src)
    assert manifest["vocabulary"] == {"src": size, "tgt": size, "joint": True}
    (corpus,) = manifest["corpora"]
    assert (corpus["label"], corpus["read"], corpus["kept"]) == ("train.en", 8, 6)
    assert corpus["dropped"] == {"source empty": 1, "duplicate": 1}
    assert manifest["odd_characters"] == {"U+2028": {"lines": 1, "first": f"{place.directory}/train.en:6"}}
    assert manifest["suspicions"] == manifest["markup"] == []
    assert -1 <= corpus["length_correlation"] <= 1 and corpus["number_agreement"] is None
    assert set(manifest["checksums"]) == {"train.arrow", "valid.valid.arrow"}
    assert manifest["digest"] == prepared.digest()


def test_how_text_becomes_pieces_is_counted_for_what_is_kept(place: Place) -> None:
    place.write(train=(text([*EN, "a\u3000b  c", ""]), text([*DE, "▁x", "leer"])))
    usage = place.prepare().manifest["usage"]
    rows = training(open_prepared(place.run))
    for side, texts, ids in (("src", 0, 2), ("tgt", 1, 3)):
        of, lengths = usage[side], sorted(len(row[ids]) for row in rows)
        assert (of["lines"], of["pieces"], of["unknown"], of["bytes"]) == (6, sum(lengths), 0, 0)
        assert of["words"] == sum(row[texts].count(" ") + 1 for row in rows) and of["unit"] == "word"
        assert of["characters"] == sum(len(row[texts]) for row in rows)
        assert (of["lengths"]["p1"], of["lengths"]["p50"], of["lengths"]["max"]) == (lengths[0], lengths[2], lengths[5])
        assert of["lengths"]["mean"] == round(sum(lengths) / 6, 2)
        assert of["round_trip"]["lines"] == 6
    assert usage["src"]["round_trip"] == {"lines": 6, "changed": 1, "spaces": 1, "example": None}  # spaces become one
    assert usage["tgt"]["round_trip"]["example"] == ["▁x", "x"]
    assert place.prepare("tgt_lang=zh", fresh=True).manifest["usage"]["tgt"]["unit"] == "character"


def test_the_report_lies_beside_the_manifest_and_says_what_the_terminal_said(place: Place) -> None:
    place.write(train=(text([*EN, "", "one cat"]), text([*DE, "leer", "eine Katze"])))
    place.prepare()
    where = f"{place.directory}/train.en"
    report = (place.run.prepared / "prepare.md").read_text()
    assert "5 pairs for training" in place.told() and "5 pairs for training" in report
    assert "| train.en | 7 | 5 | 2 |" in report
    assert f"- {where}:7: `one cat` — `eine Katze`" in report
    dropped = f"1 source empty (first at {where}:6), 1 duplicate (first at {where}:7)"
    assert f"train.en: 7 pairs read, 5 kept; dropped: {dropped}" in place.said


def test_three_examples_of_every_drop_are_kept_with_place_and_text(place: Place) -> None:
    place.write(train=(text([*EN, *["one cat"] * 5]), text([*DE, *["eine Katze"] * 5])))
    (corpus,) = place.prepare("data.filters.length.max_tokens=20").manifest["corpora"]
    assert corpus["dropped"] == {"duplicate": 5, "too long (limit 20 pieces)": 2}
    assert corpus["examples"]["duplicate"] == [
        {"where": f"{place.directory}/train.en:{line}", "src": "one cat", "tgt": "eine Katze"} for line in (6, 7, 8)
    ]
    assert [e["src"] for e in corpus["examples"]["too long (limit 20 pieces)"]] == [EN[2], EN[4]]


def test_separate_vocabularies_lie_in_two_files(place: Place) -> None:
    prepared = place.prepare("tokenizer.joint=false", "model.tie=decoder")
    names = {path.name for path in place.run.prepared.iterdir()}
    assert {"src.model", "tgt.model"} <= names and "tokenizer.model" not in names
    assert not prepared.tokenizer().joint


def test_the_same_input_prepares_to_the_same_bytes(place: Place, tmp_path: Path) -> None:
    first = place.prepare("tokenizer={name: bpe, vocab_size: 40}")
    second = place.prepare("tokenizer={name: bpe, vocab_size: 40}", f"run_dir={tmp_path}/other")
    assert first.digest() == second.digest()
    for file in first.directory.iterdir():
        assert file.read_bytes() == (second.directory / file.name).read_bytes()


def test_the_digest_is_that_of_the_pairs_whatever_they_are_called_and_wherever_they_lie(place: Place) -> None:
    first = place.prepare().digest()
    (place.directory / "t.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in zip(EN, DE, strict=True)))
    assert place.prepare("data.train={name: tsv, path: t.tsv, label: x}", fresh=True).digest() == first
    place.write(train=(text([*EN[:-1], "another"]), text(DE)))
    assert place.prepare(fresh=True).digest() != first


def test_several_corpora_follow_each_other_and_are_counted_apart(place: Place) -> None:
    (place.directory / "more.tsv").write_text("ein Haus\ta house\n\ta house\n")
    prepared = place.prepare(
        "data.train=[{name: plain, label: first, src: train.en, tgt: train.de}, "
        "{name: tsv, path: more.tsv, src: 1, tgt: 0}]"
    )
    assert [row[0] for row in training(prepared)] == [*EN, "a house"]
    assert [entry["label"] for entry in prepared.manifest["corpora"]] == ["first", "more.tsv"]
    assert counts(prepared, 0) == (5, 5, {})
    assert counts(prepared, 1) == (2, 1, {"target empty": 1})
    assert re.search("more.tsv: 2 pairs read, 1 kept; dropped: 1 target empty", place.told())
    store = prepared.train()
    assert [store.where(pair) for pair in (0, 4, 5)] == [
        f"{place.directory}/{where}" for where in ("train.en:1", "train.en:5", "more.tsv:1")
    ]


def test_a_validation_set_keeps_all_its_references(place: Place) -> None:
    (place.directory / "second.de").write_bytes(text(["noch eine", "noch zwei"]))
    prepared = place.prepare("data.valid={name: plain, src: valid.en, tgt: [valid.de, second.de]}")
    assert next(prepared.valid()["valid"].texts())[1] == ("die Katze", "noch eine")


def test_names_with_spaces_and_any_letters_are_fine(tmp_path: Path) -> None:
    """Case 15."""
    folder = tmp_path / "with space" / "Übung 猫 #1"
    folder.mkdir(parents=True)
    place = Place(folder)
    assert place.prepare("data.test={größe: {name: plain, src: test.en, tgt: test.de}}").manifest["pairs"] == 5


# --- odd characters ---

ODD = ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"]


def test_crlf_and_lf_prepare_to_the_same(place: Place) -> None:
    """Case 2."""
    expected = training(place.prepare())
    sides = {"train": (EN, DE), "valid": VALID}
    crlf = {name: tuple(text(side).replace(b"\n", b"\r\n") for side in sides) for name, sides in sides.items()}
    place.write(**crlf)
    assert training(place.prepare(fresh=True)) == expected
    assert "U+000D" not in place.told()
    place.write(train=(crlf["train"][0], text(DE)))  # on one side only
    assert training(place.prepare(fresh=True)) == expected


def test_a_byte_order_mark_leaves_no_trace_but_in_the_report(place: Place) -> None:
    """Case 3."""
    expected = training(place.prepare())
    place.write(train=(b"\xef\xbb\xbf" + text(EN), b"\xef\xbb\xbf" + text(DE)))
    prepared = place.prepare(fresh=True)
    assert training(prepared) == expected
    first = f"{place.directory}/train.en:1"
    assert f"U+FEFF BYTE ORDER MARK inside 2 lines, first at {first}: removed" in place.said
    assert prepared.manifest["odd_characters"]["U+FEFF"] == {"lines": 2, "first": first}


@pytest.mark.parametrize("odd", ODD, ids=lambda c: f"U+{ord(c):04X}")
def test_a_separator_inside_a_line_is_a_space_and_is_reported(place: Place, odd: str) -> None:
    """Cases 1 and 2: the pairs after it stay pairs."""
    expected = training(place.prepare())
    spoilt = [line.replace(" ", odd) if i in (1, 3) else line for i, line in enumerate(EN)]
    place.write(train=(text(spoilt), text(DE)))
    prepared = place.prepare(fresh=True)
    assert training(prepared) == expected
    (line,) = [line for line in place.said if f"U+{ord(odd):04X}" in line]
    assert "2 lines" in line and f"{place.directory}/train.en:2" in line
    assert prepared.manifest["odd_characters"][f"U+{ord(odd):04X}"]["lines"] == 2


@pytest.mark.parametrize("odd", ["\0", "\ufeff", "\x7f"], ids=lambda c: f"U+{ord(c):04X}")
def test_a_character_that_nobody_sees_is_removed_and_reported(place: Place, odd: str) -> None:
    """Cases 3 and 4."""
    expected = training(place.prepare())
    place.write(train=(text(EN), text([f"{line[:3]}{odd}{line[3:]}" for line in DE])))
    assert training(place.prepare(fresh=True)) == expected
    (line,) = [line for line in place.said if line.startswith(f"U+{ord(odd):04X} ")]
    assert line.endswith(f"inside 5 lines, first at {place.directory}/train.en:1 (target): removed")


def test_odd_characters_of_valid_and_test_sets_are_reported_too(place: Place) -> None:
    """Case 1."""
    place.write(valid=(text(["the\u2028cat", "two dogs"]), text(VALID[1])))
    place.write(test=(text(TEST[0]), text(["a\x0cb", *TEST[1][1:]])))
    prepared = place.prepare()
    assert prepared.manifest["valid"] == {"valid": 2}
    assert f"{place.directory}/valid.en:1" in place.told() and "U+2028" in place.told()
    assert f"U+000C FORM FEED inside 1 line, first at {place.directory}/test.en:1 (target): turned" in place.told()


def test_literal_markup_of_tokenizers_is_text(place: Place) -> None:
    """Case 12."""
    lines = ["<s> a </s> b", "<unk> <pad>", "a ||| b", "x@@ y", "a\tb", "⁇", "<s>", "</s>"]
    place.write(train=(text(lines), text(lines)))
    for src, _, src_ids, _ in training(place.prepare()):
        assert src in [line.replace("\t", " ") for line in lines]
        assert src_ids[-1] == 3 and not {0, 2, 3} & set(src_ids[:-1])


# --- what is dropped ---


def test_empty_sides_are_dropped_as_pairs_and_counted_by_kind(place: Place) -> None:
    """Case 9."""
    src = ["one cat", "", "two cats", " ", "\u3000", "the dog", "\u200b"]
    tgt = ["eine Katze", "verloren", "", "\t", "leer", "der Hund", ""]
    place.write(train=(text(src), text(tgt)))
    prepared = place.prepare()
    assert [row[:2] for row in training(prepared)] == [("one cat", "eine Katze"), ("the dog", "der Hund")]
    assert counts(prepared) == (7, 2, {"source empty": 2, "target empty": 1, "both sides empty": 2})
    examples = prepared.manifest["corpora"][0]["examples"]
    assert [e["where"] for e in examples["source empty"]] == [f"{place.directory}/train.en:{line}" for line in (2, 5)]


def test_valid_and_test_sets_are_never_filtered(place: Place) -> None:
    """Cases 9 and 31."""
    src, tgt = ["", "x " * 400, "one", "one", "  "], ["leer", "y", "eins", "eins", ""]
    place.write(valid=(text(src), text(tgt)), test=(text(src), text(tgt)))
    valid = place.prepare().valid()["valid"]
    assert list(valid.texts()) == [(s, (t,)) for s, t in zip(src, tgt, strict=True)]


def test_duplicates_over_all_corpora_leave_one(place: Place) -> None:
    """Case 13."""
    corpus = "{name: plain, src: train.en, tgt: train.de}"
    prepared = place.prepare(f"data.train=[{corpus}, {corpus}]")
    assert prepared.manifest["pairs"] == 5
    assert counts(prepared, 1) == (5, 0, {"duplicate": 5})
    kept = place.prepare(f"data.train=[{corpus}, {corpus}]", "data.filters.duplicates=keep", fresh=True)
    assert kept.manifest["pairs"] == len(training(kept)) == 10


def test_duplicates_stay_duplicates_whatever_their_weight_limit_and_label(place: Place) -> None:
    files = "name: plain, src: train.en, tgt: train.de"
    both = f"data.train=[{{{files}, limit: 3, weight: 2}}, {{{files}, label: all}}, {{{files}, prefix: '<2de> '}}]"
    prepared = place.prepare(both)
    assert [counts(prepared, i)[:2] for i in range(3)] == [(3, 3), (5, 2), (5, 5)]  # a tag makes them other pairs
    assert [row["label"] for row in prepared.manifest["corpora"]] == ["train.en", "all", "train.en"]
    normalised = "data.filters.duplicates={by: source}"
    assert counts(place.prepare(both, normalised, fresh=True), 1)[2] == {"duplicate (source)": 3}


def test_pairs_that_a_filter_would_drop_are_noted_if_it_is_off(place: Place) -> None:
    """Cases 13 and 14: reported, not silently kept."""
    place.write(train=(text([*EN, "OK", "one cat"]), text([*DE, "OK", "eine Katze"])))
    prepared = place.prepare("data.filters.duplicates=keep")
    (corpus,) = prepared.manifest["corpora"]
    assert (len(training(prepared)), corpus["kept"], corpus["dropped"]) == (7, 7, {})
    assert corpus["noted"] == {"source equals target": 1, "duplicate": 1}
    assert "kept, but: 1 source equals target" in place.told()
    assert counts(place.prepare("data.filters.same=drop", fresh=True)) == (
        7,
        5,
        {"source equals target": 1, "duplicate": 1},
    )


def test_training_pairs_of_valid_and_test_sets_are_dropped_with_the_name_of_the_set(place: Place) -> None:
    """Case 13."""
    place.write(train=(text([*EN, "The cat ", "dogs see cats"]), text([*DE, "anders", "auch anders"])))
    prepared = place.prepare()
    assert counts(prepared) == (7, 5, {"source is in valid": 1, "source is in test.t": 1})
    assert [row[0] for row in training(prepared)] == EN
    by_pair = place.prepare("data.filters.overlap.by=pair", fresh=True)
    assert counts(by_pair) == (7, 7, {})
    kept = place.prepare("data.filters.overlap=keep", fresh=True)
    assert counts(kept) == (7, 7, {})
    assert kept.manifest["corpora"][0]["noted"] == {"source is in valid": 1, "source is in test.t": 1}
    assert "kept, but: 1 source is in valid" in place.told()


def test_the_filters_of_a_config_all_work_and_are_counted_apart(place: Place) -> None:
    bad = {
        "a" * 50: "a b c",  # characters
        "ha" * 20: "ha ha",  # repeats
        "1 2 3 4 !!!": "eins",  # letters
        "in 2016": "im Jahr 2017",  # numbers
        "я вижу кошку": "eine Katze",  # script
        "see http://x.org": "siehe da",  # regex
    }
    place.write(train=(text([*EN, *bad]), text([*DE, *bad.values()])))
    filters = (
        "{characters: {max: 45}, repeats: drop, letters: drop, numbers: drop, script: drop, regex: {any: ['https?:']}}"
    )
    prepared = place.prepare(f"data.filters={filters}")
    assert counts(prepared)[2] == {
        "too long (limit 45 characters)": 1,
        "repeated characters": 1,
        "mostly no letters": 1,
        "different numbers": 1,
        "source in another script": 1,
        "matches https?:": 1,
    }
    assert [row[0] for row in training(prepared)] == EN


# --- weights, limits, prefixes, directions ---


def test_the_shares_of_an_epoch_follow_kept_pairs_and_weights(place: Place) -> None:
    files = "name: plain, src: train.en, tgt: train.de"
    settings = f"data.train=[{{{files}, limit: 3, weight: 0.5}}, {{{files}}}]"
    prepared = place.prepare(settings)
    assert prepared.shares(load(str(place.config), [settings])) == [Share(3, 0.5), Share(2, 1.0)]
    changed = settings.replace("0.5", "2")
    assert place.prepare(changed).shares(load(str(place.config), [changed])) == [Share(3, 2.0), Share(2, 1.0)]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "none"])
def test_a_tag_is_one_piece_before_every_source_and_reverse_swaps_the_sides(place: Place, kind: str) -> None:
    """One model of two directions."""
    files = "name: plain, src: train.en, tgt: train.de"
    place.set(tokenizer={"name": kind, "vocab_size": 80})
    prepared = place.prepare(
        f"data.train=[{{{files}, limit: 2, prefix: '<2de> '}}, {{{files}, limit: 3, prefix: '<2en> ', reverse: true}}]",
        "data.valid={name: plain, src: valid.en, tgt: valid.de, prefix: '<2de> '}",
        "data.test.t.prefix='<2fr> '",
    )
    rows, tokenizer = training(prepared), prepared.tokenizer()
    there = [(f"<2de> {s}", t) for s, t in zip(EN[:2], DE[:2], strict=True)]
    assert [row[:2] for row in rows] == there + [(f"<2en> {t}", s) for s, t in zip(EN[:3], DE[:3], strict=True)]
    for src, _, ids, _ in rows:
        tag = src.split(" ")[0]
        assert next(piece.lstrip("▁") for piece in tokenizer.pieces(ids) if piece != "▁") == tag
        assert 1 not in ids or kind == "none"
        assert ids == tokenizer.encode_src([src])[0].tolist()
    assert 1 not in tokenizer.encode_src(["<2fr>"])[0]  # a tag of a test set, too
    valid = prepared.valid()["valid"]
    assert next(valid.texts()) == ("<2de> the cat", ("die Katze",))
    (ids,), _ = valid.ids([0])
    assert ids.tolist() == tokenizer.encode_src(["<2de> the cat"])[0].tolist()
    (unit, *_) = read_set(load(str(place.config), ["data.test.t.prefix='<2fr> '"]), "t")
    assert (unit.src, unit.tgts) == ("<2fr> a dog", ("ein Hund",))


def test_units_with_several_translations_are_several_pairs_in_training_only(place: Place) -> None:
    (place.directory / "more.de").write_bytes(text([f"{line} auch" for line in DE]))
    (place.directory / "second.de").write_bytes(text(["noch eine", "noch zwei"]))
    prepared = place.prepare(
        "data.train=[{name: plain, src: train.en, tgt: [train.de, more.de], limit: 2}]",
        "data.valid={name: plain, src: valid.en, tgt: [valid.de, second.de]}",
    )
    assert [row[:2] for row in training(prepared)] == [
        ("one cat", "eine Katze"),
        ("one cat", "eine Katze auch"),
        ("two cats", "zwei Katzen"),
        ("two cats", "zwei Katzen auch"),
    ]
    assert counts(prepared)[:2] == (4, 4)
    valid = prepared.valid()["valid"]
    assert list(valid.texts()) == [("the cat", ("die Katze", "noch eine")), ("two dogs", ("zwei Hunde", "noch zwei"))]
    _, (ids, _) = valid.ids([0, 1])
    assert ids.tolist() == prepared.tokenizer().encode_tgt(["die Katze"])[0].tolist()  # of the first


def test_the_tokenizer_is_trained_on_a_sample_of_bounded_size(place: Place) -> None:
    """Spread over the corpus, without what was dropped, the same for the same seed."""
    src = [f"a{chr(0x4E00 + i)}" for i in range(200)]
    place.write(train=(text([*src, *src]), text(["x"] * 400)))

    def alphabet(*overrides: str) -> set[str]:
        tokenizer = place.prepare("tokenizer.vocab_size=500", *overrides, fresh=True).tokenizer()
        return {piece for piece in tokenizer.pieces(range(len(tokenizer.tgt))) if piece >= "\u4e00"}

    assert len(alphabet()) == 200
    some = alphabet("tokenizer.sample=50")
    assert len(some) == 50
    stretches = {(ord(piece) - 0x4E00) // 20 for piece in some}
    assert stretches == set(range(10))
    assert alphabet("tokenizer.sample=50") == some
    assert alphabet("tokenizer.sample=50", "seed=2") != some
    assert alphabet("data.filters.duplicates={by: target}") == {src[0][1]}  # nothing of what is dropped
    place.write(train=(text([src[0]] * 100 + src[:100]), text(["x"] * 200)))
    assert len(alphabet()) == 100


def test_a_ready_tokenizer_is_used_as_it_is_and_watched(place: Place) -> None:
    first = place.prepare("tokenizer={name: bpe, vocab_size: 40}")
    model = place.directory / "any.model"
    model.write_bytes((first.directory / "tokenizer.model").read_bytes())
    ready = f"tokenizer={{name: ready, src: {model}}}"
    prepared = place.prepare(ready, fresh=True)
    assert prepared.tokenizer().digest() == first.tokenizer().digest()
    assert training(prepared) == training(open_prepared(place.run))
    assert prepared.digest() == first.digest()
    os.utime(model, ns=(1, 1))
    place.prepare(ready)
    model.write_bytes(b"another")
    with pytest.raises(ConfigError, match=r"any.model: its content has changed"):
        place.prepare(ready)
    place.write(train=(text(EN), b""))
    with pytest.raises(DataError, match=rf"^{model}: is not a sentencepiece model$"):  # before any text is read
        place.prepare(ready, fresh=True)
    place.write(train=(text(EN), text(DE)))
    model.unlink()
    assert place.prepare(ready).manifest["pairs"] == 5  # prepared data needs it no more


def test_long_and_lopsided_pairs_are_counted_with_their_limit(place: Place) -> None:
    place.write(train=(text([*EN, "a" * 300, "b"]), text([*DE, "kurz", "a" * 30])))
    prepared = place.prepare("data.filters.length.max_tokens=100")
    dropped = {"too long (limit 100 pieces)": 1, "lengths differ more than 9 to 1": 1}
    assert counts(prepared) == (7, 5, dropped)
    assert [row[0] for row in training(prepared)] == EN


@pytest.mark.parametrize(
    ("override", "src", "tgt", "message"),
    [
        ("data.filters.length.max_tokens=2", text(EN), text(DE), r"0 of 5 pairs left.*5 too long \(limit 2 pieces\)"),
        ("seed=1", b"\n" * 4, text(DE[:4]), "0 of 4 pairs left.*4 source empty"),
        ("seed=1", b"\n" * 3, b" \n" * 3, "0 of 3 pairs left.*3 both sides empty"),
        ("seed=1", b"", b"", "0 of 0 pairs left"),
    ],
    ids=["all too long", "all empty on one side", "all empty", "empty files"],
)
def test_nothing_left_to_train_on_is_an_error_that_says_why(
    place: Place, override: str, src: bytes, tgt: bytes, message: str
) -> None:
    """Case 10."""
    place.write(train=(src, tgt))
    with place.unchanged(), pytest.raises(DataError, match=message):
        place.prepare(override)


# --- what looks wrong ---


def test_a_shift_is_found_in_the_file_where_it_begins(place: Place) -> None:
    """A corpus of several files: the second lost a target line near its line 5,000, and has one too many at its end."""
    rng = random.Random(1)
    for name, lost in (("part1", None), ("part2", 5_000)):
        src = [" ".join(rng.choices(["go", "is", "it", "of"], k=rng.randint(1, 30))) for _ in range(6_500)]
        tgt = [line.upper() for line in src]
        if lost:
            tgt = [*tgt[:lost], *tgt[lost + 1 :], "END"]
        place.write(**{name: (text(src), text(tgt))})
    wild = "data.train={name: plain, label: parts, src: 'part*.en', tgt: 'part*.de'}"
    prepared = place.prepare(wild, "tokenizer.name=none")
    (sentence,) = prepared.manifest["suspicions"]
    found = re.fullmatch(
        rf"parts: looks shifted from about line (\d+) on: translations stand 1 line earlier than they should "
        rf"\({place.directory}/part2.en\)",
        sentence,
    )
    assert found and abs(int(found[1]) - 5_000) <= 100
    assert f"warning: {sentence}" in place.said
    assert sentence in (prepared.directory / "prepare.md").read_text()


def test_swapped_and_equal_sides_are_found_and_right_ones_are_not(place: Place) -> None:
    """Case 14."""
    place.set(src_lang="en", tgt_lang="ru")
    en, ru = [f"{word} and" for word in WORDS], [f"{'ш' * len(word)} это" for word in WORDS]
    for sides, expected in (
        ((en, ru), []),
        ((ru, en), ["train.en: looks swapped: the source is in the target's language, and the other way round"]),
    ):
        place.write(train=tuple(map(text, sides)), valid=(b"he\n", "он\n".encode()), test=(b"", b""))
        assert place.prepare(fresh=True).manifest["suspicions"] == expected
    place.set()
    place.write(train=(text(EN), text(EN)))
    (sentence,) = place.prepare(fresh=True).manifest["suspicions"]
    assert sentence == "train.en: source and target are the same text in 100% of the pairs looked at"


# --- validation sets ---


def test_an_empty_validation_set_is_left_out_with_a_warning(place: Place) -> None:
    """Case 31."""
    place.write(valid=(b"", b""))
    prepared = place.prepare()
    assert prepared.valid() == {}
    assert "warning: data.valid holds no lines" in place.told()


def test_one_pair_and_a_blank_reference_are_a_validation_set(place: Place) -> None:
    """Case 31."""
    place.write(valid=(b"the cat", b"\n"))
    assert list(place.prepare().valid()["valid"].texts()) == [("the cat", ("",))]


def test_a_set_to_measure_with_that_is_blank_on_a_side_is_warned_of(place: Place) -> None:
    place.write(valid=(b"\n \n", b"die Katze\n\n"), test=(b"\n", b"\n"))
    place.prepare()
    said = [line for line in place.said if "blank" in line]
    blank = "all lines of the {} are blank, so that its scores say nothing"
    assert said[0].startswith(f"warning: data.valid: {blank.format('source')}")
    assert said[1].startswith(f"warning: data.test.t: {blank.format('source')}; {blank.format('target')}")
    assert len(said) == 2


def test_several_validation_sets_keep_their_names_and_order(place: Place) -> None:
    sets = "{z: {name: plain, src: valid.en, tgt: valid.de}, a: {name: plain, src: test.en, tgt: test.de}}"
    valid = place.prepare(f"data.valid={sets}").valid()
    assert [(name, len(store)) for name, store in valid.items()] == [("z", 2), ("a", 3)]


# --- faults ---


@pytest.mark.parametrize("name", ["train", "valid", "test"])
def test_a_fault_in_any_file_stops_at_once_and_leaves_nothing(place: Place, name: str) -> None:
    """Cases 5, 7 and 15: also one of the test set is found now, not after the training."""
    good = (place.directory / f"{name}.en").read_bytes()
    src, lines = place.directory / f"{name}.en", len(good.splitlines())
    faults: list[tuple[bytes | None, str]] = [
        (good + b"one more\n", rf"{name}.en has {lines + 1} lines, but .*{name}.de has {lines} lines"),
        (b"", rf"{name}.en has 0 lines, but .*{name}.de has {lines} lines"),
        (b"caf\xe9\n" + good.partition(b"\n")[2], rf"{name}.en:1: byte 0xe9 at column 4 is not UTF-8"),
        (None, rf"{name}.en: no such file"),
    ]
    for content, message in faults:
        src.unlink(missing_ok=True)
        if content is not None:
            src.write_bytes(content)
        with place.unchanged(), pytest.raises(DataError, match=message) as error:
            place.prepare()
        assert "\n" not in str(error.value)
    src.mkdir()
    with place.unchanged(), pytest.raises(DataError, match=rf"{name}.en: is a directory"):
        place.prepare()


def test_a_vocabulary_too_large_is_lowered_and_too_small_is_refused(place: Place) -> None:
    """Cases 17 and 18."""
    prepared = place.prepare("tokenizer={name: bpe, vocab_size: 32000}")
    size = prepared.manifest["vocabulary"]["src"]
    assert size < 1000
    assert f"using {size}" in place.told()
    with pytest.raises(DataError, match=r"vocab_size 10 is too small.*at least"):
        place.prepare("tokenizer={name: bpe, vocab_size: 10}", f"run_dir={place.directory}/other")
    assert not (place.directory / "other").exists()


def test_a_fault_while_preparing_anew_leaves_what_was_prepared(place: Place) -> None:
    place.prepare()
    before = training(open_prepared(place.run))
    place.write(train=(text(EN), text(DE[1:])))
    with place.unchanged(), pytest.raises(DataError, match="has 5 lines"):
        place.prepare(fresh=True)
    assert training(open_prepared(place.run)) == before


# --- again ---


NOTHING_CHANGED = [
    ["train.steps=99", "search.beam=2", "model.dim=16", "metrics={chrf: {}}", "train.metric=nll"],
    ["data.train.0.weight=3", "data.train.0.label=mine"],
    ["data.test={}"],
    ["data.filters.duplicates=drop", "data.filters.same=keep", "data.filters.script=keep"],  # as they are anyway
    ["train.subword_sampling={name: bpe_dropout, rate: 0}"],
    ["src_lang=fr"],  # tells nothing but what looks wrong
]


@pytest.mark.parametrize("overrides", NOTHING_CHANGED, ids=str)
def test_the_second_time_there_is_nothing_to_do(place: Place, overrides: list[str]) -> None:
    """Not even with other settings, if the data does not depend on them."""
    place.prepare()
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in place.run.prepared.iterdir()}
    place.prepare(*overrides)
    assert place.said == [f"{place.run.prepared}: prepared already, 5 pairs"]
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in place.run.prepared.iterdir()} == before


def test_a_run_that_moved_is_prepared_already(place: Place) -> None:
    """Case 21."""
    place.prepare()
    moved = place.directory / "elsewhere"
    place.run.directory.rename(moved)
    place.prepare(f"run_dir={moved}")
    assert place.said == [f"{moved}/prepared: prepared already, 5 pairs"]


def taken_over(place: Place, *overrides: str) -> bool:
    """Whether another run takes over what `place` has prepared; it does not prepare anything itself."""
    other = Run(place.directory / "other")
    other.directory.mkdir(exist_ok=True)
    take_over(load(str(place.config), [*overrides, f"run_dir={other.directory}"]), [other, place.run])
    return other.prepared.exists()


def test_another_run_takes_over_what_it_would_prepare_itself(place: Place) -> None:
    place.prepare()
    assert taken_over(place, "model.dim=16", "data.train.0.weight=2")
    files = sorted(place.run.prepared.iterdir())
    assert all((place.directory / "other/prepared" / file.name).samefile(file) for file in files)  # no copies
    place.prepare("model.dim=16", f"run_dir={place.directory}/other")
    assert "prepared already" in place.told()
    place.prepare(fresh=True)  # and leaves the other as it is
    assert open_prepared(Run(place.directory / "other")).train().texts()
    assert not files[0].samefile(place.directory / "other/prepared" / files[0].name)


@pytest.mark.parametrize("override", ["seed=2", "data.train.0.limit=4", "tokenizer.vocab_size=77", "data.test={}"])
def test_another_run_takes_over_nothing_else(place: Place, override: str) -> None:
    place.prepare()
    assert not taken_over(place, override)


def test_what_is_damaged_is_not_taken_over(place: Place) -> None:
    place.prepare()
    (place.run.prepared / "manifest.json").write_text("{}")
    assert not taken_over(place)


def test_files_are_copied_where_they_cannot_be_linked(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise OSError("not supported")

    place.prepare()
    monkeypatch.setattr(os, "link", no_links)
    assert taken_over(place)
    assert open_prepared(Run(place.directory / "other")).digest() == open_prepared(place.run).digest()


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("tokenizer.vocab_size=77", "tokenizer.vocab_size: 200 -> 77"),
        ("tokenizer.name=bpe", 'tokenizer: {"name": "char", .*} -> {"name": "bpe", .*}'),
        ("tokenizer.symbols=[<b>]", r'tokenizer.symbols: \[\] -> \["<b>"\]'),
        ("data.filters.length.max_tokens=99", "data.filters.length.max_tokens: nothing -> 99"),
        ("data.filters.ratio=keep", "data.filters.ratio: {} -> nothing"),
        ("data.filters.same=drop", "data.filters.same: nothing -> {}"),
        ("data.filters.script=drop", 'data.filters.script: nothing -> {}; languages: .* -> .*"en", "de".*'),
        ("data.train.0.src=valid.en", 'data.train.0.src: "train.en" -> "valid.en"'),
        ("data.train.0.limit=4", "data.train.0.limit: nothing -> 4"),
        ("data.train.0.reverse=true", "data.train.0.reverse: false -> true"),
        ("data.train.0.prefix=<x>", 'data.train.0.prefix: "" -> "<x>"'),
        ("data.valid={}", r"data\.valid: .* -> nothing"),
        ("seed=2", "seed: 1 -> 2"),
    ],
)
def test_other_settings_are_refused_by_name_and_redone_only_afresh(place: Place, override: str, named: str) -> None:
    """Case 23."""
    place.prepare()
    with place.unchanged(), pytest.raises(ConfigError, match=rf"with other settings \(({named})\); .*--fresh") as error:
        place.prepare(override)
    assert "\n" not in str(error.value)
    place.write(valid=(text(EN), text(DE)), test=(b"", b""))
    place.prepare(override, "data.filters.overlap=keep", fresh=True)
    place.prepare(override, "data.filters.overlap=keep")
    assert "prepared already" in place.told()


def test_every_difference_is_named(place: Place) -> None:
    place.prepare("data.train.0.limit=2", f"run_dir={place.directory}/limited")
    with pytest.raises(ConfigError, match=r"\(data.train.0.limit: 2 -> 4\)"):
        place.prepare("data.train.0.limit=4", f"run_dir={place.directory}/limited")
    corpus = "{name: plain, src: train.en, tgt: train.de}"
    place.prepare(f"data.train=[{corpus}]")
    with pytest.raises(
        ConfigError, match=r"data.train: \[.*\] -> \[.*\]; tokenizer.vocab_size: 200 -> 9; seed: 1 -> 3"
    ):
        place.prepare(f"data.train=[{corpus}, {corpus}]", "tokenizer.vocab_size=9", "seed=3")


def test_a_test_set_that_came_later_is_noted(place: Place) -> None:
    """Its lines may be in train; the data stays usable."""
    place.prepare()
    place.prepare("data.test.valid={name: plain, src: valid.en, tgt: valid.de}")
    assert any(line.startswith("note: data.test has sets that it had not") for line in place.said)
    place.prepare("data.test={other: {name: plain, src: test.en, tgt: test.de}}")  # the same under another name
    assert not any("note:" in line for line in place.said)


def test_changed_files_are_noticed_and_touched_or_lost_ones_are_not(place: Place) -> None:
    """Cases 21 and 23."""
    place.prepare()
    source = place.directory / "train.en"
    os.utime(source, ns=(1, 1))
    place.prepare()
    source.write_bytes(text(["another", *EN[1:]]))
    with pytest.raises(ConfigError, match=r"train.en: its content has changed"):
        place.prepare()
    for path in place.directory.glob("*.??"):
        path.unlink()
    assert place.prepare().manifest["pairs"] == 5


def test_a_new_file_among_wildcards_is_noticed(place: Place) -> None:
    wild = "data.train=[{name: plain, src: 'tr*.en', tgt: 'tr*.de'}]"
    place.prepare(wild)
    place.prepare(wild)
    place.write(trees=(b"tree\n", b"Baum\n"))
    with pytest.raises(ConfigError, match=r"trees.en: is new; .*trees.de: is new"):
        place.prepare(wild)


def test_the_corpus_may_move(place: Place) -> None:
    place.prepare()
    moved = place.directory / "moved"
    moved.mkdir()
    for path in place.directory.glob("*.??"):
        path.rename(moved / path.name)
    place.prepare(f"data.root={moved}")
    assert "prepared already" in place.told()


def test_data_damaged_on_disk_is_an_error_that_says_what_to_do(place: Place) -> None:
    place.prepare()
    manifest = place.run.prepared / "manifest.json"
    whole = manifest.read_text()
    for broken in ("{", "", whole[:100], whole.replace('"format": 2', '"format": 1')):
        manifest.write_text(broken)
        with pytest.raises(DataError, match="--fresh"):
            place.prepare()
    manifest.unlink()
    with pytest.raises(DataError, match="is no prepared data; run `nmt prepare CONFIG --fresh`"):
        place.prepare()
    place.prepare(fresh=True)
    assert open_prepared(place.run).manifest["pairs"] == 5


@pytest.mark.parametrize("name", ["train.arrow", "valid.valid.arrow"])
@pytest.mark.parametrize("spoil", ["first", "middle", "last", "cut", "longer", "empty", "missing"])
def test_a_flipped_byte_or_a_cut_store_is_one_error(place: Place, name: str, spoil: str) -> None:
    prepared = place.prepare()
    path = prepared.directory / name
    content = bytearray(path.read_bytes())
    if spoil in ("first", "middle", "last"):
        content[{"first": 0, "middle": len(content) // 2, "last": len(content) - 1}[spoil]] ^= 1
    spoilt = {"cut": content[:-7], "longer": content + b"\0", "empty": b""}.get(spoil, content)
    path.unlink()
    if spoil != "missing":
        path.write_bytes(spoilt)
    with pytest.raises(DataError, match=rf"^{path}: .*; redo it with `nmt prepare CONFIG --fresh`$") as error:
        prepared.train() if name == "train.arrow" else prepared.valid()
    assert "\n" not in str(error.value)


def test_a_tokenizer_that_was_swapped_is_refused(place: Place) -> None:
    """Case 21."""
    other = place.prepare("tokenizer={name: bpe, vocab_size: 40}", f"run_dir={place.directory}/other")
    prepared = place.prepare()
    (prepared.directory / "tokenizer.model").write_bytes((other.directory / "tokenizer.model").read_bytes())
    with pytest.raises(DataError, match=r"its tokenizer is not the one that it was prepared with; redo it"):
        prepared.tokenizer()


# --- only looking ---


def test_a_check_says_the_same_and_leaves_nothing(place: Place) -> None:
    place.write(train=(text([*EN, "a\u2028b", "", "one cat"]), text([*DE, "ab", "leer", "eine Katze"])))
    with place.unchanged():
        place.check()
    checked = place.said
    place.prepare()
    assert checked == place.said and len(checked) >= 4
    with place.unchanged():  # also beside what is prepared, and with other settings
        place.check("tokenizer.vocab_size=50")


def test_a_check_finds_the_same_faults(place: Place) -> None:
    place.write(train=(text(EN), text(DE[1:])))
    with place.unchanged(), pytest.raises(DataError, match=r"has 5 lines, but .* has 4 lines"):
        place.check()


def test_a_check_cleans_up_its_own_place(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    own = place.directory / "tmp"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    place.check()
    place.write(train=(b"", b""))
    with pytest.raises(DataError):
        place.check()
    assert list(own.iterdir()) == []


# --- several processes ---


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """More chunks than are done without other processes, with something of everything that is counted."""
    place = Place(tmp_path_factory.mktemp("large"))
    rng, src, tgt = random.Random(1), [], []
    for number in range(81_000):
        line = " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))
        src.append(line if number % 1_000 else "")
        tgt.append(
            line.upper() + ("\u2028" if number % 777 == 0 else "") + (" cafe\u0301 é" if number % 999 == 0 else "")
        )
    place.write(train=(text(src), text(tgt)))
    files = "name: plain, src: train.en, tgt: train.de"
    place.config.write_text(
        place.config.read_text().replace(
            "- name: plain\n    src: train.en\n    tgt: train.de\n",
            f"- {{{files}}}\n  - {{{files}, limit: 500, prefix: '<x> '}}\n",
        )
    )
    return place


def test_any_number_of_processes_makes_the_same_bytes(large: Place) -> None:
    said: dict[int, list[str]] = {1: [], 2: []}
    for jobs in said:
        config = load(str(large.config), [f"run_dir={large.directory}/run{jobs}", "tokenizer.name=none"])
        made = prepare(config, False, said[jobs].append, jobs)
    one, two = (large.directory / f"run{jobs}" / "prepared" for jobs in said)
    names = sorted(path.name for path in one.iterdir())
    assert names == ["manifest.json", "prepare.md", "tokenizer.model", "train.arrow", "valid.valid.arrow"]
    assert names == sorted(path.name for path in two.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    assert said[1] == said[2]
    first, second = made.manifest["corpora"]
    assert (first["read"], second["read"], len(made.train())) == (81_000, 500, first["kept"] + second["kept"])
    for side in ("src", "tgt"):  # of each batch some lines; its batches are the chunks
        assert made.manifest["usage"][side]["round_trip"]["lines"] == 9 * TRIED + second["kept"]
    assert first["dropped"]["source empty"] == 81 and first["dropped"]["duplicate"] > 1_000


def test_a_process_that_prepares_lets_others_wait_for_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second finds it done."""
    monkeypatch.setattr("nmt.data.prepare.POLL", 0.01)
    begun, go_on, second_said = threading.Event(), threading.Event(), []

    def first_say(message: str) -> None:
        begun.set()
        assert go_on.wait(30)

    def second_say(message: str) -> None:
        second_said.append(message)
        go_on.set()

    config = load(str(place.config))
    first = threading.Thread(target=prepare, args=(config, False, first_say, 1))
    first.start()
    assert begun.wait(30)
    prepared = prepare(config, False, second_say, 1)
    first.join()
    waiting, done = second_said
    assert waiting == (
        f"waiting: {place.run.directory}: process {os.getpid()} is preparing data here; wait for it or stop it"
    )
    assert done == f"{place.run.prepared}: prepared already, 5 pairs"
    assert prepared.manifest["pairs"] == 5


def test_who_waited_for_one_that_failed_does_it_himself(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.prepare.POLL", 0.01)
    said: list[str] = []
    waiting = threading.Event()
    made: list[Prepared] = []

    def say(message: str) -> None:
        said.append(message)
        waiting.set()

    second = threading.Thread(target=lambda: made.append(prepare(load(str(place.config)), False, say, 1)))
    with place.run.claimed("preparing data"):
        second.start()
        assert waiting.wait(30)
        time.sleep(0.1)  # it looks several times, and says so once
    second.join()
    assert made[0].manifest["pairs"] == 5
    assert sum(line.startswith("waiting") for line in said) == 1


def test_data_that_somebody_trains_on_is_not_replaced(place: Place) -> None:
    place.prepare()
    with place.run.claimed("training"), place.unchanged():
        place.prepare()  # nothing to do, nothing to wait for
        with pytest.raises(BusyError, match=f"process {os.getpid()} is training here"):
            place.prepare(fresh=True)


@pytest.mark.parametrize("file", ["text.arrow", "train.arrow"])
def test_killed_in_the_middle_nothing_looks_complete_and_the_next_clears_it(place: Place, file: str) -> None:
    """Stopped when a file appears, and killed there, as the system kills when memory runs out."""
    code = (
        "import os, pickle, signal, sys, threading, time\n"
        "from pathlib import Path\n"
        "from nmt.data.prepare import prepare\n"
        "def watch():\n"
        "    while not list(Path(sys.argv[2]).glob('.prepared.*/' + sys.argv[3])):\n"
        "        time.sleep(0.001)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "threading.Thread(target=watch, daemon=True).start()\n"
        "prepare(pickle.loads(Path(sys.argv[1]).read_bytes()), False, print, 1)\n"
    )
    config = place.directory / "config"
    config.write_bytes(pickle.dumps(load(str(place.config), ["data.train={name: demo, limit: 3000}"])))
    done = subprocess.run([sys.executable, "-c", code, config, place.run.directory, file], check=False)
    assert done.returncode == -signal.SIGKILL
    left = [path for path in place.run.directory.iterdir() if path.name != ".lock"]
    assert [path.name.startswith(".prepared.") for path in left] == [True]
    assert not place.run.exists
    with pytest.raises(DataError, match="is no prepared data"):
        open_prepared(place.run)
    assert place.prepare().manifest["pairs"] == 5  # another corpus, and no trace of the first
    assert [path for path in place.run.directory.iterdir() if path.name != ".lock"] == [place.run.prepared]


def test_a_disk_too_full_is_said_before_any_work(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 38."""
    size = sum((place.directory / f"train.{side}").stat().st_size for side in ("en", "de"))
    free = 3 * size
    monkeypatch.setattr(shutil, "disk_usage", lambda path: types.SimpleNamespace(free=free))
    place.check()
    free = 3 * size - 1
    with place.unchanged(), pytest.raises(NmtError, match=r"run: needs about 0.0 MB, but only 0.0 MB are free there"):
        place.prepare()


# --- the run directory ---


def test_what_a_killed_process_left_is_cleared_away(place: Place) -> None:
    left = place.run.directory / ".prepared.123.tmp"
    left.mkdir(parents=True)
    (left / "train.arrow").write_bytes(b"half")
    (place.run.directory / ".lock").write_text("123\n")
    assert place.prepare().manifest["pairs"] == 5
    assert not left.exists()


def test_a_run_directory_with_something_else_in_it_is_refused(place: Place) -> None:
    """Case 15."""
    place.run.directory.mkdir()
    (place.run.directory / "thesis.tex").write_text("years of work")
    with place.unchanged(), pytest.raises(NmtError, match=r"holds files but no run of ours \(thesis.tex"):
        place.prepare()


def test_a_config_that_lies_in_its_run_directory_is_not_taken_for_a_run(place: Place) -> None:
    """Case 15: or training would replace the user's own config.yaml."""
    place.run.directory.mkdir()
    mine = place.run.directory / "config.yaml"
    mine.write_bytes(place.config.read_bytes())
    place.config = mine
    with place.unchanged(), pytest.raises(NmtError, match="no run of ours"):
        place.prepare()


def test_an_empty_run_directory_is_used_and_stays_when_preparing_fails(place: Place) -> None:
    place.run.directory.mkdir()
    (place.directory / "train.en").rename(place.directory / "away.en")
    with place.unchanged(), pytest.raises(DataError):
        place.prepare()
    (place.directory / "away.en").rename(place.directory / "train.en")
    place.prepare()


def test_a_file_in_the_way_of_the_run_directory_is_refused(place: Place) -> None:
    """Case 15."""
    place.run.directory.write_text("a file")
    for path, why in ((place.run.directory, "is a file"), (place.run.directory / "below", "cannot be written")):
        with place.unchanged(), pytest.raises(NmtError, match=f"run_dir {path}: {why}"):
            place.prepare(f"run_dir={path}")


def test_a_run_directory_that_the_system_refuses_to_look_at_is_one_error(place: Place) -> None:
    """Case 15: too long a name, like a folder that one may not search."""
    for path in (place.directory / ("x" * 300), place.directory / ("x" * 300) / "run"):
        with place.unchanged(), pytest.raises(NmtError, match=r"run_dir .*cannot be written"):
            place.prepare(f"run_dir={path}")


def test_a_failed_run_takes_its_new_folders_away_again(place: Place) -> None:
    place.write(train=(b"", b""))
    with place.unchanged(), pytest.raises(DataError):
        place.prepare(f"run_dir={place.directory}/a/b/c")


def test_files_that_are_not_ours_are_never_replaced(place: Place) -> None:
    place.prepare()
    mine = place.run.prepared / "thesis.txt"
    mine.write_text("mine")
    with pytest.raises(DataError, match=r"not prepared data \(thesis.txt\)"):
        place.prepare(fresh=True)
    assert mine.read_text() == "mine"


def test_a_damaged_tokenizer_is_named_with_what_to_do(place: Place) -> None:
    prepared = place.prepare()
    (prepared.directory / "tokenizer.model").write_bytes(b"no model")
    with pytest.raises(DataError, match="its tokenizer is missing or damaged; redo it"):
        prepared.tokenizer()


def test_a_store_that_is_gone_is_not_called_prepared(place: Place) -> None:
    place.prepare()
    (place.run.prepared / "train.arrow").unlink()
    with pytest.raises(DataError, match=r"train\.arrow: is missing; redo it"):
        place.prepare()
