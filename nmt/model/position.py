"""How the model knows the order of tokens: hooks that do nothing by default, and the variants that fill them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated

import torch
from torch import Tensor, nn

from nmt.choice import Count, Range


class Position(nn.Module):
    """The three places where positions can enter a Transformer."""

    limit: int | None = None  # the longest sequence that the variant can represent

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def embed(self, x_BTD: Tensor, start: int) -> Tensor:
        """Scaled embeddings of tokens that stand at start, start + 1, ... -> the input of the first layer."""
        return x_BTD

    def rotate(self, x_BHTK: Tensor, start: int) -> Tensor:
        """Queries or keys of self-attention -> the same with their positions worked in."""
        return x_BHTK

    def bias(self, query_start: int, queries: int, keys: int) -> Tensor | None:
        """Added to the scores of self-attention, broadcast to [B, H, queries, keys]."""
        return None


class Sinusoidal(Position):
    """Sines and cosines of geometrically growing wavelengths (Vaswani et al. 2017, section 3.5), for any length.

    Half the dimensions hold sines, the other half cosines, of wavelengths from 2 pi to 10,000 * 2 pi inclusive, as in
    tensor2tensor and the engines that follow it; the paper interleaves them and stops just short of the longest.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self.register_buffer("table_TD", sinusoids(256, dim), persistent=False)
        self.table_TD: Tensor

    def embed(self, x_BTD: Tensor, start: int) -> Tensor:
        end = start + x_BTD.shape[1]
        if end > self.table_TD.shape[0]:
            self.table_TD = sinusoids(2 * end, self.dim).to(self.table_TD)
        return x_BTD + self.table_TD[start:end].to(x_BTD.dtype)


def sinusoids(length: int, dim: int) -> Tensor:
    """Shape: [length, dim]."""
    frequencies = torch.exp(torch.arange(dim // 2) * (-math.log(10_000) / max(1, dim // 2 - 1)))
    angles = torch.arange(length)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class Learned(Position):
    """One trained vector for each position below `limit`."""

    def __init__(self, dim: int, *, limit: Count = 1024) -> None:
        super().__init__(dim)
        self.limit = limit
        self.weight = nn.Parameter(torch.empty(limit, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)

    def embed(self, x_BTD: Tensor, start: int) -> Tensor:
        return x_BTD + self.weight[start : start + x_BTD.shape[1]].to(x_BTD.dtype)


class Rotary(Position):
    """Queries and keys are turned by angles that grow with their position, so that scores depend on distances
    (Su et al. 2021); the wavelengths grow up to 2 pi times `base`. Source attention knows no positions."""

    def __init__(self, dim: int, *, base: Annotated[float, Range(gt=1)] = 10_000.0) -> None:
        super().__init__(dim)
        self.base = base
        self.register_buffer("turns_TK", torch.empty(0, 0), persistent=False)
        self.turns_TK: Tensor

    def rotate(self, x_BHTK: Tensor, start: int) -> Tensor:
        end = start + x_BHTK.shape[2]
        if end > self.turns_TK.shape[0]:
            with torch.inference_mode(False):  # a table made while translating serves training too
                exact = torch.promote_types(x_BHTK.dtype, torch.float32)
                self.turns_TK = turns(2 * end, x_BHTK.shape[3], self.base).to(x_BHTK.device, exact)
        cos, sin = self.turns_TK[start:end].to(x_BHTK.dtype).chunk(2, dim=-1)
        x, y = x_BHTK.chunk(2, dim=-1)
        return torch.cat([x * cos - y * sin, x * sin + y * cos], dim=-1)


def turns(length: int, size: int, base: float) -> Tensor:
    """Cosines, then sines, of the angles of positions below `length`. Shape: [length, size], in fp64."""
    half = torch.arange(size // 2, dtype=torch.float64)
    angles = torch.arange(length)[:, None] * base ** (-half / (size // 2))
    return torch.cat([angles.cos(), angles.sin()], dim=1)


POSITIONS: Mapping[str, Callable[..., Position]] = {"sinusoidal": Sinusoidal, "learned": Learned, "rotary": Rotary}
