"""The options of variants as their source declares them, without importing it.

Rooms that compute import torch, which takes longer than all else that a command does before its work: so a config is
checked against their source, and a misspelt setting is answered at once.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import inspect
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt import choice
from nmt.choice import Declared

NAMES = {**vars(builtins), **vars(typing), **vars(choice)}  # what annotations of options may use


class _Unclear(Exception):
    """The source cannot be read in this simple way."""


def declared(module: str, table: str) -> Mapping[str, Any]:
    """A table of variants of a module: what stands in its source, or else the imported table itself."""
    spec = importlib.util.find_spec(module)
    try:
        if spec is None or spec.origin is None:
            raise _Unclear
        return _read(ast.parse(Path(spec.origin).read_text(encoding="utf-8")), table)
    except (_Unclear, OSError, ValueError, NameError):
        found: Mapping[str, Any] = getattr(importlib.import_module(module), table)
        return found


def _read(tree: ast.Module, table: str) -> dict[str, Declared]:
    definitions = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in tree.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.target.id != table:
            continue
        if isinstance(node.value, ast.Dict) and all(node.value.keys):
            entries = zip(node.value.keys, node.value.values, strict=True)
            return {ast.literal_eval(key): _variant(value, definitions) for key, value in entries if key}
    raise _Unclear


def _variant(value: ast.expr, definitions: dict[str, Any]) -> Declared:
    if not isinstance(value, ast.Name) or value.id not in definitions:
        raise _Unclear
    node = definitions[value.id]
    function = _constructor(node, definitions)
    parameters, hints = {}, {}
    if function is not None:
        for argument, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
            value_of = inspect.Parameter.empty if default is None else ast.literal_eval(default)
            parameters[argument.arg] = inspect.Parameter(argument.arg, inspect.Parameter.KEYWORD_ONLY, default=value_of)
            if argument.annotation is not None:
                code = compile(ast.Expression(argument.annotation), "annotation", "eval")
                hints[argument.arg] = eval(code, dict(NAMES))
    return Declared(parameters, hints, ast.get_docstring(node) or "")


def _constructor(node: Any, definitions: dict[str, Any]) -> ast.FunctionDef | None:
    """The function that takes the options: the one itself, a class's `__init__`, or that of its first base here."""
    if isinstance(node, ast.FunctionDef):
        return node
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            return item
    bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id in definitions]
    return _constructor(definitions[bases[0]], definitions) if bases else None
