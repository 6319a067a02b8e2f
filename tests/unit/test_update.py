"""One update: the same in any number of micro-batches, none when its gradient is no number, scaled for fp16."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nmt import checkpoint, update
from nmt.choice import build
from nmt.config import Choice, Model
from nmt.data.plan import Share
from nmt.feed import Feed, Position, Ready
from nmt.loss import OBJECTIVES
from nmt.model.transformer import Transformer
from nmt.optim import OPTIMIZERS
from nmt.ranks import Ranks
from nmt.runtime import Runtime
from nmt.update import TOTALS, Updater, memory_needed

CPU = torch.device("cpu")
PIECES = 30


class Pairs:
    """Random pairs of unequal lengths."""

    def __init__(self, count: int) -> None:
        rng = np.random.default_rng(3)
        self.sides = [[np.append(rng.integers(4, PIECES, n), 3) for n in rng.integers(1, 9, count)] for _ in range(2)]

    def ids(self, pairs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return [self.sides[0][i] for i in pairs], [self.sides[1][i] for i in pairs]


def make_model(dropout: float = 0.0, dim: int = 16) -> Transformer:
    torch.manual_seed(1)
    sizes = {"dim": dim, "heads": 2, "ffn_dim": 2 * dim, "encoder_layers": 1, "decoder_layers": 1}
    return checkpoint.build_model(Model(**sizes, dropout=dropout), PIECES, PIECES)


def updater(model: Transformer, precision: str = "fp32", objective: str = "cross_entropy") -> Updater:
    built = build(OBJECTIVES, Choice(objective), 0.1, False)
    optimizer = OPTIMIZERS["sgd"](list(model.named_parameters()), lr=1.0)
    feed = Feed(Pairs(8), [Share(8)], 100, 1, CPU)  # type: ignore[arg-type]
    return Updater(model, built, optimizer, feed, Ranks(), Runtime(CPU, precision, 1))


def batch(rows: int = 8) -> Ready:
    pairs = np.arange(rows)
    src, tgt = Pairs(rows).ids(pairs)
    return Ready(Position(0, 0, 0), 1, 1, pairs, src, tgt, (12, 12), 0, [])


def weights(model: Transformer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def moved(one: Updater, accumulate: int, **more: Any) -> torch.Tensor:
    """What one update adds to the weights; with plain descent at a rate of 1, the negative gradient."""
    before = weights(one.model)
    one(batch(), 1, more.get("step", 0), 1.0, more.get("clip_norm", 0.0), accumulate)
    return weights(one.model) - before


@pytest.mark.parametrize("accumulate", [2, 3, 4, 8, 11])
def test_gradients_and_loss_do_not_depend_on_the_number_of_micro_batches(accumulate: int):
    """Case 27: 8 x 1 is 2 x 4, with unequal lengths, and with more micro-batches than rows."""
    whole, split = updater(make_model()), updater(make_model())
    torch.testing.assert_close(moved(split, accumulate), moved(whole, 1), rtol=0, atol=1e-6)
    torch.testing.assert_close(split.totals, whole.totals, rtol=1e-6, atol=0)
    assert whole.totals[TOTALS.index("used")] == batch().tokens


def test_the_gradient_is_that_of_the_mean_loss_of_a_token():
    """Against torch's own loss over the whole batch."""
    model, one = make_model(), updater(make_model())
    found = moved(one, 4)
    micro = one.feed.split(batch(), 1).mine[0]
    states = model(micro.src_BS, micro.tgt_in_BT).flatten(0, 1)[micro.tgt.place_N[: micro.tokens]]
    loss = torch.nn.functional.cross_entropy(model.logits(states), micro.targets_N, label_smoothing=0.1)
    loss.backward()
    torch.testing.assert_close(-found, torch.cat([p.grad.flatten() for p in model.parameters()]), rtol=0, atol=1e-6)
    assert one.totals[0].item() / batch().tokens == pytest.approx(loss.item(), rel=1e-5)


