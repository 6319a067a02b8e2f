"""Training: the state of a run, one update, and the loop around it.

What is not in `TrainState` is a function of (config, seed, step): the order of batches, dropout, the learning rate.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import torch

from nmt import checkpoint, optim, runtime
from nmt.choice import Choice, build
from nmt.config import Config
from nmt.data import filters, plan
from nmt.data.batches import Batch, collate
from nmt.errors import NmtError
from nmt.files import write_file
from nmt.loss import OBJECTIVES, Objective
from nmt.metrics import METRICS
from nmt.model.transformer import Transformer
from nmt.optim import OPTIMIZERS, SCHEDULES
from nmt.progress import TrainingProgress
from nmt.resume import resume, start_anew
from nmt.run import Record, Run, cut, size
from nmt.signals import Signals, Stop
from nmt.strict_yaml import dump
from nmt.tokenizer import Tokenizer
from nmt.validate import Rank, Validation, ValidPairs


class Epoch(Protocol):
    """Training pairs as ids, by number, as they are seen in an epoch."""

    def lengths(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def ids(self, pairs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]: ...


class Pairs(Protocol):
    """Training pairs."""

    def __len__(self) -> int: ...

    def epoch(self, epoch: int) -> Epoch: ...


@dataclass
class Sets:
    """The data of a run: pairs to train on, by corpus, validation sets by name, and the tokenizer's directory."""

    train: Pairs
    shares: list[plan.Share]
    valid: Mapping[str, ValidPairs]
    tokenizer: Tokenizer
    directory: Path
    digest: str


def fit(config: Config, sets: Sets) -> int:
    """Trains, or goes on training, in config.run_dir. Returns 0, or 128 + the signal that ended it early.

    The caller holds the run directory's lock.
    """
    with Signals() as signals:
        trainer = Trainer(config, sets, signals)
        try:
            return trainer.run()
        finally:
            trainer.progress.close()


