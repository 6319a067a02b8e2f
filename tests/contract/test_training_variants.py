"""What every objective, optimiser and schedule must do, so that a new one is tested before its author writes a test."""

from __future__ import annotations

import itertools
import typing
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import CPU, SIZES, batch, model_of
from torch import nn
from torch.nn import functional as F

from nmt import checkpoint
from nmt.choice import Choice, build, options_of
from nmt.config import Config, Data, Model, Train
from nmt.data.batches import Batch, collate
from nmt.loss import OBJECTIVES
from nmt.model.transformer import Transformer
from nmt.optim import OPTIMIZERS, SCHEDULES, Optimizer

# --- objectives ---

DRAWS_NOTHING = {"simcut": {"rate": 0.0}}  # options with which an objective needs no random numbers


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_of_an_objective_is_the_slope_of_its_loss(name: str):
    """Along a random direction, with every kind of dropout, its masks drawn alike on both sides of the point."""
    objective, pairs = build(OBJECTIVES, Choice(name), 0.1, False), batch()
    rates = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout", "word_dropout"), 0.2)
    model = model_of(**rates).train().double()
    model.dtype = torch.float64
    directions = [torch.randn_like(p) for p in model.parameters()]

    def at(distance: float) -> float:
        with torch.no_grad():
            for parameter, direction in zip(model.parameters(), directions, strict=True):
                parameter.add_(distance * direction)
        torch.manual_seed(7)
        total = objective(model, pairs, 1 / pairs.tokens)
        with torch.no_grad():
            for parameter, direction in zip(model.parameters(), directions, strict=True):
                parameter.sub_(distance * direction)
        return total.loss.item()

    torch.manual_seed(7)
    objective(model, pairs, 1 / pairs.tokens).loss.backward()
    slope = sum(float((p.grad * d).sum()) for p, d in zip(model.parameters(), directions, strict=True))
    assert (at(1e-6) - at(-1e-6)) / 2e-6 == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_reports_the_plain_likelihood_beside_its_loss(name: str):
    """Not smoothed, of the model as it is; and the factor given scales the loss alone."""
    objective = build(OBJECTIVES, Choice(name, DRAWS_NOTHING.get(name, {})), 0.1, False)
    model, pairs = model_of(), batch()
    logits = model.logits(model(pairs.src_BS, pairs.tgt_in_BT)).flatten(0, 1)[pairs.tgt.place_N[: pairs.tokens]]
    expected = F.cross_entropy(logits, pairs.targets_N, reduction="sum").item()
    once, thrice = (objective(model, pairs, scale) for scale in (0.1, 0.3))
    assert once.nll.item() == pytest.approx(expected, rel=1e-5)
    assert thrice.nll.item() == pytest.approx(expected, rel=1e-5)
    assert thrice.loss.item() == pytest.approx(3 * once.loss.item(), rel=1e-5)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_an_objective_adds_up_over_micro_batches(name: str):
    """Case 27: parts of an update, each divided by the tokens of the whole, have the gradient of the whole."""
    objective = build(OBJECTIVES, Choice(name, DRAWS_NOTHING.get(name, {})), 0.1, False)
    pairs = batch(6)
    src, tgt = [row[row != 0].numpy() for row in pairs.src_BS], _targets(pairs)
    halves = [collate(src[:2], tgt[:2], (10, 10), CPU), collate(src[2:], tgt[2:], (10, 10), CPU)]
    gradients, totals = [], []
    for parts in ([pairs], halves):
        model = model_of()
        results = [objective(model, part, 1 / pairs.tokens) for part in parts]
        for result in results:
            result.loss.backward()
        gradients.append([p.grad for p in model.parameters()])
        losses = [(r.loss.item(), r.nll.item(), r.tokens) for r in results]
        totals.append(tuple(map(sum, zip(*losses, strict=True))))
    assert totals[0] == pytest.approx(totals[1], rel=1e-5)
    assert totals[0][2] == pairs.tokens
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def _targets(pairs: Batch) -> list[np.ndarray]:
    """The targets of a batch, row by row."""
    rows = pairs.tgt.place_N[: pairs.tokens] // pairs.tgt_in_BT.shape[1]
    return [pairs.targets_N[rows == i].numpy() for i in range(len(pairs.tgt_in_BT))]


