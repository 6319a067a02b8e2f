"""Lines of text in, lines of text out, by one Translator: for the command, evaluation and validation alike."""

from __future__ import annotations

import copy
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch

from nmt import checkpoint, ranks, runtime
from nmt.blocks import LONGEST, Block, Blocks, Part, Pass, Translation, side_by_side
from nmt.checkpoint import Checkpoint
from nmt.choice import Choice, build, options_of
from nmt.config import Config
from nmt.data.batches import pad_sources
from nmt.data.filters import longest
from nmt.errors import CheckpointError, ConfigError, DataError, NmtError, NotFiniteError
from nmt.jobs import ordered_map, processors
from nmt.model.transformer import Transformer
from nmt.progress import say
from nmt.runtime import Runtime
from nmt.search.constraints import Constraints
from nmt.search.ensemble import Ensemble
from nmt.search.methods import SEARCHES, Hypothesis, Search, Sources, StepModel
from nmt.tokenizer import EOS, Tokenizer, blank

UNLIMITED = 1025  # ids of the longest source of a model whose training let all lengths pass
BATCH_TOKENS = 16_384  # source places of a batch, beams counted
CUDA_BATCH_TOKENS = 65_536
BLOCK = 20_000  # lines that are sorted by length and translated together
SHARES = 8  # processors at most that the batches of a short text are dealt out to
MEND = "use fewer --workers, smaller --batch-tokens or a narrower beam"


def replaced(settings: Choice, options: dict[str, Any]) -> Choice:
    """A search with some options replaced; another search keeps the options that it has too."""
    name = options.get("name", settings.name)
    shared = options_of(SEARCHES[name]) if isinstance(name, str) and name in SEARCHES else {}
    return Choice.read({**{k: v for k, v in settings.options.items() if k in shared}, **options, "name": str(name)})


def _load(model: str) -> tuple[Checkpoint, Config, Tokenizer, Transformer]:
    """A MODEL, with all that is read of it."""

    def read() -> tuple[Checkpoint, Config, Tokenizer, Transformer]:
        found = checkpoint.find(model)
        return found, found.config(), found.tokenizer(), found.load_model()

    try:
        return read()
    except (CheckpointError, FileNotFoundError):  # a training that goes on may have deleted it, for another one
        return read()


