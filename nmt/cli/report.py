"""nmt report"""

from __future__ import annotations

from typing import Annotated

import typer


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs, or their configs; also while they train.")],
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="By default report.html in the first run.")
    ] = None,
    attention: Annotated[int, typer.Option(min=0, help="Sentences of each run with attention maps.")] = 6,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE if it exists.")] = False,
) -> None:
    """Show runs as one page of HTML that needs no network (5 MB): curves, data, scores, translations, attention."""
    from nmt.files import check_writable, write_file
    from nmt.progress import say
    from nmt.report.page import open_runs, page

    found = open_runs(runs)
    path = output or str(found[0].run.directory / "report.html")
    overwrite = overwrite or output is None  # what lies in a run is ours
    if path != "-":
        check_writable(path, overwrite)
    made = page(found, attention)
    for run in found:
        for note in run.notes:
            say(f"note: {run.name}: {note}")
    with write_file(path, overwrite) as stream:
        stream.write(made)
    say(f"{path}: {len(made) / 1e6:.1f} MB; open it in a browser")
