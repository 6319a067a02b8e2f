"""Several processes train what one trains, fail together, and stop together (gloo; torchrun starts them, or we do)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import make_toy, write
from safetensors.torch import load_file
from toy_runs import (
    end,
    fit,
    last,
    log,
    resume_config,
    rows,
    run_command,
    send,
    start_ranks,
    state_of,
    train_recording,
    when,
)

from nmt import checkpoint
from nmt.errors import NmtError
from nmt.translate import Translator
from nmt.update import Updater

DRY = "model.dropout=0.0"
# Without Adam's division by the gradient's size, which makes large steps out of rounding errors.
SGD = {"optimizer": {"name": "sgd", "lr": 0.3, "momentum": 0.5}}


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(last(run) / "model.safetensors")


def assert_close(run: Path, other: Path) -> None:
    """The same weights and numbers, to rounding; but what little is padded depends on the parts of a batch."""
    ours, theirs = weights(run), weights(other)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=1e-6, msg=name)
    assert len(rows(run)) == len(rows(other)) > 0
    for row, expected in zip(rows(run), rows(other), strict=True):
        assert row.keys() == expected.keys()
        for key, value in expected.items():
            if key == "padding":
                continue
            assert row[key] == (pytest.approx(value, rel=1e-5, abs=1e-5) if isinstance(value, float) else value), key


def train_in_two(config: Path, *overrides: str, world: int = 2) -> list[int]:
    """Exit codes of processes that train together."""
    words = [word for setting in overrides for word in ("-s", setting)]
    ranks = start_ranks(world, config.parent, run_command, "train", str(config), *words)
    return [end(rank) for rank in ranks]


# --- the same numbers (case 27) ---


def test_two_processes_of_torchrun_train_the_model_of_one(tmp_path: Path):
    """The update of the whole batch, to rounding; the first process prepares, writes and speaks for both."""
    config = make_toy(tmp_path, train=300, steps=8, log_every=2, validate_every=4, save_every=4, accumulate=1, **SGD)
    settings = ["-s", DRY, "-s", f"run_dir={tmp_path / 'two'}"]
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "-m", "nmt"]
    done = subprocess.run(
        [sys.executable, *launcher, "train", str(config), *settings],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert fit(config, DRY, f"run_dir={tmp_path / 'one'}") == 0
    assert_close(tmp_path / "two", tmp_path / "one")
    assert "2 processes" in log(tmp_path / "two") and log(tmp_path / "two").count("done at step 8") == 1
    assert done.stderr.decode().count("done at step 8") == 1


def test_with_dropout_n_processes_are_n_micro_batches(tmp_path: Path):
    config = make_toy(tmp_path, train=300, steps=6, log_every=2, validate_every=3, ema=0.5, **SGD)
    assert train_in_two(config, "train.accumulate=2", f"run_dir={tmp_path / 'two'}") == [0, 0]
    assert fit(config, "train.accumulate=4", f"run_dir={tmp_path / 'one'}") == 0
    assert_close(tmp_path / "two", tmp_path / "one")


def test_a_process_without_a_row_does_not_keep_the_others_waiting(tmp_path: Path):
    """Case 65: batches of one or two pairs and a validation set of one line, for three processes."""
    config = make_toy(tmp_path, train=40, steps=5, log_every=1, validate_every=5, batch_tokens=8, accumulate=1, **SGD)
    for side in ("src", "tgt"):
        write(tmp_path / f"valid.{side}", ["p o n"])
    assert train_in_two(config, DRY, f"run_dir={tmp_path / 'three'}", world=3) == [0, 0, 0]
    assert fit(config, DRY, f"run_dir={tmp_path / 'one'}") == 0
    assert_close(tmp_path / "three", tmp_path / "one")


# --- together to the end ---


def train_failing(config: str, step: int) -> None:
    """`nmt train`, in which the second process fails at a step."""

    def fail() -> None:
        if os.environ["RANK"] == "1":
            raise RuntimeError("the cat sat on this process")

    with when(lambda state: state.step == step, fail):
        run_command("train", config)


def test_a_process_that_fails_ends_the_others(tmp_path: Path):
    """Case 65."""
    config = make_toy(tmp_path, train=300, steps=10_000)
    started = time.monotonic()
    codes = [end(rank) for rank in start_ranks(2, tmp_path, train_failing, str(config), 3)]
    assert time.monotonic() - started < 50
    assert all(code not in (0, None) for code in codes), codes
    assert "the cat sat on this process" in (tmp_path / "rank-1.err").read_text()


def train_refusing(config: str) -> None:
    """`nmt train`, in which the first process cannot save."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise NmtError("the disk is full")

    if os.environ["RANK"] == "0":
        checkpoint.save = refuse  # type: ignore[assignment]
    run_command("train", config)


def test_a_mistake_that_one_process_meets_is_no_traceback_of_the_others(tmp_path: Path):
    config = make_toy(tmp_path, train=300, steps=10_000, save_every=3)
    assert [end(rank) for rank in start_ranks(2, tmp_path, train_refusing, str(config))] == [2, 2]
    assert "error: the disk is full" in (tmp_path / "rank-0.err").read_text()
    said = (tmp_path / "rank-1.err").read_text()
    assert "error: another process has ended; what it said before tells why" in said and "Traceback" not in said


