"""A sweep: what is trained, in which order and in what time, what is not done twice, and what the table says."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import make_toy

from nmt.files import locked
from nmt.sweep import outcomes, running
from nmt.sweep.outcomes import Outcome
from nmt.sweep.plan import load
from nmt.sweep.table import table

# In place of `nmt train`: at once, and its BLEU is 100 times model.dropout plus the seed.
FAKE = """
import json, os, signal, sys, time
import yaml
config = yaml.safe_load(open(sys.argv[1]))
run, dropout = config["run_dir"], config["model"]["dropout"]
os.makedirs(os.path.join(run, "prepared"), exist_ok=True)
def stop(number, _):
    print("saved", file=sys.stderr)
    sys.exit(128 + number)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, stop)
print("trained", config["train"]["steps"], file=sys.stderr)
if dropout == 0.666:
    sys.exit("error: training diverged at step 3: nothing helps")
if dropout == 0.777:
    os.kill(os.getpid(), signal.SIGKILL)
if os.path.exists("stop") and config["seed"] == 2:
    os.kill(os.getppid(), getattr(signal, open("stop").read()))
    time.sleep(60)
row = {"kind": "valid", "set": "valid", "averaged": 0, "signature": {"bleu": ""}, "nll": 1.0}
with open(os.path.join(run, "metrics.jsonl"), "w") as stream:
    for step, bleu in ((10, 100 * dropout + config["seed"]), (20, 0.5)):
        print(json.dumps(row | {"step": step, "bleu": bleu, "target_tokens": 1000 * step}), file=stream)
"""
SWEEP = {"base": "toy.yaml", "out": "out", "seeds": [1, 2], "grid": {"model.dropout": [0.1, 0.2]}}


@pytest.fixture
def sweep(tmp_path: Path, command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`nmt sweep` of a file of these settings, whose runs are not really trained."""
    make_toy(tmp_path, train=20)
    (tmp_path / "fake.py").write_text(FAKE)
    monkeypatch.setattr(running, "TRAIN", [sys.executable, "fake.py"])

    def run(*options: str, **settings: Any) -> Any:
        (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(SWEEP | settings, sort_keys=False))
        return command("sweep", "sweep.yaml", *options)

    return run


def begun(err: str) -> list[str]:
    """The runs that were begun, in order: "2 of 4: small, seed 1; 0.0 minutes used" is "small, seed 1"."""
    return [line.partition(": ")[2].partition(";")[0] for line in err.splitlines() if line.endswith(" used")]


def cells(out: bytes) -> list[list[str]]:
    """The rows of the table without its head."""
    lines = [line for line in out.decode().splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("out/sweep.jsonl").read_text().splitlines()]


# --- the ordinary way ---


def test_a_sweep_really_trains_and_prepares_once_for_each_seed(tmp_path: Path, command) -> None:
    make_toy(tmp_path, train=60, steps=2, validate_every=2, save_every=2)
    variants = {"base": {}, "half": {"model.dropout": 0.5, "train": {"optimizer": {"lr": 1e-4}}}}
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump({"base": "toy.yaml", "out": "out", "variants": variants}))
    code, out, err = command("sweep", "sweep.yaml")
    assert code == 0 and begun(err) == ["base, seed 1", "half, seed 1"]
    assert {row[0] for row in cells(out)} == {"base", "half"}
    assert all(row[2] == "1 of 1" and row[7] == "2" and int(row[8].replace(",", "")) > 100 for row in cells(out))
    used = yaml.safe_load((tmp_path / "out/half/seed-1/config.yaml").read_text())
    assert (used["model"]["dropout"], used["train"]["optimizer"]["lr"]) == (0.5, 1e-4)
    prepared = [tmp_path / "out" / name / "seed-1/prepared/train.arrow" for name in variants]
    assert prepared[0].samefile(prepared[1])
    assert "prepared already" in (tmp_path / "out/half/seed-1.log").read_text()
    assert yaml.safe_load((tmp_path / "out/half/seed-1.yaml").read_text()) == used  # what any command takes for it


