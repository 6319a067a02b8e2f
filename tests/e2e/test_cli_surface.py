"""The command's surface: help without waiting, exit codes, results on stdout and all else on stderr."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import nmt
from conftest import copy_lines, make_toy, run_nmt, write
from nmt.variants import load

ROOT = Path(__file__).parents[2]
CONFIGS = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
VERBS = ["prepare", "train", "evaluate", "translate", "config"]

# Runs the command and tells which slow packages it has loaded.
PROBE = """
import json, sys
from nmt.cli import main
code = 0
try:
    main()
except SystemExit as end:
    code = end.code or 0
slow = ["torch", "sentencepiece", "datasets", "pyarrow", "sacrebleu", "pydantic", "safetensors", "numpy"]
print(json.dumps([name for name in slow if name in sys.modules]), file=sys.stderr)
sys.exit(code)
"""


def probe(*arguments: str) -> tuple[int, str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_answers_without_loading_anything_slow(verb: str) -> None:
    """Case 62."""
    code, out, slow = probe(*verb.split(), "--help")
    assert (code, slow) == (0, [])
    assert out.lower().startswith("usage: ") or "\nusage: " in out.lower()
    if not verb:
        assert all(name in out for name in VERBS)


def test_help_names_the_options_that_users_type() -> None:
    for verb, options in {
        "prepare": ["-s", "--fresh"],
        "train": ["-s", "--fresh"],
        "evaluate": ["-t", "--src", "--ref", "--hyp", "--tgt-lang", "--metric", "--tokenize", "--lowercase", "--json"],
        "translate": ["-o", "--beam", "--greedy", "--length-penalty", "--batch-tokens", "--device", "--precision", "--threads"],
    }.items():
        _, out, _ = probe(verb, "--help")
        assert [option for option in options if option not in out] == []


def test_version() -> None:
    """Case 62."""
    code, out, slow = probe("--version")
    assert (code, out, slow) == (0, f"nmt {nmt.__version__}\n", [])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project.get("dynamic", []) or project["version"] == nmt.__version__


@pytest.mark.parametrize(
    "arguments",
    [["trian"], ["train"], ["train", "--nonsense"], ["translate", "m", "--beam", "x"], ["translate", "m", "--beam", "0"]],
    ids=" ".join,
)
def test_a_wrong_command_line_ends_with_2_and_an_empty_stdout(arguments: list[str]) -> None:
    """Case 62."""
    code, out, slow = probe(*arguments)
    assert (code, out, slow) == (2, "", [])


def test_a_bug_of_ours_ends_with_1_and_its_traceback() -> None:
    """Case 62: only a user's mistake is put in one line."""
    code = "import nmt.choice, sys\nfrom nmt.cli import main\nnmt.choice.did_you_mean = None\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", code, "config", "nosuch"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "TypeError" in done.stderr


# --- nmt config ---


@pytest.mark.parametrize("name", CONFIGS)
def test_config_prints_a_shipped_config(name: str, tmp_path: Path) -> None:
    code, out, slow = probe("config", name)
    assert (code, slow) == (0, [])
    assert out == (ROOT / "configs" / f"{name}.yaml").read_text(encoding="utf-8")
    if name != "reference":
        (tmp_path / "mine.yaml").write_text(out, encoding="utf-8")
        assert load(str(tmp_path / "mine.yaml")).run_dir == f"runs/{name}"


