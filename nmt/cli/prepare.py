"""nmt prepare"""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import ConfigFile, Overrides


def prepare(
    file: ConfigFile,
    overrides: Overrides = None,
    check_only: Annotated[bool, typer.Option("--check", help="Report only; write nothing.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a processor core.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do it again, with the settings as they are now.")] = False,
) -> None:
    """Turn text into a tokenizer and a memory-mapped store, and report what is wrong with it and what was dropped."""
    from nmt import variants
    from nmt.data.prepare import check, prepare
    from nmt.progress import say

    config = variants.load(file, overrides or [])
    tokenizer_from = None
    if config.train.init_from:
        from nmt.resume import starting_point

        tokenizer_from = starting_point(config.train.init_from, config).directory
    if check_only:
        check(config, say, jobs, tokenizer_from)
    else:
        prepare(config, fresh, say, jobs, tokenizer_from)