# --- optimisers ---


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_descends(name: str):
    """A matrix of a layer, a matrix of embeddings and a bias, which an optimiser may treat each in its own way."""
    torch.manual_seed(1)
    shapes = {"encoder.0.ffn.inner.weight": (3, 4), "embedding.weight": (4, 2), "encoder.0.ffn.inner.bias": (3,)}
    named = {part: nn.Parameter(torch.randn(shape)) for part, shape in shapes.items()}
    rates = {key: 0.05 for key in options_of(OPTIMIZERS[name]) if key.endswith("lr")}
    optimizer = build(OPTIMIZERS, Choice(name, rates), named.items())
    values = []
    for _ in range(50):
        losses = [parameter.square().sum() for parameter in named.values()]
        sum(losses).backward()
        optimizer.step()
        optimizer.zero_grad()
        values.append([loss.item() for loss in losses])
    assert all(last < 0.3 * first for first, last in zip(values[0], values[-1], strict=True))
    assert build(OPTIMIZERS, Choice(name), named.items()).peak > 0


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if "weight_decay" in options_of(OPTIMIZERS[name])])
def test_weight_decay_shrinks_matrices_and_nothing_else(name: str):
    """Without any gradient, decay is all that happens: a share `rate * weight_decay` of each matrix goes."""
    model = model_of(position=Choice("learned"), norm="rms")
    for parameter in model.parameters():
        torch.nn.init.constant_(parameter, 1.0)
        parameter.grad = torch.zeros_like(parameter)
    rates = {key: 0.05 for key in options_of(OPTIMIZERS[name]) if key.endswith("lr")}
    optimizer = build(OPTIMIZERS, Choice(name, {"weight_decay": 0.2, **rates}), model.named_parameters())
    optimizer.step(0.5)
    for part, parameter in model.named_parameters():
        left = 1 - 0.5 * 0.05 * 0.2 if parameter.ndim == 2 else 1.0
        torch.testing.assert_close(parameter, torch.full_like(parameter, left), msg=part)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_factor_of_the_schedule_holds_for_every_part_of_an_optimizer(name: str):
    """Half the rates at the full factor are the full rates at half the factor, for every parameter."""
    rates = [key for key in options_of(OPTIMIZERS[name]) if key.endswith("lr")]
    moved = []
    for peak, factor in ((0.05, 0.5), (0.025, 1.0), (0.05, 0.0)):
        model = model_of()
        optimizer = build(OPTIMIZERS, Choice(name, dict.fromkeys(rates, peak)), model.named_parameters())
        for parameter in model.parameters():
            parameter.grad = torch.sin(torch.arange(parameter.numel())).view(parameter.shape)
        optimizer.step(factor)
        moved.append(dict(model.named_parameters()))
    start = dict(model_of().named_parameters())
    for part, parameter in start.items():
        torch.testing.assert_close(moved[0][part], moved[1][part], msg=part)
        assert not torch.equal(moved[0][part], parameter), part
        assert torch.equal(moved[2][part], parameter), part


OPTIONS = {
    "sgd": [{}, {"momentum": 0.9}],
    "adamw": [{}, {"weight_decay": 0.1}],
    "muon": [{}, {"weight_decay": 0.1, "momentum": 0.9}],
}


@pytest.mark.parametrize(("name", "options"), [(name, o) for name in OPTIMIZERS for o in OPTIONS.get(name, [{}])])
def test_an_optimizer_goes_on_from_what_a_checkpoint_keeps(name: str, options: dict[str, typing.Any], tmp_path: Path):
    """Case 35: two updates, saved, loaded and a third: the same as three updates in a row."""
    pairs, objective = batch(), OBJECTIVES["cross_entropy"](0.1, False)

    def update(model: Transformer, optimizer: Optimizer) -> None:
        objective(model, pairs, 1 / pairs.tokens).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    model = model_of()
    optimizer = build(OPTIMIZERS, Choice(name, options), model.named_parameters())
    update(model, optimizer), update(model, optimizer)
    corpus = Choice("plain", {"src": "a", "tgt": "b"})
    config = Config(
        run_dir="", src_lang="a", tgt_lang="b", data=Data(train=[corpus]), model=Model(**SIZES), train=Train()
    )
    rest = checkpoint.optimizer_tensors(model, optimizer)
    checkpoint.save(tmp_path / "saved", model, rest, {"step": 2}, config, tmp_path)
    update(model, optimizer)

    again, saved = model_of(), checkpoint.open_checkpoint(tmp_path / "saved")
    fresh = build(OPTIMIZERS, Choice(name, options), again.named_parameters())
    checkpoint.load_weights(again, saved.tensors(checkpoint.WEIGHTS), tmp_path)
    checkpoint.load_optimizer(again, fresh, saved.tensors(checkpoint.OPTIMIZER))
    update(again, fresh)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


# --- schedules ---


@pytest.mark.parametrize("steps", [1, 7, 1000, 30_000])
@pytest.mark.parametrize("warmup", ["auto", 1, 100])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_warms_up_and_then_falls(name: str, warmup: str | int, steps: int):
    """Every factor lies within (0, 1], and there is one peak."""
    schedule = build(SCHEDULES, Choice(name, {"warmup": warmup}), steps)
    rates = [schedule(step, step / steps) for step in range(steps)]
    assert all(0 < rate <= 1 + 1e-9 for rate in rates)
    peak = rates.index(max(rates))
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    if steps >= 1000:
        assert max(rates) == pytest.approx(1.0, abs=0.01)
        # Continuous: no step changes the rate by more than the steepest part of the warm-up does.
        first = min(steps // 10, 4000) if warmup == "auto" else warmup
        assert max(abs(a - b) for a, b in itertools.pairwise(rates)) <= 1.6 / first + 1e-9


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_of_a_run_limited_by_time_follows_the_clock(name: str):
    schedule = build(SCHEDULES, Choice(name), None)
    rates = [schedule(step, step / 500) for step in range(500)]
    assert all(0 < rate <= 1 for rate in rates)
    assert rates.index(max(rates)) == pytest.approx(50, abs=1)
    assert rates[50:] == sorted(rates[50:], reverse=True)


@pytest.mark.parametrize("name", [name for name in SCHEDULES if name not in ("inverse_sqrt", "constant")])
def test_a_schedule_that_ends_ends_at_zero(name: str):
    schedule = build(SCHEDULES, Choice(name), 2000)
    assert schedule(1999, 1999 / 2000) < 0.005
    assert schedule(2000, 1.0) == pytest.approx(0, abs=1e-9)
