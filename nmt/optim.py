"""Optimisers, and learning-rate schedules as functions of how far a run has come."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, Protocol

import torch
from torch import Tensor, nn

from nmt.choice import Natural, NotNegative, Positive, Range, Rate
from nmt.errors import ConfigError

Named = Iterable[tuple[str, nn.Parameter]]
TABLES = ("embedding", "position", "projection")  # matrices whose rows are looked up one by one, by their names
FUSED = {"qkv": 3, "kv": 2}  # projections that are several matrices, one below the other


class Optimizer:
    """One optimiser of torch, or several that share a model's parameters out among them."""

    def __init__(self, *parts: torch.optim.Optimizer) -> None:
        self.parts = parts
        self.peaks = [group["lr"] for part in parts for group in part.param_groups]
        self.owners = {id(p): part for part in parts for group in part.param_groups for p in group["params"]}

    @property
    def can_skip(self) -> bool:
        """Whether `step` can be told on a GPU, without waiting for it, that there is nothing to do."""
        return all(getattr(part, "_step_supports_amp_scaling", False) for part in self.parts)

    def step(self, factor: float = 1.0, blown: Tensor | None = None) -> None:
        """One update, at the peak rates times a factor; none if `blown` is not 0, for optimisers that can skip."""
        groups = [group for part in self.parts for group in part.param_groups]
        for group, peak in zip(groups, self.peaks, strict=True):
            group["lr"] = peak * factor
        for part in self.parts:
            if blown is not None:
                part.grad_scale, part.found_inf = None, blown  # type: ignore[attr-defined]  # what a GradScaler sets
            part.step()

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def forget(self) -> None:
        """Back to the state before the first step."""
        for part in self.parts:
            part.state.clear()

    @property
    def peak(self) -> float:
        """The peak rate that is shown."""
        return float(self.peaks[0])

    def state_of(self, parameter: nn.Parameter) -> dict[str, Any]:
        """What is remembered of a parameter, to be read or filled."""
        state: dict[str, Any] = self.owners[id(parameter)].state[parameter]
        return state


