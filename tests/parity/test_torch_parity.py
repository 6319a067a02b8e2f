"""The model and the search against implementations that somebody else wrote, or naive ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.checkpoint import build_model
from nmt.config import Model
from nmt.model.attention import attend, attend_plainly
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.model.transformer import Transformer
from nmt.search.constraints import Constraints
from nmt.search.methods import Beam, Greedy, Hypothesis, Sources

D, HEADS, FFN, VOCAB = 32, 4, 48, 40


# --- the model against torch.nn ---


def ours(**settings: Any) -> Transformer:
    torch.manual_seed(1)
    sizes = {"dim": D, "heads": HEADS, "ffn_dim": FFN, "encoder_layers": 3, "decoder_layers": 2, "dropout": 0.0}
    model = build_model(Model(**{**sizes, **settings}), VOCAB, VOCAB).double()
    model.dtype = torch.float64
    # Biases and norms start as zeros and ones, which would hide a mistake in them.
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def copy_into(target: nn.Module, **tensors: Tensor) -> None:
    with torch.no_grad():
        for name, tensor in tensors.items():
            target.get_parameter(name.replace("__", ".")).copy_(tensor)


def torch_encoder_layer(layer: EncoderLayer, norm_first: bool, activation: str) -> nn.TransformerEncoderLayer:
    theirs = nn.TransformerEncoderLayer(
        D, HEADS, FFN, 0.0, activation, batch_first=True, norm_first=norm_first
    ).double()
    copy_into(theirs, **_self_attention(layer), **_feed_forward(layer))
    copy_into(theirs.norm1, **dict(layer.self_residual.norm.named_parameters()))
    copy_into(theirs.norm2, **dict(layer.ffn_residual.norm.named_parameters()))
    return theirs


def torch_decoder_layer(layer: DecoderLayer, norm_first: bool, activation: str) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(
        D, HEADS, FFN, 0.0, activation, batch_first=True, norm_first=norm_first
    ).double()
    source = layer.src_attention
    copy_into(theirs, **_self_attention(layer), **_feed_forward(layer))
    copy_into(
        theirs.multihead_attn,
        in_proj_weight=torch.cat([source.q.weight, source.kv.weight]),
        in_proj_bias=torch.cat([source.q.bias, source.kv.bias]),
        out_proj__weight=source.out.weight,
        out_proj__bias=source.out.bias,
    )
    copy_into(theirs.norm1, **dict(layer.self_residual.norm.named_parameters()))
    copy_into(theirs.norm2, **dict(layer.src_residual.norm.named_parameters()))
    copy_into(theirs.norm3, **dict(layer.ffn_residual.norm.named_parameters()))
    return theirs


def _self_attention(layer: EncoderLayer | DecoderLayer) -> dict[str, Tensor]:
    attention = layer.self_attention
    return {
        "self_attn__in_proj_weight": attention.qkv.weight,
        "self_attn__in_proj_bias": attention.qkv.bias,
        "self_attn__out_proj__weight": attention.out.weight,
        "self_attn__out_proj__bias": attention.out.bias,
    }


def _feed_forward(layer: EncoderLayer | DecoderLayer) -> dict[str, Tensor]:
    inner, outer = layer.ffn.inner, layer.ffn.outer
    return {
        "linear1__weight": inner.weight,
        "linear1__bias": inner.bias,
        "linear2__weight": outer.weight,
        "linear2__bias": outer.bias,
    }


@pytest.mark.parametrize("norm_first", [True, False], ids=["pre-norm", "post-norm"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("graph", [True, False], ids=["training", "inference"])
def test_encoder_and_decoder_are_those_of_torch(norm_first: bool, activation: str, graph: bool):
    """In fp64, with our weights in torch's layers: the same states to 1e-10, padding and causal mask included."""
    model = ours(norm_first=norm_first, activation=activation, tie="none")
    src = torch.randint(4, VOCAB, (3, 9))
    src[0, 6:], src[2, 1:] = 0, 0
    tgt = torch.randint(4, VOCAB, (3, 7))

    encoder = nn.ModuleList(torch_encoder_layer(layer, norm_first, activation) for layer in model.encoder)
    decoder = nn.ModuleList(torch_decoder_layer(layer, norm_first, activation) for layer in model.decoder)
    padding, future = src == 0, nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    # Modules in training mode take torch's plain path and not a fused one of its own.
    with torch.set_grad_enabled(graph):
        memory = model.src_position.embed(model.src_embedding(src) * math.sqrt(D), 0)
        for layer in encoder:
            memory = layer(memory, src_key_padding_mask=padding)
        states = model.tgt_position.embed(model.tgt_embedding(tgt) * math.sqrt(D), 0)
        if norm_first:
            memory = F.layer_norm(memory, (D,), model.encoder_norm.weight, model.encoder_norm.bias)
        for layer in decoder:
            states = layer(states, memory, tgt_mask=future, memory_key_padding_mask=padding)
        if norm_first:
            states = F.layer_norm(states, (D,), model.decoder_norm.weight, model.decoder_norm.bias)
        our_memory, mask = model.encode(src)
        our_states = model(src, tgt)
    torch.testing.assert_close(our_memory[mask], memory[mask], rtol=0, atol=1e-10)
    torch.testing.assert_close(our_states, states, rtol=0, atol=1e-10)


