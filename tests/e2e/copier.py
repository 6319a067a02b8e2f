"""A perfect model without training: what the words of a line do to the pipeline around the search."""

from __future__ import annotations

import torch
from torch import Tensor

from nmt.tokenizer import EOS


class Copier:
    """Predicts the tokens of its source, one after the other: a model that translates by copying, without training."""

    longest: int | None = None

    def __init__(self, vocabulary: int) -> None:
        self.vocabulary = vocabulary

    def freeze(self, dtype: torch.dtype) -> Copier:
        return self

    def correction(self, rows_N: Tensor, tokens_N: Tensor, state: Copying) -> None:
        """Nothing is rounded."""

    def start(self, src_BS: Tensor, beams: int) -> Copying:
        return Copying(src_BS, beams)

    def step(self, tokens_R: Tensor, state: Copying) -> Tensor:
        token_B = state.src_BS[:, min(state.at, state.src_BS.shape[1] - 1)]
        state.at += 1
        scores_RV = torch.full((len(tokens_R), self.vocabulary), -20.0)
        scores_RV[:, EOS] = -30.0  # where a token may not be copied, any other is better than to end
        token_R = token_B.repeat_interleave(len(tokens_R) // len(token_B))
        return scores_RV.scatter(1, token_R[:, None], 0.0).log_softmax(-1)


class Copying:
    def __init__(self, src_BS: Tensor, beams: int) -> None:
        self.src_BS, self.beams, self.at = src_BS, beams, 0

    def follow(self, from_BW: Tensor) -> None:
        """All beams of a sentence copy the same source."""

    def keep(self, sentences: Tensor) -> None:
        self.src_BS = self.src_BS[sentences]
