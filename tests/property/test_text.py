"""Any text: files, tokenizers and the store give back what they were given."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.store import SMALL, Store, Writer, record_batch, schema
from nmt.files import read_lines, write_file
from nmt.tokenizer import BOS, EOS, PAD, TOKENIZERS, UNK, Pieces, Tokenizer, blank, clean, clean_lines

KINDS = [kind for kind in TOKENIZERS if kind != "ready"]  # those that are trained

# All of Unicode but surrogates, which are no text; odd separators and markup come up more often than by chance.
CHARACTERS = st.characters(exclude_categories=["Cs"])
PARTS = ["<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "▁", "⁇", "@@", "|||", "猫", "🐈\u200d⬛", "e\u0301", "a", "word"]
PARTS += [
    " ",
    "  ",
    "\t",
    "\r",
    "\u2028",
    "\u2029",
    "\x85",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x1d",
    "\x1e",
    "\ufeff",
    "\0",
    "\u200b",
]
TEXT = st.text(CHARACTERS, max_size=20) | st.lists(st.sampled_from(PARTS), max_size=8).map("".join)
LINE = TEXT.map(lambda text: text.replace("\n", ""))

TRAINING = ["the cat sat on the mat", "a dog, a cat; 2016 words", "一只猫 和 两只狗", "it's <b>bold</b> a/b"] * 5


@pytest.fixture(scope="module")
def tokenizers() -> dict[str, Tokenizer]:
    made: dict[str, Tokenizer] = {}
    for kind in KINDS:
        made[kind] = TOKENIZERS[kind](vocab_size=60)(TRAINING, TRAINING, lambda _: None)
    for name, kind in (("bytes", "bpe"), ("unigram bytes", "unigram")):
        trainer = TOKENIZERS[kind](vocab_size=310, byte_fallback=True)
        made[name] = trainer(TRAINING, TRAINING, lambda _: None)
    return made


@settings(deadline=None)
@given(lines=st.lists(LINE, max_size=8), form=st.tuples(*[st.booleans()] * 4))
def test_lines_written_are_lines_read(lines: list[str], form: tuple[bool, bool, bool, bool]) -> None:
    """Cases 1 to 3 and 8."""
    crlf, bom, last_end, gz = form
    end = "\r\n" if crlf else "\n"
    # A carriage return that ends a line, and a mark that begins a file, belong to the file and not to the text.
    lines = [line.rstrip("\r") for line in lines]
    if lines and not bom:
        lines[0] = lines[0].lstrip("\ufeff")
    content = "\ufeff" * bom + "".join(line + end for line in lines)
    if not last_end and lines and lines[-1]:
        content = content.removesuffix(end)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("lines.gz" if gz else "lines.txt")
        with write_file(path) as stream:
            stream.write(content.encode())
        assert list(read_lines(path)) == lines


@pytest.mark.parametrize("kind", [*KINDS, "bytes", "unigram bytes"])
@settings(deadline=None)
@given(line=TEXT)
def test_reserved_ids_never_come_from_text(tokenizers: dict[str, Tokenizer], kind: str, line: str) -> None:
    """Case 12."""
    ids = tokenizers[kind].encode_src([line])[0].tolist()
    assert ids[-1] == EOS
    assert not {PAD, BOS, EOS} & set(ids[:-1])
    assert all(0 <= i < len(tokenizers[kind].src) for i in ids)


@pytest.mark.parametrize("kind", ["bytes", "unigram bytes"])
@settings(deadline=None)
@given(line=TEXT)
def test_with_bytes_any_text_comes_back_but_for_white_space(
    tokenizers: dict[str, Tokenizer], kind: str, line: str
) -> None:
    """Case 12: `▁` may come back as a space."""
    tokenizer = tokenizers[kind]
    ids = tokenizer.encode_tgt([line])[0].tolist()[:-1]
    assert UNK not in ids
    back = tokenizer.decode([ids])[0]
    assert re.split("[ ▁]+", back.strip(" ▁")) == re.split("[ ▁]+", clean(line).strip(" ▁"))


@pytest.mark.parametrize("kind", [*KINDS, "bytes"])
@settings(deadline=None)
@given(data=st.data())
def test_any_ids_decode_to_one_line(tokenizers: dict[str, Tokenizer], kind: str, data: st.DataObject) -> None:
    """Case 1: whatever a model produces, the output has one line per input line, for every reader."""
    tokenizer = tokenizers[kind]
    allowed = sorted(set(range(len(tokenizer.tgt))) - set(tokenizer.forbidden()) - {EOS})
    some = data.draw(st.lists(st.lists(st.sampled_from(allowed), max_size=10), max_size=4))
    lines = tokenizer.decode(some)
    assert len(lines) == len(some)
    for line in lines:
        assert len(f"{line}.".splitlines()) == 1
        assert line == clean(line)


@settings(deadline=None)
@given(line=TEXT)
def test_cleaning_changes_nothing_twice_and_leaves_one_line(line: str) -> None:
    """Case 1."""
    once = clean(line)
    assert clean(once) == once
    assert len(f"{once}.".splitlines()) == 1
    if blank(line):
        assert blank(once)


@settings(deadline=None)
@given(lines=st.lists(TEXT, max_size=6))
def test_many_lines_are_cleaned_as_each_alone(lines: list[str]) -> None:
    assert clean_lines(lines) == [clean(line) for line in lines]


IDS = st.lists(st.integers(0, 2**16 - 1), min_size=1, max_size=6)
ROW = st.tuples(TEXT, st.lists(TEXT, min_size=1, max_size=3), IDS, IDS, st.integers(0, 2), st.integers(1, 2**62))
FILES = ["a.en", "\u2028", "c"]


def pieces(lines: list[list[int]]) -> Pieces:
    return Pieces(np.array([i for line in lines for i in line], np.int32), np.cumsum([0, *map(len, lines)]))


@pytest.mark.parametrize("vocabulary", [SMALL, SMALL + 1])
@settings(deadline=None)
@given(batches=st.lists(st.lists(ROW, max_size=4), max_size=4), data=st.data())
def test_the_store_gives_back_text_and_ids(vocabulary: int, batches: list[Any], data: st.DataObject) -> None:
    columns = schema(vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.arrow"
        with Writer(path, columns) as writer:
            for rows in batches:
                src, tgts, src_ids, tgt_ids, files, lines = map(list, zip(*rows, strict=True)) if rows else [[]] * 6
                texts = pa.array(src, pa.large_string()), pa.array(tgts, pa.list_(pa.large_string()))
                places = pa.array(files, pa.int32()), pa.array(lines, pa.int64())
                writer.write(record_batch(columns, *texts, pieces(src_ids), pieces(tgt_ids), *places))
        made = Store(path, FILES)
        rows = [row for rows in batches for row in rows]
        assert list(made.texts()) == [(row[0], tuple(row[1])) for row in rows]
        picked = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
        src, tgt = made.ids(picked)
        assert [ids.tolist() for ids in src] == [rows[i][2] for i in picked]
        assert [ids.tolist() for ids in tgt] == [rows[i][3] for i in picked]
        assert [made.where(i) for i in picked] == [f"{FILES[rows[i][4]]}:{rows[i][5]}" for i in picked]
        assert made.pair_texts(picked) == [(rows[i][0], rows[i][1][0]) for i in picked]
        lengths = made.lengths(np.array(picked, np.int64))
        assert [part.tolist() for part in lengths] == [list(map(len, src)), list(map(len, tgt))]
