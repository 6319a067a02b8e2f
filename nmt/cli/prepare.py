"""nmt prepare"""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import ConfigFile, Overrides


def prepare(
    file: ConfigFile,
    overrides: Overrides = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do it again, with the settings as they are now.")] = False,
) -> None:
    """Turn text into a tokenizer and a memory-mapped store, and report what was kept and dropped."""
    from nmt import variants
    from nmt.data.prepare import prepare
    from nmt.progress import say
    from nmt.run import Run

    config = variants.load(file, overrides or [])
    with Run(config.run_dir).claimed("preparing data"):
        prepare(config, fresh, say)
