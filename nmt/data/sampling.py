"""Subwords drawn anew in every epoch, as a function of (seed, epoch, pair): nothing is prepared for it or saved."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from nmt.choice import Positive, Rate
from nmt.data.store import Store
from nmt.errors import ConfigError
from nmt.tokenizer import Tokenizer


class Unsampled:
    """Every line is split the one best way, which was done while preparing."""

    kind, alpha = "", 0.0

    def __init__(self) -> None:
        pass


class BpeDropout:
    """BPE leaves out each merge with probability `rate` (Provilkov et al. 2020)."""

    kind = "bpe"

    def __init__(self, *, rate: Rate = 0.1) -> None:
        self.alpha = rate


class UnigramSampling:
    """Draws from all ways of a unigram model; the smaller `alpha`, the more evenly (Kudo 2018)."""

    kind = "unigram"

    def __init__(self, *, alpha: Positive = 0.2) -> None:
        self.alpha = alpha


Sampling = Unsampled | BpeDropout | UnigramSampling
SAMPLINGS: Mapping[str, Callable[..., Sampling]] = {
    "none": Unsampled,
    "bpe_dropout": BpeDropout,
    "unigram": UnigramSampling,
}


def sampled(store: Store, tokenizer: Tokenizer, sampling: Sampling, seed: int, longest: int | None) -> Store | Sampled:
    """The pairs to train on. Raises ConfigError if the tokenizer cannot be sampled from in this way."""
    if not sampling.alpha:
        return store
    kinds = {tokenizer.src.kind(), tokenizer.tgt.kind()}
    if kinds != {sampling.kind}:
        raise ConfigError(f"train.subword_sampling needs a {sampling.kind} tokenizer, but it is {' and '.join(kinds)}")
    return Sampled(store, tokenizer, sampling.alpha, seed, longest)


@dataclass
class Sampled:
    """A store's pairs with sampled subwords. A line that gets longer than `longest` pieces is split the best way."""

    store: Store
    tokenizer: Tokenizer
    alpha: float
    seed: int
    longest: int | None

    def __post_init__(self) -> None:
        self.draw_src, self.draw_tgt = (side.sampler(self.alpha) for side in (self.tokenizer.src, self.tokenizer.tgt))
        self.current = SampledEpoch(self, 0)

    def __len__(self) -> int:
        return len(self.store)

    def where(self, pair: int) -> str:
        return self.store.where(pair)

    def epoch(self, epoch: int) -> SampledEpoch:
        if self.current.epoch != epoch:
            self.current = SampledEpoch(self, epoch)
        return self.current


class SampledEpoch:
    """The pairs of one epoch; those whose lengths were asked for last are kept in memory."""

    def __init__(self, pairs: Sampled, epoch: int) -> None:
        self.pairs, self.epoch = pairs, epoch
        self.drawn: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def lengths(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As of `Store`, of the sampled pieces."""
        self.pairs.store.lengths(pairs[:0])  # lets the last window go
        self.drawn = {int(pair): self._draw(int(pair)) for pair in np.unique(pairs)}
        lines = [self.drawn[int(pair)] for pair in pairs]
        return np.array([len(src) for src, _ in lines], np.int64), np.array([len(tgt) for _, tgt in lines], np.int64)

    def ids(self, pairs: Iterable[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        found = [self.drawn.get(int(pair)) or self._draw(int(pair)) for pair in pairs]
        return [src for src, _ in found], [tgt for _, tgt in found]

    def _draw(self, pair: int) -> tuple[np.ndarray, np.ndarray]:
        [(src, tgt)] = self.pairs.store.pair_texts([pair])
        ([best_src], [best_tgt]) = self.pairs.store.ids([pair])
        drawn = self.pairs.draw_src(src, self._seed(pair, "src")), self.pairs.draw_tgt(tgt, self._seed(pair, "tgt"))
        return self._short(drawn[0], best_src), self._short(drawn[1], best_tgt)

    def _seed(self, pair: int, side: str) -> int:
        return zlib.crc32(f"{self.pairs.seed} {self.epoch} {pair} {side}".encode())

    def _short(self, drawn: np.ndarray, best: np.ndarray) -> np.ndarray:
        longest = self.pairs.longest
        return best if longest is not None and len(drawn) > longest else drawn.astype(best.dtype)
