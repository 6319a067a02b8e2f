"""Translates test sets and scores them against raw references; keeps the results with the run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt import __version__, checkpoint
from nmt.checkpoint import Checkpoint
from nmt.choice import Choice, build
from nmt.config import Config
from nmt.data.prepare import open_prepared, read_set
from nmt.errors import ConfigError, DataError, NmtError
from nmt.files import read_lines, write_file
from nmt.metrics import METRICS, Metric, Score
from nmt.progress import say
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

    def text(self) -> str:
        """For people: a line for the system, one for each score, one for how the translations were made."""
        lines = [f"{self.system}  {self.test}, {len(self.hypotheses):,} lines"]
        lines += [f"  {score.name} {score.value:.2f}  {score.signature}" for score in self.scores]
        made_by = dict(self.made_by)
        if "search" in made_by:
            made_by["search"] = " ".join(f"{key}:{value}" for key, value in made_by["search"].items())
        return "\n".join([*lines, "  " + "|".join(f"{key}:{value}" for key, value in made_by.items())])


def test_sets(config: Config, names: list[str], run: Run) -> list[TestSet]:
    """The named sets of a config; without names all of data.test. Raises ConfigError for an unknown name.

    The validation set is the one that `run` has prepared.
    """
    known = [*config.data.test, *config.data.valid, VALID]
    sets = []
    for name in names or list(config.data.test):
        if name in config.data.test:
            units = read_set(config, name)
            pairs = [(unit.src, unit.tgts) for unit in units]
        elif name in config.data.valid or (name == VALID and config.data.valid):
            stores = open_prepared(run).valid()
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


@dataclass
class Request:
    """What `nmt evaluate` is asked for. Fields that are empty leave the choice to the config of the model."""

    models: list[str] = field(default_factory=list)
    hyps: list[str] = field(default_factory=list)  # files of translations to score
    tests: list[str] = field(default_factory=list)  # sets of the config
    src: str | None = None
    refs: list[str] = field(default_factory=list)  # files, instead of a set of the config
    tgt_lang: str | None = None
    metrics: list[str] = field(default_factory=list)
    tokenize: str | None = None
    lowercase: bool = False
    search: dict[str, Any] = field(default_factory=dict)
    device: str = "auto"
    precision: str = "auto"
    threads: str | int = "auto"


def run(request: Request) -> list[Result]:
    """Every model, then every file of translations, on every set. Raises NmtError before any work where it can."""
    _check(request)
    found = [checkpoint.find(model) for model in request.models]
    first = found[0].config() if found else None
    results = []
    for model, chosen in zip(request.models, found, strict=True):
        config = chosen.config()
        sets, metrics = _sets(request, chosen), _metrics(request, config)
        translator = Translator(
            model, request.device, request.precision, request.threads, request.search, workers="auto"
        )
        for test in sets:
            results.append(evaluate(translator, chosen, test, metrics))
            try:
                keep(results[-1], chosen, translator.settings, config.tgt_lang)
            except (NmtError, OSError) as error:  # a run that may only be read still has a score
                say(f"warning: the translations are not kept in the run: {error}")
    for path in request.hyps:
        for test in _sets(request, found[0] if found else None):
            results.append(evaluate_file(path, test, _metrics(request, first)))
    return results


def _check(request: Request) -> None:
    if not request.models and not request.hyps:
        raise ConfigError("name a MODEL, or a file of translations with --hyp")
    if not request.models and not request.refs:
        raise ConfigError("--hyp needs the reference to score against: --ref FILE, or a MODEL whose sets -t names")
    if not request.models and not request.tgt_lang:
        raise ConfigError("--tgt-lang is needed where no MODEL tells it: it chooses BLEU's tokenizer")
    if request.src and not request.refs:
        raise ConfigError("--src needs its reference: --ref FILE")
    if request.models and request.refs and not request.src:
        raise ConfigError("--ref needs its source, since a MODEL is to translate it: --src FILE")


def _sets(request: Request, found: Checkpoint | None) -> list[TestSet]:
    config = found.config() if found else None
    language = request.tgt_lang or (config.tgt_lang if config else "")
    if request.refs or found is None or config is None:
        return [file_set(request.src, request.refs, language)]
    return test_sets(config, request.tests, found.run() or Run(config.run_dir))


def _metrics(request: Request, config: Config | None) -> list[Metric]:
    configured = config.metrics if config else {"bleu": {}, "chrf": {}}
    language = request.tgt_lang or (config.tgt_lang if config else "")
    metrics = []
    for name in request.metrics or configured:
        options = dict(configured.get(name, {}))
        if request.lowercase:
            options |= {"case_sensitive": False} if name == "ter" else {"lowercase": True}
        if request.tokenize and name == "bleu":
            options["tokenize"] = request.tokenize
        metrics.append(build(METRICS, Choice(name, options), language))
    return metrics


def _scores(metrics: list[Metric], hypotheses: list[str], test: TestSet) -> list[Score]:
    return [metric(hypotheses, test.references) for metric in metrics]


def keep(result: Result, found: Checkpoint, search: Choice, tgt_lang: str) -> None:
    """Writes translations and scores into the run's evaluate/, if the checkpoint still lies in its run."""
    run = found.run()
    if run is None:
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
