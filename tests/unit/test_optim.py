"""Schedules at their known points, clipping, Adam's formula, and which weights are trained and averaged."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Answer, make_toy
from torch import nn

from nmt.checkpoint import build_model
from nmt.config import Model
from nmt.errors import ConfigError
from nmt.model.transformer import Transformer
from nmt.optim import (
    Constant,
    Cosine,
    InverseSqrt,
    Linear,
    WarmupStableDecay,
    adamw,
    averages,
    clip,
    follow,
    freeze,
    muon,
    replace,
    sgd,
)


@pytest.mark.parametrize("make", [adamw, muon])
def test_betas_may_be_zero_as_integers(make: Callable[..., Any]):
    """A config that says 0 has an integer, which torch does not take beside a fraction."""
    make([("weight", nn.Parameter(torch.ones(2))), ("matrix", nn.Parameter(torch.ones(2, 2)))], betas=(0, 0.98))


def test_inverse_sqrt_peaks_after_the_warm_up_and_halves_at_four_times_its_steps():
    schedule = InverseSqrt(1000, warmup=100)
    assert schedule(0, 0.0) == pytest.approx(0.01)
    assert schedule(49, 0.049) == pytest.approx(0.5)
    assert schedule(99, 0.099) == pytest.approx(1.0)
    assert schedule(399, 0.399) == pytest.approx(0.5)
    assert schedule(899, 0.899) == pytest.approx(1 / 3)


def test_linear_and_cosine_end_at_zero():
    for schedule in (Linear(1000, warmup=100), Cosine(1000, warmup=100)):
        assert schedule(99, 0.099) == pytest.approx(1.0)
        assert schedule(550, 0.55) == pytest.approx(0.5, abs=0.01)
        assert schedule(1000, 1.0) == pytest.approx(0.0, abs=1e-9)
    assert Linear(1000, warmup=100)(775, 0.775) == pytest.approx(0.25)
    quarter_left = 0.5 - 0.5 * math.cos(math.pi * 0.25)
    assert Cosine(1000, warmup=100)(775, 0.775) == pytest.approx(quarter_left)


def test_automatic_warm_up_is_a_tenth_of_the_run_and_at_most_4000_steps():
    short, long = Linear(1000), Linear(1_000_000)
    peak = max(range(1000), key=lambda step: short(step, step / 1000))
    assert peak == pytest.approx(100, abs=1)
    peak = max(range(0, 20_000, 10), key=lambda step: long(step, step / 1_000_000))
    assert peak == pytest.approx(4000, abs=20)


def test_without_a_number_of_steps_the_share_of_the_run_decides():
    """A run limited by minutes does not know how many steps it will make."""
    schedule = Linear(None)
    assert schedule(10, 0.05) == pytest.approx(0.5)
    assert schedule(20, 0.1) == pytest.approx(1.0)
    assert schedule(200, 1.0) == pytest.approx(0.0)


def test_a_warm_up_longer_than_the_run_only_rises():
    schedule = Linear(10, warmup=100)
    rates = [schedule(step, step / 10) for step in range(10)]
    assert rates == pytest.approx([(step + 1) / 100 for step in range(10)])


def test_constant_stays_at_the_peak():
    schedule = Constant(1000, warmup=100)
    assert [schedule(step, step / 1000) for step in (0, 24, 49)] == pytest.approx([0.01, 0.25, 0.5])
    assert {schedule(step, step / 1000) for step in (99, 100, 500, 999, 1000)} == {1.0}


def test_warm_up_stable_decay_at_its_corners():
    """Up to step 100, at the peak until 80% of the run, and from there straight down."""
    schedule = WarmupStableDecay(1000, warmup=100)
    points = {0: 0.01, 49: 0.5, 99: 1.0, 400: 1.0, 800: 1.0, 850: 0.75, 900: 0.5, 950: 0.25, 1000: 0.0}
    assert {step: schedule(step, step / 1000) for step in points} == pytest.approx(points)
    halved = WarmupStableDecay(1000, warmup=100, decay=0.5)
    assert [halved(step, step / 1000) for step in (500, 750, 900)] == pytest.approx([1.0, 0.5, 0.2])
    # A decay that begins before the warm-up is over: the smaller of the two holds.
    whole = WarmupStableDecay(1000, warmup=500, decay=1.0)
    assert [whole(step, step / 1000) for step in (249, 499, 799)] == pytest.approx([0.5, 0.501, 0.201])


@pytest.mark.parametrize("schedule", [Constant(None), WarmupStableDecay(None)])
def test_the_new_schedules_follow_the_share_where_no_number_of_steps_is_known(schedule: Constant | WarmupStableDecay):
    """In a run of minutes or epochs; `step` then only bounds the warm-up."""
    assert schedule(10, 0.05) == pytest.approx(0.5)
    assert schedule(10, 0.1) == schedule(10, 0.7) == pytest.approx(1.0)
    assert schedule(10, 0.9) == pytest.approx(1.0 if isinstance(schedule, Constant) else 0.5)


def rates_of_run(command: Callable[..., Answer], **limits: float) -> list[dict[str, float]]:
    """Trains a toy with a rate that falls from 1 straight to 0 over the run; its rows, one a step."""
    config = make_toy(
        Path(),
        train=300,
        schedule={"name": "wsd", "warmup": 1, "decay": 1.0},
        optimizer={"name": "sgd", "lr": 1.0},
        log_every=1,
        validate_every=10**6,
        save_every=10**6,
        average=0,
        **{"steps": None, **limits},
    )
    answer = command("train", config)
    assert answer.code == 0, answer.err
    rows = map(json.loads, Path("run/metrics.jsonl").read_text().splitlines())
    return [row for row in rows if row["kind"] == "train"]


@pytest.mark.parametrize(
    ("limits", "passed"),
    [
        ({"steps": 12}, lambda row: row["step"] / 12),
        ({"epochs": 2}, lambda row: row["epoch"] / 2),
        ({"minutes": 0.05}, lambda row: row["seconds"] / 3),
        ({"steps": 12, "epochs": 50}, lambda row: row["step"] / 12),
        ({"steps": 5000, "epochs": 2}, lambda row: row["epoch"] / 2),
    ],
    ids=["steps", "epochs", "minutes", "steps before epochs", "epochs before steps"],
)
def test_the_schedule_is_told_the_share_of_the_limit_that_comes_first(
    limits: dict[str, float],
    passed: Callable[[dict[str, float]], float],
    command: Callable[..., Answer],
    monkeypatch: pytest.MonkeyPatch,
):
    """The rate of an update is that of the share which the updates before it have left."""
    ticks = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: next(ticks) / 100)  # a clock that no busy machine disturbs
    rows = rates_of_run(command, **limits)
    assert rows[0]["lr"] == pytest.approx(1.0, abs=0.1 if "minutes" in limits else 1e-9)
    assert len(rows) > 4
    for before, after in itertools.pairwise(rows):
        # The row of an update is written a moment after its share is taken.
        assert after["lr"] == pytest.approx(1 - passed(before), abs=0.05 if "minutes" in limits else 1e-4)


def two(*gradients: list[float]) -> list[nn.Parameter]:
    parameters = [nn.Parameter(torch.zeros(len(g))) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(gradient)
    return parameters


def test_clipping_is_by_the_joint_norm_of_all_parameters():
    parameters = two([3.0, 0.0], [0.0, 4.0])
    assert clip(parameters, 1.0).item() == pytest.approx(5.0)
    torch.testing.assert_close(parameters[0].grad, torch.tensor([0.6, 0.0]), rtol=1e-5, atol=0)
    torch.testing.assert_close(parameters[1].grad, torch.tensor([0.0, 0.8]), rtol=1e-5, atol=0)


@pytest.mark.parametrize("largest", [5.1, 0.0])
def test_small_gradients_and_no_limit_leave_everything_as_it_is(largest: float):
    parameters = two([3.0, 0.0], [0.0, 4.0])
    assert clip(parameters, largest).item() == pytest.approx(5.0)
    assert parameters[0].grad.tolist() == [3.0, 0.0]
    assert parameters[1].grad.tolist() == [0.0, 4.0]


def test_parameters_without_a_gradient_are_passed_over():
    parameters = [*two([3.0, 4.0]), nn.Parameter(torch.zeros(2))]
    assert clip(parameters, 1.0).item() == pytest.approx(5.0)
    assert parameters[1].grad is None


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamw_is_the_formula_of_its_paper(decay: float):
    """Algorithm 2 of Loshchilov and Hutter (2019) for one number, in Python's floats."""
    parameter = nn.Parameter(torch.tensor([[1.5]]))
    optimizer = adamw([("weight", parameter)], lr=0.01, betas=[0.9, 0.98], eps=1e-9, weight_decay=decay)
    x, m, v = 1.5, 0.0, 0.0
    for t, gradient in enumerate([0.3, -2.0, 0.7, 0.1, -0.4], 1):
        parameter.grad = torch.tensor([[gradient]])
        optimizer.step()
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        step = (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.98**t)) + 1e-9)
        x -= 0.01 * (step + decay * x)
        assert parameter.item() == pytest.approx(x, rel=1e-5)


