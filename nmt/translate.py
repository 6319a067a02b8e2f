"""Lines of text in, lines of text out, by one Translator: for the command, evaluation and validation alike."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from nmt import checkpoint, runtime
from nmt.choice import Choice, build, options_of
from nmt.data.batches import pad_sources
from nmt.errors import NotFiniteError
from nmt.jobs import ordered_map, processors
from nmt.model.transformer import Transformer
from nmt.progress import say
from nmt.runtime import Runtime
from nmt.search.constraints import Constraints
from nmt.search.methods import SEARCHES, Hypothesis, Search, Sources
from nmt.tokenizer import EOS, Tokenizer, blank

LONGEST = 1024  # pieces of a source line that are translated
BATCH_TOKENS = 16_384  # source places of a batch, beams counted
CUDA_BATCH_TOKENS = 65_536
BLOCK = 20_000  # lines that are sorted by length and translated together
MEND = "use fewer --workers, or smaller --batch-tokens"


def _replace(settings: Choice, options: dict[str, Any]) -> Choice:
    """A search with some options replaced; another search keeps the options that it has too."""
    name = options.get("name", settings.name)
    shared = options_of(SEARCHES[name]) if isinstance(name, str) and name in SEARCHES else {}
    return Choice.read({**{k: v for k, v in settings.options.items() if k in shared}, **options, "name": str(name)})


@dataclass
class Translation:
    """One output line; `score` is None for a blank line, which no model has seen."""

    text: str
    score: float | None = None
    tokens: int = 0
    truncated: bool = False


def _workers(where: Runtime, threads: str | int) -> int:
    """As many as there are cores for; forked processes are safe on Linux."""
    if where.device.type != "cpu" or sys.platform != "linux":
        return 1
    return max(1, processors() // (1 if threads == "auto" else int(threads)))


@dataclass
class _Block:
    """Lines that are sorted by length and translated together: what is done, and the batches that are not yet, each a
    list of lines by their number in the block, as ids."""

    first: int  # the number of its first line among all
    done: list[Translation]
    waiting: deque[list[tuple[int, np.ndarray]]]


def _finished(blocks: deque[_Block]) -> Iterator[Translation]:
    """The first blocks with nothing left to wait for, which are taken away."""
    while blocks and not blocks[0].waiting:
        yield from blocks.popleft().done


class Translator:
    """Translates text with a trained model.

    `Translator("runs/demo").translate(["..."])` is all that most programs need.
    """

    def __init__(
        self,
        model: str,
        device: str = "auto",
        precision: str = "auto",
        threads: str | int = "auto",
        search: dict[str, Any] | None = None,
        workers: str | int = 1,
    ) -> None:
        """Loads a MODEL: a run directory (its best checkpoint), a checkpoint directory, or a config file.

        `precision` auto is the one that the run was trained in; `search` replaces options of the run's search.
        `workers` are processes that share the lines, each with so many `threads`; auto has as many as there are cores,
        which is fastest on a CPU. Raises CheckpointError or DeviceError.
        """
        found = checkpoint.find(model)
        config = found.config()
        if precision == "auto":
            precision = str(found.state["environment"]["precision"])
        settings = _replace(config.search, search or {})
        where = runtime.choose(device, precision, threads)
        self.workers = _workers(where, threads) if workers == "auto" else int(workers)
        if self.workers > 1 and threads == "auto":
            where = runtime.choose(device, precision, 1)
        self.checkpoint: checkpoint.Checkpoint | None = found
        self._set(found.load_model().to(where.device), found.tokenizer(), settings, where)

    @classmethod
    def of(cls, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime) -> Translator:
        """Around a model that is at hand already. The model is frozen: give a copy of one that is being trained."""
        translator = cls.__new__(cls)
        translator.checkpoint, translator.workers = None, 1
        translator._set(model, tokenizer, search, where)
        return translator

    def _set(self, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime) -> None:
        self.model = model.freeze(where.dtype)
        self.tokenizer, self.runtime, self.settings = tokenizer, where, search
        self.search: Search = build(SEARCHES, search)
        self.beams = int(search.options.get("beam", 5)) if search.name == "beam" else 1
        self.constraints = Constraints(torch.tensor(tokenizer.forbidden(), device=where.device))
        self.longest = min(LONGEST + 1, model.longest or LONGEST + 1)  # with the end of sentence

    def translate(self, lines: Iterable[str], batch_tokens: int | None = None) -> list[str]:
        """The translation of each line, in order; a blank line comes back as it is."""
        if isinstance(lines, str):
            raise TypeError("`lines` must be a list of lines, but is one string instead")
        return [translation.text for translation in self.stream(lines, batch_tokens)]

    def stream(
        self,
        lines: Iterable[str],
        batch_tokens: int | None = None,
        block: int = BLOCK,
        warn: Callable[[str], None] = say,
    ) -> Iterator[Translation]:
        """Translations in the order of the lines, block by block, so that memory does not grow with the input."""
        if batch_tokens is None:
            batch_tokens = CUDA_BATCH_TOKENS if self.runtime.device.type == "cuda" else BATCH_TOKENS
        blocks: deque[_Block] = deque()

        def sources() -> Iterator[list[np.ndarray]]:
            iterator, first = iter(lines), 1
            while chunk := list(islice(iterator, block)):
                blocks.append(self._block(chunk, first, batch_tokens, warn))
                yield from [[ids for _, ids in batch] for batch in blocks[-1].waiting]
                first += len(chunk)

        for found in ordered_map(self._search, sources(), self.workers, forked=True, mend=MEND):
            yield from _finished(blocks)  # those of blank lines only
            numbers = [i for i, _ in blocks[0].waiting.popleft()]
            best = [self._best(some, blocks[0].first + i) for i, some in zip(numbers, found, strict=True)]
            for i, h, text in zip(numbers, best, self.tokenizer.decode([h.tokens for h in best]), strict=True):
                blocks[0].done[i] = Translation(text, h.score, len(h.tokens), h.truncated)
            yield from _finished(blocks)
        yield from _finished(blocks)

    def _block(self, lines: list[str], first: int, batch_tokens: int, warn: Callable[[str], None]) -> _Block:
        """Sorts the lines that are not blank into batches; the first of all has the number `first`."""
        chosen = [i for i, line in enumerate(lines) if not blank(line)]
        encoded = list(zip(chosen, self.tokenizer.encode_src([lines[i] for i in chosen]), strict=True))
        for at, (i, ids) in enumerate(encoded):
            if len(ids) > self.longest:
                warn(
                    f"warning: line {first + i} has {len(ids) - 1:,} pieces, more than {self.longest - 1:,}; "
                    "the rest of it is not translated"
                )
                encoded[at] = i, np.append(ids[: self.longest - 1], np.int32(EOS))
        # Longest first: if memory does not suffice, that shows at once.
        encoded.sort(key=lambda line: -len(line[1]))
        waiting: deque[list[tuple[int, np.ndarray]]] = deque()
        start = 0
        while start < len(encoded):
            rows = max(1, batch_tokens // (len(encoded[start][1]) * self.beams))
            waiting.append(encoded[start : start + rows])
            start += rows
        return _Block(first, [Translation(line) for line in lines], waiting)

    def _best(self, found: list[Hypothesis], line: int) -> Hypothesis:
        if not found or not math.isfinite(found[0].score):
            raise NotFiniteError(
                f"line {line}: the model's scores are no finite numbers, since its training diverged; "
                "use another checkpoint"
            )
        return found[0]

    def _search(self, src: list[np.ndarray]) -> list[list[Hypothesis]]:
        def too_much(ids: np.ndarray) -> str:
            return f"to translate a line of {len(ids):,} pieces; use fewer beams, or another device"

        return runtime.in_halves(self.search_ids, src, self.runtime.device, too_much)

    def search_ids(self, src: list[np.ndarray]) -> list[list[Hypothesis]]:
        """Hypotheses for sources given as ids that end in eos, best first."""
        with torch.inference_mode():
            sources = Sources(pad_sources(src, self.runtime.device), [len(ids) for ids in src])
            return self.search(self.model, sources, self.constraints)
