"""CTranslate2 in the place of our own model and search: conversion of weights, and a Translator around the result.

What it does not do as ours: probabilities are normalised over the pieces that may be produced (ours over all, of which
the others have next to none), and there are no log-probabilities of single tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt import checkpoint, runtime
from nmt.checkpoint import ENGINE, Checkpoint
from nmt.choice import options_of
from nmt.data.filters import longest
from nmt.errors import CheckpointError, ConfigError, DeviceError, NmtError
from nmt.jobs import processors
from nmt.model.position import Learned, sinusoids
from nmt.search.methods import SEARCHES, Hypothesis, Sources
from nmt.tokenizer import BOS, EOS, UNK
from nmt.translate import CUDA_BATCH_TOKENS, Translator, replaced

POSITIONS = 4096  # that a converted model has a table of, where they could go on for ever
NAME = "ctranslate2"  # in the state of what was converted, and of the package
BATCH_TOKENS = 4096  # source places of a batch of each worker, beams counted
BATCHES = 16  # handed over at a time for each worker: enough that none waits long for the others
SEARCH_OPTIONS = {"beam", "length_penalty", "max_ratio", "max_extra", "min_length", "max_length"}


def package() -> Any:
    """Raises NmtError where it is not installed."""
    try:
        import ctranslate2
    except ImportError:
        raise NmtError("CTranslate2 is not installed: pip install 'nmt[ctranslate2]'") from None
    return ctranslate2


# --- conversion ---


def convert(found: Checkpoint, place: Path, quantization: str) -> None:
    """Writes the model's weights and vocabularies into a directory, as CTranslate2 reads them."""
    specs = package().specs
    config, model, tokenizer = found.config().model, found.load_model(), found.tokenizer()
    kinds = specs.common_spec.Activation
    activation = {"relu": kinds.RELU, "gelu": kinds.GELU, "swiglu": kinds.SWISH}[config.activation]
    shape = {
        "pre_norm": config.norm_first,
        "activation": activation,
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.norm == "rms",
    }
    if config.position.name == "rotary":  # 0: all of a head's numbers, of which the first half goes with the second
        shape |= {"rotary_dim": 0, "rotary_interleave": False, "rotary_base": config.position.options["base"]}
    spec = specs.TransformerSpec(
        specs.transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **shape),
        specs.transformer_spec.TransformerDecoderSpec(config.decoder_layers, config.heads, **shape),
    )
    for side, layers, norm, position in (
        (spec.encoder, model.encoder, model.encoder_norm, model.src_position),
        (spec.decoder, model.decoder, model.decoder_norm, model.tgt_position),
    ):
        for into, layer in zip(side.layer, layers, strict=True):
            _layer(into, layer)
        if config.norm_first:
            _norm(side.layer_norm, norm)
        if isinstance(position, Learned):
            side.position_encodings.encodings = _array(position.weight)
        elif config.position.name == "sinusoidal":  # without a table it would count positions from 1
            side.position_encodings.encodings = _array(sinusoids(POSITIONS, config.dim))
    spec.encoder.embeddings[0].weight = _array(model.src_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.tgt_embedding.weight)
    spec.decoder.projection.weight = _array(model.projection.weight)
    src, tgt = (side.pieces(range(len(side))) for side in (tokenizer.src, tokenizer.tgt))
    spec.register_source_vocabulary(src)
    spec.register_target_vocabulary(tgt)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = tgt[UNK], tgt[BOS], tgt[EOS]
    spec.config.decoder_start_token = tgt[BOS]
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = 1e-6 if config.norm == "rms" else 1e-5
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(place))


def _layer(into: Any, layer: Any) -> None:
    own = layer.self_attention
    _attention(into.self_attention, layer.self_residual, own.qkv, own.out)
    if hasattr(layer, "src_attention"):
        source = layer.src_attention
        _attention(into.attention, layer.src_residual, source.q, source.kv, source.out)
    _norm(into.ffn.layer_norm, layer.ffn_residual.norm)
    inner, outer = layer.ffn.inner, layer.ffn.outer
    if layer.ffn.activation == "swiglu":  # the gate, which passes the activation, comes first
        for part, w, b in zip(
            (into.ffn.linear_0, into.ffn.linear_0_noact), inner.weight.chunk(2), inner.bias.chunk(2), strict=True
        ):
            _linear(part, w, b)
    else:
        _linear(into.ffn.linear_0, inner.weight, inner.bias)
    _linear(into.ffn.linear_1, outer.weight, outer.bias)


def _attention(into: Any, residual: Any, *linears: Any) -> None:
    _norm(into.layer_norm, residual.norm)
    for one, linear in zip(into.linear, linears, strict=True):
        _linear(one, linear.weight, linear.bias)


def _linear(into: Any, weight: Tensor, bias: Tensor) -> None:
    into.weight, into.bias = _array(weight), _array(bias)


def _norm(into: Any, norm: Any) -> None:
    into.gamma = _array(norm.weight)
    if hasattr(norm, "bias"):
        into.beta = _array(norm.bias)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().numpy()


# --- translation ---


class _Opened:
    """Stands where a Translator has its Transformer."""

    def __init__(self, longest: int) -> None:
        self.longest = longest

    def freeze(self, _: torch.dtype) -> _Opened:
        return self


