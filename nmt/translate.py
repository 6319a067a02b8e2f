"""Lines of text in, lines of text out, by one Translator: for the command, evaluation and validation alike."""

from __future__ import annotations

import math
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
from nmt.model.transformer import Transformer
from nmt.progress import say
from nmt.runtime import Runtime
from nmt.search import SEARCHES, Hypothesis, Search
from nmt.tokenizer import EOS, Tokenizer, blank

LONGEST = 1024  # pieces of a source line that are translated
BATCH_TOKENS = 8192  # source places of a batch, beams counted
CUDA_BATCH_TOKENS = 65_536
BLOCK = 20_000  # lines that are sorted by length and translated together


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
    ) -> None:
        """Loads a MODEL: a run directory (its best checkpoint), a checkpoint directory, or a config file.

        `precision` auto is the one that the run was trained in; `search` replaces options of the run's search.
        Raises CheckpointError or DeviceError.
        """
        found = checkpoint.find(model)
        config = found.config()
        if precision == "auto":
            precision = str(found.state["environment"]["precision"])
        settings = _replace(config.search, search or {})
        where = runtime.choose(device, precision, threads)
        self.checkpoint: checkpoint.Checkpoint | None = found
        self._set(found.load_model().to(where.device), found.tokenizer(), settings, where)

    @classmethod
    def of(cls, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime) -> Translator:
        """Around a model that is at hand already. The model is frozen: give a copy of one that is being trained."""
        translator = cls.__new__(cls)
        translator.checkpoint = None
        translator._set(model, tokenizer, search, where)
        return translator

    def _set(self, model: Transformer, tokenizer: Tokenizer, search: Choice, where: Runtime) -> None:

        self.model = model.freeze(where.dtype)
        self.tokenizer, self.runtime, self.settings = tokenizer, where, search
        self.search: Search = build(SEARCHES, search)
        self.beams = int(search.options.get("beam", 5)) if search.name == "beam" else 1
        self.forbidden = torch.tensor(tokenizer.forbidden(), device=where.device)
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
        iterator, first = iter(lines), 1
        while chunk := list(islice(iterator, block)):
            yield from self._block(chunk, first, batch_tokens, warn)
            first += len(chunk)

    def _block(self, lines: list[str], first: int, batch_tokens: int, warn: Callable[[str], None]) -> list[Translation]:
        done = [Translation(line) for line in lines]
        waiting = [i for i, line in enumerate(lines) if not blank(line)]
        ids = dict(zip(waiting, self.tokenizer.encode_src([lines[i] for i in waiting]), strict=True))
        for i in waiting:
            if len(ids[i]) > self.longest:
                warn(
                    f"warning: line {first + i} has {len(ids[i]) - 1:,} pieces, more than {self.longest - 1:,}; "
                    "the rest of it is not translated"
                )
                ids[i] = np.append(ids[i][: self.longest - 1], np.int32(EOS))
        # Longest first: if memory does not suffice, that shows at once.
        waiting.sort(key=lambda i: -len(ids[i]))
        start = 0
        while start < len(waiting):
            rows = max(1, batch_tokens // (len(ids[waiting[start]]) * self.beams))
            chosen = waiting[start : start + rows]
            start += rows
            found = self._search([ids[i] for i in chosen])
            for i, some in zip(chosen, found, strict=True):
                if not some or not math.isfinite(some[0].score):
                    raise NotFiniteError(
                        f"line {first + i}: the model's scores are no finite numbers, since its training diverged; "
                        "use another checkpoint"
                    )
            best = [some[0] for some in found]
            texts = self.tokenizer.decode([h.tokens for h in best])
            for i, text, hypothesis in zip(chosen, texts, best, strict=True):
                done[i] = Translation(text, hypothesis.score, len(hypothesis.tokens), hypothesis.truncated)
        return done

    def _search(self, src: list[np.ndarray]) -> list[list[Hypothesis]]:
        def too_much(ids: np.ndarray) -> str:
            return f"to translate a line of {len(ids):,} pieces; use fewer beams, or another device"

        return runtime.in_halves(self.search_ids, src, self.runtime.device, too_much)

    def search_ids(self, src: list[np.ndarray]) -> list[list[Hypothesis]]:
        """Hypotheses for sources given as ids that end in eos, best first."""
        with torch.inference_mode():
            src_BS = pad_sources(src, self.runtime.device)
            return self.search(self.model, src_BS, [len(ids) for ids in src], self.forbidden)
