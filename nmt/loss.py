"""What training minimises. An objective takes the model's states and owns the projection onto the vocabulary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from nmt.choice import NotNegative, Rate
from nmt.data.batches import Batch
from nmt.model.transformer import Transformer
from nmt.progress import say

# (logits of each stream, targets, scales, smoothing, pieces) -> the sum of losses times their scales, the sum of plain
# losses where the scale is not 0, and for each stream matrix, factors and terms that make the gradient by its logits:
# matrix * factor[:, None] + term[:, None]. So nothing but the matrix takes a pass over all logits.
Chunk = Callable[..., tuple[Tensor, ...]]
Weights = tuple[float, float, float, float]  # of the losses of two passes, and of their divergences forth and back

CHUNK = 512  # tokens whose logits exist at the same time
CUDA_CHUNK = 2048  # fewer, larger kernels
CUDA_MULTIPLE = 64  # pieces that a matrix product on a GPU likes the vocabulary to be a multiple of


@dataclass
class Sums:
    """Sums over the target tokens of a batch; `loss` carries the gradient."""

    loss: Tensor  # what is minimised, as a sum over tokens times `scale`
    nll: Tensor  # negative log-likelihood, not smoothed, in nats, as a plain sum
    tokens: int  # real target tokens, end of sentence counted


class Objective(Protocol):
    def __call__(self, model: Transformer, batch: Batch, scale: float) -> Sums:
        """`scale` is 1 / target tokens of the update, times the factor that keeps fp16 gradients from vanishing."""


class CrossEntropy:
    """Cross-entropy with label smoothing (Szegedy et al. 2016): the target distribution is 1 - e on the right piece
    plus e spread evenly over the whole vocabulary, as torch.nn.functional.cross_entropy defines it."""

    def __init__(self, label_smoothing: float, compiled: bool) -> None:
        self.label_smoothing = label_smoothing
        self.chunk = _Compiled(chunk_loss) if compiled else chunk_loss

    def __call__(self, model: Transformer, batch: Batch, scale: float) -> Sums:
        states_ND = model(batch.src_BS, batch.tgt_in_BT, src=batch.src, tgt=batch.tgt)[: batch.tokens]
        loss, nll = projection_loss(
            [states_ND], model.projection.weight, batch.targets_N, self.label_smoothing, scale, self.chunk
        )
        return Sums(loss, nll, batch.tokens)


class _TwoPasses:
    """What the objectives share that compare two passes over the same batch."""

    weights: Weights

    def __init__(self, label_smoothing: float, compiled: bool) -> None:
        self.label_smoothing = label_smoothing
        self.chunk = _Compiled(pair_loss) if compiled else pair_loss

    def compare(
        self, model: Transformer, batch: Batch, scale: float, kept: tuple[Tensor | None, Tensor | None] = (None, None)
    ) -> Sums:
        """`kept` are masks of the source's and the target's tokens, those of the second pass below the first's."""
        src_BS, tgt_in_BT = batch.src_BS.repeat(2, 1), batch.tgt_in_BT.repeat(2, 1)
        states_ND = model(src_BS, tgt_in_BT, *kept, batch.src.twice(), batch.tgt.twice())
        streams = [states[: batch.tokens] for states in states_ND.chunk(2)]
        chunk = partial(self.chunk, weights=self.weights)
        weight_VD = model.projection.weight
        loss, nll = projection_loss(streams, weight_VD, batch.targets_N, self.label_smoothing, scale, chunk)
        return Sums(loss, nll, batch.tokens)


class RDrop(_TwoPasses):
    """Cross-entropy of two passes with different dropout, and `alpha` times the divergence between them in both
    directions (Liang et al. 2021), halved, so that it is per token as cross-entropy is."""

    def __init__(self, label_smoothing: float, compiled: bool, *, alpha: NotNegative = 5.0) -> None:
        super().__init__(label_smoothing, compiled)
        self.weights = (0.5, 0.5, alpha / 4, alpha / 4)

    def __call__(self, model: Transformer, batch: Batch, scale: float) -> Sums:
        return self.compare(model, batch, scale)


class SimCut(_TwoPasses):
    """Cross-entropy, and `alpha` times the divergence of a second pass in which a share `rate` of the token embeddings
    of both sides is zero (Gao et al. 2022); the gradient goes through both passes."""

    def __init__(self, label_smoothing: float, compiled: bool, *, alpha: NotNegative = 3.0, rate: Rate = 0.05) -> None:
        super().__init__(label_smoothing, compiled)
        self.weights = (1.0, 0.0, alpha, 0.0)
        self.rate = rate

    def __call__(self, model: Transformer, batch: Batch, scale: float) -> Sums:
        return self.compare(model, batch, scale, (self._kept(batch.src_BS), self._kept(batch.tgt_in_BT)))

    def _kept(self, ids: Tensor) -> Tensor:
        drawn = torch.rand(ids.shape, device=ids.device) >= self.rate
        return torch.cat([torch.ones_like(drawn), drawn])


