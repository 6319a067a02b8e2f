"""nmt translate"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from nmt.cli.options import Device, Precision, SearchOverrides, Threads, Workers, end_with_the_reader, search_options

if TYPE_CHECKING:
    from nmt.blocks import Translation
    from nmt.translate import Translator

T = TypeVar("T")


class Engine(StrEnum):
    nmt = "nmt"
    ctranslate2 = "ctranslate2"


def translate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run, a checkpoint, an export or a config file.")],
    input: Annotated[str, typer.Argument(metavar="[INPUT]", help="Text, one sentence a line; - is stdin.")] = "-",
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUTPUT", help="- is stdout.")] = "-",
    column: Annotated[
        str | None, typer.Option(help="Only this column of a table, by number from 0 or name, or field of a .jsonl.")
    ] = None,
    live: Annotated[bool, typer.Option("--stream", help="Answer each line before the next one is read.")] = False,
    nbest: Annotated[int | None, typer.Option(min=1, help="So many hypotheses: line ||| text ||| score.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line, with scores and tokens.")] = False,
    beam: Annotated[int | None, typer.Option(min=1, help="Beam search of this width.")] = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="The most probable piece at every step.")] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Draw every piece.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Of what is drawn.")] = None,
    ensemble: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="Average with this model; may be repeated.")
    ] = None,
    ban: Annotated[
        list[str] | None, typer.Option(metavar="PHRASE", help="Never in a translation; may be repeated.")
    ] = None,
    tgt_prefix: Annotated[
        str | None, typer.Option(metavar="FILE", help="Each translation begins with the words on its line here.")
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where each word looked: alignments 0-0 1-2, or heat maps as .html."),
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Score = sum of log-probabilities / length^A; larger = longer.")
    ] = None,
    max_length: Annotated[int | None, typer.Option(min=1, help="Most pieces of a translation.")] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(min=1, help="Source places of a batch, beams counted; by default as fits the device.")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="ctranslate2: for a MODEL exported to it.")] = Engine.nmt,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUTPUT if it exists.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = None,
    workers: Workers = None,
    overrides: SearchOverrides = None,
) -> None:
    """Translate text line by line: one output line for each input line, in order; blank lines stay blank."""
    from nmt.errors import NmtError
    from nmt.files import check_apart, check_readable, check_writable
    from nmt.lines import FORMS, translated
    from nmt.ranks import PATIENCE, everywhere, join, leave, shared_file
    from nmt.rows import read_rows
    from nmt.translate import BLOCK, Translator

    end_with_the_reader()
    search = search_options(overrides or []) | _search(beam, greedy, sample)
    given = {"length_penalty": length_penalty, "max_length": max_length, "seed": seed}
    search |= {option: value for option, value in given.items() if value is not None}
    if seed is not None and search.get("name") != "sample":
        raise NmtError("--seed needs --sample: only what is drawn has a seed")
    if column is not None and (as_json or nbest is not None):
        raise NmtError("--column adds one translation to each row; leave out --json and --nbest")
    # All that can be wrong is looked at before the model is loaded and before anything is written.
    check_apart(input, tgt_prefix, output, attention)
    if attention == "-":
        raise NmtError("--attention needs a file of its own: stdout is for translations")
    if input == tgt_prefix == "-":
        raise NmtError("INPUT and --tgt-prefix are both stdin; name a file for one of them")
    for path in filter(None, (input, tgt_prefix)):
        check_readable(path)
    for path in filter(None, (output, attention)):
        if path != "-":
            check_writable(path, overwrite)
    if tgt_prefix is not None and column is None:
        _check_beside(input, tgt_prefix)
    share = _share(input, output, live or bool(attention or workers))
    count = 1 if live or everywhere()[1] > 1 else workers or "auto"
    if engine == Engine.nmt:
        translator = Translator(model, device, precision, threads or "auto", search, count, ensemble or (), ban or ())
    elif ensemble or ban or tgt_prefix or attention:
        raise NmtError("--ensemble, --ban, --tgt-prefix and --attention need --engine nmt")
    else:
        from nmt.engine import EngineTranslator

        translator = EngineTranslator(model, device, precision, threads or "auto", search, count)
    options: dict[str, Any] = {"nbest": nbest or 1, "batch_tokens": batch_tokens, "block": 1 if live else BLOCK}
    if tgt_prefix:
        options["tgt_prefixes"] = share.of(row.text for row in read_rows(tgt_prefix))
    ranks = join(translator.runtime.device, PATIENCE)
    rows, form = share.of(read_rows(input, column)), FORMS[as_json, nbest is not None]
    with shared_file(output, overwrite, ranks) as stream, _attention(attention, overwrite, translator, live) as look:
        lines = translated(translator, rows, form, look, share.begin + 1, **options)
        for line in lines if live or not ranks.first else _with_bar(lines, share.lines, output):
            stream.write(line.encode() + b"\n")
            if live:
                stream.flush()
    leave()


class _Share(NamedTuple):
    """The lines that this process translates: all, unless torchrun has started several."""

    begin: int = 0
    end: int | None = None  # None for all that there are
    lines: int | None = None  # how many, where that is known

    def of(self, items: Iterable[T]) -> Iterator[T]:
        return islice(iter(items), self.begin, self.end)


def _share(input: str, output: str, alone: bool) -> _Share:
    """`alone`: something was asked for that only a process by itself does."""
    from nmt.errors import NmtError
    from nmt.files import lines_in
    from nmt.ranks import everywhere

    rank, world = everywhere()
    total = lines_in(input)
    if world == 1:
        return _Share(lines=total)
    if total is None or output == "-" or alone:
        raise NmtError(
            "several processes of torchrun translate a file, not compressed, into another: name INPUT and -o OUTPUT, "
            "and leave out --stream, --attention and --workers"
        )
    begin, end = total * rank // world, total * (rank + 1) // world
    return _Share(begin, end if rank + 1 < world else None, end - begin)


def _check_beside(input: str, tgt_prefix: str) -> None:
    """Where lines are quickly counted, this is known before the work; for others the translator finds it out."""
    from nmt.errors import DataError
    from nmt.files import lines_in

    lines, prefixes = lines_in(input), lines_in(tgt_prefix)
    if None not in (lines, prefixes) and lines != prefixes:
        raise DataError(
            f"{input} has {lines:,} line{'s' * (lines != 1)}, but {tgt_prefix} has {prefixes:,}; "
            "there must be one target prefix for each line"
        )


@contextlib.contextmanager
def _attention(
    path: str | None, overwrite: bool, translator: Translator, live: bool
) -> Iterator[Callable[[Translation], None]]:
    """What to call with each translation for its attention to be written, if that is wanted."""
    if path is None:
        yield lambda _: None
        return
    from nmt.attention_maps import BATCH, Attention
    from nmt.files import write_file
    from nmt.progress import say

    with write_file(path, overwrite) as stream:
        ahead = 1 if live else BATCH
        attention = Attention(translator.model, translator.tokenizer, stream, path.endswith(".html"), ahead)
        yield attention.add
        attention.close()
    say(f"{path}: {attention.held}")


def _search(beam: int | None, greedy: bool, sample: bool) -> dict[str, Any]:
    """The search that the command line names, if it names one."""
    from nmt.errors import NmtError

    named = {"--greedy": greedy, "--beam": beam is not None, "--sample": sample}
    given = [flag for flag, there in named.items() if there]
    if len(given) > 1:
        raise NmtError(f"{' and '.join(given)} exclude each other")
    if beam is not None:
        return {"name": "beam", "beam": beam}
    return {"name": given[0].removeprefix("--")} if given else {}


def _with_bar(lines: Iterator[str], total: int | None, output: str) -> Iterator[str]:
    """With a bar where somebody can see it, and where the results do not come up beside it."""
    from nmt.progress import bar

    if not sys.stderr.isatty() or (output == "-" and sys.stdout is not None and sys.stdout.isatty()):
        return lines
    return bar(lines, "translating", "lines", total)
