"""All tables of variants in one place: checks every choice of a config, and writes configs/reference.yaml."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from typing import Any

from nmt import config as schema
from nmt.choice import Choice, Table, options_of, problems, resolve
from nmt.config import Config, Source
from nmt.data import filters
from nmt.data.formats import FORMATS
from nmt.errors import ConfigError
from nmt.loss import OBJECTIVES
from nmt.metrics import METRICS
from nmt.model.position import POSITIONS
from nmt.optim import OPTIMIZERS, SCHEDULES
from nmt.search import SEARCHES
from nmt.strict_yaml import dotted
from nmt.tokenizer import TOKENIZERS

# Where a config names a variant, and the table that it names it from.
TABLES: dict[tuple[str, ...], Table] = {
    ("tokenizer",): TOKENIZERS,
    ("model", "position"): POSITIONS,
    ("train", "optimizer"): OPTIMIZERS,
    ("train", "schedule"): SCHEDULES,
    ("train", "objective"): OBJECTIVES,
    ("search",): SEARCHES,
}


def load(file: str, overrides: list[str] | tuple[str, ...] = ()) -> Config:
    """Reads and checks a config wholly; every option of every choice is written out in the result.

    Raises ConfigError with all problems, each with its place.
    """
    config, source = schema.load(file, overrides)
    found: list[str] = []
    for path, table in TABLES.items():
        parent = getattr(config, path[0]) if len(path) == 2 else config
        setattr(parent, path[-1], _checked(table, getattr(parent, path[-1]), path, source, found))
    data = config.data
    data.train = [_checked(FORMATS, choice, ("data", "train", i), source, found) for i, choice in enumerate(data.train)]
    for key in ("valid", "test"):
        sets = getattr(data, key)
        checked = {name: _checked(FORMATS, c, ("data", key, name), source, found) for name, c in sets.items()}
        setattr(data, key, checked)
    for name, choice in filters.choices(data.filters).items():
        _checked(filters.FILTERS, choice, ("data", "filters", name), source, found)
    for name, options in config.metrics.items():
        resolved = _checked(METRICS, Choice(name, options), ("metrics", name), source, found)
        config.metrics[name] = resolved.options
    found += [] if found else _cross_checks(config, source)
    if found:
        raise ConfigError("\n".join(found))
    return config


def _checked(table: Table, choice: Choice, path: tuple[str | int, ...], source: Source, found: list[str]) -> Choice:
    wrong = problems(table, choice)
    found += [f"{source.place(path)}: `{dotted(path)}` {problem}" for problem in wrong]
    return choice if wrong else resolve(table, choice)


def _cross_checks(config: Config, source: Source) -> list[str]:
    found = []
    if config.model.tie == "all" and not config.tokenizer.options["joint"]:
        found.append(
            f"{source.place(('model', 'tie'))}: `model.tie: all` needs one vocabulary for both sides; "
            "set tokenizer.joint: true, or model.tie: decoder"
        )
    limit = config.model.position.options.get("limit")
    length = filters.choices(config.data.filters).get("length")
    longest = length.options.get("max_tokens", filters.Length().max_tokens) if length else None
    if limit is not None and (longest is None or longest > limit):
        found.append(
            f"{source.place(('model', 'position'))}: `model.position` reaches {limit} positions, "
            f"but data.filters.length lets {longest or 'any number of'} pieces pass; lower its max_tokens"
        )
    beam = config.search.options.get("beam", 1)
    if beam < 1:
        found.append(f"{source.place(('search', 'beam'))}: `search.beam` must be at least 1, but is {beam} instead")
    return found


def reference() -> str:
    """The text of configs/reference.yaml: every key with its type, default and explanation."""
    head = (
        "# Every setting with its type, default and meaning. Generated from the schema; a test keeps it true.\n"
        "# A setting marked `required` has no default. Variants are listed with their own options.\n"
    )
    return head + "\n".join(_section(Config, 0, ())) + "\n"


def _section(section: Any, depth: int, path: tuple[str, ...]) -> list[str]:
    lines = []
    hints = typing.get_type_hints(section, include_extras=True)
    for item in dataclasses.fields(section):
        hint, here, pad = hints[item.name], (*path, item.name), "  " * depth
        bare = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
        if dataclasses.is_dataclass(bare) and bare is not Choice:
            lines += [f"{pad}{item.name}:", *_section(bare, depth + 1, here)]
            continue
        lines += _setting(item, hint, here, pad)
    return lines


def _setting(item: Any, hint: Any, path: tuple[str, ...], pad: str) -> list[str]:
    doc = next((x for x in getattr(hint, "__metadata__", ()) if isinstance(x, str)), "")
    table = TABLES.get(path)
    if item.default is not dataclasses.MISSING:
        default = _yaml(item.default)
    elif item.default_factory is not dataclasses.MISSING:
        made = item.default_factory()
        default = _yaml(made.name if isinstance(made, Choice) else made)
    else:
        default = "# required"
    notes = [note for note in (doc, "" if table else _type(hint)) if note]
    lines = [f"{pad}{item.name}: {default}" + (f"  # {'; '.join(notes)}" if notes else "")]
    tables = {("data", "filters"): filters.FILTERS, ("metrics",): METRICS, ("data", "train"): FORMATS}
    for name, constructor in (table or tables.get(path) or {}).items():
        lines.append(f"{pad}  # {name}{_options(constructor)}: {_first_line(constructor)}")
    return lines


def _options(constructor: Any) -> str:
    options = options_of(constructor)
    shown = [f"{n}: {'…' if p.default is inspect.Parameter.empty else _yaml(p.default)}" for n, p in options.items()]
    return f" {{{', '.join(shown)}}}" if shown else ""


def _first_line(constructor: Any) -> str:
    return (inspect.getdoc(constructor) or "").split("\n\n")[0].replace("\n", " ")


def _yaml(value: Any) -> str:
    if isinstance(value, str):
        return value or '""'
    return json.dumps(value, ensure_ascii=False).replace('"', "")


def _type(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        bounds = next((x for x in hint.__metadata__ if isinstance(x, schema.Range)), None)
        limits = [f"{sign} {value:g}" for sign, value in _bounds(bounds)] if bounds else []
        return " ".join([_type(arguments[0]), *limits])
    if origin is typing.Literal:
        return " | ".join(map(str, arguments))
    if origin is not None and (origin is typing.Union or str(origin) == "<class 'types.UnionType'>"):
        return " | ".join(_type(argument) for argument in arguments)
    names = {int: "integer", float: "number", str: "text", bool: "true | false", type(None): "null"}
    return names.get(hint, "")


def _bounds(bounds: schema.Range) -> list[tuple[str, float]]:
    signs = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))
    return [(sign, getattr(bounds, key)) for key, sign in signs if getattr(bounds, key) is not None]
