"""Hugging Face datasets doing the work of `nmt prepare`, but for looking whether the sides go together.

Read; clean; count odd characters with the first place of each; drop empty and overlong pairs, and duplicates or not,
counted with the first place; encode; drop long and lopsided pairs; count pieces, unknown ones and bytes, and lines that
do not come back; leave text and ids in memory-mapped Arrow files.

    python datasets_map.py MODEL SRC TGT PAIRS PROCESSES keep|drop

Prints one line of JSON. The files must hold PAIRS lines each. Works in a cache directory of its own.
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import datasets
import sentencepiece

BREAKS = re.compile("[\t\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029]")
UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f\ufeff]")
MAX_TOKENS, MAX_RATIO, MAX_CHARACTERS, TRIED = 250, 9, 5_000, 500


class Look:
    """The first pass. What is counted goes to a file for each batch, since `map` has no place for it."""

    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def __call__(self, batch, rows):
        odd, dropped, kept = Counter(), Counter(), ([], [])
        first = {}
        for row, *pair in zip(rows, batch["src"], batch["tgt"], strict=True):
            for i, line in enumerate(pair):
                if not line.isprintable():
                    for character in set(line):
                        if not character.isprintable() and character != "\t":
                            odd[character] += 1
                            first.setdefault(character, row)
                    pair[i] = UNSEEN.sub("", BREAKS.sub(" ", line))
            src, tgt = pair
            if not src or not tgt or src.isspace() or tgt.isspace():
                dropped["empty"] += 1
                first.setdefault("empty", row)
            elif len(src) > MAX_CHARACTERS or len(tgt) > MAX_CHARACTERS:
                dropped["long"] += 1
                first.setdefault("long", row)
            else:
                kept[0].append(src)
                kept[1].append(tgt)
        (self.notes / f"look-{rows[0]}").write_text(json.dumps([odd, dropped, first]))
        return {"src": kept[0], "tgt": kept[1]}


class First:
    """Of equal pairs the first; one process, which remembers all of them."""

    def __init__(self) -> None:
        self.seen = set()

    def __call__(self, batch):
        kept = []
        for pair in zip(batch["src"], batch["tgt"], strict=True):
            kept.append(pair not in self.seen)
            self.seen.add(pair)
        return kept


class Encode:
    """The second pass."""

    def __init__(self, model: str, notes: Path) -> None:
        self.model, self.notes = model, notes
        self.processor = None

    def __getstate__(self):
        return {"model": self.model, "notes": self.notes, "processor": None}

    def __call__(self, batch, rows):
        if self.processor is None:
            self.processor = sentencepiece.SentencePieceProcessor(model_file=self.model)
            size = self.processor.get_piece_size()
            self.bytewise = {i for i in range(size) if self.processor.is_byte(i)}
        counts = Counter()
        columns = {}
        for side in ("src", "tgt"):
            lines = batch[side]
            ids = columns[side] = self.processor.encode(lines, add_eos=True, num_threads=1)
            counts[f"{side} pieces"] += sum(map(len, ids))
            counts[f"{side} unknown"] += sum(line.count(self.processor.unk_id()) for line in ids)
            if self.bytewise:
                counts[f"{side} bytes"] += sum(i in self.bytewise for line in ids for i in line)
            tried = -(-TRIED * len(lines) // 10_000)  # as often as nmt does
            back = self.processor.decode([line[:-1] for line in ids[:tried]])
            counts[f"{side} changed"] += sum(a != b for a, b in zip(lines, back, strict=False))
        kept = [
            (s, t, a, b)
            for s, t, a, b in zip(batch["src"], batch["tgt"], columns["src"], columns["tgt"], strict=True)
            if max(len(a), len(b)) <= min(MAX_TOKENS, MAX_RATIO * min(len(a), len(b)))
        ]
        counts["dropped"] += len(columns["src"]) - len(kept)
        (self.notes / f"encode-{rows[0]}").write_text(json.dumps(counts))
        of = list(zip(*kept, strict=True)) or [(), (), (), ()]
        return dict(zip(("src", "tgt", "src_ids", "tgt_ids"), map(list, of), strict=True))


def main() -> None:
    model, src_file, tgt_file, pairs, processes, duplicates = sys.argv[1:]
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as notes:
        begin = time.perf_counter()
        src = datasets.load_dataset("text", data_files=src_file, split="train", cache_dir=cache)
        tgt = datasets.load_dataset("text", data_files=tgt_file, split="train", cache_dir=cache)
        both = datasets.concatenate_datasets(
            [src.rename_column("text", "src"), tgt.rename_column("text", "tgt")], axis=1
        )
        options = {"batched": True, "batch_size": 10_000, "with_indices": True, "num_proc": int(processes)}
        looked = both.select(range(int(pairs))).map(Look(Path(notes)), **options, load_from_cache_file=False)
        if duplicates == "drop":
            looked = looked.filter(First(), batched=True, batch_size=10_000, load_from_cache_file=False)
        encoded = looked.map(Encode(model, Path(notes)), **options, load_from_cache_file=False)
        totals = Counter()
        for note in Path(notes).iterdir():
            found = json.loads(note.read_text())
            totals.update(found if isinstance(found, dict) else {**found[0], **found[1]})
        seconds = time.perf_counter() - begin
        print(json.dumps({"pairs": int(pairs), "seconds": seconds, "kept": len(encoded), **totals}))


if __name__ == "__main__":
    main()
