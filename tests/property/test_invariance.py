"""What must not matter: later tokens, padding, neighbours in a batch. Random models and texts, many times over."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from nmt.checkpoint import build_model
from nmt.choice import Choice
from nmt.config import Model
from nmt.data.batches import collate, pad_sources
from nmt.loss import CrossEntropy
from nmt.model import attention
from nmt.model.position import POSITIONS
from nmt.model.transformer import Transformer
from nmt.optim import adamw
from nmt.score import log_probs
from nmt.search.constraints import Constraints
from nmt.search.methods import Beam, Greedy, Sources

CPU, VOCAB = torch.device("cpu"), 40
ALLOWED = Constraints(torch.tensor([0, 1, 2]))


def model_of(**options: Any) -> Transformer:
    torch.manual_seed(4)
    sizes = {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    model = build_model(Model(**{**sizes, **options}), VOCAB, VOCAB).eval()
    # Larger weights than at the start, so that attention has something to say.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return model


KINDS = {
    "pre-norm": {},
    "post-norm, gelu": {"norm_first": False, "activation": "gelu"},
    "rms, swiglu": {"norm": "rms", "activation": "swiglu", "tie": "none"},
    **{f"position {name}": {"position": Choice(name)} for name in POSITIONS},
}
MODELS = {name: model_of(**options) for name, options in KINDS.items()}
every_kind = pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))

tokens = st.integers(4, VOCAB - 1)


def sentence(longest: int) -> st.SearchStrategy[np.ndarray]:
    return st.lists(tokens, min_size=0, max_size=longest).map(lambda ids: np.array([*ids, 3], np.int32))


# --- causality ---


def latest_influence(model: Transformer, src: Tensor, tgt: Tensor, changed: int, value: int, graph: bool) -> float:
    """The largest change of a logit before position `changed` when the token there becomes another."""
    other = tgt.clone()
    other[:, changed] = value
    with torch.set_grad_enabled(graph):
        before, after = (model.logits(model(src, t))[:, :changed].detach() for t in (tgt, other))
    return float((before - after).abs().max())


@every_kind
@given(data=st.data())
@settings(max_examples=25, deadline=None, derandomize=True)
def test_a_later_target_token_changes_no_earlier_logit(model: Transformer, data: st.DataObject):
    """Case 24, in training and in inference, which take different paths through attention."""
    src = torch.tensor([data.draw(st.lists(tokens, min_size=1, max_size=10))])
    tgt = torch.tensor([[2, *data.draw(st.lists(tokens, min_size=1, max_size=10))]])
    changed = data.draw(st.integers(1, tgt.shape[1] - 1))
    graph = data.draw(st.booleans())
    assert latest_influence(model, src, tgt, changed, data.draw(tokens), graph) <= 1e-6


@every_kind
def test_an_earlier_target_token_does_change_later_logits(model: Transformer):
    """The other half of causality, without which a model that looks at nothing would pass."""
    src, tgt = torch.randint(4, VOCAB, (1, 5)), torch.randint(4, 20, (1, 8))
    other = tgt.clone()
    other[0, 2] = 30
    with torch.no_grad():
        difference = (model.logits(model(src, tgt)) - model.logits(model(src, other))).abs().amax(-1)[0]
    assert (difference[:2] <= 1e-6).all()
    assert (difference[2:] > 1e-4).all()


def masks_nothing(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, rate: float) -> Tensor:
    """Attention with the mistake of a tutorial: masked scores are set to -1e-12, which is as good as 0."""
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-1, -2)
    if causal:
        scores = scores.masked_fill(~attention.causal_mask(scores), -1e-12)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e-12)
    return scores.softmax(-1) @ v


def test_the_causality_test_catches_a_mask_that_masks_nothing(monkeypatch: pytest.MonkeyPatch):
    """Case 24: a fill of -1e-12 once passed for a mask."""
    monkeypatch.setattr(attention, "attend", masks_nothing)
    src, tgt = torch.randint(4, VOCAB, (1, 5)), torch.randint(4, 20, (1, 8))
    assert latest_influence(MODELS["pre-norm"], src, tgt, 5, 30, graph=True) > 1e-4


def mean_loss_on_random_targets(updates: int = 120) -> float:
    """Trains on targets drawn anew at each update; returns the mean loss of the second half, per drawn token."""
    torch.manual_seed(1)
    model = build_model(Model(dim=32, heads=2, ffn_dim=64, encoder_layers=1, decoder_layers=1, dropout=0.0), 20, 20)
    optimizer, objective = adamw(model.named_parameters(), lr=1e-2), CrossEntropy(0.0, compiled=False)
    rng, losses = np.random.default_rng(1), []
    for _ in range(updates):
        tgt = [rng.integers(4, 20, 12).astype(np.int32) for _ in range(32)]
        src = [np.array([4, 3], np.int32)] * 32  # the same for all: it tells nothing about the target
        batch = collate(src, tgt, (2, 12), CPU)
        sums = objective(model, batch, 1 / batch.tokens)
        sums.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(sums.nll) / sums.tokens)
    return sum(losses[updates // 2 :]) / (updates - updates // 2)


def test_no_target_leaks_into_its_own_prediction(monkeypatch: pytest.MonkeyPatch):
    """Case 24: random targets cannot be predicted, and the loss stays at their entropy; a broken mask shows."""
    entropy = math.log(16)
    assert mean_loss_on_random_targets() == pytest.approx(entropy, abs=0.03)
    monkeypatch.setattr(attention, "attend", masks_nothing)
    assert mean_loss_on_random_targets() < entropy - 0.3


# --- padding ---


@every_kind
@given(src=sentence(6), tgt=sentence(6), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_a_pair_beside_a_ten_times_longer_one_is_scored_the_same(
    model: Transformer, src: np.ndarray, tgt: np.ndarray, seed: int
):
    """Case 25: logits and loss per token, in training and in inference."""
    rng = np.random.default_rng(seed)
    long_src = np.append(rng.integers(4, VOCAB, 10 * len(src)), 3)
    long_tgt = np.append(rng.integers(4, VOCAB, 10 * len(tgt)), 3)
    alone = collate([src], [tgt], (len(src), len(tgt)), CPU)
    beside = collate([src, long_src], [tgt, long_tgt], (len(long_src), len(long_tgt)), CPU)
    for graph in (True, False):
        with torch.set_grad_enabled(graph):
            one = model.logits(model(alone.src_BS, alone.tgt_in_BT))[0]
            other = model.logits(model(beside.src_BS, beside.tgt_in_BT))[0, : len(tgt)]
        torch.testing.assert_close(one, other, rtol=0, atol=2e-5)
    scores, _ = log_probs(model, [src, long_src], [tgt, long_tgt], CPU)
    [single] = log_probs(model, [src], [tgt], CPU)
    np.testing.assert_allclose(scores, single, rtol=0, atol=1e-5)


@every_kind
def test_padding_changes_no_gradient(model: Transformer):
    model = copy.deepcopy(model).double()
    model.dtype = torch.float64
    rng = np.random.default_rng(1)
    src, tgt = ([np.append(rng.integers(4, VOCAB, n), 3) for n in lengths] for lengths in ((5, 2), (3, 7)))
    gradients = []
    for shape in ((6, 8), (30, 25)):
        model.zero_grad()
        batch = collate(src, tgt, shape, CPU)
        CrossEntropy(0.1, compiled=False)(model, batch, 1 / batch.tokens).loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_a_row_of_nothing_but_an_end_is_finite():
    """An empty source still has its end of sentence to attend to: no softmax over nothing."""
    model = MODELS["pre-norm"]
    rows = [np.array([3], np.int32), np.array([4, 5, 6, 3], np.int32)]
    batch = collate(rows, rows, (32, 32), CPU)
    assert model(batch.src_BS, batch.tgt_in_BT).isfinite().all()


# --- batches in search ---


@every_kind
@given(sources=st.lists(sentence(12), min_size=2, max_size=5))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_translations_do_not_depend_on_the_batch(model: Transformer, sources: list[np.ndarray]):
    """Case 46: alone, together, and beside a very long neighbour: the same tokens, scores within 1e-4."""
    rng = np.random.default_rng(len(sources))
    neighbour = np.append(rng.integers(4, VOCAB, 60), 3)
    limits = {"max_ratio": 0.4, "max_extra": 4}
    for search in (Greedy(**limits), Beam(beam=3, **limits)):
        with torch.inference_mode():
            alone = [search(model, Sources(pad_sources([s], CPU), [len(s)]), ALLOWED)[0] for s in sources]
            rows = [*sources, neighbour]
            together = search(model, Sources(pad_sources(rows, CPU), [len(s) for s in rows]), ALLOWED)
        for one, other in zip(alone, together, strict=False):
            assert [h.tokens for h in one] == [h.tokens for h in other]
            assert [h.score for h in one] == pytest.approx([h.score for h in other], abs=1e-4)


@every_kind
def test_the_score_of_a_translation_is_what_a_teacher_forced_pass_gives_it(model: Transformer):
    """Case 47: score times length^alpha is the sum of the log-probabilities, to 1e-4."""
    rng = np.random.default_rng(3)
    sources = [np.append(rng.integers(4, VOCAB, n), 3) for n in (1, 3, 6, 10, 15)]
    limits = {"max_ratio": 1.0, "max_extra": 4}
    for search in (Greedy(length_penalty=0.7, **limits), Beam(beam=4, length_penalty=0.7, **limits)):
        with torch.inference_mode():
            found = search(model, Sources(pad_sources(sources, CPU), [len(s) for s in sources]), ALLOWED)
        for source, hypotheses in zip(sources, found, strict=True):
            targets = [np.array(h.tokens + ([] if h.truncated else [3]), np.int32) for h in hypotheses]
            rescored = log_probs(model, [source] * len(targets), targets, CPU)
            for hypothesis, scores in zip(hypotheses, rescored, strict=True):
                assert hypothesis.log_probs == pytest.approx(scores.tolist(), abs=1e-4)
                expected = scores.sum() / len(scores) ** 0.7
                assert hypothesis.score == pytest.approx(expected, abs=1e-4)
