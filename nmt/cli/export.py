"""nmt export"""

from __future__ import annotations

from typing import Annotated, Any

import typer


def export(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A run, a checkpoint, an export or a config file.")],
    to: Annotated[str, typer.Option("--to", metavar="DIR", help="The directory to write.")],
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="ctranslate2 or plain.")],
    quantization: Annotated[
        str | None,
        typer.Option(help="Of ctranslate2: float32, int8, int8_float32, int16, float16 or bfloat16."),
    ] = None,
    half: Annotated[bool, typer.Option("--half", help="Of plain: weights in float16.")] = False,
    check: Annotated[
        str | None, typer.Option(metavar="FILE", help="Sources to compare on, instead of the validation set.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an export that is there.")] = False,
) -> None:
    """Write a model to hand on: for CTranslate2, or weights, tokenizer and a model card without what training needs."""
    from nmt.choice import Choice
    from nmt.export import export

    options: dict[str, Any] = {"quantization": quantization} if quantization is not None else {}
    export(model, to, Choice(form, options | ({"half": True} if half else {})), check, overwrite)
