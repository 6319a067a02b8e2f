"""A variant chosen by name: `rotary`, or `{name: rotary, base: 10000}`.

The tables of variants are plain dicts from a name to a constructor. A constructor's keyword-only parameters are
the options, with their defaults; its positional parameters are what the program itself supplies.
"""

from __future__ import annotations

import difflib
import inspect
import math
import operator
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Annotated, Any

from nmt.errors import ConfigError


@dataclass(frozen=True)
class Range:
    """Bounds of a number, or of the length of a list, as an annotation: Annotated[int, Range(ge=1)]."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        bounds = {key: value for key, value in asdict(self).items() if value is not None}
        return {**handler(source), **bounds}

    def allows(self, value: Any) -> bool:
        number = len(value) if isinstance(value, (list, tuple)) else value
        tests = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le}
        return all(test(number, bound) for key, test in tests.items() if (bound := getattr(self, key)) is not None)

    def __str__(self) -> str:
        if self.ge is not None and self.le is not None:
            return f"from {self.ge:.10g} to {self.le:.10g}"
        signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
        bounds = (f"{sign} {bound:.10g}" for key, sign in signs.items() if (bound := getattr(self, key)) is not None)
        return " and ".join(bounds)


Count = Annotated[int, Range(ge=1)]
Natural = Annotated[int, Range(ge=0)]
Positive = Annotated[float, Range(gt=0)]
NotNegative = Annotated[float, Range(ge=0)]
Rate = Annotated[float, Range(ge=0, lt=1)]


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


@dataclass(frozen=True)
class Declared:
    """What is known of a constructor that has not been imported: options, their types, and its docstring."""

    parameters: dict[str, inspect.Parameter]
    hints: dict[str, Any]
    doc: str


Table = Mapping[str, Any]  # of constructors, or of what is declared of them


def options_of(constructor: Any) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of a constructor: what a config may set."""
    if isinstance(constructor, Declared):
        return constructor.parameters
    parameters = inspect.signature(constructor).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def problems(table: Table, choice: Choice, also: Callable[..., Any] | None = None) -> list[tuple[str, str]]:
    """What is wrong with a choice: the option, or nothing for the name, and a sentence. Empty if `build` would do.

    `also` is a constructor whose options every choice of the table has besides its own.
    """
    if choice.name not in table:
        return [("", f"`{choice.name}` is none of: {', '.join(table)}{did_you_mean(choice.name, table)}")]
    constructor = table[choice.name]
    constructors = [constructor, *([also] if also else [])]
    options = {key: option for one in constructors for key, option in options_of(one).items()}
    hints = {key: hint for one in constructors for key, hint in _hints(one).items()}
    found = []
    for key, value in choice.options.items():
        if key not in options:
            known = f"its options are {', '.join(options)}" if options else "it has no options"
            found.append((key, f"`{choice.name}` has no option `{key}`{did_you_mean(key, options)}; {known}"))
        elif not _fits(value, hints.get(key, Any)):
            wanted = describe(hints[key])
            found.append((key, f"`{key}` of `{choice.name}` must be {wanted}, but is {value!r} instead"))
    for key, parameter in options.items():
        if parameter.default is inspect.Parameter.empty and key not in choice.options:
            found.append(("", f"`{choice.name}` needs the option `{key}`"))
    return found


def _hints(constructor: Any) -> dict[str, Any]:
    if isinstance(constructor, Declared):
        return constructor.hints
    function = constructor.__init__ if inspect.isclass(constructor) else constructor
    return typing.get_type_hints(function, include_extras=True)


def resolve(table: Table, choice: Choice, also: Callable[..., Any] | None = None) -> Choice:
    """The same choice with every option written out. The choice must have no `problems`."""
    options = options_of(table[choice.name]) | (options_of(also) if also else {})
    given = ((key, choice.options.get(key, parameter.default)) for key, parameter in options.items())
    filled = {key: list(value) if isinstance(value, tuple) else value for key, value in given}  # as YAML has it
    return Choice(choice.name, filled)


def build(table: Table, choice: Choice, *supplied: Any) -> Any:
    """Calls the constructor named by the choice with what the program supplies and the user's options."""
    found = problems(table, choice)
    if found:
        raise ConfigError("; ".join(sentence for _, sentence in found))
    return table[choice.name](*supplied, **choice.options)


def did_you_mean(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f" (did you mean `{near[0]}`?)" if near else ""


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin is Annotated:
        bounds = [extra for extra in hint.__metadata__ if isinstance(extra, Range)]
        return _fits(value, arguments[0]) and all(bound.allows(value) for bound in bounds)
    if origin is typing.Literal:
        return value in arguments
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, option) for option in arguments)
    if origin is list:
        return isinstance(value, (list, tuple)) and all(_fits(item, arguments[0]) for item in value)
    if origin is tuple:
        same = isinstance(value, (list, tuple)) and len(value) == len(arguments)
        return same and all(_fits(item, option) for item, option in zip(value, arguments, strict=True))
    if hint is None or hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, origin or hint)


def describe(hint: Any) -> str:
    """A type with its bounds in words."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        bounds = [str(extra) for extra in hint.__metadata__ if isinstance(extra, Range)]
        length = ["of length"] if bounds and typing.get_origin(arguments[0]) is list else []
        return " ".join([describe(arguments[0]), *length, *bounds])
    if origin is typing.Literal:
        return " or ".join(map(str, arguments))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(describe, arguments))
    if origin is list:
        return f"a list of {describe(arguments[0])}"
    if origin is tuple:
        return f"a list of {len(arguments)}, each {describe(arguments[0])}"
    if origin is dict:
        return "a mapping"
    if is_dataclass(hint) and hint is not Choice:
        return "settings (a mapping)"
    names = {int: "an integer", float: "a number", str: "text", bool: "true or false", type(None): "null"}
    return {**names, Choice: "blocks with a name"}.get(hint, getattr(hint, "__name__", str(hint)))
