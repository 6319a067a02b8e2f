"""What a GPU machine needs of the program runs where pydantic and datasets are not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}

IMPORTS = """
import importlib, sys

sys.modules["pydantic"] = sys.modules["datasets"] = None  # importing them raises ImportError
for name in sys.argv[1:]:
    importlib.import_module(name)
"""
ROOMS = ["model.transformer", "loss", "optim", "search", "data.plan", "data.batches"]
ROOMS += ["config", "runtime", "checkpoint", "score", "translate", "train"]


def test_the_rooms_that_train_and_decode_import_without_pydantic_and_datasets() -> None:
    command = [sys.executable, "-c", IMPORTS, *(f"nmt.{room}" for room in ROOMS)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_gpu_check_learns_to_copy_on_a_cpu_without_pydantic_and_datasets(tmp_path: Path) -> None:
    """The script keeps both packages from being imported. Its runs are also stopped, and continued."""
    command = [sys.executable, ROOT / "scripts" / "gpu_check", "--only", "copy", "--json", tmp_path / "report.json"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    copy = json.loads((tmp_path / "report.json").read_text())["results"]["copy"]
    assert copy["stop and go on"]["same bits"] == "yes"
    assert copy["learns to copy"]["exact"] == "100 of 100"
