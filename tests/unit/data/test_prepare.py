"""Preparing: pairs stay pairs whatever the text holds, everything dropped is counted, and it is whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.data.prepare import Prepared, open_prepared, prepare
from nmt.errors import ConfigError, DataError, NmtError
from nmt.run import Run
from nmt.variants import load

EN = ["one cat", "two cats", "a dog sees a cat", "the dog", "a red cat and a dog"]
DE = ["eine Katze", "zwei Katzen", "ein Hund sieht eine Katze", "der Hund", "eine rote Katze und ein Hund"]


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


class Place:
    """A folder with the files of a small corpus and a config for them; `files` replaces some."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "c.yaml"
        self.run = Run(directory / "run")
        self.said: list[str] = []
        self.write(train=(text(EN), text(DE)), valid=(text(EN[:2]), text(DE[:2])), test=(text(EN[2:]), text(DE[2:])))
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
        config = load(str(self.config), overrides)
        with Run(config.run_dir).claimed("preparing data"):
            return prepare(config, fresh, self.said.append)

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
    assert list(valid.texts()) == [(s, (t,)) for s, t in zip(EN[:2], DE[:2], strict=True)]


def test_the_manifest_says_what_was_made(place: Place) -> None:
    manifest = place.prepare().manifest
    rows = training(open_prepared(place.run))
    assert manifest["pairs"] == 5
    assert manifest["pieces"] == {"src": sum(len(r[2]) for r in rows), "tgt": sum(len(r[3]) for r in rows)}
    assert manifest["valid"] == {"valid": 2}
    assert [entry["path"] for entry in manifest["inputs"]] == ["train.en", "train.de", "valid.en", "valid.de"]
    assert "5 pairs for training" in place.told()
    assert json.loads((place.run.prepared / "manifest.json").read_text()) == manifest


def test_separate_vocabularies_lie_in_two_files(place: Place) -> None:
    prepared = place.prepare("tokenizer.joint=false", "model.tie=decoder")
    names = {path.name for path in place.run.prepared.iterdir()}
    assert {"src.model", "tgt.model"} <= names and "tokenizer.model" not in names
    assert not prepared.tokenizer().joint


def test_the_same_input_prepares_to_the_same_bytes(place: Place, tmp_path: Path) -> None:
    first = place.prepare("tokenizer={name: bpe, vocab_size: 40}")
    second = place.prepare("tokenizer={name: bpe, vocab_size: 40}", f"run_dir={tmp_path}/other")
    assert first.digest() == second.digest()
    assert first.tokenizer().digest() == second.tokenizer().digest()


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


def test_a_validation_set_keeps_all_its_references(place: Place) -> None:
    (place.directory / "second.de").write_bytes(text(["noch eine", "noch zwei"]))
    prepared = place.prepare("data.valid={name: plain, src: valid.en, tgt: [valid.de, second.de]}")
    assert next(prepared.valid()["valid"].texts())[1] == ("eine Katze", "noch eine")


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
    crlf = {name: (text(EN).replace(b"\n", b"\r\n"), text(DE).replace(b"\n", b"\r\n")) for name in ("train", "valid")}
    place.write(**crlf)
    assert training(place.prepare(fresh=True)) == expected
    assert "U+000D" not in place.told()
    place.write(train=(crlf["train"][0], text(DE)))  # on one side only
    assert training(place.prepare(fresh=True)) == expected


def test_a_byte_order_mark_leaves_no_trace(place: Place) -> None:
    """Case 3."""
    expected = training(place.prepare())
    place.write(train=(b"\xef\xbb\xbf" + text(EN), b"\xef\xbb\xbf" + text(DE)))
    assert training(place.prepare(fresh=True)) == expected
    assert "U+FEFF" not in place.told()


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
    assert f"U+{ord(odd):04X} inside 5 lines" in place.told()
    assert "removed" in place.told()


def test_odd_characters_of_valid_and_test_sets_are_reported_too(place: Place) -> None:
    """Case 1."""
    place.write(valid=(text(["one\u2028cat", "two cats"]), text(DE[:2])))
    place.write(test=(text(EN[2:]), text(["a\x0cb", *DE[3:]])))
    prepared = place.prepare()
    assert prepared.manifest["valid"] == {"valid": 2}
    assert f"{place.directory}/valid.en:1" in place.told() and "U+2028" in place.told()
    assert "U+000C" in place.told()


def test_literal_markup_of_tokenizers_is_text(place: Place) -> None:
    """Case 12."""
    lines = ["<s> a </s> b", "<unk> <pad>", "a ||| b", "x@@ y", "a\tb", "⁇"]
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
    assert examples["source empty"] == [f"{place.directory}/train.en:2", f"{place.directory}/train.en:5"]


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
    assert kept.manifest["pairs"] == 10


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


# --- validation sets ---


def test_an_empty_validation_set_is_left_out_with_a_warning(place: Place) -> None:
    """Case 31."""
    place.write(valid=(b"", b""))
    prepared = place.prepare()
    assert prepared.valid() == {}
    assert "warning: data.valid.valid holds no lines" in place.told()


def test_one_pair_and_a_blank_reference_are_a_validation_set(place: Place) -> None:
    """Case 31."""
    place.write(valid=(b"one cat", b"\n"))
    assert list(place.prepare().valid()["valid"].texts()) == [("one cat", ("",))]


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


def test_the_second_time_there_is_nothing_to_do(place: Place) -> None:
    place.prepare()
    before = {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in place.run.prepared.iterdir()}
    place.prepare("train.steps=99", "search.beam=2", "data.test={}")  # nothing that the data depends on
    assert place.said == [f"{place.run.prepared}: prepared already, 5 pairs"]
    assert {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in place.run.prepared.iterdir()} == before


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("tokenizer.vocab_size=77", "tokenizer"),
        ("tokenizer.name=bpe", "tokenizer"),
        ("data.filters.length.max_tokens=99", "data.filters"),
        ("data.filters.ratio=keep", "data.filters"),
        ("data.train.0.src=valid.en", "data.train"),
        ("data.valid={}", "data.valid"),
        ("seed=2", "seed"),
    ],
)
def test_other_settings_are_refused_by_name_and_redone_only_afresh(place: Place, override: str, named: str) -> None:
    """Case 23."""
    place.prepare()
    with place.unchanged(), pytest.raises(ConfigError, match=f"with other settings .*{named}.*--fresh"):
        place.prepare(override)
    place.write(valid=(text(EN), text(DE)))
    place.prepare(override, fresh=True)
    place.prepare(override)
    assert "prepared already" in place.told()


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
    (place.run.prepared / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="--fresh"):
        place.prepare()
    place.prepare(fresh=True)
    assert open_prepared(place.run).manifest["pairs"] == 5


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


def test_two_processes_do_not_prepare_one_run(place: Place) -> None:
    """Each that comes later is refused, and leaves the first one's lock alone."""
    with place.run.claimed("preparing data"):
        for _ in range(2):
            with place.unchanged(), pytest.raises(NmtError, match=f"process {os.getpid()} is preparing data"):
                place.prepare()


def test_a_failed_run_takes_its_new_folders_away_again(place: Place) -> None:
    place.write(train=(b"", b""))
    with place.unchanged(), pytest.raises(DataError):
        place.prepare(f"run_dir={place.directory}/a/b/c")
