"""Shipped configs on the real corpora that they are for; skipped unless NMT_TEST_CORPORA names their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nmt.data.prepare import prepare
from nmt.run import Run
from nmt.variants import load

CORPORA = os.environ.get("NMT_TEST_CORPORA")
CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA, reason="NMT_TEST_CORPORA is not set")
@pytest.mark.parametrize(
    ("name", "read", "kept", "valid"), [("multi30k", 29_000, 28_997, 1_014), ("tatoeba_zh_en", 26_743, 26_743, 1_000)]
)
def test_a_shipped_config_prepares_its_corpus(tmp_path: Path, name: str, read: int, kept: int, valid: int) -> None:
    assert CORPORA is not None
    config = load(str(CONFIGS / f"{name}.yaml"), [f"data.root={CORPORA}/{name}", f"run_dir={tmp_path}/run"])
    with Run(config.run_dir).claimed("preparing data"):
        prepared = prepare(config, False, lambda _: None)
    (corpus,) = prepared.manifest["corpora"]
    assert (corpus["read"], corpus["kept"]) == (read, kept)
    assert prepared.manifest["valid"] == {"valid": valid}
    assert len(prepared.train()) == kept
