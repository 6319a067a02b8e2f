"""Search for the best translation: token ids in, token ids out. Knows a model only as a StepModel.

Scores: a hypothesis has the score sum of log-probabilities / n ** length_penalty, n being the number of its tokens, and
of these numbers: an end of sentence counts, in the sum as in n.

Shapes: B sentences, W beams, R = B * W rows, V vocabulary, T tokens so far.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from nmt.choice import Count, Natural, NotNegative, Positive, Range
from nmt.packing import round_size
from nmt.search.best import best_continuations, top
from nmt.search.constraints import Constraints, forced, no_repeats

BOS, EOS = 2, 3


class SearchState(Protocol):
    """What a model keeps between steps; the search owns it."""

    def follow(self, from_BW: Tensor) -> None:
        """Beam w of sentence b goes on from what was its beam from_BW[b, w]; there may be more beams than before."""

    def keep(self, sentences: Tensor) -> None:
        """Sentence i is what sentence sentences[i] was; the others are over."""


State = TypeVar("State", bound=SearchState)


class StepModel(Protocol[State]):
    """A model that predicts one token at a time."""

    @property
    def longest(self) -> int | None:
        """The most target positions that it can represent; None for any number."""

    def start(self, src_BS: Tensor, beams: int) -> State:
        """A state with one row for each sentence, which may follow it with as many as there are `beams`."""

    def step(self, tokens_R: Tensor, state: State) -> Tensor:
        """-> log-probabilities [R, V] in fp32 of the next token; may be written to by the search."""

    def correction(self, rows_N: Tensor, tokens_N: Tensor, state: State) -> Tensor | None:
        """What to add to some logits of the last step to make them exact; None for nothing."""


@dataclass
class Sources:
    """Sentences to translate."""

    ids_BS: Tensor
    lengths: Sequence[int]  # with their ends of sentence
    numbers: Sequence[int] = ()  # of their lines, which random numbers depend on
    prefixes: Sequence[Sequence[int]] = ()  # target ids that each translation begins with


@dataclass
class Hypothesis:
    tokens: list[int]  # without bos and eos
    score: float
    truncated: bool = False  # the length limit ended it, not an end of sentence
    log_probs: list[float] = field(default_factory=list)  # of the tokens, then of the end of sentence if there is one


class Search(Protocol):
    def __call__(self, model: StepModel[Any], sources: Sources, constraints: Constraints) -> list[list[Hypothesis]]:
        """For every source its hypotheses, best first."""


class _Limits:
    """The options that all searches share."""

    def __init__(
        self,
        length_penalty: float,
        min_length: int,
        max_length: int,
        max_ratio: float,
        max_extra: int,
        no_repeat_ngram: int,
    ) -> None:
        self.length_penalty = length_penalty
        self.min_length = min_length
        self.max_length = max_length
        self.max_ratio = max_ratio
        self.max_extra = max_extra
        self.no_repeat_ngram = no_repeat_ngram

    def longest(self, model: StepModel[Any], sources: Sources) -> Tensor:
        """The most tokens of each translation: max_ratio * S + max_extra beyond its prefix, and max_length unless it is
        0; S counts the source's end of sentence."""
        most = min(model.longest or sys.maxsize, self.max_length or sys.maxsize)
        given = [len(prefix) for prefix in sources.prefixes] or [0] * len(sources.lengths)
        limits = [
            min(most, begun + max(1, int(self.max_ratio * length + self.max_extra)))
            for begun, length in zip(given, sources.lengths, strict=True)
        ]
        return torch.tensor(limits, device=sources.ids_BS.device)

    def constrain(
        self,
        scores_RV: Tensor,
        history_RT: Tensor,
        constraints: Constraints,
        prefixes: Sequence[Sequence[int]],
        alive: Tensor,
    ) -> Tensor:
        """The scores, -inf for what must not follow; `alive` are the sentences of the rows."""
        length = history_RT.shape[1]
        rows, tokens = forced(prefixes, alive, len(scores_RV), length)
        allowed = scores_RV[rows, tokens]  # in spite of all that follows
        constraints.apply(scores_RV, history_RT)
        if length < self.min_length:
            scores_RV[:, EOS] = -torch.inf
        if self.no_repeat_ngram:
            no_repeats(scores_RV, history_RT, self.no_repeat_ngram)
        scores_RV[rows] = -torch.inf
        scores_RV[rows, tokens] = allowed
        return scores_RV

    def hypothesis(self, tokens: list[int], log_probs: list[float]) -> Hypothesis:
        """From all tokens, the end of sentence among them if there is one, and their log-probabilities."""
        ended = tokens[-1] == EOS
        tokens = tokens[:-1] if ended else tokens
        return Hypothesis(tokens, self.score(sum(log_probs), len(log_probs)), not ended, log_probs)

    def score(self, total: float, length: int) -> float:
        return float(total / length**self.length_penalty)