def test_dropout_is_drawn_for_each_step_and_micro_batch_and_repeats():
    first, again, later = (moved(updater(make_model(0.3)), 2, step=step) for step in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.allclose(first, later, atol=1e-4)


def seeds(one: Updater, accumulate: int) -> list[int]:
    """The seeds that the micro-batches of an update get."""
    objective, found = one.objective, []

    def noted(*arguments: Any) -> Any:
        found.append(torch.initial_seed())
        return objective(*arguments)

    one.objective = noted  # type: ignore[assignment]
    one._gradients(one.feed.split(batch(), accumulate), 1, 5)
    return found


def test_each_micro_batch_of_each_process_has_dropout_of_its_own():
    """Numbered over all processes, so that two with two each draw what one with four does."""
    alone = seeds(updater(make_model()), 4)
    assert len(set(alone)) == 4
    together = []
    for rank in (0, 1):
        one = updater(make_model())
        one.ranks = Ranks(rank, 2)
        one.feed = replace(one.feed, rank=rank, world=2)
        together += seeds(one, 2)
    assert together == alone


def test_the_norm_of_the_gradient_is_limited_and_noted_as_it_was():
    one, free = updater(make_model()), updater(make_model())
    norm = moved(free, 1).norm()
    assert moved(one, 1, clip_norm=0.01).norm().item() == pytest.approx(0.01, rel=1e-3)
    assert one.totals[TOTALS.index("norm")].item() == pytest.approx(norm.item(), rel=1e-4)


def spoil(one: Updater, value: float, which: int = 0) -> None:
    """The gradient of one micro-batch becomes this."""
    objective, calls = one.objective, []

    def spoiled(*arguments: Any) -> Any:
        result = objective(*arguments)
        calls.append(True)
        if len(calls) == which + 1:
            result.loss = result.loss * value
        return result

    one.objective = spoiled  # type: ignore[assignment]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("which", [0, 2])
def test_an_update_whose_gradient_is_no_number_changes_nothing(value: float, which: int):
    one = updater(make_model())
    spoil(one, value, which)
    before = weights(one.model)
    outcome = one(batch(), 1, 0, 1.0, 1.0, 4)
    assert outcome.skipped and torch.equal(weights(one.model), before)
    assert one.totals.tolist() == [0.0] * (len(TOTALS) - 1) + [1.0]
    assert one.new_faults() == [True] and one.new_faults() == []
    assert all(p.grad is None for p in one.model.parameters())
    assert not one(batch(), 1, 1, 1.0, 1.0, 4).skipped
    assert one.new_faults() == [False]
    assert one.totals[TOTALS.index("used")] == batch().tokens


# --- fp16 ---


def test_scaling_gradients_for_fp16_changes_neither_update_nor_loss():
    plain, scaled = updater(make_model()), updater(make_model(), "fp16")
    assert scaled.scale == 2.0**16
    torch.testing.assert_close(moved(scaled, 2), moved(plain, 2), rtol=0, atol=1e-6)
    torch.testing.assert_close(scaled.totals, plain.totals, rtol=1e-6, atol=0)


def test_an_overflow_halves_the_scale_and_is_no_fault():
    one = updater(make_model(), "fp16")
    spoil(one, float("inf"))
    assert one(batch(), 1, 0, 1.0, 1.0, 1).skipped
    assert one.scale == 2.0**15 and one.new_faults() == [False]


def test_at_the_least_scale_what_is_no_number_is_a_fault():
    one = updater(make_model(), "fp16")
    one.scale = update.LEAST_SCALE
    spoil(one, float("nan"))
    assert one(batch(), 1, 0, 1.0, 1.0, 1).skipped
    assert one.scale == update.LEAST_SCALE and one.new_faults() == [True]


def test_after_many_finite_updates_the_scale_doubles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(update, "PATIENCE", 3)
    one = updater(make_model(), "fp16")
    scales = []
    for step in range(7):
        one(batch(), 1, step, 1e-3, 1.0, 1)
        scales.append(one.scale / 2**16)
    assert scales == [1, 1, 2, 2, 2, 4, 4]


# --- memory ---


def limit(one: Updater, rows: int) -> list[int]:
    """Memory for so many pairs at a time; returns a list that grows with each try."""
    objective, tried = one.objective, []

    def limited(model: Transformer, micro: Any, scale: float) -> Any:
        tried.append(len(micro.src_BS))
        if tried[-1] > rows:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return objective(model, micro, scale)

    one.objective = limited
    return tried


def test_what_does_not_fit_is_halved_until_it_does():
    one, expected = updater(make_model()), moved(updater(make_model()), 1)
    limit(one, 2)
    before = weights(one.model)
    outcome = one(batch(), 1, 0, 1.0, 0.0, 1)
    assert (outcome.accumulate, outcome.skipped, outcome.too_long) == (4, False, [])
    torch.testing.assert_close(weights(one.model) - before, expected, rtol=0, atol=1e-6)


def test_sizes_can_be_tried_without_changing_anything():
    one = updater(make_model())
    tried, before = limit(one, 3), weights(one.model)
    assert one.try_out(batch(), 1) == 4
    assert torch.equal(weights(one.model), before) and one.totals.count_nonzero() == 0
    assert all(p.grad is None for p in one.model.parameters())
    assert max(tried) == 8


def test_the_estimate_of_memory_grows_with_tokens_and_sizes():
    model = make_model()
    assert memory_needed(model, 2000) > 1.5 * memory_needed(model, 1000)
    assert memory_needed(make_model(dim=64), 1000) > 2 * memory_needed(model, 1000)