def test_the_first_seed_of_all_variants_comes_first_and_the_best_variant_on_top(sweep) -> None:
    code, out, err = sweep(variants={"none": {"model": {"dropout": 0.0}}})
    assert code == 0
    names = ["none", "dropout=0.1", "dropout=0.2"]
    assert begun(err) == [f"{name}, seed {seed}" for seed in (1, 2) for name in names]
    rows = cells(out)
    assert [row[:5] for row in rows] == [
        ["dropout=0.2", "model.dropout=0.2", "2 of 2", "21.50", "0.71"],
        ["dropout=0.1", "model.dropout=0.1", "2 of 2", "11.50", "0.71"],
        ["none", "model.dropout=0.0", "2 of 2", "1.50", "0.71"],
    ]
    assert rows[0][5] == "" and rows[1][5] == "10.00 [6.96, 13.04]" and rows[0][7:] == ["20", "20,000"]
    assert out == Path("out/sweep.md").read_bytes()
    assert [(row["variant"], row["seed"], row["result"]["score"]) for row in records()][:2] == [
        ("none", 1, 1.0),
        ("dropout=0.1", 1, 11.0),
    ]


def test_a_grid_has_all_combinations_and_its_values_may_be_blocks(sweep) -> None:
    grid = {"model.dropout": [0.1, 0.2], "train.optimizer": [{"name": "muon", "lr": 0.02}, {"lr": 0.001}]}
    code, out, _ = sweep("--dry-run", grid=grid, seeds=[3])
    assert code == 0 and len(out.splitlines()) == 5
    jobs = load("sweep.yaml").jobs
    assert jobs[0].variant == "dropout=0.1,optimizer=name-muon-lr-0.02"
    optimizers = [job.config.train.optimizer for job in jobs]
    assert [(one.name, one.options["lr"]) for one in optimizers] == [("muon", 0.02), ("adamw", 0.001)] * 2
    assert all(job.config.seed == 3 and not job.run.directory.exists() for job in jobs)


def test_a_variant_may_change_the_only_training_corpus(sweep) -> None:
    assert sweep("--dry-run", grid={}, variants={"all": {}, "few": {"data": {"train": {"limit": 9}}}}).code == 0
    corpora = [job.config.data.train[0] for job in load("sweep.yaml").jobs[:2]]
    assert [(one.options["src"], one.options["limit"]) for one in corpora] == [("train.src", None), ("train.src", 9)]


def test_minutes_are_the_bases_the_files_or_the_variants_own(sweep) -> None:
    sweep("--dry-run", minutes=20, grid={}, variants={"a": {}, "b": {"train": {"minutes": 40}}})
    assert [job.config.train.minutes for job in load("sweep.yaml").jobs] == [20, 40, 20, 40]


# --- a run that does not end well ---


def test_a_failed_run_is_a_line_under_the_table_and_the_rest_goes_on(sweep) -> None:
    grid = {"model.dropout": [0.666, 0.777, 0.1]}
    code, out, err = sweep(grid=grid)
    assert code == 0 and len(begun(err)) == 6
    assert cells(out)[0][:4] == ["dropout=0.1", "model.dropout=0.1", "2 of 2", "11.50"]
    assert [row[2] for row in cells(out)][1:] == ["0 of 2", "0 of 2"]
    text = out.decode()
    assert "dropout=0.666, seed 1: failed: training diverged at step 3: nothing helps\n" in text
    assert "dropout=0.777, seed 2: failed: killed by SIGKILL, most likely for want of memory\n" in text
    assert begun(sweep(grid=grid).err) == []
    assert len(begun(sweep("--again", grid=grid).err)) == 4
    text = Path("out/dropout=0.666/seed-1.log").read_text()
    assert text.count("diverged") == 2  # it went on


