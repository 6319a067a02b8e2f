"""Ways to split a line, drawn at random, the same for the same seed everywhere.

sentencepiece draws too, but neither reseeds its generator nor, since version 0.2.3, draws the same in two processes.
A line is split word by word, where no piece of the vocabulary goes beyond one, so that what is known of a word can be
kept.
"""

from __future__ import annotations

import math
import random
import re
from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import accumulate
from typing import Any, Generic, TypeVar

from nmt.tokenizer import schema

Known = TypeVar("Known")

UNKNOWN_PENALTY = 10.0  # sentencepiece's for a character without a piece, below the least score
KEPT = 200_000  # words that are remembered


class Sampler(ABC, Generic[Known]):
    """What both kinds share: words, pieces, and characters that have none."""

    def __init__(self, model: bytes, normalize: Callable[[str], str]) -> None:
        self.normalize = normalize
        proto = schema.Model.FromString(model)
        self.scores: dict[str, tuple[float, int]] = {}
        self.symbols: set[str] = set()
        self.bytes: dict[int, int] = {}
        for number, piece in enumerate(proto.pieces):
            if piece.type in (schema.NORMAL, schema.USER_DEFINED):
                self.scores[piece.piece] = piece.score, number
            if piece.type == schema.USER_DEFINED:
                self.symbols.add(piece.piece)
            elif piece.type == schema.BYTE:
                self.bytes[int(piece.piece[1:-1], 16)] = number
        self.unknown = proto.trainer_spec.unk_id
        whole = any("▁" in piece[1:] for piece in self.scores)
        self.words = re.compile(".+" if whole else "▁?[^▁]+|▁", re.DOTALL)
        # A symbol is always one piece; the longest that fits comes first.
        self.units = re.compile(
            "|".join([*map(re.escape, sorted(self.symbols, key=len, reverse=True)), "."]), re.DOTALL
        )
        self.known: dict[str, Known] = {}

    def __call__(self, line: str, seed: int) -> list[int]:
        """Ids of a line, without an end of sentence."""
        drawn = random.Random(seed)
        ids: list[int] = []
        for word in self.words.findall(self.normalize(line)):
            known = self.known.get(word)
            if known is None:
                if len(self.known) == KEPT:
                    self.known.clear()
                known = self.known[word] = self.learn(word)
            for number in self.draw(known, drawn):
                if number != self.unknown or not ids or ids[-1] != self.unknown:  # several in a row are one
                    ids.append(number)
        return ids

    @abstractmethod
    def learn(self, word: str) -> Known:
        """What is worth remembering of a word."""

    @abstractmethod
    def draw(self, known: Known, drawn: random.Random) -> Iterable[int]:
        """The ids of one way to split it."""

    def ids(self, piece: str) -> list[int]:
        """A piece's id; for a character that is none its bytes, or else the unknown."""
        if piece in self.scores:
            return [self.scores[piece][1]]
        return [self.bytes[byte] for byte in piece.encode()] if self.bytes else [self.unknown]


