"""Where systems differ on one set: by length and frequency, in their numbers, and sentence by sentence."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import and_, or_
from string import ascii_uppercase
from typing import Any, NamedTuple

from nmt.data.filters import numbers
from nmt.data.languages import words
from nmt.metrics import LOWER_IS_BETTER, Metric, Score, sentence_chrf

SIGNIFICANT = 0.05
PARTS = 4  # of the lines, by the length of their sources, about equally many in each
TIMES = (1, 10, 100, 1000)  # in the training data: from each on, a word belongs to the next band
NAMED = 5  # lines that the text holds of each system's faults


class Band(NamedTuple):
    """Lines or words of one kind, and a figure of each system for them."""

    kind: str
    size: int
    figures: list[float]


class Numbers(NamedTuple):
    """What has become of numbers in digits, and the lines where something is missing or wrong, from 1."""

    expected: int  # that the source, if it is known, and all references have
    missing: int  # of these, in the translation
    wrong: int  # in the translation, but neither in the source nor in any reference
    lines: list[int]


class Line(NamedTuple):
    """What one system, or the first and another one, make of a line, and the chrF of each by itself."""

    line: int
    source: str | None
    references: list[str]
    translations: tuple[str, ...]
    chrf: tuple[float, ...]

    def text(self, *systems: str) -> str:
        """For people, with the letters of two systems; for a single one without."""
        named = [f"{chrf:.1f}{f' of {name}' if name else ''}" for chrf, name in zip(self.chrf, systems, strict=True)]
        rows = [("source", self.source)] if self.source is not None else []
        rows += [("reference", reference) for reference in self.references]
        rows += [(name or "output", text) for name, text in zip(systems, self.translations, strict=True)]
        return "\n".join(
            [f"line {self.line}: chrf {', '.join(named)}", *(f"  {name:9}  {text}" for name, text in rows)]
        )


@dataclass
class Comparison:
    """Of several systems with the first."""

    first: str
    scores: list[list[Score]]  # of each system, resampled
    lengths: list[Band]
    frequencies: list[Band]
    numbers: list[Numbers]
    lines: list[list[Line]]  # of each system, those that differ most from the first's

    @property
    def metric(self) -> str:
        """What `lengths` are measured with."""
        return self.scores[0][0].name

    def tree(self, number: int) -> dict[str, Any]:
        """What belongs to one of the systems."""

        def bands(found: list[Band], kind: str, count: str, figure: str) -> list[dict[str, Any]]:
            return [{kind: band.kind, count: band.size, figure: band.figures[number]} for band in found]

        return {
            "with": self.first,
            "source_length": bands(self.lengths, "words", "lines", self.metric),
            "word_frequency": bands(self.frequencies, "times", "words", "f1"),
            "numbers": self.numbers[number]._asdict(),
            "most_different": [line._asdict() for line in self.lines[number]],
        }

    def text(self) -> str:
        """For people, without what is the same for all; a system is a letter, the first one A."""
        found = [f"compared with A: 95% intervals and p by paired bootstrap\n{_table(self._significance())}"]
        if lengths := list(_bands(self.lengths)):
            found.append(f"{self.metric} by words of the source\n{_table([self._head('words', 'lines'), *lengths])}")
        if frequencies := list(_bands(self.frequencies)):
            table = _table([self._head("times", "words"), *frequencies])
            found.append(f"F1 of words, by how often they are in the training data of A\n{table}")
        if any(one != self.numbers[0] for one in self.numbers):
            found.append(f"numbers in digits, and lines where other systems have them right\n{_table(self._numbers())}")
        for number, lines in enumerate(self.lines):
            if lines:
                found.append(f"where {letter(number)} differs most from A, by chrf of single lines")
                found += [line.text("A", letter(number)) for line in lines]
        return "\n\n".join(found)

    def _head(self, kind: str, count: str) -> list[str]:
        return [kind, count, *map(letter, range(len(self.scores)))]

    def _significance(self) -> Iterator[list[str]]:
        yield ["", *(score.name for score in self.scores[0])]
        for number, scores in enumerate(self.scores):
            yield [letter(number), *map(_verdict, scores, self.scores[0])]

    def _numbers(self) -> Iterator[list[str]]:
        yield ["", "expected", "missing", "wrong", "lines"]
        of_all = set.intersection(*(set(one.lines) for one in self.numbers))
        for number, (*counts, lines) in enumerate(self.numbers):
            own = [line for line in lines if line not in of_all]
            named = ", ".join(map(str, own[:NAMED])) + (", …" if len(own) > NAMED else "")
            yield [letter(number), *(f"{count:,}" for count in counts), named]


def letter(number: int) -> str:
    """A, B, … Z, AA, BB, …"""
    return ascii_uppercase[number % 26] * (number // 26 + 1)


def by_source_length(
    sources: list[str], references: list[list[str]], systems: list[list[str]], metric: Metric
) -> list[Band]:
    lengths = [len(words(source)) for source in sources]
    ordered = sorted(lengths)
    bands, low = [], ordered[0]
    for high in sorted({ordered[-(-len(ordered) * part // PARTS) - 1] for part in range(1, PARTS + 1)}):
        rows = [i for i, length in enumerate(lengths) if low <= length <= high]
        chosen = [[side[i] for i in rows] for side in (*references, *systems)]
        refs, outputs = chosen[: len(references)], chosen[len(references) :]
        bands.append(Band(f"{low}-{high}", len(rows), [metric(output, refs).value for output in outputs]))
        low = high + 1
    return bands


def by_word_frequency(references: list[str], systems: list[list[str]], seen: Mapping[str, int]) -> list[Band]:
    """`seen` is how often the training data has each word of references and translations."""
    of_references = list(map(_counted, references))
    found = [_f1(of_references, list(map(_counted, system)), seen) for system in systems]
    totals = _by_band(of_references, seen)
    kinds = ["0", *(f"{low}-{high - 1}" for low, high in pairwise(TIMES)), f"{TIMES[-1]}+"]
    return [Band(kind, totals[band], [f1[band] for f1 in found]) for band, kind in enumerate(kinds) if totals[band]]


def _counted(line: str) -> Counter[str]:
    return Counter(words(line))


def _f1(references: list[Counter[str]], system: list[Counter[str]], seen: Mapping[str, int]) -> list[float]:
    right = _by_band([ours & theirs for ours, theirs in zip(system, references, strict=True)], seen)
    sums = [ours + theirs for ours, theirs in zip(_by_band(system, seen), _by_band(references, seen), strict=True)]
    return [200 * both / total if total else 0.0 for both, total in zip(right, sums, strict=True)]


def _by_band(lines: Iterable[Counter[str]], seen: Mapping[str, int]) -> list[int]:
    totals = [0] * (len(TIMES) + 1)
    for line in lines:
        for word, count in line.items():
            totals[bisect(TIMES, seen.get(word, 0))] += count
    return totals


def check_numbers(sources: list[str], references: list[list[str]], system: list[str]) -> Numbers:
    """`sources` may be empty, where nobody knows them."""
    expected = missing = wrong = 0
    lines = []
    for i, text in enumerate(system):
        given = [Counter(numbers(side[i])) for side in (*references, *([sources] if sources else []))]
        wanted, there = reduce(and_, given), Counter(numbers(text))
        lacking, strange = (wanted - there).total(), (there - reduce(or_, given)).total()
        expected, missing, wrong = expected + wanted.total(), missing + lacking, wrong + strange
        if lacking or strange:
            lines.append(i + 1)
    return Numbers(expected, missing, wrong, lines)


def most_different(
    sources: list[str], references: list[list[str]], first: list[str], other: list[str], show: int
) -> list[Line]:
    """The lines whose chrF, each by itself, differs most."""
    lines = (line for line in _lines(sources, references, first, other) if len(set(line.translations)) > 1)
    return sorted(lines, key=lambda line: (-abs(line.chrf[0] - line.chrf[1]), line.line))[:show]


def worst(sources: list[str], references: list[list[str]], system: list[str], show: int) -> list[Line]:
    """The lines of the least chrF, each by itself."""
    return sorted(_lines(sources, references, system), key=lambda line: (line.chrf, line.line))[:show]


def _lines(sources: list[str], references: list[list[str]], *systems: list[str]) -> Iterator[Line]:
    for i, texts in enumerate(zip(*systems, strict=True)):
        refs = [side[i] for side in references]
        chrf = tuple(sentence_chrf(text, refs) for text in texts)
        yield Line(i + 1, sources[i] if sources else None, refs, texts, chrf)


# --- for people ---


def _verdict(score: Score, first: Score) -> str:
    low, high = score.interval or (score.value, score.value)
    shown = f"{score.value:.2f} [{low:.2f}, {high:.2f}]"
    if score.p_value is None:
        return shown
    if score.value == first.value:  # a difference of 0 has the smallest p there is, which would say the opposite
        return f"{shown} equal"
    if score.p_value >= SIGNIFICANT:
        verdict = "not significant"
    else:
        verdict = "better" if (score.value < first.value) == (score.name in LOWER_IS_BETTER) else "worse"
    return f"{shown} p = {score.p_value:.4f} {verdict}"


def _bands(bands: list[Band]) -> Iterator[list[str]]:
    """Of those that are not the same for all."""
    for band in bands:
        figures = [f"{figure:.2f}" for figure in band.figures]
        if len(set(figures)) > 1:
            yield [band.kind, f"{band.size:,}", *figures]


def _table(rows: Iterable[list[str]]) -> str:
    columns = [[cell.ljust(max(map(len, column))) for cell in column] for column in zip(*rows, strict=True)]
    return "\n".join(f"  {'  '.join(row)}".rstrip() for row in zip(*columns, strict=True))
