"""The formats on files from the wild; skipped unless NMT_TEST_CORPORA names their folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nmt.data.formats import FORMATS

CORPORA = os.environ.get("NMT_TEST_CORPORA", "")
SAMPLES: list[tuple[str, dict[str, Any], int, tuple[str, str]]] = [
    (
        "plain",
        {"src": "tatoeba_de_en/*.en.gz", "tgt": "tatoeba_de_en/*.de.gz"},
        168_739,
        ("She acted in a play for the first time.", "Sie spielte das erste Mal in einem Theaterstück mit."),
    ),
    ("tsv", {"path": "realworld/tatoeba_cmn_eng.tsv", "src": 1, "tgt": 0}, 29_155, ("嗨。", "Hi.")),
    ("tmx", {"path": "realworld/*.tmx", "src": "en", "tgt": "ca"}, 353, ("1.0", "1.0")),
    (
        "po",
        {"path": "realworld/python_docs_po/*.po"},
        261,
        ("Floating-Point Arithmetic:  Issues and Limitations", "浮点算术：争议和限制"),
    ),
]


@pytest.mark.corpora
@pytest.mark.skipif(not CORPORA, reason="NMT_TEST_CORPORA is not set")
@pytest.mark.parametrize(("name", "options", "count", "first"), SAMPLES, ids=[sample[0] for sample in SAMPLES])
def test_real_files(name: str, options: dict[str, Any], count: int, first: tuple[str, str]) -> None:
    units = list(FORMATS[name](Path(CORPORA), **options).read())
    assert len(units) == count
    assert (units[0].src, *units[0].tgts) == first
    assert all(unit.src and all(unit.tgts) and "\ufeff" not in unit.src + unit.tgts[0] for unit in units)
