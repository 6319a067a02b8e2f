"""Scaled dot-product attention and its two uses: among the tokens of one side, and from the target to the source.

Masks say True where a query may attend. Shapes: B sentences, T queries, S keys, H heads, K head size, D = H * K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt import runtime
from nmt.model.position import Position
from nmt.packing import PADDED, Padded


def attend(q_BHTK: Tensor, k_BHSK: Tensor, v_BHSK: Tensor, mask: Tensor | None, causal: bool, rate: float) -> Tensor:
    """softmax(q k' / sqrt(K)) v (Vaswani et al. 2017, equation 1) by PyTorch's fused kernel.

    *Shape:* mask broadcasts to [B, H, T, S]; `causal` lets query t see keys 0..t; `rate` is dropout on the weights.
    """
    if runtime.prefers_plain_attention(q_BHTK):
        return attend_plainly(q_BHTK, k_BHSK, v_BHSK, mask, causal, rate)[0]
    return F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSK, attn_mask=mask, is_causal=causal, dropout_p=rate)


def attend_plainly(
    q_BHTK: Tensor, k_BHSK: Tensor, v_BHSK: Tensor, mask: Tensor | None, causal: bool, rate: float
) -> tuple[Tensor, Tensor]:
    """The same as `attend`, step by step; also returns the weights [B, H, T, S] as they are before dropout."""
    # In fp32 also where the rest is in bf16: on a CPU that is several times as fast.
    exact = torch.promote_types(q_BHTK.dtype, torch.float32)
    scores_BHTS = (q_BHTK @ k_BHSK.transpose(-1, -2)).to(exact).mul_(q_BHTK.shape[-1] ** -0.5)
    if mask is not None:
        scores_BHTS.add_(_forbidding(mask, exact) if mask.dtype == torch.bool else mask)
    if causal:
        scores_BHTS.add_(_forbidding(causal_mask(scores_BHTS), exact))
    weights_BHTS = runtime.softmax(scores_BHTS, v_BHSK.dtype)
    return runtime.dropout(weights_BHTS, rate) @ v_BHSK, weights_BHTS


def _forbidding(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where the mask is True, elsewhere -inf and no small finite number: a masked key weighs exactly nothing."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -math.inf)


def causal_mask(scores_BHTS: Tensor) -> Tensor:
    """Shape: [T, S], True on and below the diagonal."""
    queries, keys = scores_BHTS.shape[-2:]
    return torch.ones(queries, keys, dtype=torch.bool, device=scores_BHTS.device).tril()


class Linear(nn.Linear):
    """Computes in the precision of its input: fp32 weights are cast once per use, and their gradients are fp32."""

    packed: Tensor | None = None  # the weights once more, when they are frozen, as the device likes them

    def freeze(self, dtype: torch.dtype) -> None:
        self.to(dtype)
        self.packed = runtime.pack(self.weight)

    def forward(self, x: Tensor, relu: bool = False) -> Tensor:
        if self.packed is not None:
            return runtime.packed_linear(x, self.packed, self.bias, relu)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        out = F.linear(x, self.weight.to(x.dtype), bias)
        return F.relu(out) if relu else out

    if TYPE_CHECKING:
        __call__ = forward


class Attention(nn.Module):
    """What self-attention and source attention share: heads, the output projection, and being watched."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.out = Linear(dim, dim)
        # Set by `transformer.watch`: called with the weights [B, H, T, S], which the fused kernel does not have.
        self.watcher: Callable[[Tensor], None] | None = None

    def split(self, x_BTD: Tensor) -> Tensor:
        """[B, T, H * K] -> [B, H, T, K]."""
        batch, length, _ = x_BTD.shape
        x_BHTK = x_BTD.view(batch, length, self.heads, -1).transpose(1, 2)
        return x_BHTK if length == 1 else x_BHTK.contiguous()  # a single position is cast or stored, and not read twice

    def merge(
        self,
        q_BHTK: Tensor,
        k_BHSK: Tensor,
        v_BHSK: Tensor,
        mask: Tensor | None,
        causal: bool = False,
        tokens: Padded = PADDED,
    ) -> Tensor:
        """Attends and joins the heads: -> [B, T, D], or packed."""
        rate = self.dropout if self.training else 0.0
        if self.watcher is None:
            out_BHTK = attend(q_BHTK, k_BHSK, v_BHSK, mask, causal, rate)
        else:
            out_BHTK, weights_BHTS = attend_plainly(q_BHTK, k_BHSK, v_BHSK, mask, causal, rate)
            self.watcher(weights_BHTS)
        return self.out(tokens.pack(out_BHTK.transpose(1, 2).flatten(2)))


class SelfAttention(Attention):
    """Every position attends to the positions of its own sequence; queries, keys and values in one product."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__(dim, heads, dropout)
        self.qkv = Linear(dim, 3 * dim)

    def project(
        self, x: Tensor, position: Position, start: int, tokens: Padded = PADDED
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [B, H, T, K] of tokens that stand at start, start + 1, ..."""
        q, k, v = (self.split(part) for part in tokens.pad(self.qkv(x)).chunk(3, dim=-1))
        return position.rotate(q, start), position.rotate(k, start), v

    def forward(
        self, x: Tensor, position: Position, key_mask_BT: Tensor | None, causal: bool, tokens: Padded = PADDED
    ) -> Tensor:
        q, k, v = self.project(x, position, 0, tokens)
        length = q.shape[2]
        mask = None if key_mask_BT is None else key_mask_BT[:, None, None, :]
        bias = position.bias(0, length, length)
        if bias is not None:  # one tensor for all: the fused kernel takes a mask or a causal flag, not both
            keep = mask if mask is not None else torch.ones((), dtype=torch.bool, device=bias.device)
            keep = keep & causal_mask(bias) if causal else keep
            mask, causal = bias.masked_fill(~keep, -math.inf), False
        return self.merge(q, k, v, mask, causal, tokens)

    if TYPE_CHECKING:
        __call__ = forward


class SourceAttention(Attention):
    """Every target position attends to the encoder's states."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__(dim, heads, dropout)
        self.q = Linear(dim, dim)
        self.kv = Linear(dim, 2 * dim)

    def project(self, memory: Tensor, tokens: Padded = PADDED) -> tuple[Tensor, Tensor]:
        """Keys and values [B, H, S, K] of the encoder's states: all that a decoder needs of a source."""
        keys, values = tokens.pad(self.kv(memory)).chunk(2, dim=-1)
        return self.split(keys), self.split(values)

    def forward(
        self, x: Tensor, k_BHSK: Tensor, v_BHSK: Tensor, key_mask_BS: Tensor, tokens: Padded = PADDED
    ) -> Tensor:
        q_BHTK = self.split(tokens.pad(self.q(x)))
        return self.merge(q_BHTK, k_BHSK, v_BHSK, key_mask_BS[:, None, None, :], tokens=tokens)

    if TYPE_CHECKING:
        __call__ = forward
