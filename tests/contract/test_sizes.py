"""Sizes that read well: files under 400 lines, functions under 50, constructors under 8 parameters.

They are intentions. What is larger for a reason stands below with the reason; what has shrunk must leave the list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "nmt"

FILE, FUNCTION, PARAMETERS = 400, 50, 8

LONG_FILES = {"trainer.py": "the loop, read from top to bottom"}
LONG_FUNCTIONS = {
    "cli/translate.py translate": "the options of a command, one after another",
    "cli/evaluate.py evaluate": "likewise",
}
MANY_PARAMETERS = {
    "data/encoding.py Usage": "counts, all from zero",
    "model/layers.py LayerShape": "the numbers of a layer, made in one place and handed on as one",
    "feed.py Ready": "a batch and all that is known of it, made in one place",
    "search/methods.py Sample": "the options of a search, all with defaults",
    "evaluate.py Request": "the options of a command, all with defaults",
    "resume.py TrainState": "a record of what a checkpoint holds, all with defaults",
    "validate.py Validation": "all that a model is measured with, made in one place",
}


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function with its name, methods as Class.method, functions inside functions by themselves."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                yield f"{prefix}{child.name}", child
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)

    yield from walk(ast.parse(path.read_text("utf-8")), "")


def classes(path: Path) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef))


def length(function: ast.FunctionDef) -> int:
    """Lines without the docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno + 1
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        assert first.end_lineno is not None
        lines -= first.end_lineno - first.lineno + 1
    return lines


def parameters(node: ast.ClassDef) -> int:
    """Of the constructor, self not counted; a dataclass has one for each field."""
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.name == "__init__":
            return len(child.args.posonlyargs) + len(child.args.args) + len(child.args.kwonlyargs) - 1
    decorators = {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}
    if not decorators & {"dataclass", "dataclasses.dataclass"}:
        return 0
    return sum(isinstance(child, ast.AnnAssign) for child in node.body)


def sources() -> dict[str, Path]:
    return {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}


def test_files_are_short_or_have_a_reason() -> None:
    long = {name for name, path in sources().items() if len(path.read_text("utf-8").split("\n")) - 1 > FILE}
    assert long == set(LONG_FILES)


def test_functions_are_short_or_have_a_reason() -> None:
    long = {f"{file} {name}" for file, path in sources().items() for name, f in functions(path) if length(f) > FUNCTION}
    assert long == set(LONG_FUNCTIONS)


def test_constructors_take_little_or_have_a_reason() -> None:
    """The sections of a config are its schema, not constructors that anybody calls."""
    many = {
        f"{file} {node.name}"
        for file, path in sources().items()
        if file != "config.py"
        for node in classes(path)
        if parameters(node) > PARAMETERS
    }
    assert many == set(MANY_PARAMETERS)
