"""The settings of runs: what differs from the defaults, and from each other."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from nmt.choice import Choice, options_of
from nmt.config import DEFAULT_METRICS, Config
from nmt.data.corpora import CorpusOptions
from nmt.data.formats import FORMATS
from nmt.metrics import METRICS
from nmt.strict_yaml import dotted
from nmt.variants import TABLES

Path = tuple[str | int, ...]
Change = tuple[str, str, str]  # setting, value, default; no default where there is none


def changes(config: Config) -> list[Change]:
    """The settings that are not at their defaults, in the order of the config."""
    return [(dotted(path), _text(value), default) for path, value, default in _changes(config, ())]


def compared(configs: Mapping[str, Config]) -> list[tuple[str, list[str]]]:
    """The settings that several configs do not share, each with its value in every one of them."""
    flat = [dict(_flat(config.tree(), ())) for config in configs.values()]
    rows = {path: [_text(tree[path]) if path in tree else "" for tree in flat] for tree in flat for path in tree}
    return [(dotted(path), row) for path, row in rows.items() if len(set(row)) > 1 and path != ("run_dir",)]


def _changes(section: Any, above: Path) -> Iterator[tuple[Path, Any, str]]:
    for item in dataclasses.fields(section):
        value, path = getattr(section, item.name), (*above, item.name)
        if isinstance(value, Choice):
            name = item.default_factory().name if callable(item.default_factory) else ""
            if value.name != name:
                yield path, value.name, name
            yield from _options(TABLES[tuple(map(str, path))], value, path)
        elif dataclasses.is_dataclass(value):
            yield from _changes(value, path)
        elif path == ("metrics",):
            if tuple(value) != DEFAULT_METRICS:
                yield path, list(value), _text(list(DEFAULT_METRICS))
            for name, options in value.items():
                yield from _options(METRICS, Choice(name, options), (*path, name))
        elif path in (("data", "train"), ("data", "valid"), ("data", "test")):
            yield from _corpora(value, path)
        else:
            made = item.default_factory() if callable(item.default_factory) else item.default
            if value != made:
                yield path, value, "" if made is dataclasses.MISSING else _text(made)


def _corpora(corpora: Any, path: Path) -> Iterator[tuple[Path, Any, str]]:
    """Corpora have no default: each as it may stand in a config."""
    for key, choice in corpora.items() if isinstance(corpora, dict) else enumerate(corpora):
        changed = {at[-1]: value for at, value, _ in _options(FORMATS, choice, path, CorpusOptions)}
        yield (*path, key), {"name": choice.name, **changed}, ""


def _options(table: Mapping[str, Any], choice: Choice, path: Path, also: Any = None) -> Iterator[tuple[Path, Any, str]]:
    known = options_of(table[choice.name]) | (options_of(also) if also else {})
    for key, value in choice.options.items():
        default = known[key].default if key in known else inspect.Parameter.empty
        default = list(default) if isinstance(default, tuple) else default  # as YAML has it
        if value != default:
            yield (*path, key), value, "" if default is inspect.Parameter.empty else _text(default)


def _flat(tree: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    if not items:
        yield path, tree
    for key, value in items:
        yield from _flat(value, (*path, key))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
