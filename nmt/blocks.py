"""Lines of text as batches of what a model takes, and its translations of them as lines again."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import NamedTuple

import numpy as np

from nmt.errors import DataError
from nmt.tokenizer import BREAKS, EOS, UNK, Tokenizer, blank
from nmt.tokenizer.segments import Segment, join, split

LONGEST = 256  # pieces that are translated at once, also by a model that has seen shorter sentences only
MANY = 8  # batches for each share, so many that it does not matter if they are not a multiple of the shares


class Pass(NamedTuple):
    """What the model saw and made of a line, or of a part of one that is too long; ids end in eos."""

    src: np.ndarray
    tgt: np.ndarray  # a translation that was cut has no eos
    repeated: int = 0  # of the source ids, the first, which an earlier part had already
    glued: bool = False  # no white space stood before it


@dataclass
class Translation:
    """One output line; `score` is None for a blank line, which no model has seen.

    A line that was translated in parts has the mean of their scores, weighted by their source pieces.
    """

    text: str
    score: float | None = None
    tokens: int = 0
    truncated: bool = False  # the length limit ended it, or one of its parts
    pieces: list[str] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)  # of each piece, and of each end of sentence
    passes: list[Pass] = field(default_factory=list, compare=False)
    others: list[Translation] = field(default_factory=list)  # the next best ones, best first


@dataclass
class Part:
    """A line, or a part of one that is too long."""

    line: int  # its number among all
    ids: np.ndarray  # end in eos
    repeated: int = 0  # as in a Pass
    glued: bool = False
    begin: list[int] = field(default_factory=list)  # target ids that its translation begins with
    found: list[Translation] = field(default_factory=list)  # best first


@dataclass
class Block:
    """Lines that are sorted by length and translated together, each with its parts; a blank one has none."""

    lines: list[str]
    parts: list[list[Part]]
    waiting: deque[list[Part]]  # batches that are not done yet

    def translations(self, nbest: int) -> Iterator[Translation]:
        """Of each line, when no batch waits any more."""
        for text, parts in zip(self.lines, self.parts, strict=True):
            yield _translation(text, parts, nbest)


@dataclass
class Blocks:
    """Makes blocks of lines for one model. Lengths count the end of sentence."""

    tokenizer: Tokenizer
    longest: int  # ids of a source that are translated at once
    usual: int  # that the model has been trained on: a longer line is translated sentence by sentence
    tags: Sequence[str] = ()  # prefixes that sources had in training, and so each part of a line has

    def make(
        self,
        pairs: Iterable[tuple[str, str]],
        size: int,
        first: int,
        places: int,
        shares: int,
        warn: Callable[[str], None],
    ) -> Iterator[Block]:
        """Blocks of `size` lines, each line with the words that its translation begins with, numbered from `first`.

        Batches have at most so many `places` of sources, and are a multiple of `shares` if they are few.
        """
        iterator = iter(pairs)
        while chunk := list(islice(iterator, size)):
            lines = [line for line, _ in chunk]
            for number, line in enumerate(lines, first):
                if not isinstance(line, str):
                    raise TypeError(f"line {number:,}: must be a str, but is of type {type(line).__name__} instead")
            parts = self._parts(lines, first, warn)
            self._begin([(of_line, begin) for of_line, (_, begin) in zip(parts, chunk, strict=True)])
            # Longest first: if memory does not suffice, that shows at once.
            ordered = sorted(chain.from_iterable(parts), key=lambda part: -len(part.ids))
            # Nothing but blank lines is a batch too, so that they come back in their turn.
            yield Block(lines, parts, deque(_batches(ordered, places, shares) or [[]]))
            first += len(chunk)

    def _parts(self, lines: list[str], first: int, warn: Callable[[str], None]) -> list[list[Part]]:
        chosen = [i for i, line in enumerate(lines) if not blank(line)]
        parts: list[list[Part]] = [[] for _ in lines]
        for i, ids in zip(chosen, self.tokenizer.encode_src([lines[i].strip() for i in chosen]), strict=True):
            parts[i] = [Part(first + i, ids)]
            if len(ids) > self.usual:
                several = self._split(lines[i].strip(), first + i)
                if len(several) > 1:  # a sentence by itself stays whole, as long as it can be
                    parts[i] = several
                    warn(
                        f"warning: line {first + i} has {len(ids) - 1:,} pieces, more than {self.usual - 1:,}; "
                        f"it is translated in {len(several):,} parts"
                    )
        return parts

    def _split(self, text: str, line: int) -> list[Part]:
        """A line in parts that are short enough, each with the tag that the line has."""
        tag = max(filter(text.startswith, self.tags), key=len, default="")
        most = self.longest - 1
        [of_tag] = self._pieces([tag])
        segments = list(split(text.removeprefix(tag), max(1, most - of_tag), self._pieces))
        parts: list[Part] = []
        for segment, ids in zip(segments, self.tokenizer.encode_src([tag + s.text for s in segments]), strict=True):
            for start in range(0, len(ids) - 1, most):  # one word may still be longer
                some = np.append(ids[:-1][start : start + most], np.int32(EOS))
                repeated = of_tag if parts and start == 0 else 0
                parts.append(Part(line, some, repeated, segment.glued and start == 0))
        return parts

    def _pieces(self, texts: list[str]) -> list[int]:
        return [len(ids) - 1 for ids in self.tokenizer.encode_src(texts)]

    def _begin(self, begun: list[tuple[list[Part], str]]) -> None:
        """Has the translation of each line, that is of the first of its parts, begin with the words beside it."""
        begun = [(parts, words) for parts, words in begun if parts and not blank(words)]
        if not begun:
            return
        for (parts, words), ids in zip(begun, self.tokenizer.encode_tgt([words for _, words in begun]), strict=True):
            if UNK in ids:
                raise DataError(
                    f"line {parts[0].line}: its target prefix {words!r} has characters that the vocabulary lacks"
                )
            parts[0].begin = ids[:-1].tolist()


def _batches(parts: list[Part], places: int, shares: int) -> list[list[Part]]:
    batches = _cut(parts, places)
    wanted = -(-len(batches) // shares) * shares
    if shares == 1 or wanted > MANY * shares:
        return batches
    # The fewest places that make no more batches: then all are about as large.
    fewest = bisect_left(range(places), True, key=lambda fewer: len(_cut(parts, fewer)) <= wanted)
    return _cut(parts, fewest)


def _cut(parts: list[Part], places: int) -> list[list[Part]]:
    batches, start = [], 0
    while start < len(parts):
        rows = max(1, places // len(parts[start].ids))
        batches.append(parts[start : start + rows])
        start += rows
    return batches


def side_by_side(lines: Iterable[str], tgt_prefixes: Iterable[str], first: int) -> Iterator[tuple[str, str]]:
    """Raises DataError when one of both ends before the other."""
    for number, (line, prefix) in enumerate(zip_longest(lines, tgt_prefixes), first):
        if line is None or prefix is None:
            ended = "lines" if line is None else "target prefixes"
            raise DataError(f"the {ended} end before number {number:,}; there must be one target prefix for each line")
        yield line, prefix


def _translation(text: str, parts: list[Part], nbest: int) -> Translation:
    """A line from its parts: its k-th hypothesis is made of the k-th of each. Those that read the same are one."""
    if not parts:
        return Translation(text)
    ranked: dict[str, Translation] = {}
    for of_parts in zip(*(part.found for part in parts), strict=False):
        whole = _joined(parts, of_parts) if len(parts) > 1 else of_parts[0]
        ranked.setdefault(whole.text, whole)
    best, *others = list(ranked.values())[:nbest]
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    for one in (best, *others):
        one.text = _unbroken(before) + one.text + _unbroken(after)
    best.others = others
    return best


def _joined(parts: list[Part], found: Sequence[Translation]) -> Translation:
    weights = [len(part.ids) for part in parts]
    return Translation(
        join([Segment(one.text, part.glued) for part, one in zip(parts, found, strict=True)]),
        sum(weight * (one.score or 0) for weight, one in zip(weights, found, strict=True)) / sum(weights),
        sum(one.tokens for one in found),
        any(one.truncated for one in found),
        [piece for one in found for piece in one.pieces],
        [log_prob for one in found for log_prob in one.log_probs],
        [one for each in found for one in each.passes],
    )


def _unbroken(space: str) -> str:
    """White space without what some program takes for the end of a line."""
    return "".join(c for c in space if c == "\t" or not BREAKS.match(c))
