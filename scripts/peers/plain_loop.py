"""The loop that most people would write around a model of somebody else: sentences sorted by length, padded batches in
random order, autocast, fused Adam."""

import random
from collections.abc import Callable
from itertools import cycle

import torch
from meter import Job, Meter
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

PAD, BOS, EOS = 0, 2, 3
Pair = tuple[list[int], list[int]]


def run(job: Job, model: nn.Module, logits: Callable[[Tensor, Tensor], Tensor]) -> None:
    """`logits` takes source [B, S] and decoder input [B, T], and returns [B, T, V]."""
    torch.set_num_threads(job.threads)
    optimizer = torch.optim.Adam(model.train().parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
    meter = Meter(job.seconds)
    for pairs in cycle(_batches(job)):
        src, tgt = (pad_sequence([torch.tensor(row) for row in side], batch_first=True) for side in zip(*pairs))  # noqa: B905
        before = F.pad(tgt[:, :-1], (1, 0), value=BOS)
        with torch.autocast("cpu", torch.bfloat16, enabled=job.precision == "bf16"):
            scores = logits(src, before)
        loss = F.cross_entropy(scores.float().flatten(0, 1), tgt.flatten(), ignore_index=PAD, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        tokens, real = int((tgt != PAD).sum()), int((src != PAD).sum() + (tgt != PAD).sum())
        if meter.step(tokens, 1 - real / (src.numel() + tgt.numel())):
            return


def _batches(job: Job) -> list[list[Pair]]:
    pairs = [([*src, EOS], [*tgt, EOS]) for src, tgt in zip(job.ids("src"), job.ids("tgt"), strict=True)]
    pairs.sort(key=lambda pair: (max(map(len, pair)), len(pair[1]), len(pair[0])))  # pads little on both sides
    batches, batch, width = [], [], 0
    for pair in pairs:
        width = max(width, *map(len, pair))
        if batch and width * (len(batch) + 1) > job.batch_tokens:
            batches.append(batch)
            batch, width = [], max(map(len, pair))
        batch.append(pair)
    batches.append(batch)
    random.Random(1).shuffle(batches)
    return batches
