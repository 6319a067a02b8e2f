"""Translates test sets and scores them against raw references; keeps the results with the run."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nmt import __version__, checkpoint
from nmt.checkpoint import Checkpoint
from nmt.choice import Choice, build
from nmt.compare import (
    Comparison,
    Line,
    by_source_length,
    by_word_frequency,
    check_numbers,
    letter,
    most_different,
    worst,
)
from nmt.config import DEFAULT_METRICS, Config
from nmt.data.languages import base_language, not_a_code, words
from nmt.data.prepare import open_prepared, read_set
from nmt.errors import ConfigError, DataError, NmtError
from nmt.files import read_lines, write_file
from nmt.lines import COPIED, EMPTY, REPEATED, faults
from nmt.metrics import METRICS, Metric, Score, published
from nmt.progress import bar, say
from nmt.run import Run
from nmt.tokenizer import blank
from nmt.translate import Translator, replaced

VALID = "valid"
RATIO = "length_ratio"
SHOWN = 5  # lines on which two systems differ most
Choices = Mapping[str, dict[str, Any]]  # of metrics, each with its options


@dataclass
class TestSet:
    """Source lines, and one list of lines for each reference translation, as they stand in the files."""

    name: str
    sources: list[str]  # none where only references are given
    references: list[list[str]]
    tgt_lang: str
    files: list[str] = field(default_factory=list)  # of a set that the command line names by its files


@dataclass
class Result:
    """The scores of one system on one set, and all that is needed to make them again."""

    system: str
    test: str
    hypotheses: list[str] = field(repr=False)
    made_by: dict[str, Any]
    scores: list[Score] = field(default_factory=list)
    output: dict[str, float] = field(default_factory=dict)  # what the translations look like
    against: str = ""  # the system that p-values compare with

    def tree(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "test": self.test,
            "lines": len(self.hypotheses),
            **self.made_by,
            **({"against": self.against} if self.against else {}),
            "output": self.output,
            "scores": {score.name: score.tree() for score in self.scores},
        }

    def text(self) -> str:
        """For people: a line for the system, one for each score, two for how the translations look and were made."""
        lines = [f"{self.system}  {self.test}, {len(self.hypotheses):,} lines"]
        for score in self.scores:
            interval = " [{:.2f}, {:.2f}]".format(*score.interval) if score.interval else ""
            lines.append(f"  {score.name} {score.value:.2f}{interval}  {score.signature}")
        shares = [f"{name} {value:.1%}" for name, value in self.output.items() if name != RATIO]
        ratio = [f"{RATIO.replace('_', ' ')} {self.output[RATIO]:.3f}"] if RATIO in self.output else []
        lines.append(f"  {'  '.join([*ratio, *shares])}")
        made_by = dict(self.made_by)
        if "search" in made_by:
            made_by["search"] = " ".join(f"{key}:{value}" for key, value in made_by["search"].items())
        if "step" in made_by:  # of a file of translations nothing is known
            lines.append("  " + "|".join(f"{key}:{value}" for key, value in made_by.items()))
        return "\n".join(lines)


@dataclass
class Evaluation:
    """All systems on one set: several with their comparison, one with its worst lines where these are wanted."""

    results: list[Result]
    comparison: Comparison | None = None
    worst: list[Line] = field(default_factory=list)

    def trees(self) -> list[dict[str, Any]]:
        if self.comparison is None:
            lines = {"worst": [line._asdict() for line in self.worst]} if self.worst else {}
            return [{**result.tree(), **lines} for result in self.results]
        return [
            {**result.tree(), "comparison": self.comparison.tree(number)} for number, result in enumerate(self.results)
        ]

    def text(self) -> str:
        if self.comparison is None:
            return "\n\n".join([*(one.text() for one in self.results), *(line.text("") for line in self.worst)])
        named = [f"{letter(number)}: {result.text()}" for number, result in enumerate(self.results)]
        return "\n".join([*named, "", self.comparison.text(), ""])


def config_set(config: Config, name: str, run: Run) -> TestSet:
    """A named set of a config; the validation set is the one that `run` has prepared. Raises ConfigError."""
    if name in config.data.test:
        pairs = [(unit.src, unit.tgts) for unit in read_set(config, name)]
    elif name in config.data.valid or (name == VALID and config.data.valid):
        stores = open_prepared(run).valid()
        if not stores:
            raise DataError("the validation set holds no lines")
        pairs = list(stores.get(name, next(iter(stores.values()))).texts())
    else:
        known = ", ".join(dict.fromkeys([*config.data.test, *config.data.valid, VALID]))
        raise ConfigError(
            f"-t {name}: there is no such set; the config has {known}, sacreBLEU has sets with names like wmt20/en-de"
        )
    references = [list(column) for column in zip(*(tgts for _, tgts in pairs), strict=True)]
    return TestSet(name, [src for src, _ in pairs], references, config.tgt_lang)


def file_set(src: str | None, refs: list[str], tgt_lang: str) -> TestSet:
    """A set from files. Raises DataError when their line counts differ."""
    names = [*([src] if src else []), *refs]
    columns = [list(read_lines(name)) for name in names]
    check_counts(names, columns)
    if not columns[0]:
        raise DataError(f"{names[0]}: holds no lines")
    return TestSet(Path(refs[0]).name, columns[0] if src else [], columns[1:] if src else columns, tgt_lang, names)


def check_counts(names: list[str], columns: list[list[str]]) -> None:
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(columns[0]):
            raise DataError(
                f"{names[0]} has {len(columns[0]):,} lines, but {name} has {len(column):,}; "
                "they must be aligned line by line"
            )


def translated(translator: Translator, found: Checkpoint, test: TestSet) -> Result:
    """What a model makes of a set."""
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
    return Result(str(found.directory), test.name, hypotheses, made_by)


def read_hypotheses(path: str, test: TestSet) -> Result:
    """A file of translations, ours or anybody's."""
    hypotheses = list(read_lines(path))
    check_counts([path, f"the test set {test.name}"], [hypotheses, test.references[0]])
    return Result(path, test.name, hypotheses, {"nmt": __version__})


