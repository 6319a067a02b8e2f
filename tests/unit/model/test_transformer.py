"""The whole model: which weights it shares, how they start, depth, norms, dropout and freezing."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from nmt.checkpoint import build_model
from nmt.config import Model
from nmt.model.transformer import Transformer

D, F = 32, 64


def small(src_vocab: int = 40, tgt_vocab: int = 40, **settings: object) -> Transformer:
    torch.manual_seed(2)
    sizes = {"dim": D, "heads": 4, "ffn_dim": F, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    return build_model(Model(**{**sizes, **settings}), src_vocab, tgt_vocab)  # type: ignore[arg-type]


def count(model: Transformer) -> int:
    return sum(p.numel() for p in model.parameters())


def batch(rows: int = 3, src: int = 7, tgt: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(4, 40, (rows, src)), torch.randint(4, 40, (rows, tgt))


ATTENTION, NORM = 4 * (D * D + D), 2 * D
ENCODER = ATTENTION + (2 * D * F + D + F) + 2 * NORM
DECODER = 2 * ATTENTION + (2 * D * F + D + F) + 3 * NORM


@pytest.mark.parametrize(("tie", "matrices"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_tying_shares_matrices(tie: str, matrices: int):
    model = small(tie=tie)
    assert count(model) == matrices * 40 * D + 2 * ENCODER + 2 * DECODER + 2 * NORM
    assert (model.src_embedding.weight is model.tgt_embedding.weight) == (tie == "all")
    assert (model.projection.weight is model.tgt_embedding.weight) == (tie != "none")


def test_vocabularies_of_two_sizes_tie_only_the_decoder():
    model = small(50, 40, tie="decoder")
    src, tgt = torch.randint(4, 50, (2, 5)), torch.randint(4, 40, (2, 3))
    assert model.logits(model(src, tgt)).shape == (2, 3, 40)
    with pytest.raises(ValueError, match="one vocabulary"):
        small(50, 40, tie="all")


@pytest.mark.parametrize(("encoder", "decoder"), [(1, 3), (4, 1)])
def test_encoder_and_decoder_have_their_own_depth(encoder: int, decoder: int):
    model = small(encoder_layers=encoder, decoder_layers=decoder)
    assert count(model) == 40 * D + encoder * ENCODER + decoder * DECODER + 2 * NORM


def test_swiglu_has_a_gate_beside_the_inner_map():
    assert count(small(activation="swiglu")) - count(small()) == 4 * (D * F + F)


def test_post_norm_ends_in_a_norm_of_its_own_and_has_no_final_one():
    """With the norm last, the states that leave the decoder are normalised already."""
    post, pre = small(norm_first=False).eval(), small().eval()
    assert count(pre) - count(post) == 2 * NORM
    for model in (post, pre):
        states = model(*batch())
        torch.testing.assert_close(states.mean(-1), torch.zeros(3, 6), rtol=0, atol=1e-5)
        torch.testing.assert_close(states.var(-1, unbiased=False), torch.ones(3, 6), rtol=0, atol=1e-3)


def test_initial_weights_follow_the_table():
    """Embeddings N(0, 1/D); Xavier uniform for each logical matrix, also inside a fused one; biases 0, norms 1."""
    torch.manual_seed(2)
    sizes = {"dim": 256, "heads": 4, "ffn_dim": 512, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    model = build_model(Model(**sizes, tie="none"), 1000, 1000)
    assert model.src_embedding.weight.std().item() == pytest.approx(1 / 16, rel=0.02)
    assert model.tgt_embedding.weight.std().item() == pytest.approx(1 / 16, rel=0.02)

    def xavier(matrix: torch.Tensor) -> None:
        bound = math.sqrt(6 / sum(matrix.shape))
        assert matrix.abs().max().item() == pytest.approx(bound, rel=0.01)
        assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)

    decoder = model.decoder[0]
    matrices = [*decoder.self_attention.qkv.weight.chunk(3), *decoder.src_attention.kv.weight.chunk(2)]
    matrices += [decoder.src_attention.q.weight, decoder.self_attention.out.weight]
    matrices += [decoder.ffn.inner.weight, decoder.ffn.outer.weight, model.projection.weight]
    for matrix in [*matrices, *model.encoder[0].self_attention.qkv.weight.chunk(3)]:
        xavier(matrix)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name


def test_one_seed_gives_one_model():
    first, second = small(), small()
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
@pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
def test_every_parameter_is_trained(norm_first: bool, tie: str):
    model = small(norm_first=norm_first, tie=tie, norm="rms", activation="swiglu")
    src, tgt = batch()
    model.logits(model(src, tgt)).log_softmax(-1).gather(-1, tgt[:, :, None]).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        # A bias on the keys shifts all scores of a query alike, which a softmax does not see.
        if not name.endswith(("qkv.bias", "kv.bias")):
            assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
def test_dropout_acts_in_training_and_not_in_evaluation(kind: str):
    model = small(**{"dropout": 0.0, kind: 0.3})
    src, tgt = batch()
    torch.manual_seed(1)
    assert not torch.equal(model(src, tgt), model(src, tgt))
    model.eval()
    assert torch.equal(model(src, tgt), model(src, tgt))
    torch.testing.assert_close(model(src, tgt), small().eval()(src, tgt))


def test_frozen_weights_compute_the_same():
    model = small().eval()
    src, tgt = batch()
    frozen = copy.deepcopy(model).freeze(torch.float32)
    with torch.no_grad():
        assert torch.equal(frozen.logits(frozen(src, tgt)), model.logits(model(src, tgt)))
    assert not any(p.requires_grad for p in frozen.parameters())


def test_freezing_in_bf16_is_casting_at_every_use():
    """Validation of a bf16 run measures the model that is being trained, and not a slightly different one."""
    model = small().eval()
    model.dtype = torch.bfloat16
    src, tgt = batch()
    frozen = copy.deepcopy(model).freeze(torch.bfloat16)
    with torch.no_grad():
        assert model(src, tgt).dtype == torch.bfloat16
        assert torch.equal(frozen.logits(frozen(src, tgt)), model.logits(model(src, tgt)))


def test_bf16_keeps_weights_and_gradients_in_fp32_and_stays_near():
    model = small()
    src, tgt = batch()
    exact = model(src, tgt)
    model.dtype = torch.bfloat16
    states = model(src, tgt)
    torch.testing.assert_close(states.float(), exact, rtol=0, atol=0.15)
    states.float().sum().backward()
    assert {p.grad.dtype for p in model.parameters() if p.grad is not None} == {torch.float32}