def adamw(
    parameters: Named,
    *,
    lr: Positive = 2e-3,
    betas: tuple[Rate, Rate] = (0.9, 0.98),
    eps: Positive = 1e-9,
    weight_decay: NotNegative = 0.0,
) -> Optimizer:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), of matrices only; decay 0 is the paper's Adam
    (section 5.3)."""
    return Optimizer(_adamw([p for _, p in parameters], lr, betas, eps, weight_decay))


def _adamw(
    parameters: list[nn.Parameter], lr: float, betas: tuple[float, float], eps: float, weight_decay: float
) -> torch.optim.AdamW:
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},  # norms and biases
    ]
    kept = [group for group in groups if group["params"]]
    return torch.optim.AdamW(kept, lr=lr, betas=(float(betas[0]), float(betas[1])), eps=eps, fused=True)


def muon(
    parameters: Named,
    *,
    lr: Positive = 0.02,
    momentum: Rate = 0.95,
    weight_decay: NotNegative = 0.0,
    adamw_lr: Positive = 2e-3,
    betas: tuple[Rate, Rate] = (0.9, 0.98),
    eps: Positive = 1e-9,
) -> Optimizer:
    """Muon (Jordan et al. 2024) for the matrices inside the layers, with orthogonal updates at the rate `lr`; AdamW at
    `adamw_lr` for all else: embeddings, positions, norms and biases."""
    named = list(parameters)
    matrices = [(name, p) for name, p in named if p.ndim == 2 and not any(table in name for table in TABLES)]
    rest = [p for name, p in named if p.ndim != 2 or any(table in name for table in TABLES)]
    parts: list[torch.optim.Optimizer] = []
    if matrices:
        parts.append(Muon(matrices, lr, momentum, weight_decay))
    if rest:
        parts.append(_adamw(rest, adamw_lr, betas, eps, weight_decay))
    return Optimizer(*parts)


class Muon(torch.optim.Optimizer):
    """As torch.optim.Muon with its defaults, but that all matrices of one shape are made orthogonal at once, which is
    faster, and queries, keys and values each by themselves."""

    def __init__(self, named: Named, lr: float, momentum: float, weight_decay: float) -> None:
        groups: dict[int, list[nn.Parameter]] = {}
        for name, parameter in named:
            each = next((count for part, count in FUSED.items() if f".{part}." in name), 1)
            groups.setdefault(each, []).append(parameter)
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__([{"params": some, "matrices": count} for count, some in groups.items()], defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        waiting: dict[torch.Size, list[tuple[Tensor, Tensor, float]]] = {}
        for group in self.param_groups:
            rate, momentum, each = group["lr"], group["momentum"], group["matrices"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(parameter)
                buffer = state["momentum_buffer"].lerp_(parameter.grad, 1 - momentum)
                update = parameter.grad.lerp(buffer, momentum)  # Nesterov's
                parameter.mul_(1 - rate * group["weight_decay"])
                for weight, direction in zip(parameter.chunk(each), update.chunk(each), strict=True):
                    rows, columns = direction.shape
                    if rows > columns:
                        weight, direction = weight.T, direction.T
                    step = rate * math.sqrt(max(1.0, rows / columns))
                    waiting.setdefault(direction.shape, []).append((weight, direction, step))
        for matrices in waiting.values():
            orthogonal = _orthogonal(torch.stack([direction for _, direction, _ in matrices]))
            for (weight, _, step), direction in zip(matrices, orthogonal, strict=True):
                weight.add_(direction, alpha=-step)


def _orthogonal(x_NRC: Tensor) -> Tensor:
    """N matrices, no higher than wide, with all of their singular values near 1: five steps of a Newton-Schulz
    iteration with the coefficients of Jordan et al. 2024."""
    x_NRC = x_NRC.bfloat16()
    x_NRC = x_NRC / x_NRC.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(5):
        gram_NRR = x_NRC @ x_NRC.mT
        change_NRR = torch.baddbmm(gram_NRR, gram_NRR, gram_NRR, beta=-4.7750, alpha=2.0315)
        x_NRC = torch.baddbmm(x_NRC, change_NRR, x_NRC, beta=3.4445)
    return x_NRC


def sgd(parameters: Named, *, lr: Positive = 0.1, momentum: Rate = 0.0) -> Optimizer:
    """Plain stochastic gradient descent."""
    return Optimizer(torch.optim.SGD([p for _, p in parameters], lr=lr, momentum=momentum, fused=True))


OPTIMIZERS: Mapping[str, Callable[..., Optimizer]] = {"adamw": adamw, "muon": muon, "sgd": sgd}


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


class Constant(_WarmUp):
    """After the warm-up, the peak rate to the end."""

    def __call__(self, step: int, share: float) -> float:
        return min(1.0, self.risen(step, share))


class WarmupStableDecay(_WarmUp):
    """After the warm-up the peak rate, and over the last share `decay` of the run a straight line to zero."""

    def __init__(
        self,
        steps: int | None,
        *,
        warmup: Literal["auto"] | Natural = "auto",
        decay: Annotated[float, Range(gt=0, le=1)] = 0.2,
    ) -> None:
        super().__init__(steps, warmup=warmup)
        self.decay = decay

    def __call__(self, step: int, share: float) -> float:
        return min(1.0, self.risen(step, share), max(0.0, (1 - share) / self.decay))


SCHEDULES: Mapping[str, Callable[..., Schedule]] = {
    "inverse_sqrt": InverseSqrt,
    "linear": Linear,
    "cosine": Cosine,
    "constant": Constant,
    "wsd": WarmupStableDecay,
}


def clip(parameters: list[nn.Parameter], largest: float) -> Tensor:
    """Scales all gradients so that their joint norm is at most `largest` (0: no limit); returns the norm before."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if largest > 0:
        torch.nn.utils.clip_grads_with_norm_(parameters, largest, norm)
    return norm


def freeze(model: nn.Module, names: list[str]) -> None:
    """Leaves out of training all parameters that start with one of the names. Raises ConfigError for a name of none."""
    parts = list(model.named_parameters(remove_duplicate=False))  # a shared matrix goes by each of its names
    for name in names:
        found = [p for full, p in parts if full == name or full.startswith(f"{name}.")]
        if not found:
            known = dict.fromkeys(full.split(".")[0] for full, _ in parts)
            raise ConfigError(
                f"train.freeze: the model has no part `{name}`; it has {', '.join(known)}, and parts of them"
            )
        for parameter in found:
            parameter.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise ConfigError("train.freeze: leaves nothing to be trained")


def averages(model: nn.Module, decay: float) -> list[Tensor]:
    """Where moving averages of the trained weights start: at the weights. None with decay 0."""
    return [p.detach().clone() for p in model.parameters() if p.requires_grad] if decay else []


@torch.no_grad()
def replace(model: nn.Module, averaged: list[Tensor]) -> None:
    """Puts averages in the place of the trained weights."""
    for parameter, average in zip((p for p in model.parameters() if p.requires_grad), averaged, strict=True):
        parameter.copy_(average)


@torch.no_grad()
def follow(averages: list[Tensor], parameters: list[nn.Parameter], decay: float, step: int) -> None:
    """Moves the exponential moving averages of the weights towards them after update number `step`, from 1 on.

    Early on the decay is smaller, so that the random start is soon forgotten.
    """
    torch._foreach_lerp_(averages, list[Tensor](parameters), 1 - min(decay, (1 + step) / (10 + step)))