@dataclass
class Request:
    """What `nmt evaluate` is asked for. Fields that are empty leave the choice to the config of the first model."""

    models: list[str] = field(default_factory=list)
    hyps: list[str] = field(default_factory=list)  # files of translations to score
    tests: list[str] = field(default_factory=list)  # sets of the config, or sacrebleu's
    src: str | None = None
    refs: list[str] = field(default_factory=list)  # files, instead of `tests`
    tgt_lang: str | None = None
    metrics: list[str] = field(default_factory=list)
    tokenize: str | None = None
    lowercase: bool = False
    confidence: bool = False  # intervals for a single system too
    show: int | None = None  # lines of each system that differ most from the first's, or that are a single one's worst
    search: dict[str, Any] = field(default_factory=dict)
    device: str = "auto"
    precision: str = "auto"
    threads: str | int = "auto"


def run(request: Request) -> list[Evaluation]:
    """Every model and every file of translations on every set, compared with the first of them if there are several.

    Sets and metrics are those of the first model. Raises NmtError before any work where it can.
    """
    _check(request)
    found = [checkpoint.find(model) for model in request.models]
    config = found[0].config() if found else None
    tests = _sets(request, found)
    _check_languages(request, found, tests)
    choices = _choices(request, config)
    metrics = [[build(METRICS, Choice(*choice), test.tgt_lang) for choice in choices.items()] for test in tests]
    from_files = [[read_hypotheses(path, test) for path in request.hyps] for test in tests]
    from_models: list[list[Result]] = [[] for _ in tests]
    for chosen in found:
        model = str(chosen.directory)  # that of a run may be another by now
        translator = Translator(
            model, request.device, request.precision, request.threads, request.search, workers="auto"
        )
        for results, test in zip(from_models, tests, strict=True):
            results.append(translated(translator, chosen, test))
    by_test = [of_models + of_files for of_models, of_files in zip(from_models, from_files, strict=True)]
    seen = _seen(found, tests, by_test) if len(by_test[0]) > 1 else None
    evaluations = []
    for test, of_test, results in zip(tests, metrics, by_test, strict=True):
        evaluations.append(_evaluation(test, of_test, results, seen, request))
        for result, chosen in zip(results, found, strict=False):  # the models are first
            try:
                keep(result, chosen, test, choices)
            except (NmtError, OSError) as error:  # a run that may only be read still has a score
                say(f"warning: the translations are not kept in the run: {error}")
    return evaluations


