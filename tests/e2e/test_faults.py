"""Numbers that are none, memory and disks that are full, kills, damaged files: named, survived, and nothing is lost."""

from __future__ import annotations

import fcntl
import json
import math
import random
import re
import resource
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Answer, make_toy
from safetensors.torch import load_file
from toy_runs import (
    assert_same_run,
    end,
    fit,
    last,
    log,
    resume_config,
    rows,
    run_command,
    start,
    state_of,
    train_striking,
    when,
)

from nmt import checkpoint, runtime
from nmt.data.batches import Batch
from nmt.errors import BusyError, CheckpointError, NmtError
from nmt.model.transformer import Transformer
from nmt.run import Run
from nmt.trainer import Trainer
from nmt.update import Updater

DRY = "model.dropout=0.0"
FEW = {"log_every": 1, "validate_every": 4, "save_every": 4, "steps": 12, "accumulate": 1, "average": 0}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run to which nothing happened."""
    directory = tmp_path_factory.mktemp("unbroken")
    assert fit(resume_config(directory)) == 0
    return directory / "run"


Forward = Callable[[Transformer, Batch, float], Any]
Put = Callable[[Callable[[Forward, Transformer, Batch, float], Any]], None]


@pytest.fixture
def around(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Puts a function around the objective of every Updater that is made."""

    def put(function: Callable[[Forward, Transformer, Batch, float], Any]) -> None:
        init = Updater.__init__

        def made(updater: Updater, *arguments: Any) -> None:
            init(updater, *arguments)
            objective = updater.objective
            updater.objective = lambda *given: function(objective, *given)

        monkeypatch.setattr(Updater, "__init__", made)

    return put


Poison = Callable[..., list[int]]


@pytest.fixture
def poison(monkeypatch: pytest.MonkeyPatch) -> Poison:
    """Makes weights NaN, or another value, after a step, at most so many times; returns a list that grows each time it
    is done."""

    def put(step: int, times: int = 1, value: float = math.nan) -> list[int]:
        update, done = Trainer.update, []

        def spoiled(trainer: Trainer) -> None:
            update(trainer)
            if trainer.state.step == step and len(done) < times:
                done.append(step)
                with torch.no_grad():
                    trainer.updater.parameters[3].view(-1)[0] = value

        monkeypatch.setattr(Trainer, "update", spoiled)
        return done

    return put


def assert_all_sound(run: Path) -> list[checkpoint.Checkpoint]:
    """All checkpoints are whole, and hold numbers."""
    found = checkpoint.complete(Run(run))
    for one in found:
        one.verify()
        for name in (checkpoint.WEIGHTS, checkpoint.OPTIMIZER):
            assert all(tensor.isfinite().all() for tensor in one.tensors(name).values())
    return found


# --- numbers that are none (case 32) ---


def test_nan_in_a_weight_takes_the_run_back_to_the_last_good_checkpoint(tmp_path: Path, poison: Poison):
    config = make_toy(tmp_path, train=300, **FEW)
    poison(5)
    assert fit(config) == 0
    said = log(tmp_path / "run")
    assert re.findall(r"update (\d+) skipped", said) == ["6", "7", "8"]
    assert re.search(
        r"update 6 skipped: its gradient is not finite; its pairs: \S*train\.src:\d+, \S*train\.src:\d+", said
    )
    assert "going back from step 8 to step 4, with 0.5 times the learning rate and without those batches" in said
    assert last(tmp_path / "run").name == "step-00000012"
    assert_all_sound(tmp_path / "run")
    state = state_of(last(tmp_path / "run"))
    assert (state["setbacks"], state["rate_factor"], len(state["left_out"])) == (1, 0.5, 3)
    trained = rows(tmp_path / "run", "train")
    assert [row["step"] for row in trained] == [1, 2, 3, 4, 5, 6, 7, 5, 6, 7, 8, 9, 10, 11, 12]
    assert [row["skipped"] for row in trained] == [0] * 5 + [1] * 2 + [0] * 8
    assert [row["loss"] for row in trained][5:7] == [None, None]
    assert trained[7]["lr"] == pytest.approx(trained[4]["lr"] / 2)


