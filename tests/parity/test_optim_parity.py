"""Optimisers against those of torch, used directly, with the parameters of a model sorted by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nmt import optim
from nmt.checkpoint import build_model
from nmt.choice import Choice
from nmt.config import Model
from nmt.data.batches import Batch, collate
from nmt.loss import CrossEntropy
from nmt.model.transformer import Transformer

VOCAB = 20
FACTORS = (0.25, 1.0, 0.5, 0.5, 0.1, 1.0)  # of a schedule


def model_of() -> Transformer:
    torch.manual_seed(1)
    sizes = {"dim": 8, "heads": 2, "ffn_dim": 16, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    model = build_model(Model(**sizes, tie="none", position=Choice("learned", {"limit": 16})), VOCAB, VOCAB).double()
    model.dtype = torch.float64  # or Adam would make much of the rounding in gradients that are 0, as of key biases
    return model


def batch(seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    sides = [[np.append(rng.integers(4, VOCAB, 5), 3) for _ in range(4)] for _ in range(2)]
    return collate(*sides, (6, 6), torch.device("cpu"))


Step = Callable[[float], None]


def trained(make: Callable[[dict[str, nn.Parameter]], Step]) -> dict[str, nn.Parameter]:
    """The weights after some updates at factors of the peak rates."""
    model = model_of()
    named = dict(model.named_parameters())
    step = make(named)
    for seed, factor in enumerate(FACTORS):
        model.zero_grad()
        pairs = batch(seed)
        CrossEntropy(0.1, compiled=False)(model, pairs, 1 / pairs.tokens).loss.backward()
        step(factor)
    return named


def stepping(*optimizers: torch.optim.Optimizer) -> Step:
    """Sets each rate as a schedule of torch would."""
    peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in optimizers]

    def step(factor: float) -> None:
        for optimizer, rates in zip(optimizers, peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = peak * factor
            optimizer.step()

    return step


def assert_same(ours: dict[str, nn.Parameter], theirs: dict[str, nn.Parameter]) -> None:
    start = dict(model_of().named_parameters())
    for name, parameter in ours.items():
        torch.testing.assert_close(parameter, theirs[name], rtol=0, atol=1e-9, msg=name)
        assert not torch.equal(parameter, start[name]), name


INNER = ("self_attention.qkv", "self_attention.out", "src_attention.q", "src_attention.kv", "src_attention.out")
INNER_MATRICES = [f"encoder.0.{part}.weight" for part in (*INNER[:2], "ffn.inner", "ffn.outer")]
INNER_MATRICES += [f"decoder.0.{part}.weight" for part in (*INNER, "ffn.inner", "ffn.outer")]
TABLES = ["src_embedding.weight", "tgt_embedding.weight", "projection.weight"]
TABLES += ["src_position.weight", "tgt_position.weight"]


def test_the_lists_above_hold_every_matrix():
    assert {name for name, p in model_of().named_parameters() if p.ndim == 2} == {*INNER_MATRICES, *TABLES}


def groups(named: dict[str, nn.Parameter], matrices: Iterable[str], decay: float) -> list[dict[str, object]]:
    vectors = [p for p in named.values() if p.ndim == 1]
    return [
        {"params": [named[name] for name in matrices], "weight_decay": decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_adamw_is_torchs_with_decay_of_the_matrices_only(decay: float):
    settings = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-9}

    def theirs(named: dict[str, nn.Parameter]) -> Step:
        by_decay = groups(named, [*INNER_MATRICES, *TABLES], decay)
        return stepping(torch.optim.AdamW(by_decay, **settings, foreach=False, fused=False))

    ours = trained(lambda named: optim.adamw(named.items(), lr=0.01, weight_decay=decay).step)
    assert_same(ours, trained(theirs))


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_muon_is_torchs_inside_the_layers_beside_adamw_for_the_rest(decay: float):
    """Queries, keys and values count as matrices of their own, which torch gets as such."""
    fused = {"qkv": 3, "kv": 2}

    def theirs(named: dict[str, nn.Parameter]) -> Step:
        inner = {name: named[name].data.chunk(fused.get(name.split(".")[-2], 1)) for name in INNER_MATRICES}
        views = {name: [nn.Parameter(view) for view in several] for name, several in inner.items()}
        muon = torch.optim.Muon(chain.from_iterable(views.values()), lr=0.05, momentum=0.9, weight_decay=decay)
        settings = {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-8}
        adamw = torch.optim.AdamW(groups(named, TABLES, decay), **settings, foreach=False, fused=False)
        both = stepping(muon, adamw)

        def step(factor: float) -> None:
            for name, several in views.items():
                for view, grad in zip(several, named[name].grad.chunk(len(several)), strict=True):
                    view.grad = grad
            both(factor)

        return step

    options = {"lr": 0.05, "momentum": 0.9, "weight_decay": decay, "adamw_lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-8}
    ours = trained(lambda named: optim.muon(named.items(), **options).step)
    assert_same(ours, trained(theirs))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd_is_torchs(momentum: float):
    def theirs(named: dict[str, nn.Parameter]) -> Step:
        return stepping(torch.optim.SGD(named.values(), lr=0.5, momentum=momentum, foreach=False, fused=False))

    ours = trained(lambda named: optim.sgd(named.items(), lr=0.5, momentum=momentum).step)
    assert_same(ours, trained(theirs))


def test_an_update_of_muon_turns_every_direction_by_the_same_amount():
    """What the optimiser is for: the singular values of its update lie near the rate, however uneven the gradient."""
    torch.manual_seed(1)
    matrix = nn.Parameter(torch.zeros(16, 16))
    optimizer = optim.muon([("encoder.0.ffn.inner.weight", matrix)], lr=0.1)
    u, v = (torch.linalg.qr(torch.randn(16, 16))[0] for _ in range(2))
    matrix.grad = u @ torch.logspace(0, -1.5, 16).diag() @ v
    optimizer.step()
    moved = torch.linalg.svdvals(matrix.detach())
    assert moved.min() > 0.06 and moved.max() < 0.13
    assert F.cosine_similarity(matrix.detach().flatten(), -(u @ v).flatten(), dim=0) > 0.97


def test_where_nothing_is_left_for_one_part_the_other_works_alone():
    """With all else frozen, or a model of nothing but matrices."""
    named = dict(model_of().named_parameters())
    for kept in (INNER_MATRICES, TABLES):
        optimizer = optim.muon([(name, named[name]) for name in kept])
        for name in kept:
            named[name].grad = torch.ones_like(named[name])
        before = [named[name].detach().clone() for name in kept]
        optimizer.step()
        assert not any(torch.equal(old, named[name]) for old, name in zip(before, kept, strict=True))
        assert len(optimizer.parts) == 1
