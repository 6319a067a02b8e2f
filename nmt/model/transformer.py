"""The encoder-decoder Transformer of "Attention Is All You Need" (Vaswani et al. 2017).

Initialisation:

| weights                                        | drawn from                                             |
|------------------------------------------------|--------------------------------------------------------|
| matrices of attention and feed-forward         | Xavier uniform, each part of a fused matrix by itself  |
| embeddings (also as tied projection)           | N(0, D^-1/2), multiplied by sqrt(D) at the input       |
| projection that is not tied                    | Xavier uniform                                         |
| biases 0; norm weights 1, norm biases 0        |                                                        |
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nmt import runtime
from nmt.model.attention import Attention, Linear, SelfAttention, SourceAttention
from nmt.model.cache import DecoderState, LayerCache
from nmt.model.layers import NORM_TYPES, NORMS, DecoderLayer, EncoderLayer, FeedForward, LayerShape
from nmt.model.position import Position, Sinusoidal
from nmt.packing import PADDED, Padded

PAD = 0


@dataclass(frozen=True)
class Architecture:
    """All sizes of a model."""

    layer: LayerShape
    src_vocab: int
    tgt_vocab: int
    encoder_layers: int
    decoder_layers: int
    tie: str = "all"
    word_dropout: float = 0.0  # share of the tokens whose embedding is zero, in training
    position: Callable[[int], Position] = Sinusoidal


class Transformer(nn.Module):
    def __init__(self, arch: Architecture) -> None:
        super().__init__()
        if arch.tie == "all" and arch.src_vocab != arch.tgt_vocab:
            raise ValueError("tie `all` needs one vocabulary for both sides")
        dim = arch.layer.dim
        self.dim = dim
        self.dropout = arch.layer.dropout
        self.word_dropout = arch.word_dropout
        self.dtype = torch.float32  # of the activations; runtime's choice
        # The projection in that precision, and as the device likes it, once the weights are frozen.
        self.output_VD: Tensor | None = None
        self.packed_output: Tensor | None = None
        self.src_embedding = nn.Embedding(arch.src_vocab, dim)
        self.tgt_embedding = self.src_embedding if arch.tie == "all" else nn.Embedding(arch.tgt_vocab, dim)
        self.projection = self.tgt_embedding if arch.tie != "none" else nn.Embedding(arch.tgt_vocab, dim)
        self.src_position = arch.position(dim)
        self.tgt_position = arch.position(dim)
        encoder = nn.ModuleList(EncoderLayer(arch.layer) for _ in range(arch.encoder_layers))
        decoder = nn.ModuleList(DecoderLayer(arch.layer) for _ in range(arch.decoder_layers))
        self.encoder = cast(Sequence[EncoderLayer], encoder)
        self.decoder = cast(Sequence[DecoderLayer], decoder)
        # With the norm first, the sum that leaves the last layer has not been normalised yet.
        last = NORMS[arch.layer.norm] if arch.layer.norm_first else lambda _: nn.Identity()
        self.encoder_norm, self.decoder_norm = last(dim), last(dim)
        self.initialise()

    def initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.dim**-0.5)
            elif isinstance(module, Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        for module in self.modules():  # after the loop above, which has treated a fused matrix as one
            parts: tuple[Tensor, ...] = ()
            if isinstance(module, SelfAttention):
                parts = module.qkv.weight.chunk(3)
            elif isinstance(module, SourceAttention):
                parts = module.kv.weight.chunk(2)
            for part in parts:
                nn.init.xavier_uniform_(part)
        if self.projection is not self.tgt_embedding:
            nn.init.xavier_uniform_(self.projection.weight)

    def forward(
        self,
        src_BS: Tensor,
        tgt_in_BT: Tensor,
        src_kept_BS: Tensor | None = None,
        tgt_kept_BT: Tensor | None = None,
        src: Padded = PADDED,
        tgt: Padded = PADDED,
    ) -> Tensor:
        """States of the decoder for given target tokens, [B, T, D]; `logits` or an objective projects them.

        Where a mask of tokens to keep is False, the token's embedding is zero. With `src` and `tgt` packed, padding
        costs next to nothing, and the states are [N, D] in the rows of `tgt`.
        """
        memory, mask_BS = self.encode(src_BS, src_kept_BS, src)
        x = self._embed(self.tgt_embedding, self.tgt_position, tgt_in_BT, 0, tgt_kept_BT, tgt)
        for layer in self.decoder:
            x = layer(x, self.tgt_position, memory, mask_BS, src, tgt)
        return self.decoder_norm(x)  # type: ignore[no-any-return]

    def encode(self, src_BS: Tensor, kept_BS: Tensor | None = None, src: Padded = PADDED) -> tuple[Tensor, Tensor]:
        """-> states of the encoder, [B, S, D] or packed, and the mask [B, S] of real tokens."""
        mask_BS = src_BS != PAD
        x = self._embed(self.src_embedding, self.src_position, src_BS, 0, kept_BS, src)
        for layer in self.encoder:
            x = layer(x, self.src_position, mask_BS, src)
        return self.encoder_norm(x), mask_BS

    def logits(self, states: Tensor) -> Tensor:
        """[..., D] -> [..., V]."""
        if self.packed_output is not None:
            return runtime.packed_linear(states, self.packed_output)
        weight = self.projection.weight if self.output_VD is None else self.output_VD
        return F.linear(states, weight.to(states.dtype))

    def freeze(self, dtype: torch.dtype) -> Transformer:
        """Casts and packs the weights once, for inference in `dtype`, instead of at every use."""
        self.eval().requires_grad_(False)
        self.dtype = dtype
        self.output_VD = self.projection.weight.to(dtype)
        self.packed_output = runtime.pack(self.output_VD)
        for module in self.modules():
            if isinstance(module, Linear):
                module.freeze(dtype)
            elif isinstance(module, NORM_TYPES):
                module.to(dtype)
        return self

    @property
    def longest(self) -> int | None:
        """The most positions of a sequence, where learned positions limit them."""
        return self.tgt_position.limit

    def start(self, src_BS: Tensor, beams: int) -> DecoderState:
        """Encodes the source and lays out an empty decoder state: a row a sentence, with room for so many `beams`."""
        memory_BSD, mask_BS = self.encode(src_BS)
        layers = [LayerCache(*layer.src_attention.project(memory_BSD), beams) for layer in self.decoder]
        return DecoderState.empty(layers, mask_BS, beams)

    def step(self, tokens_R: Tensor, state: DecoderState) -> Tensor:
        """Log-probabilities [R, V] in fp32 of the token that follows; extends the state by one position."""
        at, mask_BWP = state.length, state.extend()
        state.latest = None
        x_R1D = self._embed(self.tgt_embedding, self.tgt_position, tokens_R[:, None], at)
        for layer, cache in zip(self.decoder, state.layers, strict=True):
            x_R1D = layer.step(x_R1D, self.tgt_position, cache, at, mask_BWP, state.mask_BS)
        states_RD = self.decoder_norm(x_R1D[:, 0])
        logits_RV = self.logits(states_RD)
        state.latest = states_RD, logits_RV
        return logits_RV.float().log_softmax(-1)

    def correction(self, rows_N: Tensor, tokens_N: Tensor, state: DecoderState) -> Tensor | None:
        """What makes up for the rounding of the last step's logits, coarse in bf16: exact minus rounded, [N]."""
        if self.dtype == torch.float32 or state.latest is None or self.output_VD is None:
            return None
        states_RD, logits_RV = state.latest
        exact_N = (self.output_VD[tokens_N].float() * states_RD[rows_N].float()).sum(-1)
        return exact_N - logits_RV[rows_N, tokens_N].float()

    def _embed(
        self,
        table: nn.Embedding,
        position: Position,
        ids_BT: Tensor,
        start: int,
        kept_BT: Tensor | None = None,
        tokens: Padded = PADDED,
    ) -> Tensor:
        x_BTD = table(ids_BT) * math.sqrt(self.dim)
        if self.training and self.word_dropout:
            drawn_BT = torch.rand(ids_BT.shape, device=ids_BT.device) >= self.word_dropout
            kept_BT = drawn_BT if kept_BT is None else kept_BT & drawn_BT
        if kept_BT is not None:
            x_BTD = x_BTD * kept_BT[:, :, None]
        x = tokens.pack(position.embed(x_BTD, start).to(self.dtype))
        return runtime.dropout(x, self.dropout if self.training else 0.0)

    if TYPE_CHECKING:
        __call__ = forward


@contextlib.contextmanager
def watch(model: Transformer) -> Iterator[dict[str, list[Tensor]]]:
    """Collects attention weights and feed-forward inputs by module name, for every call inside the block.

    Weights are [B, H, T, S], inputs [B, T, D]. Outside the block it costs nothing.
    """
    seen: dict[str, list[Tensor]] = {}
    watched = {n: m for n, m in model.named_modules() if isinstance(m, (Attention, FeedForward))}
    for name, module in watched.items():
        module.watcher = seen.setdefault(name, []).append
    try:
        yield seen
    finally:
        for module in watched.values():
            module.watcher = None
