"""Weights on disk: directories that are whole, checksummed and free of pickle; and MODEL arguments that name them.

checkpoints/step-00000500/          model.safetensors, optimizer.safetensors, state.json, config.yaml, tokenizer
checkpoints/step-00000500.average/  the same without an optimizer: the mean of the last snapshots
checkpoints/snapshots/              weights at the last validations, for that mean

What `nmt export` writes is such a directory too: without an optimizer, and with more in its state.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from nmt import __version__, tokenizer
from nmt.choice import build
from nmt.config import Config, Model, from_tree
from nmt.errors import CheckpointError
from nmt.files import read_lines, remove_directory, sha256, write_directory, write_file
from nmt.model.layers import LayerShape
from nmt.model.position import POSITIONS
from nmt.model.transformer import Architecture, Transformer
from nmt.optim import Optimizer
from nmt.run import Run
from nmt.strict_yaml import dump, parse_yaml
from nmt.tokenizer import Tokenizer

FORMAT = 1
CHECKSUM = "checksum"  # of the state's other entries, or of a snapshot's weights
ASIDE = "damaged-"  # before the name of a checkpoint that is not what was written
ENGINE = "engine"  # in the state of a model whose weights only another program reads: its name
EXPECTED = "MODEL must be the directory of a run, a checkpoint or an export, or a config file"
WEIGHTS, OPTIMIZER, STATE, CONFIG = "model.safetensors", "optimizer.safetensors", "state.json", "config.yaml"


def build_model(model: Model, src_vocab: int, tgt_vocab: int) -> Transformer:
    """A freshly initialised model of the configured sizes."""
    layer = LayerShape(
        model.dim,
        model.heads,
        model.ffn_dim,
        model.dropout,
        model.attention_dropout,
        model.activation_dropout,
        model.norm,
        model.norm_first,
        model.activation,
    )
    position: Callable[[int], Any] = partial(build, POSITIONS, model.position)
    return Transformer(
        Architecture(
            layer,
            src_vocab,
            tgt_vocab,
            model.encoder_layers,
            model.decoder_layers,
            model.tie,
            model.word_dropout,
            position,
        )
    )


class DamagedError(CheckpointError):
    """A checkpoint that is not what was written."""


@dataclass
class Checkpoint:
    """A complete checkpoint directory, its weights not yet read."""

    directory: Path
    state: dict[str, Any]

    @property
    def step(self) -> int:
        return int(self.state["step"])

    @property
    def score(self) -> float | None:
        """What `best` is chosen by, larger is better; None if it was never validated."""
        value = self.state["score"]
        return None if value is None else float(value)

    @property
    def averaged(self) -> bool:
        return bool(self.state["averaged"])

    def precision(self, asked: str) -> str:
        """What was asked for; `auto` is the one that the run was trained in."""
        return str(self.state["environment"]["precision"]) if asked == "auto" else asked

    def config(self) -> Config:
        text = (self.directory / CONFIG).read_text(encoding="utf-8")
        config: Config = from_tree(Config, parse_yaml(text, str(self.directory / CONFIG)))
        return config

    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.directory)

    def run(self) -> Run | None:
        """The run that it lies in, wherever that was moved to; None for a directory by itself."""
        run = Run(self.directory.resolve().parent.parent)
        return run if self.directory.resolve().parent == run.checkpoints and run.exists else None

    def load_model(self) -> Transformer:
        pieces = self.tokenizer()
        model = build_model(self.config().model, len(pieces.src), len(pieces.tgt))
        load_weights(model, self.tensors(WEIGHTS), self.directory)
        return model

    def weights(self) -> dict[str, Tensor]:
        return self.tensors(WEIGHTS)

    def tensors(self, name: str) -> dict[str, Tensor]:
        if ENGINE in self.state:
            raise CheckpointError(
                f"{self.directory}: was exported for {self.state[ENGINE]}, which can only translate "
                f"(--engine {self.state[ENGINE]}); name the run or the checkpoint instead"
            )
        return _read_tensors(self.directory / name)

    def parameters(self) -> int:
        """How many numbers the model has, without reading them."""
        try:
            with safe_open(self.directory / WEIGHTS, "pt") as file:
                return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise _unreadable(self.directory / WEIGHTS, error) from None

    def verify(self) -> None:
        """Raises DamagedError if a file is not what was written."""
        for name, digest in self.state["files"].items():
            path = self.directory / name
            try:
                intact = sha256(path) == digest
            except OSError:
                raise DamagedError(f"{path}: is missing from the checkpoint; use another one") from None
            if not intact:
                raise _wrong(path)
        expected = _checksum(self.state)
        if self.state.get(CHECKSUM, expected) != expected:
            raise _wrong(self.directory / STATE)


def _wrong(path: Path) -> DamagedError:
    return DamagedError(
        f"{path}: its content is not what was saved (wrong checksum); use another checkpoint of the run"
    )


def _checksum(state: dict[str, Any]) -> str:
    rest = {key: value for key, value in state.items() if key != CHECKSUM}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def open_checkpoint(directory: Path) -> Checkpoint:
    """Raises DamagedError when it is none, and CheckpointError for a format that this version does not know."""
    try:
        state = json.loads((directory / STATE).read_text(encoding="utf-8"))
        known = state["format"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        raise DamagedError(f"{directory}: is no checkpoint of nmt (no readable {STATE})") from None
    if not known:
        raise CheckpointError(f"{directory}: has checkpoint format {state['format']}, this version reads {FORMAT}")
    return Checkpoint(directory, state)


def directories(run: Run, prefix: str = "") -> list[Path]:
    """Those whose names say that they are checkpoints of ours; anything else that lies there is left alone."""
    ours = re.compile(rf"{prefix}step-\d{{8,}}(\.average)?")
    return sorted(path for path in run.checkpoints.glob("*/") if ours.fullmatch(path.name))


def complete(run: Run) -> list[Checkpoint]:
    """The run's checkpoints, oldest first. A directory gets its name only when it is whole.

    Raises DamagedError if one cannot be opened any more.
    """
    found = [open_checkpoint(path) for path in directories(run)]
    return sorted(found, key=lambda c: (c.step, c.averaged))


def set_damaged_aside(run: Run, say: Callable[[str], None]) -> None:
    """Renames checkpoints that are not what was written, so that nothing counts on them, and says which."""
    for path in directories(run):
        try:
            open_checkpoint(path).verify()
        except DamagedError as error:
            aside = path.with_name(f"{ASIDE}{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)
            say(f"warning: {error}; it is now {aside.name}")


def check_not_all_damaged(run: Run) -> None:
    """For a run without a checkpoint. Raises CheckpointError if it had some."""
    if directories(run, ASIDE):
        raise CheckpointError(f"{run.checkpoints}: all checkpoints are damaged; train anew with --fresh")


def by_score(checkpoints: list[Checkpoint]) -> list[Checkpoint]:
    """Best first; of equal scores the lower nll first, then the earlier. Without any score, the newest first.

    Scores of another metric than the newest checkpoint's do not count.
    """
    scored = [c for c in checkpoints if c.score is not None and c.state["metric"] == checkpoints[-1].state["metric"]]
    return sorted(scored, key=lambda c: (-(c.score or 0.0), c.state.get("nll", 0.0))) if scored else checkpoints[::-1]


def run_dir(name: str) -> Path:
    """The one that a config file names; any other name is taken as it is."""
    path = Path(name)
    if not path.is_file() or path.suffix not in (".yaml", ".yml"):
        return path
    tree = parse_yaml("\n".join(read_lines(path)), str(path))
    if not isinstance(tree, dict) or not isinstance(tree.get("run_dir"), str):
        raise CheckpointError(f"{path}: names no run_dir")
    return Path(tree["run_dir"]).expanduser()


def find(model: str) -> Checkpoint:
    """Turns a MODEL argument (a directory: run, checkpoint, export; or a config file) into a verified checkpoint."""
    path = run_dir(model)
    if not path.is_dir():
        raise CheckpointError(f"{model}: {'is a file' if path.is_file() else 'does not exist'}; {EXPECTED}")
    if (path / STATE).exists():
        found = open_checkpoint(path)
    else:
        checkpoints = complete(Run(path))
        if not checkpoints:
            check_not_all_damaged(Run(path))
            if not Run(path).exists:
                raise CheckpointError(f"{model}: is no model; {EXPECTED}")
            raise CheckpointError(
                f"{path}: holds no checkpoint yet; nmt train CONFIG writes one every train.save_every steps"
            )
        found = by_score(checkpoints)[0]
    found.verify()
    return found


def save(
    directory: Path,
    model: Transformer,
    rest: dict[str, Tensor] | None,
    state: dict[str, Any],
    config: Config,
    tokenizer_from: Path,
) -> None:
    """Writes a checkpoint that becomes visible only when it is whole and flushed to disk.

    `rest` is what only training needs: the optimiser's moments, and weights that are not those of the model.
    """
    with writing(directory, state, config, tokenizer_from) as place:
        write_tensors(place / WEIGHTS, weights(model))
        if rest is not None:
            write_tensors(place / OPTIMIZER, rest)


@contextlib.contextmanager
def writing(directory: Path, state: dict[str, Any], config: Config, tokenizer_from: Path) -> Iterator[Path]:
    """The place where the caller puts the weights of a checkpoint, which becomes visible only when it is whole."""
    with write_directory(directory) as place:
        (place / CONFIG).write_text(dump(config.tree()), encoding="utf-8")
        tokenizer.copy(tokenizer_from, place)
        yield place
        # Whoever publishes a model may add to its README.md.
        files = {path.name: sha256(path) for path in sorted(place.iterdir()) if path.suffix != ".md"}
        state = json.loads(json.dumps({"format": FORMAT, "nmt": __version__, **state, "files": files}))
        state[CHECKSUM] = _checksum(state)
        (place / STATE).write_text(json.dumps(state, indent=1), encoding="utf-8")


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    path.write_bytes(safetensors.torch.save(tensors))


def save_snapshot(run: Run, step: int, model: Transformer) -> None:
    """Keeps the weights of a step for the average."""
    path, tensors = snapshot_path(run, step), weights(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_file(path) as stream:
        stream.write(safetensors.torch.save(tensors, {CHECKSUM: _checksum_of(tensors)}))


def read_snapshot(run: Run, step: int) -> dict[str, Tensor]:
    """Raises DamagedError if it is not what was written."""
    path = snapshot_path(run, step)
    tensors = _read_tensors(path)
    with safe_open(path, "pt") as file:
        if (file.metadata() or {}).get(CHECKSUM) != _checksum_of(tensors):
            raise DamagedError(f"{path}: its content is not what was saved (wrong checksum)")
    return tensors


def _checksum_of(tensors: dict[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(name.encode())
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def weights(model: Transformer) -> dict[str, Tensor]:
    """Every parameter once, under its first name, in fp32."""
    return {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}


def load_weights(model: Transformer, tensors: dict[str, Tensor], where: Path) -> None:
    parameters = dict(model.named_parameters())
    shared = parameters.keys() & tensors.keys()
    wrong = (parameters.keys() | tensors.keys()) - {n for n in shared if parameters[n].shape == tensors[n].shape}
    if wrong:
        raise CheckpointError(f"{where}: its weights do not fit its config, for example {sorted(wrong)[0]}")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[name])


def average(run: Run, steps: list[int], say: Callable[[str], None]) -> tuple[dict[str, Tensor], int]:
    """The mean of the snapshots that are what was written, summed in fp64, and their number; says which are not."""
    total: dict[str, Tensor] = {}
    count = 0
    for step in steps:
        try:
            snapshot = read_snapshot(run, step)
        except DamagedError as error:
            say(f"warning: {error}; the average does without it")
            continue
        count += 1
        for name, tensor in snapshot.items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / count).float() for name, tensor in total.items()}, count


def snapshot_path(run: Run, step: int) -> Path:
    return run.checkpoints / "snapshots" / f"step-{step:08d}.safetensors"


def optimizer_tensors(model: Transformer, optimizer: Optimizer) -> dict[str, Tensor]:
    """What an optimiser remembers, by the names of the parameters."""
    return {
        f"{name}/{key}": value.detach().cpu().contiguous()
        for name, p in model.named_parameters()
        if p.requires_grad
        for key, value in optimizer.state_of(p).items()
        if isinstance(value, Tensor)
    }


def load_optimizer(model: Transformer, optimizer: Optimizer, tensors: dict[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    for full_name, tensor in tensors.items():
        name, _, key = full_name.rpartition("/")
        parameter = parameters[name]
        # The step counter of AdamW is a scalar; it lives where the optimiser's fused kernel wants it.
        optimizer.state_of(parameter)[key] = tensor.to(parameter.device)


def prune(run: Run, checkpoints: list[Checkpoint], keep_last: int, keep_best: int) -> list[Checkpoint]:
    """Deletes the checkpoints that are neither among the last nor the best, and snapshots that nobody needs."""
    newest = [c for c in checkpoints if not c.averaged][-keep_last:]
    best = [c for c in by_score(checkpoints) if c.score is not None][:keep_best]
    kept = [c for c in checkpoints if c in newest or c in best]
    for checkpoint in checkpoints:
        if checkpoint not in kept:
            remove_directory(checkpoint.directory)
    needed = {snapshot_path(run, step) for c in newest for step in c.state["train"]["snapshots"]}
    for path in (run.checkpoints / "snapshots").glob("*.safetensors"):
        if path not in needed:
            path.unlink()
    return kept


def _read_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> DamagedError:
    return DamagedError(f"{path}: cannot be read as safetensors: {error}")