def test_a_run_that_diverges_again_and_again_ends_with_a_clear_line(
    tmp_path: Path, poison: Poison, command: Callable[..., Answer]
):
    config = make_toy(tmp_path, train=300, **FEW)
    done = poison(6, times=9)
    answer = command("train", config)
    assert answer.code == 2 and done == [6] * 4
    [error] = [line for line in answer.err.splitlines() if line.startswith("error")]
    assert re.search(r"diverged at step 8: .* after going back 3 times; the checkpoints in .* lower train.optim", error)
    found = assert_all_sound(tmp_path / "run")
    assert [one.step for one in found] == [4]
    assert checkpoint.find(str(tmp_path / "run")).step == 4


def test_a_run_that_diverges_before_its_first_checkpoint_says_so(tmp_path: Path, poison: Poison):
    config = make_toy(tmp_path, train=300, **FEW)
    poison(1)
    with pytest.raises(NmtError, match="no checkpoint to go back to; nothing was saved yet"):
        fit(config)
    assert checkpoint.complete(Run(tmp_path / "run")) == []


@pytest.mark.parametrize("moment", [8, 10, 12], ids=["before a validation", "before a save", "at the end"])
def test_weights_that_are_no_numbers_are_never_measured_or_saved(tmp_path: Path, poison: Poison, moment: int):
    config = make_toy(tmp_path, train=300, **{**FEW, "save_every": 5})
    poison(moment)
    assert fit(config) == 0
    assert "the weights are not finite: going back from step" in log(tmp_path / "run")
    assert all(math.isfinite(row["nll"]) for row in rows(tmp_path / "run"))
    assert last(tmp_path / "run").name == "step-00000012"
    assert_all_sound(tmp_path / "run")


@pytest.mark.parametrize("moment", [8, 12], ids=["at a validation", "at the end"])
def test_weights_whose_scores_are_no_numbers_are_never_kept(tmp_path: Path, poison: Poison, moment: int):
    """They are finite themselves, but what comes of them is not."""
    config = make_toy(tmp_path, train=300, **FEW)
    poison(moment, value=3e38)
    assert fit(config) == 0
    said = log(tmp_path / "run")
    assert f"the scores of valid are not finite: going back from step {moment} to step {moment - 4}, with 0.5" in said
    assert "nan" not in said
    assert [row["step"] for row in rows(tmp_path / "run", "valid")] == [4, 8, 12]
    for found in assert_all_sound(tmp_path / "run"):
        assert all(tensor.abs().max() < 100 for tensor in found.weights().values())


def test_a_run_whose_first_validation_finds_no_numbers_ends_with_a_clear_line(tmp_path: Path):
    config = make_toy(tmp_path, train=300, **FEW)
    with pytest.raises(NmtError, match=r"diverged at step 3: the scores of valid are not finite, .* nothing was saved"):
        fit(config, "train.optimizer.lr=1e10", "train.validate_every=3")


def test_one_bad_batch_is_skipped_and_counted_and_training_goes_on(tmp_path: Path, around: Put):
    config, calls = make_toy(tmp_path, train=300, **{**FEW, "ema": 0.9}), []

    def once(objective: Forward, model: Transformer, batch: Batch, scale: float) -> Any:
        result = objective(model, batch, scale)
        calls.append(True)
        if len(calls) == 6:
            result.loss = result.loss * math.nan
        return result

    around(once)
    assert fit(config, "train.log_every=4", "train.optimizer.lr=1e-12", "train.label_smoothing=0.0") == 0
    assert re.findall(r"update (\d+) skipped", log(tmp_path / "run")) == ["6"]
    assert "going back" not in log(tmp_path / "run")
    trained = rows(tmp_path / "run", "train")
    assert [row["skipped"] for row in trained] == [0, 1, 0]
    for row in trained:  # of a model that does not learn, in spite of what is missing
        assert row["loss"] == pytest.approx(trained[0]["loss"], rel=0.1)
        assert row["grad_norm"] == pytest.approx(trained[0]["grad_norm"], rel=0.5)
    assert len(calls) == 12
    assert_all_sound(tmp_path / "run")


