"""The file of a sweep: what is varied, and the runs that come of it."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from nmt import variants
from nmt.choice import Positive, Range
from nmt.config import Config, Override
from nmt.errors import ConfigError
from nmt.run import Run
from nmt.settings import STRICT, Source, checked, read
from nmt.strict_yaml import KeyPath

NAME = re.compile(r"\w[\w.,=+-]*")
OURS = ("run_dir", "seed")  # settings that differ from run to run


@dataclass(kw_only=True)
class File:
    __pydantic_config__ = STRICT
    base: Annotated[str, "the config that is varied"]
    out: Annotated[str, "the directory of all runs and of the table"]
    seeds: Annotated[list[Annotated[int, Range(ge=0, lt=2**32)]], "each variant is trained with each"] = field(
        default_factory=lambda: [1]
    )
    minutes: Annotated[Positive | None, "train.minutes of each run; by default the base's"] = None
    limit: Annotated[Positive | None, "minutes of the whole sweep; what does not fit in is not begun"] = None
    variants: Annotated[dict[str, dict[str, Any] | None], "names to settings that are laid over the base"] = field(
        default_factory=dict
    )
    grid: Annotated[dict[str, list[Any]], "settings to lists of values: all combinations are variants"] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class Job:
    """One run: a variant and a seed."""

    variant: str
    config: Config

    @property
    def key(self) -> tuple[str, int]:
        return self.variant, self.config.seed

    @property
    def name(self) -> str:
        return f"{self.variant}, seed {self.config.seed}"

    @property
    def run(self) -> Run:
        return Run(self.config.run_dir)

    @property
    def file(self) -> Path:
        """Its config, as the run is trained with it."""
        return self.run.directory.with_suffix(".yaml")

    @property
    def log(self) -> Path:
        """All that its process says."""
        return self.run.directory.with_suffix(".log")

    @property
    def digest(self) -> str:
        """Names what shapes the result. Test sets do not: a sweep never looks at them."""
        return dataclasses.replace(self.config, data=dataclasses.replace(self.config.data, test={})).digest()


@dataclass
class Sweep:
    file: str
    out: Path
    limit: float | None  # minutes
    settings: dict[str, list[Override]]  # by variant
    jobs: list[Job]  # all variants with the first seed, then with the second

    @property
    def metric(self) -> str:
        return self.jobs[0].config.train.metric

    @property
    def valid(self) -> str:
        """The set that decides."""
        return next(iter(self.jobs[0].config.data.valid))


def load(name: str) -> Sweep:
    """Reads the file and checks all that it would train. Raises ConfigError with all problems, each with its place."""
    source = read(name)
    if "base" not in source.tree and "data" in source.tree:
        raise ConfigError(
            f"{name}: is a training config; a sweep names it as its `base` (`nmt config sweep` prints an example)"
        )
    file = checked(File, source)
    minutes = [] if file.minutes is None else [Override("train.minutes", file.minutes, source.place(("minutes",)))]
    variants.load(file.base, minutes)  # its own mistakes come before those of variants
    settings, places = _settings(file, source)
    found, configs = list(_problems(file, source, settings)), {}
    for variant, overrides in settings.items() if not found else ():
        try:
            configs[variant] = variants.load(file.base, [*minutes, *overrides])
        except ConfigError as error:
            lines = str(error).split("\n")
            found += [x if x.startswith(f"{name}:") else f"{places[variant]}: `{variant}`: {x}" for x in lines]
    if found := list(dict.fromkeys(found)) or list(_incomparable(configs, places)):
        raise ConfigError("\n".join(found))
    jobs = [
        Job(variant, dataclasses.replace(config, seed=seed, run_dir=str(Path(file.out, variant, f"seed-{seed}"))))
        for seed in file.seeds
        for variant, config in configs.items()
    ]
    return Sweep(name, Path(file.out), file.limit, settings, jobs)


def _settings(file: File, source: Source) -> tuple[dict[str, list[Override]], dict[str, str]]:
    """By variant, what it lays over the base; and its place."""
    asked: list[tuple[str, dict[str, Any], KeyPath]] = [
        (name, tree or {}, ("variants", name)) for name, tree in file.variants.items()
    ]
    asked += [(_name(combination), combination, ("grid",)) for combination in _combinations(file.grid)]
    settings: dict[str, list[Override]] = {}
    for name, tree, path in asked:
        if name in settings:
            raise ConfigError(f"{source.place(path)}: two variants are called `{name}`; name them under `variants`")
        settings[name] = [o for key, value in tree.items() for o in _flat(value, (*path, key), key, source)]
    return settings, {name: source.place(path) for name, _, path in asked}


def _combinations(grid: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()) if grid else ():
        yield dict(zip(grid, values, strict=True))


def _name(combination: Mapping[str, Any]) -> str:
    """dropout=0.1,lr=0.003: the last word of a setting, where it is enough."""
    last = [key.rpartition(".")[2] for key in combination]
    keys = last if len(set(last)) == len(last) else list(combination)
    return ",".join(f"{key}={_word(value)}" for key, value in zip(keys, combination.values(), strict=True))


def _flat(value: Any, path: KeyPath, key: str, source: Source) -> Iterator[Override]:
    """{dropout: 0.1} under `model` is model.dropout; lists and {} replace what is there."""
    if isinstance(value, dict) and value:
        for name in sorted(value, key=lambda name: name != "name"):  # a new name drops the old one's options
            yield from _flat(value[name], (*path, name), f"{key}.{name}", source)
    else:
        yield Override(key, copy.deepcopy(value), source.place(path))


def _word(value: Any) -> str:
    """A value as part of a variant's name."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")


