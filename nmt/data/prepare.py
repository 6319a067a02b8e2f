"""Text corpora -> tokenizer, store, manifest and report, in one directory that is whole or not there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.choice import build
from nmt.config import Config
from nmt.data import filters, report
from nmt.data.corpora import Corpus
from nmt.data.formats import Unit
from nmt.data.making import Making
from nmt.data.plan import Share
from nmt.data.store import REDO, Store
from nmt.errors import BusyError, CheckpointError, ConfigError, DataError, NmtError
from nmt.files import check_space, sha256, write_directory
from nmt.jobs import processors, without_collecting
from nmt.run import Run
from nmt.strict_yaml import KeyPath, dotted
from nmt.tokenizer import TOKENIZERS, Tokenizer, Trainer

MANIFEST, REPORT = "manifest.json", "prepare.md"
OURS = re.compile(r"manifest\.json|prepare\.md|(tokenizer|src|tgt)\.model|(train|valid\..*)\.arrow")  # files
FORMAT = 2
POLL = 0.5  # seconds
WRITTEN = 3  # bytes written for a byte of text: put aside, then stored with its ids
Say = Callable[[str], None]


@dataclass
class Prepared:
    """What `prepare` made, opened."""

    directory: Path
    manifest: dict[str, Any]

    def tokenizer(self) -> Tokenizer:
        try:
            found = Tokenizer.load(self.directory)
        except CheckpointError:
            raise DataError(f"{self.directory}: its tokenizer is missing or damaged; {REDO}") from None
        if found.digest() != self.manifest["tokenizer"]:
            raise DataError(f"{self.directory}: its tokenizer is not the one that it was prepared with; {REDO}")
        return found

    def train(self) -> Store:
        return self._store("train.arrow")

    def valid(self) -> dict[str, Store]:
        """The validation sets by name, in the config's order; sets without a line are left out."""
        return {name: self._store(f"valid.{name}.arrow") for name, count in self.manifest["valid"].items() if count}

    def _store(self, name: str) -> Store:
        path = self.directory / name
        try:
            intact = sha256(path) == self.manifest["checksums"][name]
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}; {REDO}") from None
        if not intact:
            raise DataError(f"{path}: its content is not what was written (wrong checksum); {REDO}")
        return Store(path, self.manifest["files"])

    def shares(self, config: Config) -> list[Share]:
        """How often an epoch sees the pairs of each corpus."""
        weights = [float(choice.options["weight"]) for choice in config.data.train]
        return [Share(row["kept"], w) for row, w in zip(self.manifest["corpora"], weights, strict=True)]

    def digest(self) -> str:
        """Names the pairs, texts and ids, wherever they came from."""
        return str(self.manifest["digest"])


def prepare(
    config: Config, fresh: bool, say: Say, jobs: int | None = None, tokenizer_from: Path | None = None
) -> Prepared:
    """Prepares the run's data, or finds it prepared already with the same settings.

    `tokenizer_from` is a directory whose tokenizer is used, instead of one that is trained.

    `jobs` processes share the work, by default as many as there are processors; the result is the same. While another
    process prepares the same run, this one waits for it. Raises ConfigError, naming the differences, when the data was
    prepared with other settings; `fresh` then does it again.
    """
    run = Run(config.run_dir)
    said = False
    while True:
        if os.path.exists(run.prepared) and not fresh:
            prepared = open_prepared(run)
            _check_same(prepared, config, say, tokenizer_from)
            say(f"{run.prepared}: prepared already, {prepared.manifest['pairs']:,} pairs")
            return prepared
        _check_ours(run.prepared)
        try:
            with run.claimed("preparing data"):
                if fresh or not os.path.exists(run.prepared):
                    with write_directory(run.prepared) as directory:
                        _make(config, directory, run.directory, say, jobs, tokenizer_from)
                    return open_prepared(run)
        except BusyError as busy:
            if os.path.exists(run.prepared):  # somebody trains on it
                raise
            if not said:
                say(f"waiting: {busy}")
                said = True
            time.sleep(POLL)