def test_faults_in_a_row_are_counted_across_a_stop(tmp_path: Path, around: Put, monkeypatch: pytest.MonkeyPatch):
    """Two before and one after are three: as in a run that was not stopped."""
    config, calls = make_toy(tmp_path, train=300, **FEW), []

    def bad(objective: Forward, model: Transformer, batch: Batch, scale: float) -> Any:
        result = objective(model, batch, scale)
        calls.append(True)
        if 6 <= len(calls) <= 8:
            result.loss = result.loss * math.nan
        return result

    around(bad)
    with when(lambda state: state.step == 7, lambda: signal.raise_signal(signal.SIGINT)):
        assert fit(config) == 130
    assert fit(config) == 0
    assert "going back from step 8 to step 7" in log(tmp_path / "run")


def test_an_absurd_learning_rate_leaves_a_best_that_can_be_loaded(tmp_path: Path):
    """Whatever becomes of the weights, what is kept holds numbers, and the run ends."""
    config = make_toy(tmp_path, train=300, **{**FEW, "steps": 24})
    try:
        assert fit(config, "train.optimizer.lr=100.0", "train.clip_norm=0") == 0
    except NmtError as error:
        assert "diverged at step" in str(error)
    assert_all_sound(tmp_path / "run")
    checkpoint.find(str(tmp_path / "run")).load_model()


# --- memory that does not suffice (case 33) ---

FULL = {
    "of a GPU": lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    "of the CPU": lambda: RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
}


def assert_same_updates(run: Path, other: Path) -> None:
    """The same weights to rounding, and the same logged losses."""
    ours, theirs = (load_file(last(directory) / "model.safetensors") for directory in (run, other))
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=1e-6, msg=name)
    for one, expected in zip(rows(run, "train"), rows(other, "train"), strict=True):
        assert (one["loss"], one["nll"]) == pytest.approx((expected["loss"], expected["nll"]), abs=1e-5)


@pytest.mark.parametrize("error", FULL.values(), ids=list(FULL))
def test_a_batch_that_does_not_fit_is_split_and_the_update_stays_the_same(tmp_path: Path, around: Put, error):
    config = make_toy(tmp_path, train=300, **FEW, optimizer={"name": "sgd", "lr": 0.3})
    assert fit(config, DRY, f"run_dir={tmp_path / 'enough'}") == 0
    calls: list[int] = []

    def limited(objective: Forward, model: Transformer, batch: Batch, scale: float) -> Any:
        calls.append(len(batch.src_BS))
        if len(calls) >= 4 and calls[-1] > 30:
            objective(model, batch, scale).loss.backward()  # had come so far when memory ran out
            raise error()
        return objective(model, batch, scale)

    around(limited)
    assert fit(config, DRY) == 0
    said = log(tmp_path / "run")
    assert re.findall(r"memory did not suffice: from step (\d+) on (\d+) micro", said)[0] == ("3", "2")
    assert state_of(last(tmp_path / "run"))["accumulate"] > 1
    assert_same_updates(tmp_path / "run", tmp_path / "enough")


def test_smaller_micro_batches_are_kept_to_after_a_stop(tmp_path: Path, around: Put):
    config = make_toy(tmp_path, train=300, **{**FEW, "accumulate": "auto"})
    calls: list[int] = []

    def limited(objective: Forward, model: Transformer, batch: Batch, scale: float) -> Any:
        calls.append(len(batch.src_BS))
        if calls[-1] > 20:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return objective(model, batch, scale)

    around(limited)
    with when(lambda state: state.step == 9, lambda: signal.raise_signal(signal.SIGINT)):
        assert fit(config) == 130
    wanted = state_of(last(tmp_path / "run"))["accumulate"]
    assert wanted > 1 and max(calls) > 20
    calls.clear()
    assert fit(config) == 0
    assert state_of(last(tmp_path / "run"))["accumulate"] == wanted
    assert max(calls) <= 20


