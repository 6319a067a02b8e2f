"""The fused loss: smoothing by hand, plain likelihood beside it, sums that add up, chunks that do not show."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from nmt.checkpoint import build_model
from nmt.config import Model
from nmt.data.batches import Batch, collate
from nmt.loss import CHUNK, CrossEntropy, projection_loss

CPU = torch.device("cpu")


def small():
    torch.manual_seed(1)
    return build_model(Model(dim=16, heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=1, dropout=0.0), 20, 20)


def batch(*lengths: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    rows = [np.append(rng.integers(4, 20, n - 1), 3) for n in lengths]
    return collate(rows, rows, (max(lengths), max(lengths)), CPU)


def test_smoothing_against_a_hand_computation():
    """Case 28: three pieces with the logits 2, 1, 0; target 0; e = 0.3, so the target gets 0.7 + 0.1."""
    logits = torch.tensor([[2.0, 1.0, 0.0]])
    total = math.log(math.exp(2) + math.exp(1) + 1)
    expected = 0.8 * (total - 2) + 0.1 * (total - 1) + 0.1 * total
    loss, nll = projection_loss([logits], torch.eye(3), torch.tensor([0]), smoothing=0.3, scale=1.0)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    assert nll.item() == pytest.approx(total - 2, rel=1e-6)


def test_without_smoothing_loss_and_likelihood_are_one():
    states, weight = torch.randn(7, 4), torch.randn(9, 4)
    loss, nll = projection_loss([states], weight, torch.arange(7), smoothing=0.0, scale=0.25)
    assert loss.item() == pytest.approx(0.25 * nll.item(), rel=1e-6)


@pytest.mark.parametrize("count", [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_the_rest_of_the_last_chunk_counts_for_nothing(count: int):
    torch.manual_seed(count)
    states, weight, targets = torch.randn(count, 8), torch.randn(11, 8), torch.randint(0, 11, (count,))
    loss, nll = projection_loss([states], weight, targets, smoothing=0.1, scale=1 / count)
    logits = states @ weight.T
    expected = F.cross_entropy(logits, targets, label_smoothing=0.1)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert nll.item() == pytest.approx(F.cross_entropy(logits, targets, reduction="sum").item(), rel=1e-5)


def test_large_logits_do_not_overflow():
    states = torch.full((2, 4), 300.0, requires_grad=True)
    weight = torch.tensor([[300.0] * 4, [-300.0] * 4], requires_grad=True)
    loss, _ = projection_loss([states], weight, torch.tensor([0, 1]), smoothing=0.1, scale=1.0)
    loss.backward()
    assert loss.isfinite() and states.grad.isfinite().all() and weight.grad.isfinite().all()


def test_gradients_follow_a_factor_on_the_loss():
    """Whoever multiplies the loss (a scaler, a sum of objectives) gets multiplied gradients."""
    torch.manual_seed(1)
    states, weight = torch.randn(5, 4, requires_grad=True), torch.randn(6, 4, requires_grad=True)
    targets = torch.tensor([0, 1, 2, 3, 4])
    loss, _ = projection_loss([states], weight, targets, 0.1, 0.2)
    once = torch.autograd.grad(loss, (states, weight))
    loss, _ = projection_loss([states], weight, targets, 0.1, 0.2)
    thrice = torch.autograd.grad(3 * loss, (states, weight))
    for one, three in zip(once, thrice, strict=True):
        torch.testing.assert_close(three, 3 * one)


def test_half_precision_states_give_fp32_gradients_of_the_weight():
    states = torch.randn(5, 4, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(6, 4, requires_grad=True)
    loss, nll = projection_loss([states], weight, torch.zeros(5, dtype=torch.long), 0.1, 0.2)
    loss.backward()
    assert (loss.dtype, nll.dtype) == (torch.float32, torch.float32)
    assert (states.grad.dtype, weight.grad.dtype) == (torch.bfloat16, torch.float32)


def test_validation_needs_no_graph():
    with torch.no_grad():
        loss, nll = projection_loss([torch.randn(3, 4)], torch.randn(5, 4), torch.tensor([0, 1, 2]), 0.1, 1.0)
    assert loss.isfinite() and nll.isfinite() and not loss.requires_grad


def test_an_update_in_pieces_is_the_update_at_once():
    """Case 27 for the objective: micro-batches of unequal lengths, all divided by the tokens of the whole update."""
    rng = np.random.default_rng(1)
    rows = [np.append(rng.integers(4, 20, n), 3) for n in (1, 9, 3, 6, 2)]
    whole = collate(rows, rows, (10, 10), CPU)
    parts = [collate(rows[:1], rows[:1], (2, 2), CPU), collate(rows[1:], rows[1:], (10, 12), CPU)]
    objective = CrossEntropy(0.1, compiled=False)
    gradients, losses = [], []
    for batches in ([whole], parts):
        model = small()
        sums = [objective(model, b, 1 / whole.tokens) for b in batches]
        for part in sums:
            part.loss.backward()
        assert sum(part.tokens for part in sums) == sum(map(len, rows))
        losses.append((sum(part.loss.item() for part in sums), sum(part.nll.item() for part in sums)))
        gradients.append([p.grad for p in model.parameters()])
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_padding_is_no_part_of_the_loss():
    model, objective = small(), CrossEntropy(0.1, compiled=False)
    rng = np.random.default_rng(1)
    row = [np.append(rng.integers(4, 20, 5), 3)]
    tight, wide = collate(row, row, (6, 6), CPU), collate(row, row, (32, 48), CPU)
    assert objective(model, tight, 1).loss.item() == pytest.approx(objective(model, wide, 1).loss.item(), abs=1e-5)
