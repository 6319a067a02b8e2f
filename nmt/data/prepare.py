"""Text corpora -> tokenizer, store and manifest, in one directory that is whole or not there."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from nmt import tokenizer as tok
from nmt.choice import build
from nmt.config import Config
from nmt.data import filters
from nmt.data.formats import FORMATS, Corpus, Unit
from nmt.data.store import Row, Store, Writer
from nmt.errors import ConfigError, DataError
from nmt.files import check_readable, sha256, write_directory
from nmt.progress import bar
from nmt.run import Run
from nmt.tokenizer import Tokenizer

MANIFEST = "manifest.json"
REDO = "redo it with `nmt prepare CONFIG --fresh`"
FORMAT = 1
SAMPLE = 1_000_000  # pairs that the tokenizer is trained on, at most
CHUNK = 2_000  # pairs encoded at a time
Say = Callable[[str], None]


@dataclass
class Prepared:
    """What `prepare` made, opened."""

    directory: Path
    manifest: dict[str, Any]

    def tokenizer(self) -> Tokenizer:
        found = Tokenizer.load(self.directory)
        if found.digest() != self.manifest["tokenizer"]:
            raise DataError(f"{self.directory}: its tokenizer is not the one that it was prepared with; {REDO}")
        return found

    def train(self) -> Store:
        path = self.directory / "train.arrow"
        if sha256(path)[:12] != self.digest():
            raise DataError(f"{path}: its content is not what was written (wrong checksum); {REDO}")
        return Store(path)

    def valid(self) -> dict[str, Store]:
        """The validation sets by name, in the config's order; sets without a line are left out."""
        return {n: Store(self.directory / f"valid.{n}.arrow") for n, count in self.manifest["valid"].items() if count}

    def digest(self) -> str:
        return str(self.manifest["digest"])


def prepare(config: Config, fresh: bool, say: Say) -> Prepared:
    """Prepares the run's data, or finds it prepared already with the same settings.

    Raises ConfigError, naming the differences, when it was prepared with others; `fresh` then does it again.
    """
    run = Run(config.run_dir)
    settings = _settings(config)
    if run.prepared.exists() and not fresh:
        prepared = open_prepared(run)
        _check_same(prepared, settings, config)
        say(f"{run.prepared}: prepared already, {prepared.manifest['pairs']:,} pairs")
        return prepared
    corpora = {
        "train": [_corpus(config, choice) for choice in config.data.train],
        "valid": [_corpus(config, choice) for choice in config.data.valid.values()],
        "test": [_corpus(config, choice) for choice in config.data.test.values()],
    }
    for corpus in (corpus for some in corpora.values() for corpus in some):
        for path in corpus.inputs():
            check_readable(path)
            if not path.is_file():
                raise DataError(f"{path}: must be a file on disk, since it is read more than once")
    with write_directory(run.prepared) as directory:
        manifest = _Preparation(config, directory, say).run(corpora, settings)
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (directory / MANIFEST).write_text(text, encoding="utf-8")
    return open_prepared(run)