def test_a_failed_run_is_tried_again_when_its_settings_have_changed(sweep) -> None:
    wild = {"wild": {"model.dropout": 0.666}}
    sweep(variants=wild)
    Path("out/wild/seed-1/old").touch()
    _, out, err = sweep(variants={"wild": {"model.dropout": 0.3}})
    assert begun(err) == ["wild, seed 1, begin anew", "wild, seed 2, begin anew"]
    assert cells(out)[0][:4] == ["wild", "model.dropout=0.3", "2 of 2", "31.50"] and "failed" not in out.decode()
    assert not Path("out/wild/seed-1/old").exists()


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_stops_the_run_and_the_same_command_goes_on(sweep, name: str, code: int) -> None:
    Path("stop").write_text(name)
    started = time.monotonic()
    found = sweep()
    assert found.code == code and time.monotonic() - started < 30
    assert begun(found.err) == ["dropout=0.1, seed 1", "dropout=0.2, seed 1", "dropout=0.1, seed 2"]
    assert "the same command goes on" in found.err
    assert [row[2] for row in cells(found.out)] == [
        "1 of 2",
        "1 of 2",
    ] and "still to come: 2 of 4" in found.out.decode()
    assert [row["state"] for row in records()] == ["finished", "finished", "begun"]
    os.unlink("stop")
    found = sweep()
    assert (found.code, begun(found.err)) == (0, ["dropout=0.1, seed 2, go on", "dropout=0.2, seed 2"])
    assert [row["state"] for row in records()] == ["finished"] * 4
    assert begun(sweep().err) == []


# --- the limit ---


def test_what_does_not_fit_into_the_limit_is_not_begun(sweep) -> None:
    found = sweep("--dry-run", minutes=20, limit=50)
    assert [line.endswith("does not fit into the limit") for line in found.out.decode().splitlines()] == [
        *(False, False, True, True),
        False,
    ]
    assert not Path("out").exists()
    _, out, err = sweep(minutes=20, limit=10)
    assert begun(err) == [] and "4 runs do not fit into the limit of 10 minutes" in err
    assert "still to come: 4 of 4 runs" in out.decode()
    _, out, err = sweep(minutes=20, limit=20.5)  # the fakes take no time
    assert len(begun(err)) == 4 and "do not fit" not in err


def test_the_limit_counts_over_all_sessions(sweep) -> None:
    sweep(grid={"model.dropout": [0.1]}, seeds=[1])
    (row,) = records()
    assert 0 < row["seconds"] < 60
    Path("out/sweep.jsonl").write_text(json.dumps(row | {"seconds": 600}) + "\n")
    _, out, err = sweep(minutes=None, limit=10)
    assert begun(err) == [] and "3 runs do not fit" in err and cells(out)[0][2] == "1 of 2"
    assert "owes some of its lead to chance" not in out.decode()  # of one variant
    _, _, err = sweep(limit=10, seeds=[1])
    assert "1 run does not fit" in err


# --- an edited file ---


def test_finished_runs_are_kept_when_variants_and_seeds_are_added(sweep) -> None:
    sweep()
    found = sweep(seeds=[1, 2, 3], grid={"model.dropout": [0.2, 0.3]})
    assert begun(found.err) == [
        "dropout=0.3, seed 1",
        "dropout=0.3, seed 2",
        "dropout=0.2, seed 3",
        "dropout=0.3, seed 3",
    ]
    assert "no longer in sweep.yaml, and kept as they are: `dropout=0.1, seed 1`, `dropout=0.1, seed 2`\n" in found.err
    assert [row[0] for row in cells(found.out)] == ["dropout=0.3", "dropout=0.2"]
    assert len(records()) == 8  # what is gone from the file stays on record


