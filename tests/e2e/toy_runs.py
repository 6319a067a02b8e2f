"""What the tests of training share: runs on the copy task, what they leave behind, runs in processes of their own."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
import sys
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from conftest import make_toy
from safetensors.torch import load_file

from nmt import checkpoint, variants
from nmt.resume import TrainState
from nmt.train import train
from nmt.trainer import Trainer
from nmt.update import Updater

# What is measured rather than computed: all else must be equal when a run is repeated or taken up again.
CLOCK = {"seconds", "target_tokens_per_second", "memory_gb"}
RESUME = {
    "steps": 40,
    "log_every": 4,
    "validate_every": 10,
    "save_every": 15,
    "accumulate": 2,
    "patience": 50,
    "label_smoothing": 0.1,
}


def fit(config: Path, *overrides: str, fresh: bool = False) -> int:
    """`nmt train` in this process."""
    return train(variants.load(str(config), list(overrides)), fresh)


def rows(run: Path, kind: str | None = None) -> list[dict[str, Any]]:
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").split("\n")
    found = [json.loads(line) for line in lines if line]
    return [{k: v for k, v in row.items() if k not in CLOCK} for row in found if kind in (None, row["kind"])]


def log(run: Path) -> str:
    return (run / "train.log").read_text(encoding="utf-8")


def last(run: Path) -> Path:
    return sorted((run / "checkpoints").glob("step-????????"))[-1]


def state_of(directory: Path) -> dict[str, Any]:
    """The TrainState of a checkpoint."""
    state: dict[str, Any] = json.loads((directory / "state.json").read_text())["train"]
    return state


@contextlib.contextmanager
def when(reached: Callable[[TrainState], bool], act: Callable[[], None]) -> Iterator[None]:
    """Inside the block, `act` happens once, after the first update whose state is the one that is waited for."""
    update, acted = Trainer.update, []

    def watched(trainer: Trainer) -> None:
        update(trainer)
        if not acted and reached(trainer.state):
            acted.append(True)
            act()

    Trainer.update = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        Trainer.update = update  # type: ignore[method-assign]
    assert acted, "the moment never came"


def send(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def assert_same_run(run: Path, other: Path) -> None:
    """Case 35: weights and optimizer bit for bit, the numbers written down, and what later decisions depend on."""
    ours, theirs = last(run), last(other)
    assert ours.name == theirs.name
    assert (ours / "model.safetensors").read_bytes() == (theirs / "model.safetensors").read_bytes()
    moments = [load_file(directory / "optimizer.safetensors") for directory in (ours, theirs)]
    assert moments[0].keys() == moments[1].keys() and moments[0]
    assert all(torch.equal(tensor, moments[1][name]) for name, tensor in moments[0].items())
    assert rows(run) == rows(other)
    states = [json.loads((directory / "state.json").read_text()) for directory in (ours, theirs)]
    assert states[0]["score"] == states[1]["score"]
    kept = [
        {k: v for k, v in s["train"].items() if k not in ("seconds", "since_log", "metrics_bytes", "log_bytes")}
        for s in states
    ]
    assert kept[0] == kept[1]
    assert kept[0]["stale"] < kept[0]["step"] and kept[0]["best"] is not None
    best = [checkpoint.find(str(directory)) for directory in (run, other)]
    assert (best[0].directory.name, best[0].score) == (best[1].directory.name, best[1].score)
    assert (best[0].directory / "model.safetensors").read_bytes() == (
        best[1].directory / "model.safetensors"
    ).read_bytes()


def resume_config(directory: Path, **settings: Any) -> Path:
    """40 updates, more than four epochs, with dropout."""
    return make_toy(directory, train=600, **{**RESUME, **settings})


# --- processes of their own, forked from one that has imported everything: they start at once ---

CONTEXT = multiprocessing.get_context("forkserver")
OURS, THEIRS = ["nmt.cli", "nmt.train", "nmt.variants", "nmt.data.prepare"], ["sacrebleu", "pydantic", "pandas"]
CONTEXT.set_forkserver_preload([*OURS, *THEIRS, "torch._dynamo", "torch.distributed.nn"])


def start(output: Path, act: Callable[..., Any], *arguments: Any, **environment: str) -> BaseProcess:
    """Runs a function of a test file, whose stderr goes to a file."""
    process = CONTEXT.Process(target=_run, args=(output, environment, act, arguments), daemon=True)
    process.start()
    return process


def _run(output: Path, environment: dict[str, str], act: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    sys.stderr = open(output, "w", buffering=1, encoding="utf-8")  # noqa: SIM115  # to the end of the process
    os.dup2(sys.stderr.fileno(), 2)
    act(*arguments)


def end(process: BaseProcess, seconds: float = 60) -> int:
    """The exit code, negative for a signal."""
    process.join(seconds)
    code = process.exitcode
    if code is None:
        process.kill()
        raise AssertionError(f"did not end within {seconds} seconds")
    return code


def run_command(*arguments: str) -> None:
    """`nmt ARGUMENTS`: ends the process."""
    from nmt.cli import main

    sys.argv = ["nmt", *arguments]
    main()


def start_ranks(world: int, outputs: Path, act: Callable[..., Any], *arguments: Any) -> list[BaseProcess]:
    """As torchrun starts them, with rank-0.err and so on in `outputs`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world)}
    return [
        start(outputs / f"rank-{rank}.err", act, *arguments, **shared, RANK=str(rank), LOCAL_RANK=str(rank))
        for rank in range(world)
    ]


def train_striking(config: Path, number: int, moment: str) -> None:
    """`nmt train`, which is sent a signal at a step, or just before the n-th rename into a directory."""
    kind, count = moment.split(":")
    if kind == "step":
        with when(lambda state: state.step == int(count), send(number)):
            run_command("train", str(config))
    replace, seen = os.replace, []

    def watched(source: str, target: str) -> None:
        if os.path.basename(os.path.dirname(target)) == kind:
            seen.append(target)
            if len(seen) == int(count):
                os.kill(os.getpid(), number)
        replace(source, target)

    os.replace = watched  # type: ignore[assignment]
    run_command("train", str(config))


def train_recording(config: Path, record: Path, *overrides: str) -> None:
    """`nmt train`, which writes down the pairs of each update."""
    update = Updater.__call__

    def recorded(updater: Updater, ready: Any, seed: int, step: int, *more: Any) -> Any:
        with open(record, "a") as stream:
            stream.write(json.dumps([step, ready.pairs.tolist()]) + "\n")
        return update(updater, ready, seed, step, *more)

    Updater.__call__ = recorded  # type: ignore[method-assign]
    run_command("train", str(config), *(word for setting in overrides for word in ("-s", setting)))
