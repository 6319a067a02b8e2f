"""Search for the best translation: token ids in, token ids out. Knows a model only as a StepModel.

Scores: a hypothesis of n tokens (its end of sentence not counted, n at least 1) has the score
sum of log-probabilities / n ** length_penalty, the log-probability of the end of sentence included in the sum.

Shapes: B sentences, W beams, R = B * W rows, V vocabulary.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, TypeVar

import torch
from torch import Tensor

from nmt.choice import Count, Natural, NotNegative, Range

BOS, EOS = 2, 3
GROUP = 8  # tokens of which only the best is looked at first


class SearchState(Protocol):
    """What a model keeps between steps; the search owns it."""

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i goes on from what row rows[i] was, within its sentence; of `sentences` only these are left."""


State = TypeVar("State", bound=SearchState)


class StepModel(Protocol[State]):
    """A model that predicts one token at a time."""

    @property
    def longest(self) -> int | None:
        """The most target positions that it can represent; None for any number."""

    def start(self, src_BS: Tensor, beams: int) -> State: ...

    def step(self, tokens_R: Tensor, state: State) -> Tensor:
        """-> log-probabilities [R, V] in fp32 of the next token; may be written to by the search."""


@dataclass
class Hypothesis:
    tokens: list[int]  # without bos and eos
    score: float
    truncated: bool = False  # the length limit ended it, not an end of sentence
    log_probs: list[float] = field(default_factory=list)  # of each token, and of the end of sentence if there is one


class Search(Protocol):
    def __call__(
        self, model: StepModel[Any], src_BS: Tensor, src_lengths: Sequence[int], forbidden: Tensor
    ) -> list[list[Hypothesis]]:
        """For every source its hypotheses, best first. `forbidden` are token ids that are never produced."""


class _Limits:
    """The options that all searches share."""

    def __init__(self, length_penalty: float, max_ratio: float, max_extra: int) -> None:
        self.length_penalty = length_penalty
        self.max_ratio = max_ratio
        self.max_extra = max_extra

    def longest(self, model: StepModel[Any], src_lengths: Sequence[int], device: torch.device) -> Tensor:
        """The most tokens of each translation: max_ratio * S + max_extra; S counts the source's end of sentence."""
        most = model.longest or sys.maxsize
        limits = [min(most, max(1, int(self.max_ratio * length + self.max_extra))) for length in src_lengths]
        return torch.tensor(limits, device=device)

    def hypothesis(self, tokens: list[int], total: float) -> Hypothesis:
        """From all tokens, the end of sentence among them if there is one, and the sum of their log-probabilities."""
        ended = tokens[-1] == EOS
        tokens = tokens[:-1] if ended else tokens
        return Hypothesis(tokens, total / max(1, len(tokens)) ** self.length_penalty, not ended)


class Greedy(_Limits):
    """Takes the most probable token at every step."""

    def __init__(
        self,
        *,
        length_penalty: Annotated[float, Range(ge=-10, le=10)] = 1.0,
        max_ratio: NotNegative = 2.0,
        max_extra: Natural = 20,
    ) -> None:
        super().__init__(length_penalty, max_ratio, max_extra)

    def __call__(
        self, model: StepModel[Any], src_BS: Tensor, src_lengths: Sequence[int], forbidden: Tensor
    ) -> list[list[Hypothesis]]:
        device = src_BS.device
        found: list[list[Hypothesis]] = [[] for _ in src_lengths]
        limits_B = self.longest(model, src_lengths, device)
        alive_B = torch.arange(len(src_lengths), device=device)
        tokens_B = torch.full_like(alive_B, BOS)
        totals_B = torch.zeros(len(src_lengths), device=device)
        history_BT = torch.empty(len(src_lengths), 0, dtype=torch.long, device=device)
        state = model.start(src_BS, 1)
        while len(alive_B):
            scores_BV = model.step(tokens_B, state).index_fill_(1, forbidden, -torch.inf)
            best_B, tokens_B = scores_BV.max(dim=1)
            totals_B = totals_B + best_B
            history_BT = torch.cat([history_BT, tokens_B[:, None]], dim=1)
            done_B = (tokens_B == EOS) | (history_BT.shape[1] >= limits_B)
            if not bool(done_B.any()):
                continue
            done = done_B.nonzero()[:, 0]
            for sentence, tokens, total in _rows(alive_B[done], history_BT[done], totals_B[done]):
                found[sentence].append(self.hypothesis(tokens, total))
            going = (~done_B).nonzero()[:, 0]
            alive_B, tokens_B, totals_B = alive_B[going], tokens_B[going], totals_B[going]
            limits_B, history_BT = limits_B[going], history_BT[going]
            if len(going):
                state.select(going, going)
        return found


