"""Log-probabilities of given translations: a teacher-forced pass over ids, and lines in, scores out around it.

A pair's score is what the search would give that translation: the sum of the log-probabilities of its n tokens, the end
of sentence being one, divided by n ** length_penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from nmt import checkpoint, runtime
from nmt.data.batches import collate
from nmt.data.plan import rung
from nmt.errors import ConfigError, DataError, NotFiniteError
from nmt.files import count_lines, read_blocks, read_lines
from nmt.model.transformer import Transformer
from nmt.progress import say
from nmt.tokenizer import EOS, blank

TOKENS = 2048  # padded target places scored at a time: their logits exist at once
LONGEST = 1024  # pieces of a line that are scored, its end not counted
BLOCK = 10_000  # pairs that are sorted by length and scored together


@dataclass
class PairScore:
    """Of one pair; `value` is None where both sides are blank, which no model has seen."""

    value: float | None = None
    tokens: list[str] = field(default_factory=list)  # of the target
    log_probs: list[float] = field(default_factory=list)  # one for each, and one for the end of sentence

    def tree(self) -> dict[str, object]:
        return {"score": self.value, "tokens": self.tokens, "log_probs": self.log_probs}


class Scorer:
    """Scores given pairs with a trained model."""

    def __init__(
        self,
        model: str,
        device: str = "auto",
        precision: str = "auto",
        threads: str | int = "auto",
        length_penalty: float | None = None,
    ) -> None:
        """Loads a MODEL, as Translator does; without a `length_penalty` that of its search counts."""
        found = checkpoint.find(model)
        self.runtime = runtime.choose(device, found.precision(precision), threads)
        self.tokenizer = found.tokenizer()
        self.model = found.load_model().to(self.runtime.device).freeze(self.runtime.dtype)
        self.longest = min(LONGEST + 1, self.model.longest or LONGEST + 1)  # with the end of sentence
        penalty = found.config().search.options.get("length_penalty", 1.0) if length_penalty is None else length_penalty
        self.length_penalty = float(penalty)
        if not -10 <= self.length_penalty <= 10:  # as for a search; nan is not either
            raise ConfigError(f"the length penalty must be from -10 to 10, but is {penalty} instead")

    def stream(
        self, pairs: Iterable[tuple[str, str]], block: int = BLOCK, warn: Callable[[str], None] = say
    ) -> Iterator[PairScore]:
        """The scores of (source, target) lines, in their order, block by block: memory does not grow with the input.

        A pair with one blank side is scored like any other, both being what they are: hardly a translation.
        """
        iterator, first = iter(pairs), 1
        while some := list(islice(iterator, block)):
            scores = [PairScore() for _ in some]
            shown = [i for i, pair in enumerate(some) if not all(map(blank, pair))]
            src, tgt = self._encode([some[i] for i in shown], [first + i for i in shown], warn)
            found = log_probs(self.model, src, tgt, self.runtime.device)
            for i, ids, scored in zip(shown, tgt, found, strict=True):
                tokens = ids[:-1] if ids[-1] == EOS else ids
                value = float(scored.sum(dtype=np.float64)) / len(scored) ** self.length_penalty
                if not math.isfinite(value):
                    raise NotFiniteError.at_line(first + i)
                scores[i] = PairScore(value, self.tokenizer.pieces(tokens), scored.tolist())
            yield from scores
            first += len(some)

    def _encode(
        self, pairs: list[tuple[str, str]], numbers: list[int], warn: Callable[[str], None]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Ids of both sides. A target that is cut has no end of sentence, like a translation cut at its limit."""
        src = self.tokenizer.encode_src([src.strip() for src, _ in pairs])  # as for translating
        tgt = self.tokenizer.encode_tgt([tgt.strip() for _, tgt in pairs])
        for i, number in enumerate(numbers):
            for name, side in (("source", src), ("target", tgt)):
                if len(side[i]) > self.longest:
                    pieces, kept = len(side[i]) - 1, self.longest - 1
                    warn(f"warning: line {number}: the {name} has {pieces:,} pieces, cut to {kept:,}")
                    side[i] = side[i][:kept] if side is tgt else np.append(side[i][:kept], np.int32(EOS))
        return src, tgt


def read_pairs(src: str, tgt: str) -> Iterator[tuple[str, str]]:
    """The lines of two files, side by side. Raises DataError, before any work, if they have not equally many."""
    for path in (src, tgt):
        if path == "-" or Path(path).is_fifo():
            raise DataError(f"{path}: is a pipe, but its lines are counted before they are scored; name a file")
    counts = [sum(map(count_lines, read_blocks(path, BLOCK))) for path in (src, tgt)]
    if counts[0] != counts[1]:
        raise DataError(
            f"{src} has {counts[0]:,} lines, but {tgt} has {counts[1]:,}; they must be aligned line by line"
        )
    return zip(read_lines(src), read_lines(tgt), strict=True)


def log_probs(
    model: Transformer, src: Sequence[np.ndarray], tgt: Sequence[np.ndarray], device: torch.device
) -> list[np.ndarray]:
    """For each pair the natural-log probability of each target token (eos included), given the ones before it.

    `src` and `tgt` are ids that end in eos. The results come in the order of the pairs, and do not depend on which
    pairs stand beside them.
    """
    found: list[np.ndarray] = [np.empty(0)] * len(src)
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        for chosen in _batches(src, tgt):
            scored = _scored(model, [src[i] for i in chosen], [tgt[i] for i in chosen], device)
            for i, part in zip(chosen, scored, strict=True):
                found[i] = part
    model.train(was_training)
    return found


def _scored(model: Transformer, src: list[np.ndarray], tgt: list[np.ndarray], device: torch.device) -> list[np.ndarray]:
    def work(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
        srcs, tgts = [s for s, _ in pairs], [t for _, t in pairs]
        batch = collate(srcs, tgts, (max(map(len, srcs)), max(map(len, tgts))), device)
        states_ND = model(batch.src_BS, batch.tgt_in_BT, src=batch.src, tgt=batch.tgt)[: batch.tokens]
        scores_N = _at_targets(model.logits(states_ND), batch.targets_N).cpu().numpy()
        return np.split(scores_N, np.cumsum([len(ids) for ids in tgts])[:-1])

    def too_much(pair: tuple[np.ndarray, np.ndarray]) -> str:
        return f"for a pair of {len(pair[0]):,} and {len(pair[1]):,} pieces; use another device"

    return runtime.in_halves(work, list(zip(src, tgt, strict=True)), device, too_much)


def _batches(src: Sequence[np.ndarray], tgt: Sequence[np.ndarray]) -> Iterator[list[int]]:
    lengths = rung(np.array([[len(s), len(t)] for s, t in zip(src, tgt, strict=True)]).reshape(-1, 2)).max(axis=1)
    order, start = np.argsort(-lengths, kind="stable").tolist(), 0
    while start < len(order):
        rows = max(1, TOKENS // int(lengths[order[start]]))
        yield order[start : start + rows]
        start += rows


def _at_targets(logits_NV: Tensor, targets_N: Tensor) -> Tensor:
    return logits_NV.float().log_softmax(-1).gather(1, targets_N[:, None])[:, 0]
