"""Arguments and options that several verbs share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Annotated, Any

import typer

ConfigFile = Annotated[str, typer.Argument(metavar="CONFIG", help="A config file.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="KEY=VALUE", help="Replace a setting of the config; may be repeated."),
]
SearchOverrides = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="search.KEY=VALUE", help="Replace a setting of the search; may be repeated."),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
Precision = Annotated[str, typer.Option(help="auto (that of the training), fp32, bf16 or fp16.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads of each worker.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that translate; by default all cores are used.")]


def end_with_the_reader() -> None:
    """For commands whose results go to stdout: a reader that has gone (| head) ends them, as it ends any Unix tool.

    Not for training: it writes to stderr only, and must not die of a closed log.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def put(text: str) -> None:
    """Prints a result."""
    from nmt.files import write_file

    with write_file("-") as stream:
        stream.write(text.encode())


def search_options(overrides: list[str]) -> dict[str, Any]:
    """`search.beam=4` and the like -> options of a search. Raises ConfigError for any other key."""
    from nmt.choice import Choice
    from nmt.errors import ConfigError
    from nmt.strict_yaml import parse_yaml

    options: dict[str, Any] = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        section, _, name = key.partition(".")
        if not equals or section != "search":
            raise ConfigError(f"-s {override}: expected search.KEY=VALUE; the model's other settings are fixed")
        parsed = parse_yaml(value, f"-s {override}")
        try:
            new = {name: parsed} if name else {k: v for k, v in Choice.read(parsed).tree().items() if v}
        except ValueError as error:
            raise ConfigError(f"-s {override}: {error}") from None
        for sentence in _refused(new):
            raise ConfigError(f"-s {override}: {sentence}")
        options.update(new)
    return options


def _refused(options: dict[str, Any]) -> Iterator[str]:
    """What no search takes; what the one in use does not take is known when the model is loaded."""
    from nmt.choice import Choice, options_of, problems
    from nmt.declared import declared

    searches = declared("nmt.search.methods", "SEARCHES")
    for key, value in options.items():
        having = next((name for name in ("beam", *searches) if key in options_of(searches[name])), "beam")
        choice = Choice(str(value)) if key == "name" else Choice(having, {key: value})
        yield from (sentence for _, sentence in problems(searches, choice))