def test_sgd_subtracts_the_gradient():
    parameter = nn.Parameter(torch.tensor([1.0]))
    optimizer = sgd([("weight", parameter)], lr=0.5)
    parameter.grad = torch.tensor([0.2])
    optimizer.step()
    assert parameter.item() == pytest.approx(0.9)


def test_an_optimizer_forgets_what_it_has_learnt_of_gradients():
    """After going back to a checkpoint without moments, an update is like a first one."""
    moved = []
    for forgets in (True, False):
        parameter = nn.Parameter(torch.tensor([[1.0, 2.0]]))
        optimizer = adamw([("weight", parameter)], lr=0.1)
        parameter.grad = torch.tensor([[5.0, -5.0]])
        optimizer.step()
        if forgets:
            optimizer.forget()
        before = parameter.detach().clone()
        parameter.grad = torch.tensor([[-1.0, 1.0]])
        optimizer.step()
        moved.append(parameter.detach() - before)
    torch.testing.assert_close(moved[0], torch.tensor([[0.1, -0.1]]))  # the first step of Adam is the rate
    assert not torch.allclose(moved[0], moved[1])


def test_an_optimizer_that_can_skip_does_nothing_for_a_blown_gradient():
    """As a GPU is told it, without being waited for: the flag is a tensor."""
    parameter = nn.Parameter(torch.tensor([[1.0, 2.0]]))
    optimizer = adamw([("weight", parameter)], lr=0.1, weight_decay=0.1)
    assert optimizer.can_skip
    parameter.grad = torch.tensor([[math.inf, 1.0]])
    optimizer.step(1.0, torch.tensor(1.0))
    assert parameter.tolist() == [[1.0, 2.0]]
    parameter.grad = torch.tensor([[1.0, 1.0]])
    optimizer.step(1.0, torch.tensor(0.0))
    torch.testing.assert_close(parameter.detach(), torch.tensor([[0.89, 1.88]]))
    assert not muon([("encoder.0.ffn.inner.weight", parameter)]).can_skip


