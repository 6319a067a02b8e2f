"""nmt sweep"""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import put


def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What is varied; `nmt config sweep` prints an example.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be trained.")] = False,
    table: Annotated[bool, typer.Option("--table", help="Only print the table.")] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Try failed runs again, and train anew those whose settings have changed."),
    ] = False,
) -> None:
    """Train variations of a config with several seeds, and compare them. The same command again goes on."""
    from nmt.sweep.plan import load
    from nmt.sweep.running import Runner

    runner = Runner(load(file), again)
    if dry_run:
        put(runner.plan())
        return
    code = 0 if table else runner.run()
    put(runner.table())
    raise typer.Exit(code)
