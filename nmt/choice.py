"""A variant chosen by name: `rotary`, or `{name: rotary, base: 10000}`.

The tables of variants are plain dicts from a name to a constructor. A constructor's keyword-only parameters are
the options, with their defaults; its positional parameters are what the program itself supplies.
"""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nmt.errors import ConfigError


@dataclass(frozen=True)
class Choice:
    """A name and its options, as read from a config. An empty name stands for the default of its field."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, value: Any) -> Choice:
        """From `name`, `{name: ..., option: ...}` or, where a default name is known, `{option: ...}`."""
        if isinstance(value, Choice):
            return value
        if isinstance(value, str):
            return cls(value)
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            name = value.get("name", "")
            if isinstance(name, str):
                return cls(name, {key: item for key, item in value.items() if key != "name"})
        raise ValueError("expected a name, or a mapping with `name` and options")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> dict[str, Any]:
        return {"type": "function-plain", "function": {"type": "no-info", "function": cls.read}}

    def tree(self) -> dict[str, Any]:
        return {"name": self.name, **self.options}

    def __str__(self) -> str:
        options = ", ".join(f"{key} {value}" for key, value in self.options.items())
        return f"{self.name} ({options})" if options else self.name


Table = Mapping[str, Callable[..., Any]]


def options_of(constructor: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of a constructor: what a config may set."""
    parameters = inspect.signature(constructor).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def problems(table: Table, choice: Choice) -> list[str]:
    """What is wrong with a choice, a sentence each; empty when `build` would accept it."""
    if choice.name not in table:
        return [f"`{choice.name}` is none of: {', '.join(table)}{did_you_mean(choice.name, table)}"]
    constructor = table[choice.name]
    options = options_of(constructor)
    hints = typing.get_type_hints(constructor if not inspect.isclass(constructor) else constructor.__init__)
    found = []
    for key, value in choice.options.items():
        if key not in options:
            known = f"its options are {', '.join(options)}" if options else "it has no options"
            found.append(f"`{choice.name}` has no option `{key}`{did_you_mean(key, options)}; {known}")
        elif not _fits(value, hints.get(key, Any)):
            found.append(f"`{key}` of `{choice.name}` must be {_describe(hints[key])}, but is {value!r} instead")
    for key, parameter in options.items():
        if parameter.default is inspect.Parameter.empty and key not in choice.options:
            found.append(f"`{choice.name}` needs the option `{key}`")
    return found


def resolve(table: Table, choice: Choice) -> Choice:
    """The same choice with every option written out. The choice must have no `problems`."""
    options = options_of(table[choice.name])
    filled = {key: choice.options.get(key, parameter.default) for key, parameter in options.items()}
    return Choice(choice.name, filled)


def build(table: Table, choice: Choice, *supplied: Any) -> Any:
    """Calls the constructor named by the choice with what the program supplies and the user's options."""
    found = problems(table, choice)
    if found:
        raise ConfigError("; ".join(found))
    return table[choice.name](*supplied, **choice.options)


def did_you_mean(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _fits(value: Any, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if hint is Any:
        return True
    if origin is typing.Literal:
        return value in typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    if origin in (list, tuple):
        inner = typing.get_args(hint)[0]
        return isinstance(value, (list, tuple)) and all(_fits(item, inner) for item in value)
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def _describe(hint: Any) -> str:
    origin = typing.get_origin(hint)
    if origin is typing.Literal:
        return " or ".join(map(repr, typing.get_args(hint)))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_describe(option) for option in typing.get_args(hint))
    if origin in (list, tuple):
        return f"a list of {_describe(typing.get_args(hint)[0])}"
    names = {int: "an integer", float: "a number", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(hint, getattr(hint, "__name__", str(hint)))
