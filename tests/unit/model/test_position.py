"""Positions: the tables, offsets, and hooks that do nothing unless a variant overrides them."""

from __future__ import annotations

import math

import pytest
import torch

from nmt.model.position import POSITIONS, Learned, Position, Sinusoidal, sinusoids


def test_sinusoids_have_sines_and_cosines_of_falling_frequencies():
    table = sinusoids(50, 16)
    sines, cosines = table[:, :8], table[:, 8:]
    torch.testing.assert_close(sines**2 + cosines**2, torch.ones(50, 8))
    assert table[0].tolist() == [0.0] * 8 + [1.0] * 8
    # The first pair turns by one radian a position; every later one more slowly, by a constant factor.
    torch.testing.assert_close(sines[:, 0], torch.arange(50).sin())
    rates = torch.atan2(sines[1], cosines[1])
    assert (rates[1:] < rates[:-1]).all()
    ratios = rates[1:] / rates[:-1]
    torch.testing.assert_close(ratios, ratios[:1].expand(7), rtol=1e-4, atol=0)


def test_a_step_of_positions_is_a_rotation():
    """Section 3.5 of the paper: PE(pos + k) is a linear function of PE(pos), the same for every pos."""
    table = sinusoids(200, 12).double()
    sines, cosines = table[:, :6], table[:, 6:]
    k = 17
    turn_sin, turn_cos = sines[k], cosines[k]
    expected = torch.cat([sines * turn_cos + cosines * turn_sin, cosines * turn_cos - sines * turn_sin], dim=1)
    torch.testing.assert_close(table[k:], expected[:-k], rtol=0, atol=1e-4)


def test_sinusoidal_reaches_any_length_and_the_beginning_stays_the_same():
    position = Sinusoidal(8)
    zeros = torch.zeros(1, 3000, 8)
    short, long = position.embed(zeros[:, :10], 0), position.embed(zeros, 0)
    assert torch.equal(long[:, :10], short)
    assert position.limit is None
    torch.testing.assert_close(long[0], sinusoids(3000, 8))


@pytest.mark.parametrize("name", POSITIONS)
def test_an_offset_continues_the_sequence(name: str):
    """Embedding tokens 5..8 alone is the same as embedding 0..8 and looking at the end."""
    torch.manual_seed(1)
    position = POSITIONS[name](8)
    x = torch.randn(2, 9, 8)
    torch.testing.assert_close(position.embed(x[:, 5:], 5), position.embed(x, 0)[:, 5:])


def test_learned_positions_are_trained_up_to_their_limit():
    position = Learned(8, limit=12)
    assert position.limit == 12
    out = position.embed(torch.zeros(1, 12, 8), 0)
    assert torch.equal(out[0], position.weight)
    out.sum().backward()
    assert torch.equal(position.weight.grad, torch.ones(12, 8))
    assert position.weight.std().item() == pytest.approx(8**-0.5, rel=0.3)


def test_the_hooks_of_the_base_do_nothing():
    position, x = Position(4), torch.randn(1, 2, 3, 4)
    assert position.embed(x, 3) is x
    assert position.rotate(x, 3) is x
    assert position.bias(3, 1, 4) is None
    assert position.limit is None


def test_positions_of_one_length_differ_from_each_other():
    """No two of the first thousand positions look alike."""
    table = sinusoids(1000, 32)
    distances = torch.cdist(table, table).fill_diagonal_(math.inf)
    assert distances.min() > 0.1
