"""`scripts/bench quality`: BLEU over minutes of nmt and of other programs: same corpus, pieces, sizes and time.

Each gets the same minutes, counted from the start of its process, validates next to nothing, and keeps checkpoints. For
each point in time the last one before it is decoded by the program that made it; one command scores them all. The
others get nmt's pieces as text, ids between spaces, and nmt's tokenizer puts their translations together.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Figures = dict[str, Any]
PEERS = Path(__file__).parent / "peers"
BEAM = 5
TRIAL = 10.0  # seconds that tell how fast a program is, and so after how many updates it is to save
SAVES = 10  # between two points in time
START_UP = 10  # seconds that nmt's own limit does not see: imports before, saving after
ALIKE = {  # what the others have, or are told in their scripts
    **dict.fromkeys(("attention_dropout", "activation_dropout"), 0.0),
    "norm": "layer",
    "norm_first": True,
    "activation": "relu",
    "tie": "all",
}


class Saved(NamedTuple):
    """A checkpoint: the minutes after which it was whole, and its last file."""

    minutes: float
    step: int
    path: Path


def _nmt_translate(python: str, path: Path, lines: Path, out: Path) -> list[str]:
    search = ["--beam", str(BEAM), "--length-penalty", "1"]
    return [python, "-m", "nmt", "translate", str(path.parent), str(lines), "-o", str(out), *search]


def _eole_translate(python: str, path: Path, lines: Path, out: Path) -> list[str]:
    search = ["-beam_size", str(BEAM), "-length_penalty", "avg", "-alpha", "1", "-ban_unk_token"]
    files = ["-model_path", str(path.parent), "-src", str(lines), "-output", str(out)]
    return [str(Path(python).parent / "eole"), "predict", *files, *search]


def _joeynmt_translate(python: str, path: Path, lines: Path, out: Path) -> list[str]:
    config = json.loads((out.parent / "joeynmt.json").read_text())
    config["testing"] |= {"beam_size": BEAM, "beam_alpha": 1.0, "generate_unk": False, "load_model": str(path)}
    own = out.with_name(f"{out.name}.json")
    own.write_text(json.dumps(config))
    return [python, "-m", "joeynmt", "translate", str(own)]  # from stdin to stdout: its -o fails


CONTESTANTS = {  # the script of `scripts/bench train`, the file of a checkpoint that is written last, how to translate
    "nmt": ("nmt_train.py", "run/checkpoints/step-*/state.json", _nmt_translate),
    "eole": ("eole_train.py", "eole/step_*/config.json", _eole_translate),
    "joeynmt": ("joeynmt_train.py", "joeynmt/[0-9]*.ckpt", _joeynmt_translate),
}


def quality(options: argparse.Namespace, contend: Callable[[str, str, int, str], Figures]) -> Figures:
    """`contend` runs a script of peers/ and returns what it prints."""
    if options.points[-1] > options.minutes:
        raise SystemExit(f"--points: {options.points[-1]:g} comes after the end, --minutes {options.minutes:g}")
    folder = Path(options.out).resolve()
    folder.mkdir(parents=True)
    job, found = _job(folder, options)
    pythons = {"nmt": sys.executable, **dict(options.peer)}
    trial = json.dumps(job)
    speeds = {name: contend(python, CONTESTANTS[name][0], options.threads, trial) for name, python in pythons.items()}
    if failures := [f"{name}: {speed['failed']}" for name, speed in speeds.items() if "failed" in speed]:
        raise SystemExit("\n".join(failures))
    rows: dict[str, list[Figures]] = {}
    for name, python in pythons.items():
        script, pattern, _ = CONTESTANTS[name]
        every = save_every(speeds[name], options.points)
        command = [python, str(PEERS / script), json.dumps({**job, "save_every": every})]
        if name == "nmt":
            command = [python, "-m", "nmt", "train", str(folder / "config.yaml"), "-s", f"train.save_every={every}"]
        began = _train(name, command, folder, options)
        chosen = latest(folder, pattern, began, options.points)
        rows[name] = [{"point": p, **_measure(name, python, one, folder, options)} for p, one in chosen.items()]
        for row in rows[name]:
            row["target tokens"] = round(row["step"] * speeds[name]["tokens/update"])
        found[name] = {"versions": _versions(python), "training": command, "points": rows[name]}
    found["paired bootstrap"] = _paired([of[-1]["out"] for of in rows.values()], options)
    (folder / "quality.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "quality.svg").write_text(plot(rows))
    print(table(options.points, rows))
    for system in found["paired bootstrap"][1:]:
        print(f"{system['system']} against nmt, paired bootstrap: p = {system['BLEU']['p_value']:.4f}")
    return found


# --- what all are given ---


def _job(folder: Path, options: argparse.Namespace) -> tuple[Figures, Figures]:
    """What every contestant is told, once pairs are prepared; and what all of them have in common."""
    from nmt import variants
    from nmt.files import read_lines
    from nmt.strict_yaml import dump
    from nmt.tokenizer import Tokenizer

    minutes = options.minutes - START_UP / 60
    limits = [f"run_dir={folder / 'run'}", "data.valid={}", "train.steps=null", f"train.minutes={minutes}"]
    limits += ["train.epochs=null", "train.average=0", "train.keep.last=1000000"]
    config = variants.load(
        options.config, [*options.set, *limits, "train.device=cpu", f"train.threads={options.threads}"]
    )
    model = config.model
    other = [f"model.{key}={value}" for key, value in ALIKE.items() if getattr(model, key) != value]
    if other or model.encoder_layers != model.decoder_layers:
        expected = " ".join(other) or "as many layers in encoder and decoder"
        raise SystemExit(f"{options.config}: the others have another model; expected {expected}")
    (folder / "config.yaml").write_text(dump(config.tree()))
    _run(sys.executable, "-m", "nmt", "prepare", str(folder / "config.yaml"))
    lines = list(read_lines(options.src))
    (folder / "test").write_text("".join(f"{line}\n" for line in lines))
    _write_ids(folder / "test.ids", Tokenizer.load(folder / "run" / "prepared").encode_src(lines))
    adam = config.train.optimizer.options
    job = {
        "folder": str(folder),
        **give_pieces(folder, str(folder / "run")),
        **{key: getattr(model, key) for key in ("dim", "heads", "ffn_dim", "dropout")},
        "layers": model.encoder_layers,
        "batch_tokens": config.train.batch_tokens,
        "seconds": TRIAL,
        "threads": options.threads,
        "precision": options.precision,
        "rate": options.rate or adam.get("adamw_lr", adam["lr"]),  # the others have no muon
        "warm_up": options.warm_up,
        "seed": config.seed,
    }
    common = {"config": config.digest(), "seed": config.seed, "minutes": options.minutes, "cpu": _cpu()}
    return job, {**common, "sacrebleu": importlib.metadata.version("sacrebleu")}


def give_pieces(folder: Path, run_dir: str) -> Figures:
    """Writes the prepared pairs as text whose words are ids, for programs that want text."""
    from nmt.data.prepare import open_prepared
    from nmt.run import Run

    prepared = open_prepared(Run(run_dir))
    both = prepared.train().ids(range(len(prepared.train())))
    for side, rows in zip(("src", "tgt"), both, strict=True):
        _write_ids(folder / f"ids.{side}", rows)
    return {"pieces": len(prepared.tokenizer().tgt), "longest": max(len(ids) for rows in both for ids in rows)}


def _write_ids(path: Path, rows: Iterable[Any]) -> None:
    """Without the ends of sentences, which programs put themselves."""
    path.write_text("".join(f"{' '.join(map(str, ids[:-1]))}\n" for ids in rows))


def _cpu() -> str:
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return f"{found[1] if found else 'unknown'}, {os.cpu_count()} cores"


def _versions(python: str) -> Figures:
    """Of what the contestants' environments have."""
    names = ("nmt", "eole", "joeynmt", "torch")
    code = f"""
import importlib.metadata as m, json
print(json.dumps({{d.name: d.version for d in m.distributions() if d.name in {names}}}))
"""
    found: Figures = json.loads(_run(python, "-c", code))
    return found


