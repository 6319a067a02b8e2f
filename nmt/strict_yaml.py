"""Strict YAML by the core rules of version 1.2: what looks like a word is one, and a key set twice is an error.

PyYAML by itself reads `no` as false, `22:30` as 1350, `1e-3` as a string, and keeps the last of two equal keys.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from nmt.errors import ConfigError

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    """For people: the validation set that was given no name, and is called valid then, is data.valid."""
    return ".".join(str(key) for at, key in enumerate(path) if at == 0 or key != path[at - 1])


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of version 1.2's core schema: `no` is Norwegian, `1e-3` a number, `22:30` a time."""

    yaml_implicit_resolvers = {}  # noqa: RUF012


SCALARS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}
for _kind, _pattern in SCALARS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), None)


def parse_yaml(text: str, name: str, places: dict[KeyPath, str] | None = None) -> Any:
    """One YAML document as plain values; records in `places` the `file:line` of every key."""
    try:
        node = yaml.compose(text, _Loader)
        return None if node is None else _value(node, (), name, places if places is not None else {})
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise ConfigError(f"{where}: is not valid YAML: {problem}") from None
    except RecursionError:
        raise ConfigError(f"{name}: an anchor contains itself; write its content out") from None


def _value(node: yaml.Node, path: KeyPath, name: str, places: dict[KeyPath, str]) -> Any:
    where = f"{name}:{node.start_mark.line + 1}"
    places.setdefault(path, where)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            at = f"{name}:{key_node.start_mark.line + 1}"
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(f"{at}: a key must be a plain word")
            key = key_node.value
            if key in mapping:
                raise ConfigError(f"{at}: `{dotted((*path, key))}` is set twice; keep one of them")
            places[(*path, key)] = at
            mapping[key] = _value(value_node, (*path, key), name, places)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), name, places) for index, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    try:
        return _scalar(node.tag.removeprefix("tag:yaml.org,2002:"), node.value)
    except ValueError:
        raise ConfigError(f"{where}: `{node.value}` is not what its tag {node.tag} says") from None


def _scalar(kind: str, text: str) -> Any:
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if kind == "float":
        return float(text.replace(".inf", "inf").replace(".Inf", "inf").replace(".INF", "inf").replace(".nan", "nan"))
    return text


def dump(tree: Any) -> str:
    """YAML that `load` reads back as the same tree."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


class _Dumper(yaml.SafeDumper):
    """Quotes the strings that YAML 1.1 or 1.2 would read as something else."""


for _kind, _pattern in SCALARS.items():
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"^(?:{_pattern})$"), None)


def _represent_float(dumper: yaml.SafeDumper, value: float) -> yaml.Node:
    text = {float("inf"): ".inf", float("-inf"): "-.inf"}.get(value, repr(value))
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_Dumper.add_representer(float, _represent_float)