def test_runs_with_other_settings_are_named_and_trained_anew_only_when_told_so(sweep) -> None:
    sweep(variants={"a": {"model.dropout": 0.3}})
    changed = {"a": {"model.dropout": 0.4}, "b": {"model.dropout": 0.5}}
    code, out, err = sweep("--dry-run", variants=changed)
    lines = out.decode().splitlines()
    assert (code, err) == (0, "") and [line.partition(", seed")[0] for line in lines[:-1]] == [
        "1 of 8: a",
        "2 of 8: b",
        "5 of 8: a",
        "6 of 8: b",
    ]
    assert lines[0] == "1 of 8: a, seed 1, trained with other settings (model.dropout: 0.3 -> 0.4)"
    code, out, err = sweep(variants=changed)
    assert code == 0 and begun(err) == ["b, seed 1", "b, seed 2"]
    [note] = [line for line in err.splitlines() if line.startswith("note: ")]
    assert "trained with other settings, and left as they are: `a, seed 1`, `a, seed 2`" in note
    assert "(model.dropout: 0.3 -> 0.4)" in note and "--again" in note
    for answer in (out, sweep("--table", variants=changed).out):
        assert cells(answer)[-1][:4] == ["a", "model.dropout=0.4", "0 of 2", ""]  # no score of other settings
        assert "\na, seed 1: trained with other settings\n" in answer.decode() and "to come" not in answer.decode()
    found = sweep("--again", variants={"a": {"model.dropout": 0.4}})
    assert begun(found.err) == ["a, seed 1, begin anew", "a, seed 2, begin anew"]
    assert cells(found.out)[0][:4] == ["a", "model.dropout=0.4", "2 of 2", "41.50"]


def test_a_setting_that_is_gone_has_no_value(sweep) -> None:
    sweep(seeds=[1], grid={}, variants={"a": {"model.position": {"name": "rotary", "base": 5000.0}}})
    _, out, _ = sweep("--dry-run", seeds=[1], grid={}, variants={"a": {"model.position": "learned"}})
    assert "model.position.base: 5000.0 -> none" in out.decode()


def test_a_training_config_is_no_sweep(sweep, command) -> None:
    sweep("--dry-run")
    code, _, err = command("sweep", "toy.yaml")
    assert code == 2 and err.startswith("error: toy.yaml: is a training config; ") and err.count("\n") == 1


def test_a_new_test_set_in_the_base_changes_no_run(sweep) -> None:
    sweep()
    base = yaml.safe_load(Path("toy.yaml").read_text())
    base["data"]["test"] = {}
    Path("toy.yaml").write_text(yaml.safe_dump(base))
    assert begun(sweep().err) == []


def test_a_run_that_still_goes_on_by_itself_is_left_alone(sweep) -> None:
    """Its sweep was killed, not stopped."""
    Path("out/dropout=0.1/seed-1/prepared").mkdir(parents=True)
    with locked(Path("out/dropout=0.1/seed-1/.lock"), "training"):
        found = sweep()
    assert found.code == 2 and found.err.endswith("is training here; wait for it or stop it\n")


def test_only_one_sweep_at_a_time(sweep) -> None:
    Path("out").mkdir()
    with locked(Path("out/.lock"), "sweeping"):
        found = sweep()
    assert found.code == 2 and "is sweeping here" in found.err
    assert sweep("--table").code == 0  # who only looks, may


# --- mistakes, all before anything begins ---


