"""The encoder's and the decoder's layer: attention and feed-forward sublayers, each with its residual and norm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt import runtime
from nmt.model.attention import Linear, SelfAttention, SourceAttention
from nmt.model.cache import LayerCache
from nmt.model.position import Position
from nmt.packing import Padded


@dataclass(frozen=True)
class LayerShape:
    """The numbers that encoder and decoder layers share."""

    dim: int
    heads: int
    ffn_dim: int
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    norm: str = "layer"
    norm_first: bool = True
    activation: str = "relu"


class LayerNorm(nn.LayerNorm):
    """Normalises to mean 0 and variance 1 (Ba et al. 2016), in the precision of its input."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class RMSNorm(nn.Module):
    """Divides by the root of the mean square (Zhang and Sennrich 2019)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight.to(x.dtype), eps=1e-6)


NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": LayerNorm, "rms": RMSNorm}
NORM_TYPES = (LayerNorm, RMSNorm)


class Residual(nn.Module):
    """x + dropout(sublayer(norm(x))) with the norm first, norm(x + dropout(sublayer(x))) as in the paper otherwise."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.norm = NORMS[shape.norm](shape.dim)
        self.norm_first = shape.norm_first
        self.dropout = shape.dropout

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        out = sublayer(self.norm(x) if self.norm_first else x)
        x = x + runtime.dropout(out, self.dropout if self.training else 0.0)
        return x if self.norm_first else self.norm(x)

    if TYPE_CHECKING:
        __call__ = forward


class FeedForward(nn.Module):
    """Two linear maps with an activation between, at each position alone (section 3.3); swiglu has a gate beside."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.activation = shape.activation
        self.dropout = shape.activation_dropout
        self.inner = Linear(shape.dim, shape.ffn_dim * (2 if self.activation == "swiglu" else 1))
        self.outer = Linear(shape.ffn_dim, shape.dim)
        self.watcher: Callable[[Tensor], None] | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.watcher is not None:
            self.watcher(x)
        hidden = self.inner(x, relu=self.activation == "relu")
        if self.activation == "swiglu":
            gate, hidden = hidden.chunk(2, dim=-1)
            hidden = F.silu(gate) * hidden
        elif self.activation == "gelu":
            hidden = F.gelu(hidden)
        return self.outer(runtime.dropout(hidden, self.dropout if self.training else 0.0))

    if TYPE_CHECKING:
        __call__ = forward


class EncoderLayer(nn.Module):
    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = SelfAttention(shape.dim, shape.heads, shape.attention_dropout)
        self.self_residual = Residual(shape)
        self.ffn = FeedForward(shape)
        self.ffn_residual = Residual(shape)

    def forward(self, x: Tensor, position: Position, mask_BS: Tensor, src: Padded) -> Tensor:
        """`src` says how the tokens of x lie: [B, S, D] or packed."""
        x = self.self_residual(x, lambda x: self.self_attention(x, position, mask_BS, False, src))
        return self.ffn_residual(x, self.ffn)

    if TYPE_CHECKING:
        __call__ = forward


class DecoderLayer(nn.Module):
    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.self_attention = SelfAttention(shape.dim, shape.heads, shape.attention_dropout)
        self.self_residual = Residual(shape)
        self.src_attention = SourceAttention(shape.dim, shape.heads, shape.attention_dropout)
        self.src_residual = Residual(shape)
        self.ffn = FeedForward(shape)
        self.ffn_residual = Residual(shape)

    def forward(
        self, x: Tensor, position: Position, memory: Tensor, mask_BS: Tensor, src: Padded, tgt: Padded
    ) -> Tensor:
        """All target positions at once (teacher forcing). The loss ignores padding, so it needs no mask of its own."""
        k, v = self.src_attention.project(memory, src)
        x = self.self_residual(x, lambda x: self.self_attention(x, position, None, True, tgt))
        x = self.src_residual(x, lambda x: self.src_attention(x, k, v, mask_BS, tgt))
        return self.ffn_residual(x, self.ffn)

    def step(
        self, x_R1D: Tensor, position: Position, cache: LayerCache, at: int, mask_BWP: Tensor, mask_BS: Tensor
    ) -> Tensor:
        """One target position of R = B * W rows, over what the cache holds of the earlier ones and of the source."""
        x_R1D = self.self_residual(x_R1D, lambda x: self._attend_cached(x, position, cache, at, mask_BWP))
        x_R1D = self.src_residual(x_R1D, lambda x: self._attend_source(x, cache, mask_BS))
        return self.ffn_residual(x_R1D, self.ffn)

    def _attend_cached(self, x_R1D: Tensor, position: Position, cache: LayerCache, at: int, mask_BWP: Tensor) -> Tensor:
        q_RH1K, k_RH1K, v_RH1K = self.self_attention.project(x_R1D, position, at)
        cache.store(k_RH1K, v_RH1K, at)
        mask = mask_BWP[:, None]
        bias = position.bias(at, 1, mask.shape[3] // cache.beams)
        if bias is not None:
            mask = bias.repeat_interleave(cache.beams, dim=-1).masked_fill(~mask, -math.inf)
        q_BHWK = cache.of_sentences(q_RH1K)
        return self.self_attention.merge(q_BHWK, cache.keys_BHPK, cache.values_BHPK, mask).view(x_R1D.shape)

    def _attend_source(self, x_R1D: Tensor, cache: LayerCache, mask_BS: Tensor) -> Tensor:
        # The W beams of a sentence are W queries to its one source: nothing of the source is copied per beam.
        rows, _, dim = x_R1D.shape
        x_BWD = x_R1D.view(mask_BS.shape[0], -1, dim)
        return self.src_attention(x_BWD, cache.src_keys_BHSK, cache.src_values_BHSK, mask_BS).view(rows, 1, dim)

    if TYPE_CHECKING:
        __call__ = forward
