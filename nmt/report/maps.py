"""Attention maps of some sentences of a run, by its best model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nmt.attention_maps import Look, fragment, looks
from nmt.report.gather import Gathered
from nmt.report.sentences import Sentence
from nmt.translate import Translator

LONGEST = 200  # characters of a sentence whose map can be read


def maps(runs: Sequence[Gathered], count: int) -> str:
    """A part of the page with so many sentences of each run, from the worst to the best; nothing if there are none."""
    labels: list[str] = []
    shown: list[Look] = []
    for run in runs:
        prefix = f"{run.name}, " if len(runs) > 1 else ""
        for label, look in _looks(run, count):
            labels.append(prefix + label)
            shown.append(look)
    return fragment(shown, labels) if shown else ""


def _looks(run: Gathered, count: int) -> list[tuple[str, Look]]:
    """On the CPU, in fp32: a training that is going on keeps its GPU to itself."""
    chosen = _spread(next(iter(run.sentences.values()), []), count)
    if not chosen:
        return []
    if run.best_checkpoint is None:
        run.notes.append("no attention maps: the checkpoint of its best validation is not there")
        return []
    with run.noted("its attention is not shown"):
        translator = Translator(str(run.best_checkpoint.directory), "cpu", "fp32", 1)
        found = list(translator.stream([one.src for one in chosen]))
        labels = [f"chrF {one.score:.0f}" for one, made in zip(chosen, found, strict=True) for _ in made.passes]
        return list(
            zip(
                labels, looks(translator.model, translator.tokenizer, [p for m in found for p in m.passes]), strict=True
            )
        )
    return []


def _spread(worst_first: Sequence[Sentence], count: int) -> list[Sentence]:
    short = [one for one in worst_first if one.src.strip() and len(one.src) <= LONGEST]
    places = np.linspace(0, len(short) - 1, min(count, len(short))).round().astype(int) if short else ()
    return [short[place] for place in dict.fromkeys(places)]
