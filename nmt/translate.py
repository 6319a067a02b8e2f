"""Lines of text in, lines of text out, by one Translator: for the command, evaluation and validation alike."""

from __future__ import annotations

import copy
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
import torch

from nmt import checkpoint, runtime
from nmt.checkpoint import Checkpoint
from nmt.choice import Choice, build, options_of
from nmt.data.batches import pad_sources
from nmt.errors import CheckpointError, ConfigError, NmtError, NotFiniteError
from nmt.jobs import ordered_map, processors
from nmt.model.transformer import Transformer
from nmt.progress import say
from nmt.runtime import Runtime
from nmt.search.constraints import Constraints
from nmt.search.ensemble import Ensemble
from nmt.search.methods import SEARCHES, Hypothesis, Search, Sources, StepModel
from nmt.tokenizer import BREAKS, EOS, Tokenizer, blank
from nmt.tokenizer.segments import Segment, join, split

LONGEST = 1024  # pieces of a source line that are translated
BATCH_TOKENS = 16_384  # source places of a batch, beams counted
CUDA_BATCH_TOKENS = 65_536
BLOCK = 20_000  # lines that are sorted by length and translated together
MEND = "use fewer --workers, or smaller --batch-tokens"


def replaced(settings: Choice, options: dict[str, Any]) -> Choice:
    """A search with some options replaced; another search keeps the options that it has too."""
    name = options.get("name", settings.name)
    shared = options_of(SEARCHES[name]) if isinstance(name, str) and name in SEARCHES else {}
    return Choice.read({**{k: v for k, v in settings.options.items() if k in shared}, **options, "name": str(name)})


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
    others: list[Translation] = field(default_factory=list)  # the next best ones, best first


