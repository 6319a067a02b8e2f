"""A user's mistake is one clear line on stderr and exit code 2, with nothing written and nothing half-written.

Most mistakes are made through `nmt.cli.main` in this process, which is what the command runs; a few, and whatever
depends on the environment, in a process of their own.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Answer, make_toy, run_nmt, toy_config


def contents(directory: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(directory)): p.read_bytes() if p.is_file() else None for p in directory.rglob("*")}


def complaint(answer: Answer) -> str:
    """The one line that a mistake is answered with."""
    assert answer.code == 2, answer
    assert answer.out == b""
    assert "Traceback" not in answer.err
    (line,) = [line for line in answer.err.splitlines() if line.startswith("error: ")]
    assert answer.err.splitlines()[-1] == line
    return line


# --- configs: the same for prepare and train ---

BROKEN_CONFIGS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "empty": (lambda text: b"", "expected a mapping"),
    "not utf-8": (lambda text: text.encode("utf-16"), "not UTF-8"),
    "tabs": (lambda text: b"run_dir:\tx\n\tseed: 1\n" + text.encode(), "not valid YAML"),
    "key twice": (lambda text: text.encode() + b"run_dir: y\n", "`run_dir` is set twice"),
}


@pytest.mark.parametrize("verb", ["prepare", "train"])
@pytest.mark.parametrize(("spoil", "message"), BROKEN_CONFIGS.values(), ids=BROKEN_CONFIGS.keys())
def test_a_file_that_is_no_config(
    command: Any, tmp_path: Path, verb: str, spoil: Callable[[str], bytes], message: str
) -> None:
    config = make_toy(tmp_path, train=5)
    config.write_bytes(spoil(config.read_text()))
    before = contents(tmp_path)
    line = complaint(command(verb, config))
    assert message in line and str(config) in line
    assert contents(tmp_path) == before


@pytest.mark.parametrize("verb", ["prepare", "train"])
@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["train.stepz=5"], ["train.stepz", "did you mean `steps`?"]),
        (["optimizer.lr=5"], ["optimizer"]),
        (["train.steps=many"], ["train.steps", "integer", "'many'"]),
        (["train.batch_tokens=-5"], ["train.batch_tokens", "-5"]),
        (["model.dropout=2"], ["model.dropout", "2"]),
        (["search.beam=0"], ["search.beam", "0"]),
        (["search.beams=3"], ["did you mean `beam`?"]),
        (["tokenizer.name=bep"], ["did you mean `bpe`?"]),
        (["data.train.7.src=x"], ["data.train.7"]),
        (["train.steps"], ["KEY=VALUE"]),
        (["train.device=gpu"], ["train.device", "'gpu'"]),
        (["model.heads=3"], ["model.heads"]),
    ],
    ids=lambda value: "" if value[0].startswith("`") else value[0],
)
def test_an_unknown_misspelt_or_wrong_setting(
    command: Any, tmp_path: Path, verb: str, overrides: list[str], words: list[str]
) -> None:
    """Case 61."""
    config = make_toy(tmp_path, train=5)
    before = contents(tmp_path)
    line = complaint(command(verb, config, *(part for o in overrides for part in ("-s", o))))
    for word in words:
        assert word in line
    assert contents(tmp_path) == before


def test_several_mistakes_are_a_line_each(command: Any, tmp_path: Path) -> None:
    """Case 61."""
    config = make_toy(tmp_path, train=5)
    answer = command("train", config, "-s", "train.stepz=5", "-s", "model.dim=-1")
    assert answer.code == 2
    assert [line.partition(" ")[0] for line in answer.err.splitlines()] == ["error:", "error:"]


def test_a_config_that_is_not_there(command: Any, tmp_path: Path) -> None:
    """Case 15."""
    for verb in ("prepare", "train"):
        assert "no such file" in complaint(command(verb, "no.yaml"))
        assert "is a directory" in complaint(command(verb, tmp_path))
    assert contents(tmp_path) == {}


# --- corpora ---


def remove(path: Path) -> None:
    path.unlink()


def into_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def add_line(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"one more\n")


def add_blank(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def latin1(path: Path) -> None:
    path.write_bytes(path.read_bytes() + "schön\n".encode("latin1"))


def cut_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(path.read_bytes())[:-9])


SPOILT = [
    (remove, "no such file"),
    (into_directory, "is a directory"),
    (add_line, "aligned line by line"),
    (add_blank, "blank: remove"),
    (empty, "has 0 lines"),
    (latin1, "byte 0xf6 at column 4 is not UTF-8"),
    (cut_gzip, "cannot be read to its end"),
]


@pytest.mark.parametrize("name", ["train.src", "train.tgt", "valid.tgt", "test.src"])
@pytest.mark.parametrize(("spoil", "message"), SPOILT, ids=[spoil.__name__ for spoil, _ in SPOILT])
def test_a_corpus_file_that_cannot_be_used(
    command: Any, tmp_path: Path, name: str, spoil: Callable[[Path], None], message: str
) -> None:
    """Cases 5, 7, 8 and 15, before any training."""
    config = make_toy(tmp_path, train=5)
    spoil(tmp_path / name)
    before = contents(tmp_path)
    line = complaint(command("train", config))
    assert message in line and str(tmp_path / name) in line
    assert contents(tmp_path) == before


@pytest.mark.parametrize("verb", ["prepare", "train"])
def test_nothing_to_train_on(command: Any, tmp_path: Path, verb: str) -> None:
    """Case 10."""
    config = make_toy(tmp_path, train=5)
    before = contents(tmp_path)
    line = complaint(command(verb, config, "-s", "data.filters.length.max_tokens=1"))
    assert "0 of 5 pairs left" in line and "too long (limit 1 pieces)" in line
    assert contents(tmp_path) == before
    for side in ("src", "tgt"):
        (tmp_path / f"train.{side}").write_bytes(b"")
    before = contents(tmp_path)
    assert "0 of 0 pairs left" in complaint(command(verb, config))
    assert contents(tmp_path) == before


def test_a_table_with_too_few_columns(command: Any, tmp_path: Path) -> None:
    config = make_toy(tmp_path, train=5)
    (tmp_path / "t.tsv").write_text("a\tb\nc\n")
    before = contents(tmp_path)
    assert "t.tsv:2: has 1 column" in complaint(command("prepare", config, "-s", "data.train={name: tsv, path: t.tsv}"))
    assert contents(tmp_path) == before


# --- the run directory ---


@pytest.mark.parametrize("verb", ["prepare", "train"])
def test_a_run_directory_that_cannot_be_used(command: Any, tmp_path: Path, verb: str) -> None:
    """Case 15."""
    config = make_toy(tmp_path, train=5)
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    before = contents(tmp_path)
    for run_dir, message in (("file", "is a file"), ("file/below", "cannot be written"), ("full", "no run of ours")):
        line = complaint(command(verb, config, "-s", f"run_dir={run_dir}"))
        assert message in line and run_dir in line
        assert contents(tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_run_directory_without_permission(command: Any, tmp_path: Path) -> None:
    """Case 15."""
    config = make_toy(tmp_path, train=5)
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "cannot be written: Permission denied" in complaint(command("train", config, "-s", "run_dir=locked/run"))


def test_settings_that_the_prepared_data_was_not_made_with(command: Any, tmp_path: Path) -> None:
    """Case 23."""
    config = make_toy(tmp_path, train=20)
    assert command("prepare", config).code == 0
    before = contents(tmp_path)
    for verb in ("prepare", "train"):
        line = complaint(command(verb, config, "-s", "tokenizer.vocab_size=50"))
        assert "tokenizer" in line and "nmt prepare CONFIG --fresh" in line
        assert contents(tmp_path) == before


# --- devices ---


def test_cuda_asked_for_and_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 63."""
    config = make_toy(tmp_path, train=5)
    before = contents(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = run_nmt("train", config, "-s", "train.device=cuda", cwd=tmp_path)
    line = complaint(Answer(done.returncode, done.stdout, done.stderr.decode()))
    assert "device cuda was asked for" in line and "use the device cpu or auto" in line
    assert contents(tmp_path) == before


def test_a_device_number_too_high(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 63."""
    import torch

    config = make_toy(tmp_path, train=5)
    before = contents(tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for count in (1, 2):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        line = complaint(command("train", config, "-s", f"train.device=cuda:{count}"))
        assert f"cuda:{count} was asked for" in line and f"cuda:{count - 1}" in line
    assert contents(tmp_path) == before


# --- translate ---


def test_translate_refuses_before_it_loads_a_model(command: Any, tmp_path: Path) -> None:
    """Case 15: none of these gets as far as finding out that there is no model."""
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "out.txt").write_text("precious\n")
    (tmp_path / "short.txt").write_text("")
    (tmp_path / "dir").mkdir()
    before = contents(tmp_path)
    mistakes: list[tuple[list[str], str]] = [
        (["model", "gone.txt"], "gone.txt: no such file"),
        (["model", "dir"], "dir: is a directory"),
        (["model", "in.txt", "-o", "out.txt"], "out.txt: exists already"),
        (["model", "in.txt", "-o", "dir"], "dir: is a directory"),
        (["model", "in.txt", "-o", "none/out.txt"], "none does not exist"),
        (["model", "in.txt", "-o", "in.txt/out.txt"], "in.txt"),
        (["model", "in.txt", "--greedy", "--beam", "3"], "exclude each other"),
        (["model", "in.txt", "--seed", "3"], "--seed needs --sample: only what is drawn has a seed"),
        (["model", "in.txt", "--tgt-prefix", "short.txt"], "in.txt has 1 line, but short.txt has 0;"),
        (["model", "in.txt", "-s", "train.steps=3"], "search.KEY=VALUE"),
        (["model", "in.txt", "-s", "search.beam"], "search.KEY=VALUE"),
        (["model", "in.txt", "-s", "search.bam=3"], "-s search.bam=3: `beam` has no option `bam` (did you mean"),
        (["model", "in.txt", "-s", "search.top_p=2"], "-s search.top_p=2: `top_p` of `sample` must be"),
        (["model", "in.txt", "-s", "search={name: bean}"], "-s search={name: bean}: `bean` is none of: greedy, beam"),
    ]
    for arguments, message in mistakes:
        assert message in complaint(command("translate", *arguments)), arguments
        assert contents(tmp_path) == before


def test_an_option_of_the_command_line_is_wrong_in_one_plain_sentence(command: Any) -> None:
    for option, value in (("--engine", "ct"), ("--beam", "0")):
        line = complaint(command("translate", "model", option, value))
        assert line.startswith(f"error: Invalid value for '{option}': ")
        assert "Value error" not in line and "Input should" not in line


def test_what_is_no_model(command: Any, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / "prepared").mkdir(parents=True)
    (tmp_path / "no_run.yaml").write_text("seed: 1\n")
    before = contents(tmp_path)
    for model, message in (
        ("gone", "does not exist"),
        ("gone.yaml", "does not exist"),
        ("in.txt", "is a file"),
        ("empty", "is no model; MODEL must be the directory of a run, a checkpoint or an export, or a config file"),
        ("begun", "holds no checkpoint yet; nmt train CONFIG writes one every train.save_every steps"),
        ("no_run.yaml", "names no run_dir"),
    ):
        for arguments in (["translate", model, "in.txt", "-o", "out.txt"], ["evaluate", model]):
            line = complaint(command(*arguments))
            assert message in line and model in line
            assert contents(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-s", "search.beam=0"], "beam"),
        (["-s", "search.beam=many"], "beam"),
        (["-s", "search.beems=3"], "did you mean `beam`?"),
        (["-s", "search.name=bean"], "did you mean `beam`?"),
        (["-s", "search=3"], "expected a name"),
        (["-s", "search.beam=["], "not valid YAML"),
        (["--device", "gpu"], "device"),
        (["--precision", "fp8"], "precision"),
    ],
)
def test_a_wrong_search_device_or_precision(
    command: Any, copy_run: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """Case 61."""
    (tmp_path / "in.txt").write_text("a b\n")
    before = contents(tmp_path)
    assert message in complaint(command("translate", copy_run / "run", "in.txt", "-o", "out.txt", *arguments))
    assert contents(tmp_path) == before


def test_input_that_is_not_utf8_leaves_no_output(command: Any, copy_run: Path, tmp_path: Path) -> None:
    """Case 5."""
    (tmp_path / "in.txt").write_bytes(b"a b\nc d\nsch\xf6n\n")
    before = contents(tmp_path)
    line = complaint(command("translate", copy_run / "run", "in.txt", "-o", "out.txt"))
    assert "in.txt:3: byte 0xf6 at column 4 is not UTF-8" in line
    assert contents(tmp_path) == before


# --- evaluate ---


def test_evaluate_says_what_is_missing(command: Any, tmp_path: Path) -> None:
    files = {"hyp": b"a\nb\n", "ref": b"a\nb\n", "short": b"a\n", "latin1": b"a\n\xe9\n", "empty": b""}
    for name, lines in files.items():
        (tmp_path / name).write_bytes(lines)
    before = contents(tmp_path)
    scored = ["--tgt-lang", "en"]
    mistakes: list[tuple[list[str], list[str]]] = [
        ([], ["MODEL", "--hyp"]),
        (["--hyp", "hyp"], ["--ref"]),
        (["--src", "hyp"], ["MODEL"]),
        (["--hyp", "hyp", "--ref", "ref"], ["--tgt-lang"]),
        (["--hyp", "hyp", "--ref", "ref", "--tgt-lang", "chinese"], ["--tgt-lang", "did you mean `zh`?"]),
        (["--hyp", "hyp", "--ref", "gone", *scored], ["gone: no such file"]),
        (["--hyp", "gone", "--ref", "ref", *scored], ["gone: no such file"]),
        (["--hyp", "hyp", "--ref", "short", *scored], ["hyp has 2", "short", "has 1"]),
        (["--hyp", "short", "--ref", "ref", *scored], ["short has 1", "has 2"]),
        (["--hyp", "hyp", "--ref", "ref", "--ref", "short", *scored], ["ref has 2", "short has 1"]),
        (["--hyp", "hyp", "--ref", "latin1", *scored], ["latin1:2: byte 0xe9"]),
        (["--hyp", "latin1", "--ref", "ref", *scored], ["latin1:2: byte 0xe9"]),
        (["--hyp", "empty", "--ref", "empty", *scored], ["holds no lines"]),
        (["--hyp", "hyp", "--ref", "ref", *scored, "--metric", "bleo"], ["did you mean `bleu`?"]),
        (["--hyp", "hyp", "--ref", "ref", *scored, "--tokenize", "14a"], ["tokenize", "13a"]),
    ]
    for arguments, words in mistakes:
        line = complaint(command("evaluate", *arguments))
        assert all(word in line for word in words), (arguments, line)
        assert contents(tmp_path) == before


def test_a_test_set_that_the_config_does_not_have(command: Any, copy_run: Path) -> None:
    before = contents(copy_run)
    line = complaint(command("evaluate", copy_run / "run", "-t", "toi"))
    assert "toi" in line and "toy" in line and "valid" in line
    assert contents(copy_run) == before


# --- in a process of their own ---


def test_the_command_itself_ends_with_2_and_one_line(tmp_path: Path) -> None:
    """Cases 7 and 15: as a user sees it, from another folder, with a name that needs care."""
    folder = tmp_path / "mein Korpus ü 猫"
    folder.mkdir()
    config = make_toy(folder, train=5)
    (folder / "train.tgt").write_text("a\n")
    before = contents(tmp_path)
    done = run_nmt("train", config, cwd=tmp_path)
    line = complaint(Answer(done.returncode, done.stdout, done.stderr.decode()))
    assert f"{folder}/train.src has 5 lines, but {folder}/train.tgt has 1 line" in line
    assert contents(tmp_path) == before


def test_a_terminal_that_speaks_latin1_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages are UTF-8, and files are read as UTF-8, whatever the locale says."""
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    tree = {**toy_config(tmp_path), "data": {"train": ["猫"]}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(tree, allow_unicode=True), encoding="utf-8")
    done = run_nmt("prepare", "c.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "`猫` is none of: plain" in done.stderr.decode("utf-8")