def _check(request: Request) -> None:
    if request.tgt_lang and (wrong := not_a_code(request.tgt_lang)):
        raise ConfigError(f"--tgt-lang {wrong}")
    published_only = bool(request.tests) and all("/" in name for name in request.tests)
    if not request.models and not request.hyps:
        raise ConfigError("name a MODEL, or a file of translations with --hyp")
    if request.tests and (request.src or request.refs):
        raise ConfigError("-t names a set, and --src and --ref its files; give one or the other")
    if not request.models and not request.refs and not published_only:
        raise ConfigError(
            "--hyp needs what to score against: --ref FILE, a set of sacreBLEU's (-t wmt20/en-de), "
            "or a MODEL whose sets -t names"
        )
    if not request.models and not request.tgt_lang and not published_only:
        raise ConfigError("--tgt-lang is needed where no MODEL tells it: it chooses BLEU's tokenizer")
    if request.src and not request.refs:
        raise ConfigError("--src needs its reference: --ref FILE")
    if request.models and request.refs and not request.src:
        raise ConfigError("--ref needs its source, since a MODEL is to translate it: --src FILE")


def _check_languages(request: Request, found: list[Checkpoint], tests: list[TestSet]) -> None:
    for model, chosen in zip(request.models, found, strict=True):
        language = chosen.config().tgt_lang
        others = [test for test in tests if base_language(test.tgt_lang) != base_language(language)]
        if others:
            named = ", ".join(f"{test.name} ({test.tgt_lang})" for test in others)
            say(f"warning: {model} translates into {language}, which is not the language of the references: {named}")


def _sets(request: Request, found: list[Checkpoint]) -> list[TestSet]:
    config = found[0].config() if found else None
    language = request.tgt_lang or (config.tgt_lang if config else "")
    if request.refs:
        return [file_set(request.src, request.refs, language)]
    names = request.tests or list(config.data.test if config else ())
    if not names:
        raise ConfigError("the config has no data.test; name files with --src and --ref, or the set with -t valid")
    sets = []
    for name in names:
        if config is None or "/" in name:  # which no name in a config has
            files = published(name)
            sets.append(
                replace(file_set(files.src, files.refs, request.tgt_lang or files.tgt_lang), name=name, files=[])
            )
        else:
            test = config_set(config, name, found[0].run() or Run(config.run_dir))
            sets.append(replace(test, tgt_lang=language))
    return sets


def _choices(request: Request, config: Config | None) -> dict[str, dict[str, Any]]:
    configured = (config and config.metrics) or {name: {} for name in DEFAULT_METRICS}
    choices = {}
    for name in request.metrics or configured:
        choices[name] = dict(configured.get(name, {}))
        if request.lowercase:
            choices[name] |= {"case_sensitive": False} if name == "ter" else {"lowercase": True}
        if request.tokenize and name == "bleu":
            choices[name]["tokenize"] = request.tokenize
    return choices


def _evaluation(
    test: TestSet, metrics: list[Metric], results: list[Result], seen: Mapping[str, int] | None, request: Request
) -> Evaluation:
    """Measures what the systems have made of a set."""
    systems = [result.hypotheses for result in results]
    if len(systems) > 1 or request.confidence:
        by_metric = [metric.resampled(systems, test.references) for metric in metrics]
    else:
        by_metric = [[metric(systems[0], test.references)] for metric in metrics]
    for result, *scores in zip(results, *by_metric, strict=True):
        result.scores, result.output = scores, _output(result.hypotheses, test, scores)
    if len(systems) == 1:
        return Evaluation(
            results, worst=worst(test.sources, test.references, systems[0], request.show) if request.show else []
        )
    for result in results[1:]:
        result.against = results[0].system
    sources, references = test.sources, test.references
    show = SHOWN if request.show is None else request.show
    return Evaluation(
        results,
        Comparison(
            results[0].system,
            [result.scores for result in results],
            by_source_length(sources, references, systems, metrics[0]) if sources else [],
            by_word_frequency(references[0], systems, seen) if seen is not None else [],
            [check_numbers(sources, references, system) for system in systems],
            [most_different(sources, references, systems[0], system, show) for system in systems],
        ),
    )


