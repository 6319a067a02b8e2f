"""One self-contained file of HTML: data, style, program and the plotting library are all inside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from plotly.offline import get_plotlyjs

from nmt import __version__
from nmt.attention_maps import style
from nmt.checkpoint import run_dir
from nmt.errors import NmtError
from nmt.report import gather, settings
from nmt.report.gather import Gathered
from nmt.report.maps import maps
from nmt.run import Run


def open_runs(names: Sequence[str]) -> list[Gathered]:
    """Raises NmtError for what is no run."""
    directories = [run_dir(name) for name in names]
    for name, directory in zip(names, directories, strict=True):
        if not Run(directory).exists:
            what = "is no run" if directory.exists() else "does not exist"
            raise NmtError(
                f"{name}: {what}; RUN must be a directory that nmt prepare or nmt train has made, or its config"
            )
    unique = list(dict.fromkeys(directory.absolute() for directory in directories))
    return [Gathered(Run(path), name) for path, name in zip(unique, gather.names(unique), strict=True)]


def page(runs: Sequence[Gathered], attention: int) -> bytes:
    """`attention` is the number of sentences of each run whose attention is shown."""
    of_attention = maps(runs, attention)
    configs = {run.name: run.config for run in runs if run.config is not None}
    tree = {
        "nmt": __version__,
        "runs": [run.tree() for run in runs],
        "compared": {"runs": list(configs), "rows": settings.compared(configs)},
    }
    parts = {name: _file(name) for name in ("report.css", "report.js")}
    parts |= {"page.css": style(), "data": _json(tree), "plotly": get_plotlyjs(), "attention": of_attention}
    text = re.sub(r"\{\{([a-z.]+)\}\}", lambda found: parts[found[1]], _file("report.html"))
    return text.encode(errors="replace")  # a damaged metrics.jsonl may hold half a character


def _file(name: str) -> str:
    return (files("nmt.report") / name).read_text(encoding="utf-8")


def _json(tree: Any) -> str:
    """For a script element: nothing in it may look like markup, and what is no finite number is none."""
    return json.dumps(_finite(tree), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value
