"""What a report is made of: rows as curves, sentences with their differences, settings beside their defaults."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import toy_config

from nmt.report import curves, settings
from nmt.report.gather import names
from nmt.report.sentences import LONGEST, SHOWN, differences, measured, tree, words
from nmt.variants import load


def train(step: int, seconds: float, **values: Any) -> dict[str, Any]:
    return {"kind": "train", "step": step, "seconds": seconds, **values}


def valid(step: int, bleu: Any, averaged: int = 0, name: str = "valid") -> dict[str, Any]:
    row = {"kind": "valid", "step": step, "set": name, "averaged": averaged, "nll": 1.0, "seconds": 3.0}
    return {**row, "bleu": bleu, "signature": {"bleu": "nrefs:1"}}


def drawn(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return curves.curves(curves.train_rows(rows), curves.valid_rows(rows))


def test_where_a_run_went_back_the_second_time_counts() -> None:
    rows = [train(10, 1, nll=3.0), train(20, 2, nll=9.0), valid(20, 1.0), train(30, 3, nll=math.nan)]
    rows += [train(20, 4, nll=2.0), valid(20, 2.0), train(30, 5, nll=1.0)]
    found = drawn(rows)
    assert found["train"]["step"] == [10, 20, 30]
    assert found["train"]["nll"] == [3.0, 2.0, 1.0]
    assert found["train"]["seconds"] == [1.0, 4.0, 5.0]
    assert found["valid"][0]["scores"]["bleu"] == [2.0]


def test_a_validation_has_the_time_of_its_step() -> None:
    """Its own `seconds` are what it took."""
    rows = [train(10, 20), train(20, 60), valid(15, 1.0), valid(20, 1.0), valid(25, 1.0), valid(25, 1.0, averaged=3)]
    [of_set] = drawn(rows)["valid"]
    assert of_set["seconds"] == [40.0, 60.0, 75.0, 75.0], "after the last row at the mean pace"
    assert of_set["averaged"] == [0, 0, 0, 3]
    [unknown] = drawn([valid(15, 1.0)])["valid"]
    assert unknown["seconds"] == [None]


def test_what_is_no_number_is_none() -> None:
    rows: list[Any] = [train(1, 1, nll=math.inf, loss=None, lr="x", grad_norm=True, ppl=2), {"kind": "train"}]
    rows += [valid(1, math.nan), {"kind": "valid", "step": "2"}, {"kind": "other", "step": 3}, {"step": 4}]
    found = drawn(rows)
    of_train = found["train"]
    assert [of_train[key] for key in ("nll", "loss", "lr", "grad_norm", "ppl")] == [[None], [None], [None], [None], [2]]
    assert found["valid"][0]["scores"] == {"bleu": [None], "nll": [1.0], "ppl": [None]}


def test_sets_stand_by_themselves() -> None:
    found = drawn([valid(1, 1.0, name="a"), valid(1, 2.0, name="b"), valid(2, 3.0, name="a")])["valid"]
    assert [(one["set"], one["step"], one["scores"]["bleu"]) for one in found] == [
        ("a", [1, 2], [1, 3]),
        ("b", [1], [2]),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("A man, who sleeps.", ["A ", "man", ", ", "who ", "sleeps", "."]),
        ("我有 两只猫。", ["我", "有 ", "两", "只", "猫", "。"]),
        ("हिन्दी में", ["हिन्दी ", "में"]),
        ("  two", ["  ", "two"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected
    assert "".join(words(text)) == text


def test_differences_are_marked_by_words() -> None:
    ours, theirs = differences("Ein Mann  läuft.", "Ein alter Mann geht.")
    assert ours == [("Ein ", False), ("Mann  ", False), ("läuft", True), (".", False)]
    assert theirs == [("Ein ", False), ("alter ", True), ("Mann ", False), ("geht", True), (".", False)]
    assert differences("", "x") == ([], [("x", True)])


def test_sentences_are_sorted_and_shown_beside_their_nearest_reference() -> None:
    texts = [("s1", ("a house", "a cat sat")), ("s2", ("<b>x</b>",)), ("s3", ("y " * 9000,))]
    found = measured(texts, ["a cat sat", "nothing", "y " * 9000])
    assert [one.number for one in found] == [2, 1, 3]
    shown = tree(found)
    assert (shown["lines"], sum(shown["histogram"]), shown["histogram"][-1]) == (3, 3, 2)
    worst, cat, long = shown["groups"]["worst"]
    assert worst["translation"] == [("nothing", True)]
    assert (cat["reference"], cat["references"]) == ([("a cat sat", False)], 2)
    assert len("".join(part for part, _ in long["translation"])) == LONGEST + 1
    many = tree(found * 20)
    assert [len(group) for group in many["groups"].values()] == [SHOWN] * 3
    assert tree([])["groups"] == {"worst": [], "middle": [], "best": []}


def test_settings_beside_their_defaults(tmp_path: Path) -> None:
    config = toy_config(tmp_path, patience=3)
    config["train"]["schedule"] = {"name": "cosine"}
    config["metrics"] = {"bleu": {"lowercase": True}, "ter": {}}
    config["train"]["metric"] = "ter"
    config["data"]["train"][0]["weight"] = 2.0
    config["data"]["filters"] = {"empty": "keep"}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    found = {key: (value, default) for key, value, default in settings.changes(load(str(tmp_path / "c.yaml")))}
    assert found["train.patience"] == ("3", "0")
    assert found["train.schedule"] == ("cosine", "inverse_sqrt")
    assert found["train.optimizer.lr"][0] == "0.005"
    assert found["model.dim"] == ("32", ""), "it has no default"
    assert found["metrics"] == ('["bleu", "ter"]', '["bleu", "chrf"]')
    assert found["metrics.bleu.lowercase"] == ("true", "false")
    assert found["data.train.0"] == ('{"name": "plain", "src": "train.src", "tgt": "train.tgt", "weight": 2.0}', "")
    assert found["data.filters"] == ('{"empty": "keep"}', "{}")
    for same in ("train.optimizer", "train.optimizer.betas", "train.clip_norm", "model.position", "seed", "search"):
        assert same not in found


def test_settings_beside_those_of_other_runs(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(toy_config(tmp_path)))
    one, other = (load(str(tmp_path / "c.yaml"), [f"train.steps={n}", f"run_dir=r{n}"]) for n in (5, 6))
    other.metrics["ter"] = {}
    assert settings.compared({"one": one, "other": other}) == [
        ("train.steps", ["5", "6"]),
        ("metrics.ter", ["", "{}"]),
    ]
    assert settings.compared({"one": one}) == []
    assert settings.compared({}) == []


def test_names_of_runs_are_short_and_their_own() -> None:
    assert names([Path("/r/a"), Path("/r/b")]) == ["a", "b"]
    assert names([Path("/x/r"), Path("/y/r"), Path("/y/q")]) == ["x/r", "y/r", "y/q"]
    assert names([Path("/r")]) == ["r"]
