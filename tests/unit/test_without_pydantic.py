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


def test_gpu_check_runs_on_a_cpu_without_pydantic_and_datasets(tmp_path: Path) -> None:
    """The script keeps both packages from being imported. It trains, stops, goes on, learns to copy, and decodes."""
    command = [sys.executable, ROOT / "scripts" / "gpu_check", "--json", tmp_path / "report.json"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["small"] and not report["failures"] and not report["skipped"]
    results = report["results"]
    assert results["copy"]["stops and goes on"]["same bits"] == "yes"
    assert results["copy"]["learns to copy"]["exact"] == "100 of 100"
    assert set(results["training"]) == {f"{size} {p}" for size in ("tiny", "base", "big") for p in ("fp32", "bf16")}
    assert all(figures["target tokens/s"] > 0 for figures in results["training"].values())
    assert all(figures["tokens/s"] > 0 for figures in results["decoding"].values())
