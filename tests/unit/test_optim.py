"""Schedules at their known points, clipping, and Adam's formula."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from nmt.optim import Cosine, InverseSqrt, Linear, adamw, clip, set_rate, sgd


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
    parameter = nn.Parameter(torch.tensor([1.5]))
    optimizer = adamw([parameter], lr=0.01, betas=[0.9, 0.98], eps=1e-9, weight_decay=decay)
    x, m, v = 1.5, 0.0, 0.0
    for t, gradient in enumerate([0.3, -2.0, 0.7, 0.1, -0.4], 1):
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
        m, v = 0.9 * m + 0.1 * gradient, 0.98 * v + 0.02 * gradient**2
        step = (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.98**t)) + 1e-9)
        x -= 0.01 * (step + decay * x)
        assert parameter.item() == pytest.approx(x, rel=1e-5)


def test_sgd_subtracts_the_gradient():
    parameter = nn.Parameter(torch.tensor([1.0]))
    optimizer = sgd([parameter], lr=0.5)
    parameter.grad = torch.tensor([0.2])
    optimizer.step()
    assert parameter.item() == pytest.approx(0.9)


def test_the_rate_that_is_set_is_the_rate_that_is_used():
    parameter = nn.Parameter(torch.tensor([1.0]))
    optimizer = sgd([parameter], lr=123.0)
    set_rate(optimizer, 0.25)
    parameter.grad = torch.tensor([1.0])
    optimizer.step()
    assert parameter.item() == pytest.approx(0.75)
