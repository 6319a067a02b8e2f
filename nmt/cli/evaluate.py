"""nmt evaluate"""

from __future__ import annotations

from typing import Annotated

import typer

from nmt.cli.options import Device, Precision, SearchOverrides, Threads, end_with_the_reader, put, search_options


def evaluate(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="Runs, checkpoints, configs.")
    ] = None,
    tests: Annotated[
        list[str] | None, typer.Option("-t", "--test", help="A set of data.test, valid, or wmt20/en-de.")
    ] = None,
    src: Annotated[str | None, typer.Option(help="A source file, instead of -t.")] = None,
    refs: Annotated[list[str] | None, typer.Option("--ref", help="Its reference; repeat it for several.")] = None,
    hyps: Annotated[list[str] | None, typer.Option("--hyp", help="Score a file of translations, anybody's.")] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="Code of the target language, where no model tells it.")] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="bleu, chrf, chrf++ or ter; by default the config's.")
    ] = None,
    tokenize: Annotated[str | None, typer.Option(help="BLEU's tokenizer: 13a, zh, ja-mecab, intl, none, …")] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Score without regard to case.")] = False,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="95% intervals; always where systems differ.")
    ] = False,
    show: Annotated[
        int | None,
        typer.Option(min=0, help="Show so many lines: where systems differ most (5), or a single one's worst."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    overrides: SearchOverrides = None,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = None,
) -> None:
    """Translate test sets and score them with sacreBLEU on the raw references; compare systems with the first one."""
    import json

    from nmt.evaluate import Request, run

    end_with_the_reader()

    request = Request(
        models=models or [],
        hyps=hyps or [],
        tests=tests or [],
        src=src,
        refs=refs or [],
        tgt_lang=tgt_lang,
        metrics=metric or [],
        tokenize=tokenize,
        lowercase=lowercase,
        confidence=confidence,
        show=show,
        search=search_options(overrides or []),
        device=device,
        precision=precision,
        threads=threads or "auto",
    )
    evaluations = run(request)
    if as_json:
        trees = [tree for evaluation in evaluations for tree in evaluation.trees()]
        put(json.dumps(trees, indent=1, ensure_ascii=False) + "\n")
    else:
        put("".join(f"{evaluation.text()}\n" for evaluation in evaluations))