class EngineTranslator(Translator):
    """Translates with an exported model. All around the search is the Translator's."""

    def __init__(
        self,
        model: str,
        device: str = "auto",
        precision: str = "auto",
        threads: str | int = "auto",
        search: dict[str, Any] | None = None,
        workers: str | int = "auto",
    ) -> None:
        """As a Translator's; MODEL is the directory of an export, and `precision` auto is the one it was exported in.

        `workers` share the lines, each with so many `threads`, in one process that holds the weights once.
        """
        found = checkpoint.find(model)
        if found.state.get(ENGINE) != NAME:
            raise CheckpointError(
                f"{found.directory}: holds no model for CTranslate2; "
                f"make one: nmt export {model} --to DIR --format ctranslate2"
            )
        config = found.config()
        where = runtime.choose(device, precision, 1 if threads == "auto" else threads)
        if where.device.type not in ("cpu", "cuda"):
            raise DeviceError(f"CTranslate2 runs on cpu and cuda, but the device is {where.device}; use --device cpu")
        auto = max(1, processors() // where.threads) if where.device.type == "cpu" else 1
        self.parallel = auto if workers == "auto" else int(workers)
        self.engine = _open(found.directory, where, precision, self.parallel)
        stand_in: Any = _Opened(config.model.position.options.get("limit", POSITIONS))
        settings = replaced(config.search, search or {})
        self._set(stand_in, found.tokenizer(), settings, where, longest(config.data.filters))
        self._belongs_to(config)
        self.usual_batch = CUDA_BATCH_TOKENS if where.device.type == "cuda" else BATCH_TOKENS
        self.asked, self.batch_tokens = self._options(), self.usual_batch

    def _options(self) -> dict[str, Any]:
        """The search's settings as CTranslate2 names them. Raises ConfigError for what it does not have."""
        name, options = self.settings.name, self.settings.options
        defaults = {key: option.default for key, option in options_of(SEARCHES[name]).items()}
        unknown = [key for key in options if key not in SEARCH_OPTIONS and options[key] != defaults[key]]
        if name not in ("greedy", "beam") or unknown:
            what = f"search.{unknown[0]}" if unknown else f"search: {name}"
            raise ConfigError(f"{what}: CTranslate2 does not have it here; leave it out, or translate without --engine")
        filled = defaults | options
        return {
            "beam_size": self.beams,
            "num_hypotheses": self.beams,
            "length_penalty": filled["length_penalty"],
            "min_decoding_length": filled.get("min_length") or 0,
            "suppress_sequences": [[piece] for piece in self.tokenizer.pieces(self.tokenizer.forbidden())],
        }

    def _places(self, batch_tokens: int | None) -> int:
        self.batch_tokens = self.usual_batch if batch_tokens is None else batch_tokens
        return self.batch_tokens * self.parallel * BATCHES

    def search_ids(
        self, src: list[np.ndarray], numbers: Sequence[int] = (), prefixes: Sequence[Sequence[int]] = ()
    ) -> list[list[Hypothesis]]:
        if prefixes:
            raise NmtError("target prefixes need our own engine; translate without --engine")
        limiting: Any = self.search
        limits = limiting.longest(self.model, Sources(torch.empty(0), [len(ids) for ids in src])).tolist()
        found = self._translate(src, max(limits))
        # One limit holds for all that are handed over together: what has gone beyond its own is done again.
        beyond = [i for i, some in enumerate(found) if any(_steps(h) > limits[i] for h in some)]
        for limit in {limits[i] for i in beyond}:
            again = [i for i in beyond if limits[i] == limit]
            for i, some in zip(again, self._translate([src[i] for i in again], limit), strict=True):
                found[i] = some
        return found

    def _translate(self, src: list[np.ndarray], limit: int) -> list[list[Hypothesis]]:
        results = self.engine.translate_batch(
            [self.tokenizer.src.pieces(ids[:-1]) for ids in src],
            max_batch_size=max(self.batch_tokens // self.beams, *(len(ids) for ids in src)),
            batch_type="tokens",
            max_input_length=0,
            max_decoding_length=limit,
            return_scores=True,
            return_end_token=True,
            **self.asked,
        )
        return [[self._hypothesis(*one) for one in zip(r.hypotheses, r.scores, strict=True)] for r in results]

    def _hypothesis(self, pieces: list[str], score: float) -> Hypothesis:
        ids = self.tokenizer.tgt.ids(pieces)
        ended = ids[-1] == EOS
        return Hypothesis(ids[:-1] if ended else ids, score, not ended)


def _steps(found: Hypothesis) -> int:
    """Tokens, an end of sentence counted."""
    return len(found.tokens) + (not found.truncated)


def _open(directory: Path, where: runtime.Runtime, precision: str, workers: int) -> Any:
    types = {"auto": "default", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    try:
        return package().Translator(
            str(directory),
            device=where.device.type,
            device_index=where.device.index or 0,
            compute_type=types[precision],
            inter_threads=workers,
            intra_threads=where.threads,
        )
    except ValueError as error:  # a type that the device does not have
        raise DeviceError(f"CTranslate2: {error}; use --precision auto or fp32") from None
