"""A run that is stopped or killed, at whatever moment, goes on bit for bit as if nothing had happened (case 35)."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import copy_lines, make_toy, write
from toy_runs import (
    assert_same_run,
    end,
    fit,
    last,
    log,
    resume_config,
    rows,
    send,
    start,
    train_striking,
    when,
)

from nmt import checkpoint
from nmt.errors import CheckpointError, NmtError
from nmt.resume import TrainState
from nmt.run import Run
from nmt.translate import Translator


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody stopped."""
    directory = tmp_path_factory.mktemp("unbroken")
    assert fit(resume_config(directory)) == 0
    return directory / "run"


def test_one_seed_trains_one_model_and_another_seed_another(tmp_path: Path, unbroken: Path):
    """Case 55: byte-equal weights."""
    config = resume_config(tmp_path)
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
    config = resume_config(tmp_path)
    with when(moment, send(signal.SIGINT)):
        assert fit(config) == 130
    assert "stopped by SIGINT" in log(tmp_path / "run")
    assert fit(config) == 0
    assert_same_run(tmp_path / "run", unbroken)


def test_a_run_may_be_stopped_again_and_again(tmp_path: Path, unbroken: Path):
    config = resume_config(tmp_path)
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
    config, translate, calls = resume_config(tmp_path), Translator.translate, []

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


@pytest.mark.parametrize("moment", ["step:17", "checkpoints:2", "snapshots:2"])
def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path: Path, unbroken: Path, moment: str):
    """kill -9, also in the middle of writing a checkpoint: nothing half-written is ever taken for whole."""
    config = resume_config(tmp_path)
    killed = start(tmp_path / "stderr", train_striking, config, signal.SIGKILL, moment)
    assert end(killed) == -signal.SIGKILL
    assert (tmp_path / "run" / "metrics.jsonl").exists()
    checkpoints = checkpoint.complete(Run(tmp_path / "run"))
    assert checkpoints
    for found in checkpoints:
        found.verify()
    assert fit(config) == 0
    assert_same_run(tmp_path / "run", unbroken)
    assert not [path for path in (tmp_path / "run").rglob(".*") if path.name != ".lock"]


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGUSR1", 138)])
def test_the_command_ends_with_its_documented_code(tmp_path: Path, unbroken: Path, number: str, code: int):
    """Case 39."""
    config, said = resume_config(tmp_path), tmp_path / "stderr"
    assert end(start(said, train_striking, config, getattr(signal, number), "step:22")) == code
    assert f"stopped by {number} at step 22" in said.read_text()
    assert "Traceback" not in said.read_text()
    assert last(tmp_path / "run").name == "step-00000022"
    if number == "SIGTERM":
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
    config = resume_config(tmp_path, steps=20)
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
    config = resume_config(tmp_path)
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


def test_a_complete_run_has_nothing_to_do_and_loses_nothing(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = resume_config(tmp_path)
    assert fit(config) == 0
    assert "nothing to do: the run is complete at step 40 (40 steps)" in log(tmp_path / "run")
    assert_same_run(tmp_path / "run", unbroken)


def test_a_complete_run_goes_on_when_its_limit_is_raised(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = resume_config(tmp_path)
    assert fit(config, "train.steps=44") == 0
    assert last(tmp_path / "run").name == "step-00000044"
    assert "train.steps: 40 -> 44" in log(tmp_path / "run")
    assert rows(tmp_path / "run")[: len(rows(unbroken))] == rows(unbroken)


def test_fresh_trains_anew_on_the_same_prepared_data(tmp_path: Path, unbroken: Path):
    config = resume_config(tmp_path)
    fit(config, "train.steps=8", "train.optimizer.lr=0.1")
    prepared = (tmp_path / "run" / "prepared" / "manifest.json").stat().st_mtime_ns
    assert fit(config, fresh=True) == 0
    assert_same_run(tmp_path / "run", unbroken)
    assert (tmp_path / "run" / "prepared" / "manifest.json").stat().st_mtime_ns == prepared


def test_fresh_deletes_nothing_when_training_cannot_begin(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = resume_config(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(NmtError, match=r"train\.freeze: the model has no part `nonsense`"):
        fit(config, "train.freeze=[nonsense]", fresh=True)
    del before[tmp_path / "run" / ".lock"]
    assert {path: path.read_bytes() for path in before} == before


def test_another_model_is_not_taken_up(tmp_path: Path, unbroken: Path):
    shutil.copytree(unbroken, tmp_path / "run")
    config = resume_config(tmp_path)
    for override, said in [("model.ffn_dim=128", r"ffn_dim: 64 -> 128"), ("model.norm=rms", r"norm: layer -> rms")]:
        with pytest.raises(CheckpointError, match=said):
            fit(config, override, "train.steps=60")
    assert_same_run(tmp_path / "run", unbroken)


def test_another_optimizer_starts_without_moments_or_is_refused_in_one_line(tmp_path: Path, unbroken: Path):
    """Never a traceback, and never the moments of one taken for those of another."""
    shutil.copytree(unbroken, tmp_path / "run")
    config = resume_config(tmp_path)
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


def test_the_run_directory_may_be_moved_and_the_corpora_deleted(tmp_path: Path, unbroken: Path):
    """Case 21: a checkpoint has all that translation and resuming need."""
    config = resume_config(tmp_path)
    with when(lambda state: state.step == 17, send(signal.SIGINT)):
        fit(config)
    for name in ("train.src", "train.tgt", "valid.src", "valid.tgt", "test.src", "test.tgt"):
        (tmp_path / name).unlink()
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    assert Translator(str(tmp_path / "elsewhere"), threads=1).translate(["a b", ""])[1] == ""
    assert fit(config, f"run_dir={tmp_path / 'elsewhere'}") == 0
    assert_same_run(tmp_path / "elsewhere", unbroken)