def open_prepared(run: Run) -> Prepared:
    try:
        manifest = json.loads((run.prepared / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError(f"{run.prepared}: is no prepared data; run `nmt prepare CONFIG --fresh`") from None
    return Prepared(run.prepared, manifest)


def read_set(config: Config, name: str) -> list[Unit]:
    """All pairs of a test set of the config. Raises DataError when there are none."""
    units = list(_corpus(config, config.data.test[name]).read())
    if not units:
        raise DataError(f"data.test.{name}: holds no lines")
    return units


def _corpus(config: Config, choice: Any) -> Corpus:
    corpus: Corpus = build(FORMATS, choice, Path(config.data.root))
    return corpus


def _settings(config: Config) -> dict[str, Any]:
    """What prepared data depends on, apart from the files' contents."""
    tree = config.tree()
    chosen = {name: choice.options for name, choice in filters.choices(config.data.filters).items()}
    return {
        "data.train": tree["data"]["train"],
        "data.valid": tree["data"]["valid"],
        "data.filters": chosen,
        "tokenizer": tree["tokenizer"],
        "seed": config.seed,
    }


def _check_same(prepared: Prepared, settings: dict[str, Any], config: Config) -> None:
    old = prepared.manifest["settings"]
    changes = [f"{key}: {old.get(key)} -> {value}" for key, value in settings.items() if old.get(key) != value]
    for entry in prepared.manifest["inputs"]:
        path = Path(config.data.root) / entry["path"]
        # The files may be gone: prepared data needs them no more. The clock is asked first; hashing takes longer.
        if path.is_file() and path.stat().st_mtime_ns != entry["mtime_ns"] and sha256(path) != entry["sha256"]:
            changes.append(f"{path}: its content has changed")
    if changes:
        raise ConfigError(
            f"{prepared.directory}: was prepared with other settings ({'; '.join(changes)}); "
            "undo the change, name another run_dir, or redo it with `nmt prepare CONFIG --fresh`"
        )


@dataclass
class _Preparation:
    config: Config
    directory: Path
    say: Say
    oddities: dict[str, list[Any]] = field(default_factory=dict)  # character -> [lines, first place]

    def run(self, corpora: dict[str, list[Corpus]], settings: dict[str, Any]) -> dict[str, Any]:
        """Writes everything but the manifest, and returns that."""
        tallies = [(getattr(corpus, "label", "corpus"), filters.Tally()) for corpus in corpora["train"]]
        valid = {n: list(c.read()) for n, c in zip(self.config.data.valid, corpora["valid"], strict=True)}
        for unit in (unit for units in valid.values() for unit in units):
            self._look_at(unit)
        for corpus in corpora["test"]:  # read once now, so that a fault shows before the training, not after it
            for unit in corpus.read():
                self._look_at(unit)
        chosen = filters.choices(self.config.data.filters)
        sample = self._read(corpora["train"], tallies, chosen)
        self._report_oddities()
        self._stop_if_empty(tallies)
        trainer = build(tok.TOKENIZERS, self.config.tokenizer)
        tokenizer: Tokenizer = trainer([u.src for u in sample], [u.tgts[0] for u in sample], self.say)
        tokenizer.save(self.directory)
        pieces = self._encode(tokenizer, tallies, chosen)
        self._stop_if_empty(tallies)
        for name, units in valid.items():
            self._write_valid(name, units, tokenizer)
        for label, tally in tallies:
            self.say(_sentence(label, tally))
        pairs = sum(tally.kept for _, tally in tallies)
        self.say(
            f"{pairs:,} pairs for training, {pieces[0]:,} source and {pieces[1]:,} target pieces; "
            f"vocabulary {len(tokenizer.src):,}" + ("" if tokenizer.joint else f" and {len(tokenizer.tgt):,}")
        )
        return self._manifest(corpora, settings, tallies, pieces, tokenizer, {n: len(u) for n, u in valid.items()})

    def _read(
        self, corpora: list[Corpus], tallies: list[tuple[str, filters.Tally]], chosen: dict[str, Any]
    ) -> list[Unit]:
        """Reads and filters the text, puts it aside, and draws the sample that the tokenizer is trained on."""
        text_filters = [build(filters.FILTERS, c) for n, c in chosen.items() if n in filters.TEXT_FILTERS]
        rng = random.Random(self.config.seed)
        sample: list[Unit] = []
        seen = 0
        self.kept_text = self.directory / "text.jsonl"
        with open(self.kept_text, "w", encoding="utf-8") as out:
            for index, (corpus, (label, tally)) in enumerate(zip(corpora, tallies, strict=True)):
                for unit in bar(corpus.read(), f"reading {label}", "pairs"):
                    tally.read += 1
                    self._look_at(unit)
                    src, tgt = tok.clean(unit.src), tok.clean(unit.tgts[0])
                    reason = next((r for f in text_filters if (r := f.text(src, tgt))), None)
                    if reason:
                        tally.drop(reason, unit.where)
                        continue
                    tally.kept += 1
                    unit = Unit(src, (tgt,), unit.where)
                    out.write(json.dumps([index, *unit], ensure_ascii=False) + "\n")
                    seen += 1
                    if len(sample) < SAMPLE:
                        sample.append(unit)
                    elif (place := rng.randrange(seen)) < SAMPLE:
                        sample[place] = unit
        return sample

    def _look_at(self, unit: Unit) -> None:
        for text in (unit.src, *unit.tgts):
            for character in {*tok.BREAKS.findall(text), *tok.UNSEEN.findall(text)} - {"\t"}:
                self.oddities.setdefault(character, [0, unit.where])[0] += 1

    def _report_oddities(self) -> None:
        for character, (lines, where) in sorted(self.oddities.items()):
            done = "removed" if tok.UNSEEN.match(character) else "turned into spaces"
            self.say(f"U+{ord(character):04X} inside {lines:,} lines, first at {where}: {done}")

    def _encode(
        self, tokenizer: Tokenizer, tallies: list[tuple[str, filters.Tally]], chosen: dict[str, Any]
    ) -> tuple[int, int]:
        """Text -> ids -> store; returns the pieces on both sides."""
        id_filters = [build(filters.FILTERS, c) for n, c in chosen.items() if n in filters.ID_FILTERS]
        total = sum(tally.kept for _, tally in tallies)
        src_pieces = tgt_pieces = 0
        with (
            open(self.kept_text, encoding="utf-8", newline="\n") as lines,
            Writer(self.directory / "train.arrow") as store,
        ):
            rows = bar((json.loads(line) for line in lines), "encoding", "pairs", total)
            for chunk in _batched(rows, CHUNK):
                src = tokenizer.encode_src([row[1] for row in chunk])
                tgt = tokenizer.encode_tgt([row[2][0] for row in chunk])
                for (index, text, texts, where), s, t in zip(chunk, src, tgt, strict=True):
                    reason = next((r for f in id_filters if (r := f.lengths(len(s), len(t)))), None)
                    if reason:
                        tallies[index][1].kept -= 1
                        tallies[index][1].drop(reason, where)
                        continue
                    store.add(Row(text, tuple(texts), s, t, where))
                    src_pieces += len(s)
                    tgt_pieces += len(t)
        self.kept_text.unlink()
        return src_pieces, tgt_pieces

    def _write_valid(self, name: str, units: list[Unit], tokenizer: Tokenizer) -> None:
        if not units:
            self.say(f"warning: data.valid.{name} holds no lines; it is left out of validation")
            return
        with Writer(self.directory / f"valid.{name}.arrow") as store:
            for chunk in _batched(units, CHUNK):
                src = tokenizer.encode_src([unit.src for unit in chunk])
                tgt = tokenizer.encode_tgt([unit.tgts[0] for unit in chunk])
                for unit, s, t in zip(chunk, src, tgt, strict=True):
                    store.add(Row(unit.src, unit.tgts, s, t, unit.where))

    def _stop_if_empty(self, tallies: list[tuple[str, filters.Tally]]) -> None:
        if not any(tally.kept for _, tally in tallies):
            read = sum(tally.read for _, tally in tallies)
            why = "; ".join(_sentence(label, tally) for label, tally in tallies)
            raise DataError(f"data.train: 0 of {read:,} pairs left for training ({why})")

    def _manifest(
        self,
        corpora: dict[str, list[Corpus]],
        settings: dict[str, Any],
        tallies: list[tuple[str, filters.Tally]],
        pieces: tuple[int, int],
        tokenizer: Tokenizer,
        valid: dict[str, int],
    ) -> dict[str, Any]:
        root = Path(self.config.data.root)
        inputs = []
        for path in dict.fromkeys(p for kind in ("train", "valid") for c in corpora[kind] for p in c.inputs()):
            name = path.relative_to(root) if path.is_relative_to(root) else path
            inputs.append({"path": str(name), "sha256": sha256(path), "mtime_ns": path.stat().st_mtime_ns})
        return {
            "format": FORMAT,
            "digest": sha256(self.directory / "train.arrow")[:12],
            "tokenizer": tokenizer.digest(),
            "vocabulary": {"src": len(tokenizer.src), "tgt": len(tokenizer.tgt), "joint": tokenizer.joint},
            "pairs": sum(tally.kept for _, tally in tallies),
            "pieces": {"src": pieces[0], "tgt": pieces[1]},
            "corpora": [
                {"label": label, "read": t.read, "kept": t.kept, "dropped": dict(t.dropped), "examples": t.examples}
                for label, t in tallies
            ],
            "odd_characters": {f"U+{ord(c):04X}": {"lines": n, "first": at} for c, (n, at) in self.oddities.items()},
            "valid": valid,
            "inputs": inputs,
            "settings": settings,
        }


def _sentence(label: str, tally: filters.Tally) -> str:
    dropped = ", ".join(
        f"{count:,} {reason} (first at {tally.examples[reason][0]})" for reason, count in tally.dropped.items()
    )
    return f"{label}: {tally.read:,} pairs read, {tally.kept:,} kept" + (f"; dropped: {dropped}" if dropped else "")


def _batched(items: Any, size: int) -> Iterator[list[Any]]:
    """itertools.batched, which Python 3.11 does not have."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
