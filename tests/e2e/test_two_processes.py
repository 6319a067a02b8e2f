"""Two commands on one run directory: whoever can wait waits, and nobody trains beside another."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Answer, make_toy

from nmt.run import Run

Command = Callable[..., Answer]
ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def at_work(verb: str, config: Path, *overrides: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command in the middle of its work, once it holds the run directory; killed at the end if need be."""
    options = [part for override in overrides for part in ("-s", override)]
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt", verb, str(config), *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
    )
    try:
        lock = config.parent / "run" / ".lock"
        doing = {"prepare": "preparing data", "train": "training"}[verb]
        while not (lock.exists() and doing in lock.read_text()):
            assert process.poll() is None, process.stderr and process.stderr.read().decode()
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def later(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Halts a process, so that it is still at work when another command comes, and sends it a signal soon after."""
    process.send_signal(signal.SIGSTOP)
    threading.Timer(0.5, process.send_signal, [number]).start()


def error(answer: Answer) -> str:
    assert (answer.code, answer.out) == (2, b""), answer
    (line,) = [line for line in answer.err.split("\n") if line.startswith("error: ")]
    return line


def test_the_second_to_prepare_waits_and_finds_it_done(command: Command, tmp_path: Path) -> None:
    config = make_toy(tmp_path, train=10_000)
    with at_work("prepare", config) as first:
        later(first, signal.SIGCONT)
        answer = command("prepare", config)
        assert first.wait() == 0
    assert answer.code == 0
    waiting, done, rest = answer.err.split("\n")
    assert waiting.startswith("waiting: ") and f"process {first.pid} is preparing data here" in waiting
    assert "prepared already" in done and rest == ""


def test_when_the_first_is_killed_the_second_prepares(command: Command, tmp_path: Path) -> None:
    config = make_toy(tmp_path, train=10_000)
    with at_work("prepare", config) as first:
        later(first, signal.SIGKILL)
        answer = command("prepare", config)
    assert answer.code == 0 and answer.err.startswith("waiting: ") and "10,000 pairs read" in answer.err
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [".lock", "prepared"]


@pytest.mark.parametrize(("verb", "options"), [("train", []), ("train", ["--fresh"]), ("prepare", ["--fresh"])])
def test_where_somebody_trains_nobody_else_does(
    command: Command, tmp_path: Path, verb: str, options: list[str]
) -> None:
    config = make_toy(tmp_path, train=100)
    assert command("prepare", config).code == 0
    with Run(tmp_path / "run").claimed("training"):
        line = error(command(verb, config, *options))
    assert f"{tmp_path}/run: process {os.getpid()} is training here; wait for it or stop it" in line


def test_a_training_may_be_watched_by_others(command: Command, tmp_path: Path) -> None:
    """Preparing again finds nothing to do, a report writes nothing, and a checkpoint translates meanwhile."""
    config = make_toy(tmp_path, train=600)
    assert command("train", config, "-s", "train.steps=2").code == 0
    with at_work("train", config, "train.steps=1000000", "train.validate_every=1000000") as training:
        training.send_signal(signal.SIGSTOP)  # it has begun, and need not take the others' time
        assert "is training here" in error(command("train", config))
        assert "prepared already" in command("prepare", config).err
        assert command("prepare", config, "--check").code == 0
        assert command("translate", tmp_path / "run", stdin=b"a b\n").code == 0
        assert training.poll() is None
