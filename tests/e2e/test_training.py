"""Training from config to checkpoints: it learns, stops and goes on bit for bit, keeps what it should, and says so."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import copy_lines, make_toy, write
from safetensors.torch import load_file

from nmt import checkpoint, variants
from nmt.errors import CheckpointError, NmtError
from nmt.resume import TrainState
from nmt.run import Run
from nmt.train import Trainer, train
from nmt.translate import Translator

# Lines without their clock: what must be equal when a run is repeated or taken up again.
CLOCK = {"seconds", "target_tokens_per_second"}
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


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 40 updates, more than four epochs, with dropout, that nobody stopped."""
    directory = tmp_path_factory.mktemp("unbroken")
    assert fit(make_toy(directory, train=600, **RESUME)) == 0
    return directory / "run"


# --- it learns ---


def test_a_copy_task_is_learnt_to_the_last_letter(copy_run: Path):
    translator = Translator(str(copy_run / "run"), device="cpu", threads=1)
    lines = (copy_run / "test.src").read_text().splitlines()
    assert translator.translate(lines) == lines
    [final] = [row for row in rows(copy_run / "run", "valid") if row["step"] == 600 and not row["averaged"]]
    assert final["bleu"] == pytest.approx(100.0)
    assert final["ppl"] == pytest.approx(math.exp(final["nll"])) and final["nll"] < 0.1


def test_the_record_says_what_the_documentation_says(unbroken: Path):
    trained, valid = rows(unbroken, "train"), rows(unbroken, "valid")
    assert [row["step"] for row in trained] == list(range(4, 41, 4))
    assert [row["step"] for row in valid] == [10, 20, 30, 40, 40]
    for row in trained:
        assert row.keys() == {"kind", "step", "epoch", "loss", "nll", "ppl", "lr", "grad_norm", "padding"}
        assert row["ppl"] == pytest.approx(math.exp(row["nll"]))
        assert 0 <= row["padding"] < 1
    # The warm-up takes a tenth of the run; from there the rate falls with the square root of the steps.
    assert trained[-1]["lr"] < trained[4]["lr"] < max(row["lr"] for row in trained) <= 5e-3
    assert trained[-1]["lr"] == pytest.approx(5e-3 / math.sqrt(10), rel=0.05)
    assert trained[-1]["epoch"] > 3
    for row in valid:
        assert {"step", "nll", "ppl", "bleu", "chrf", "signature", "search"} <= row.keys()
        assert "tok:13a" in row["signature"]["bleu"]
    # Translations behind each score are kept.
    assert sorted(path.name for path in (unbroken / "valid").iterdir()) == [
        "step-00000010.en",
        "step-00000020.en",
        "step-00000030.en",
        "step-00000040.average.en",
        "step-00000040.en",
    ]


def test_reported_loss_is_not_smoothed(tmp_path: Path):
    """Case 28: without smoothing, what is optimised is the likelihood; with it, they differ."""
    config = make_toy(tmp_path, train=300)
    assert fit(config, "train.steps=4", "train.log_every=2", "train.label_smoothing=0.0") == 0
    for row in rows(tmp_path / "run", "train"):
        assert row["loss"] == pytest.approx(row["nll"], rel=1e-6)
    assert fit(config, "train.steps=4", "train.log_every=2", fresh=True) == 0
    for row in rows(tmp_path / "run", "train"):
        assert abs(row["loss"] - row["nll"]) > 1e-3


