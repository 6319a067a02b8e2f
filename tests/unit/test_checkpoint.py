"""Checkpoints on disk: whole, checked, small, free of pickle; which one is last, best, kept."""

from __future__ import annotations

import json
import pickle
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt import checkpoint
from nmt.choice import Choice
from nmt.config import Config, Data, Model, Train
from nmt.errors import CheckpointError, NmtError
from nmt.files import sha256
from nmt.model.transformer import Transformer
from nmt.optim import OPTIMIZERS, Optimizer, adamw
from nmt.ranks import Ranks
from nmt.resume import begun, newest
from nmt.run import Run
from nmt.tokenizer import TOKENIZERS

LINES = ["a b c d e f"]


@pytest.fixture(scope="module")
def tokenizer_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tokenizer")
    TOKENIZERS["none"](vocab_size=50)(LINES, LINES, print).save(directory)
    return directory


def config(**model: Any) -> Config:
    sizes = {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.1}
    return Config(
        run_dir="run",
        src_lang="en",
        tgt_lang="de",
        data=Data(train=[Choice("plain", {"src": "a", "tgt": "b"})]),
        model=Model(**{**sizes, **model}),
        train=Train(steps=10),
    )


def model_of(settings: Config, seed: int = 1) -> Transformer:
    torch.manual_seed(seed)
    return checkpoint.build_model(settings.model, 10, 10)


@pytest.fixture
def save(tmp_path: Path, tokenizer_directory: Path):
    """Writes a checkpoint of the run in tmp_path, and gives it back opened."""

    def write(step: int, score: float | None = None, averaged: bool = False, **more: Any) -> checkpoint.Checkpoint:
        settings = more.get("config") or config()
        model = more.get("model") or model_of(settings, seed=step)
        directory = Run(tmp_path).checkpoints / (f"step-{step:08d}" + (".average" if averaged else ""))
        train = {"snapshots": more.get("snapshots", [])}
        state = {"step": step, "score": score, "metric": "bleu", "averaged": averaged, "train": train}
        state["nll"] = more.get("nll", 0.0)
        checkpoint.save(directory, model, more.get("rest"), state, settings, tokenizer_directory)
        return checkpoint.open_checkpoint(directory)

    return write


def steps(checkpoints: list[checkpoint.Checkpoint]) -> list[int]:
    return [c.step for c in checkpoints]


def same_weights(a: Transformer, b: Transformer) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"tie": "none", "norm_first": False},
        {"norm": "rms", "position": Choice("learned", {"limit": 30}), "tie": "decoder"},
    ],
    ids=["tied", "untied", "learned positions"],
)
def test_a_model_comes_back_bit_for_bit(save, settings: dict[str, Any]):
    settings_ = config(**settings)
    model = model_of(settings_)
    found = save(7, config=settings_, model=model)
    found.verify()
    assert same_weights(found.load_model(), model)
    assert found.config() == settings_


@pytest.mark.parametrize("tie", ["all", "decoder", "none"])
def test_weights_on_disk_are_each_parameter_once(save, tie: str):
    """Case 42: tied matrices are not written twice, and the optimizer lives in a file of its own."""
    settings = config(tie=tie)
    model = model_of(settings)
    optimizer = adamw(model.named_parameters())
    model.logits(model(torch.tensor([[4, 3]]), torch.tensor([[2, 4]]))).sum().backward()
    optimizer.step()
    found = save(1, config=settings, model=model, rest=checkpoint.optimizer_tensors(model, optimizer))
    count = sum(p.numel() for p in model.parameters())
    # The header names every tensor; of a model this small it would be the larger part, so it is set aside.
    header = int.from_bytes((found.directory / "model.safetensors").read_bytes()[:8], "little") + 8
    assert (found.directory / "model.safetensors").stat().st_size - header == 4 * count
    assert sum(t.numel() for t in found.tensors("model.safetensors").values()) == count


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_optimizer_goes_on_as_if_never_stopped(save, make: Callable[..., Optimizer]):
    def update(model: Transformer, optimizer: Optimizer, seed: int) -> None:
        torch.manual_seed(seed)
        src, tgt = torch.randint(4, 10, (3, 5)), torch.randint(4, 10, (3, 4))
        model.logits(model(src, tgt)).log_softmax(-1)[..., 4].sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    model = model_of(config())
    optimizer = make(model.named_parameters(), lr=0.01)
    for seed in (1, 2):
        update(model, optimizer, seed)
    found = save(2, model=model, rest=checkpoint.optimizer_tensors(model, optimizer))
    update(model, optimizer, 3)

    again = model_of(config(), seed=99)
    fresh = make(again.named_parameters(), lr=0.01)
    checkpoint.load_weights(again, found.tensors("model.safetensors"), found.directory)
    checkpoint.load_optimizer(again, fresh, found.tensors("optimizer.safetensors"))
    update(again, fresh, 3)
    assert same_weights(model, again)