def take_over(config: Config, others: Iterable[Run], tokenizer_from: Path | None = None) -> None:
    """Links what another run has prepared, if this one would prepare the same. The caller has claimed this one."""
    here = Run(config.run_dir).prepared
    for run in others:
        with contextlib.suppress(NmtError):
            prepared = open_prepared(run)
            _check_same(prepared, config, lambda _: None, tokenizer_from)
            if prepared.manifest["held_out"] == _held_out(config):
                with write_directory(here) as directory:
                    shutil.copytree(run.prepared, directory, copy_function=_link, dirs_exist_ok=True)
                return


def _link(file: str, to: str) -> None:
    """The same file under a second name, where the file system has that."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copyfile(file, to)


def _check_ours(directory: Path) -> None:
    """Raises DataError for a directory with files that we did not write: they would be lost."""
    if os.path.isdir(directory):
        foreign = sorted(path.name for path in directory.iterdir() if not OURS.fullmatch(path.name))
        if foreign:
            raise DataError(f"{directory}: holds files that are not prepared data ({foreign[0]}); name another run_dir")


def check(config: Config, say: Say, jobs: int | None = None, tokenizer_from: Path | None = None) -> None:
    """Reports on the data as `prepare` would, and leaves nothing behind. Works in the system's temporary directory."""
    with tempfile.TemporaryDirectory(prefix="nmt-check-") as directory:
        _make(config, Path(directory), Path(directory), say, jobs, tokenizer_from)


def _make(
    config: Config, directory: Path, space: Path, say: Say, jobs: int | None, tokenizer_from: Path | None
) -> None:
    root = Path(config.data.root)
    kinds = {"train": config.data.train, "valid": config.data.valid.values(), "test": config.data.test.values()}
    corpora = {kind: [Corpus.open(choice, root) for choice in choices] for kind, choices in kinds.items()}
    for corpus in (corpus for some in corpora.values() for corpus in some):
        corpus.check()
    check_space(space, WRITTEN * sum(corpus.size() for corpus in corpora["train"]))
    with without_collecting():
        given = Tokenizer.load(tokenizer_from) if tokenizer_from else None
        manifest = Making(config, directory, jobs or processors(), say).run(corpora, given)
    manifest |= {"format": FORMAT, "settings": _settings(config, tokenizer_from), "held_out": _held_out(config)}
    manifest["inputs"] = [
        {"path": name, "sha256": sha256(path), "mtime_ns": path.stat().st_mtime_ns}
        for name, path in _inputs(config).items()
    ]
    for line in report.lines(manifest):
        say(line)
    (directory / REPORT).write_text(report.markdown(manifest), encoding="utf-8")
    manifest["checksum"] = _checksum(manifest)
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (directory / MANIFEST).write_text(text, encoding="utf-8")