def test_a_pair_that_never_fits_is_left_out_and_named(tmp_path: Path, around: Put):
    config = make_toy(tmp_path, train=60, **{**FEW, "epochs": 1, "batch_tokens": 64})
    src = (tmp_path / "train.src").read_text().splitlines()
    seen: list[int] = []

    def limited(objective: Forward, model: Transformer, batch: Batch, scale: float) -> Any:
        if int((batch.src_BS != 0).sum(1).max()) > 8:  # eight letters, end of sentence
            raise torch.OutOfMemoryError("CUDA out of memory")
        seen.append(len(batch.src_BS))
        return objective(model, batch, scale)

    around(limited)
    assert fit(config, "train.steps=null") == 0
    named = re.findall(r"left out, since it alone fills the memory: \S*train\.src:(\d+)", log(tmp_path / "run"))
    assert named and all(len(src[int(line) - 1].split()) == 8 for line in named)
    kept = int(re.search(r"([\d,]+) pairs; an epoch", log(tmp_path / "run")).group(1))
    assert sum(seen) == kept - len(named)


def test_memory_that_does_not_suffice_for_any_pair_is_one_clear_line(tmp_path: Path, around: Put):
    config = make_toy(tmp_path, train=60, **{**FEW, "batch_tokens": 16})

    def never(objective: Forward, model: Transformer, batch: Batch, scale: float) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    around(never)
    with pytest.raises(NmtError, match="memory did not suffice for any pair of 3 updates in a row"):
        fit(config)


def test_an_error_that_is_not_about_memory_is_not_taken_for_one(tmp_path: Path, around: Put):
    config = make_toy(tmp_path, train=60, **FEW)

    def wrong(objective: Forward, model: Transformer, batch: Batch, scale: float) -> Any:
        raise RuntimeError("shapes do not match")

    around(wrong)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        fit(config)


def test_validation_and_translation_go_on_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = make_toy(tmp_path, train=300, **{**FEW, "steps": 4})
    assert fit(config, f"run_dir={tmp_path / 'enough'}") == 0
    encode, refused = Transformer.encode, []

    def limited(model: Transformer, src_BS: torch.Tensor, *more: Any) -> Any:
        if not model.training and len(src_BS) > 20:
            refused.append(len(src_BS))
            raise torch.OutOfMemoryError("CUDA out of memory")
        return encode(model, src_BS, *more)

    monkeypatch.setattr(Transformer, "encode", limited)
    assert fit(config) == 0
    assert refused
    numbers = [
        [(row["nll"], row["bleu"], row["chrf"]) for row in rows(tmp_path / d, "valid")] for d in ("run", "enough")
    ]
    for ours, theirs in zip(*numbers, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize(("available", "count"), [(math.inf, 1), (1000.0, 1), (999.0, 2), (300.0, 4)])
def test_micro_batches_of_a_cpu_are_as_few_as_its_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, available: float, count: int
):
    """The whole batch would need 1,000 bytes."""
    monkeypatch.setattr("nmt.update.memory_needed", lambda model, tokens: 1000.0)
    monkeypatch.setattr(runtime, "available_memory", lambda device: available)
    config = make_toy(tmp_path, train=60, steps=1)
    assert fit(config) == 0
    assert state_of(last(tmp_path / "run"))["accumulate"] == count
    assert fit(config, "train.steps=2", "train.accumulate=5") == 0
    assert state_of(last(tmp_path / "run"))["accumulate"] == 5


# --- disks, kills, damage (cases 36 and 38) ---


def train_with_a_full_disk(config: str, step: int) -> None:
    """`nmt train`, in which from a step on no file may grow beyond 50,000 bytes, which weights need."""

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, resource.RLIM_INFINITY))

    with when(lambda state: state.step == step, fill):
        run_command("train", config)