@pytest.mark.parametrize("pieces", [4, 30])
def test_an_update_in_micro_batches_is_the_update_at_once(tmp_path: Path, pieces: int):
    """Case 27: unequal lengths, no dropout: the same weights to 1e-6 and the same logged loss."""
    settings = {"steps": 6, "log_every": 2, "optimizer": {"name": "sgd", "lr": 0.3}}
    config = make_toy(tmp_path, train=300, **settings)
    for directory, count in (("at-once", 1), ("in-pieces", pieces)):
        fit(config, "model.dropout=0.0", f"run_dir={tmp_path / directory}", f"train.accumulate={count}")
    ours, theirs = (load_file(last(tmp_path / d) / "model.safetensors") for d in ("at-once", "in-pieces"))
    for name, tensor in ours.items():
        torch.testing.assert_close(tensor, theirs[name], rtol=0, atol=1e-6)
    for one, other in zip(*(rows(tmp_path / d, "train") for d in ("at-once", "in-pieces")), strict=True):
        assert (one["loss"], one["nll"]) == pytest.approx((other["loss"], other["nll"]), abs=1e-5)


def test_one_seed_trains_one_model_and_another_seed_another(tmp_path: Path, unbroken: Path):
    """Case 55: byte-equal weights."""
    config = make_toy(tmp_path, train=600, **RESUME)
    fit(config)
    assert_same_run(tmp_path / "run", unbroken)
    fit(config, "seed=2", f"run_dir={tmp_path / 'other'}", "train.steps=4")
    fit(config, "seed=1", f"run_dir={tmp_path / 'same'}", "train.steps=4")
    weights = [(last(tmp_path / name) / "model.safetensors").read_bytes() for name in ("other", "same")]
    assert weights[0] != weights[1]


# --- stopped and taken up again (case 35) ---

MOMENTS: dict[str, Callable[[TrainState], bool]] = {
    "before the first checkpoint": lambda state: state.step == 3,
    "in the middle of an epoch": lambda state: state.step == 17 and state.batch > 0,
    "at the end of an epoch": lambda state: state.epoch == 1 and state.batch == 0,
    "in the third epoch": lambda state: state.epoch == 2 and state.batch == 2,
    "at a step that validates": lambda state: state.step == 20,
    "at the last step": lambda state: state.step == 40,
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=list(MOMENTS))
def test_a_stopped_run_goes_on_as_if_never_stopped(
    tmp_path: Path, unbroken: Path, moment: Callable[[TrainState], bool]
):
    config = make_toy(tmp_path, train=600, **RESUME)
    with when(moment, send(signal.SIGINT)):
        assert fit(config) == 130
    assert "stopped by SIGINT" in log(tmp_path / "run")
    assert fit(config) == 0
    assert_same_run(tmp_path / "run", unbroken)


def test_a_run_may_be_stopped_again_and_again(tmp_path: Path, unbroken: Path):
    config = make_toy(tmp_path, train=600, **RESUME)
    for step, number in ((5, signal.SIGINT), (6, signal.SIGTERM), (13, signal.SIGTERM), (31, signal.SIGINT)):
        with when(lambda state, step=step: state.step == step, send(number)):
            assert fit(config) == 128 + number
    assert fit(config) == 0
    assert_same_run(tmp_path / "run", unbroken)


@pytest.mark.parametrize("which", [1, 3, 5], ids=["the first", "a later one", "that of the average"])
def test_a_stop_during_a_validation_leaves_no_trace(
    tmp_path: Path, unbroken: Path, which: int, monkeypatch: pytest.MonkeyPatch
):
    """Validation can take minutes, so it is broken off, and done anew by the next process."""
    config, translate, calls = make_toy(tmp_path, train=600, **RESUME), Translator.translate, []

    def interrupted(translator: Translator, *arguments: Any) -> list[str]:
        calls.append(True)
        if len(calls) == which:
            os.kill(os.getpid(), signal.SIGTERM)
        return translate(translator, *arguments)

    monkeypatch.setattr(Translator, "translate", interrupted)
    assert fit(config) == 143
    assert len(calls) == which
    assert fit(config) == 0
    assert_same_run(tmp_path / "run", unbroken)


