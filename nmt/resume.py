"""What a run remembers, and going on from it."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from nmt import checkpoint
from nmt.checkpoint import Checkpoint
from nmt.config import Config
from nmt.errors import CheckpointError, NmtError
from nmt.model.transformer import Transformer
from nmt.optim import Optimizer
from nmt.progress import say
from nmt.ranks import Ranks
from nmt.run import Record, Run, cut
from nmt.runtime import Runtime

# What becomes of a setting that is not as it was when a run goes on; the longest name that fits counts. What is not
# listed is applied from then on, and said.
REFUSED = "refused"  # the weights or moments would be of no use
FREE = "free"  # changes nothing of the result
ON_RESUME = {
    "model": REFUSED,
    "model.dropout": "applied",
    "model.attention_dropout": "applied",
    "model.activation_dropout": "applied",
    "model.word_dropout": "applied",
    "train.optimizer.name": REFUSED,
    "train.freeze": REFUSED,
    "train.init_from": FREE,
    "train.log_every": FREE,
    "train.save_every": FREE,
    "train.keep": FREE,
    "train.tensorboard": FREE,
    "run_dir": FREE,
    "data.root": FREE,
    "data.train": FREE,  # its content is compared, and its weights
    "data.valid": FREE,
    "data.test": FREE,
    "data.filters": FREE,
    "tokenizer": FREE,  # likewise
}
# Settings that decide what a score means: with another, the best so far is no measure any more.
MEASURES = ("train.metric", "metrics", "search", "tgt_lang", "train.ema")
SETBACKS = 3  # goings back to a checkpoint, after which a run gives up
SLOWER = 0.5  # what the learning rate is multiplied by at each


@dataclass
class TrainState:
    """All of a run that cannot be computed from its config; the rest of a checkpoint is weights and moments."""

    step: int = 0
    epoch: int = 0
    window: int = 0
    batch: int = 0  # the next batch of the window
    epochs: float = 0.0  # passes over the data, with fractions
    target_tokens: int = 0  # real ones, of all updates
    best: list[float] | None = None  # the best so far: its score, larger is better, and its -nll, which parts equals
    stale: int = 0  # validations since then, for patience
    validated: int = 0  # the step of the last validation
    score: list[float] | None = None  # and what came of it, as in `best`
    seconds: float = 0.0  # spent in earlier processes
    snapshots: list[int] = field(default_factory=list)  # steps whose weights are kept for the average
    since_log: dict[str, float] = field(default_factory=dict)  # sums over the steps since the last log line
    finished: bool = False  # the last validation and the average are done
    accumulate: int | None = None  # micro-batches of a process, as memory allows
    rate_factor: float = 1.0  # on the learning rate, after setbacks
    setbacks: int = 0  # how often the run went back to a checkpoint
    left_out: list[list[int]] = field(default_factory=list)  # epoch, window and batch of batches that are not used
    loss_scale: float = 0.0  # of fp16 gradients; 0: the first
    finite_in_row: int = 0  # updates since it changed
    faults_in_row: int = 0  # of the last updates
    metrics_bytes: int = 0  # how long metrics.jsonl and train.log are
    log_bytes: int = 0


@dataclass
class Resumed:
    """What training changes besides its state: all that a checkpoint has to bring back."""

    model: Transformer
    optimizer: Optimizer
    averages: list[Tensor]  # moving averages of the weights that are trained; empty without

    def tensors(self) -> dict[str, Tensor]:
        """All but the weights that are measured and kept for use."""
        found = checkpoint.optimizer_tensors(self.model, self.optimizer)
        return found | ({f"{RAW}{n}": w for n, w in checkpoint.weights(self.model).items()} if self.averages else {})

    def load(self, found: Checkpoint) -> None:
        weights, rest = found.tensors(checkpoint.WEIGHTS), found.tensors(checkpoint.OPTIMIZER)
        raw = {name.removeprefix(RAW): tensor for name, tensor in rest.items() if name.startswith(RAW)}
        checkpoint.load_weights(self.model, raw or weights, found.directory)
        moments = {name: tensor for name, tensor in rest.items() if not name.startswith(RAW)}
        checkpoint.load_optimizer(self.model, self.optimizer, moments)
        trained = [name for name, p in self.model.named_parameters() if p.requires_grad]
        for average, name in zip(self.averages, trained if self.averages else [], strict=True):
            average.copy_(weights[name])


RAW = "raw/"


def resume(
    paths: Run, config: Config, where: Runtime, into: Resumed, tokenizer: str, data: str, ranks: Ranks
) -> tuple[TrainState, list[str]]:
    """Loads the newest good checkpoint, and cuts the logs back to it if this is the first process.

    `tokenizer` and `data` are digests. Returns the state and what is not the same as before the stop, a phrase each; a
    new state when there is no checkpoint. Raises CheckpointError if model, tokenizer or data are others, or if
    no checkpoint is what was written.
    """
    found = newest(paths, ranks)
    if found is None:
        checkpoint.check_not_all_damaged(paths)
        if ranks.first:
            if last := Record(paths.metrics).last_step():
                say(f"warning: {paths.checkpoints}: holds no checkpoint of the {last} steps on record; starting anew")
            cut(paths.metrics, 0)
            cut(paths.log, 0)
        return TrainState(), []
    if found.state["tokenizer_digest"] != tokenizer:
        raise CheckpointError(
            f"{found.directory}: was trained with another tokenizer than the prepared data has; "
            "train anew with `nmt train CONFIG --fresh`, or name another run_dir"
        )
    if found.state["data_digest"] != data:
        raise CheckpointError(
            f"{found.directory}: was trained on other data ({found.state['data_digest']}) than is prepared ({data}); "
            "train anew with `nmt train CONFIG --fresh`, or name another run_dir"
        )
    changes = _changes(flat(found.config().tree()), flat(config.tree()))
    refused = [change for key, change in changes.items() if rule(key) == REFUSED]
    if refused:
        raise CheckpointError(
            f"{found.directory}: does not fit the config ({', '.join(refused)}); "
            "undo the change, or train anew with --fresh"
        )
    state = _state(found)
    if any(key == measure or key.startswith(f"{measure}.") for key in changes for measure in MEASURES):
        state.best, state.stale, state.score = None, 0, None
    if "train.accumulate" in changes:
        state.accumulate = None
    into.load(found)
    if ranks.first:
        cut(paths.metrics, state.metrics_bytes)
        cut(paths.log, state.log_bytes)
    said = [change for key, change in changes.items() if rule(key) != FREE]
    weights = ({"data.train weights": _weights(tree)} for tree in (found.config().tree(), config.tree()))
    said += _changes(*weights).values()
    environment = {**where.describe(), "processes": ranks.world}
    before = {key: found.state["environment"].get(key) for key in environment}
    return state, [*said, *_changes(before, environment).values()]


def go_back(paths: Run, into: Resumed, ranks: Ranks, state: TrainState, what: str) -> TrainState:
    """Loads the newest good checkpoint in the middle of a run, to go on from it with a lower learning rate.

    `what` is wrong. Raises NmtError if there is no checkpoint, or if going back did not help before.
    """
    if state.setbacks == SETBACKS:
        raise _diverged(paths, state.step, f"{what}, after going back {SETBACKS} times")
    found = newest(paths, ranks)
    if found is None:
        raise _diverged(paths, state.step, f"{what}, and there is no checkpoint to go back to")
    into.optimizer.forget()
    into.load(found)
    return dataclasses.replace(
        _state(found),
        seconds=state.seconds,
        setbacks=state.setbacks + 1,
        rate_factor=state.rate_factor * SLOWER,
        left_out=state.left_out,
        accumulate=state.accumulate,
        faults_in_row=0,
    )


def _diverged(paths: Run, step: int, what: str) -> NmtError:
    saved = checkpoint.complete(paths)
    kept = f"the checkpoints in {paths.checkpoints} are from before" if saved else "nothing was saved yet"
    return NmtError(
        f"training diverged at step {step}: {what}; {kept}; "
        "go on with a lower train.optimizer.lr or a longer train.schedule.warmup"
    )


def newest(paths: Run, ranks: Ranks) -> Checkpoint | None:
    """The newest checkpoint to go on from. All that are not what was written are set aside before."""
    if ranks.first:
        checkpoint.set_damaged_aside(paths, say)
    ranks.wait()
    return next((found for found in reversed(checkpoint.complete(paths)) if not found.averaged), None)


def begun(paths: Run) -> bool:
    """Whether there is a checkpoint, damaged or not."""
    return bool(checkpoint.directories(paths) or checkpoint.directories(paths, checkpoint.ASIDE))


def starting_point(model: str, config: Config) -> Checkpoint:
    """The model that train.init_from names. Raises CheckpointError, naming both, if it has other sizes."""
    found = checkpoint.find(model)
    changes = _changes(flat({"model": found.config().tree()["model"]}), flat({"model": config.tree()["model"]}))
    refused = [change for key, change in changes.items() if rule(key) == REFUSED]
    if refused:
        raise CheckpointError(
            f"train.init_from {found.directory}: its model is not that of the config ({', '.join(refused)}); "
            "write its sizes into the config"
        )
    return found


def rule(key: str) -> str:
    """What becomes of a changed setting, by the table above."""
    names = [key.rsplit(".", cut)[0] for cut in range(key.count(".") + 1)]
    return next((ON_RESUME[name] for name in names if name in ON_RESUME), "applied")


def _state(found: Checkpoint) -> TrainState:
    known = {item.name for item in dataclasses.fields(TrainState)}
    return TrainState(**{key: value for key, value in found.state["train"].items() if key in known})


def flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    """{train: {steps: 10}} -> {"train.steps": 10}; lists are values."""
    if not isinstance(tree, dict) or not tree:
        return {prefix: tree}
    found: dict[str, Any] = {}
    for key, value in tree.items():
        found |= flat(value, f"{prefix}.{key}" if prefix else str(key))
    return found


def _changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    """What is not the same any more, by key."""
    keys = dict.fromkeys([*new, *old])
    return {key: f"{key}: {old.get(key)} -> {new.get(key)}" for key in keys if old.get(key) != new.get(key)}


def _weights(tree: dict[str, Any]) -> list[float]:
    return [corpus.get("weight", 1.0) for corpus in tree["data"]["train"]]


def start_anew(paths: Run) -> None:
    """Deletes what an earlier training left, and keeps the prepared data."""
    for directory in (paths.checkpoints, paths.valid, paths.evaluate):
        shutil.rmtree(directory, ignore_errors=True)
    for file in (paths.metrics, paths.log):
        file.unlink(missing_ok=True)
