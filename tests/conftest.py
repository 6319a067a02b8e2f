"""What several test files share: a tiny copy-task corpus with its config, and the command as a user runs it."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

LETTERS = list("abcdefghijklmnop")


def copy_lines(count: int, seed: int, longest: int = 8) -> list[str]:
    """Random sequences of letters: what a copy task copies."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(LETTERS, k=rng.randint(1, longest))) for _ in range(count)]


def write(path: Path, lines: list[str]) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def toy_config(directory: Path, **train: Any) -> dict[str, Any]:
    """A config for the copy task in `directory` (files made by `make_toy`)."""
    return {
        "run_dir": str(directory / "run"),
        "src_lang": "en",
        "tgt_lang": "en",
        "data": {
            "root": str(directory),
            "train": [{"name": "plain", "src": "train.src", "tgt": "train.tgt"}],
            "valid": {"name": "plain", "src": "valid.src", "tgt": "valid.tgt"},
            "test": {"toy": {"name": "plain", "src": "test.src", "tgt": "test.tgt"}},
        },
        "tokenizer": {"name": "none", "vocab_size": 100},
        "model": {
            "dim": 32,
            "heads": 2,
            "ffn_dim": 64,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "dropout": 0.1,
        },
        "train": {
            "batch_tokens": 512,
            "steps": 40,
            "optimizer": {"name": "adamw", "lr": 5e-3},
            "device": "cpu",
            "threads": 1,
            "precision": "fp32",
            "log_every": 10,
            "validate_every": 20,
            "save_every": 20,
            **train,
        },
        "search": {"name": "beam", "beam": 2},
    }


def make_toy(directory: Path, train: int = 1200, **settings: Any) -> Path:
    """Writes the copy-task files and toy.yaml into `directory`; returns the path of the config."""
    for name, count, seed in (("train", train, 1), ("valid", 30, 2), ("test", 40, 3)):
        lines = copy_lines(count, seed)
        write(directory / f"{name}.src", lines)
        write(directory / f"{name}.tgt", lines)
    config = directory / "toy.yaml"
    config.write_text(yaml.safe_dump(toy_config(directory, **settings), sort_keys=False))
    return config


def run_nmt(
    *arguments: str | Path, cwd: Path | None = None, stdin: bytes | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "nmt", *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent), "OMP_NUM_THREADS": "1"},
        check=False,
    )


class Answer(NamedTuple):
    """What the command said."""

    code: int
    out: bytes
    err: str


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Iterator[Callable[..., Answer]]:
    """`nmt ARGUMENTS` in this process, from the test's own folder: as `run_nmt`, but without the time to start."""
    from nmt.cli import main

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGPIPE)
    handlers = [signal.getsignal(number) for number in numbers]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nmt.runtime.processors", lambda: 1)  # toys are faster on one thread

    def run(*arguments: str | Path, stdin: bytes = b"") -> Answer:
        monkeypatch.setattr(sys, "argv", ["nmt", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfdbinary.readouterr()
        return Answer(int(end.value.code or 0), out, err.decode())

    yield run
    for number, handler in zip(numbers, handlers, strict=True):
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Toys are faster on one thread, above all on a busy machine."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="session")
def copy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with toy.yaml and run/: a model that has learnt to copy, trained once for all tests."""
    directory = tmp_path_factory.mktemp("copy")
    config = make_toy(directory, steps=600, validate_every=200, save_every=200)
    done = run_nmt("train", config)
    assert done.returncode == 0, done.stderr.decode()
    return directory
