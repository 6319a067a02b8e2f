"""Validation: loss and perplexity under teacher forcing, and the metrics of real translations."""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nmt.choice import Choice
from nmt.errors import NotFiniteError
from nmt.files import write_file
from nmt.metrics import LOWER_IS_BETTER, Metric
from nmt.model.transformer import Transformer
from nmt.ranks import Ranks
from nmt.run import Run
from nmt.runtime import Runtime
from nmt.score import log_probs
from nmt.tokenizer import Tokenizer
from nmt.translate import Translator

Rank = tuple[float, float]  # the deciding score, larger is better, and -nll, which parts models of equal score


SHOWN = 3  # translations in the log, at each validation


class ValidPairs(Protocol):
    """A validation set: ids for the loss, text as it was read for the metrics."""

    def __len__(self) -> int: ...

    def ids(self, pairs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]: ...

    def texts(self) -> Iterator[tuple[str, tuple[str, ...]]]: ...


@dataclass
class Validation:
    """All that a model is measured with during a run; the first set decides which model is best."""

    sets: Mapping[str, ValidPairs]
    tokenizer: Tokenizer
    search: Choice
    trained: int | None  # the longest source of the training, as a Translator takes it
    metrics: list[Metric]
    deciding: str  # name of the metric that chooses the best model, or nll
    tgt_lang: str
    runtime: Runtime
    run: Run
    say: Callable[[str], None]
    ranks: Ranks

    def check(self) -> None:
        """Scores references against themselves: a scorer that cannot work says so now, not after an hour."""
        for pairs in self.sets.values():
            references = [refs[0] for _, refs in pairs.texts()]
            for metric in self.metrics:
                metric(references, [references])

    def score(self, model: Transformer, step: int, averaged: int = 0) -> tuple[list[dict[str, Any]], Rank | None]:
        """Measures a model on all sets; returns what to record of each, and its rank, larger is better.

        `averaged` is the number of snapshots that the model is the mean of. The rank is None when there is no set. All
        processes take their part of the lines, and all know the result. Raises NotFiniteError in all of them.
        """
        # A frozen copy translates exactly as the saved checkpoint will.
        frozen = copy.deepcopy(model).freeze(self.runtime.dtype)
        translator = Translator.of(frozen, self.tokenizer, self.search, self.runtime, self.trained)
        rows = [self._measure(translator, name, pairs, step, averaged) for name, pairs in self.sets.items()]
        return rows, self._decide(rows[0]) if rows else None

    def _decide(self, row: dict[str, Any]) -> Rank:
        value = float(row[self.deciding])
        return -value if self.deciding in LOWER_IS_BETTER else value, -float(row["nll"])

    def _measure(
        self, translator: Translator, name: str, pairs: ValidPairs, step: int, averaged: int
    ) -> dict[str, Any]:
        started = time.monotonic()
        most = translator.model.longest  # what learned positions do not reach cannot be scored
        mine = np.arange(self.ranks.rank, len(pairs), self.ranks.world)
        src, tgt = ([ids[:most] for ids in side] for side in pairs.ids(mine))
        texts = list(pairs.texts())
        translated: list[str] | None = None
        with contextlib.suppress(NotFiniteError):  # which all processes have to know of
            translated = translator.translate([texts[i][0] for i in mine])
        of_each = self.ranks.gather((log_probs(translator.model, src, tgt, self.runtime.device), translated))
        token_scores = _dealt([scores for scores, _ in of_each])
        nll = -float(np.concatenate(token_scores).mean(dtype=np.float64))
        translations = [lines for _, lines in of_each if lines is not None]
        if len(translations) < len(of_each) or not math.isfinite(nll):
            raise NotFiniteError(f"the scores of {name} are not finite")
        hypotheses = _dealt(translations)
        references = [list(column) for column in zip(*(refs for _, refs in texts), strict=True)]
        scores = [metric(hypotheses, references) for metric in self.metrics]
        if self.ranks.first:
            self._keep(hypotheses, name, step, averaged)
        row: dict[str, Any] = {
            "step": step,
            "set": name,
            "averaged": averaged,
            "nll": nll,
            "ppl": math.exp(min(nll, 100)),
            **{score.name: score.value for score in scores},
            "signature": {score.name: score.signature for score in scores},
            "search": translator.settings.tree(),
            "seconds": round(time.monotonic() - started, 1),
        }
        what = f"average of {averaged} snapshots" if averaged else f"step {step}"
        numbers = "  ".join(f"{score.name} {score.value:.2f}" for score in scores)
        self.say(f"{name} at {what}: nll {nll:.3f}  ppl {row['ppl']:.2f}  {numbers}")
        for i in range(0, len(texts), -(-len(texts) // SHOWN)):  # a few, from all over the set
            self.say(f"  {texts[i][0]}  ->  {hypotheses[i]}  (reference: {texts[i][1][0]})")
        return row

    def _keep(self, hypotheses: list[str], name: str, step: int, averaged: int) -> None:
        self.run.valid.mkdir(exist_ok=True)
        valid = None if len(self.sets) == 1 else name
        with write_file(self.run.translations(valid, step, bool(averaged), self.tgt_lang)) as stream:
            stream.write("".join(f"{line}\n" for line in hypotheses).encode())


def _dealt(parts: list[list[Any]]) -> list[Any]:
    """What was dealt out to processes in turn, in its old order."""
    count = sum(map(len, parts))
    return [parts[i % len(parts)][i // len(parts)] for i in range(count)]