def test_a_full_disk_ends_the_run_in_one_line_and_loses_nothing(tmp_path: Path, unbroken: Path):
    """Case 38."""
    config, said = resume_config(tmp_path), tmp_path / "stderr"
    assert end(start(said, train_with_a_full_disk, str(config), 22)) == 2
    assert re.search(r"^error: \S*(step-00000030|snapshots)\S*: cannot be written: ", said.read_text(), re.MULTILINE)
    assert "Traceback" not in said.read_text()
    assert [one.step for one in assert_all_sound(tmp_path / "run")][-1] == 20
    assert not list((tmp_path / "run").rglob("*.tmp"))
    assert fit(config) == 0
    assert_same_run(tmp_path / "run", unbroken)


def kill_at_random(directory: Path, unbroken: Path, times: int, seed: int) -> None:
    """Kills a run again and again, at moments spread over the time that it takes; what is left is always good."""
    config, run, rng = resume_config(directory), directory / "run", random.Random(seed)
    assert end(start(directory / "stderr", time.sleep, 0)) == 0  # the server that processes are forked from is up
    started = time.monotonic()
    assert end(start(directory / "stderr", run_command, "train", str(config))) == 0
    whole = time.monotonic() - started
    shutil.rmtree(run)
    killed = 0
    while killed < times:
        process = start(directory / "stderr", run_command, "train", str(config))
        process.join(rng.uniform(0.1, 0.9) * whole)
        process.kill()
        code = end(process)
        assert code in (-signal.SIGKILL, 0)
        killed += code != 0
        if (run / "checkpoints").exists():
            assert_all_sound(run)
        if code == 0:  # it was done
            assert_same_run(run, unbroken)
            shutil.rmtree(run)
    assert fit(config) == 0
    assert_same_run(run, unbroken)
    assert not [path for path in run.rglob(".*") if path.name != ".lock"]


def test_a_run_survives_kills_at_random_moments(tmp_path: Path, unbroken: Path):
    """Case 36."""
    kill_at_random(tmp_path, unbroken, times=6, seed=1)