def open_prepared(run: Run) -> Prepared:
    try:
        manifest = json.loads((run.prepared / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError(f"{run.prepared}: is no prepared data; run `nmt prepare CONFIG --fresh`") from None
    if not isinstance(manifest, dict) or manifest.get("checksum") != _checksum(manifest):
        raise DataError(f"{run.prepared / MANIFEST}: its content is not what was written (wrong checksum); {REDO}")
    if manifest["format"] != FORMAT:
        raise DataError(f"{run.prepared}: was prepared by another version of nmt; {REDO}")
    for name in manifest["checksums"]:
        if not (run.prepared / name).exists():
            raise DataError(f"{run.prepared / name}: is missing; {REDO}")
    return Prepared(run.prepared, manifest)


def _checksum(manifest: dict[str, Any]) -> str:
    """Of all that a manifest says, itself apart."""
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_set(config: Config, name: str) -> list[Unit]:
    """All pairs of a test set of the config. Raises DataError when there are none."""
    units = Corpus.open(config.data.test[name], Path(config.data.root)).with_prefix()
    if not units:
        raise DataError(f"data.test.{name}: holds no lines")
    return units


# --- the same data again? ---


def _settings(config: Config, tokenizer_from: Path | None) -> dict[str, Any]:
    """What prepared data depends on, apart from the files' contents."""
    given = Tokenizer.load(tokenizer_from).digest() if tokenizer_from else None
    tree, chosen = config.tree(), filters.choices(config.data.filters)
    for corpus in [*tree["data"]["train"], *tree["data"]["valid"].values()]:
        del corpus["weight"], corpus["label"]
    return {
        "data": {
            **{kind: tree["data"][kind] for kind in ("train", "valid")},
            "filters": {name: choice.options for name, choice in chosen.items()},
        },
        "languages": [config.src_lang, config.tgt_lang] if "script" in chosen else [],
        "tokenizer": {"name": "that of train.init_from", "digest": given} if given else tree["tokenizer"],
        "seed": config.seed,
    }


def _inputs(config: Config) -> dict[str, Path]:
    """The files that the data is made from, by their names in the config's data.root."""
    root = Path(config.data.root)
    choices = [*config.data.train, *config.data.valid.values()]
    paths = [path for choice in choices for path in Corpus.open(choice, root).inputs()]
    trainer: Trainer = build(TOKENIZERS, config.tokenizer)
    paths += [path.absolute() for path in trainer.inputs()]
    return {str(path.relative_to(root) if path.is_relative_to(root) else path): path for path in paths}


def _held_out(config: Config) -> list[Any]:
    """The test sets, none of whose sources may be in train, whatever they are called."""
    trees = [choice.tree() | {"label": "", "weight": 1.0} for choice in config.data.test.values()]
    found: list[Any] = json.loads(json.dumps(trees))
    return found


def _check_same(prepared: Prepared, config: Config, say: Say, tokenizer_from: Path | None) -> None:
    manifest = prepared.manifest
    changes = _differences(manifest["settings"], json.loads(json.dumps(_settings(config, tokenizer_from))))
    known = {entry["path"] for entry in manifest["inputs"]}
    for entry in manifest["inputs"]:
        path = Path(config.data.root) / entry["path"]
        # The files may be gone: prepared data needs them no more. The clock is asked first; hashing takes longer.
        if path.is_file() and path.stat().st_mtime_ns != entry["mtime_ns"] and sha256(path) != entry["sha256"]:
            changes.append(f"{path}: its content has changed")
    if not changes:
        with contextlib.suppress(DataError):  # wildcards that match nothing any more
            changes += [f"{path}: is new" for name, path in _inputs(config).items() if name not in known]
    if changes:
        anew = "redo it with `nmt prepare CONFIG --fresh`"
        if Run(config.run_dir).checkpoints.is_dir():  # which go with this data
            anew = "begin anew with `nmt prepare CONFIG --fresh` and then `nmt train CONFIG --fresh`"
        raise ConfigError(
            f"{prepared.directory}: was prepared with other settings ({'; '.join(changes)}); "
            f"undo the change, name another run_dir, or {anew}"
        )
    if any(choice not in manifest["held_out"] for choice in _held_out(config)):
        say("note: data.test has sets that it had not when the data was prepared; train may hold lines of theirs")


def _differences(old: Any, new: Any, at: KeyPath = ()) -> list[str]:
    """What is not the same, a phrase for each setting."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        old, new = dict(enumerate(old)), dict(enumerate(new))
    if not isinstance(old, dict) or not isinstance(new, dict) or old.get("name") != new.get("name"):
        return [] if old == new else [f"{dotted(at)}: {_short(old)} -> {_short(new)}"]
    keys = dict.fromkeys([*old, *new])
    return [difference for key in keys for difference in _differences(old.get(key), new.get(key), (*at, key))]


def _short(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)
