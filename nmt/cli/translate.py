"""nmt translate"""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import Device, Precision, SearchOverrides, Threads, Workers, end_with_the_reader, search_options


def translate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run, a checkpoint or a config file.")],
    input: Annotated[str, typer.Argument(metavar="[INPUT]", help="Text, one sentence a line; - is stdin.")] = "-",
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUTPUT", help="- is stdout.")] = "-",
    beam: Annotated[int | None, typer.Option(min=1, help="Beam search of this width.")] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="The most probable piece at every step.")] = False,
    length_penalty: Annotated[
        float | None, typer.Option(help="Score = sum of log-probabilities / length^A; larger = longer.")
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Source places of a batch, beams counted; by default as fits the device.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT if it exists.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = None,
    workers: Workers = None,
    overrides: SearchOverrides = None,
) -> None:
    """Translate text line by line: one output line for each input line, in order; blank lines stay blank."""
    from nmt.errors import NmtError
    from nmt.files import check_readable, check_writable, read_lines, write_file
    from nmt.progress import bar
    from nmt.translate import Translator

    end_with_the_reader()
    search = search_options(overrides or [])
    if greedy and beam is not None:
        raise NmtError("--greedy and --beam exclude each other")
    if greedy:
        search["name"] = "greedy"
    if beam is not None:
        search |= {"name": "beam", "beam": beam}
    if length_penalty is not None:
        search["length_penalty"] = length_penalty
    # All that can be wrong is looked at before the model is loaded and before anything is written.
    check_readable(input)
    if output != "-":
        check_writable(output, overwrite)
    translator = Translator(model, device, precision, threads or "auto", search, workers or "auto")
    lines = read_lines(input)
    with write_file(output, overwrite) as stream:
        for translation in bar(translator.stream(lines, batch_tokens), "translating", "lines"):
            stream.write(translation.text.encode() + b"\n")
