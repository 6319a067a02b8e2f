"""The fused loss against plain autograd in fp64: values to 1e-10, gradients to 1e-9, in every form that it has."""

from __future__ import annotations

import shutil
from functools import partial

import pytest
import torch
from torch import Tensor

from nmt.loss import CHUNK, CrossEntropy, RDrop, chunk_loss, pair_loss, projection_loss

PIECES, D = 50, 8
Weights = tuple[float, float, float, float]


# --- the equations, over a table of logits that is held whole ---


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Summed over tokens; the target distribution is 1 - e on the right piece plus e / V on each."""
    pieces = logits.shape[1]
    wanted = torch.full_like(logits, smoothing / pieces)
    wanted[torch.arange(len(targets)), targets] += 1 - smoothing
    return -(wanted * logits.log_softmax(-1)).sum()


def divergence(p_logits: Tensor, q_logits: Tensor) -> Tensor:
    """KL(p || q), summed over tokens."""
    p, q = p_logits.softmax(-1), q_logits.softmax(-1)
    return (p * (p / q).log()).sum()


def plain(streams: list[Tensor], weight: Tensor, targets: Tensor, smoothing: float, weights: Weights) -> Tensor:
    logits = [states @ weight.T for states in streams]
    loss = weights[0] * cross_entropy(logits[0], targets, smoothing)
    if len(logits) == 2:
        loss = loss + weights[1] * cross_entropy(logits[1], targets, smoothing)
        loss = loss + weights[2] * divergence(*logits) + weights[3] * divergence(logits[1], logits[0])
    return loss


# --- a tiny model around it, so that the gradient of a tied projection comes from two places ---


class Tiny:
    """Embeddings, one layer for each stream, and a projection that may be the embeddings."""

    def __init__(self, count: int, streams: int, tied: bool) -> None:
        torch.manual_seed(count)
        double = partial(torch.randn, dtype=torch.float64, requires_grad=True)
        self.embeddings = double(PIECES, D)
        self.layers = [double(D, D) for _ in range(streams)]
        self.projection = self.embeddings if tied else double(PIECES, D)
        self.ids, self.targets = torch.randint(0, PIECES, (2, count))
        self.parameters = [self.embeddings, *self.layers, *([] if tied else [self.projection])]

    def states(self) -> list[Tensor]:
        return [(self.embeddings[self.ids] @ layer).tanh() for layer in self.layers]

    def gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(loss, self.parameters)


ONE: Weights = (1.0, 0.0, 0.0, 0.0)
FORMS: dict[str, tuple[int, Weights]] = {
    "one stream": (1, ONE),
    "R-Drop": (2, (0.5, 0.5, 1.25, 1.25)),
    "SimCut": (2, (1.0, 0.0, 3.0, 0.0)),
    "any weights": (2, (0.3, 0.9, 1.7, 0.4)),
}


@pytest.mark.parametrize("count", [1, CHUNK, CHUNK + 1, 2 * CHUNK + 77])
@pytest.mark.parametrize("multiple", [1, 64], ids=["as it is", "padded"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("form", FORMS)
def test_the_fused_loss_is_the_plain_one(form: str, tied: bool, multiple: int, count: int):
    streams, weights = FORMS[form]
    tiny, scale, smoothing = Tiny(count, streams, tied), 1 / count, 0.1
    chunk = None if streams == 1 else partial(pair_loss, weights=weights)
    loss, nll = projection_loss(
        tiny.states(), tiny.projection, tiny.targets, smoothing, scale, chunk, multiple=multiple
    )
    expected = scale * plain(tiny.states(), tiny.projection, tiny.targets, smoothing, weights)
    assert loss.dtype == torch.float64
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    unsmoothed = cross_entropy(tiny.states()[0] @ tiny.projection.T, tiny.targets, 0.0)
    torch.testing.assert_close(nll / count, unsmoothed.detach() / count, rtol=0, atol=1e-10)
    assert not nll.requires_grad
    for ours, theirs in zip(tiny.gradients(loss), tiny.gradients(expected), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_fused_loss_is_torchs_cross_entropy(smoothing: float):
    tiny = Tiny(700, 1, tied=False)
    loss, nll = projection_loss(tiny.states(), tiny.projection, tiny.targets, smoothing, 1 / 700)
    logits = tiny.states()[0] @ tiny.projection.T
    expected = torch.nn.functional.cross_entropy(logits, tiny.targets, label_smoothing=smoothing)
    total = torch.nn.functional.cross_entropy(logits, tiny.targets, reduction="sum")
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    torch.testing.assert_close(nll, total.detach(), rtol=1e-12, atol=0)
    for ours, theirs in zip(tiny.gradients(loss), tiny.gradients(expected), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_padding_get_no_share_of_the_distribution(form: str):
    """Every real logit lies far below the 0 of a padding column; in bf16, too, its weight must be nothing."""
    streams, weights = FORMS[form]
    chunk = None if streams == 1 else partial(pair_loss, weights=weights)
    torch.manual_seed(1)
    states = [torch.rand(9, D).bfloat16().requires_grad_() for _ in range(streams)]
    weight, targets = (-20 - torch.rand(PIECES, D)).requires_grad_(), torch.arange(9)
    results = []
    for multiple in (1, 64):
        loss, _ = projection_loss(states, weight, targets, 0.1, 1.0, chunk, multiple=multiple)
        results.append([loss, *torch.autograd.grad(loss, [weight, *states])])
    for unpadded, padded in zip(*results, strict=True):
        torch.testing.assert_close(padded, unpadded, rtol=1e-2, atol=1e-2)


# --- compiled ---


@pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning")
@pytest.mark.skipif(not shutil.which("g++") and not shutil.which("c++"), reason="needs a C++ compiler")
@pytest.mark.parametrize("form", ["one stream", "R-Drop"])
def test_the_compiled_loss_is_the_plain_one(form: str, capsys: pytest.CaptureFixture[str]):
    """In fp32, with padding columns and a last chunk that is not full; it is compiled indeed, or would say so."""
    streams, weights = FORMS[form]
    compiled = (CrossEntropy(0.1, True) if streams == 1 else RDrop(0.1, True)).chunk
    uncompiled = chunk_loss if streams == 1 else pair_loss
    more = {} if streams == 1 else {"weights": weights}
    tiny = Tiny(CHUNK + 30, streams, tied=False)
    results = []
    for chunk in (compiled, uncompiled):
        states = [s.detach().float().requires_grad_() for s in tiny.states()]
        weight = tiny.projection.detach().float().requires_grad_()
        loss, nll = projection_loss(states, weight, tiny.targets, 0.1, 0.01, partial(chunk, **more), multiple=64)
        results.append([loss.detach(), nll, *torch.autograd.grad(loss, [weight, *states])])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert "uncompiled" not in capsys.readouterr().err


def test_where_the_compiler_fails_the_loss_runs_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """It says so once, in one line, and the numbers are those of the plain loss."""

    def no_compiler(*arguments: object, **more: object) -> None:
        raise RuntimeError("no compiler here\nand many lines more")

    monkeypatch.setattr(torch, "compile", lambda function, **options: no_compiler)
    objective, tiny = CrossEntropy(0.1, True), Tiny(5, 1, tied=False)
    for _ in range(3):
        found = projection_loss(tiny.states(), tiny.projection, tiny.targets, 0.1, 1.0, objective.chunk)
    expected = projection_loss(tiny.states(), tiny.projection, tiny.targets, 0.1, 1.0)
    assert torch.equal(found[0], expected[0])
    assert capsys.readouterr().err == "the loss runs uncompiled, slower: no compiler here\n"