def _rows(sentences: Tensor, tokens: Tensor, totals: Tensor) -> Iterator[tuple[int, list[int], float]]:
    """Fetches a batch of results from the device, all at once."""
    return zip(sentences.tolist(), tokens.tolist(), totals.tolist(), strict=True)


class Beam(_Limits):
    """Beam search as CTranslate2 does it.

    Of the 2W best continuations of a sentence's W beams, an end of sentence among the first W retires a hypothesis; the
    first W others go on. A sentence is done when W hypotheses have retired; at the length limit all beams retire.
    """

    def __init__(
        self,
        *,
        beam: Count = 5,
        length_penalty: Annotated[float, Range(ge=-10, le=10)] = 1.0,
        max_ratio: NotNegative = 2.0,
        max_extra: Natural = 20,
    ) -> None:
        super().__init__(length_penalty, max_ratio, max_extra)
        self.beam = beam

    def __call__(
        self, model: StepModel[Any], src_BS: Tensor, src_lengths: Sequence[int], forbidden: Tensor
    ) -> list[list[Hypothesis]]:
        beams = _Beams(self, model, src_BS, src_lengths)
        while len(beams.alive_B):
            beams.step(forbidden)
        return [sorted(some, key=lambda h: -h.score) for some in beams.found]


class _Beams:
    """The sentences of one batch that are still being searched."""

    def __init__(self, search: Beam, model: StepModel[Any], src_BS: Tensor, src_lengths: Sequence[int]) -> None:
        device, count, width = src_BS.device, len(src_lengths), search.beam
        self.search, self.model, self.width = search, model, width
        self.state = model.start(src_BS, width)
        self.found: list[list[Hypothesis]] = [[] for _ in src_lengths]
        self.alive_B = torch.arange(count, device=device)
        self.limits_B = search.longest(model, src_lengths, device)
        self.tokens_BW = torch.full((count, width), BOS, device=device)
        self.history_BWT = torch.empty(count, width, 0, dtype=torch.long, device=device)
        # All beams start equal; only the first may be continued, or the W best would be W times the same.
        self.totals_BW = torch.full((count, width), -torch.inf, device=device)
        self.totals_BW[:, 0] = 0

    def step(self, forbidden: Tensor) -> None:
        width, length = self.width, self.history_BWT.shape[2] + 1
        scores_RV = self.model.step(self.tokens_BW.flatten(), self.state).index_fill_(1, forbidden, -torch.inf)
        totals_BC, from_BC, tokens_BC = best_continuations(scores_RV, self.totals_BW)
        ended_BC = tokens_BC == EOS
        retires_BC = ended_BC.clone()
        retires_BC[:, width:] = False
        at_limit_B = self.limits_B <= length
        retires_BC[:, :width] |= at_limit_B[:, None]
        retires_BC &= totals_BC > -torch.inf
        if bool(retires_BC.any()):
            self._retire(retires_BC, totals_BC, from_BC, tokens_BC)
        # Of 2W continuations at most W end, one for each beam, so at least W go on.
        order_BW = ended_BC.long().sort(dim=1, stable=True).indices[:, :width]
        self.totals_BW = totals_BC.gather(1, order_BW)
        self.tokens_BW = tokens_BC.gather(1, order_BW)
        from_BW = from_BC.gather(1, order_BW)
        self._advance(from_BW, at_limit_B)

    def _retire(self, retires_BC: Tensor, totals_BC: Tensor, from_BC: Tensor, tokens_BC: Tensor) -> None:
        b, c = retires_BC.nonzero().unbind(1)
        tokens = torch.cat([self.history_BWT[b, from_BC[b, c]], tokens_BC[b, c, None]], dim=1)
        for sentence, row, total in _rows(self.alive_B[b], tokens, totals_BC[b, c]):
            self.found[sentence].append(self.search.hypothesis(row, total))

    def _advance(self, from_BW: Tensor, at_limit_B: Tensor) -> None:
        count = len(self.alive_B)
        history_BWT = self.history_BWT.gather(1, from_BW[:, :, None].expand(-1, -1, self.history_BWT.shape[2]))
        self.history_BWT = torch.cat([history_BWT, self.tokens_BW[:, :, None]], dim=2)
        limited = at_limit_B.tolist()
        going = [
            b
            for b, sentence in enumerate(self.alive_B.tolist())
            if len(self.found[sentence]) < self.width and not limited[b]
        ]
        rows_BW = from_BW + self.width * torch.arange(count, device=from_BW.device)[:, None]
        if len(going) == count:
            self.state.select(rows_BW.flatten())
            return
        keep_B = torch.tensor(going, dtype=torch.long, device=from_BW.device)
        self.alive_B, self.limits_B = self.alive_B[keep_B], self.limits_B[keep_B]
        self.tokens_BW, self.totals_BW = self.tokens_BW[keep_B], self.totals_BW[keep_B]
        self.history_BWT = self.history_BWT[keep_B]
        if going:
            self.state.select(rows_BW[keep_B].flatten(), keep_B)


