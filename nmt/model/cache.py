"""What a decoder remembers between steps. The caller owns it; the model only reads and extends it.

Shapes: B sentences, W beams, R = B * W rows (the beams of a sentence adjacent), H heads, S source and T target length,
K head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt import runtime

BLOCK = 16  # target positions that room is made for at a time: few lengths, and none at which a CPU is slow


class LayerCache:
    """Keys and values of one decoder layer: the source's once per sentence, the target's of every row."""

    def __init__(self, src_keys_BHSK: Tensor, src_values_BHSK: Tensor, beams: int) -> None:
        self.src_keys_BHSK = runtime.cached(src_keys_BHSK)
        self.src_values_BHSK = runtime.cached(src_values_BHSK)
        sentences, heads, _, size = src_keys_BHSK.shape
        self.keys_RHTK = self.src_keys_BHSK.new_empty(sentences * beams, heads, 0, size)
        self.values_RHTK = self.keys_RHTK

    def grow(self) -> None:
        """Makes room for more positions: zeros, which a weight of 0 leaves without effect."""
        self.keys_RHTK = F.pad(self.keys_RHTK, (0, 0, 0, BLOCK))
        self.values_RHTK = F.pad(self.values_RHTK, (0, 0, 0, BLOCK))

    def store(self, k_RH1K: Tensor, v_RH1K: Tensor, at: int) -> None:
        self.keys_RHTK[:, :, at], self.values_RHTK[:, :, at] = k_RH1K[:, :, 0], v_RH1K[:, :, 0]

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        self.keys_RHTK = self.keys_RHTK.index_select(0, rows)
        self.values_RHTK = self.values_RHTK.index_select(0, rows)
        if sentences is not None:
            self.src_keys_BHSK = self.src_keys_BHSK.index_select(0, sentences)
            self.src_values_BHSK = self.src_values_BHSK.index_select(0, sentences)


@dataclass
class DecoderState:
    """The caches of all layers, which source positions are real, and how many target positions there are."""

    layers: list[LayerCache]
    mask_BS: Tensor
    length: int = 0
    room: int = 0

    def extend(self) -> Tensor:
        """One more position; returns which of the positions that there is room for are taken, [T]."""
        if self.length == self.room:
            self.room += BLOCK
            for layer in self.layers:
                layer.grow()
        self.length += 1
        return torch.arange(self.room, device=self.mask_BS.device) < self.length

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i goes on from what row rows[i] was, within its sentence; of `sentences` only these are left."""
        for layer in self.layers:
            layer.select(rows, sentences)
        if sentences is not None:
            self.mask_BS = self.mask_BS.index_select(0, sentences)
