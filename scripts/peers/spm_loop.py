"""The floor: nothing but sentencepiece's encode in a plain loop, over text that lies in memory.

    python spm_loop.py MODEL SRC TGT PAIRS

Prints one line of JSON.
"""

import json
import sys
import time
from itertools import islice

import sentencepiece

model, src_file, tgt_file, pairs = sys.argv[1:]
processor = sentencepiece.SentencePieceProcessor(model_file=model)
with open(src_file, encoding="utf-8", newline="\n") as src, open(tgt_file, encoding="utf-8", newline="\n") as tgt:
    lines = [(s[:-1], t[:-1]) for s, t in islice(zip(src, tgt, strict=False), int(pairs))]
begin = time.perf_counter()
for s, t in lines:
    processor.encode(s)
    processor.encode(t)
print(json.dumps({"pairs": len(lines), "seconds": time.perf_counter() - begin}))