# A process of its own that runs the command, and is sent a signal at a step or just before a rename.
PROCESS = """
import os, signal, sys
number, moment, *sys.argv[1:] = map(str, sys.argv[1:])
def strike():
    os.kill(os.getpid(), getattr(signal, number))
kind, count = moment.split(":")
if kind == "step":
    from nmt.train import Trainer
    update = Trainer.update
    def watched(trainer):
        update(trainer)
        if trainer.state.step == int(count):
            strike()
    Trainer.update = watched
else:
    replace, seen = os.replace, []
    def watched(source, target):
        if os.path.basename(os.path.dirname(target)) == kind:
            seen.append(target)
            if len(seen) == int(count):
                strike()
        replace(source, target)
    os.replace = watched
from nmt.cli import main
main()
"""


def killed(config: Path, number: str, moment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", PROCESS, number, moment, "train", str(config)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )


@pytest.mark.parametrize("moment", ["step:17", "checkpoints:2", "snapshots:2"])
def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path: Path, unbroken: Path, moment: str):
    """kill -9, also in the middle of writing a checkpoint: nothing half-written is ever taken for whole."""
    config = make_toy(tmp_path, train=600, **RESUME)
    assert killed(config, "SIGKILL", moment).returncode == -signal.SIGKILL
    assert (tmp_path / "run" / "metrics.jsonl").exists()
    checkpoints = checkpoint.complete(Run(tmp_path / "run"))
    assert checkpoints
    for found in checkpoints:
        found.verify()
    assert fit(config) == 0
    assert_same_run(tmp_path / "run", unbroken)
    assert not [path for path in (tmp_path / "run").rglob(".*") if path.name != ".lock"]


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_the_command_ends_with_its_documented_code(tmp_path: Path, unbroken: Path, number: str, code: int):
    """Case 39."""
    config = make_toy(tmp_path, train=600, **RESUME)
    done = killed(config, number, "step:22")
    assert done.returncode == code, done.stderr.decode()
    assert f"stopped by {number} at step 22" in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert fit(config) == 0
    assert "going on from step 22" in log(tmp_path / "run")
    assert "not the same as before" not in log(tmp_path / "run")
    assert_same_run(tmp_path / "run", unbroken)


# --- data drawn anew in each epoch, stopped and taken up again (case 35) ---

SAMPLED = {
    "bpe_dropout": ("bpe", "{name: bpe_dropout, rate: 0.2}"),
    "unigram": ("unigram", "{name: unigram, alpha: 0.2}"),
}


@pytest.mark.parametrize(("tokenizer", "sampling"), SAMPLED.values(), ids=list(SAMPLED))
def test_sampled_subwords_are_the_same_after_a_stop_and_need_no_new_preparing(
    tmp_path: Path, tokenizer: str, sampling: str
):
    config = make_toy(tmp_path, train=600, **RESUME)
    for side in ("src", "tgt"):  # words of several letters, so that there is something to split
        write(tmp_path / f"train.{side}", [line.replace(" ", "") for line in copy_lines(600, 1)])
    settings = [f"tokenizer={{name: {tokenizer}, vocab_size: 60}}", f"train.subword_sampling={sampling}"]
    elsewhere = [*settings, f"run_dir={tmp_path / 'unbroken'}"]
    assert fit(config, *elsewhere) == 0
    with when(lambda state: state.step == 17 and state.batch > 0, send(signal.SIGINT)):
        assert fit(config, *settings) == 130
    assert fit(config, *settings) == 0
    assert_same_run(tmp_path / "run", tmp_path / "unbroken")

    prepared = tmp_path / "unbroken" / "prepared" / "manifest.json"
    written = prepared.stat().st_mtime_ns
    assert fit(config, *elsewhere, "train.subword_sampling=none", fresh=True) == 0
    assert prepared.stat().st_mtime_ns == written
    losses = [[row["loss"] for row in rows(tmp_path / name, "train")] for name in ("run", "unbroken")]
    assert all(one != other for one, other in zip(*losses, strict=True))


