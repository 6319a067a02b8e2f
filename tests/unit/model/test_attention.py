"""Attention: what its weights are, what masks do to them, and that watching changes nothing."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nmt.checkpoint import build_model
from nmt.config import Model
from nmt.model.attention import SelfAttention, attend, attend_plainly, causal_mask
from nmt.model.position import Position
from nmt.model.transformer import watch


def heads(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_weights_are_a_softmax_of_scaled_products():
    """Equation 1 of the paper, written as a loop over queries."""
    q, k, v = heads(1, 1, 3, 4, seed=1), heads(1, 1, 5, 4, seed=2), heads(1, 1, 5, 4, seed=3)
    out, weights = attend_plainly(q, k, v, None, causal=False, rate=0.0)
    for t in range(3):
        scores = [math.exp(float(q[0, 0, t] @ k[0, 0, s]) / math.sqrt(4)) for s in range(5)]
        expected = torch.tensor([score / sum(scores) for score in scores])
        torch.testing.assert_close(weights[0, 0, t], expected)
        torch.testing.assert_close(out[0, 0, t], expected @ v[0, 0])


@pytest.mark.parametrize("graph", [True, False], ids=["training", "inference"])
def test_equal_scores_give_the_mean_of_the_visible_values(graph: bool):
    """With a zero query every visible key weighs the same, on both paths of `attend`."""
    v = heads(2, 1, 4, 3)
    zero = torch.zeros(2, 1, 4, 3)
    mask = torch.tensor([[True, True, False, False], [True, True, True, True]])[:, None, None, :]
    with torch.set_grad_enabled(graph):
        masked = attend(zero, zero, v, mask, causal=False, rate=0.0)
        causal = attend(zero, zero, v, None, causal=True, rate=0.0)
    torch.testing.assert_close(masked[0, 0], v[0, 0, :2].mean(0).expand(4, 3))
    torch.testing.assert_close(masked[1, 0], v[1, 0].mean(0).expand(4, 3))
    for t in range(4):
        torch.testing.assert_close(causal[:, 0, t], v[:, 0, : t + 1].mean(1))


def test_a_masked_key_weighs_exactly_nothing():
    """However large its score: the fill is minus infinity, not a small finite number."""
    q, v = torch.ones(1, 1, 2, 4), heads(1, 1, 3, 4)
    k = torch.tensor([1.0, 1.0, 1e4])[None, None, :, None].expand(1, 1, 3, 4)
    mask = torch.tensor([True, True, False])[None, None, None, :]
    _, weights = attend_plainly(q, k, v, mask, causal=False, rate=0.0)
    assert (weights[..., 2] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 1, 2))


def test_causal_weights_are_zero_above_the_diagonal():
    q, k, v = (heads(2, 3, 6, 4, seed=s) for s in (1, 2, 3))
    _, weights = attend_plainly(q, k, v, None, causal=True, rate=0.0)
    assert (weights.triu(1) == 0).all()
    assert (weights.tril() > 0).sum() == 2 * 3 * (6 * 7 // 2)
    assert causal_mask(weights).tolist() == [[s <= t for s in range(6)] for t in range(6)]


def test_dropout_keeps_the_mean_and_leaves_the_returned_weights_alone():
    q, k = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 4096, 2)
    v = torch.ones(1, 1, 4096, 1)
    torch.manual_seed(1)
    out, weights = attend_plainly(q, k, v, None, causal=False, rate=0.5)
    assert (weights == 1 / 4096).all()
    assert out.item() != 1.0
    assert out.item() == pytest.approx(1.0, abs=0.1)


class Slope(Position):
    """Keys further back score less: a position that enters through `bias`."""

    def bias(self, query_start: int, queries: int, keys: int) -> Tensor:
        distance = torch.arange(query_start, query_start + queries)[:, None] - torch.arange(keys)[None, :]
        return -0.5 * distance.abs().float()


@pytest.mark.parametrize("graph", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("causal", [True, False])
def test_a_bias_joins_the_masks(causal: bool, graph: bool):
    """The bias is added to the scores, and neither the causal nor the key mask is lost over it."""
    torch.manual_seed(1)
    attention, x = SelfAttention(8, 2, 0.0), heads(2, 5, 8)
    keys = None if causal else torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with torch.set_grad_enabled(graph):
        out = attention(x, Slope(8), keys, causal)
    q, k, v = attention.project(x, Slope(8), 0)
    scores = q @ k.transpose(-1, -2) / 2 + Slope(8).bias(0, 5, 5)
    visible = causal_mask(scores) if causal else keys[:, None, None, :]
    weights = scores.masked_fill(~visible, -math.inf).softmax(-1)
    torch.testing.assert_close(out, attention.out((weights @ v).transpose(1, 2).flatten(2)))


def test_watching_collects_weights_and_inputs_and_changes_nothing():
    torch.manual_seed(1)
    model = build_model(
        Model(dim=16, heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=2, dropout=0.0), 20, 20
    ).eval()
    src, tgt = torch.randint(4, 20, (3, 7)), torch.randint(4, 20, (3, 5))
    with torch.no_grad():
        before = model(src, tgt)
        with watch(model) as seen:
            during = model(src, tgt)
        after = model(src, tgt)
    torch.testing.assert_close(during, before, rtol=0, atol=1e-6)
    assert torch.equal(before, after)
    shapes = {name: [tuple(x.shape) for x in found] for name, found in seen.items()}
    assert shapes == {
        "encoder.0.self_attention": [(3, 2, 7, 7)],
        "encoder.0.ffn": [(3, 7, 16)],
        **{f"decoder.{i}.self_attention": [(3, 2, 5, 5)] for i in range(2)},
        **{f"decoder.{i}.src_attention": [(3, 2, 5, 7)] for i in range(2)},
        **{f"decoder.{i}.ffn": [(3, 5, 16)] for i in range(2)},
    }
    for name, found in seen.items():
        if "attention" in name:
            torch.testing.assert_close(found[0].sum(-1), torch.ones(found[0].shape[:-1]))
    # Outside of the block nobody watches: another call adds nothing.
    model(src, tgt)
    assert all(len(found) == 1 for found in seen.values())
