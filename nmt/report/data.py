"""What `prepare` has found, and how long the sentences are, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nmt.data.prepare import Prepared
from nmt.data.report import usage_rows
from nmt.errors import DataError

PAIRS = 1_000_000  # whose lengths are looked at, from all over the data
BARS = 60  # of the histogram, at most
TAIL = 0.995  # of the sentences are in it


def tree(prepared: Prepared) -> dict[str, Any]:
    manifest = prepared.manifest
    vocabulary = manifest["vocabulary"]
    joint = f"{vocabulary['src']:,} for both sides"
    return {
        "pairs": manifest["pairs"],
        "suspicions": manifest["suspicions"],
        "corpora": [
            {key: corpus[key] for key in ("label", "read", "kept", "length_correlation", "number_agreement")}
            for corpus in manifest["corpora"]
        ],
        "sets": [
            [name if name == kind else f"{name} ({kind})", count]
            for kind in ("valid", "test")
            for name, count in manifest[kind].items()
        ],
        "drops": list(_drops(manifest)),
        "faults": [*manifest["odd_sentences"], *manifest["markup"], *manifest["unused"]],
        "vocabulary": joint if vocabulary["joint"] else f"{vocabulary['src']:,} source, {vocabulary['tgt']:,} target",
        "usage": usage_rows(manifest["usage"]),
        "lengths": lengths(prepared),
    }


def _drops(manifest: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """By corpus and reason, with examples."""
    for corpus in manifest["corpora"]:
        for what in ("dropped", "noted"):
            for reason, count in corpus[what].items():
                yield {
                    "corpus": corpus["label"],
                    "reason": reason,
                    "count": count,
                    "kept": what == "noted",
                    "examples": corpus["examples"][reason],
                }


def lengths(prepared: Prepared) -> dict[str, Any] | None:
    """How many sentences have how many pieces; None where the pairs cannot be read any more."""
    try:
        store = prepared.train()
    except DataError:
        return None
    if not len(store):
        return None
    sides = store.lengths(np.arange(0, len(store), -(-len(store) // PAIRS)))
    last = int(max(np.quantile(side, TAIL) for side in sides))
    width = max(1, -(-last // BARS))
    edges = np.arange(1, last + width + 1, width)
    src, tgt = (np.histogram(side, edges)[0].tolist() for side in sides)
    return {"from": edges[:-1].tolist(), "width": width, "src": src, "tgt": tgt}
