"""Hugging Face datasets doing what `nmt prepare` does with duplicates kept: read, clean, drop empty pairs, encode, drop
long and lopsided pairs, count what was dropped, and leave text and ids in memory-mapped Arrow files.

    python datasets_map.py MODEL SRC TGT PAIRS PROCESSES

Prints one line of JSON. The files must hold PAIRS lines each. Works in a cache directory of its own.
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter

import datasets
import sentencepiece

BREAKS = re.compile("[\t\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029]")
UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f\ufeff]")
MAX_TOKENS, MAX_RATIO = 250, 9


def clean(line: str) -> str:
    return line if line.isprintable() else UNSEEN.sub("", BREAKS.sub(" ", line))


class Encode:
    """One batched function for all steps: the fastest way through `map`."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.processor = None

    def __getstate__(self):
        return {"model": self.model, "processor": None}

    def __call__(self, batch):
        if self.processor is None:
            self.processor = sentencepiece.SentencePieceProcessor(model_file=self.model)
        src, tgt = map(clean, batch["src"]), map(clean, batch["tgt"])
        pairs = [(s, t) for s, t in zip(src, tgt, strict=False) if s.strip() and t.strip()]
        src_ids = self.processor.encode([s for s, _ in pairs], add_eos=True, num_threads=1)
        tgt_ids = self.processor.encode([t for _, t in pairs], add_eos=True, num_threads=1)
        kept = [
            (s, t, a, b)
            for (s, t), a, b in zip(pairs, src_ids, tgt_ids, strict=False)
            if max(len(a), len(b)) <= min(MAX_TOKENS, MAX_RATIO * min(len(a), len(b)))
        ]
        columns = list(zip(*kept, strict=False)) or [(), (), (), ()]
        return dict(zip(("src", "tgt", "src_ids", "tgt_ids"), map(list, columns), strict=False))


def main() -> None:
    model, src_file, tgt_file, pairs, processes = sys.argv[1:]
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as cache:
        begin = time.perf_counter()
        src = datasets.load_dataset("text", data_files=src_file, split="train", cache_dir=cache)
        tgt = datasets.load_dataset("text", data_files=tgt_file, split="train", cache_dir=cache)
        both = datasets.concatenate_datasets(
            [src.rename_column("text", "src"), tgt.rename_column("text", "tgt")], axis=1
        ).select(range(int(pairs)))
        encoded = both.map(
            Encode(model),
            batched=True,
            num_proc=int(processes),
            remove_columns=["src", "tgt"],
            load_from_cache_file=False,
        )
        dropped = Counter(pairs=len(both) - len(encoded))
        print(json.dumps({"pairs": int(pairs), "seconds": time.perf_counter() - begin, "dropped": dropped["pairs"]}))


if __name__ == "__main__":
    main()
