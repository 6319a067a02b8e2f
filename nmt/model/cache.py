"""What a decoder remembers between steps. The caller owns it; the model only reads and extends it.

The beams of a sentence share what they remember: when they change places, nothing is copied, and each attends to the
places that its own tokens were stored in.

Shapes: B sentences, W beams, R = B * W rows (the beams of a sentence adjacent), H heads, S source and T target length,
P = T * W places of a sentence (the beams of a position adjacent), K head size.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCK = 8  # target positions that room is made for at a time, so that lengths are few
LEAST = 16  # places at a time, since a softmax over fewer numbers is slow on a CPU


class LayerCache:
    """Keys and values of one decoder layer, of the source and of the target, each sentence's in one matrix."""

    def __init__(self, src_keys_BHSK: Tensor, src_values_BHSK: Tensor, beams: int) -> None:
        self.beams = beams
        self.block = max(BLOCK, -(-LEAST // beams))
        self.src_keys_BHSK, self.src_values_BHSK = src_keys_BHSK, src_values_BHSK
        sentences, heads, _, size = src_keys_BHSK.shape
        self.keys_BHPK = src_keys_BHSK.new_empty(sentences, heads, 0, size)
        self.values_BHPK = self.keys_BHPK

    def grow(self) -> None:
        """Makes room for more positions: zeros, which a weight of 0 leaves without effect."""
        more = (0, 0, 0, self.block * self.beams)
        self.keys_BHPK, self.values_BHPK = F.pad(self.keys_BHPK, more), F.pad(self.values_BHPK, more)

    def store(self, k_RH1K: Tensor, v_RH1K: Tensor, at: int) -> None:
        k_BHWK, v_BHWK = self.of_sentences(k_RH1K), self.of_sentences(v_RH1K)
        start = at * self.beams
        end = start + k_BHWK.shape[2]
        self.keys_BHPK[:, :, start:end], self.values_BHPK[:, :, start:end] = k_BHWK, v_BHWK

    def of_sentences(self, x_RH1K: Tensor) -> Tensor:
        """-> [B, H, W, K]; there may be fewer beams as yet than there is room for."""
        _, heads, _, size = x_RH1K.shape
        return x_RH1K.reshape(len(self.keys_BHPK), -1, heads, size).transpose(1, 2)

    def keep(self, sentences: Tensor) -> None:
        self.src_keys_BHSK = _keep(self.src_keys_BHSK, sentences)
        self.src_values_BHSK = _keep(self.src_values_BHSK, sentences)
        self.keys_BHPK = _keep(self.keys_BHPK, sentences)
        self.values_BHPK = _keep(self.values_BHPK, sentences)


def _keep(x: Tensor, rows: Tensor) -> Tensor:
    """x[rows], in the memory of x: rows that stay where they are cost nothing."""
    moved = (rows != torch.arange(len(rows), device=rows.device)).nonzero()[:, 0]
    x[moved] = x[rows[moved]]
    return x[: len(rows)]


@dataclass
class DecoderState:
    """The caches of all layers, which source positions are real, and where the beams' own tokens are stored."""

    layers: list[LayerCache]
    mask_BS: Tensor
    origins_BWT: Tensor  # the beam in whose place a beam's token of each position is
    beams: int  # that there is room for
    room: int = 0  # for so many positions
    latest: tuple[Tensor, Tensor] | None = None  # the states [R, D] and logits [R, V] of the last step

    @classmethod
    def empty(cls, layers: list[LayerCache], mask_BS: Tensor, beams: int) -> DecoderState:
        origins_BWT = torch.empty(len(mask_BS), 1, 0, dtype=torch.long, device=mask_BS.device)
        return cls(layers, mask_BS, origins_BWT, beams)

    @property
    def length(self) -> int:
        return self.origins_BWT.shape[2]

    def extend(self) -> Tensor:
        """One more position; returns which of the places each beam attends to, [B, W, P]."""
        if self.length == self.room:
            self.room += self.layers[0].block
            for layer in self.layers:
                layer.grow()
        sentences, beams, _ = self.origins_BWT.shape
        numbers = torch.arange(self.beams, device=self.origins_BWT.device)
        own_BW1 = numbers[None, :beams, None].expand(sentences, -1, -1)
        self.origins_BWT = torch.cat([self.origins_BWT, own_BW1], dim=2)
        mask_BWP = (self.origins_BWT[..., None] == numbers).flatten(2)
        return F.pad(mask_BWP, (0, (self.room - self.length) * self.beams))

    def follow(self, from_BW: Tensor) -> None:
        """Beam w of sentence b goes on from what was its beam from_BW[b, w]; there may be more beams than before."""
        self.origins_BWT = self.origins_BWT.gather(1, from_BW[:, :, None].expand(-1, -1, self.length))

    def keep(self, sentences: Tensor) -> None:
        """Sentence i is what sentence sentences[i] was; the others are over."""
        for layer in self.layers:
            layer.keep(sentences)
        self.mask_BS, self.origins_BWT = self.mask_BS[sentences], self.origins_BWT[sentences]