class _OneByOne(_Limits, ABC):
    """A single hypothesis for each sentence, a token at a time."""

    @abstractmethod
    def choose(self, scores_BV: Tensor, numbers: Sequence[int], step: int) -> Tensor:
        """The next tokens, [B]; `numbers` are those of the lines."""

    def __call__(self, model: StepModel[Any], sources: Sources, constraints: Constraints) -> list[list[Hypothesis]]:
        device, count = sources.ids_BS.device, len(sources.lengths)
        found: list[list[Hypothesis]] = [[] for _ in range(count)]
        limits_B = self.longest(model, sources)
        numbers_B = torch.tensor(sources.numbers or range(count))
        alive_B = torch.arange(count, device=device)
        tokens_B = torch.full_like(alive_B, BOS)
        history_BT = torch.empty(count, 0, dtype=torch.long, device=device)
        log_probs_BT = torch.empty(count, 0, device=device)
        over_B = torch.zeros_like(alive_B, dtype=torch.bool)
        state = model.start(sources.ids_BS, 1)
        while not bool(over_B.all()):
            scores_BV = model.step(tokens_B, state)
            _sharpen(scores_BV, model, state)
            self.constrain(scores_BV, history_BT, constraints, sources.prefixes, alive_B)
            tokens_B = self.choose(scores_BV, numbers_B[alive_B.cpu()].tolist(), history_BT.shape[1])
            log_probs_BT = torch.cat([log_probs_BT, scores_BV.gather(1, tokens_B[:, None])], dim=1)
            del scores_BV  # as large as all else, and of no use while the next ones are made
            history_BT = torch.cat([history_BT, tokens_B[:, None]], dim=1)
            done_B = (tokens_B == EOS) | (history_BT.shape[1] >= limits_B)
            new = (done_B & ~over_B).nonzero()[:, 0]
            if not len(new):
                continue
            for sentence, tokens, log_probs in _rows(alive_B[new], history_BT[new], log_probs_BT[new]):
                found[sentence].append(self.hypothesis(tokens, log_probs))
            over_B = over_B | done_B
            kept = _fewer(over_B.tolist())
            if kept is not None:
                kept = kept.to(device)
                alive_B, tokens_B, limits_B, over_B = alive_B[kept], tokens_B[kept], limits_B[kept], over_B[kept]
                history_BT, log_probs_BT = history_BT[kept], log_probs_BT[kept]
                state.keep(kept)
        return found


def _sharpen(scores_BV: Tensor, model: StepModel[Any], state: Any) -> None:
    """Makes the two best of each row exact."""
    best_B2, tokens_B2 = top(scores_BV, 2)
    rows_B2 = torch.arange(len(tokens_B2), device=tokens_B2.device)[:, None].expand(-1, 2)
    change = model.correction(rows_B2.flatten(), tokens_B2.flatten(), state)
    if change is not None:
        change_B2 = change.view(-1, 2)
        grown_B1 = (best_B2.exp() * change_B2.expm1()).sum(1, keepdim=True)  # their probability, and so that of all
        scores_BV.scatter_add_(1, tokens_B2, change_B2 - grown_B1.log1p())


def _fewer(over: Sequence[bool]) -> Tensor | None:
    """The numbers of the sentences that stay in a batch of which some are over, or None if all do.

    Sizes are few, as every new one costs a CPU as much as a product: some that are over may stay. The last sentences
    take the places of those that leave, so that few have to move.
    """
    going = over.count(False)
    size = round_size(going)
    if not going or size >= len(over):
        return None
    moved = (i for i in range(size, len(over)) if not over[i])
    return torch.tensor([next(moved, i) if over[i] else i for i in range(size)])


def _rows(sentences: Tensor, tokens: Tensor, log_probs: Tensor) -> Iterator[tuple[int, list[int], list[float]]]:
    """Fetches a batch of results from the device, all at once."""
    return zip(sentences.tolist(), tokens.tolist(), log_probs.tolist(), strict=True)


class Greedy(_OneByOne):
    """Takes the most probable token at every step."""

    def __init__(
        self,
        *,
        length_penalty: Annotated[float, Range(ge=-10, le=10)] = 1.0,
        min_length: Natural = 0,
        max_length: Natural = 0,
        max_ratio: NotNegative = 2.0,
        max_extra: Natural = 20,
        no_repeat_ngram: Natural = 0,
    ) -> None:
        super().__init__(length_penalty, min_length, max_length, max_ratio, max_extra, no_repeat_ngram)

    def choose(self, scores_BV: Tensor, numbers: Sequence[int], step: int) -> Tensor:
        return top(scores_BV, 1)[1][:, 0]