def naive_rms(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight


def test_rms_norm_and_swiglu_are_their_formulas():
    model = ours(norm="rms", activation="swiglu")
    layer, x = model.encoder[0], torch.randn(2, 5, D, dtype=torch.float64, requires_grad=True)
    norm, theirs = layer.ffn_residual.norm, nn.RMSNorm(D, eps=1e-6, dtype=torch.float64)
    copy_into(theirs, weight=norm.weight)
    torch.testing.assert_close(norm(x), naive_rms(x, norm.weight))
    torch.testing.assert_close(norm(x), theirs(x))
    direction = torch.randn_like(x)
    gradients = [torch.autograd.grad((rms(x) * direction).sum(), x)[0] for rms in (norm, theirs)]
    torch.testing.assert_close(*gradients)
    gate, value = layer.ffn.inner(x)[..., :FFN], layer.ffn.inner(x)[..., FFN:]
    torch.testing.assert_close(layer.ffn(x), layer.ffn.outer(gate * torch.sigmoid(gate) * value))


# --- attention: the fused kernel and the plain path ---


def masks() -> dict[str, tuple[Tensor | None, bool]]:
    keys = torch.tensor([[True] * 6, [True, True, True, False, False, False]])[:, None, None, :]
    bias = torch.randn(1, 3, 5, 6, dtype=torch.float64)
    return {"none": (None, False), "causal": (None, True), "keys": (keys, False), "bias": (bias, False)}


@pytest.mark.parametrize("name", masks())
def test_the_fused_kernel_and_the_plain_path_agree(name: str):
    """Outputs of both paths of `attend`, and the gradients of the plain one against those of torch's kernel."""
    torch.manual_seed(1)
    mask, causal = masks()[name]
    queries = 6 if causal else 5
    q = torch.randn(2, 3, queries, 8, dtype=torch.float64, requires_grad=True)
    k, v = (torch.randn(2, 3, 6, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
    plain, _ = attend_plainly(q, k, v, mask, causal, 0.0)
    fused = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    torch.testing.assert_close(plain, fused)
    torch.testing.assert_close(attend(q, k, v, mask, causal, 0.0), fused)
    with torch.no_grad():
        torch.testing.assert_close(attend(q, k, v, mask, causal, 0.0), fused)
    weights = torch.randn_like(plain)
    ours_, theirs = (torch.autograd.grad((out * weights).sum(), (q, k, v), retain_graph=True) for out in (plain, fused))
    for a, b in zip(ours_, theirs, strict=True):
        torch.testing.assert_close(a, b)


# --- search against naive search on a table ---

EOS, TOKENS = 3, (4, 5, 6)  # with the end of sentence, a vocabulary of 4
Prefix = tuple[int, ...]


class TableState:
    def __init__(self, sentences: list[int], most: int) -> None:
        self.prefixes: list[Prefix] = [()] * len(sentences)
        self.sentences, self.most = sentences, most

    @property
    def beams(self) -> int:
        return len(self.prefixes) // len(self.sentences)

    def follow(self, from_BW: Tensor) -> None:
        assert len(from_BW) == len(self.sentences) and from_BW.shape[1] <= self.most
        rows_BW = from_BW + self.beams * torch.arange(len(from_BW))[:, None]
        self.prefixes = [self.prefixes[row] for row in rows_BW.flatten().tolist()]

    def keep(self, sentences: Tensor) -> None:
        beams = self.beams
        self.prefixes = [self.prefixes[s * beams + w] for s in sentences.tolist() for w in range(beams)]
        self.sentences = [self.sentences[s] for s in sentences.tolist()]


class TableModel:
    """Random but fixed probabilities for each sentence and each prefix: its state must follow every reordering."""

    longest: int | None = None

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rows: dict[tuple[int, Prefix], list[float]] = {}

    def log_probs(self, sentence: int, prefix: Prefix) -> list[float]:
        key = (sentence, prefix)
        if key not in self.rows:
            rng = torch.Generator().manual_seed(hash((self.seed, *key)) % 2**31)
            scores = 1.5 * torch.randn(7, generator=rng, dtype=torch.float64)
            scores[:3] = -math.inf
            self.rows[key] = scores.log_softmax(-1).tolist()
        return self.rows[key]

    def correction(self, rows_N: Tensor, tokens_N: Tensor, state: TableState) -> None:
        """Nothing is rounded."""

    def start(self, src_BS: Tensor, beams: int) -> TableState:
        return TableState(src_BS[:, 0].tolist(), beams)

    def step(self, tokens_R: Tensor, state: TableState) -> Tensor:
        # Every row starts with a bos, which is no part of a prefix.
        tokens = [[token] if token != 2 else [] for token in tokens_R.tolist()]
        state.prefixes = [(*prefix, *token) for prefix, token in zip(state.prefixes, tokens, strict=True)]
        rows = [self.log_probs(state.sentences[i // state.beams], p) for i, p in enumerate(state.prefixes)]
        return torch.tensor(rows, dtype=torch.float32)


def normalised(total: float, length: int, penalty: float) -> float:
    """`length` counts the end of sentence."""
    return total / length**penalty


def every_hypothesis(model: TableModel, sentence: int, longest: int, penalty: float) -> list[Hypothesis]:
    """All token sequences of at most `longest` tokens with their scores; those of full length need no end."""
    found = []
    for length in range(longest + 1):
        for tokens in itertools.product(TOKENS, repeat=length):
            total = sum(model.log_probs(sentence, tokens[:i])[tokens[i]] for i in range(length))
            if length == longest:
                found.append(Hypothesis(list(tokens), normalised(total, length, penalty), True))
            else:
                total += model.log_probs(sentence, tokens)[EOS]
                found.append(Hypothesis(list(tokens), normalised(total, length + 1, penalty), False))
    return sorted(found, key=lambda h: -h.score)


def naive_beam(model: TableModel, sentence: int, width: int, longest: int, penalty: float) -> list[Hypothesis]:
    """The documented rule, sentence by sentence, in lists."""
    beams: list[tuple[float, Prefix]] = [(0.0, ())]
    done: list[Hypothesis] = []
    for length in range(1, longest + 1):
        ways = [
            (b + p, (*pre, i)) for b, pre in beams for i, p in enumerate(model.log_probs(sentence, pre)) if i >= EOS
        ]
        ways = sorted(ways, reverse=True)[: 2 * width]
        for total, tokens in ways[:width]:
            if tokens[-1] == EOS:
                done.append(Hypothesis(list(tokens[:-1]), normalised(total, length, penalty), False))
            elif length == longest:
                done.append(Hypothesis(list(tokens), normalised(total, length, penalty), True))
        beams = [way for way in ways if way[1][-1] != EOS][:width]
        if len(done) >= width:
            break
    return sorted(done, key=lambda h: -h.score)


def assert_same(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    assert [(h.tokens, h.truncated) for h in found] == [(h.tokens, h.truncated) for h in expected]
    assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-5)


PENALTIES = (-1.0, 0.0, 0.6, 1.0, 2.0)
SENTENCES = [11, 12, 13, 14, 15, 16]
LIMIT = {"max_ratio": 0.0, "max_extra": 5}


def run(search: Any, model: TableModel, sentences: list[int]) -> list[list[Hypothesis]]:
    sources = Sources(torch.tensor(sentences)[:, None], [1] * len(sentences))
    return search(model, sources, Constraints(torch.tensor([0, 1, 2])))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_beam_search_is_the_naive_one(width: int, penalty: float):
    """Batched, with sentences that end at different steps, for several models."""
    for seed in range(5):
        model = TableModel(seed)
        found = run(Beam(beam=width, length_penalty=penalty, **LIMIT), model, SENTENCES)
        for sentence, hypotheses in zip(SENTENCES, found, strict=True):
            assert_same(hypotheses, naive_beam(model, sentence, width, 5, penalty))


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_beam_that_holds_everything_is_exhaustive_search(penalty: float):
    """Case 50: vocabulary 4, length at most 5; the stop rule is right for every penalty, negative ones included."""
    model, everything = TableModel(3), sum(3**n for n in range(6))
    found = run(Beam(beam=everything, length_penalty=penalty, **LIMIT), model, SENTENCES[:2])
    for sentence, hypotheses in zip(SENTENCES, found, strict=False):
        expected = every_hypothesis(model, sentence, 5, penalty)
        assert len(expected) == everything
        assert_same(hypotheses[:20], expected[:20])
        assert len(hypotheses) == everything


@pytest.mark.parametrize("penalty", PENALTIES)
def test_an_exact_stop_finds_the_best_though_many_have_retired(penalty: float):
    """Case 50: a beam that loses no prefix, but is full of worse hypotheses before the best one ends."""
    for seed in range(6):
        model = TableModel(seed)
        exact = run(Beam(beam=165, stop="exact", length_penalty=penalty, **LIMIT), model, SENTENCES[:3])
        for sentence, found in zip(SENTENCES, exact, strict=False):
            assert_same(found[:100], every_hypothesis(model, sentence, 5, penalty)[:100])


@pytest.mark.parametrize("penalty", PENALTIES)
def test_greedy_search_is_a_beam_of_one(penalty: float):
    """Case 47: tokens and scores."""
    for seed in range(10):
        model = TableModel(seed)
        greedy = run(Greedy(length_penalty=penalty, **LIMIT), model, SENTENCES)
        beam = run(Beam(beam=1, length_penalty=penalty, **LIMIT), model, SENTENCES)
        for one, other in zip(greedy, beam, strict=True):
            assert_same(one, other)
