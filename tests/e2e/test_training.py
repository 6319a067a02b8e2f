"""Training from config to checkpoints: it learns, ends where it should, and keeps and says what it should."""

from __future__ import annotations

import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import make_toy, write
from safetensors.torch import load_file
from toy_runs import fit, last, log, resume_config, rows, send, state_of, when

from nmt import checkpoint
from nmt.data.prepare import open_prepared
from nmt.run import Run
from nmt.translate import Translator

# --- it learns ---


def test_a_copy_task_is_learnt_to_the_last_letter(copy_run: Path):
    translator = Translator(str(copy_run / "run"), device="cpu", threads=1)
    lines = (copy_run / "test.src").read_text().splitlines()
    assert translator.translate(lines) == lines
    [final] = [row for row in rows(copy_run / "run", "valid") if row["step"] == 600 and not row["averaged"]]
    assert final["bleu"] == pytest.approx(100.0)
    assert final["ppl"] == pytest.approx(math.exp(final["nll"])) and final["nll"] < 0.1


def test_the_record_says_what_the_documentation_says(tmp_path: Path):
    assert fit(resume_config(tmp_path)) == 0
    run = tmp_path / "run"
    trained, valid = rows(run, "train"), rows(run, "valid")
    assert [row["step"] for row in trained] == list(range(4, 41, 4))
    assert [row["step"] for row in valid] == [10, 20, 30, 40, 40]
    for row in trained:
        names = {"kind", "step", "epoch", "loss", "nll", "ppl", "lr", "grad_norm", "padding", "skipped"}
        assert row.keys() == names and row["skipped"] == 0
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
    assert sorted(path.name for path in (run / "valid").iterdir()) == [
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
    store = open_prepared(Run(tmp_path / "run")).train()
    _, tgt = store.ids(range(len(store)))
    assert rows(tmp_path / "run", "valid")[-1]["target_tokens"] == 3 * sum(map(len, tgt))


def test_a_run_limited_by_minutes_ends(tmp_path: Path):
    config = make_toy(tmp_path, train=300)
    assert fit(config, "train.steps=null", "train.minutes=0.05") == 0
    assert "cannot be reproduced" in log(tmp_path / "run")
    assert last(tmp_path / "run").name != "step-00000000"
    for minutes in ("0.05", "0.051"):  # used up already
        assert fit(config, "train.steps=null", f"train.minutes={minutes}") == 0
        said = log(tmp_path / "run").split("\n")[-2]
        assert f"nothing to do: the run is complete at step {state_of(last(tmp_path / 'run'))['step']} " in said
        assert f"({minutes} minutes); to go on, set train.minutes above 0.1, which are used up" in said


def test_a_slow_run_says_early_and_once_that_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = make_toy(tmp_path, train=300, log_every=3)
    assert fit(config, "train.steps=4") == 0
    assert "seconds; numbers come" not in log(tmp_path / "run")
    monkeypatch.setattr("nmt.trainer.SILENT", 0)
    assert fit(config, "train.steps=4", fresh=True) == 0
    said = [line for line in log(tmp_path / "run").splitlines() if " step " in line]
    assert said[0].endswith(" step 1 after 0 seconds; numbers come every 3 steps")
    assert " step 3  epoch " in said[1] and "numbers come" not in "".join(said[1:])


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
    assert "warning: data.valid holds no lines" in capfd.readouterr().err
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
