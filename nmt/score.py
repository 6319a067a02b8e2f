"""Teacher-forced log-probabilities of given translations, token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from nmt import runtime
from nmt.data.batches import collate
from nmt.data.plan import rung
from nmt.model.transformer import Transformer

TOKENS = 2048  # padded target places scored at a time: their logits exist at once


def log_probs(
    model: Transformer, src: Sequence[np.ndarray], tgt: Sequence[np.ndarray], device: torch.device
) -> list[np.ndarray]:
    """For each pair the natural-log probability of each target token (eos included), given the ones before it.

    `src` and `tgt` are ids that end in eos. The results come in the order of the pairs, and do not depend on which
    pairs stand beside them.
    """
    found: list[np.ndarray] = [np.empty(0)] * len(src)
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        for chosen in _batches(src, tgt):
            scored = _scored(model, [src[i] for i in chosen], [tgt[i] for i in chosen], device)
            for i, part in zip(chosen, scored, strict=True):
                found[i] = part
    model.train(was_training)
    return found


def _scored(model: Transformer, src: list[np.ndarray], tgt: list[np.ndarray], device: torch.device) -> list[np.ndarray]:
    def work(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        srcs, tgts = [s for s, _ in pairs], [t for _, t in pairs]
        batch = collate(srcs, tgts, (max(map(len, srcs)), max(map(len, tgts))), device)
        states_ND = model(batch.src_BS, batch.tgt_in_BT, src=batch.src, tgt=batch.tgt)[: batch.tokens]
        scores_N = _at_targets(model.logits(states_ND), batch.targets_N).cpu().numpy()
        return np.split(scores_N, np.cumsum([len(ids) for ids in tgts])[:-1])

    def too_much(pair: tuple[np.ndarray, np.ndarray]) -> str:
        return f"for a pair of {len(pair[0]):,} and {len(pair[1]):,} pieces; use another device"

    return runtime.in_halves(work, list(zip(src, tgt, strict=True)), device, too_much)


def _batches(src: Sequence[np.ndarray], tgt: Sequence[np.ndarray]) -> Iterator[list[int]]:
    lengths = rung(np.array([[len(s), len(t)] for s, t in zip(src, tgt, strict=True)]).reshape(-1, 2)).max(axis=1)
    order, start = np.argsort(-lengths, kind="stable").tolist(), 0
    while start < len(order):
        rows = max(1, TOKENS // int(lengths[order[start]]))
        yield order[start : start + rows]
        start += rows


def _at_targets(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    return logits_NV.float().log_softmax(-1).gather(1, targets_N[:, None])[:, 0]