def _workers(where: Runtime, threads: str | int) -> int:
    """As many as there are cores for; forked processes are safe on Linux."""
    if where.device.type != "cpu" or sys.platform != "linux":
        return 1
    return max(1, processors() // (1 if threads == "auto" else int(threads)))


@dataclass
class _Part:
    """A line, or a part of one that is too long."""

    line: int  # its number among all
    ids: np.ndarray  # end in eos
    glued: bool = False  # to the part before it
    found: list[Translation] = field(default_factory=list)


@dataclass
class _Block:
    """Lines that are sorted by length and translated together, each with its parts; a blank one has none."""

    lines: list[str]
    parts: list[list[_Part]]
    waiting: deque[list[_Part]]  # batches that are not done yet


class Translator:
    """Translates text with a trained model.

    `Translator("runs/demo").translate(["..."], beam=5)` is all that most programs need.
    """

    predictor: StepModel[Any]  # the model, or several as one
    checkpoint: Checkpoint | None = None
    prefixes: Sequence[str] = ()  # that sources had in training
    workers = 1

    def __init__(
        self,
        model: str,
        device: str = "auto",
        precision: str = "auto",
        threads: str | int = "auto",
        search: dict[str, Any] | None = None,
        workers: str | int = 1,
        ensemble: Sequence[str] = (),
        banned: Sequence[str] = (),
    ) -> None:
        """Loads a MODEL: a run directory (its best checkpoint), a checkpoint directory, or a config file.

        `precision` auto is the one that the run was trained in; `search` replaces options of the run's search.
        `workers` are processes that share the lines, each with so many `threads`; auto has as many as there are cores,
        which is fastest on a CPU. `ensemble` are more models of the same vocabulary, whose probabilities are averaged;
        `banned` are phrases that no translation holds, as the tokenizer splits them. Raises CheckpointError or
        DeviceError.
        """
        found = checkpoint.find(model)
        config = found.config()
        precision = found.precision(precision)
        settings = replaced(config.search, search or {})
        where = runtime.choose(device, precision, threads)
        self.workers = _workers(where, threads) if workers == "auto" else int(workers)
        if self.workers > 1 and threads == "auto":
            where = runtime.choose(device, precision, 1)
        self._belongs_to(found)
        self._set(found.load_model().to(where.device), found.tokenizer(), settings, where)
        if ensemble:
            self.predictor = Ensemble([self.model, *map(self._another, ensemble)])
        for phrase in banned:
            if blank(phrase):
                raise ConfigError(f"the banned phrase {phrase!r} is blank; expected text that no translation may hold")
        self.constraints.phrases = [ids[:-1].tolist() for ids in self.tokenizer.encode_tgt(list(banned))]

    def _another(self, name: str) -> Transformer:
        found = checkpoint.find(name)
        if found.tokenizer().digest() != self.tokenizer.digest():
            raise CheckpointError(
                f"{name}: has another vocabulary than the first model; an ensemble needs models with the same tokenizer"
            )
        return found.load_model().to(self.runtime.device).freeze(self.runtime.dtype)

    def _belongs_to(self, found: Checkpoint) -> None:
        self.checkpoint = found
        self.prefixes = [str(corpus.options.get("prefix", "")) for corpus in found.config().data.train]

    @classmethod
    def of(cls, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime) -> Translator:
        """Around a model that is at hand already. The model is frozen: give a copy of one that is being trained."""
        translator = cls.__new__(cls)
        translator._set(model, tokenizer, search, where)
        return translator

    def _set(self, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime) -> None:
        self.model = model.freeze(where.dtype)
        self.predictor = self.model
        self.tokenizer, self.runtime = tokenizer, where
        self.constraints = Constraints(torch.tensor(tokenizer.forbidden(), device=where.device))
        self.longest = min(LONGEST + 1, model.longest or LONGEST + 1)  # with the end of sentence
        self._set_search(search)

    def _set_search(self, settings: Choice) -> None:
        self.settings = settings
        self.search: Search = build(SEARCHES, settings)
        self.beams = int(settings.options.get("beam", 5)) if settings.name == "beam" else 1

    def searching(self, **search: Any) -> Translator:
        """The same translator with other options of the search: beam=5, or name="greedy"."""
        other = copy.copy(self)
        other._set_search(replaced(self.settings, search))
        return other

    def translate(self, lines: Iterable[str], batch_tokens: int | None = None, **search: Any) -> list[str]:
        """The translation of each line, in order; a blank line comes back as it is.

        `search` are options of the search for this call, such as beam=5.
        """
        translator = self.searching(**search) if search else self
        return [translation.text for translation in translator.stream(lines, batch_tokens)]

    def stream(
        self,
        lines: Iterable[str],
        batch_tokens: int | None = None,
        block: int = BLOCK,
        warn: Callable[[str], None] = say,
        nbest: int = 1,
    ) -> Iterator[Translation]:
        """Translations in the order of the lines, block by block, so that memory does not grow with the input.

        Of `nbest` hypotheses all but the best are its `others`. Raises NmtError at once if the beam is narrower.
        """
        if isinstance(lines, str):
            raise TypeError("`lines` must be a list of lines, but is one string instead")
        if nbest > self.beams:
            raise NmtError(
                f"{nbest} hypotheses of each line were asked for, but the search keeps {self.beams}; "
                f"use a beam of {nbest} or more"
            )
        if batch_tokens is None:
            batch_tokens = CUDA_BATCH_TOKENS if self.runtime.device.type == "cuda" else BATCH_TOKENS
        return self._stream(iter(lines), batch_tokens, block, warn, nbest)

    def _stream(
        self, lines: Iterator[str], batch_tokens: int, size: int, warn: Callable[[str], None], nbest: int
    ) -> Iterator[Translation]:
        blocks: deque[_Block] = deque()

        def batches() -> Iterator[list[_Part]]:
            first = 1
            while chunk := list(islice(lines, size)):
                blocks.append(self._block(chunk, first, batch_tokens, warn))
                yield from list(blocks[-1].waiting)
                first += len(chunk)

        for found in ordered_map(self._search, batches(), self.workers, forked=True, mend=MEND):
            self._decode(blocks[0].waiting.popleft(), found, nbest)
            if not blocks[0].waiting:
                block = blocks.popleft()
                for text, parts in zip(block.lines, block.parts, strict=True):
                    yield _translation(text, parts, nbest)

    def _block(self, lines: list[str], first: int, batch_tokens: int, warn: Callable[[str], None]) -> _Block:
        """Sorts the lines that are not blank into batches; the first of all has the number `first`."""
        chosen = [i for i, line in enumerate(lines) if not blank(line)]
        parts: list[list[_Part]] = [[] for _ in lines]
        for i, ids in zip(chosen, self.tokenizer.encode_src([lines[i].strip() for i in chosen]), strict=True):
            parts[i] = [_Part(first + i, ids)]
            if len(ids) > self.longest:
                parts[i] = self._split(lines[i].strip(), first + i)
                warn(
                    f"warning: line {first + i} has {len(ids) - 1:,} pieces, more than {self.longest - 1:,}; "
                    f"it is translated in {len(parts[i]):,} parts"
                )
        # Longest first: if memory does not suffice, that shows at once.
        rest = sorted(chain.from_iterable(parts), key=lambda part: -len(part.ids))
        # Nothing but blank lines is a batch too, so that they come back in their turn.
        waiting: deque[list[_Part]] = deque([] if rest else [[]])
        start = 0
        while start < len(rest):
            rows = max(1, batch_tokens // (len(rest[start].ids) * self.beams))
            waiting.append(rest[start : start + rows])
            start += rows
        return _Block(lines, parts, waiting)

    def _split(self, text: str, line: int) -> list[_Part]:
        """A line in parts that are short enough, each with the prefix that the line has."""
        prefix = max(filter(text.startswith, self.prefixes), key=len, default="")
        most = self.longest - 1
        [of_prefix] = self._pieces([prefix])
        segments = list(split(text.removeprefix(prefix), max(1, most - of_prefix), self._pieces))
        parts = []
        for segment, ids in zip(segments, self.tokenizer.encode_src([prefix + s.text for s in segments]), strict=True):
            for start in range(0, len(ids) - 1, most):  # one word may still be longer
                some = np.append(ids[:-1][start : start + most], np.int32(EOS))
                parts.append(_Part(line, some, segment.glued and start == 0))
        return parts

    def _pieces(self, texts: list[str]) -> list[int]:
        return [len(ids) - 1 for ids in self.tokenizer.encode_src(texts)]

    def _decode(self, batch: list[_Part], found: list[list[Hypothesis]], nbest: int) -> None:
        for part, hypotheses in zip(batch, found, strict=True):
            if not hypotheses or not math.isfinite(hypotheses[0].score):
                raise NotFiniteError.at_line(part.line)
        kept = [hypotheses if nbest > 1 else hypotheses[:1] for hypotheses in found]
        texts = iter(self.tokenizer.decode([h.tokens for hypotheses in kept for h in hypotheses]))
        for part, hypotheses in zip(batch, kept, strict=True):
            part.found = [
                Translation(
                    next(texts), h.score, len(h.tokens), h.truncated, self.tokenizer.pieces(h.tokens), h.log_probs
                )
                for h in hypotheses
            ]

    def _search(self, batch: list[_Part]) -> list[list[Hypothesis]]:
        def search(some: list[_Part]) -> list[list[Hypothesis]]:
            return self.search_ids([part.ids for part in some], [part.line for part in some])

        def too_much(part: _Part) -> str:
            return f"to translate a line of {len(part.ids):,} pieces; use fewer beams, or another device"

        return runtime.in_halves(search, batch, self.runtime.device, too_much) if batch else []

    def search_ids(self, src: list[np.ndarray], numbers: Sequence[int] = ()) -> list[list[Hypothesis]]:
        """Hypotheses for sources given as ids that end in eos, best first; random numbers depend on those of lines."""
        with torch.inference_mode():
            sources = Sources(pad_sources(src, self.runtime.device), [len(ids) for ids in src], numbers)
            return self.search(self.predictor, sources, self.constraints)


def _translation(text: str, parts: list[_Part], nbest: int) -> Translation:
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


def _joined(parts: list[_Part], found: Sequence[Translation]) -> Translation:
    weights = [len(part.ids) for part in parts]
    return Translation(
        join([Segment(one.text, part.glued) for part, one in zip(parts, found, strict=True)]),
        sum(weight * (one.score or 0) for weight, one in zip(weights, found, strict=True)) / sum(weights),
        sum(one.tokens for one in found),
        any(one.truncated for one in found),
        [piece for one in found for piece in one.pieces],
        [log_prob for one in found for log_prob in one.log_probs],
    )


def _unbroken(space: str) -> str:
    """White space without what some program takes for the end of a line."""
    return "".join(c for c in space if c == "\t" or not BREAKS.match(c))