def test_weights_of_corpora_are_kept_to_after_a_stop_at_the_end_of_an_epoch(tmp_path: Path):
    """Half of one corpus and another twice: each epoch sees other halves."""
    config = make_toy(tmp_path, train=600, **RESUME)
    for side in ("src", "tgt"):
        write(tmp_path / f"more.{side}", copy_lines(100, 9))
    one = "{name: plain, src: train.src, tgt: train.tgt, weight: 0.5}"
    two = "{name: plain, src: more.src, tgt: more.tgt, weight: 2}"
    corpora = f"data.train=[{one}, {two}]"
    assert fit(config, corpora, f"run_dir={tmp_path / 'unbroken'}") == 0
    for moment in (MOMENTS["at the end of an epoch"], lambda state: state.step == 17 and state.batch > 0):
        with when(moment, send(signal.SIGINT)):
            assert fit(config, corpora) == 130
    assert fit(config, corpora) == 0
    assert_same_run(tmp_path / "run", tmp_path / "unbroken")
    assert rows(tmp_path / "run", "train")[-1]["epoch"] > 3


# --- limits ---


def test_a_run_limited_by_epochs_ends_with_its_last_pair_and_may_be_stopped(tmp_path: Path):
    config = make_toy(tmp_path, train=600, log_every=1)
    limits = ["train.steps=null", "train.epochs=3"]
    with when(lambda state: state.epoch == 1 and state.batch == 2, send(signal.SIGINT)):
        assert fit(config, *limits) == 130
    assert fit(config, *limits) == 0
    state = json.loads((last(tmp_path / "run") / "state.json").read_text())["train"]
    assert (state["epoch"], state["batch"]) == (3, 0)
    assert "3 epochs" in log(tmp_path / "run").split("\n")[-2]
    epochs = [row["epoch"] for row in rows(tmp_path / "run", "train")]
    assert epochs[-1] == 3.0
    assert len(epochs) % 3 == 0 and epochs[len(epochs) // 3 - 1] == 1.0


def test_a_run_limited_by_minutes_ends(tmp_path: Path):
    config = make_toy(tmp_path, train=300)
    assert fit(config, "train.steps=null", "train.minutes=0.02") == 0
    assert "cannot be reproduced" in log(tmp_path / "run")
    assert last(tmp_path / "run").name != "step-00000000"
    assert fit(config, "train.steps=null", "train.minutes=0.02") == 0
    assert "nothing to do" in log(tmp_path / "run")


def test_a_complete_run_has_nothing_to_do_and_loses_nothing(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = make_toy(tmp_path, train=600, **RESUME)
    assert fit(config) == 0
    assert "nothing to do: the run is complete at step 40 (40 steps)" in log(tmp_path / "run")
    assert_same_run(tmp_path / "run", unbroken)


def test_a_complete_run_goes_on_when_its_limit_is_raised(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = make_toy(tmp_path, train=600, **RESUME)
    assert fit(config, "train.steps=44") == 0
    assert last(tmp_path / "run").name == "step-00000044"
    assert "train.steps: 40 -> 44" in log(tmp_path / "run")
    assert rows(tmp_path / "run")[: len(rows(unbroken))] == rows(unbroken)


def test_fresh_trains_anew_on_the_same_prepared_data(tmp_path: Path, unbroken: Path):
    config = make_toy(tmp_path, train=600, **RESUME)
    fit(config, "train.steps=8", "train.optimizer.lr=0.1")
    prepared = (tmp_path / "run" / "prepared" / "manifest.json").stat().st_mtime_ns
    assert fit(config, fresh=True) == 0
    assert_same_run(tmp_path / "run", unbroken)
    assert (tmp_path / "run" / "prepared" / "manifest.json").stat().st_mtime_ns == prepared


def test_another_model_is_not_taken_up(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = make_toy(tmp_path, train=600, **RESUME)
    for override, said in [("model.ffn_dim=128", r"ffn_dim: 64 -> 128"), ("model.norm=rms", r"norm: layer -> rms")]:
        with pytest.raises(CheckpointError, match=said):
            fit(config, override, "train.steps=60")
    assert_same_run(tmp_path / "run", unbroken)


def test_another_optimizer_starts_without_moments_or_is_refused_in_one_line(tmp_path: Path, unbroken: Path):
    """Never a traceback, and never the moments of one taken for those of another."""
    shutil.copytree(unbroken, tmp_path / "run")
    config = make_toy(tmp_path, train=600, **RESUME)
    momentum = "train.optimizer={name: sgd, lr: 0.01, momentum: 0.9}"
    for overrides in ([momentum, "train.steps=44"], ["train.steps=48"]):
        try:
            assert fit(config, *overrides) == 0
        except NmtError as error:
            assert "optimizer" in str(error)


def test_changed_settings_are_named_when_a_run_goes_on(tmp_path: Path):
    config = make_toy(tmp_path, train=300)
    with when(lambda state: state.step == 5, send(signal.SIGINT)):
        fit(config)
    assert fit(config, "train.batch_tokens=400", "train.steps=10") == 0
    assert "not the same as before the stop: train.batch_tokens: 512 -> 400" in log(tmp_path / "run")


# --- what is kept ---


def test_best_and_last_are_kept_whatever_their_age(tmp_path: Path):
    """Case 41: ten checkpoints, two kept, and the best of all."""
    config = make_toy(tmp_path, train=300, validate_every=2, save_every=2, average=0)
    fit(config, "train.steps=20", "train.metric=nll", "train.optimizer.lr=0.03")
    found = checkpoint.complete(Run(tmp_path / "run"))
    validations = {row["step"]: row["nll"] for row in rows(tmp_path / "run", "valid")}
    assert len(validations) == 10
    best = min(validations, key=lambda step: (validations[step], step))
    assert {c.step for c in found} == {18, 20, best}
    assert checkpoint.find(str(tmp_path / "run")).step == best
    assert checkpoint.find(str(tmp_path / "run")).score == -validations[best]


def test_a_tie_keeps_the_earlier(tmp_path: Path):
    """Case 41: a model that learns nothing scores the same at every validation."""
    config = make_toy(tmp_path, train=300, validate_every=2, save_every=2, average=0)
    fit(config, "train.steps=8", "train.optimizer.lr=1e-12")
    assert checkpoint.find(str(tmp_path / "run")).step == 2
    assert [c.step for c in checkpoint.complete(Run(tmp_path / "run"))] == [2, 6, 8]


def test_patience_ends_a_run_that_gets_no_better(tmp_path: Path):
    config = make_toy(tmp_path, train=300, validate_every=2, patience=2, steps=1000)
    assert fit(config, "train.optimizer.lr=1e-12") == 0
    assert last(tmp_path / "run").name == "step-00000006"
    assert "no new best in 2 validations" in log(tmp_path / "run")
    assert fit(config, "train.optimizer.lr=1e-12") == 0
    assert "nothing to do" in log(tmp_path / "run")


def test_a_short_run_leaves_a_model(tmp_path: Path):
    """Case 41: three updates, and the next save 5,000 away: the end of a run always validates and saves."""
    config = make_toy(tmp_path, train=300, save_every=5000, validate_every=5000)
    fit(config, "train.steps=3")
    assert [row["step"] for row in rows(tmp_path / "run", "valid")] == [3]
    assert Translator(str(tmp_path / "run"), threads=1).translate(["a b"])


def test_a_checkpoint_holds_each_weight_once(copy_run: Path):
    """Case 42: at most a tenth more than the parameters take; tied matrices once, the optimizer apart."""
    found = checkpoint.find(str(copy_run / "run"))
    parameters = sum(p.numel() for p in found.load_model().parameters())
    assert (found.directory / "model.safetensors").stat().st_size <= 1.1 * 4 * parameters


def test_the_average_is_the_mean_of_the_last_validations_and_competes(tmp_path: Path):
    """Whatever wins is what the run directory stands for; the average resumes nothing."""
    config = make_toy(tmp_path, train=300, validate_every=5, save_every=5, average=3)
    fit(config, "train.steps=20", "train.metric=nll")
    run = tmp_path / "run"
    snapshots = [load_file(checkpoint.snapshot_path(Run(run), step)) for step in (10, 15, 20)]
    found = checkpoint.complete(Run(run))
    [averaged] = [c for c in found if c.averaged] or [None]
    [row] = [r for r in rows(run, "valid") if r["averaged"]]
    assert row["averaged"] == 3
    scores = {r["step"]: -r["nll"] for r in rows(run, "valid") if not r["averaged"]}
    assert (averaged is not None) == (-row["nll"] > max(scores.values()))
    if averaged is not None:
        assert checkpoint.find(str(run)).directory == averaged.directory
        for name, tensor in averaged.tensors("model.safetensors").items():
            mean = sum(snapshot[name].double() for snapshot in snapshots) / 3
            torch.testing.assert_close(tensor, mean.float())
    assert not checkpoint.last(found).averaged


def test_the_run_directory_may_be_moved_and_the_corpora_deleted(tmp_path: Path, unbroken: Path):
    """Case 21: a checkpoint has all that translation and resuming need."""
    config = make_toy(tmp_path, train=600, **RESUME)
    with when(lambda state: state.step == 17, send(signal.SIGINT)):
        fit(config)
    for name in ("train.src", "train.tgt", "valid.src", "valid.tgt", "test.src", "test.tgt"):
        (tmp_path / name).unlink()
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    assert Translator(str(tmp_path / "elsewhere"), threads=1).translate(["a b", ""])[1] == ""
    assert fit(config, f"run_dir={tmp_path / 'elsewhere'}") == 0
    assert_same_run(tmp_path / "elsewhere", unbroken)


def test_weights_that_are_no_numbers_are_never_saved(tmp_path: Path):
    """A run that diverges ends with one line, and what was saved before can be loaded."""
    config = make_toy(tmp_path, train=300, save_every=5, validate_every=5, log_every=100)

    def spoil(trainer: Trainer) -> None:
        with torch.no_grad():
            trainer.parameters[3].view(-1)[0] = math.nan

    update = Trainer.update

    def spoiled(trainer: Trainer) -> None:
        update(trainer)
        if trainer.state.step == 12:
            spoil(trainer)

    Trainer.update = spoiled  # type: ignore[method-assign]
    try:
        with pytest.raises(NmtError, match="diverged before step 15"):
            fit(config)
    finally:
        Trainer.update = update  # type: ignore[method-assign]
    assert last(tmp_path / "run").name == "step-00000010"
    assert all(tensor.isfinite().all() for tensor in load_file(last(tmp_path / "run") / "model.safetensors").values())


# --- validation sets (case 31) ---


def with_valid(directory: Path, src: list[str], tgt: list[str], **settings: Any) -> Path:
    config = make_toy(directory, train=300, steps=10, validate_every=5, save_every=5, **settings)
    write(directory / "valid.src", src), write(directory / "valid.tgt", tgt)
    return config


@pytest.mark.parametrize(
    ("src", "tgt"),
    [
        (["a b c"], ["a b c"]),
        (["a b", "c"], ["a b", ""]),
        (["", "c"], ["a", "c"]),
        ([""], [""]),
        (["a b", "c d"], ["", ""]),
    ],
    ids=["one pair", "a blank reference", "a blank source", "one blank pair", "only blank references"],
)
def test_odd_validation_sets_work(tmp_path: Path, src: list[str], tgt: list[str]):
    config = with_valid(tmp_path, src, tgt)
    assert fit(config) == 0
    for row in rows(tmp_path / "run", "valid"):
        assert all(math.isfinite(row[key]) for key in ("nll", "ppl", "bleu", "chrf"))
    kept = (tmp_path / "run" / "valid" / "step-00000010.en").read_bytes().split(b"\n")
    assert len(kept) == len(src) + 1
    assert all((kept[i] == b"") for i, line in enumerate(src) if line == "")


def test_an_empty_validation_set_is_a_warning_and_the_last_checkpoint_is_best(tmp_path: Path, capfd):
    config = with_valid(tmp_path, [], [])
    assert fit(config) == 0
    assert "warning: data.valid.valid holds no lines" in capfd.readouterr().err
    assert "warning: no validation set" in log(tmp_path / "run")
    assert rows(tmp_path / "run", "valid") == []
    assert checkpoint.find(str(tmp_path / "run")).step == 10


def test_training_without_any_validation_set(tmp_path: Path):
    config = make_toy(tmp_path, train=300, steps=6)
    tree = yaml.safe_load(config.read_text())
    del tree["data"]["valid"]
    config.write_text(yaml.safe_dump(tree))
    assert fit(config) == 0
    assert checkpoint.find(str(tmp_path / "run")).step == 6


def with_two_sets(directory: Path) -> Path:
    config = make_toy(directory, train=300, steps=10, validate_every=5, metric="nll")
    write(directory / "other.src", ["p o n"]), write(directory / "other.tgt", ["p o n"])
    tree = yaml.safe_load(config.read_text())
    tree["data"]["valid"] = {
        "main": {"name": "plain", "src": "valid.src", "tgt": "valid.tgt"},
        "other": {"name": "plain", "src": "other.src", "tgt": "other.tgt"},
    }
    config.write_text(yaml.safe_dump(tree))
    return config


def test_the_first_of_several_validation_sets_decides(tmp_path: Path):
    config = with_two_sets(tmp_path)
    assert fit(config) == 0
    valid = rows(tmp_path / "run", "valid")
    assert [row["set"] for row in valid] == ["main", "other"] * 3
    best = max(-row["nll"] for row in valid if row["set"] == "main")
    assert checkpoint.find(str(tmp_path / "run")).score == best
    assert (tmp_path / "run" / "valid" / "other.step-00000010.en").exists()


def test_a_stop_between_two_validation_sets_writes_no_row_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The first set was measured and written down already when the signal came."""
    config, translate, lines = with_two_sets(tmp_path), Translator.translate, []

    def interrupted(translator: Translator, sources: list[str], *more: Any) -> list[str]:
        if sources == ["p o n"] and not lines:
            lines.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return translate(translator, sources, *more)

    monkeypatch.setattr(Translator, "translate", interrupted)
    assert fit(config) == 130
    assert fit(config) == 0
    assert [row["set"] for row in rows(tmp_path / "run", "valid")] == ["main", "other"] * 3
    assert log(tmp_path / "run").count("main at step 5:") == 1


def test_a_validation_line_beyond_the_learned_positions_does_not_end_the_run(tmp_path: Path):
    """Filters look at training pairs only, so validation may hold a line that the model cannot represent."""
    config = with_valid(tmp_path, ["a b", " ".join("a" * 50)], ["a b", " ".join("a" * 60)])
    overrides = ["model.position={name: learned, limit: 20}", "data.filters.length={max_tokens: 20}"]
    assert fit(config, *overrides) == 0
    assert all(math.isfinite(row["nll"]) for row in rows(tmp_path / "run", "valid"))


def test_perplexity_of_validation_does_not_depend_on_the_size_of_its_batches(
    copy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Case 28, on a trained model."""
    import numpy as np

    from nmt import score

    found = checkpoint.find(str(copy_run / "run"))
    model, tokenizer = found.load_model(), found.tokenizer()
    lines = (copy_run / "valid.src").read_text().splitlines()
    ids = tokenizer.encode_src(lines), tokenizer.encode_tgt(lines)
    means = []
    for tokens in (1, 64, 100_000):
        monkeypatch.setattr(score, "TOKENS", tokens)
        means.append(float(np.concatenate(score.log_probs(model, *ids, torch.device("cpu"))).mean()))
    assert means == pytest.approx([means[0]] * 3, abs=1e-6)
