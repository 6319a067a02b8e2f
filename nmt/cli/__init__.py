"""The `nmt` command: one file per verb. Heavy imports happen inside the verbs, so that help answers at once."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

import typer

from nmt.cli import config, evaluate, export, prepare, report, score, sweep, train, translate
from nmt.cli.options import put
from nmt.errors import NmtError

app = typer.Typer(
    name="nmt",
    help="Train, evaluate and use neural machine translation models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(prepare.prepare)
app.command()(train.train)
app.command()(sweep.sweep)
app.command()(evaluate.evaluate)
app.command()(report.report)
app.command()(translate.translate)
app.command()(score.score)
app.command()(export.export)
app.command()(config.config)


def _version(wanted: bool) -> None:
    if wanted:
        from nmt import __version__

        put(f"nmt {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    pass


USAGE_ERROR: Any = typer.BadParameter.__base__  # of all that is wrong with a command line; typer does not export it


def _wrong_usage(error: Any) -> int:
    """One line, where typer prints three; help, where no command was given."""
    message = error.format_message().replace("Value error, ", "").replace("Input should be", "must be")
    if "\n" not in message:
        message = f"error: {message.rstrip('.')}; see {error.ctx.command_path if error.ctx else 'nmt'} --help"
    return _complain(message)


def _complain(message: str) -> int:
    from nmt.progress import say

    say(message)
    return 2


def _terminate(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main() -> None:
    """Runs the command line; exit code 0 done, 1 our bug, 2 the user's mistake, 128 + its number after a signal."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):  # as exceptions, so that half-written files go away
        signal.signal(number, _terminate)
    if sys.stderr is None:  # closed by who has started us; a closed stdout is named when it is needed
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # to the end of the process
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        if stream is not None:
            stream.reconfigure(encoding="utf-8", errors=errors)  # type: ignore[union-attr]
    try:
        sys.exit(app(standalone_mode=False))
    except USAGE_ERROR as error:
        sys.exit(_wrong_usage(error))
    except OSError as error:
        if "--help" not in sys.argv:  # what typer writes by itself
            raise
        sys.exit(_complain(f"error: stdout: cannot be written: {error.strerror}"))
    except NmtError as error:
        sys.exit(_complain("\n".join(f"error: {line}" for line in str(error).split("\n"))))
