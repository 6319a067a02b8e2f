"""One file that several processes of torchrun translate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import copy_lines, run_nmt, write

from nmt.errors import NmtError
from nmt.ranks import Ranks, shared_file

ROOT = Path(__file__).parents[2]


def torchrun(directory: Path, processes: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.run(
        [*command, "-m", "nmt", "translate", *map(str, arguments)],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_several_processes_make_the_file_of_one(copy_run: Path, tmp_path: Path) -> None:
    """Names in the first line, numbers of lines in n-best lists and samples, a prefix for each: all as of one."""
    lines = ["source\tid", *(f"{line}\t{i}" for i, line in enumerate(copy_lines(41, 9)))]
    write(tmp_path / "in.tsv", lines)
    write(tmp_path / "in.txt", ["", *copy_lines(40, 2)])
    write(tmp_path / "begin", ["", "c"] + [""] * 38 + ["a b"])
    run = copy_run / "run"
    several = ["in.txt", "-o", "several", "--sample", "--json", "--tgt-prefix", "begin"]
    done = torchrun(tmp_path, 3, run, *several)
    assert done.returncode == 0, done.stderr
    assert run_nmt("translate", run, *several[:2], "one", *several[3:], cwd=tmp_path).returncode == 0
    found, expected = (
        [json.loads(line) for line in (tmp_path / name).read_text().split("\n")[:-1]] for name in ("several", "one")
    )
    assert [(one["text"], one["tokens"]) for one in found] == [(one["text"], one["tokens"]) for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-4)
    done = torchrun(tmp_path, 2, run, "in.tsv", "-o", "several.tsv.gz", "--column", "source")
    assert done.returncode == 0, done.stderr
    assert run_nmt("translate", run, "in.tsv", "-o", "one.tsv.gz", "--column", "source", cwd=tmp_path).returncode == 0
    assert (tmp_path / "several.tsv.gz").read_bytes() == (tmp_path / "one.tsv.gz").read_bytes()
    assert not [path.name for path in tmp_path.iterdir() if "part" in path.name or path.name.endswith(".tmp")]


@pytest.mark.parametrize("arguments", [["in"], ["in", "-o", "out", "--stream"], ["-", "-o", "out"]])
def test_several_processes_need_files(
    command, copy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    write(tmp_path / "in", ["a"])
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    answer = command("translate", copy_run / "run", *arguments, stdin=b"a\n")
    assert answer.code == 2 and "name INPUT and -o OUTPUT" in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


class Waiting(Ranks):
    """The first of two processes, whose fellow writes its part, or does not."""

    def __init__(self, part: Path | None) -> None:
        super().__init__(0, 2)
        self.part = part

    def wait(self) -> None:
        if self.part is not None:
            self.part.write_bytes(b"two\n")


def test_a_part_that_is_missing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with shared_file(str(path), False, Waiting(tmp_path / "out.part-1-of-2")) as stream:
        stream.write(b"one\n")
    assert path.read_bytes() == b"one\ntwo\n"
    (tmp_path / "out.part-1-of-2").unlink()
    with (
        pytest.raises(NmtError, match="part-1-of-2: is not there; all machines must write into the same directory"),
        shared_file(str(path), True, Waiting(None)) as stream,
    ):
        stream.write(b"other\n")
    assert path.read_bytes() == b"one\ntwo\n" and len(list(tmp_path.iterdir())) == 1
