"""What the README shows: the main job on the built-in corpus from an empty directory, and examples that are true."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import Answer, make_toy, run_nmt

from nmt import variants
from nmt.choice import Choice, problems
from nmt.data.formats import FORMATS
from nmt.errors import ConfigError

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", README, re.S)
SMALL = (
    "data.train.0.limit=5000",
    "data.test.demo.split=valid",
    "model.dim=32",
    "train.steps=4",
    "train.validate_every=4",
    "train.threads=1",
    "search.max_extra=2",
    "search.beam=2",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty directory in which the demo was trained for a few steps, from the config that the command prints."""
    directory = tmp_path_factory.mktemp("demo")
    (directory / "demo.yaml").write_bytes(run_nmt("config", "demo").stdout)
    settings = [part for setting in SMALL for part in ("-s", setting)]
    for command in ("prepare", "train"):
        done = run_nmt(command, "demo.yaml", *settings, cwd=directory)
        assert done.returncode == 0, done.stderr.decode()
    return directory


def test_a_printed_config_trains_the_demo_in_an_empty_directory(demo: Path) -> None:
    assert (demo / "runs/demo/checkpoints").is_dir()
    done = run_nmt("evaluate", "runs/demo", "--threads", "1", cwd=demo)
    assert done.returncode == 0, done.stderr.decode()
    assert re.search(r"bleu \d+\.\d\d  nrefs:1\|case:mixed\|eff:no\|tok:13a", done.stdout.decode())
    done = run_nmt("translate", "demo.yaml", "--threads", "1", cwd=demo, stdin="我有一只猫\n".encode())
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 1


def test_the_run_directory_is_as_the_readme_draws_it(demo: Path) -> None:
    run = demo / "runs/demo"
    names = {path.name for path in run.iterdir() if not path.name.startswith(".")}
    assert {"config.yaml", "metrics.jsonl", "train.log", "prepared", "checkpoints", "valid"} <= names
    assert {path.name for path in (run / "checkpoints/step-00000004").iterdir()} == {
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
        "config.yaml",
        "tokenizer.model",
    }
    assert (run / "valid/step-00000004.en").read_bytes().count(b"\n") == 500


def test_the_smallest_config_of_the_readme_trains_and_needs_all_that_it_has(
    tmp_path: Path, command: Callable[..., Answer]
) -> None:
    (text,) = (block for block in BLOCKS if "run_dir" in block)
    (tmp_path / "my.yaml").write_text(text)
    make_toy(tmp_path, train=100)
    for ours, theirs in (("train", "train"), ("valid", "valid"), ("test", "news")):
        for side, language in (("src", "en"), ("tgt", "de")):
            (tmp_path / f"{ours}.{side}").rename(tmp_path / f"{theirs}.{language}")
    answer = command("train", "my.yaml", "-s", "model.dim=32", "-s", "train.steps=2", "-s", "train.device=cpu")
    assert answer.code == 0, answer.err
    assert b"bleu" in command("evaluate", "runs/my").out
    optional = {("data", "valid"), ("data", "test")}
    tree = yaml.safe_load(text)
    for path in [(key,) for key in tree] + [(a, b) for a in ("data", "model", "train") for b in tree[a]]:
        less = copy.deepcopy(tree)
        section = less if len(path) == 1 else less[path[0]]
        del section[path[-1]]
        (tmp_path / "less.yaml").write_text(yaml.safe_dump(less))
        if path in optional:
            variants.load(str(tmp_path / "less.yaml"))
        else:
            with pytest.raises(ConfigError, match=path[0]):
                variants.load(str(tmp_path / "less.yaml"))


def test_the_readme_names_only_corpora_that_can_be_configured() -> None:
    corpora = [Choice.read(item) for item in yaml.safe_load(next(b for b in BLOCKS if b.startswith("- ")))]
    assert {corpus.name for corpus in corpora} == set(FORMATS)
    assert [problem for corpus in corpora for problem in problems(FORMATS, corpus)] == []


def test_the_readme_names_only_commands_that_exist() -> None:
    commands = set(re.findall(r"^nmt (\w+)", README, re.M))
    assert commands >= {"prepare", "train", "evaluate", "translate", "config"}
    for command in commands:
        assert run_nmt(command, "--help").returncode == 0
