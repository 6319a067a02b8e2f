"""Case 48: decoding with a cache gives what recomputing every prefix gives, whatever is done to the rows."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from nmt.checkpoint import build_model
from nmt.choice import Choice
from nmt.config import Model
from nmt.model.cache import DecoderState, LayerCache
from nmt.model.layers import LayerShape
from nmt.model.position import Position
from nmt.model.transformer import Architecture, Transformer

VOCAB = 30


def small(**settings: object) -> Transformer:
    torch.manual_seed(3)
    sizes = {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    return build_model(Model(**{**sizes, **settings}), VOCAB, VOCAB).eval()  # type: ignore[arg-type]


def sources(*lengths: int) -> Tensor:
    src = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        src[row, :length] = torch.randint(4, VOCAB, (length,))
        src[row, length - 1] = 3
    return src


def fully(model: Transformer, src: Tensor, prefixes: Tensor) -> Tensor:
    """Log-probabilities of the token after each prefix, without any cache."""
    return model.logits(model(src, prefixes)[:, -1]).log_softmax(-1)


VARIANTS = {
    "pre-norm": {},
    "post-norm": {"norm_first": False},
    "rms, swiglu": {"norm": "rms", "activation": "swiglu"},
    "gelu, untied": {"activation": "gelu", "tie": "none"},
    "rotary": {"position": Choice("rotary"), "norm": "rms"},
    "learned positions": {"position": Choice("learned", {"limit": 100}), "tie": "decoder"},
    "decoder deeper than encoder": {"encoder_layers": 1, "decoder_layers": 3},
}


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=list(VARIANTS))
def test_each_step_equals_a_full_recomputation(settings: dict[str, object]):
    model, src = small(**settings), sources(9, 4, 1)
    tokens = torch.cat([torch.full((3, 1), 2), torch.randint(4, VOCAB, (3, 11))], dim=1)
    with torch.no_grad():
        state = model.start(src, 1)
        for t in range(tokens.shape[1]):
            stepped = model.step(tokens[:, t], state)
            torch.testing.assert_close(stepped, fully(model, src, tokens[:, : t + 1]), rtol=0, atol=1e-5)
            assert state.length == t + 1


@pytest.mark.parametrize("beams", [1, 3])
def test_rows_reordered_and_dropped_go_on_as_if_recomputed(beams: int):
    """Beams change places within their sentence at every step, and sentences leave; 70 steps cross two blocks."""
    model, src = small(), sources(6, 11, 3, 8)
    count = len(src)
    rng = torch.Generator().manual_seed(5)
    with torch.no_grad():
        state = model.start(src, beams)
        prefixes, width = torch.full((count, 1), 2), 1  # all beams come from one
        for step in range(70):
            stepped = model.step(prefixes[:, -1], state)
            if step % 6 == 0 or step > 60:
                full = fully(model, src.repeat_interleave(width, 0), prefixes)
                torch.testing.assert_close(stepped, full, rtol=0, atol=2e-5)
            within = torch.randint(0, width, (count, beams), generator=rng)
            rows, width = (within + width * torch.arange(count)[:, None]).flatten(), beams
            state.follow(within)
            if step in (20, 45):
                kept = torch.tensor([3, 1]) if count > 2 else torch.tensor([1])
                rows = rows.view(count, beams)[kept].flatten()
                src, count = src[kept], len(kept)
                state.keep(kept)
            following = torch.randint(4, VOCAB, (len(rows), 1), generator=rng)
            prefixes = torch.cat([prefixes[rows], following], dim=1)
    assert count == 1


def test_a_correction_makes_up_for_rounded_logits():
    """In bf16; in fp32 there is nothing to make up for."""
    model, src = small(), sources(6, 11)
    assert model.correction(torch.tensor([0]), torch.tensor([5]), model.start(src, 1)) is None
    frozen = copy.deepcopy(model).freeze(torch.bfloat16)
    rows, tokens = torch.tensor([0, 1, 1, 0]), torch.tensor([5, 6, 7, 8])
    with torch.no_grad():
        state = frozen.start(src, 1)
        scores = frozen.step(torch.tensor([2, 2]), state)
        assert state.latest is not None and frozen.output_VD is not None
        states, logits = state.latest
        exact = (states.double() @ frozen.output_VD.double().T)[rows, tokens]
        change = frozen.correction(rows, tokens, state)
    assert change is not None and change.any()
    torch.testing.assert_close((logits[rows, tokens].float() + change).double(), exact, rtol=0, atol=1e-5)
    assert scores.dtype == torch.float32


def test_the_source_is_held_once_per_sentence_and_not_once_per_beam():
    model, src = small(), sources(5, 7)
    with torch.no_grad():
        state = model.start(src, 4)
        state.follow(torch.zeros(2, 4, dtype=torch.long))
        model.step(torch.full((8,), 2), state)
    for layer in state.layers:
        assert layer.src_keys_BHSK.shape == (2, 2, 7, 8)
        assert layer.keys_BHPK.shape[0] == 2


def test_the_cache_grows_and_keeps_what_it_held():
    cache = LayerCache(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2), beams=2)
    state = DecoderState.empty([cache], torch.ones(1, 1, dtype=torch.bool), beams=2)
    state.follow(torch.zeros(1, 2, dtype=torch.long))
    written = torch.arange(2 * 100 * 2.0).view(2, 1, 100, 2)
    for at in range(100):
        mask_BWP = state.extend()
        cache.store(written[:, :, at : at + 1], -written[:, :, at : at + 1], at)
        for beam in range(2):
            own = mask_BWP[0, beam]
            assert own.nonzero()[:, 0].tolist() == [2 * t + beam for t in range(at + 1)]
            assert torch.equal(cache.keys_BHPK[0, :, own], written[beam, :, : at + 1])
            assert torch.equal(cache.values_BHPK[0, :, own], -written[beam, :, : at + 1])
        assert not cache.keys_BHPK[:, :, 2 * (at + 1) :].any()


class Turning(Position):
    """A position of the hooks `rotate` and `bias`: pairs of features turn, and far keys score less."""

    def rotate(self, x_BHTK: Tensor, start: int) -> Tensor:
        angles = 0.3 * torch.arange(start, start + x_BHTK.shape[2])[:, None]
        even, odd = x_BHTK.chunk(2, dim=-1)
        return torch.cat([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], dim=-1)

    def bias(self, query_start: int, queries: int, keys: int) -> Tensor:
        return -0.1 * (torch.arange(query_start, query_start + queries)[:, None] - torch.arange(keys)).abs().float()


def test_positions_that_rotate_or_add_a_bias_work_with_the_cache():
    """The hooks get the offset of a cached step, and the keys in the cache keep their own positions."""
    torch.manual_seed(1)
    model = Transformer(Architecture(LayerShape(16, 2, 32), VOCAB, VOCAB, 1, 2, "all", Turning)).eval()
    src, tokens = sources(6, 3), torch.randint(4, VOCAB, (2, 9))
    with torch.no_grad():
        state = model.start(src, 1)
        for t in range(9):
            stepped = model.step(tokens[:, t], state)
            torch.testing.assert_close(stepped, fully(model, src, tokens[:, : t + 1]), rtol=0, atol=1e-5)
