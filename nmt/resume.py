"""What a run remembers, and going on from it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import Any

import torch

from nmt import checkpoint
from nmt.config import Config
from nmt.errors import CheckpointError
from nmt.model.transformer import Transformer
from nmt.run import Run, cut
from nmt.runtime import Runtime


@dataclass
class TrainState:
    """All of a run that cannot be computed from its config; the rest of a checkpoint is weights and moments."""

    step: int = 0
    epoch: int = 0
    window: int = 0
    batch: int = 0  # the next batch of the window
    best: list[float] | None = None  # the best so far: its score, larger is better, and its -nll, which parts equals
    stale: int = 0  # validations since then, for patience
    validated: int = 0  # the step of the last validation
    seconds: float = 0.0  # spent in earlier processes
    snapshots: list[int] = field(default_factory=list)  # steps whose weights are kept for the average
    since_log: dict[str, float] = field(default_factory=dict)  # sums over the steps since the last log line
    finished: bool = False  # the last validation and the average are done
    metrics_bytes: int = 0  # how long metrics.jsonl and train.log are
    log_bytes: int = 0


def resume(
    paths: Run,
    config: Config,
    where: Runtime,
    model: Transformer,
    optimizer: torch.optim.Optimizer,
    tokenizer_digest: str,
    data_digest: str,
) -> tuple[TrainState, list[str]]:
    """Loads the last checkpoint into model and optimizer, and cuts the logs back to it.

    Returns the state and what is not the same as before the stop, a phrase each; a new state when there is no
    checkpoint. Raises CheckpointError if the model, the tokenizer or the data is another one.
    """
    found = checkpoint.last(checkpoint.complete(paths))
    if found is None:
        cut(paths.metrics, 0)
        cut(paths.log, 0)
        return TrainState(), []
    found.verify()
    if found.state["tokenizer_digest"] != tokenizer_digest:
        raise CheckpointError(
            f"{found.directory}: was trained with another tokenizer than the prepared data has; "
            "train anew with `nmt train CONFIG --fresh`, or name another run_dir"
        )
    if found.state["data_digest"] != data_digest:
        raise CheckpointError(
            f"{found.directory}: was trained on other data ({found.state['data_digest']}) than is prepared now "
            f"({data_digest}); train anew with `nmt train CONFIG --fresh`, or name another run_dir"
        )
    differences = _differences(found, config, where)
    checkpoint.load_weights(model, found.tensors(checkpoint.WEIGHTS), found.directory)
    checkpoint.load_optimizer(model, optimizer, found.tensors(checkpoint.OPTIMIZER))
    state = TrainState(**found.state["train"])
    if found.state["metric"] != config.train.metric:  # the best so far was measured in another unit
        state.best, state.stale = None, 0
    cut(paths.metrics, state.metrics_bytes)
    cut(paths.log, state.log_bytes)
    return state, differences


def _differences(found: checkpoint.Checkpoint, config: Config, where: Runtime) -> list[str]:
    """What changed since a checkpoint. Raises CheckpointError if its weights or moments are of no use any more."""
    old, new = found.config().tree(), config.tree()
    free = ("dropout", "attention_dropout", "activation_dropout")  # have no weights of their own
    settings = _changes(old["model"], new["model"], "model.")
    fixed = [change for key, change in settings.items() if key not in free]
    if old["train"]["optimizer"]["name"] != new["train"]["optimizer"]["name"]:
        fixed.append(_changes(old["train"], new["train"], "train.")["optimizer"])
    if fixed:
        raise CheckpointError(
            f"{found.directory}: does not fit the config ({', '.join(fixed)}); "
            "undo the change, or train anew with --fresh"
        )
    top = [key for key in new if key not in ("model", "train", "data", "run_dir", "tokenizer")]
    settings |= _changes(old["train"], new["train"], "train.")
    settings |= _changes({key: old.get(key) for key in top}, {key: new[key] for key in top}, "")
    settings |= _changes({"weights": _weights(old)}, {"weights": _weights(new)}, "data.train ")
    return [*settings.values(), *_changes(found.state["environment"], dict(where.describe()), "").values()]


def _weights(tree: dict[str, Any]) -> list[float]:
    return [corpus.get("weight", 1.0) for corpus in tree["data"]["train"]]


def _changes(old: dict[str, Any], new: dict[str, Any], prefix: str) -> dict[str, str]:
    """What is not the same any more, by key."""
    return {key: f"{prefix}{key}: {old.get(key)} -> {v}" for key, v in new.items() if old.get(key) != v}


def start_anew(paths: Run) -> None:
    """Deletes what an earlier training left, and keeps the prepared data."""
    for directory in (paths.checkpoints, paths.valid, paths.evaluate):
        shutil.rmtree(directory, ignore_errors=True)
    for file in (paths.metrics, paths.log):
        file.unlink(missing_ok=True)