# --- training ---


def save_every(speed: Figures, points: Sequence[float]) -> int:
    """Updates between checkpoints, so that some lie between any two points in time."""
    gap = min(after - before for before, after in zip([0.0, *points], points, strict=False))
    return max(1, int(speed["tokens/s"] / speed["tokens/update"] * 60 * gap / SAVES))


def _train(name: str, command: list[str], folder: Path, options: argparse.Namespace) -> float:
    """Lets a program train until its time is over; returns when it began. What it compiles, it compiles in its time."""
    compiled = str(folder / f"{name}.compiled")
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": compiled, "OMP_NUM_THREADS": str(options.threads)}
    log = folder / f"{name}.log"
    began = time.time()
    with open(log, "w") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment)
        try:
            if process.wait(60 * options.minutes):
                raise SystemExit(f"{name} failed; see {log}")
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
    return began


def latest(folder: Path, pattern: str, began: float, points: Sequence[float]) -> dict[float, Saved]:
    """The last checkpoint before each point that has one, by the times of files that match the pattern."""
    saved = []
    for path in folder.glob(pattern):
        step = re.search(r"\d+", str(path.relative_to(folder)))
        saved.append(Saved((path.stat().st_mtime - began) / 60, int(step[0]) if step else 0, path))
    found = {}
    for point in points:
        if before := [one for one in saved if one.minutes <= point]:
            found[point] = max(before)
    if not found:
        raise SystemExit(f"{folder / pattern}: no checkpoint before minute {points[-1]:g}; give them more --minutes")
    return found