class Sample(_OneByOne):
    """Draws every token from the model's distribution, made flatter or sharper by `temperature`, of which only the
    `top_k` most probable tokens (0: all) and of these the fewest that make up `top_p` are left.

    Random numbers depend on (seed, line, step) alone, so that batches do not matter. Scores are the model's own.
    """

    def __init__(
        self,
        *,
        temperature: Positive = 1.0,
        top_k: Natural = 0,
        top_p: Annotated[float, Range(gt=0, le=1)] = 1.0,
        seed: Natural = 1,
        length_penalty: Annotated[float, Range(ge=-10, le=10)] = 1.0,
        min_length: Natural = 0,
        max_length: Natural = 0,
        max_ratio: NotNegative = 2.0,
        max_extra: Natural = 20,
        no_repeat_ngram: Natural = 0,
    ) -> None:
        super().__init__(length_penalty, min_length, max_length, max_ratio, max_extra, no_repeat_ngram)
        self.temperature, self.top_k, self.top_p, self.seed = temperature, top_k, top_p, seed

    def choose(self, scores_BV: Tensor, numbers: Sequence[int], step: int) -> Tensor:
        sorted_BV, tokens_BV = scores_BV.sort(dim=1, descending=True, stable=True)
        kept_BK = sorted_BV[:, : self.top_k or None].double()
        probs_BK = (kept_BK / self.temperature).softmax(1)
        before_BK = probs_BK.cumsum(1) - probs_BK
        probs_BK = probs_BK.masked_fill(before_BK >= self.top_p, 0.0)  # the first is always left
        sums_BK = probs_BK.cumsum(1)
        drawn_B1 = torch.from_numpy(uniform(self.seed, numbers, step)).to(sums_BK)[:, None] * sums_BK[:, -1:]
        at_B1 = (sums_BK <= drawn_B1).sum(1, keepdim=True)
        last_B1 = (probs_BK > 0).sum(1, keepdim=True) - 1  # rounding must not lead beyond what has a probability
        return tokens_BV.gather(1, torch.minimum(at_B1, last_B1))[:, 0]


def uniform(seed: int, numbers: Sequence[int], step: int) -> np.ndarray:
    """A random number in [0, 1) for each line number, from a hash of (seed, number, step): splitmix64's, thrice."""
    mixed = np.zeros(len(numbers), np.uint64)
    with np.errstate(over="ignore"):
        for part in (np.uint64(seed % 2**64), np.array(numbers, np.uint64), np.uint64(step)):
            mixed = (mixed ^ part) + np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


class Beam(_Limits):
    """Beam search as CTranslate2 does it.

    Of the 2W best continuations of a sentence's W beams, an end of sentence among the first W retires a hypothesis; the
    first W others go on. A sentence is done when W hypotheses have retired; at the length limit all beams retire. With
    `stop: exact` all of the 2W may retire, and a sentence is done when no beam can come
    to a better score than the W best that have retired.
    """

    def __init__(
        self,
        *,
        beam: Count = 5,
        stop: Literal["enough", "exact"] = "enough",
        length_penalty: Annotated[float, Range(ge=-10, le=10)] = 1.0,
        min_length: Natural = 0,
        max_length: Natural = 0,
        max_ratio: NotNegative = 2.0,
        max_extra: Natural = 20,
        no_repeat_ngram: Natural = 0,
    ) -> None:
        super().__init__(length_penalty, min_length, max_length, max_ratio, max_extra, no_repeat_ngram)
        self.beam, self.exact = beam, stop == "exact"

    def __call__(self, model: StepModel[Any], sources: Sources, constraints: Constraints) -> list[list[Hypothesis]]:
        beams = _Beams(self, model, sources)
        while beams.going:
            beams.step(constraints)
        return [sorted(some, key=lambda h: -h.score) for some in beams.found]

    def done(self, found: list[Hypothesis], best_total: float, length: int, limit: int) -> bool:
        """Whether a sentence is, whose best beam has `length` tokens with this sum of log-probabilities."""
        if length >= limit:
            return True
        if len(found) < self.beam or not self.exact:
            return len(found) >= self.beam
        # More tokens make a sum smaller; the more of them, the less that counts with a penalty above 0.
        reachable = self.score(best_total, limit if self.length_penalty > 0 else length + 1)
        return sorted((h.score for h in found), reverse=True)[self.beam - 1] >= reachable