def test_an_optimizer_that_has_made_no_step_can_be_saved(save):
    model = model_of(config())
    found = save(0, model=model, rest=checkpoint.optimizer_tensors(model, adamw(model.named_parameters())))
    checkpoint.load_optimizer(model, adamw(model.named_parameters()), found.tensors("optimizer.safetensors"))
    assert found.tensors("optimizer.safetensors") == {}


def test_weights_of_another_shape_are_refused(save):
    found = save(1)
    with pytest.raises(CheckpointError, match="do not fit"):
        checkpoint.load_weights(model_of(config(ffn_dim=48)), found.tensors("model.safetensors"), found.directory)
    with pytest.raises(CheckpointError, match="do not fit"):
        checkpoint.load_weights(model_of(config(decoder_layers=1)), found.tensors("model.safetensors"), found.directory)


# --- faults ---


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "config.yaml", "tokenizer.model"])
def test_a_changed_file_is_noticed(save, name: str):
    """Case 21: also the tokenizer, which would translate into other words without any error."""
    path = save(1, rest={"a": torch.ones(9)}).directory / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{name}: its content is not what was saved"):
        checkpoint.find(str(path.parent))


def test_a_changed_number_in_the_state_is_noticed(save):
    """It is still JSON, but not what was written."""
    path = save(1, score=12.5).directory / "state.json"
    path.write_text(path.read_text().replace("12.5", "12.6"))
    with pytest.raises(CheckpointError, match=r"state\.json: its content is not what was saved"):
        checkpoint.find(str(path.parent))


def test_damaged_checkpoints_are_set_aside_and_named(save, tmp_path: Path):
    """Nothing counts on them any more: they are neither last nor best, and take no place of those to keep."""
    save(1, 1.0), save(2, 3.0), save(3, 2.0)
    places = [Run(tmp_path).checkpoints / f"step-0000000{step}" for step in (2, 3)]
    (places[0] / "model.safetensors").write_bytes(b"")
    (places[1] / "state.json").write_text("{")
    said: list[str] = []
    for _ in range(2):
        checkpoint.set_damaged_aside(Run(tmp_path), said.append)
    assert [re.search(r"step-\d+", line).group() for line in said] == ["step-00000002", "step-00000003"]
    assert all("it is now damaged-step-0000000" in line for line in said)
    assert steps(checkpoint.complete(Run(tmp_path))) == [1]
    assert checkpoint.find(str(tmp_path)).step == 1


def test_when_all_checkpoints_are_damaged_that_is_said(save, tmp_path: Path):
    (save(1).directory / "model.safetensors").write_bytes(b"")
    checkpoint.set_damaged_aside(Run(tmp_path), print)
    with pytest.raises(CheckpointError, match="all checkpoints are damaged; train anew with --fresh"):
        checkpoint.find(str(tmp_path))


