"""nmt score"""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import Device, Precision, Threads, end_with_the_reader


def score(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run, a checkpoint, an export or a config file.")],
    src: Annotated[str, typer.Option(help="Sources, one a line.")],
    tgt: Annotated[str, typer.Option(help="Their translations, one a line.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUTPUT", help="- is stdout.")] = "-",
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line, with tokens.")] = False,
    length_penalty: Annotated[
        float | None, typer.Option(help="Score = sum of log-probabilities / length^A; by default that of the search.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT if it exists.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = None,
) -> None:
    """Score given translations: one line for each pair, the larger the likelier; blank pairs stay blank."""
    import json

    from nmt.files import check_apart, check_writable, write_file
    from nmt.progress import bar
    from nmt.score import Scorer, read_pairs

    end_with_the_reader()
    # All that can be wrong is looked at before the model is loaded and before anything is written.
    pairs = read_pairs(src, tgt)
    for side in (src, tgt):  # which may be one and the same
        check_apart(side, output)
    if output != "-":
        check_writable(output, overwrite)
    scorer = Scorer(model, device, precision, threads or "auto", length_penalty)
    with write_file(output, overwrite) as stream:
        for found in bar(scorer.stream(pairs), "scoring", "pairs"):
            number = "" if found.value is None else f"{found.value:.6f}"
            line = json.dumps(found.tree(), ensure_ascii=False) if as_json else number
            stream.write(f"{line}\n".encode())