def _output(hypotheses: list[str], test: TestSet, scores: list[Score]) -> dict[str, float]:
    """What the translations look like: their length, and shares of lines; those of blank lines have no faults."""
    found: Counter[str] = Counter()
    for source, text, refs in zip(
        test.sources or test.references[0], hypotheses, zip(*test.references, strict=True), strict=True
    ):
        found["exact"] += text.strip() in map(str.strip, refs)
        if not blank(source):
            tokens = text.split() if " " in text.strip() else text  # not all scripts have words between spaces
            found.update(faults(source if test.sources else "", text, tokens))
    kinds = {"exact": "exact", "empty": EMPTY, "repeated": REPEATED} | ({"copied": COPIED} if test.sources else {})
    shares = {name: found[kind] / len(hypotheses) for name, kind in kinds.items()}
    ratios = [score.length_ratio for score in scores if score.length_ratio is not None]
    return {RATIO: ratios[0], **shares} if ratios else shares


def _seen(found: list[Checkpoint], tests: list[TestSet], by_test: list[list[Result]]) -> Counter[str] | None:
    """How often the training data of the first model has each word that matters here; None if it is not there."""
    run = found[0].run() if found else None
    if run is None:
        return None
    texts = [*(test.references[0] for test in tests), *(one.hypotheses for results in by_test for one in results)]
    wanted = {word for lines in texts for line in lines for word in words(line)}
    with contextlib.suppress(DataError):  # the prepared data may be gone
        pairs = open_prepared(run).train()
        counts: Counter[str] = Counter()
        for _, tgts in bar(pairs.texts(), "counting words", "pairs", len(pairs)):
            for tgt in tgts:
                counts.update(filter(wanted.__contains__, words(tgt)))
        return counts
    return None


def keep(result: Result, found: Checkpoint, test: TestSet, choices: Choices) -> None:
    """Writes translations and scores into the run's evaluate/, if the checkpoint still lies in its run.

    What was made otherwise than the config says has a digest of that in its name, so that nothing else is overwritten.
    """
    run, config = found.run(), found.config()
    if run is None:
        return
    directory = run.evaluate
    directory.mkdir(exist_ok=True)
    search = result.made_by["search"]
    named = {key: search[key] for key in ("name", "beam") if key in search}
    settings = [
        (search, replaced(config.search, named).tree()),
        (choices, config.metrics),
        (test.tgt_lang, config.tgt_lang),
        (test.files, []),
        (result.made_by["precision"], found.precision("auto")),
    ]
    other = [is_so for is_so, usual in settings if is_so != usual]
    digest = f".{hashlib.sha256(json.dumps(other, sort_keys=True).encode()).hexdigest()[:6]}" if other else ""
    name = f"{test.name.replace('/', '.')}.{found.directory.name}.{''.join(map(str, named.values()))}{digest}"
    lines, scores = (directory / f"{name}.{ending}" for ending in (config.tgt_lang, "json"))
    texts, tree = "".join(f"{line}\n" for line in result.hypotheses).encode(), result.tree()
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):  # most often nothing is there yet
        if lines.read_bytes() == texts:  # then the intervals of an earlier evaluation hold for this one
            for metric, score in json.loads(scores.read_bytes())["scores"].items():
                now = tree["scores"][metric]
                if "interval" in score.keys() - now.keys() and score["value"] == now["value"]:
                    now.update({key: score[key] for key in ("signature", "interval")})
    with write_file(lines) as stream:
        stream.write(texts)
    with write_file(scores) as stream:
        stream.write(json.dumps(tree, indent=1, ensure_ascii=False).encode())
