"""The plan of the house: a room imports only rooms to its left, and heavy packages only where they belong.

Imports are read from the source, those inside functions too; `if TYPE_CHECKING:` blocks are left out.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from nmt import choice

PACKAGE = Path(__file__).parents[2] / "nmt"
README = PACKAGE.parent / "README.md"


def plan() -> list[list[set[str]]]:
    """The stages from left to right, as the README draws them; the groups of a stage never import each other.

    `a, b -> c | d, e` is [[{a, b}], [{c}, {d, e}]], with an arrow of one character.
    """
    (drawing,) = re.findall(r"^`([^`]*data \| model[^`]*)`$", README.read_text("utf-8"), re.M)  # a paragraph of its own
    return [[set(re.findall(r"\w+", group)) for group in stage.split("|")] for stage in drawing.split("→")]


STAGES = plan()
EXEMPT = {"__init__", "__main__"}  # the package itself, which loads lazily, and `python -m nmt`

TORCH_FREE = {
    *("errors", "files", "signals", "strict_yaml", "settings", "config", "choice"),
    *("run", "progress", "tokenizer", "data", "metrics", "rows", "blocks", "lines", "compare", "sweep"),
}
WITH_TORCH = {"data.batches"}  # in a room otherwise free of it
# Packages, and the only rooms that may import them.
OWNERS = {
    "typer": {"cli"},
    "yaml": {"strict_yaml"},
    "pydantic": {"settings"},
    "sentencepiece": {"tokenizer"},
    "sacrebleu": {"metrics"},
    "datasets": {"data"},
    "tqdm": {"progress"},
    "pyarrow": {"data", "files"},  # files: its zstd, loaded only for a file packed so
    "polib": {"data"},
    "google": {"tokenizer"},  # protobuf, for what a sentencepiece model holds
    "safetensors": {"checkpoint"},
    "ctranslate2": {"engine"},
    "plotly": {"report"},
}
# Rooms and modules that take plain numbers, never a config or a part of one.
PLAIN = {"model", "loss", "optim", "search", "data.plan", "data.batches"}


def module_name(path: Path) -> str:
    """nmt/data/plan.py -> data.plan; nmt/data/__init__.py -> data."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def is_type_checking(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return name == "TYPE_CHECKING"


def imports(node: ast.AST) -> list[str]:
    """Dotted names of all that is imported; `from a import b` counts as a.b."""
    found = []
    for child in ast.iter_child_nodes(node):
        if is_type_checking(child):
            assert isinstance(child, ast.If)
            for other in child.orelse:
                found += imports(other)
        elif isinstance(child, ast.Import):
            found += [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            found += [f"{child.module}.{alias.name}" for alias in child.names]
        else:
            found += imports(child)
    return found


MODULES = {module_name(path): imports(ast.parse(path.read_text("utf-8"))) for path in sorted(PACKAGE.rglob("*.py"))}
ROOMS = {name.split(".")[0] for name in MODULES} - EXEMPT


def stage(room: str) -> int:
    return next(number for number, groups in enumerate(STAGES) if any(room in group for group in groups))


def together(room: str, other: str) -> bool:
    """Whether two rooms of one stage may use each other."""
    return any({room, other} <= group for group in STAGES[stage(room)])


def rooms_used(module: str) -> set[str]:
    """Other rooms of the package that a module imports. `from nmt import __version__` uses none."""
    parts = [name.split(".") for name in MODULES[module] if name.split(".")[0] == "nmt"]
    return {part[1] for part in parts if len(part) > 1 and part[1] in ROOMS} - {module.split(".")[0]}


def packages_used(module: str) -> set[str]:
    return {name.split(".")[0] for name in MODULES[module]} - {"nmt"}


def test_every_room_has_its_place() -> None:
    """A new room goes into the README's plan, as far left as it can stand."""
    rooms = [room for groups in STAGES for group in groups for room in group]
    assert sorted(rooms) == sorted(ROOMS)


@pytest.mark.parametrize("module", [name for name in MODULES if name not in EXEMPT])
def test_a_room_imports_only_rooms_to_its_left(module: str) -> None:
    room = module.split(".")[0]
    for other in rooms_used(module):
        assert stage(other) <= stage(room), f"{module} must not import {other}, which stands to its right"
        if stage(other) == stage(room):
            assert together(room, other), f"{module} must not import {other}: neither knows the other"


def test_rooms_of_one_stage_do_not_import_each_other_in_a_circle() -> None:
    uses: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module in MODULES.keys() - EXEMPT:
        uses[module.split(".")[0]] |= rooms_used(module)
    while uses:
        free = {room for room, others in uses.items() if not others & uses.keys()}
        assert free, f"a circle among {sorted(uses)}"
        uses = {room: others for room, others in uses.items() if room not in free}


@pytest.mark.parametrize("package", OWNERS)
def test_a_package_is_imported_only_in_its_room(package: str) -> None:
    users = {module for module in MODULES if package in packages_used(module)}
    assert users
    assert {module.split(".")[0] for module in users} == OWNERS[package]


@pytest.mark.parametrize("module", [name for name in MODULES if name not in EXEMPT])
def test_text_code_never_sees_tensors(module: str) -> None:
    room = module.split(".")[0]
    if room in TORCH_FREE | {"cli", "variants"} and module not in WITH_TORCH:
        assert "torch" not in packages_used(module)


def beyond_bounds(module: str) -> set[str]:
    """The rooms that a module uses, but for the bounds of numbers that annotate its options."""
    names = {name for name in MODULES[module] if name.startswith("nmt.choice.")}
    bounds = {name for name in names if name == "nmt.choice.Range" or is_annotated(name.rpartition(".")[2])}
    return rooms_used(module) - ({"choice"} if names and names == bounds else set())


def is_annotated(name: str) -> bool:
    return typing.get_origin(getattr(choice, name)) is typing.Annotated


@pytest.mark.parametrize("module", [name for name in MODULES if name not in EXEMPT])
def test_model_code_never_sees_configs(module: str) -> None:
    if module in PLAIN or module.split(".")[0] in PLAIN:
        assert not beyond_bounds(module) & {"config", "settings", "choice", "strict_yaml", "files", "run", "tokenizer"}


def test_model_code_never_sees_files_and_search_never_sees_text() -> None:
    for module in MODULES:
        if module.split(".")[0] in ("model", "loss", "optim", "search"):
            assert not packages_used(module) & {"pathlib", "os", "io", "json", "shutil", "tempfile"}
    assert beyond_bounds("search") == set()


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(PACKAGE.parent), "PATH": ""}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_rooms_without_torch_load_without_it() -> None:
    """What the source says holds for what really happens: nothing loads torch by way of another room."""
    rooms = [*sorted(TORCH_FREE), "data.prepare", "data.store", "data.plan", "data.formats", "sweep.running", "cli"]
    code = "import sys; sys.modules['torch'] = None\n" + "".join(f"import nmt.{room}\n" for room in rooms)
    done = run_python(code)
    assert done.returncode == 0, done.stderr