# --- afterwards ---


def _measure(name: str, python: str, saved: Saved, folder: Path, options: argparse.Namespace) -> Figures:
    """Translates the test set with a checkpoint, and scores it."""
    lines, out = folder / ("test" if name == "nmt" else "test.ids"), folder / f"{name}.{saved.step}"
    row: Figures = {"minutes": round(saved.minutes, 2), "step": saved.step, "out": str(out)}
    row["translating"] = CONTESTANTS[name][2](python, saved.path, lines, out)
    if not out.exists():  # one checkpoint may be the last before several points
        said = _run(*row["translating"], stdin=lines)
        if not out.exists():
            out.write_text(said)
        if name != "nmt":
            _put_together(out, folder)
    row["scoring"] = [*_sacrebleu(options, str(out)), "-f", "json"]
    score = json.loads(_run(*row["scoring"]))
    return {**row, "bleu": score["score"], "signature": score["signature"]}


def _put_together(out: Path, folder: Path) -> None:
    """Ids to text."""
    from nmt.tokenizer import Tokenizer

    rows = [[int(number) for number in line.split()] for line in out.read_text().splitlines()]
    texts = Tokenizer.load(folder / "run" / "prepared").decode(rows)
    out.write_text("".join(f"{text}\n" for text in texts))


def _sacrebleu(options: argparse.Namespace, *outs: str) -> list[str]:
    return [sys.executable, "-m", "sacrebleu", options.ref, "-i", *outs, "-m", "bleu", "--tokenize", options.tokenize]


def _paired(outs: list[str], options: argparse.Namespace) -> list[Figures]:
    """sacrebleu's test of whether the last translations of the others differ from ours, which come first."""
    if len(outs) < 2:
        return []
    found: list[Figures] = json.loads(_run(*_sacrebleu(options, *outs), "--paired-bs", "-f", "json"))
    return found


def _run(*command: str, stdin: Path | None = None) -> str:
    """What a command writes to stdout. Raises SystemExit with what it says when it fails."""
    with open(stdin or os.devnull) as stream:
        done = subprocess.run(command, stdin=stream, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def table(points: Sequence[float], rows: Mapping[str, Sequence[Figures]]) -> str:
    """BLEU at each point, after how many minutes the checkpoint was there, and about how many target tokens it saw."""
    lines = ["minutes " + "".join(f"{name:>12}{'after':>8}{'tokens':>9}" for name in rows)]
    for point in points:
        line = f"{point:7g} "
        for of in rows.values():
            cells = ("–", "–", "–")
            for row in of:
                if row["point"] == point:
                    cells = f"{row['bleu']:.2f}", f"{row['minutes']:.2f}", f"{row['target tokens'] / 1e6:.2f}M"
            line += "{:>12}{:>8}{:>9}".format(*cells)
        lines.append(line)
    return "\n".join(lines)


COLOURS = ("#1f77b4", "#d62728", "#2ca02c")


def plot(rows: Mapping[str, Sequence[Figures]]) -> str:
    """The table as a picture, in SVG."""
    width, height, edge = 640, 360, 48
    end = max(row["point"] for of in rows.values() for row in of)
    top = 10 * math.ceil(max(1.0, *(row["bleu"] for of in rows.values() for row in of)) / 10)

    def at(minutes: float, bleu: float) -> str:
        return f"{edge + minutes / end * (width - 2 * edge):.1f},{height - edge - bleu / top * (height - 2 * edge):.1f}"

    def text(place: str, words: Any, more: str = "") -> str:
        x, y = place.split(",")
        return f'<text x="{x}" y="{y}" {more}>{words}</text>'

    parts = [f'<polyline points="{at(0, top)} {at(0, 0)} {at(end, 0)}" fill="none" stroke="#444"/>']
    for bleu in range(0, top + 1, 10):
        parts.append(text(at(0, bleu), bleu, 'dx="-6" dy="4" text-anchor="end"'))
    for part in range(1, 5):
        parts.append(text(at(end * part / 4, 0), f"{end * part / 4:.3g}", 'dy="18" text-anchor="middle"'))
    parts.append(text(at(end / 2, 0), "minutes", 'dy="36" text-anchor="middle"'))
    parts.append(text(at(0, top), "BLEU", 'dy="-12" text-anchor="middle"'))
    for (name, of), colour in zip(rows.items(), COLOURS, strict=False):
        line = " ".join(at(row["minutes"], row["bleu"]) for row in of)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(text(at(of[-1]["minutes"], of[-1]["bleu"]), name, f'dx="6" dy="4" fill="{colour}"'))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif"'
    parts = [f'{head} font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]
    return "\n".join(parts) + "\n"
