"""The best rate of torch.matmul, over square matrices of some sizes: what a training could reach at most.

    python matmul.py THREADS

Prints one line of JSON: FLOP a second by precision.
"""

import json
import sys
import time

import torch

SIZES, ENOUGH = (512, 1024, 2048, 4096), 1.0  # seconds a size


def rate(size: int, dtype: torch.dtype) -> float:
    a, b = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    best, begin = 0.0, time.perf_counter()
    while time.perf_counter() - begin < ENOUGH:
        start = time.perf_counter()
        torch.matmul(a, b)
        best = max(best, 2 * size**3 / (time.perf_counter() - start))
    return best


torch.set_num_threads(int(sys.argv[1]))
precisions = {"fp32": torch.float32, "bf16": torch.bfloat16}
print(json.dumps({name: max(rate(size, dtype) for size in SIZES) for name, dtype in precisions.items()}))
