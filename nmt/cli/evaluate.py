"""nmt evaluate"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nmt.cli.options import Device, Precision, SearchOverrides, Threads, search_options


def evaluate(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="Runs, checkpoints, configs.")
    ] = None,
    tests: Annotated[list[str] | None, typer.Option("-t", "--test", help="A set of data.test, or valid.")] = None,
    src: Annotated[str | None, typer.Option(help="A source file, instead of -t.")] = None,
    refs: Annotated[list[str] | None, typer.Option("--ref", help="Its reference; repeat it for several.")] = None,
    hyps: Annotated[list[str] | None, typer.Option("--hyp", help="Score a file of translations, anybody's.")] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="Target language, where no model tells it.")] = None,
    metric: Annotated[list[str] | None, typer.Option(help="bleu, chrf or ter; by default the config's.")] = None,
    tokenize: Annotated[str | None, typer.Option(help="BLEU's tokenizer: 13a, zh, ja-mecab, intl, none, …")] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Score without regard to case.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    overrides: SearchOverrides = None,
    device: Device = "auto",
    precision: Precision = "auto",
    threads: Threads = None,
) -> None:
    """Translate test sets and score them with sacreBLEU on the raw references."""
    import json

    from nmt import checkpoint
    from nmt import evaluate as ev
    from nmt.errors import ConfigError
    from nmt.translate import Translator

    models, refs, hyps = models or [], refs or [], hyps or []
    if not models and not hyps:
        raise ConfigError("name a MODEL, or a file of translations with --hyp")
    if (src or hyps) and not refs and not models:
        raise ConfigError("--src and --hyp need a reference: --ref FILE")
    if src and not refs:
        raise ConfigError("--src needs its reference: --ref FILE")
    if models and refs and not src:
        raise ConfigError("--ref needs its source, since a MODEL is to translate it: --src FILE")
    found = [checkpoint.find(model) for model in models]
    search = search_options(overrides or [])
    results = []

    def settings(base: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        chosen = {name: dict(base.get(name, {})) for name in metric or base}
        for name, options in chosen.items():
            if lowercase:
                options |= {"case_sensitive": False} if name == "ter" else {"lowercase": True}
            if tokenize and name == "bleu":
                options["tokenize"] = tokenize
        return chosen

    def sets(config: Any) -> list[ev.TestSet]:
        if refs:
            language = tgt_lang or (config.tgt_lang if config else None)
            if language is None:
                raise ConfigError("--tgt-lang is needed: it chooses BLEU's tokenizer (or give --tokenize and any)")
            return [ev.file_set(src, refs, language)]
        return ev.test_sets(config, tests or [])

    for checkpoint_, name in zip(found, models, strict=True):
        config = checkpoint_.config()
        metrics = ev.metrics_for(tgt_lang or config.tgt_lang, settings(config.metrics))
        chosen = sets(config)
        translator = Translator(name, device, precision, threads or "auto", search)
        for test in chosen:
            result = ev.evaluate(translator, checkpoint_, test, metrics)
            ev.keep(result, checkpoint_, translator.settings, config.tgt_lang)
            results.append(result)
    for hyp in hyps:
        shared = found[0].config() if found else None
        for test in sets(shared):
            base = shared.metrics if shared else {"bleu": {}, "chrf": {}}
            results.append(ev.evaluate_file(hyp, test, ev.metrics_for(test.tgt_lang, settings(base))))
    if as_json:
        typer.echo(json.dumps([result.tree() for result in results], indent=1, ensure_ascii=False))
        return
    for result in results:
        typer.echo(f"{result.system}  {result.test}, {len(result.hypotheses):,} lines")
        for score in result.scores:
            typer.echo(f"  {score.name} {score.value:.2f}  {score.signature}")
        if "search" in result.made_by:
            details = {**result.made_by, "search": " ".join(f"{k}:{v}" for k, v in result.made_by["search"].items())}
            typer.echo("  " + "|".join(f"{key}:{value}" for key, value in details.items()))
