"""Runs that start from another model, that train only parts of it, or that keep averaged weights."""

from __future__ import annotations

import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Answer, copy_lines, make_toy, write
from safetensors.torch import load_file
from toy_runs import assert_same_run, fit, last, resume_config, rows, send, state_of, when

from nmt import checkpoint
from nmt.errors import CheckpointError, ConfigError, NmtError

FEW = {"log_every": 1, "validate_every": 4, "save_every": 4, "steps": 8, "accumulate": 1, "average": 0}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose model others start from."""
    directory = tmp_path_factory.mktemp("source")
    assert fit(make_toy(directory, train=600, **FEW)) == 0
    return directory / "run"


def other_text(directory: Path, **settings: Any) -> Path:
    """A config and a corpus that a tokenizer of its own would have other pieces for."""
    config = make_toy(directory, train=300, **{**FEW, **settings})
    for side in ("src", "tgt"):
        write(directory / f"train.{side}", [f"{line} xyz" for line in copy_lines(300, 7)])
    return config


def weights(run: Path, which: int = -1) -> dict[str, torch.Tensor]:
    return load_file(sorted((run / "checkpoints").glob("step-????????"))[which] / "model.safetensors")


# --- from another model ---


def test_a_run_starts_from_the_weights_and_tokenizer_of_a_model_and_all_else_is_new(tmp_path: Path, source: Path):
    config = other_text(tmp_path, keep={"last": 9})
    assert fit(config, f"train.init_from={source}", "train.optimizer.lr=1e-12") == 0
    run = tmp_path / "run"
    best = checkpoint.find(str(source))
    for name, tensor in best.tensors("model.safetensors").items():
        torch.testing.assert_close(weights(run, 0)[name], tensor, rtol=0, atol=1e-9)
    assert checkpoint.find(str(run)).state["tokenizer_digest"] == best.state["tokenizer_digest"]
    assert last(run).name == "step-00000008" and [row["step"] for row in rows(run, "train")] == list(range(1, 9))
    assert state_of(last(run))["epochs"] < 4
    # Its warm-up and moments start anew as well.
    assert rows(run, "train")[0]["lr"] < 1e-14
    moments = load_file(last(run) / "optimizer.safetensors")
    assert {int(tensor) for name, tensor in moments.items() if name.endswith("/step")} == {8}


def test_a_checkpoint_directory_can_be_the_start_and_the_model_may_be_deleted_later(tmp_path: Path, source: Path):
    config, model = other_text(tmp_path), tmp_path / "model"
    elsewhere = f"run_dir={tmp_path / 'unbroken'}"
    shutil.copytree(last(source), model)
    assert fit(config, f"train.init_from={model}", elsewhere) == 0
    with when(lambda state: state.step == 3, send(signal.SIGINT)):
        assert fit(config, f"train.init_from={model}") == 130
    shutil.rmtree(model)
    assert fit(config, f"train.init_from={model}") == 0
    assert_same_run(tmp_path / "run", tmp_path / "unbroken")
    with pytest.raises(NmtError, match="does not exist"):
        fit(config, f"train.init_from={model}", fresh=True)
    assert last(tmp_path / "run").name == "step-00000008"


def test_dropout_may_be_another_than_that_of_the_model(tmp_path: Path, source: Path):
    assert fit(other_text(tmp_path), f"train.init_from={source}", "model.dropout=0.3") == 0


def test_a_model_of_other_sizes_is_refused_in_one_line(tmp_path: Path, source: Path):
    with pytest.raises(CheckpointError) as error:
        fit(other_text(tmp_path), f"train.init_from={source}", "model.ffn_dim=128", "model.norm=rms")
    assert "model.ffn_dim: 64 -> 128" in str(error.value) and "model.norm: layer -> rms" in str(error.value)
    assert str(source) in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()  # it is known before the data is prepared


def test_data_prepared_with_another_vocabulary_is_refused_in_one_line(tmp_path: Path, source: Path):
    config = other_text(tmp_path)
    assert fit(config, "train.steps=1") == 0
    with pytest.raises(ConfigError, match=r"prepare CONFIG --fresh` and then `nmt train CONFIG --fresh`$"):
        fit(config, f"train.init_from={source}")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    digest = checkpoint.find(str(source)).state["tokenizer_digest"]
    with pytest.raises(ConfigError, match=f"prepared with other settings.*tokenizer.*none.*{digest}.*redo it") as error:
        fit(config, f"train.init_from={source}")
    assert "\n" not in str(error.value)


# --- parts that are not trained ---


@pytest.mark.parametrize("optimizer", ["{name: adamw, weight_decay: 0.1}", "{name: muon, weight_decay: 0.1}"])
def test_frozen_parts_stay_as_they_are_bit_for_bit(tmp_path: Path, source: Path, optimizer: str):
    config = other_text(tmp_path)
    settings = [f"train.init_from={source}", "train.freeze=[encoder, src_embedding]", f"train.optimizer={optimizer}"]
    settings.append("train.ema=0.9")
    with when(lambda state: state.step == 5, send(signal.SIGINT)):
        assert fit(config, *settings) == 130
    assert fit(config, *settings) == 0
    before, after = checkpoint.find(str(source)).tensors("model.safetensors"), weights(tmp_path / "run")
    frozen = {name for name in before if name.startswith(("encoder.", "src_embedding."))}
    assert len(frozen) > 5
    for name in before:
        assert torch.equal(after[name], before[name]) == (name in frozen), name
    assert not any(name.startswith("encoder.") for name in load_file(last(tmp_path / "run") / "optimizer.safetensors"))


def test_a_part_that_the_model_does_not_have_is_one_line_before_any_work(tmp_path: Path, command):
    config = make_toy(tmp_path, train=60, **FEW)
    answer: Answer = command("train", config, "-s", "train.freeze=[encoder, decodr]")
    [error] = [line for line in answer.err.splitlines() if line.startswith("error")]
    assert answer.code == 2
    assert "train.freeze: the model has no part `decodr`; it has src_embedding" in error and "decoder" in error
    assert not (tmp_path / "run").exists()


# --- averages, other optimisers ---


@pytest.mark.parametrize(
    "settings",
    [
        ["train.ema=0.8", "train.optimizer={name: muon, lr: 0.01}", "train.schedule={name: wsd, decay: 0.5}"],
        ["train.ema=0.8", "train.objective=rdrop", "model.word_dropout=0.1", "model.position=rotary"],
        [
            "train.objective=simcut",
            "train.optimizer={name: sgd, lr: 0.1, momentum: 0.9}",
            "model.attention_dropout=0.1",
        ],
    ],
    ids=["muon with averaged weights", "rdrop with averaged weights", "simcut"],
)
def test_whatever_is_trained_goes_on_as_if_never_stopped(tmp_path: Path, settings: list[str]):
    """Case 35, in the middle of an epoch."""
    config = resume_config(tmp_path, steps=24)
    assert fit(config, *settings, f"run_dir={tmp_path / 'unbroken'}") == 0
    with when(lambda state: state.step == 17 and state.batch > 0, send(signal.SIGINT)):
        assert fit(config, *settings) == 130
    assert fit(config, *settings) == 0
    assert_same_run(tmp_path / "run", tmp_path / "unbroken")


def test_what_is_measured_and_kept_are_the_averaged_weights(tmp_path: Path):
    """After each update the average moves towards the weights; early on by more than the decay says."""
    config = make_toy(tmp_path, train=300, **{**FEW, "validate_every": 1, "save_every": 1, "keep": {"last": 20}})
    assert fit(config, "train.ema=0.7") == 0
    assert fit(config, f"run_dir={tmp_path / 'plain'}") == 0
    expected: dict[str, torch.Tensor] = {}
    for step in range(1, 9):
        plain = weights(tmp_path / "plain", step - 1)
        decay = min(0.7, (1 + step) / (10 + step))
        if not expected:
            raw = load_file(tmp_path / "run" / "checkpoints" / "step-00000001" / "optimizer.safetensors")
            assert all(torch.equal(raw[f"raw/{name}"], tensor) for name, tensor in plain.items())
            expected = weights(tmp_path / "run", 0)
        else:
            expected = {name: decay * expected[name] + (1 - decay) * plain[name] for name in expected}
        kept = weights(tmp_path / "run", step - 1)
        for name, tensor in expected.items():
            torch.testing.assert_close(kept[name], tensor, rtol=0, atol=1e-6)
    averaged, plain_nll = (rows(tmp_path / name, "valid")[-1]["nll"] for name in ("run", "plain"))
    assert averaged != plain_nll


# --- watching ---


def test_tensorboard_without_its_package_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("tensorboard", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NmtError, match=r"train.tensorboard needs the package tensorboard: pip install"):
        fit(make_toy(tmp_path, train=60, **FEW), "train.tensorboard=true")
    assert not (tmp_path / "run").exists()


def test_tensorboard_gets_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written: list[tuple[str, float, int]] = []

    class Writer:
        def __init__(self, directory: str) -> None:
            written.append((directory, 0.0, 0))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            written.append((name, value, step))

        def close(self) -> None:
            written.append(("closed", 0.0, 0))

    module = type(sys)("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    assert fit(make_toy(tmp_path, train=60, **FEW), "train.tensorboard=true") == 0
    assert written[0][0] == str(tmp_path / "run" / "tensorboard") and written[-1][0] == "closed"
    for row in rows(tmp_path / "run"):
        assert (f"{row['kind']}/nll", row["nll"], row["step"]) in written