# --- parts that are not trained, and averages ---


def tiny(**settings: str) -> Transformer:
    torch.manual_seed(1)
    sizes = {"dim": 8, "heads": 2, "ffn_dim": 8, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    return build_model(Model(**{**sizes, **settings}), 20, 20)  # type: ignore[arg-type]


def frozen(model: nn.Module) -> set[str]:
    return {name for name, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}


def test_freezing_takes_whole_parts_by_name():
    model = tiny(tie="none")
    everything = {name for name, _ in model.named_parameters()}
    freeze(model, [])
    assert not frozen(model)
    freeze(model, ["encoder", "decoder.1.ffn", "decoder.0.self_attention.qkv.weight"])
    parts = ("encoder.", "decoder.1.ffn.", "decoder.0.self_attention.qkv.weight")
    assert frozen(model) == {name for name in everything if name.startswith(parts)}
    assert "encoder_norm.weight" not in frozen(model)  # `encoder` is no beginning of another part's name


@pytest.mark.parametrize("name", ["src_embedding", "tgt_embedding", "projection"])
def test_a_shared_matrix_is_frozen_by_each_of_its_names(name: str):
    model = tiny(tie="all")
    freeze(model, [name])
    assert frozen(model) == {"src_embedding.weight", "tgt_embedding.weight", "projection.weight"}
    assert len([p for p in model.parameters() if not p.requires_grad]) == 1


@pytest.mark.parametrize("name", ["encodr", "encoder.7", "enc", ""])
def test_a_part_that_the_model_has_not_is_named(name: str):
    model = tiny()
    with pytest.raises(ConfigError, match=f"train.freeze: the model has no part `{name}`; it has .*encoder, decoder"):
        freeze(model, ["decoder", name])


def test_freezing_everything_is_refused():
    model = tiny()
    parts = dict.fromkeys(name.split(".")[0] for name, _ in model.named_parameters())
    with pytest.raises(ConfigError, match="leaves nothing"):
        freeze(model, list(parts))


def test_averages_are_of_what_is_trained_and_go_into_the_model():
    """Frozen parts are left out and left alone; the averages start at the weights, as copies."""
    model = tiny()
    freeze(model, ["encoder"])
    trained = [p for p in model.parameters() if p.requires_grad]
    assert averages(model, 0.0) == []
    kept = averages(model, 0.9)
    assert all(torch.equal(a, p) for a, p in zip(kept, trained, strict=True))
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    follow(kept, trained, 0.9, 100_000)
    replace(model, kept)
    for name, parameter in model.named_parameters():
        moved = 1.0 if name.startswith("encoder.") else 0.1
        torch.testing.assert_close(parameter.detach(), start[name] + moved, msg=name)


def test_a_moving_average_soon_forgets_the_start():
    """With a decay of 0.999 the start would weigh 90% after 100 updates; here it is nearly nothing."""
    weight, average = nn.Parameter(torch.ones(1)), [torch.zeros(1)]
    for step in range(1, 101):
        follow(average, [weight], 0.999, step)
    assert average[0].item() > 0.99
