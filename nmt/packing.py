"""Where the tokens of a batch lie: padded to one length, or packed one after the other.

What a Transformer does to each token by itself is nearly all of its work, and needs no padding; only attention does.
Shapes: B sentences padded to T, D channels, N rows of which the last few are surplus, P = B * T places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function

from nmt.runtime import send

MULTIPLE = 64  # of rows: few shapes, for which a CPU's kernels are made once


class Padded:
    """Sentences side by side, [B, T, D]: nothing to be done."""

    def pack(self, x_BTD: Tensor) -> Tensor:
        """[B, T, D] -> the form between attentions."""
        return x_BTD

    def pad(self, x: Tensor) -> Tensor:
        """The form between attentions -> [B, T, D]."""
        return x


PADDED = Padded()


def rows_for(tokens: int) -> int:
    """Rows that so many real tokens are packed into, surplus included: one at least."""
    return (tokens // MULTIPLE + 1) * MULTIPLE


@dataclass(frozen=True)
class Packed(Padded):
    """Real tokens only, [N, D]. A few surplus rows fill up N; no gradient reaches or leaves them."""

    shape: tuple[int, int]  # B, T
    place_N: Tensor  # of the P places of a batch, the one where a row stands; a surplus row copies the first
    row_P: Tensor  # the row that stands at a place; at padding the first surplus row
    surplus: Tensor  # rows

    @classmethod
    def of(cls, lengths: np.ndarray, width: int, device: torch.device) -> Packed:
        """For sentences of these lengths, padded on the right to `width`."""
        real_BT = np.arange(width)[None, :] < lengths[:, None]
        count = int(lengths.sum())
        rows = rows_for(count)
        place_N = np.zeros(rows, np.int64)
        place_N[:count] = np.flatnonzero(real_BT)
        row_P = np.full(real_BT.size, count, np.int64)
        row_P[place_N[:count]] = np.arange(count)
        surplus = np.arange(count, rows)
        return cls((len(lengths), width), send(place_N, device), send(row_P, device), send(surplus, device))

    def twice(self) -> Packed:
        """For the same batch below itself."""
        rows, places = len(self.place_N), len(self.row_P)
        return Packed(
            (2 * self.shape[0], self.shape[1]),
            torch.cat([self.place_N, self.place_N + places]),
            torch.cat([self.row_P, self.row_P + rows]),
            torch.cat([self.surplus, self.surplus + rows]),
        )

    def pack(self, x_BTD: Tensor) -> Tensor:
        return _Pack.apply(x_BTD, self)  # type: ignore[no-any-return, no-untyped-call]

    def pad(self, x: Tensor) -> Tensor:
        return _Pad.apply(x, self)  # type: ignore[no-any-return, no-untyped-call]


class _Pack(Function):
    """Its gradient is read, not scattered: fast on a CPU, and the same every time on a GPU."""

    @staticmethod
    def forward(ctx: Any, x_BTD: Tensor, packed: Packed) -> Tensor:
        ctx.packed = packed
        return x_BTD.flatten(0, 1).index_select(0, packed.place_N)

    @staticmethod
    def backward(ctx: Any, grad_ND: Tensor) -> tuple[Tensor, None]:
        packed: Packed = ctx.packed
        return grad_ND.index_select(0, packed.row_P).view(*packed.shape, -1), None  # that of surplus rows is 0


class _Pad(Function):
    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, packed: Packed) -> Tensor:
        ctx.packed = packed
        return x_ND.index_select(0, packed.row_P).view(*packed.shape, -1)

    @staticmethod
    def backward(ctx: Any, grad_BTD: Tensor) -> tuple[Tensor, None]:
        packed: Packed = ctx.packed
        grad_ND = grad_BTD.flatten(0, 1).index_select(0, packed.place_N)
        return grad_ND.index_fill_(0, packed.surplus, 0), None


def round_size(count: int) -> int:
    """`count` rounded up to one of few sizes: of those, 8 lie between a power of 2 and the next."""
    step = 1 << max(0, count.bit_length() - 4)
    return -(-count // step) * step
