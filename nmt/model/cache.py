"""What a decoder remembers between steps. The caller owns it; the model only reads and extends it.

Shapes: B sentences, W beams, R = B * W rows (the beams of a sentence adjacent), H heads, S source and T target length,
K head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class LayerCache:
    """Keys and values of one decoder layer: the source's once per sentence, the target's in a growing block per row."""

    BLOCK = 32  # target positions are allocated in blocks, so that short translations do not pay for long limits

    def __init__(self, src_keys_BHSK: Tensor, src_values_BHSK: Tensor, beams: int) -> None:
        self.src_keys_BHSK = src_keys_BHSK
        self.src_values_BHSK = src_values_BHSK
        sentences, heads, _, size = src_keys_BHSK.shape
        self.keys_RHTK = src_keys_BHSK.new_empty(sentences * beams, heads, 0, size)
        self.values_RHTK = self.keys_RHTK

    def append(self, k_RH1K: Tensor, v_RH1K: Tensor, at: int) -> tuple[Tensor, Tensor]:
        """Stores position `at`; returns the keys and values of positions 0..at, [R, H, at + 1, K]."""
        if at == self.keys_RHTK.shape[2]:
            shape = (*k_RH1K.shape[:2], max(self.BLOCK, 2 * at), k_RH1K.shape[3])
            keys, values = k_RH1K.new_empty(shape), v_RH1K.new_empty(shape)
            keys[:, :, :at], values[:, :, :at] = self.keys_RHTK, self.values_RHTK
            self.keys_RHTK, self.values_RHTK = keys, values
        self.keys_RHTK[:, :, at], self.values_RHTK[:, :, at] = k_RH1K[:, :, 0], v_RH1K[:, :, 0]
        return self.keys_RHTK[:, :, : at + 1], self.values_RHTK[:, :, : at + 1]

    def reorder(self, rows: Tensor, length: int) -> None:
        """Row i continues what row rows[i] was; rows stay within their sentence. Only `length` positions matter."""
        kept_keys = self.keys_RHTK[:, :, :length].index_select(0, rows)
        kept_values = self.values_RHTK[:, :, :length].index_select(0, rows)
        if len(rows) < len(self.keys_RHTK):
            self.keys_RHTK, self.values_RHTK = self.keys_RHTK[: len(rows)], self.values_RHTK[: len(rows)]
        self.keys_RHTK[:, :, :length] = kept_keys
        self.values_RHTK[:, :, :length] = kept_values

    def keep_sentences(self, sentences: Tensor) -> None:
        self.src_keys_BHSK = self.src_keys_BHSK.index_select(0, sentences)
        self.src_values_BHSK = self.src_values_BHSK.index_select(0, sentences)


@dataclass
class DecoderState:
    """The caches of all layers, which source positions are real, and how many target positions there are."""

    layers: list[LayerCache]
    mask_BS: Tensor
    beams: int
    length: int = 0

    def reorder(self, rows: Tensor) -> None:
        """After a choice among beams: row i goes on from row rows[i] of the same sentence."""
        for layer in self.layers:
            layer.reorder(rows, self.length)

    def keep(self, sentences: Tensor) -> None:
        """Drops all sentences but these."""
        beams = torch.arange(self.beams, device=sentences.device)
        rows = (sentences[:, None] * self.beams + beams).flatten()
        self.reorder(rows)
        self.mask_BS = self.mask_BS.index_select(0, sentences)
        for layer in self.layers:
            layer.keep_sentences(sentences)
