"""Optimisers, and learning-rate schedules as functions of how far a run has come."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from nmt.choice import Natural, NotNegative, Positive, Rate

Parameters = Iterable[nn.Parameter]


def adamw(
    parameters: Parameters,
    *,
    lr: Positive = 2e-3,
    betas: tuple[Rate, Rate] = (0.9, 0.98),
    eps: Positive = 1e-9,
    weight_decay: NotNegative = 0.0,
) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019); decay 0 is the paper's Adam (section 5.3)."""
    return torch.optim.AdamW(
        parameters, lr=lr, betas=(betas[0], betas[1]), eps=eps, weight_decay=weight_decay, fused=True
    )


def sgd(parameters: Parameters, *, lr: Positive = 0.1, momentum: Rate = 0.0) -> torch.optim.Optimizer:
    """Plain stochastic gradient descent."""
    return torch.optim.SGD(parameters, lr=lr, momentum=momentum, fused=True)


OPTIMIZERS: Mapping[str, Callable[..., torch.optim.Optimizer]] = {"adamw": adamw, "sgd": sgd}


class Schedule(Protocol):
    """Factor on the peak learning rate for the update after `step` others, when `share` of the run has passed.

    `share` is the largest of the shares of steps, epochs and minutes used.
    """

    def __call__(self, step: int, share: float) -> float: ...


class _WarmUp:
    """A straight line from 0 to the peak over `warmup` steps; auto: a tenth of the run, at most 4,000 steps."""

    AUTO_SHARE, AUTO_STEPS = 0.1, 4000

    def __init__(self, steps: int | None, *, warmup: Literal["auto"] | Natural = "auto") -> None:
        self.warmup = warmup
        # The share of the run at which the peak is reached, where that is known before.
        self.peak = self.AUTO_SHARE if warmup == "auto" else 0.0
        if steps:
            limit = self.AUTO_STEPS if warmup == "auto" else warmup
            self.peak = min(self.AUTO_SHARE, limit / steps) if warmup == "auto" else min(1.0, limit / steps)

    def risen(self, step: int, share: float) -> float:
        """1 at the peak, below 1 before and above 1 after it, in proportion to the way made."""
        if self.warmup == "auto":
            return max(share / self.AUTO_SHARE, (step + 1) / self.AUTO_STEPS)
        return (step + 1) / max(1, self.warmup)

    def left(self, share: float) -> float:
        """From 1 at the peak down to 0 at the end of the run."""
        return min(1.0, max(0.0, (1 - share) / max(1e-9, 1 - self.peak)))


class InverseSqrt(_WarmUp):
    """After the warm-up, falls with one over the square root of the steps (section 5.3 of the paper)."""

    def __call__(self, step: int, share: float) -> float:
        risen = self.risen(step, share)
        return min(risen, 1 / math.sqrt(risen))


class Linear(_WarmUp):
    """After the warm-up, a straight line to zero at the end of the run."""

    def __call__(self, step: int, share: float) -> float:
        return min(self.risen(step, share), self.left(share))


class Cosine(_WarmUp):
    """After the warm-up, half a cosine wave to zero at the end of the run (Loshchilov and Hutter 2017)."""

    def __call__(self, step: int, share: float) -> float:
        return min(self.risen(step, share), 0.5 - 0.5 * math.cos(math.pi * self.left(share)))


SCHEDULES: Mapping[str, Callable[..., Schedule]] = {
    "inverse_sqrt": InverseSqrt,
    "linear": Linear,
    "cosine": Cosine,
}


def clip(parameters: list[nn.Parameter], largest: float) -> Tensor:
    """Scales all gradients so that their joint norm is at most `largest` (0: no limit); returns the norm before."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if largest > 0:
        torch.nn.utils.clip_grads_with_norm_(parameters, largest, norm)
    return norm


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
