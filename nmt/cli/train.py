"""nmt train"""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import ConfigFile, Overrides


def train(
    file: ConfigFile,
    overrides: Overrides = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Delete the checkpoints and train anew on the same prepared data.")
    ] = False,
) -> None:
    """Train a model, preparing the data if needed. The same command again goes on where it stopped."""
    from nmt import variants
    from nmt.train import train

    raise typer.Exit(train(variants.load(file, overrides or []), fresh))
