"""What a translation must not hold and how it must begin, as changes of scores before a search chooses.

Shapes: R rows, V vocabulary, T tokens so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Constraints:
    """For all sentences of a search."""

    forbidden: Tensor  # token ids that are never produced
    phrases: list[list[int]] = field(default_factory=list)  # nor these sequences of them

    def apply(self, scores_RV: Tensor, history_RT: Tensor) -> None:
        """Sets to -inf what must not follow."""
        scores_RV.index_fill_(1, self.forbidden, -torch.inf)
        for phrase in self.phrases:
            if len(phrase) <= history_RT.shape[1] + 1:
                start = torch.tensor(phrase[:-1], dtype=torch.long, device=history_RT.device)
                begun_R = (history_RT[:, history_RT.shape[1] - len(start) :] == start).all(1)
                scores_RV[begun_R, phrase[-1]] = -torch.inf


def no_repeats(scores_RV: Tensor, history_RT: Tensor, size: int) -> None:
    """Sets to -inf every token with which a row would hold the same `size` tokens in a row twice."""
    length = history_RT.shape[1]
    if length < size:
        return
    before = history_RT.unfold(1, size, 1)  # [R, T - size + 1, size]: every such sequence so far
    latest_RN = history_RT[:, length - size + 1 :]
    again = (before[:, :, :-1] == latest_RN[:, None]).all(2)
    scores_RV.scatter_reduce_(1, before[:, :, -1], torch.where(again, -torch.inf, torch.inf), "amin")


def forced(prefixes: Sequence[Sequence[int]], sentences: Tensor, rows: int, step: int) -> tuple[Tensor, Tensor]:
    """The rows of sentences whose prefixes go on at this step, and their next tokens, which alone may follow.

    `sentences` are those of the rows, which are several for each, side by side, if there are more of them.
    """
    goes_on = [step < len(prefix) for prefix in prefixes]
    if not any(goes_on):
        none = torch.empty(0, dtype=torch.long, device=sentences.device)
        return none, none
    width = rows // len(sentences)
    found = [
        (at * width + beam, prefixes[sentence][step])
        for at, sentence in enumerate(sentences.tolist())
        if goes_on[sentence]
        for beam in range(width)
    ]
    both = torch.tensor(found, dtype=torch.long, device=sentences.device).view(-1, 2)
    return both[:, 0], both[:, 1]
