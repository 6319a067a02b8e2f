"""Batches of token ids as tensors, padded on the right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.data.plan import LEAST_WIDTH
from nmt.packing import Packed
from nmt.runtime import send

PAD, BOS = 0, 2
Ids = np.ndarray  # token ids of one sentence, ending in eos


@dataclass
class Batch:
    """B sentence pairs, padded to S and T; N real target tokens."""

    src_BS: Tensor
    tgt_in_BT: Tensor
    src: Packed  # where the tokens of each side stand in these
    tgt: Packed
    targets_N: Tensor  # the real tokens of the target, eos included, row after row
    tokens: int


def collate(src: list[Ids], tgt: list[Ids], shape: tuple[int, int], device: torch.device) -> Batch:
    """Pads to `shape` = (S, T), at least the longest sentences. The decoder's input is the target after a bos."""
    src_BS, src_lengths = _pad(src, shape[0])
    tgt_out_BT, tgt_lengths = _pad(tgt, shape[1])
    tgt_in_BT = np.empty_like(tgt_out_BT)
    tgt_in_BT[:, 0], tgt_in_BT[:, 1:] = BOS, tgt_out_BT[:, :-1]
    return Batch(
        send(src_BS, device),
        send(tgt_in_BT, device),
        Packed.of(src_lengths, src_BS.shape[1], device),
        Packed.of(tgt_lengths, tgt_in_BT.shape[1], device),
        send(np.concatenate(tgt).astype(np.int64), device),
        int(tgt_lengths.sum()),
    )


def pad_sources(src: list[Ids], device: torch.device) -> Tensor:
    """Shape: [B, S]."""
    return send(_pad(src, LEAST_WIDTH)[0], device)


def _pad(rows: list[Ids], width: int) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    width = max(width, int(lengths.max()))
    padded = np.full((len(rows), width), PAD, np.int64)
    padded[np.arange(width)[None, :] < lengths[:, None]] = np.concatenate(rows)
    return padded, lengths
