"""What is known of a model that is handed on, and the README.md that says it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from nmt import __version__
from nmt.checkpoint import ENGINE, Checkpoint
from nmt.config import Model
from nmt.data.prepare import open_prepared
from nmt.errors import DataError
from nmt.run import Record, Run

USE = """\
With nmt, DIR being this directory:

```
nmt translate DIR input.txt -o output.txt
```

`nmt evaluate`, `nmt score` and, to fine-tune it, `train.init_from` take the directory likewise. In Python:

```python
from nmt import Translator

print(Translator("DIR").translate(["…"]))
```
"""
ENGINE_USE = """\
With nmt and ctranslate2, DIR being this directory:

```
nmt translate DIR input.txt -o output.txt --engine ctranslate2
```

Or without nmt, with sentencepiece:

```python
import json

import ctranslate2
import sentencepiece

src = sentencepiece.SentencePieceProcessor("DIR/SRC")
tgt = sentencepiece.SentencePieceProcessor("DIR/TGT")
with open("DIR/state.json", encoding="utf-8") as file:
    forbidden = json.load(file)["forbidden"]  # pieces that no translation may have
translator = ctranslate2.Translator("DIR")
found = translator.translate_batch(
    [src.encode(line, out_type=str) for line in ["…"]],
    suppress_sequences=[[piece] for piece in forbidden],
)
print([tgt.decode(one.hypotheses[0]) for one in found])
```
"""


def about(found: Checkpoint) -> dict[str, Any]:
    """The data that a model was trained on, and its scores, as far as its run tells; what an export tells stays."""
    known: dict[str, Any] | None = found.state.get("about")
    if known is not None:
        return known
    run = found.run()
    corpora: list[dict[str, Any]] = []
    if run is None:
        return {"corpora": corpora, "scores": []}
    with contextlib.suppress(DataError):  # the prepared data may be gone
        corpora = [{"name": row["label"], "pairs": row["kept"]} for row in open_prepared(run).manifest["corpora"]]
    return {"corpora": corpora, "scores": [*_validated(found, run), *_evaluated(found, run)]}


def _validated(found: Checkpoint, run: Run) -> Iterator[dict[str, Any]]:
    """From the run's record: the validations of this checkpoint."""
    for row in Record(run.metrics).rows():
        if row.get("kind") == "valid" and (row["step"], bool(row["averaged"])) == (found.step, found.averaged):
            scores = {name: {"value": row[name], "signature": text} for name, text in row["signature"].items()}
            yield {"test": row["set"], "search": row["search"], "scores": scores}


def _evaluated(found: Checkpoint, run: Run) -> Iterator[dict[str, Any]]:
    """What `nmt evaluate` has kept of this checkpoint."""
    for path in sorted(run.evaluate.glob(f"*.{found.directory.name}.*.json")):
        row = json.loads(path.read_text(encoding="utf-8"))
        if all(row[key] == found.state[key] for key in ("step", "averaged")):
            yield {key: row[key] for key in ("test", "lines", "search", "scores")}


def markdown(found: Checkpoint, state: dict[str, Any], parameters: int) -> str:
    """The card of a model that is written with this `state`."""
    config = found.config()
    tokenizer = found.tokenizer()
    sizes = f"{len(tokenizer.src):,} pieces for both sides"
    if not tokenizer.joint:
        sizes = f"{len(tokenizer.src):,} source and {len(tokenizer.tgt):,} target pieces"
    use = ENGINE_USE if ENGINE in state else USE
    names = ("tokenizer.model",) * 2 if tokenizer.joint else ("src.model", "tgt.model")
    for old, new in zip(("SRC", "TGT"), names, strict=True):
        use = use.replace(f"/{old}", f"/{new}")
    digests = ", ".join(f"{key.removesuffix('_digest')} {state[key]}" for key in state if key.endswith("_digest"))
    return "\n".join(
        [
            f"---\nlanguage: [{config.src_lang}, {config.tgt_lang}]\npipeline_tag: translation\nlibrary_name: nmt\n---",
            "",
            f"# Translation from {config.src_lang} to {config.tgt_lang}\n",
            f"{_shape(config.model)}, {parameters:,} parameters; {sizes} ({config.tokenizer.name}).",
            f"Trained for {found.step:,} steps and exported with nmt {__version__}; all settings are in config.yaml.",
            f"Digests: {digests}.\n",
            f"## How to use it\n\n{use}",
            "## What it was trained on\n",
            *_corpora(state["about"]["corpora"]),
            "## Scores\n",
            *_scores(state["about"]["scores"]),
        ]
    )


def _shape(model: Model) -> str:
    order = "pre" if model.norm_first else "post"
    return (
        f"A Transformer of {model.encoder_layers} encoder and {model.decoder_layers} decoder layers, width {model.dim},"
        f" {model.heads} heads, feed-forward {model.ffn_dim}, {order}-norm ({model.norm}), {model.activation}, "
        f"{model.position.name} positions"
    )


def _corpora(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["Not known here: the run's prepared data was gone.\n"]
    return ["| corpus | pairs |", "|---|---|", *(f"| {_cell(row['name'])} | {row['pairs']:,} |" for row in rows), ""]


def _scores(rows: list[dict[str, Any]]) -> list[str]:
    if not rows:
        return ["Not measured.\n"]
    lines = ["| set | metric | score | signature | search |", "|---|---|---|---|---|"]
    for row in rows:
        search = " ".join(f"{key}:{value}" for key, value in row["search"].items())
        for name, score in row["scores"].items():
            cells = (row["test"], name, f"{score['value']:.2f}", score["signature"], search)
            lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