def train_signalled(config: str, step: int, *overrides: str) -> None:
    """`nmt train`, in which the second process gets a signal at a step."""
    words = [word for setting in overrides for word in ("-s", setting)]
    if os.environ["RANK"] == "1":
        with when(lambda state: state.step == step, send(signal.SIGTERM)):
            run_command("train", config, *words)
    run_command("train", config, *words)


def test_a_signal_to_one_process_stops_all_and_one_alone_goes_on_in_the_same_order(tmp_path: Path):
    """Cases 34 and 35: the pairs of each update, and the numbers, are those of a run that one process never left."""
    config, settings = resume_config(tmp_path, steps=22, validate_every=40, **SGD), (DRY, "train.accumulate=1")
    record = tmp_path / "unbroken.record"
    elsewhere = f"run_dir={tmp_path / 'unbroken'}"
    assert end(start_ranks(1, tmp_path, train_recording, config, record, *settings, elsewhere)[0]) == 0

    ranks = start_ranks(2, tmp_path, train_signalled, str(config), 17, *settings)
    assert [end(rank) for rank in ranks] == [143, 143]
    assert "stopped by SIGTERM at step 17" in log(tmp_path / "run")
    later = tmp_path / "later.record"
    assert end(start_ranks(1, tmp_path, train_recording, config, later, *settings)[0]) == 0
    updates = [[json.loads(line) for line in file.read_text().splitlines()] for file in (record, later)]
    assert [step for step, _ in updates[1]] == list(range(17, 22))
    assert updates[1] == updates[0][17:]
    assert "not the same as before the stop: processes: 2 -> 1" in log(tmp_path / "run")
    assert_close(tmp_path / "run", tmp_path / "unbroken")


def test_two_processes_go_on_from_a_stop_between_two_log_lines(tmp_path: Path):
    """What both have summed up since the last line is in the checkpoint of the first, once."""
    config, settings = resume_config(tmp_path, steps=12, log_every=5, **SGD), [DRY, "train.accumulate=1"]
    assert fit(config, *settings, f"run_dir={tmp_path / 'one'}") == 0
    ranks = start_ranks(2, tmp_path, train_signalled, str(config), 7, *settings)
    assert [end(rank) for rank in ranks] == [143, 143]
    assert train_in_two(config, *settings) == [0, 0]
    assert "going on from step 7" in log(tmp_path / "run")
    assert_close(tmp_path / "run", tmp_path / "one")


def train_signalled_while_validating(config: str) -> None:
    """`nmt train`, in which the second process gets a signal while it translates."""
    translate = Translator.translate

    def interrupted(translator: Translator, *arguments: Any) -> list[str]:
        if os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGTERM)
            Translator.translate = translate  # type: ignore[method-assign]
        return translate(translator, *arguments)

    Translator.translate = interrupted  # type: ignore[method-assign]
    run_command("train", config)


def test_a_signal_to_one_process_during_a_validation_does_not_leave_the_others_waiting(tmp_path: Path):
    config = make_toy(tmp_path, train=300, steps=10_000, validate_every=3)
    ranks = start_ranks(2, tmp_path, train_signalled_while_validating, str(config))
    assert [end(rank) for rank in ranks] == [143, 143]
    assert last(tmp_path / "run").name == "step-00000003"
    assert [row["step"] for row in rows(tmp_path / "run", "valid")] == [3]


# --- faults ---


def train_short_of_memory(config: str, *overrides: str) -> None:
    """`nmt train`, in which the memory of the second process does not suffice for more than 10 pairs at a time."""
    init = Updater.__init__

    def small(updater: Updater, *arguments: Any) -> None:
        init(updater, *arguments)
        objective = updater.objective

        def limited(model: Any, batch: Any, scale: float) -> Any:
            if os.environ["RANK"] == "1" and len(batch.src_BS) > 10:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return objective(model, batch, scale)

        updater.objective = limited

    Updater.__init__ = small  # type: ignore[method-assign]
    run_command("train", config, *(word for setting in overrides for word in ("-s", setting)))


def test_memory_that_one_process_lacks_halves_the_micro_batches_of_all(tmp_path: Path):
    """Case 33: the update stays the same."""
    config = make_toy(tmp_path, train=300, steps=5, log_every=1, accumulate=1, **SGD)
    settings = (DRY, f"run_dir={tmp_path / 'short'}")
    ranks = start_ranks(2, tmp_path, train_short_of_memory, str(config), *settings)
    assert [end(rank) for rank in ranks] == [0, 0]
    assert "memory did not suffice" in log(tmp_path / "short")
    assert state_of(last(tmp_path / "short"))["accumulate"] in (4, 8)
    assert fit(config, DRY, f"run_dir={tmp_path / 'enough'}") == 0
    assert_close(tmp_path / "short", tmp_path / "enough")