@pytest.mark.parametrize(
    ("settings", "messages"),
    [
        ({"sedes": [1]}, ["sweep.yaml:10: `sedes` is no setting here (did you mean `seeds`?)"]),
        ({"grid": {"model.dropuot": [0.1, 0.2]}}, ["sweep.yaml:7: `model.dropuot` is no setting here (did you mean"]),
        (
            {"grid": {"model.dropout": [2, 3]}},
            ["sweep.yaml:7: `model.dropout` must be a number >= 0 and < 1, but is 2"],
        ),
        (
            {"grid": {"model.dropout": []}},
            ["sweep.yaml:7: `model.dropout` has no values", "sweep.yaml: has no variants"],
        ),
        ({"grid": {}}, ["sweep.yaml: has no variants"]),
        ({"seeds": []}, ["sweep.yaml:3: `seeds` must list one or several"]),
        ({"seeds": [1, 1]}, ["sweep.yaml:3: `seeds` must list one or several, each once"]),
        ({"variants": {"../up": {}}}, ["sweep.yaml:11: a variant is called `../up`"]),
        ({"variants": {"a": {"seed": 3}}}, ["sweep.yaml:12: `seed` is set by the sweep itself; use `seeds`"]),
        ({"variants": {"a": {"run_dir": "x"}}}, ["`run_dir` is set by the sweep itself; use `out`"]),
        ({"variants": {"a": {"model": {"": 1}}}}, ["`model.` is no setting"]),
        ({"variants": {"a": {"model": {"heads": 5}}}}, ["sweep.yaml:13: `model.heads` must divide `model.dim`"]),
        ({"variants": {"a": {"model": {"dim": 33}}}}, ["toy.yaml:", "`a`: "]),
        ({"variants": {"a": {}, "b": {"model.dim": 32}}}, ["`b` is the same config as `a`; keep one of them"]),
        ({"variants": {"a": {"train.metric": "chrf"}}}, ["`dropout=0.1` has another train.metric", "`a`"]),
        ({"variants": {"dropout=0.1": {}}}, ["two variants are called `dropout=0.1`"]),
        ({"base": "nosuch.yaml"}, ["nosuch.yaml: no such file"]),
    ],
)
def test_a_mistake_is_named_before_anything_begins(sweep, settings: dict[str, Any], messages: list[str]) -> None:
    found = sweep(**settings)
    assert (found.code, found.out) == (2, b"")
    assert all(line.startswith("error: ") for line in found.err.splitlines())
    assert [message for message in messages if message not in found.err] == []
    assert not Path("out").exists()


# --- the table ---


def settled(tmp_path: Path, scores: dict[str, list[float]], metric: str = "bleu") -> str:
    """The table of variants with these scores."""
    make_toy(tmp_path, train=20, metric=metric)
    seeds = list(range(max(map(len, scores.values()))))
    variants = {name: {"model.dropout": number / 10} for number, name in enumerate(scores)}
    tree = {"base": str(tmp_path / "toy.yaml"), "out": "out", "seeds": seeds, "variants": variants}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    found: outcomes.Outcomes = {}
    for name, values in scores.items():
        for seed, score in enumerate(values):
            result = {"score": score, "steps": 10, "target_tokens": 1000}
            found[name, seed] = Outcome(name, seed, "", "finished", 60.0, "", result)
    return table(load(str(tmp_path / "s.yaml")), found)


def test_differences_have_welchs_interval(tmp_path: Path) -> None:
    """[1, 2, 3] and [4, 5, 6] have standard errors of sqrt(1/3) and 4 degrees of freedom: 3 ± 2.78 * sqrt(2/3)."""
    text = settled(tmp_path, {"worse": [1, 2, 3], "best": [4, 5, 6], "near": [4, 5, 5], "once": [5], "none": []})
    rows = cells(text.encode())
    assert [row[0] for row in rows][:4] == ["best", "once", "near", "worse"] or rows[0][0] in ("best", "once")
    behind = {row[0]: row[5] for row in rows}
    assert behind["worse"] == "3.00 [0.73, 5.27]" and "owes some of its lead to chance" in text
    assert behind["near"].endswith("within noise") and behind["once"] in ("", "0.00") and behind["none"] == ""
    assert rows[-1][0] == "none" and "still to come" in text


def test_a_metric_that_is_better_when_it_is_lower_sorts_so(tmp_path: Path) -> None:
    text = settled(tmp_path, {"a": [2.0, 2.1], "b": [1.0, 1.0], "c": [1.0, 1.0]}, "nll")
    assert [row[0] for row in cells(text.encode())] == ["b", "c", "a"]
    assert "nll, lower is better" in text and "0.000 [0.000, 0.000] within noise" in text
