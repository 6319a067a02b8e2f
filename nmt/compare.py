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


class Pair(NamedTuple):
    """What the first system and another one make of a line, and the chrF of each by itself."""

    line: int
    source: str | None
    references: list[str]
    translations: tuple[str, str]
    chrf: tuple[float, float]


@dataclass
class Comparison:
    """Of several systems with the first."""

    first: str
    scores: list[list[Score]]  # of each system, resampled
    lengths: list[Band]
    frequencies: list[Band]
    numbers: list[Numbers]
    pairs: list[list[Pair]]  # of each system, those that differ most from the first's

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
            "most_different": [pair._asdict() for pair in self.pairs[number]],
        }

    def text(self) -> str:
        """For people; a system is a letter, the first one A."""
        found = [f"compared with A: 95% intervals and p by paired bootstrap\n{_table(self._significance())}"]
        if self.lengths:
            found.append(f"{self.metric} by words of the source\n{_table(_bands('words', 'lines', self.lengths))}")
        if self.frequencies:
            table = _table(_bands("times", "words", self.frequencies))
            found.append(f"F1 of words, by how often they are in the training data of A\n{table}")
        if any(of_one.expected or of_one.wrong for of_one in self.numbers):
            found.append(f"numbers in digits\n{_table(self._numbers())}")
        for number, pairs in enumerate(self.pairs):
            found += [_side_by_side(pair, letter(number)) for pair in pairs]
        return "\n\n".join(found)

    def _significance(self) -> Iterator[list[str]]:
        yield ["", *(score.name for score in self.scores[0])]
        for number, scores in enumerate(self.scores):
            yield [letter(number), *map(_verdict, scores, self.scores[0])]

    def _numbers(self) -> Iterator[list[str]]:
        yield ["", "expected", "missing", "wrong", "lines"]
        for number, (*counts, lines) in enumerate(self.numbers):
            named = ", ".join(map(str, lines[:NAMED])) + (", …" if len(lines) > NAMED else "")
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
) -> list[Pair]:
    """The lines whose chrF, each by itself, differs most."""
    pairs = []
    for i, texts in enumerate(zip(first, other, strict=True)):
        if texts[0] != texts[1]:
            refs = [side[i] for side in references]
            chrf = sentence_chrf(texts[0], refs), sentence_chrf(texts[1], refs)
            pairs.append(Pair(i + 1, sources[i] if sources else None, refs, texts, chrf))
    return sorted(pairs, key=lambda pair: (-abs(pair.chrf[0] - pair.chrf[1]), pair.line))[:show]


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


def _bands(kind: str, count: str, bands: list[Band]) -> Iterator[list[str]]:
    yield [kind, count, *map(letter, range(len(bands[0].figures)))]
    for band in bands:
        yield [band.kind, f"{band.size:,}", *(f"{figure:.2f}" for figure in band.figures)]


def _table(rows: Iterable[list[str]]) -> str:
    columns = [[cell.ljust(max(map(len, column))) for cell in column] for column in zip(*rows, strict=True)]
    return "\n".join(f"  {'  '.join(row)}".rstrip() for row in zip(*columns, strict=True))


def _side_by_side(pair: Pair, other: str) -> str:
    (one, two), rows = pair.chrf, [("reference", reference) for reference in pair.references]
    if pair.source is not None:
        rows.insert(0, ("source", pair.source))
    rows += [("A", pair.translations[0]), (other, pair.translations[1])]
    head = f"line {pair.line}: chrf {one:.1f} of A, {two:.1f} of {other}"
    return "\n".join([head, *(f"  {name:9}  {text}" for name, text in rows)])