@pytest.mark.slow
def test_a_run_survives_fifty_kills_at_random_moments(tmp_path: Path, unbroken: Path):
    """Case 36."""
    kill_at_random(tmp_path, unbroken, times=50, seed=2)


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip_a_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run stopped at step 33, whose last checkpoint but that is of step 30."""
    directory = tmp_path_factory.mktemp("stopped")
    with when(lambda state: state.step == 33, lambda: signal.raise_signal(signal.SIGTERM)):
        assert fit(resume_config(directory)) == 143
    return directory / "run"


@pytest.mark.parametrize("harm", [cut_off, flip_a_bit])
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "tokenizer.model"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_goes_on(
    tmp_path: Path, unbroken: Path, stopped: Path, name: str, harm: Callable[[bytes], bytes], capfd: Any
):
    config = resume_config(tmp_path)
    shutil.copytree(stopped, tmp_path / "run")
    newest = last(tmp_path / "run")
    assert newest.name == "step-00000033"
    (newest / name).write_bytes(harm((newest / name).read_bytes()))
    capfd.readouterr()
    assert fit(config) == 0
    warning = next(line for line in capfd.readouterr().err.splitlines() if line.startswith("warning"))
    assert newest.name in warning and "damaged-step-00000033" in warning
    assert "going on from step 30" in log(tmp_path / "run")
    assert (newest.parent / "damaged-step-00000033").is_dir() and not newest.exists()
    assert_same_run(tmp_path / "run", unbroken)


def test_when_all_checkpoints_are_damaged_nothing_is_overwritten(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = resume_config(tmp_path)
    for weights in (tmp_path / "run" / "checkpoints").glob("step-*/model.safetensors"):
        weights.write_bytes(flip_a_bit(weights.read_bytes()))
    numbers = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    for _ in range(2):
        with pytest.raises(CheckpointError, match="all checkpoints are damaged; train anew with --fresh"):
            fit(config)
        assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == numbers
    assert fit(config, fresh=True) == 0
    assert_same_run(tmp_path / "run", unbroken)


def test_damaged_snapshots_do_not_keep_a_run_from_its_end(tmp_path: Path, stopped: Path):
    shutil.copytree(stopped, tmp_path / "run")
    gone, flipped = (tmp_path / "run" / "checkpoints" / "snapshots" / f"step-000000{s}.safetensors" for s in (10, 20))
    gone.unlink()
    flipped.write_bytes(flip_a_bit(flipped.read_bytes()))
    assert fit(resume_config(tmp_path)) == 0
    said = log(tmp_path / "run")
    assert all(f"warning: {path}: " in said for path in (gone, flipped))
    assert "valid at average of 2 snapshots: nll " in said


@pytest.mark.parametrize("harm", [lambda b: b"{hello\n\xff" + b, lambda b: b[:-20]], ids=["a foreign line", "cut off"])
def test_a_record_that_somebody_has_changed_ends_no_run(tmp_path: Path, stopped: Path, unbroken: Path, harm: Any):
    """What can still be read stays whole lines; the weights and scores need none of it."""
    shutil.copytree(stopped, tmp_path / "run")
    record = tmp_path / "run" / "metrics.jsonl"
    record.write_bytes(harm(record.read_bytes()))
    assert fit(resume_config(tmp_path)) == 0
    lines = record.read_bytes().removeprefix(b"{hello\n\xff").splitlines()
    assert json.loads(lines[-1])["kind"] == "valid" and all(json.loads(line)["step"] for line in lines)
    ours, theirs = (checkpoint.open_checkpoint(last(run)) for run in (tmp_path / "run", unbroken))
    assert (ours.step, ours.score) == (theirs.step, theirs.score)


def test_a_record_without_its_checkpoints_is_not_emptied_silently(tmp_path: Path, stopped: Path, capfd: Any):
    shutil.copytree(stopped, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with open(tmp_path / "run" / "metrics.jsonl", "a") as stream:
        stream.write("half a li")
    assert fit(resume_config(tmp_path, steps=1)) == 0
    [warning] = [line for line in capfd.readouterr().err.splitlines() if "on record" in line]
    assert re.fullmatch(
        r"warning: \S+checkpoints: holds no checkpoint of the 32 steps on record; starting anew", warning
    )
    assert fit(resume_config(tmp_path, steps=1), fresh=True) == 0
    assert "on record" not in capfd.readouterr().err


@pytest.mark.parametrize("away", [shutil.rmtree, lambda run: run.rename(run.with_name("elsewhere"))])
def test_a_run_directory_that_goes_away_is_one_clear_error(tmp_path: Path, away: Callable[[Path], Any]):
    config = make_toy(tmp_path, train=300, **FEW)
    with (
        when(lambda state: state.step == 3, lambda: away(tmp_path / "run")),
        pytest.raises(NmtError, match=r"run/(train\.log|metrics\.jsonl): cannot be written: No such file"),
    ):
        fit(config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["metrics.jsonl", "train.log", "valid", "checkpoints"])
def test_what_stands_in_the_way_of_a_run_is_one_clear_error(tmp_path: Path, name: str, command: Callable[..., Answer]):
    config = make_toy(tmp_path, train=60, **FEW)
    assert command("prepare", config).code == 0
    way = tmp_path / "run" / name
    way.write_text("") if name in ("valid", "checkpoints") else way.mkdir()
    code, _, err = command("train", config)
    assert code == 2 and err.splitlines()[-1].startswith(f"error: {way}: is a ")


# --- one training at a time ---


def test_a_second_training_in_the_same_directory_is_refused(tmp_path: Path):
    config = make_toy(tmp_path, train=300, **FEW)
    refused: list[str] = []

    def second() -> None:
        with pytest.raises(BusyError) as error:
            fit(config)
        refused.append(str(error.value))

    with when(lambda state: state.step == 3, second):
        assert fit(config) == 0
    [line] = refused
    assert re.search(r"run: process \d+ is training here; wait for it or stop it", line)
    assert last(tmp_path / "run").name == "step-00000012"


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path):
    config = make_toy(tmp_path, train=300, **FEW)
    assert end(start(tmp_path / "stderr", train_striking, config, signal.SIGKILL, "step:6")) == -signal.SIGKILL
    lock = tmp_path / "run" / ".lock"
    assert "is training" in lock.read_text()
    assert fit(config) == 0
    assert "going on from step 4" in log(tmp_path / "run")
    with open(lock) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
