"""All tables of variants in one place: checks every choice of a config, and writes configs/reference.yaml."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any

from nmt import config as schema
from nmt.choice import Choice, Declared, Table, build, describe, options_of, problems, resolve
from nmt.config import Config, Override
from nmt.data import filters
from nmt.data.corpora import CorpusOptions
from nmt.data.formats import FORMATS
from nmt.data.languages import not_a_code
from nmt.data.sampling import SAMPLINGS
from nmt.declared import declared
from nmt.errors import ConfigError, NmtError
from nmt.metrics import METRICS
from nmt.settings import Source
from nmt.strict_yaml import dotted
from nmt.tokenizer import TOKENIZERS

# Where a config names a variant, and the table that it names it from.
TABLES: dict[tuple[str, ...], Table] = {
    ("tokenizer",): TOKENIZERS,
    ("model", "position"): declared("nmt.model.position", "POSITIONS"),
    ("train", "optimizer"): declared("nmt.optim", "OPTIMIZERS"),
    ("train", "schedule"): declared("nmt.optim", "SCHEDULES"),
    ("train", "objective"): declared("nmt.loss", "OBJECTIVES"),
    ("train", "subword_sampling"): SAMPLINGS,
    ("search",): declared("nmt.search.methods", "SEARCHES"),
}


def load(file: str, overrides: Sequence[str | Override] = ()) -> Config:
    """Reads and checks a config wholly; every option of every choice is written out in the result.

    Raises ConfigError with all problems, each with its place.
    """
    config, source = schema.load(file, overrides)
    found: list[str] = []
    for path, table in TABLES.items():
        parent = getattr(config, path[0]) if len(path) == 2 else config
        setattr(parent, path[-1], _checked(table, getattr(parent, path[-1]), path, source, found))
    data = config.data
    data.train = [_corpus(choice, ("data", "train", i), source, found) for i, choice in enumerate(data.train)]
    for key in ("valid", "test"):
        sets = getattr(data, key)
        setattr(data, key, {n: _corpus(choice, ("data", key, n), source, found) for n, choice in sets.items()})
    for name, setting in data.filters.items():
        try:
            for choice in filters.choices({name: setting}).values():
                if choice.name == name:
                    _checked(filters.FILTERS, choice, ("data", "filters", name), source, found)
        except ConfigError as error:
            found.append(f"{source.place(('data', 'filters', name))}: {error}")
    for name, options in config.metrics.items():
        resolved = _checked(METRICS, Choice(name, options), ("metrics", name), source, found)
        config.metrics[name] = resolved.options
    found += [] if found else _cross_checks(config, source)
    if found:
        raise ConfigError("\n".join(found))
    return config


def _checked(
    table: Table,
    choice: Choice,
    path: tuple[str | int, ...],
    source: Source,
    found: list[str],
    also: Callable[..., Any] | None = None,
) -> Choice:
    wrong = problems(table, choice, also)
    for key, sentence in wrong:
        found.append(f"{source.place((*path, key) if key else path)}: `{dotted(path)}` {sentence}")
    return choice if wrong else resolve(table, choice, also)


def _corpus(choice: Choice, path: tuple[str | int, ...], source: Source, found: list[str]) -> Choice:
    checked = _checked(FORMATS, choice, path, source, found, CorpusOptions)
    if path[1] != "train" and checked.options.get("weight", 1.0) != 1.0:
        found.append(f"{source.place((*path, 'weight'))}: `{dotted(path)}` has a weight, which is for data.train only")
    return checked


def _cross_checks(config: Config, source: Source) -> list[str]:
    found = _build_errors(config, source)
    tokenizer, sampling = config.tokenizer, build(SAMPLINGS, config.train.subword_sampling)
    if sampling.alpha and tokenizer.name not in (sampling.kind, "ready"):
        found.append(
            f"{source.place(('train', 'subword_sampling'))}: `train.subword_sampling: "
            f"{config.train.subword_sampling.name}` needs tokenizer.name {sampling.kind}, but it is {tokenizer.name}"
        )
    joint = tokenizer.options["tgt"] is None if tokenizer.name == "ready" else tokenizer.options["joint"]
    if config.model.tie == "all" and not joint:
        found.append(
            f"{source.place(('model', 'tie'))}: `model.tie: all` needs one vocabulary for both sides; "
            "set tokenizer.joint: true, or model.tie: decoder"
        )
    size = config.model.dim // config.model.heads
    if config.model.position.name == "rotary" and size % 2:
        found.append(
            f"{source.place(('model', 'position'))}: `model.position: rotary` turns pairs of numbers, so model.dim / "
            f"model.heads must be even, but is {size}; change model.heads"
        )
    limit = config.model.position.options.get("limit")
    longest = filters.longest(config.data.filters)
    if limit is not None and (longest is None or longest > limit):
        found.append(
            f"{source.place(('model', 'position'))}: `model.position` reaches {limit} positions, "
            f"but data.filters.length lets {longest or 'any number of'} pieces pass; lower its max_tokens"
        )
    for key, sets in (("valid", config.data.valid), ("test", config.data.test)):
        found += [
            f"{source.place(('data', key, name))}: `data.{key}` has a set `{name}`; the name becomes part of file "
            "names, so it may hold letters, digits, `_`, `-` and inner dots only"
            for name in sets
            if not re.fullmatch(r"\w[\w-]*(\.[\w-]+)*", name)
        ]
    for key in ("src_lang", "tgt_lang"):
        if wrong := not_a_code(getattr(config, key)):
            found.append(f"{source.place((key,))}: `{key}` {wrong}")
    return found


def _build_errors(config: Config, source: Source) -> list[str]:
    """What constructors refuse of options that have the right types; they say which key it is."""
    made: list[tuple[tuple[str, ...], Table, Choice, tuple[Any, ...]]] = [
        (("metrics", name), METRICS, Choice(name, options), (config.tgt_lang,))
        for name, options in config.metrics.items()
    ]
    made.append((("tokenizer",), TOKENIZERS, config.tokenizer, ()))
    languages = (config.src_lang, config.tgt_lang)
    for name, supplied in (("regex", ()), ("script", (languages,))):
        if choice := filters.choices(config.data.filters).get(name):
            made.append((("data", "filters", name), filters.FILTERS, choice, supplied))
    found = []
    for path, table, choice, supplied in made:
        try:
            build(table, choice, *supplied)
        except NmtError as error:
            found.append(f"{source.place(path)}: {error}")
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
        on = "" if path != ("data", "filters") else " (on)" if name in filters.ON else " (off)"
        lines.append(f"{pad}  # {name}{_options(constructor)}{on}: {_first_line(constructor)}")
    if path == ("data", "train"):
        lines.append(f"{pad}  # any of them {_options(CorpusOptions).strip()}: {_first_line(CorpusOptions)}")
    return lines


def _options(constructor: Any) -> str:
    options = options_of(constructor)
    shown = [f"{n}: {'…' if p.default is inspect.Parameter.empty else _yaml(p.default)}" for n, p in options.items()]
    return f" {{{', '.join(shown)}}}" if shown else ""


def _first_line(constructor: Any) -> str:
    doc = constructor.doc if isinstance(constructor, Declared) else inspect.getdoc(constructor) or ""
    return doc.split("\n\n")[0].replace("\n", " ")


def _yaml(value: Any) -> str:
    if isinstance(value, str):
        return value or '""'
    return json.dumps(value, ensure_ascii=False).replace('"', "")


def _type(hint: Any) -> str:
    """A scalar's type in words; sections, corpora and the like explain themselves."""
    text = describe(hint)
    return "" if any(word in text for word in ("mapping", "list")) else text
