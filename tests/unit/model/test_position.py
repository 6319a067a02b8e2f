"""Positions: the tables, offsets, and hooks that do nothing unless a variant overrides them."""

from __future__ import annotations

import cmath
import itertools
import math

import pytest
import torch
from torch import Tensor

from nmt.checkpoint import build_model
from nmt.choice import Choice
from nmt.config import Model
from nmt.model.position import POSITIONS, Learned, Position, Rotary, Sinusoidal, sinusoids


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


@pytest.mark.parametrize("name", POSITIONS)
def test_an_offset_continues_the_rotation(name: str):
    """Turning the queries or keys of tokens 5..8 alone, as a cached step does, is turning 0..8 and taking the end."""
    torch.manual_seed(1)
    position, x = POSITIONS[name](8), torch.randn(2, 2, 9, 4)
    at_once = position.rotate(x, 0)
    for t in range(9):
        torch.testing.assert_close(position.rotate(x[:, :, t : t + 1], t), at_once[:, :, t : t + 1], rtol=0, atol=1e-6)
    torch.testing.assert_close(POSITIONS[name](8).rotate(x[:, :, 5:], 5), at_once[:, :, 5:], rtol=0, atol=1e-6)


# --- rotary ---


def turned(x: Tensor, start: int, base: float) -> Tensor:
    """Equation 14 of Su et al. (2021) with complex numbers: feature i and feature i + K / 2 are one number, which is
    multiplied by exp(j * position * base^(-2 i / K))."""
    size = x.shape[-1]
    out = torch.empty_like(x)
    for t in range(x.shape[2]):
        for i in range(size // 2):
            turn = cmath.exp(1j * (start + t) * base ** (-2 * i / size))
            number = torch.complex(x[:, :, t, i], x[:, :, t, i + size // 2]) * turn
            out[:, :, t, i], out[:, :, t, i + size // 2] = number.real, number.imag
    return out


@pytest.mark.parametrize(("start", "base"), [(0, 10_000.0), (7, 500.0), (3000, 10_000.0)])
@pytest.mark.parametrize("size", [2, 6, 16])
def test_rotary_multiplies_by_complex_numbers(size: int, start: int, base: float):
    """Also far from the beginning, where angles in fp32 would have lost their last digits."""
    torch.manual_seed(1)
    x = torch.randn(2, 3, 5, size, dtype=torch.float64)
    found = Rotary(3 * size, base=base).rotate(x, start)
    torch.testing.assert_close(found, turned(x, start, base), rtol=0, atol=1e-10)
    single = Rotary(3 * size, base=base).rotate(x.float(), start)
    torch.testing.assert_close(single, found.float(), rtol=0, atol=1e-5)
    assert Rotary(3 * size, base=base).rotate(x.bfloat16(), start).dtype == torch.bfloat16


def test_rotary_scores_depend_on_distances_alone():
    """q at m against k at n gives what q at m + shift against k at n + shift does, and something else at another
    distance; and the length of a vector stays."""
    torch.manual_seed(1)
    position = Rotary(16)
    q, k = torch.randn(2, 1, 1, 1, 16, dtype=torch.float64)

    def score(m: int, n: int) -> float:
        return float((position.rotate(q, m) * position.rotate(k, n)).sum())

    for m, n in [(0, 0), (5, 2), (2, 5), (30, 1)]:
        for shift in (1, 17, 1000):
            assert score(m + shift, n + shift) == pytest.approx(score(m, n), abs=1e-9)
    assert score(3, 3) == pytest.approx(float((q * k).sum()), abs=1e-9)
    distances = [score(d, 0) for d in range(-20, 20)]
    assert min(abs(a - b) for a, b in itertools.combinations(distances, 2)) > 1e-6
    torch.testing.assert_close(position.rotate(q, 123).norm(), q.norm())


def test_a_model_with_rotary_positions_sees_the_order_of_both_sides():
    """All that enters through them is order: without them, the encoder could not tell a sentence from its reverse."""
    torch.manual_seed(1)
    sizes = {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    model = build_model(Model(**sizes, position=Choice("rotary")), 30, 30).eval()
    ids, swapped = torch.tensor([[5, 6, 7, 8, 3]]), torch.tensor([[7, 6, 5, 8, 3]])
    with torch.no_grad():
        assert (model.encode(ids)[0][:, 3:] - model.encode(swapped)[0][:, 3:]).abs().max() > 1e-3
        states, others = (model(torch.tensor([[9, 3]]), t) for t in (ids, swapped))
        assert (states[:, 3:] - others[:, 3:]).abs().max() > 1e-3


@pytest.mark.parametrize("name", POSITIONS)
def test_a_model_can_be_trained_after_it_translated(name: str):
    """What a position computed in inference mode must not stay with it as a tensor that no gradient may pass."""
    torch.manual_seed(1)
    sizes = {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    model, ids = build_model(Model(**sizes, position=Choice(name)), 30, 30), torch.randint(4, 30, (2, 300))
    with torch.inference_mode():
        before = model(ids, ids).clone()
    states = model(ids, ids)
    states.sum().backward()
    torch.testing.assert_close(states.detach(), before, rtol=0, atol=1e-5)


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
