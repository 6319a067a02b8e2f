"""What training minimises. An objective takes the model's states and owns the projection onto the vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from nmt.data.batches import Batch
from nmt.model.transformer import Transformer
from nmt.progress import say

CHUNK = 512  # tokens whose logits exist at the same time
CUDA_CHUNK = 2048  # fewer, larger kernels


@dataclass
class Sums:
    """Sums over the target tokens of a batch; `loss` carries the gradient, already divided by `tokens_of_update`."""

    loss: Tensor  # what is minimised, as a sum over tokens divided by the tokens of the whole update
    nll: Tensor  # negative log-likelihood, not smoothed, in nats, as a plain sum
    tokens: int  # real target tokens, end of sentence counted


class Objective(Protocol):
    def __call__(self, model: Transformer, batch: Batch, tokens_of_update: int) -> Sums: ...


class CrossEntropy:
    """Cross-entropy with label smoothing (Szegedy et al. 2016): the target distribution is 1 - e on the right piece
    plus e spread evenly over the whole vocabulary, as torch.nn.functional.cross_entropy defines it."""

    def __init__(self, label_smoothing: float, compiled: bool) -> None:
        self.label_smoothing = label_smoothing
        self.chunk = _CompiledChunk() if compiled else chunk_loss

    def __call__(self, model: Transformer, batch: Batch, tokens_of_update: int) -> Sums:
        states_BTD = model(batch.src_BS, batch.tgt_in_BT)
        states_ND = states_BTD.flatten(0, 1).index_select(0, batch.real_N)
        loss, nll = projection_loss(
            states_ND, model.projection.weight, batch.targets_N, self.label_smoothing, 1 / tokens_of_update, self.chunk
        )
        return Sums(loss, nll, batch.tokens)


def projection_loss(
    states_ND: Tensor,
    weight_VD: Tensor,
    targets_N: Tensor,
    smoothing: float,
    scale: float,
    chunk: Callable[..., tuple[Tensor, ...]] | None = None,
) -> tuple[Tensor, Tensor]:
    """Projects, takes the smoothed cross-entropy and its gradient, chunk by chunk: [N, V] is never held.

    Returns the loss, summed over tokens and times `scale`, and the plain negative log-likelihood, summed.
    The gradient of the weight is summed in fp32.
    """
    loss, nll = _ProjectionLoss.apply(  # type: ignore[no-untyped-call]
        states_ND, weight_VD, targets_N, smoothing, scale, chunk or chunk_loss
    )
    return loss, nll


class _ProjectionLoss(Function):
    """Computes both gradients in the forward pass, while a chunk of logits is at hand."""

    @staticmethod
    def forward(
        ctx: Any, states_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, smoothing: float, scale: float, chunk: Any
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        weight = weight_VD.to(states_ND.dtype)
        size = CUDA_CHUNK if states_ND.is_cuda else CHUNK
        count, whole = len(states_ND), -(-len(states_ND) // size) * size
        # All chunks have one size, so that one compiled kernel serves: the rest of the last one has weight 0.
        states = F.pad(states_ND, (0, 0, 0, whole - count))
        targets = F.pad(targets_N, (0, whole - count))
        scales = F.pad(states_ND.new_full((count,), scale, dtype=torch.float32), (0, whole - count))
        grad_states = torch.empty_like(states) if wanted else None
        grad_weight = torch.zeros(weight_VD.shape, dtype=torch.float32, device=weight_VD.device) if wanted else None
        loss = torch.zeros((), dtype=torch.float32, device=states.device)
        nll = torch.zeros_like(loss)
        for first in range(0, whole, size):
            part = slice(first, first + size)
            chunk_sum, chunk_nll, grad_logits = chunk(states[part] @ weight.T, targets[part], scales[part], smoothing)
            loss += chunk_sum
            nll += chunk_nll
            if grad_states is not None and grad_weight is not None:
                torch.mm(grad_logits, weight, out=grad_states[part])
                grad_weight += grad_logits.T @ states[part]
        if grad_states is not None:
            ctx.save_for_backward(grad_states[:count], grad_weight)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight = ctx.saved_tensors
        return grad_states * grad_loss.to(grad_states.dtype), grad_weight * grad_loss, None, None, None, None


def chunk_loss(
    logits_NV: Tensor, targets_N: Tensor, scales_N: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """-> the sum of smoothed losses times their scales, the sum of plain ones where the scale is not 0, and the
    gradient [N, V] of the first by the logits."""
    pieces = logits_NV.shape[1]
    scores = logits_NV.float()
    log_total = scores.logsumexp(-1)
    nll = log_total - scores.gather(1, targets_N[:, None])[:, 0]
    spread = log_total - scores.mean(-1)
    loss = (((1 - smoothing) * nll + smoothing * spread) * scales_N).sum()
    at_target = torch.arange(pieces, device=scores.device)[None, :] == targets_N[:, None]
    wanted = torch.where(at_target, 1 - smoothing + smoothing / pieces, smoothing / pieces)
    gradient = ((scores - log_total[:, None]).exp() - wanted) * scales_N[:, None]
    return loss, (nll * (scales_N != 0)).sum(), gradient.to(logits_NV.dtype)


class _CompiledChunk:
    """`chunk_loss` under torch.compile, which fuses its passes over the logits; as it stands where that fails."""

    def __init__(self) -> None:
        self.run: Callable[..., tuple[Tensor, Tensor, Tensor]] = torch.compile(chunk_loss, dynamic=False)
        self.works = False

    def __call__(self, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        if self.works:
            return self.run(*arguments)
        try:
            result = self.run(*arguments)
            self.works = True
            return result
        except Exception as error:  # the compiler's own errors are of many kinds, and none is a reason to stop
            reason = str(error).strip().splitlines() or [type(error).__name__]
            say(f"the loss runs uncompiled, slower: {reason[0]}")
            self.run, self.works = chunk_loss, True
            return chunk_loss(*arguments)


OBJECTIVES: Mapping[str, Callable[..., Objective]] = {"cross_entropy": CrossEntropy}