class _Beams:
    """The sentences of one batch that are still being searched."""

    def __init__(self, search: Beam, model: StepModel[Any], sources: Sources) -> None:
        device, count = sources.ids_BS.device, len(sources.lengths)
        self.search, self.model, self.prefixes = search, model, sources.prefixes
        self.state = model.start(sources.ids_BS, search.beam)
        self.going = count > 0
        self.found: list[list[Hypothesis]] = [[] for _ in range(count)]
        self.alive_B = torch.arange(count, device=device)
        self.limits_B = search.longest(model, sources)
        # All translations begin alike: one beam, of which the others come.
        self.tokens_BW = torch.full((count, 1), BOS, device=device)
        self.history_BWT = torch.empty(count, 1, 0, dtype=torch.long, device=device)
        self.log_probs_BWT = torch.empty(count, 1, 0, device=device)
        self.totals_BW = torch.zeros(count, 1, device=device)

    def step(self, constraints: Constraints) -> None:
        width, length = self.search.beam, self.history_BWT.shape[2] + 1
        scores_RV = self.model.step(self.tokens_BW.flatten(), self.state)
        history_RT = self.history_BWT.flatten(0, 1)
        self.search.constrain(scores_RV, history_RT, constraints, self.prefixes, self.alive_B)
        totals_BC, from_BC, tokens_BC = self._sharpened(*best_continuations(scores_RV, self.totals_BW, 2 * width))
        log_probs_BC = totals_BC - self.totals_BW.gather(1, from_BC)
        ended_BC = tokens_BC == EOS
        retires_BC = (ended_BC | (self.limits_B <= length)[:, None]) & (totals_BC > -torch.inf)
        if not self.search.exact:
            retires_BC[:, width:] = False
        if bool(retires_BC.any()):
            b, c = retires_BC.nonzero().unbind(1)
            tokens = torch.cat([self.history_BWT[b, from_BC[b, c]], tokens_BC[b, c, None]], dim=1)
            log_probs = torch.cat([self.log_probs_BWT[b, from_BC[b, c]], log_probs_BC[b, c, None]], dim=1)
            for sentence, row, of_tokens in _rows(self.alive_B[b], tokens, log_probs):
                self.found[sentence].append(self.search.hypothesis(row, of_tokens))
        # Of 2W continuations at most W end, one for each beam, so at least W go on; of fewer, all.
        order_BW = ended_BC.long().sort(dim=1, stable=True).indices[:, :width]
        self.totals_BW = totals_BC.masked_fill(ended_BC, -torch.inf).gather(1, order_BW)
        self.tokens_BW = tokens_BC.gather(1, order_BW)
        self._advance(from_BC.gather(1, order_BW), log_probs_BC.gather(1, order_BW))

    def _sharpened(self, totals_BC: Tensor, from_BC: Tensor, tokens_BC: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The same continuations with their exact totals, in the order of these."""
        rows_BC = from_BC + self.totals_BW.shape[1] * torch.arange(len(from_BC), device=from_BC.device)[:, None]
        change = self.model.correction(rows_BC.flatten(), tokens_BC.flatten(), self.state)
        if change is None:
            return totals_BC, from_BC, tokens_BC
        change_BC = change.view(totals_BC.shape)
        probs_BC = (totals_BC - self.totals_BW.gather(1, from_BC)).exp()
        gains_BC = (probs_BC * change_BC.expm1()).masked_fill(totals_BC == -torch.inf, 0.0)
        grown_BW = torch.zeros_like(self.totals_BW).scatter_add_(1, from_BC, gains_BC)  # each beam's probability
        totals_BC = totals_BC + change_BC - grown_BW.log1p().gather(1, from_BC)
        totals_BC, order_BC = totals_BC.sort(dim=1, descending=True, stable=True)
        return totals_BC, from_BC.gather(1, order_BC), tokens_BC.gather(1, order_BC)

    def _advance(self, from_BW: Tensor, log_probs_BW: Tensor) -> None:
        length = self.history_BWT.shape[2] + 1
        from_BWT = from_BW[:, :, None].expand(-1, -1, length - 1)
        self.history_BWT = torch.cat([self.history_BWT.gather(1, from_BWT), self.tokens_BW[:, :, None]], dim=2)
        self.log_probs_BWT = torch.cat([self.log_probs_BWT.gather(1, from_BWT), log_probs_BW[:, :, None]], dim=2)
        alive = zip(self.alive_B.tolist(), self.totals_BW[:, 0].tolist(), self.limits_B.tolist(), strict=True)
        done = [self.search.done(self.found[s], total, length, limit) for s, total, limit in alive]
        self.state.follow(from_BW)
        self.going = not all(done)
        if not any(done):
            return
        self.totals_BW[torch.tensor(done, device=from_BW.device)] = -torch.inf  # nothing comes of them any more
        kept = _fewer(done)
        if kept is not None:
            kept = kept.to(from_BW.device)
            self.alive_B, self.limits_B = self.alive_B[kept], self.limits_B[kept]
            self.tokens_BW, self.totals_BW = self.tokens_BW[kept], self.totals_BW[kept]
            self.history_BWT, self.log_probs_BWT = self.history_BWT[kept], self.log_probs_BWT[kept]
            self.state.keep(kept)


SEARCHES: Mapping[str, Callable[..., Search]] = {"greedy": Greedy, "beam": Beam, "sample": Sample}
