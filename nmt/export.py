"""Models to hand on: checkpoint directories without what only training needs, in several formats."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from nmt import card, checkpoint, engine
from nmt.checkpoint import Checkpoint
from nmt.choice import Choice, build
from nmt.data.prepare import open_prepared
from nmt.engine import EngineTranslator
from nmt.errors import ConfigError, DataError, NmtError
from nmt.files import read_lines
from nmt.progress import say
from nmt.tokenizer import Tokenizer, blank
from nmt.translate import Translator

CHECKED = 100  # lines whose translations are compared
FEW_EQUAL = 0.99  # of the lines; less is too few where nothing was rounded
EXPORTED = "exported"  # in the state of an export: the format and its options
KEPT = ("step", "score", "nll", "metric", "averaged", "environment", "config_digest", "data_digest", "tokenizer_digest")


class Format(Protocol):
    rounds: bool  # whether the weights lose digits

    def check(self) -> None:
        """Raises NmtError if what it takes is not installed."""

    def state(self, found: Checkpoint) -> dict[str, Any]:
        """What it adds to the checkpoint's state."""

    def write(self, found: Checkpoint, place: Path) -> None:
        """Puts the weights into a directory."""

    def open(self, directory: Path) -> Translator | None:
        """What was written, to be compared with our own translations; None where nothing can differ."""


class Plain:
    """Weights, tokenizer, config and a model card, to publish, to translate with, or to start another run from."""

    def __init__(self, *, half: bool = False) -> None:
        self.rounds = half

    def check(self) -> None:
        pass

    def state(self, found: Checkpoint) -> dict[str, Any]:
        return {}

    def write(self, found: Checkpoint, place: Path) -> None:
        tensors = found.weights()
        if self.rounds:
            tensors = {name: tensor.half() for name, tensor in tensors.items()}
            if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
                raise NmtError(f"{found.directory}: has weights too large for float16; leave out --half")
        checkpoint.write_tensors(place / checkpoint.WEIGHTS, tensors)

    def open(self, directory: Path) -> Translator | None:
        return Translator(str(directory), "cpu", "fp32", workers="auto") if self.rounds else None


class CTranslate2:
    """A model for the CTranslate2 engine, in fp32 or with smaller weights."""

    def __init__(
        self,
        *,
        quantization: Literal["float32", "int8", "int8_float32", "int16", "float16", "bfloat16"] = "float32",
    ) -> None:
        self.quantization = quantization
        self.rounds = quantization != "float32"

    def check(self) -> None:
        engine.package()

    def state(self, found: Checkpoint) -> dict[str, Any]:
        tokenizer = found.tokenizer()
        return {checkpoint.ENGINE: engine.NAME, "forbidden": tokenizer.pieces(tokenizer.forbidden())}

    def write(self, found: Checkpoint, place: Path) -> None:
        engine.convert(found, place, self.quantization)

    def open(self, directory: Path) -> Translator | None:
        return EngineTranslator(str(directory), "cpu")


FORMATS: Mapping[str, Callable[..., Format]] = {"ctranslate2": CTranslate2, "plain": Plain}


def export(model: str, to: str, chosen: Choice, check: str | None = None, overwrite: bool = False) -> None:
    """Writes a MODEL in the chosen format into the directory `to`, and compares its translations with ours.

    They are those of the run's validation set, or of the file `check`. Raises NmtError before any work where it can.
    """
    try:
        form: Format = build(FORMATS, chosen)
    except ConfigError as error:
        raise ConfigError(f"--format: {error}") from None
    form.check()
    target = Path(to).absolute()
    _check_target(target, overwrite)
    lines = _few(read_lines(check)) if check else None
    if lines == []:
        raise DataError(f"{check}: holds no lines to compare translations on")
    found = checkpoint.find(model)
    state = {key: found.state[key] for key in KEPT if key in found.state}
    state |= {EXPORTED: chosen.tree(), "about": card.about(found), **form.state(found)}
    parameters = sum(tensor.numel() for tensor in found.weights().values())
    with checkpoint.writing(target, state, found.config(), found.directory) as place:
        form.write(found, place)
        (place / "README.md").write_text(card.markdown(found, state, parameters), encoding="utf-8")
    size = sum(path.stat().st_size for path in target.iterdir())
    say(f"{to}: {found.directory} in the format {chosen}, {size / 1e6:,.1f} MB")
    theirs = form.open(target)
    if theirs is not None:
        _compare(found, theirs, _valid(found) if lines is None else lines, form.rounds)


def _check_target(target: Path, overwrite: bool) -> None:
    """Raises NmtError for anything that may not be replaced."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise NmtError(f"{target}: is a file, expected a directory to write")
    names = sorted(path.name for path in target.iterdir())
    if names and not overwrite:
        raise NmtError(f"{target}: exists already; name another directory, or --overwrite to replace it")
    if names and not _is_export(target):
        raise NmtError(f"{target}: holds files that are no export of ours ({names[0]}); name another directory")


def _is_export(directory: Path) -> bool:
    try:
        return EXPORTED in checkpoint.open_checkpoint(directory).state
    except NmtError:
        return False


# --- is it the same model? ---


def _few(lines: Iterable[str]) -> list[str]:
    return list(islice((line for line in lines if not blank(line)), CHECKED))


def _valid(found: Checkpoint) -> list[str]:
    """Sources of the validation set, if the run is still there."""
    run = found.run()
    if run is None:
        return []
    try:
        stores = open_prepared(run).valid()
    except DataError:
        return []
    return _few(src for store in stores.values() for src, _ in store.texts())


def _compare(found: Checkpoint, theirs: Translator, lines: list[str], rounds: bool) -> None:
    if not lines:
        say("not compared with our own translations, as the run's validation set is not there: --check FILE names text")
        return
    ours = Translator(str(found.directory), "cpu", "fp32", workers="auto")
    same, tokens = agreement(ours.tokenizer, ours.translate(lines), theirs.translate(lines))
    warning = "warning: " if not rounds and same < FEW_EQUAL else ""
    say(
        f"{warning}of {len(lines):,} lines, {same:.1%} are translated as in fp32 by nmt itself, "
        f"and {tokens:.1%} of the tokens are the same"
    )


def agreement(tokenizer: Tokenizer, ours: list[str], theirs: list[str]) -> tuple[float, float]:
    """The share of lines that are equal, and of tokens that both have in common, in order."""
    equal = sum(one == other for one, other in zip(ours, theirs, strict=True))
    common = total = 0
    for one, other in zip(tokenizer.encode_tgt(ours), tokenizer.encode_tgt(theirs), strict=True):
        blocks = difflib.SequenceMatcher(None, one.tolist(), other.tolist(), autojunk=False).get_matching_blocks()
        common, total = common + 2 * sum(block.size for block in blocks), total + len(one) + len(other)
    return equal / len(ours), common / total