def test_what_others_put_beside_the_checkpoints_is_left_alone(save, tmp_path: Path):
    """Copies under names of their own, and directories that are no checkpoints."""
    run = Run(tmp_path)
    for name in ("step-00000001.bak", "step-best", "old-step-00000001"):
        shutil.copytree(save(1, 9.0).directory, run.checkpoints / name)
    (run.checkpoints / "step-tmp").mkdir()
    before = sorted(path for path in run.checkpoints.iterdir() if path.name != "step-00000001")
    shutil.rmtree(run.checkpoints / "step-00000001")
    assert not begun(run)
    for step in (2, 3, 4):
        save(step, 1.0)
        checkpoint.prune(run, checkpoint.complete(run), 1, 1)
    checkpoint.set_damaged_aside(run, pytest.fail)
    assert steps(checkpoint.complete(run)) == [2, 4] and begun(run)
    assert checkpoint.find(str(tmp_path)).step == 2
    assert checkpoint.find(str(run.checkpoints / "step-best")).step == 1
    assert [path for path in before if not path.exists()] == []


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model"])
def test_a_missing_file_is_noticed(save, name: str):
    found = save(1)
    (found.directory / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name}: is missing"):
        checkpoint.find(str(found.directory))


class Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("was-executed"),)


def test_a_pickle_named_as_weights_is_refused_and_never_run(save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Case 43: even when its checksum has been made to fit."""
    monkeypatch.chdir(tmp_path)
    found = save(1)
    path = found.directory / "model.safetensors"
    path.write_bytes(pickle.dumps(Malicious()))
    state = json.loads((found.directory / "state.json").read_text())
    state["files"]["model.safetensors"] = sha256(path)
    del state["checksum"]
    (found.directory / "state.json").write_text(json.dumps(state))
    with pytest.raises(CheckpointError, match="safetensors"):
        checkpoint.find(str(found.directory)).load_model()
    assert not Path("was-executed").exists()


def test_a_checkpoint_of_another_format_is_named_as_such(save):
    path = save(1).directory / "state.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 99'))
    with pytest.raises(CheckpointError, match="format 99"):
        checkpoint.find(str(path.parent))


def test_model_arguments_that_name_nothing(tmp_path: Path):
    (tmp_path / "file.pt").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "no-run.yaml").write_text("model: {}\n")
    for name, message in [
        ("missing", "does not exist"),
        ("file.pt", "is a file; MODEL must be"),
        ("empty", "is no model; MODEL must be"),
        ("no-run.yaml", "names no run_dir"),
    ]:
        with pytest.raises(NmtError, match=message):
            checkpoint.find(str(tmp_path / name))


def test_a_model_is_named_by_run_by_checkpoint_or_by_config(save, tmp_path: Path):
    save(1, score=1.0), save(2, score=3.0), save(3, score=2.0)
    assert checkpoint.find(str(tmp_path)).step == 2
    assert checkpoint.find(str(tmp_path / "checkpoints" / "step-00000003")).step == 3
    (tmp_path / "some.yaml").write_text(f"run_dir: '{tmp_path}'\n")
    assert checkpoint.find(str(tmp_path / "some.yaml")).step == 2


def test_a_save_that_fails_leaves_the_old_checkpoint_and_nothing_else(save, tmp_path: Path):
    """Case 38: the disk is full in the middle of a save."""
    model, before = save(1).load_model(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))  # no file may grow larger than that
    try:
        for step in (1, 2):
            with pytest.raises(NmtError, match=r"cannot be written: .*File too large"):
                save(step)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [p.name for p in Run(tmp_path).checkpoints.iterdir()] == ["step-00000001"]
    assert same_weights(checkpoint.find(str(tmp_path)).load_model(), model)


# --- last, best, kept ---


def test_of_equal_scores_the_lower_nll_is_the_best(save, tmp_path: Path):
    """Early in a run BLEU may be 0.00 for long, while the model learns."""
    for step, nll in [(1, 4.7), (2, 3.9), (3, 4.1)]:
        save(step, 0.0, nll=nll)
    assert checkpoint.find(str(tmp_path)).step == 2


def test_last_and_best(save, tmp_path: Path):
    """A tie keeps the earlier; an average may be the best, but nobody resumes from it."""
    for step, score in [(1, 0.5), (2, 2.0), (3, 2.0), (4, None)]:
        save(step, score)
    save(4, 1.0, averaged=True)
    found = checkpoint.complete(Run(tmp_path))
    assert newest(Run(tmp_path), Ranks()).directory.name == "step-00000004"
    assert [c.directory.name for c in checkpoint.by_score(found)] == [
        "step-00000002",
        "step-00000003",
        "step-00000004.average",
        "step-00000001",
    ]


def test_without_any_score_the_newest_is_the_best(save, tmp_path: Path):
    """Case 31: validation is off."""
    for step in (1, 2, 3):
        save(step)
    assert checkpoint.find(str(tmp_path)).step == 3


def test_no_checkpoints(tmp_path: Path):
    assert checkpoint.complete(Run(tmp_path)) == []
    assert newest(Run(tmp_path), Ranks()) is None


@pytest.mark.parametrize(("keep_last", "keep_best", "left"), [(2, 1, [3, 9, 10]), (1, 2, [3, 7, 10])])
def test_of_ten_checkpoints_the_last_and_the_best_are_kept(save, tmp_path: Path, keep_last, keep_best, left):
    """Case 41: the best is never deleted, however old."""
    for step in range(1, 11):
        save(step, score={3: 9.0, 7: 8.0}.get(step, step / 10))
        kept = checkpoint.prune(Run(tmp_path), checkpoint.complete(Run(tmp_path)), keep_last, keep_best)
        assert kept[-1].step == step
    assert steps(checkpoint.complete(Run(tmp_path))) == left
    assert len(list(Run(tmp_path).checkpoints.glob("step-*"))) == len(left)


def test_pruning_keeps_the_snapshots_that_a_kept_checkpoint_may_average(save, tmp_path: Path):
    run = Run(tmp_path)
    for step in (1, 2, 3, 4):
        checkpoint.save_snapshot(run, step, model_of(config()))
    save(3, 1.0, snapshots=[2, 3]), save(4, 0.5, snapshots=[3, 4])
    checkpoint.prune(run, checkpoint.complete(run), 2, 1)
    assert [step for step in (1, 2, 3, 4) if checkpoint.snapshot_path(run, step).exists()] == [2, 3, 4]
    checkpoint.prune(run, checkpoint.complete(run), 1, 1)
    assert [step for step in (1, 2, 3, 4) if checkpoint.snapshot_path(run, step).exists()] == [3, 4]


@pytest.mark.parametrize("tie", ["all", "none"])
def test_the_average_of_equal_snapshots_is_the_same_model(tmp_path: Path, tie: str):
    """Case 42."""
    run, settings = Run(tmp_path), config(tie=tie)
    model = model_of(settings)
    for step in (1, 2, 3):
        checkpoint.save_snapshot(run, step, model)
    again = model_of(settings, seed=5)
    checkpoint.load_weights(again, checkpoint.average(run, [1, 2, 3], print)[0], tmp_path)
    assert same_weights(again, model)


def test_an_average_is_the_mean_of_its_snapshots(tmp_path: Path):
    run = Run(tmp_path)
    models = [model_of(config(), seed=seed) for seed in (1, 2, 3)]
    for step, model in enumerate(models):
        checkpoint.save_snapshot(run, step, model)
    mean, count = checkpoint.average(run, [0, 1, 2], print)
    assert count == 3
    for name, parameter in models[0].named_parameters():
        others = [dict(m.named_parameters())[name] for m in models[1:]]
        torch.testing.assert_close(mean[name], (parameter + others[0] + others[1]) / 3)


@pytest.mark.parametrize("harm", [lambda b: b[: len(b) // 2], lambda b: b[:-1] + bytes([b[-1] ^ 1]), None])
def test_a_damaged_snapshot_is_named_and_the_average_does_without_it(tmp_path: Path, harm):
    run, said = Run(tmp_path), []
    models = [model_of(config(), seed=seed) for seed in (1, 2, 3)]
    for step, model in enumerate(models):
        checkpoint.save_snapshot(run, step, model)
    path = checkpoint.snapshot_path(run, 1)
    content = path.read_bytes()
    path.unlink()
    if harm:
        path.write_bytes(harm(content))
    mean, count = checkpoint.average(run, [0, 1, 2], said.append)
    assert count == 2 and len(said) == 1 and said[0].startswith(f"warning: {path}: ")
    for name, parameter in models[0].named_parameters():
        torch.testing.assert_close(mean[name], (parameter + dict(models[2].named_parameters())[name]) / 2)
