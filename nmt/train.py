"""`nmt train`: prepares what is not prepared, starts the processes, and lets a Trainer run."""

from __future__ import annotations

import time

import torch

from nmt import checkpoint, optim, runtime
from nmt.choice import build
from nmt.config import Config
from nmt.data import filters
from nmt.journal import summary_writer
from nmt.ranks import Ranks, join, leave, started
from nmt.resume import begun, starting_point
from nmt.run import Run
from nmt.signals import Signals
from nmt.trainer import Sets, Trainer


def fit(config: Config, sets: Sets, ranks: Ranks | None = None, fresh: bool = False) -> int:
    """Trains, or goes on training, in config.run_dir. Returns 0, or 128 + the signal that ended it early.

    `fresh` deletes what an earlier training left. The caller holds the run directory's lock.
    """
    with Signals() as signals:
        trainer = Trainer(config, sets, signals, ranks or Ranks(), fresh)
        try:
            return trainer.run()
        finally:
            trainer.close()


def train(config: Config, fresh: bool) -> int:
    """`nmt train`: prepares if needed, then trains or goes on training. Returns the exit code."""
    from nmt.data.prepare import prepare
    from nmt.data.sampling import SAMPLINGS, sampled
    from nmt.progress import say

    paths = Run(config.run_dir)
    where = runtime.choose(config.train.device, config.train.precision, config.train.threads)  # says what is missing
    if config.train.tensorboard:
        summary_writer()  # likewise
    if config.train.freeze:  # a part that the model does not have is found before the data is prepared
        with torch.device("meta"):
            optim.freeze(checkpoint.build_model(config.model, 1, 1), config.train.freeze)
    tokenizer_from = None
    if config.train.init_from:
        going_on = begun(paths) and not fresh  # then the model to start from is not needed any more
        tokenizer_from = paths.prepared if going_on else starting_point(config.train.init_from, config).directory
    rank, _, _ = started()
    while rank and not paths.prepared.exists():  # the first process prepares, also for the others
        time.sleep(0.5)
    prepared = prepare(config, False, (lambda _: None) if rank else say, tokenizer_from=tokenizer_from)
    ranks = join(where.device)
    try:
        with paths.claimed("training", ranks.first):
            paths.check()
            tokenizer = prepared.tokenizer()
            pairs = sampled(
                prepared.train(),
                tokenizer,
                build(SAMPLINGS, config.train.subword_sampling),
                config.seed,
                filters.longest(config.data.filters),
            )
            shares = prepared.shares(config)
            sets = Sets(pairs, shares, prepared.valid(), tokenizer, prepared.directory, prepared.digest())
            return fit(config, sets, ranks, fresh)
    finally:
        leave()