def _problems(file: File, source: Source, settings: Mapping[str, list[Override]]) -> Iterator[str]:
    if not settings:
        yield f"{source.file}: has no variants; name them under `variants`, or settings and their values under `grid`"
    if not file.seeds or len(set(file.seeds)) < len(file.seeds):
        yield f"{source.place(('seeds',))}: `seeds` must list one or several, each once"
    for key, values in file.grid.items():
        if not values:
            yield f"{source.place(('grid', key))}: `{key}` has no values to try"
    for name in file.variants:
        if not NAME.fullmatch(name):
            yield (
                f"{source.place(('variants', name))}: a variant is called `{name}`; the name becomes that of a "
                "directory, so it may hold letters, digits and _ - . , = + only, and begins with a letter or digit"
            )
    for key, _, at in (override for overrides in settings.values() for override in overrides):
        if key in OURS:
            yield f"{at}: `{key}` is set by the sweep itself; use `{'seeds' if key == 'seed' else 'out'}`"
        elif not all(key.split(".")):
            yield f"{at}: `{key}` is no setting; expected names with dots between them, like train.steps"


def _incomparable(configs: Mapping[str, Config], places: Mapping[str, str]) -> Iterator[str]:
    """Variants that are one and the same, or whose scores mean different things."""
    first = next(iter(configs))
    seen: dict[str, str] = {}
    for name, config in configs.items():
        if (other := seen.setdefault(json.dumps(config.tree(), sort_keys=True), name)) != name:
            yield f"{places[name]}: `{name}` is the same config as `{other}`; keep one of them"
        if not config.data.valid:
            yield f"{places[name]}: `{name}` has no data.valid, which variants are compared on"
            return
        mine, its = _measure(config), _measure(configs[first])
        if changed := [key for key in mine if mine[key] != its.get(key)]:
            yield (
                f"{places[name]}: `{name}` has another {' and '.join(changed)} than `{first}`, "
                "so that their scores cannot be compared; give all variants the same"
            )


def _measure(config: Config) -> dict[str, Any]:
    """What gives a score its meaning."""
    metric, data = config.train.metric, config.data
    return {
        "train.metric": metric,
        f"metrics.{metric}": config.metrics.get(metric),
        "data.valid": (data.root, next(iter(data.valid.values()))),
        "tgt_lang": config.tgt_lang,
        "tokenizer": config.tokenizer if metric == "nll" else None,  # which is a mean over its pieces
    }