def test_config_of_an_unknown_name_suggests_one(tmp_path: Path) -> None:
    done = run_nmt("config", "mutli30k", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("error: ") and "did you mean `multi30k`?" in line


# --- results and logs ---


def plain_log(stderr: bytes) -> list[str]:
    """The lines of a log that was written to a file: no bar, no carriage return, no colours."""
    text = stderr.decode()
    assert "\r" not in text and "\x1b" not in text and "%|" not in text
    return text.splitlines()


def test_prepare_and_train_write_plain_lines_to_stderr(tmp_path: Path) -> None:
    """Case 62."""
    config = make_toy(tmp_path, train=200, steps=4, validate_every=2, save_every=2, log_every=1)
    done = run_nmt("prepare", config, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert any("200 pairs read" in line for line in plain_log(done.stderr))
    done = run_nmt("train", config, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert any("step 4" in line for line in plain_log(done.stderr))
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {
        "config.yaml",
        "metrics.jsonl",
        "train.log",
        "prepared",
        "checkpoints",
        "valid",
    }


def test_translations_alone_go_to_stdout(copy_run: Path, tmp_path: Path) -> None:
    """Cases 2, 3 and 62: one line for each line, whatever else it holds."""
    lines = copy_lines(20, seed=9)
    stdin = "\ufeff" + "\r\n".join([*lines, "", "a\u2028b", "a\x0cb\x85c"])
    done = run_nmt("translate", copy_run / "run", cwd=tmp_path, stdin=stdin.encode())
    assert done.returncode == 0
    plain_log(done.stderr)
    out = done.stdout.decode()
    assert out.endswith("\n")
    translations = out[:-1].split("\n")
    assert translations[:21] == [*lines, ""]
    assert len(translations) == 23
    assert len(out.splitlines()) == 23
    assert list(tmp_path.iterdir()) == []


def test_scores_alone_go_to_stdout(tmp_path: Path) -> None:
    """Case 62, and U+2028 in a reference is no line break (case 1)."""
    lines = ["the cat sat on the mat", "one\u2028line, not two lines here", "a dog"]
    for name in ("hyp", "ref"):
        write(tmp_path / name, lines)
    arguments = ["evaluate", "--hyp", "hyp", "--ref", "ref", "--tgt-lang", "en"]
    done = run_nmt(*arguments, cwd=tmp_path)
    assert done.returncode == 0 and plain_log(done.stderr) == []
    out = done.stdout.decode()
    assert "bleu 100.00" in out and "chrf 100.00" in out and "3 lines" in out and "version:" in out
    done = run_nmt(*arguments, "--json", cwd=tmp_path)
    result: Any = json.loads(done.stdout)
    assert result[0]["lines"] == 3
    assert result[0]["scores"]["bleu"]["value"] == pytest.approx(100, abs=1e-9)
    assert "tok:13a" in result[0]["scores"]["bleu"]["signature"]


def test_output_and_gzip(copy_run: Path, tmp_path: Path) -> None:
    import gzip

    lines = copy_lines(5, seed=8)
    (tmp_path / "in.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    done = run_nmt("translate", copy_run / "run", "in.gz", "-o", "out.gz", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode().split("\n") == [*lines, ""]
    assert {path.name for path in tmp_path.iterdir()} == {"in.gz", "out.gz"}


# --- signals ---


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_quietly_with_its_own_code(tmp_path: Path, number: int, code: int) -> None:
    """Case 39. The command waits in the middle of reading its config, since that is a pipe that nobody writes to."""
    pipe = tmp_path / "config.yaml"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt", "prepare", str(pipe)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with open(pipe, "wb"):  # returns when the command has opened the other end
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == code
    assert out == b"" and b"Traceback" not in err
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    """`nmt config NAME | head -1` with a config larger than any pipe."""
    done = subprocess.run(
        f'"{sys.executable}" -c "{BIG_CONFIG}" config big | head -1',
        shell=True,
        executable="/bin/sh",
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "# large\n"
    assert "Traceback" not in done.stderr and "Broken" not in done.stderr


BIG_CONFIG = """
import pathlib
from nmt.cli import main
pathlib.Path.read_text = lambda *_, **__: '# large\\n' * 1_000_000
main()
""".strip()


def test_a_config_that_was_printed_can_be_used_from_an_empty_directory(tmp_path: Path) -> None:
    """`nmt config demo > demo.yaml; nmt prepare demo.yaml`."""
    (tmp_path / "demo.yaml").write_bytes(run_nmt("config", "demo", cwd=tmp_path).stdout)
    done = run_nmt("prepare", "demo.yaml", "-s", "tokenizer.vocab_size=500", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    manifest = json.loads((tmp_path / "runs" / "demo" / "prepared" / "manifest.json").read_text())
    assert manifest["pairs"] > 20_000
    assert manifest["settings"]["tokenizer"]["vocab_size"] == 500
    assert yaml.safe_load((tmp_path / "demo.yaml").read_text())["run_dir"] == "runs/demo"
