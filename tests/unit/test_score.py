"""Teacher-forced log-probabilities: the right numbers, in order, whatever stands beside a pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nmt import score
from nmt.checkpoint import build_model
from nmt.config import Model
from nmt.score import log_probs

CPU = torch.device("cpu")


@pytest.fixture
def model():
    torch.manual_seed(1)
    return build_model(Model(dim=16, heads=2, ffn_dim=32, encoder_layers=1, decoder_layers=2, dropout=0.3), 30, 30)


def sentences(*lengths: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.append(rng.integers(4, 30, n - 1), 3).astype(np.int32) for n in lengths]


SRC, TGT = sentences(5, 1, 90, 12, 3, 8, seed=1), sentences(7, 4, 60, 1, 40, 8, seed=2)


def test_each_token_gets_its_log_probability_given_the_ones_before(model):
    found = log_probs(model, SRC, TGT, CPU)
    model.eval()
    for src, tgt, scores in zip(SRC, TGT, found, strict=True):
        assert len(scores) == len(tgt)
        for t in range(len(tgt)):
            prefix = torch.tensor([[2, *tgt[:t].tolist()]])
            with torch.no_grad():
                logits = model.logits(model(torch.from_numpy(src.astype(np.int64))[None], prefix))
            assert scores[t] == pytest.approx(logits[0, -1].log_softmax(-1)[int(tgt[t])].item(), abs=1e-5)


def test_scores_do_not_depend_on_the_size_of_a_batch(model, monkeypatch: pytest.MonkeyPatch):
    """Case 28: changing the valid batch size does not change the valid loss."""
    usual = log_probs(model, SRC, TGT, CPU)
    for tokens in (1, 50, 100_000):
        monkeypatch.setattr(score, "TOKENS", tokens)
        for one, other in zip(usual, log_probs(model, SRC, TGT, CPU), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_dropout_is_off_and_the_model_goes_on_training(model):
    model.train()
    first, second = log_probs(model, SRC, TGT, CPU), log_probs(model, SRC, TGT, CPU)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert model.training
    model.eval()
    log_probs(model, SRC, TGT, CPU)
    assert not model.training


def test_nothing_to_score_gives_nothing(model):
    assert log_probs(model, [], [], CPU) == []
