"""R-Drop, SimCut, the kinds of dropout, and averages of weights, against small implementations from their equations."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt import checkpoint, optim, runtime
from nmt.config import Model
from nmt.data.batches import Batch, collate
from nmt.loss import CrossEntropy, RDrop, SimCut
from nmt.model.transformer import Transformer
from nmt.packing import Packed
from nmt.run import Run

CPU, VOCAB, UNK = torch.device("cpu"), 30, 1
KINDS = ("dropout", "attention_dropout", "activation_dropout", "word_dropout")
Rows = list[list[int]]


def model_of(**settings: Any) -> Transformer:
    torch.manual_seed(1)
    sizes = {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}
    model = checkpoint.build_model(Model(**{**sizes, **settings}), VOCAB, VOCAB).double()
    model.dtype = torch.float64
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)  # so that predictions are far from even, and divergences from 0
    return model.train()


def rows_of(count: int, seed: int, longest: int = 9) -> Rows:
    rng = np.random.default_rng(seed)
    return [[*rng.integers(4, VOCAB, rng.integers(1, longest)).tolist(), 3] for _ in range(count)]


def batch_of(src: Rows, tgt: Rows) -> Batch:
    sides = [[np.array(row, np.int32) for row in rows] for rows in (src, tgt)]
    return collate(*sides, (12, 14), CPU)


SRC, TGT = rows_of(5, seed=1), rows_of(5, seed=2)
TOKENS = sum(map(len, TGT))


class Spy:
    """A model that remembers what it was asked and what it answered."""

    def __init__(self, model: Transformer) -> None:
        self.model, self.projection = model, model.projection
        self.masks: list[tuple[Tensor, Tensor]] = []
        self.states: list[Tensor] = []

    def __call__(self, src: Tensor, tgt: Tensor, src_kept: Tensor, tgt_kept: Tensor, *packed: Packed) -> Tensor:
        self.masks += [(src_kept, tgt_kept)]
        states = self.model(src, tgt, src_kept, tgt_kept, *packed)
        self.states.append(packed[1].pad(states))
        return states

    def passes(self) -> tuple[Tensor, Tensor]:
        """The states of the first and of the second pass over the batch."""
        first, second = torch.cat(self.states).chunk(2)
        return first, second


# --- the equations, token by token ---


def token_losses(model: Transformer, first: Tensor, second: Tensor, tgt: Rows, smoothing: float) -> dict[str, Tensor]:
    """Sums over the real target tokens: cross-entropies of both passes, and divergences forth and back."""
    sums = dict.fromkeys(("first", "second", "forth", "back"), torch.zeros((), dtype=torch.float64))
    for i, row in enumerate(tgt):
        for t, target in enumerate(row):
            p, q = (torch.softmax(model.projection.weight @ states[i, t], 0) for states in (first, second))
            for key, distribution in (("first", p), ("second", q)):
                logs = distribution.log()
                sums[key] = sums[key] - (1 - smoothing) * logs[target] - smoothing * logs.mean()
            sums["forth"] = sums["forth"] + (p * (p.log() - q.log())).sum()
            sums["back"] = sums["back"] + (q * (q.log() - p.log())).sum()
    return sums


def rdrop(sums: dict[str, Tensor], alpha: float) -> Tensor:
    """Liang et al. (2021): CE1 + CE2 + alpha / 2 (KL(1 || 2) + KL(2 || 1)); halved, to be per token."""
    return (sums["first"] + sums["second"] + alpha * (sums["forth"] + sums["back"]) / 2) / 2


def simcut(sums: dict[str, Tensor], alpha: float) -> Tensor:
    """Gao et al. (2022): CE + alpha KL(full || cut)."""
    return sums["first"] + alpha * sums["forth"]


OBJECTIVES = {"rdrop": (RDrop, rdrop), "simcut": (SimCut, simcut)}
DROPOUTS = {
    "no dropout": {},
    "dropout": {"dropout": 0.2},
    "all kinds": dict.fromkeys(KINDS, 0.2),
}


@pytest.mark.parametrize("alpha", [0.0, 0.7, 5.0])
@pytest.mark.parametrize("dropout", DROPOUTS)
@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_two_pass_objective_is_its_equation(name: str, dropout: str, alpha: float):
    """The loss and the gradient of every parameter, which goes through both passes."""
    make, equation = OBJECTIVES[name]
    model = model_of(**DROPOUTS[dropout])
    spy, batch = Spy(model), batch_of(SRC, TGT)
    torch.manual_seed(3)
    found = make(0.1, False, alpha=alpha)(spy, batch, 1 / TOKENS)
    sums = token_losses(model, *spy.passes(), TGT, 0.1)
    expected = equation(sums, alpha) / TOKENS
    torch.testing.assert_close(found.loss, expected, rtol=0, atol=1e-10)
    nll = token_losses(model, *spy.passes(), TGT, 0.0)["first"]
    torch.testing.assert_close(found.nll, nll.detach(), rtol=1e-10, atol=0)
    assert found.tokens == TOKENS
    parameters = list(model.parameters())
    ours = torch.autograd.grad(found.loss, parameters, retain_graph=True)
    theirs = torch.autograd.grad(expected, parameters)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_passes_of_rdrop_differ_by_every_kind_of_dropout(kind: str):
    model = model_of(**{kind: 0.3})
    spy = Spy(model)
    RDrop(0.1, False)(spy, batch_of(SRC, TGT), 1.0)
    first, second = spy.passes()
    assert all((first[i, : len(row)] - second[i, : len(row)]).abs().max() > 1e-3 for i, row in enumerate(TGT))


def test_without_dropout_rdrop_is_cross_entropy():
    model, batch = model_of(), batch_of(SRC, TGT)
    plain, twice = (o(model, batch, 1 / TOKENS) for o in (CrossEntropy(0.1, False), RDrop(0.1, False)))
    torch.testing.assert_close(twice.loss, plain.loss, rtol=0, atol=1e-12)
    torch.testing.assert_close(twice.nll, plain.nll, rtol=0, atol=1e-10)


def test_simcut_compares_the_sentence_with_one_whose_tokens_are_cut():
    """Embeddings of another piece, which are zero, stand for the tokens that the masks leave out."""
    model = model_of(tie="none")
    with torch.no_grad():
        model.src_embedding.weight[UNK], model.tgt_embedding.weight[UNK] = 0, 0
    spy, batch = Spy(model), batch_of(SRC, TGT)
    torch.manual_seed(4)
    found = SimCut(0.1, False, alpha=2.0, rate=0.4)(spy, batch, 1 / TOKENS)
    [(src_kept, tgt_kept)] = spy.masks
    assert src_kept[:5].all() and tgt_kept[:5].all()  # the first pass sees everything
    cut_src = batch.src_BS.masked_fill(~src_kept[5:] & (batch.src_BS != 0), UNK)
    cut_tgt = batch.tgt_in_BT.masked_fill(~tgt_kept[5:], UNK)
    assert (cut_src == UNK).any() and (cut_tgt == UNK).any()
    first, second = model(batch.src_BS, batch.tgt_in_BT), model(cut_src, cut_tgt)
    expected = simcut(token_losses(model, first, second, TGT, 0.1), 2.0) / TOKENS
    torch.testing.assert_close(found.loss, expected, rtol=0, atol=1e-10)
    parameters = list(model.parameters())
    gradients = [torch.autograd.grad(loss, parameters) for loss in (found.loss, expected)]
    for parameter, ours, theirs in zip(parameters, *gradients, strict=True):
        if parameter is model.src_embedding.weight or parameter is model.tgt_embedding.weight:
            assert (ours[UNK] == 0).all()  # what was cut learns nothing
            ours, theirs = (torch.cat([g[:UNK], g[UNK + 1 :]]) for g in (ours, theirs))
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.5])
def test_simcut_cuts_its_share_of_both_sides(rate: float):
    src, tgt = rows_of(200, seed=3, longest=12), rows_of(200, seed=4, longest=14)
    spy = Spy(model_of())
    torch.manual_seed(0)
    SimCut(0.1, False, rate=rate)(spy, batch_of(src, tgt), 1.0)
    [masks] = spy.masks
    for mask, longest in zip(masks, (12, 14), strict=True):
        assert mask[:200].all()
        assert 1 - mask[200:, :longest].double().mean().item() == pytest.approx(rate, abs=0.03 * math.sqrt(rate))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_two_pass_objectives_compose_with_word_dropout_and_accumulation(name: str):
    """Three micro-batches of unequal length, each with random numbers of its own that can be drawn again: the gradient
    is that of the sum of their equations over all tokens, and the same bits the second time."""
    make, equation = OBJECTIVES[name]
    model = model_of(**dict.fromkeys(KINDS, 0.2))
    objective, parts = make(0.1, False), [slice(0, 1), slice(1, 3), slice(3, 5)]
    parameters = list(model.parameters())
    total, gradients = torch.zeros(()), []
    for attempt in range(2):
        model.zero_grad()
        for index, part in enumerate(parts):
            spy = Spy(model)
            runtime.seed_step(1, 7, index)
            objective(spy, batch_of(SRC[part], TGT[part]), 1 / TOKENS).loss.backward(retain_graph=True)
            if attempt == 0:
                alpha = {"rdrop": 5.0, "simcut": 3.0}[name]
                total = total + equation(token_losses(model, *spy.passes(), TGT[part], 0.1), alpha) / TOKENS
        gradients.append([p.grad.clone() for p in parameters])
    for one, again, expected in zip(*gradients, torch.autograd.grad(total, parameters), strict=True):
        assert torch.equal(one, again)
        torch.testing.assert_close(one, expected, rtol=0, atol=1e-9)


# --- dropout, by what is left of an identity ---


def kept_share(found: Tensor, whole: Tensor, rate: float) -> float:
    """Every number is 0 or the whole scaled so that the mean stays; returns the share of those that are not 0."""
    true_rate = round(256 * rate) / 256
    kept = found != 0
    torch.testing.assert_close(found[kept], whole.expand_as(found)[kept] / (1 - true_rate))
    return kept.double().mean().item()


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_attention_dropout_drops_weights(rate: float):
    """With values that pick out one key each, what attention returns is its weights."""
    model = model_of(attention_dropout=rate, dim=128, heads=2)
    torch.manual_seed(6)
    q, k, values = torch.randn(4, 2, 50, 64).double(), torch.randn(4, 2, 64, 64).double(), torch.eye(64).double()
    v = values.expand(4, 2, 64, 64)
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(64), -1)
    layer = model.decoder[0]
    for attention in (model.encoder[0].self_attention, layer.self_attention, layer.src_attention):
        attention.out = nn.Identity()
        found = attention.merge(q, k, v, None).view(4, 50, 2, 64).transpose(1, 2)
        assert kept_share(found, weights, rate) == pytest.approx(1 - rate, abs=0.02)
        attention.eval()
        torch.testing.assert_close(attention.merge(q, k, v, None).view(4, 50, 2, 64).transpose(1, 2), weights)


@pytest.mark.parametrize("activation", ["relu", "swiglu"])
def test_activation_dropout_drops_hidden_features(activation: str):
    model = model_of(activation_dropout=0.3, activation=activation, ffn_dim=64)
    x = torch.randn(40, 10, 16).double()
    for layer in (model.encoder[0], model.decoder[1]):
        layer.ffn.outer = nn.Identity()
        layer.ffn.inner.weight.data.abs_()
        found, whole = layer.ffn(x.abs()), layer.ffn.eval()(x.abs())
        assert kept_share(found, whole, 0.3) == pytest.approx(0.7, abs=0.02)


def test_dropout_of_embeddings_and_of_sublayers():
    model = model_of(dropout=0.3, norm_first=False)
    seen = inputs(model)
    ids = torch.randint(4, VOCAB, (40, 12))
    model(ids, ids)
    for side in ("src", "tgt"):
        embedding, position = getattr(model, f"{side}_embedding"), getattr(model, f"{side}_position")
        whole = position.embed(embedding(ids) * 4, 0)
        assert kept_share(seen[side], whole, 0.3) == pytest.approx(0.7, abs=0.02)
    residual, x = model.decoder[0].src_residual, torch.randn(40, 12, 16).double()
    residual.norm = nn.Identity()
    assert kept_share(residual(torch.zeros_like(x), lambda _: x), x, 0.3) == pytest.approx(0.7, abs=0.02)


def inputs(model: Transformer) -> dict[str, Tensor]:
    """What the first layers of encoder and decoder are given, filled by the next pass."""
    seen: dict[str, Tensor] = {}
    for side, layers in (("src", model.encoder), ("tgt", model.decoder)):
        layers[0].register_forward_pre_hook(lambda _, args, side=side: seen.update({side: args[0]}))
    return seen


def test_word_dropout_zeroes_whole_embeddings_of_both_sides():
    """A token keeps its place and loses its embedding; the others stay as they are, and all do in evaluation."""
    model = model_of(word_dropout=0.3, tie="none")
    seen, ids = inputs(model), torch.randint(4, VOCAB, (60, 12))
    for share in (0.3, 0.0):
        model(ids, ids)
        for side in ("src", "tgt"):
            embedding, position = getattr(model, f"{side}_embedding"), getattr(model, f"{side}_position")
            bare = seen[side] - position.embed(torch.zeros(60, 12, 16).double(), 0)
            dropped = bare.abs().amax(-1) < 1e-12
            torch.testing.assert_close(bare[~dropped], 4 * embedding(ids)[~dropped])
            assert dropped.double().mean().item() == pytest.approx(share, abs=0.05)
        model.eval()


# --- averages of weights ---


def test_moving_averages_follow_their_recurrence():
    """a <- d a + (1 - d) w after each update, with d growing up to its limit as (1 + t) / (10 + t)."""
    torch.manual_seed(1)
    model, decay = nn.Linear(3, 2), 0.6
    trained = list(model.parameters())
    averages = optim.averages(model, decay)
    expected = [p.tolist() for p in map(torch.flatten, trained)]
    for step in range(1, 12):
        with torch.no_grad():
            for parameter in trained:
                parameter.add_(torch.randn_like(parameter))
        optim.follow(averages, trained, decay, step)
        d = min(decay, (1 + step) / (10 + step))
        for i, parameter in enumerate(trained):
            pairs = zip(expected[i], parameter.flatten().tolist(), strict=True)
            expected[i] = [d * a + (1 - d) * w for a, w in pairs]
    for average, numbers in zip(averages, expected, strict=True):
        assert average.flatten().tolist() == pytest.approx(numbers, rel=1e-5)


def test_an_average_of_snapshots_is_their_mean(tmp_path: Path):
    run, model = Run(str(tmp_path)), model_of().float()
    kept: dict[str, list[np.ndarray]] = {}
    for step in (10, 20, 30):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
        checkpoint.save_snapshot(run, step, model)
        for name, parameter in model.named_parameters():
            kept.setdefault(name, []).append(parameter.detach().double().numpy().copy())
    found, _ = checkpoint.average(run, [10, 20, 30], print)
    assert found.keys() == kept.keys()
    for name, snapshots in kept.items():
        torch.testing.assert_close(found[name], torch.from_numpy(sum(snapshots) / 3).float(), rtol=1e-6, atol=1e-7)