def _workers(where: Runtime, threads: str | int) -> int:
    """As many as there are cores for; forked processes are safe on Linux."""
    if where.device.type != "cpu" or sys.platform != "linux":
        return 1
    return max(1, processors() // ranks.started()[2] // (1 if threads == "auto" else int(threads)))


class Translator:
    """Translates text with a trained model.

    `Translator("runs/demo").translate(["..."], beam=5)` is all that most programs need.
    """

    predictor: StepModel[Any]  # the model, or several as one
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
        # Says what is missing before anything is loaded; that needs no more threads, which must not be forked.
        runtime.choose(device, precision, 1 if threads == "auto" else threads)
        found, config, pieces, loaded = _load(model)
        precision = found.precision(precision)
        settings = replaced(config.search, search or {})
        runtime.keep_few_kernels()
        where = runtime.choose(device, precision, threads)
        self.workers = _workers(where, threads) if workers == "auto" else int(workers)
        if self.workers > 1 and threads == "auto":
            where = runtime.choose(device, precision, 1)
        self._set(loaded.to(where.device), pieces, settings, where, longest(config.data.filters))
        self._belongs_to(config)
        if ensemble:
            self.predictor = Ensemble([self.model, *map(self._another, ensemble)])
        for phrase in banned:
            if blank(phrase):
                raise ConfigError(f"the banned phrase {phrase!r} is blank; expected text that no translation may hold")
        self.constraints.phrases = [ids[:-1].tolist() for ids in self.tokenizer.encode_tgt(list(banned))]

    def _another(self, name: str) -> Transformer:
        _, _, pieces, loaded = _load(name)
        if pieces.digest() != self.tokenizer.digest():
            raise CheckpointError(
                f"{name}: has another vocabulary than the first model; an ensemble needs models with the same tokenizer"
            )
        return loaded.to(self.runtime.device).freeze(self.runtime.dtype)

    def _belongs_to(self, config: Config) -> None:
        self.blocks.tags = [str(corpus.options.get("prefix", "")) for corpus in config.data.train]

    @classmethod
    def of(
        cls, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime, trained: int | None = None
    ) -> Translator:
        """Around a model that is at hand already. The model is frozen: give a copy of one that is being trained.

        `trained` is the most ids of a source, its end counted, that it has been trained on.
        """
        translator = cls.__new__(cls)
        translator._set(model, tokenizer, search, where, trained)
        return translator

    def _set(
        self, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime, trained: int | None
    ) -> None:
        self.model = model.freeze(where.dtype)
        self.predictor = self.model
        self.tokenizer, self.runtime = tokenizer, where
        self.constraints = Constraints(torch.tensor(tokenizer.forbidden(), device=where.device))
        trained = trained or UNLIMITED
        most = min(max(LONGEST + 1, trained), model.longest or sys.maxsize)
        self.blocks = Blocks(tokenizer, most, min(most, trained))
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
        first: int = 1,
        tgt_prefixes: Iterable[str] | None = None,
    ) -> Iterator[Translation]:
        """Translations in the order of the lines, block by block, so that memory does not grow with the input.

        Of `nbest` hypotheses all but the best are its `others`. `first` is the number of the first line, which warnings
        and random numbers go by. With `tgt_prefixes`, one for each line, a translation begins with the words of its
        own, if any. Raises NmtError at once if the beam is narrower.
        """
        if isinstance(lines, str) or isinstance(tgt_prefixes, str):
            name = "lines" if isinstance(lines, str) else "tgt_prefixes"
            raise TypeError(f"`{name}` must be a list of lines, but is one string instead")
        if not 1 <= nbest <= self.beams:
            raise NmtError(
                f"{nbest} hypotheses of each line were asked for, but the search keeps {self.beams}; "
                f"use a beam of {max(1, nbest)} or more"
            )
        pairs = ((line, "") for line in lines) if tgt_prefixes is None else side_by_side(lines, tgt_prefixes, first)
        # Whoever works: the batches of a text, which may change bf16, are the same for all numbers of workers.
        shares = min(SHARES, processors()) if self.runtime.device.type == "cpu" else 1
        places = self._places(batch_tokens) // self.beams
        return self._stream(self.blocks.make(pairs, block, first, places, shares, warn), nbest)

    def _places(self, batch_tokens: int | None) -> int:
        """Source places of a batch, beams counted."""
        if batch_tokens is not None:
            return batch_tokens
        return CUDA_BATCH_TOKENS if self.runtime.device.type == "cuda" else BATCH_TOKENS

    def _stream(self, made: Iterator[Block], nbest: int) -> Iterator[Translation]:
        blocks: deque[Block] = deque()

        def batches() -> Iterator[list[Part]]:
            for block in made:
                self._check_begun(block)
                blocks.append(block)
                yield from list(block.waiting)

        for found in ordered_map(self._search, batches(), self.workers, forked=True, mend=MEND):
            self._decode(blocks[0].waiting.popleft(), found, nbest)
            if not blocks[0].waiting:
                yield from blocks.popleft().translations(nbest)

    def _check_begun(self, block: Block) -> None:
        """Raises DataError for a line whose translation begins with more pieces than it may have."""
        limits = int(self.settings.options.get("max_length", 0)), self.predictor.longest
        most = min(filter(None, limits), default=sys.maxsize)
        for part in chain.from_iterable(block.parts):
            if len(part.begin) > most:
                raise DataError(
                    f"line {part.line}: its target prefix has {len(part.begin)} pieces, but a translation has at most "
                    f"{most}; allow for more (--max-length, search.max_length)"
                )

    def _decode(self, batch: list[Part], found: list[list[Hypothesis]], nbest: int) -> None:
        for part, hypotheses in zip(batch, found, strict=True):
            if not hypotheses or not math.isfinite(hypotheses[0].score):
                raise NotFiniteError.at_line(part.line)
        kept = [hypotheses if nbest > 1 else hypotheses[:1] for hypotheses in found]
        texts = iter(self.tokenizer.decode([h.tokens for hypotheses in kept for h in hypotheses]))
        for part, hypotheses in zip(batch, kept, strict=True):
            part.found = [
                Translation(
                    next(texts),
                    h.score,
                    len(h.tokens),
                    h.truncated,
                    self.tokenizer.pieces(h.tokens),
                    h.log_probs,
                    [Pass(part.ids, _with_eos(h), part.repeated, part.glued)],
                )
                for h in hypotheses
            ]

    def _search(self, batch: list[Part]) -> list[list[Hypothesis]]:
        def search(some: list[Part]) -> list[list[Hypothesis]]:
            begin = [part.begin for part in some]
            return self.search_ids([p.ids for p in some], [p.line for p in some], begin if any(begin) else ())

        def too_much(part: Part) -> str:
            return f"to translate a line of {len(part.ids):,} pieces; use fewer beams, or another device"

        found = runtime.in_halves(search, batch, self.runtime.device, too_much) if batch else []
        if self.runtime.device.type == "cpu":
            runtime.trim_memory()
        return found

    def search_ids(
        self, src: list[np.ndarray], numbers: Sequence[int] = (), prefixes: Sequence[Sequence[int]] = ()
    ) -> list[list[Hypothesis]]:
        """Hypotheses for sources given as ids that end in eos, best first; random numbers depend on those of lines, and
        each begins with the target ids of its prefix."""
        with torch.inference_mode():
            sources = Sources(pad_sources(src, self.runtime.device), [len(ids) for ids in src], numbers, prefixes)
            return self.search(self.predictor, sources, self.constraints)


def _with_eos(found: Hypothesis) -> np.ndarray:
    return np.array(found.tokens if found.truncated else [*found.tokens, EOS], np.int32)
