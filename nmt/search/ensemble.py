"""Several models that predict as one: the mean of their probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt.search.methods import SearchState, StepModel


@dataclass
class States:
    """Those of the models, in their order."""

    states: list[SearchState]

    def follow(self, from_BW: Tensor) -> None:
        for state in self.states:
            state.follow(from_BW)

    def keep(self, sentences: Tensor) -> None:
        for state in self.states:
            state.keep(sentences)


class Ensemble:
    """A StepModel made of others, which share their vocabularies."""

    def __init__(self, models: Sequence[StepModel[Any]]) -> None:
        self.models = models

    @property
    def longest(self) -> int | None:
        return min((model.longest for model in self.models if model.longest is not None), default=None)

    def start(self, src_BS: Tensor, beams: int) -> States:
        return States([model.start(src_BS, beams) for model in self.models])

    def step(self, tokens_R: Tensor, state: States) -> Tensor:
        """Log of the mean probabilities [R, V], each as rounded as it is."""
        steps = [model.step(tokens_R, own) for model, own in zip(self.models, state.states, strict=True)]
        return torch.stack(steps).logsumexp(0) - math.log(len(steps))

    def correction(self, rows_N: Tensor, tokens_N: Tensor, state: States) -> None:
        """None: the mean evens out what rounding does to each."""
