"""The command's surface: help without waiting, exit codes, results on stdout and all else on stderr."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import make_toy, run_nmt

import nmt
from nmt.variants import load

ROOT = Path(__file__).parents[2]
CONFIGS = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
VERBS = ["prepare", "train", "sweep", "evaluate", "report", "translate", "score", "export", "config"]

# Runs the command and tells which slow packages it has loaded. (typer itself may load pydantic.)
PROBE = """
import json, sys
from nmt.cli import main
code = 0
try:
    main()
except SystemExit as end:
    code = end.code or 0
slow = ["torch", "sentencepiece", "datasets", "pyarrow", "sacrebleu", "safetensors", "numpy", "plotly"]
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
        "sweep": ["--dry-run", "--table", "--again"],
        "evaluate": [
            *("-t", "--src", "--ref", "--hyp", "--tgt-lang", "--metric", "--tokenize", "--lowercase", "--json"),
            *("--confidence", "--show"),
        ],
        "translate": [
            *("-o", "--beam", "--greedy", "--length-penalty", "--batch-tokens", "--device", "--precision"),
            *(
                "--stream",
                "--nbest",
                "--json",
                "--column",
                "--max-length",
                "--sample",
                "--seed",
                "--ensemble",
                "--ban",
                "--engine",
            ),
        ],
        "score": ["--src", "--tgt", "-o", "--json", "--length-penalty"],
        "report": ["-o", "--attention", "--overwrite"],
        "export": ["--to", "--format", "--quantization", "--half", "--check", "--overwrite"],
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
    ["trian", "train", "train --nonsense", "translate m --beam x", "translate m --beam 0"],
)
def test_a_wrong_command_line_ends_with_2_one_line_and_an_empty_stdout(arguments: str) -> None:
    """Case 62."""
    code, out, slow = probe(*arguments.split())
    assert (code, out, slow) == (2, "", [])
    done = subprocess.run([sys.executable, "-m", "nmt", *arguments.split()], capture_output=True, text=True)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ") and line.endswith(" --help")


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
    if name not in ("reference", "sweep"):
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


def test_a_training_that_nobody_watches_writes_plain_lines_to_stderr(tmp_path: Path) -> None:
    """Case 62."""
    config = make_toy(tmp_path, train=200, steps=4, validate_every=2, save_every=2, log_every=1)
    done = run_nmt("train", config, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    log = plain_log(done.stderr)
    assert any("200 pairs read" in line for line in log)
    assert any("step 4" in line for line in log)
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {
        "config.yaml",
        "metrics.jsonl",
        "train.log",
        "prepared",
        "checkpoints",
        "valid",
    }


# --- signals ---


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGUSR1, 138)])
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


@pytest.mark.parametrize(
    ("redirected", "code", "err"),
    [
        ("config demo >/dev/full", 2, "error: stdout: cannot be written: No space left on device\n"),
        ("config demo >&-", 2, "error: stdout: is closed; name a file to write, or leave it open\n"),
        ("translate --help >/dev/full", 2, "error: stdout: cannot be written: No space left on device\n"),
        ("--version >/dev/full", 2, "error: stdout: cannot be written: No space left on device\n"),
        ("config demo 2>&-", 0, ""),
        ("config nosuch 2>/dev/full", 2, ""),
        ("nosuch >&- 2>&-", 2, ""),
    ],
)
def test_streams_that_are_full_or_closed(redirected: str, code: int, err: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = subprocess.run(f'"{sys.executable}" -m nmt {redirected}', shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, err)


@pytest.mark.parametrize("lost", ["closed", "full"])
def test_training_goes_on_when_nobody_can_hear_it(tmp_path: Path, command, monkeypatch, lost: str) -> None:
    config = make_toy(tmp_path, train=60, steps=2, validate_every=2)
    monkeypatch.setattr(sys, "stderr", None if lost == "closed" else open("/dev/full", "w", buffering=1))  # noqa: SIM115
    assert command("train", config) == (0, b"", "")
    assert "done at step 2" in (tmp_path / "run" / "train.log").read_text()


def test_scores_that_cannot_be_written_are_one_line(tmp_path: Path, command, monkeypatch) -> None:
    (tmp_path / "text").write_text("a b c d\n")
    monkeypatch.setattr(sys, "stdout", open("/dev/full", "w"))  # noqa: SIM115
    code, _, err = command("evaluate", "--hyp", "text", "--ref", "text", "--tgt-lang", "en")
    assert (code, err) == (2, "error: stdout: cannot be written: No space left on device\n")


BIG_CONFIG = """
import pathlib
from nmt.cli import main
pathlib.Path.read_text = lambda *_, **__: '# large\\n' * 1_000_000
main()
""".strip()