class Trainer:
    """One process's hold on a run: the model, its optimiser, its state, and where they go."""

    def __init__(self, config: Config, sets: Sets, signals: Signals) -> None:
        settings = config.train
        self.config, self.settings, self.sets, self.signals = config, settings, sets, signals
        self.paths = Run(config.run_dir)
        self.runtime = runtime.choose(settings.device, settings.precision, settings.threads)
        runtime.seed_step(config.seed, 0)
        pieces = sets.tokenizer
        self.model = checkpoint.build_model(config.model, len(pieces.src), len(pieces.tgt)).to(self.runtime.device)
        self.model.dtype = self.runtime.dtype
        self.parameters = list(self.model.parameters())
        self.optimizer: torch.optim.Optimizer = build(OPTIMIZERS, settings.optimizer, self.parameters)
        self.peak_rate = float(self.optimizer.param_groups[0]["lr"])
        self.schedule: optim.Schedule = build(SCHEDULES, settings.schedule, settings.steps)
        self.objective = self._objective()
        self.started = time.monotonic()
        self.record = Record(self.paths.metrics)
        # Sums that stay on the device, so that a GPU is not waited for at every step: loss, nll, gradient norm.
        exact = torch.float32 if self.runtime.device.type == "mps" else torch.float64  # which mps does not have
        self.totals = torch.zeros(3, dtype=exact, device=self.runtime.device)
        self.state, self.differences = resume(
            self.paths, config, self.runtime, self.model, self.optimizer, pieces.digest(), sets.digest
        )
        self.saved = self.state.step or -1  # the step of the newest checkpoint
        for index, key in enumerate(("loss", "nll", "norm")):
            self.totals[index] = self.state.since_log.get(key, 0.0)
        self.specs = self._plan()
        self._settle()  # other settings than before the stop may have made the window shorter
        self.progress = TrainingProgress(self.paths.log)
        self.validation = self._validation()
        self.log_started = time.monotonic()

    def _validation(self) -> Validation:
        config = self.config
        metrics = [build(METRICS, Choice(name, options), config.tgt_lang) for name, options in config.metrics.items()]
        return Validation(
            self.sets.valid,
            self.sets.tokenizer,
            config.search,
            metrics,
            self.settings.metric,
            config.tgt_lang,
            self.runtime,
            self.paths,
            self.progress.line,
        )

    def _objective(self) -> Objective:
        compiled = self.settings.compile
        if compiled == "auto":  # a small vocabulary's loss costs less than compiling it
            compiled = len(self.sets.tokenizer.tgt) >= 4000
        objective: Objective = build(OBJECTIVES, self.settings.objective, self.settings.label_smoothing, bool(compiled))
        return objective

    # --- the loop ---

    def run(self) -> int:
        state, settings = self.state, self.settings
        if self._finished() and state.finished:
            self.progress.line(f"nothing to do: the run is complete at step {state.step} ({self._limit_reached()})")
            return 0
        state.finished = False  # a complete run goes on when its limit was raised
        with write_file(self.paths.config) as stream:
            stream.write(dump(self.config.tree()).encode())
        self._greet()
        try:
            while not self._finished():
                if self._due(settings.validate_every) and state.validated != state.step:
                    self.validate()
                    continue  # patience may have run out
                if self._due(settings.save_every) and self.saved != state.step:
                    self.save()
                if self.signals.received:
                    raise Stop
                self.update()
                if self._due(settings.log_every):
                    self.log()
            self._finish()
        except Stop:
            if self.saved != state.step:
                self.save()
            name = signal.Signals(self.signals.received).name
            self.progress.line(f"stopped by {name} at step {state.step}; everything is saved, the same command goes on")
            return 128 + self.signals.received
        return 0

    def _due(self, every: int) -> bool:
        return self.state.step > 0 and self.state.step % every == 0

    def _finished(self) -> bool:
        patience = self.settings.patience
        return self.share() >= 1 or (patience > 0 and self.state.stale >= patience)

    def _finish(self) -> None:
        """The end of a run always validates and saves, also the average of the last snapshots."""
        if self.state.validated != self.state.step:
            self.validate()
        if self.saved != self.state.step:  # before the average: snapshots that no checkpoint names are deleted
            self.save()
        if len(self.state.snapshots) > 1 and self.sets.valid:
            self._score_average()
        best = checkpoint.by_score(checkpoint.complete(self.paths))[0]
        score = "" if best.score is None else f" ({self.settings.metric} {abs(best.score):.2f})"
        self.progress.line(
            f"done at step {self.state.step} ({self._limit_reached()}) after {self._clock() / 60:.1f} minutes; "
            f"best is {best.directory}{score}"
        )
        self.state.finished = True
        self.save()  # with the line above in its log, which so survives being resumed

    def _limit_reached(self) -> str:
        settings, state = self.settings, self.state
        if settings.steps and state.step >= settings.steps:
            return f"{settings.steps} steps"
        if settings.epochs and state.epoch >= settings.epochs:
            return f"{settings.epochs} epochs"
        if settings.minutes and self._clock() >= 60 * settings.minutes:
            return f"{settings.minutes:g} minutes"
        return f"no new best in {settings.patience} validations"

    def _clock(self) -> float:
        """Seconds of training, validation and saving, over all processes of the run."""
        return self.state.seconds + time.monotonic() - self.started

    def share(self) -> float:
        """How much of the run is over, by the limit that comes first."""
        settings, state = self.settings, self.state
        shares = [0.0]
        if settings.steps:
            shares.append(state.step / settings.steps)
        if settings.epochs:
            shares.append(self.epochs() / settings.epochs)
        if settings.minutes:
            shares.append(self._clock() / (60 * settings.minutes))
        return max(shares)

    def epochs(self) -> float:
        """Passes over the training data, with fractions."""
        state = self.state
        return state.epoch + (state.window + state.batch / len(self.specs)) / self._windows()

    def _windows(self) -> int:
        return plan.windows(plan.epoch_size(self.sets.shares, self.state.epoch))

    # --- one update ---

    def _plan(self) -> list[plan.BatchSpec]:
        """The batches of the window that the state is in."""
        state, seed, pairs = self.state, self.config.seed, self.sets.train
        members = plan.window_pairs(self.sets.shares, seed, state.epoch, state.window)
        lengths = pairs.epoch(state.epoch).lengths(members)
        return plan.plan_window(members, *lengths, self.settings.batch_tokens, seed, state.epoch, state.window)

    def _advance(self) -> None:
        """Moves the state past the batch that was used."""
        self.state.step += 1
        self.state.batch += 1
        self._settle()

    def _settle(self) -> None:
        """Moves a state that is past its window on to the next window, or the next epoch."""
        state = self.state
        while state.batch >= len(self.specs):
            state.batch, state.window = 0, state.window + 1
            if state.window >= self._windows():
                state.window, state.epoch = 0, state.epoch + 1
            self.specs = self._plan()

    def update(self) -> None:
        """One step of the optimiser on the gradient of the mean loss per target token."""
        state = self.state
        rate = self.peak_rate * self.schedule(state.step, self.share())
        micro_batches = self._micro_batches(self.specs[state.batch])
        tokens = sum(micro.tokens for micro in micro_batches)
        self.model.train()
        for index, micro in enumerate(micro_batches):
            runtime.seed_step(self.config.seed, state.step, index)
            result = self.objective(self.model, micro, 1 / tokens)
            result.loss.backward()  # type: ignore[no-untyped-call]
            self.totals[0] += result.loss.detach() * tokens
            self.totals[1] += result.nll
        norm = optim.clip(self.parameters, self.settings.clip_norm)
        self.totals[2] += norm
        optim.set_rate(self.optimizer, rate)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        sums = state.since_log
        padding = sum(micro.padding for micro in micro_batches) / len(micro_batches)
        for key, value in (("steps", 1), ("tokens", tokens), ("padding", padding)):
            sums[key] = sums.get(key, 0) + value
        sums["lr"] = rate
        self._advance()

    def _micro_batches(self, spec: plan.BatchSpec) -> list[Batch]:
        src, tgt = self.sets.train.epoch(self.state.epoch).ids(spec.pairs)
        count = 1 if self.settings.accumulate == "auto" else min(self.settings.accumulate, len(src))
        return [
            collate([src[i] for i in rows], [tgt[i] for i in rows], spec.shape, self.runtime.device)
            for rows in np.array_split(np.arange(len(src)), count)
        ]

    # --- numbers ---

    def _collect(self) -> dict[str, float]:
        """Copies the sums from the device into the state, beside the time that they took."""
        sums = self.state.since_log
        sums.update(zip(("loss", "nll", "norm"), self.totals.tolist(), strict=True))  # waits for a GPU
        now = time.monotonic()
        sums["seconds"] = sums.get("seconds", 0.0) + now - self.log_started
        self.log_started = now
        return sums

    def log(self) -> None:
        sums, state = self._collect(), self.state
        tokens, steps, seconds = sums["tokens"], sums["steps"], sums["seconds"]
        loss, nll = sums["loss"] / tokens, sums["nll"] / tokens
        if not math.isfinite(loss):
            self._diverged(f"the loss is {loss}")
        self.record.append(
            "train",
            step=state.step,
            epoch=round(self.epochs(), 4),
            loss=loss,
            nll=nll,
            ppl=math.exp(min(nll, 100)),
            lr=sums["lr"],
            grad_norm=sums["norm"] / steps,
            target_tokens_per_second=tokens / seconds,
            padding=sums["padding"] / steps,
            seconds=round(self._clock(), 1),
        )
        self.progress.line(
            f"step {state.step}  epoch {self.epochs():.2f}  loss {loss:.3f}  ppl {math.exp(min(nll, 100)):.2f}  "
            f"lr {sums['lr']:.2e}  {tokens / seconds:,.0f} target tokens/s"
        )
        self.progress.at(
            self.share(), f"step {state.step} loss {loss:.3f} {tokens / seconds:,.0f} tok/s lr {sums['lr']:.1e}"
        )
        state.since_log = {}
        self.totals.zero_()

    def _diverged(self, what: str) -> NoReturn:
        raise NmtError(
            f"training diverged before step {self.state.step}: {what}; the checkpoints in {self.paths.checkpoints} are "
            "from before; go on with a lower train.optimizer.lr or a longer train.schedule.warmup"
        )

    def _check_finite(self) -> None:
        if not all(bool(torch.isfinite(p).all()) for p in self.parameters):
            self._diverged("weights are not finite")

    # --- validation ---

    def validate(self) -> None:
        """Scores the model on the validation sets, and decides whether it is a new best."""
        self._check_finite()
        paused = time.monotonic()
        state, settings = self.state, self.settings
        score = self._measure(self.model)
        state.validated = state.step
        if settings.average:
            checkpoint.save_snapshot(self.paths, state.step, self.model)
            state.snapshots = [*state.snapshots, state.step][-settings.average :]
        better = score is not None and (state.best is None or score > tuple(state.best))
        if better and score is not None:
            state.best, state.stale = list(score), 0
        elif score is not None:
            state.stale += 1
        self.log_started += time.monotonic() - paused
        if better or self._due(settings.save_every):
            self.save(score)

    def _score_average(self) -> None:
        """The mean of the last snapshots is scored like any other model, and competes for best."""
        averaged = copy.deepcopy(self.model)
        checkpoint.load_weights(averaged, checkpoint.average(self.paths, self.state.snapshots), self.paths.checkpoints)
        score = self._measure(averaged, len(self.state.snapshots))
        self._write(averaged, None, score, averaged=True)

    def _measure(self, model: Transformer, averaged: int = 0) -> Rank | None:
        """Scores a model on the validation sets; broken off by a signal, it leaves no trace in the logs."""
        before = size(self.paths.metrics), size(self.paths.log)
        try:
            with self.signals.breaking_off():
                return self.validation.score(model, self.state.step, averaged)
        except Stop:
            cut(self.paths.metrics, before[0])
            cut(self.paths.log, before[1])
            raise

    # --- saving and resuming ---

    def save(self, score: Rank | None = None) -> None:
        self._check_finite()
        self._collect()
        self.state.metrics_bytes, self.state.log_bytes = size(self.paths.metrics), size(self.paths.log)
        if score is None and self.state.validated == self.state.step:
            score = self.validation.recorded(self.state.step)
        self._write(self.model, self.optimizer, score, averaged=False)
        self.saved = self.state.step
        self.log_started = time.monotonic()  # the speed of training is that of training

    def _write(
        self, model: Transformer, optimizer: torch.optim.Optimizer | None, score: Rank | None, averaged: bool
    ) -> None:
        state = dataclasses.asdict(self.state)
        state["seconds"] = self._clock()
        name = f"step-{self.state.step:08d}" + (".average" if averaged else "")
        checkpoint.save(
            self.paths.checkpoints / name,
            model,
            optimizer,
            {
                "step": self.state.step,
                "score": score and score[0],
                "nll": score and -score[1],
                "metric": self.settings.metric,
                "averaged": averaged,
                "train": state,
                "environment": self.runtime.describe(),
                "config_digest": self.config.digest(),
                "data_digest": self.sets.digest,
                "tokenizer_digest": self.sets.tokenizer.digest(),
            },
            self.config,
            self.sets.directory,
        )
        keep = self.settings.keep
        checkpoint.prune(self.paths, checkpoint.complete(self.paths), keep.last, keep.best)

    def _greet(self) -> None:
        count = sum(p.numel() for p in self.parameters)
        where = self.runtime
        if self.state.step:
            self.progress.line(f"going on from step {self.state.step}")
            for difference in self.differences:
                self.progress.line(f"not the same as before the stop: {difference}")
        else:
            self.progress.line(
                f"{count:,} parameters on {where.device} in {where.precision}, {where.threads} CPU threads; "
                f"{len(self.sets.train):,} pairs, about {self.settings.batch_tokens:,} tokens an update"
            )
        if self.settings.minutes:
            self.progress.line("the limit is in minutes, so that the run cannot be reproduced exactly")
        if not self.sets.valid:
            self.progress.line("warning: no validation set; the last checkpoint counts as the best")
        self.validation.check()


def train(config: Config, fresh: bool) -> int:
    """`nmt train`: prepares if needed, then trains or goes on training. Returns the exit code."""
    from nmt.data.prepare import prepare
    from nmt.data.sampling import SAMPLINGS, sampled
    from nmt.progress import say

    paths = Run(config.run_dir)
    runtime.choose(config.train.device, config.train.precision, config.train.threads)  # says at once what is missing
    prepared = prepare(config, fresh=False, say=say)
    with paths.claimed("training"):
        if fresh:
            start_anew(paths)
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
        return fit(config, sets)
