"""What is read from source is what the imported constructors say."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from nmt.choice import Declared, options_of
from nmt.declared import declared

READ = [
    ("nmt.model.position", "POSITIONS"),
    ("nmt.optim", "OPTIMIZERS"),
    ("nmt.optim", "SCHEDULES"),
    ("nmt.loss", "OBJECTIVES"),
    ("nmt.search.methods", "SEARCHES"),
]


@pytest.mark.parametrize(("module", "table"), READ)
def test_options_defaults_types_and_words_are_those_of_the_constructors(module: str, table: str) -> None:
    real, read = getattr(importlib.import_module(module), table), declared(module, table)
    assert list(read) == list(real)
    for name, constructor in real.items():
        found = read[name]
        assert isinstance(found, Declared), "the source was not understood, and the module was imported"
        function = constructor.__init__ if inspect.isclass(constructor) else constructor
        hints = typing.get_type_hints(function, include_extras=True)
        assert {key: p.default for key, p in found.parameters.items()} == {
            key: p.default for key, p in options_of(constructor).items()
        }
        assert found.hints == {key: hints[key] for key in options_of(constructor)}
        assert found.doc == inspect.getdoc(constructor)


@pytest.mark.parametrize(
    "source",
    [
        "def a(*, x: int = 1 + 1): 'A.'\nTABLE: dict = {'a': a}\n",  # a default that must be computed
        "def a(*, x: int = 2): 'A.'\nTABLE = dict(a=a)\n",
        "Mine = int\ndef a(*, x: Mine = 2): 'A.'\nTABLE: dict = {'a': a}\n",
        "def a(*, x: int = 2): 'A.'\nTABLE: dict = {'a': a, **{}}\n",
    ],
)
def test_source_that_is_not_plain_is_imported(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"plain_{abs(hash(source))}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    (constructor,) = declared(name, "TABLE").values()
    assert not isinstance(constructor, Declared)
    assert options_of(constructor)["x"].default == 2


def test_a_config_is_checked_without_torch() -> None:
    config = Path(__file__).parents[2] / "configs" / "multi30k.yaml"
    code = f"import sys; sys.modules['torch'] = None\nfrom nmt import variants; variants.load({str(config)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