def projection_loss(
    streams: list[Tensor],
    weight_VD: Tensor,
    targets_N: Tensor,
    smoothing: float,
    scale: float,
    chunk: Chunk | None = None,
    multiple: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Projects, takes the smoothed cross-entropy and its gradient, chunk by chunk: [N, V] is never held.

    `streams` are the states [N, D] of one pass, or of two over the same targets. The projection is padded to a
    `multiple` of pieces, which take no part in the loss. Returns the loss, summed over tokens and times `scale`, and
    the plain negative log-likelihood, summed. The gradient of the weight is summed in fp32, or in the precision of the
    weight if that is higher.
    """
    multiple = multiple or (CUDA_MULTIPLE if weight_VD.is_cuda else 1)
    loss, nll = _ProjectionLoss.apply(  # type: ignore[no-untyped-call]
        weight_VD, targets_N, smoothing, scale, chunk or chunk_loss, multiple, *streams
    )
    return loss, nll


class _ProjectionLoss(Function):
    """Computes all gradients in the forward pass, while a chunk of logits is at hand."""

    @staticmethod
    def forward(
        ctx: Any,
        weight_VD: Tensor,
        targets_N: Tensor,
        smoothing: float,
        scale: float,
        chunk: Chunk,
        multiple: int,
        *streams_ND: Tensor,
    ) -> tuple[Tensor, Tensor]:
        wanted = any(ctx.needs_input_grad)
        pieces, dtype = weight_VD.shape[0], streams_ND[0].dtype
        exact = torch.promote_types(weight_VD.dtype, torch.float32)
        weight = F.pad(weight_VD.to(dtype), (0, 0, 0, -pieces % multiple))
        size = CUDA_CHUNK if weight.is_cuda else CHUNK
        count = len(targets_N)
        whole = -(-count // size) * size
        # All chunks have one size, so that one compiled kernel serves: the rest of the last one has weight 0.
        streams = [F.pad(states_ND, (0, 0, 0, whole - count)) for states_ND in streams_ND]
        targets = F.pad(targets_N, (0, whole - count))
        scales = F.pad(weight.new_full((count,), scale, dtype=exact), (0, whole - count))
        grad_streams = [torch.empty_like(states) for states in streams] if wanted else []
        sum_of_weight = weight[:pieces].sum(0, dtype=exact)
        grad_weight = torch.zeros(weight.shape, dtype=exact, device=weight.device) if wanted else None
        loss = torch.zeros((), dtype=exact, device=weight.device)
        nll = torch.zeros_like(loss)
        for first in range(0, whole, size):
            part = slice(first, first + size)
            logits = [states[part] @ weight.T for states in streams]
            chunk_sum, chunk_nll, *gradients = chunk(*logits, targets[part], scales[part], smoothing, pieces)
            loss += chunk_sum
            nll += chunk_nll
            if grad_weight is not None:
                for index, (grad_states, states) in enumerate(zip(grad_streams, streams, strict=True)):
                    matrix, factor, term = gradients[3 * index : 3 * index + 3]
                    product = matrix @ weight
                    grad_states[part] = product * factor[:, None] + term[:, None] * sum_of_weight
                    grad_weight += matrix.T @ (states[part] * factor[:, None]).to(dtype)
                    grad_weight[:pieces] += term @ states[part].to(exact)
        if grad_weight is not None:
            ctx.save_for_backward(grad_weight[:pieces], *(grad_states[:count] for grad_states in grad_streams))
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        grad_weight, *grad_streams = ctx.saved_tensors
        grad_streams = [gradient * grad_loss.to(gradient.dtype) for gradient in grad_streams]
        return grad_weight * grad_loss, None, None, None, None, None, *grad_streams


def chunk_loss(
    logits_NV: Tensor, targets_N: Tensor, scales_N: Tensor, smoothing: float, pieces: int
) -> tuple[Tensor, ...]:
    """Cross-entropy of one stream; only the first `pieces` logits of a row are real."""
    x_NV = _exact(logits_NV, pieces)
    highest_N = x_NV.amax(-1) + max(0.0, math.log(pieces) - 10)  # so that a sum fits into fp16
    exp_NV = (x_NV - highest_N[:, None]).exp()
    sums_N = exp_NV.sum(-1)
    normaliser_N = highest_N + sums_N.log()
    x_at_target_N = x_NV.gather(1, targets_N[:, None])[:, 0]
    nll_N = normaliser_N - x_at_target_N
    loss_N = (1 - smoothing) * nll_N + smoothing * (normaliser_N - x_NV.mean(-1))
    # The gradient by a row of logits is softmax - (1 - e) at the target - e / V, times the scale.
    matrix_NV = _padded(exp_NV, logits_NV)
    at_target_N = (x_at_target_N - highest_N).exp() - (1 - smoothing) * sums_N
    matrix_NV[torch.arange(len(targets_N), device=targets_N.device), targets_N] = at_target_N.to(matrix_NV.dtype)
    term_N = scales_N * (-smoothing / pieces)
    return (loss_N * scales_N).sum(), (nll_N * (scales_N != 0)).sum(), matrix_NV, scales_N / sums_N, term_N


def pair_loss(
    first_NV: Tensor,
    second_NV: Tensor,
    targets_N: Tensor,
    scales_N: Tensor,
    smoothing: float,
    pieces: int,
    weights: Weights,
) -> tuple[Tensor, ...]:
    """`chunk_loss` of two passes: their cross-entropies and divergences KL(first || second) and KL(second || first),
    each times its weight. The plain loss is that of the first pass."""
    a, b = _exact(first_NV, pieces).log_softmax(-1), _exact(second_NV, pieces).log_softmax(-1)
    p, q = a.exp(), b.exp()
    (nll, loss_a), (_, loss_b) = _smoothed(a, targets_N, smoothing), _smoothed(b, targets_N, smoothing)
    gap = a - b
    forth, back = (p * gap).sum(-1), -(q * gap).sum(-1)
    own_a, own_b, kl_forth, kl_back = weights
    loss = own_a * loss_a + own_b * loss_b + kl_forth * forth + kl_back * back
    wanted = _wanted(a, targets_N, smoothing)
    # The gradient of KL(p || q) by the logits of p is p * (log p - log q - KL), by those of q it is q - p.
    grad_a = own_a * (p - wanted) + kl_forth * p * (gap - forth[:, None]) + kl_back * (p - q)
    grad_b = own_b * (q - wanted) + kl_back * q * (-gap - back[:, None]) + kl_forth * (q - p)
    rest = scales_N, torch.zeros_like(scales_N)
    gradients = _padded(grad_a, first_NV), *rest, _padded(grad_b, second_NV), *rest
    return (loss * scales_N).sum(), (nll * (scales_N != 0)).sum(), *gradients


def _exact(logits_NV: Tensor, pieces: int) -> Tensor:
    return logits_NV[:, :pieces].to(torch.promote_types(logits_NV.dtype, torch.float32))


def _smoothed(log_probs_NV: Tensor, targets_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Plain and smoothed losses, of each token."""
    nll = -log_probs_NV.gather(1, targets_N[:, None])[:, 0]
    return nll, (1 - smoothing) * nll - smoothing * log_probs_NV.mean(-1)


def _wanted(log_probs_NV: Tensor, targets_N: Tensor, smoothing: float) -> Tensor:
    """The smoothed target distribution."""
    pieces = log_probs_NV.shape[1]
    at_target = torch.arange(pieces, device=targets_N.device)[None, :] == targets_N[:, None]
    return at_target.to(log_probs_NV.dtype) * (1 - smoothing) + smoothing / pieces


def _padded(gradient_NV: Tensor, logits_NV: Tensor) -> Tensor:
    return F.pad(gradient_NV, (0, logits_NV.shape[1] - gradient_NV.shape[1])).to(logits_NV.dtype)


class _Compiled:
    """A chunk's loss under torch.compile, which fuses its passes over the logits; as it stands where that fails."""

    def __init__(self, function: Chunk) -> None:
        self.plain = function
        self.run: Chunk = torch.compile(function, dynamic=False)
        self.works = False

    def __call__(self, *arguments: Any, **more: Any) -> tuple[Tensor, ...]:
        if self.works:
            return self.run(*arguments, **more)
        try:
            result = self.run(*arguments, **more)
            self.works = True
            return result
        except Exception as error:  # the compiler's own errors are of many kinds, and none is a reason to stop
            reason = str(error).strip().splitlines() or [type(error).__name__]
            say(f"the loss runs uncompiled, slower: {reason[0]}")
            self.run, self.works = self.plain, True
            return self.plain(*arguments, **more)


OBJECTIVES: Mapping[str, Callable[..., Objective]] = {
    "cross_entropy": CrossEntropy,
    "rdrop": RDrop,
    "simcut": SimCut,
}
