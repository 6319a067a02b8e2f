"""Translates test sets and scores them against raw references; keeps the results with the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt import __version__
from nmt.checkpoint import Checkpoint
from nmt.choice import Choice, build
from nmt.config import Config
from nmt.data.prepare import open_prepared, read_set
from nmt.errors import ConfigError, DataError
from nmt.files import read_lines, write_file
from nmt.metrics import METRICS, Metric, Score
from nmt.run import Run
from nmt.translate import Translator

VALID = "valid"


@dataclass
class TestSet:
    """Source lines, and one list of lines for each reference translation, as they stand in the files."""

    name: str
    sources: list[str]
    references: list[list[str]]
    tgt_lang: str


@dataclass
class Result:
    """The scores of one system on one set, and all that is needed to make them again."""

    system: str
    test: str
    hypotheses: list[str] = field(repr=False)
    scores: list[Score]
    made_by: dict[str, Any]

    def tree(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "test": self.test,
            "lines": len(self.hypotheses),
            **self.made_by,
            "scores": {score.name: score.tree() for score in self.scores},
        }


def test_sets(config: Config, names: list[str]) -> list[TestSet]:
    """The named sets of a config; without names all of data.test. Raises ConfigError for an unknown name."""
    known = [*config.data.test, *config.data.valid, VALID]
    sets = []
    for name in names or list(config.data.test):
        if name in config.data.test:
            units = read_set(config, name)
            pairs = [(unit.src, unit.tgts) for unit in units]
        elif name in config.data.valid or (name == VALID and config.data.valid):
            stores = open_prepared(Run(config.run_dir)).valid()
            if not stores:
                raise DataError("the validation set holds no lines")
            pairs = list(stores.get(name, next(iter(stores.values()))).texts())
        else:
            raise ConfigError(f"-t {name}: there is no such set; the config has {', '.join(dict.fromkeys(known))}")
        references = [list(column) for column in zip(*(tgts for _, tgts in pairs), strict=True)]
        sets.append(TestSet(name, [src for src, _ in pairs], references, config.tgt_lang))
    if not sets:
        raise ConfigError("the config has no data.test; name files with --src and --ref, or the set with -t valid")
    return sets


def file_set(src: str | None, refs: list[str], tgt_lang: str) -> TestSet:
    """A set from files. Raises DataError when their line counts differ."""
    names = [*([src] if src else []), *refs]
    columns = [list(read_lines(name)) for name in names]
    check_counts(names, columns)
    if not columns[0]:
        raise DataError(f"{names[0]}: holds no lines")
    return TestSet(Path(refs[0]).name, columns[0] if src else [], columns[1:] if src else columns, tgt_lang)


def check_counts(names: list[str], columns: list[list[str]]) -> None:
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise DataError(
                f"{names[0]} has {len(columns[0]):,} lines, but {name} has {len(column):,}; "
                "they must be aligned line by line"
            )


def metrics_for(tgt_lang: str, settings: Mapping[str, Mapping[str, Any]]) -> list[Metric]:
    return [build(METRICS, Choice(name, dict(options)), tgt_lang) for name, options in settings.items()]


def evaluate(translator: Translator, found: Checkpoint, test: TestSet, metrics: list[Metric]) -> Result:
    """Translates a set with a model and scores it."""
    hypotheses = translator.translate(test.sources)
    state = found.state
    made_by = {
        "nmt": __version__,
        "step": found.step,
        "averaged": found.averaged,
        "search": translator.settings.tree(),
        "precision": translator.runtime.precision,
        "device": str(translator.runtime.device),
        "config": state["config_digest"],
        "data": state["data_digest"],
        "tokenizer": state["tokenizer_digest"],
    }
    return Result(str(found.directory), test.name, hypotheses, _scores(metrics, hypotheses, test), made_by)


def evaluate_file(path: str, test: TestSet, metrics: list[Metric]) -> Result:
    """Scores a file of translations, ours or anybody's."""
    hypotheses = list(read_lines(path))
    check_counts([path, f"the test set {test.name}"], [hypotheses, test.references[0]])
    return Result(path, test.name, hypotheses, _scores(metrics, hypotheses, test), {"nmt": __version__})


def _scores(metrics: list[Metric], hypotheses: list[str], test: TestSet) -> list[Score]:
    return [metric(hypotheses, test.references) for metric in metrics]


def keep(result: Result, found: Checkpoint, search: Choice, tgt_lang: str) -> None:
    """Writes translations and scores into the run's evaluate/, if the checkpoint still lies in its run."""
    run = Run(found.directory.parent.parent)
    if found.directory.parent != run.checkpoints:
        return
    directory = run.evaluate
    directory.mkdir(exist_ok=True)
    width = search.options.get("beam", "")
    stem = directory / f"{result.test}.{found.directory.name}.{search.name}{width}"
    output = stem.with_name(f"{stem.name}.{tgt_lang}")
    with write_file(output) as stream:
        stream.write("".join(f"{line}\n" for line in result.hypotheses).encode())
    with write_file(stem.with_name(f"{stem.name}.json")) as stream:
        stream.write(json.dumps(result.tree(), indent=1, ensure_ascii=False).encode())