def best_continuations(scores_RV: Tensor, totals_BW: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The 2W best of a sentence's W * V continuations: totals, the beam each comes from, and its token; all [B, 2W].

    The best of a sentence are among the best of each beam, and a row is cheaper to search than a sentence.
    """
    count, width = totals_BW.shape
    wanted = min(2 * width, scores_RV.shape[1])
    best_RC, tokens_RC = top(scores_RV, wanted)
    all_BX = (best_RC.view(count, width, wanted) + totals_BW[:, :, None]).flatten(1)
    totals_BC, at_BC = all_BX.topk(min(2 * width, all_BX.shape[1]), dim=1)
    from_BC = at_BC // wanted
    return totals_BC, from_BC, tokens_RC.view(count, -1).gather(1, at_BC)


def top(scores_RV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """What topk gives for each row, several times as fast for a large vocabulary: values and tokens, [R, count].

    Tokens are dealt out to groups. The best tokens all lie in the groups whose best ones are the best.
    """
    groups = scores_RV.shape[1] // GROUP
    if groups < GROUP * count:
        return scores_RV.topk(count, dim=1)
    dealt = GROUP * groups
    numbers = torch.arange(scores_RV.shape[1], device=scores_RV.device)
    _, groups_RC = top(scores_RV[:, :dealt].view(-1, GROUP, groups).amax(1), count)
    tokens_RX = (groups_RC[:, None, :] + numbers[:dealt:groups, None]).flatten(1)
    tokens_RX = torch.cat([tokens_RX, numbers[dealt:].expand(len(tokens_RX), -1)], dim=1)
    best_RC, at_RC = scores_RV.gather(1, tokens_RX).topk(count, dim=1)
    return best_RC, tokens_RX.gather(1, at_RC)


SEARCHES: Mapping[str, Callable[..., Search]] = {"greedy": Greedy, "beam": Beam}