class BpeSampler(Sampler[tuple[list[str], list[int], float]]):
    """Leaves out each merge with probability `rate` (Provilkov et al. 2020), as sentencepiece does: a merge that was
    left out comes back only when a neighbour has changed."""

    def __init__(self, model: bytes, normalize: Callable[[str], str], rate: float) -> None:
        super().__init__(model, normalize)
        self.rate = rate

    def learn(self, word: str) -> tuple[list[str], list[int], float]:
        """Its units, its ids when every merge is done, and how probable that is."""
        units = self.units.findall(word)
        merges = [0]

        def keep() -> bool:
            merges[0] += 1
            return True

        ids = self._merge(units, keep)
        return units, ids, (1 - self.rate) ** merges[0]

    def draw(self, known: tuple[list[str], list[int], float], drawn: random.Random) -> list[int]:
        units, ids, whole = known
        if drawn.random() < whole:  # most words are split the usual way, which needs no work
            return ids
        # At least one merge is left out; the first that is comes after a geometric number of others.
        until = math.log1p(-drawn.random() * (1 - whole)) / math.log1p(-self.rate) if self.rate < 1 else 0.0
        first = [int(until)]

        def keep() -> bool:
            first[0] -= 1
            return first[0] >= 0 or (first[0] < -1 and drawn.random() >= self.rate)

        return self._merge(units, keep)

    def _merge(self, units: list[str], keep: Callable[[], bool]) -> list[int]:
        """Merges the best pair of neighbours (the left one of equals) while there is one; `keep` says whether."""
        pieces: list[str] = list(units)
        before, after = list(range(-1, len(pieces) - 1)), list(range(1, len(pieces) + 1))

        def pair(left: int) -> tuple[float, int, str] | None:
            right = after[left]
            if left < 0 or right == len(pieces) or pieces[left] in self.symbols or pieces[right] in self.symbols:
                return None
            together = pieces[left] + pieces[right]
            found = self.scores.get(together)
            return (-found[0], left, together) if found else None

        agenda = [found for found in map(pair, range(len(pieces) - 1)) if found]
        heapify(agenda)
        while agenda:
            _, left, together = heappop(agenda)
            right = after[left]
            if not pieces[left] or right == len(pieces) or pieces[left] + pieces[right] != together:
                continue  # one of them has become part of another piece
            if not keep():
                continue
            pieces[left], pieces[right] = together, ""
            after[left] = after[right]
            if after[left] < len(pieces):
                before[after[left]] = left
            for neighbour in (before[left], left):
                found = pair(neighbour) if neighbour >= 0 else None
                if found:
                    heappush(agenda, found)
        return [number for piece in pieces if piece for number in self.ids(piece)]


class UnigramSampler(Sampler[list[tuple[list[float], list[tuple[int, list[int]]]]]]):
    """Draws from all ways to split a word, each with a probability that grows with `alpha` times its score (Kudo
    2018), by sampling backwards through the lattice."""

    def __init__(self, model: bytes, normalize: Callable[[str], str], alpha: float) -> None:
        super().__init__(model, normalize)
        self.alpha = alpha
        scores = [score for score, _ in self.scores.values()]
        self.missing = min(scores) - UNKNOWN_PENALTY
        for symbol in self.symbols:  # sentencepiece's bonus, by which a symbol nearly always stays whole
            self.scores[symbol] = len(symbol.encode()) * max(scores) - 0.1, self.scores[symbol][1]
        self.longest = max(map(len, self.scores))

    def learn(self, word: str) -> list[tuple[list[float], list[tuple[int, list[int]]]]]:
        """For every place in the word the pieces that end there, each with where it starts and its ids, and the
        probabilities of these pieces, added up."""
        ends: list[tuple[list[float], list[tuple[int, list[int]]]]] = [([], [])]
        totals = [0.0]  # log of the sum over all ways to split what comes before a place
        for end in range(1, len(word) + 1):
            logs, nodes = [], []
            for start in range(max(0, end - self.longest), end):
                piece = word[start:end]
                found = self.scores.get(piece)
                if found or start == end - 1:
                    logs.append(totals[start] + self.alpha * (found[0] if found else self.missing))
                    nodes.append((start, self.ids(piece)))
            highest = max(logs)
            weights = [math.exp(log - highest) for log in logs]
            totals.append(highest + math.log(sum(weights)))
            ends.append((list(accumulate(weights)), nodes))
        return ends

    def draw(self, known: list[tuple[list[float], list[tuple[int, list[int]]]]], drawn: random.Random) -> list[int]:
        backwards = []
        end = len(known) - 1
        while end:
            sums, nodes = known[end]
            end, ids = nodes[min(bisect(sums, drawn.random() * sums[-1]), len(nodes) - 1)]
            backwards.append(ids)
        return [number for ids in reversed(backwards) for number in ids]


SAMPLERS: dict[str, Callable[[bytes, Callable[[str], str], float], Sampler[Any]]] = {
    "bpe": BpeSampler,
    "unigram": UnigramSampler,
}
