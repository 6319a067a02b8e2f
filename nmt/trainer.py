"""The loop around the updates of a run, and what it writes down.

What is not in `TrainState` is a function of (config, seed, step): the order of batches, dropout, the learning rate.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from nmt import checkpoint, optim, runtime
from nmt.choice import Choice, build
from nmt.config import Config
from nmt.data import filters, plan
from nmt.errors import NotFiniteError
from nmt.faults import IN_ROW, Faults
from nmt.feed import Ahead, Feed, Pairs, Position
from nmt.files import write_file
from nmt.journal import Journal
from nmt.limits import Limits, counted
from nmt.loss import OBJECTIVES, Objective
from nmt.metrics import METRICS
from nmt.model.transformer import Transformer
from nmt.optim import OPTIMIZERS, SCHEDULES
from nmt.ranks import Ranks
from nmt.resume import Resumed, begun, go_back, resume, start_anew, starting_point
from nmt.run import Run
from nmt.signals import Signals, Stop
from nmt.strict_yaml import dump
from nmt.tokenizer import Tokenizer
from nmt.update import TOTALS, Updater
from nmt.validate import Rank, Validation, ValidPairs

SILENT = 20  # seconds without a word, after which one is said that the work is going on


@dataclass
class Sets:
    """The data of a run: pairs to train on, by corpus, validation sets by name, and the tokenizer's directory."""

    train: Pairs
    shares: list[plan.Share]
    valid: Mapping[str, ValidPairs]
    tokenizer: Tokenizer
    directory: Path
    digest: str


class Trainer:
    """One process's hold on a run: the model, its optimiser, its state, and where they go."""

    def __init__(
        self, config: Config, sets: Sets, signals: Signals, ranks: Ranks | None = None, fresh: bool = False
    ) -> None:
        settings = config.train
        self.config, self.settings, self.sets, self.signals = config, settings, sets, signals
        self.ranks = ranks or Ranks()
        self.paths = Run(config.run_dir)
        self.runtime = runtime.choose(settings.device, settings.precision, settings.threads)
        runtime.seed_step(config.seed, 0)
        pieces = sets.tokenizer
        self.model = checkpoint.build_model(config.model, len(pieces.src), len(pieces.tgt)).to(self.runtime.device)
        self.model.dtype = self.runtime.dtype
        optim.freeze(self.model, settings.freeze)
        named = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        self.optimizer: optim.Optimizer = build(OPTIMIZERS, settings.optimizer, named)
        self.schedule: optim.Schedule = build(SCHEDULES, settings.schedule, settings.steps)
        self.limits = Limits(settings, self.ranks)
        self.journal = Journal(self.paths, self.ranks.first, settings.tensorboard)
        self.resumed = Resumed(self.model, self.optimizer, optim.averages(self.model, settings.ema))
        if settings.init_from and (fresh or not begun(self.paths)):
            start = starting_point(settings.init_from, config)
            checkpoint.load_weights(self.model, start.weights(), start.directory)
            self.resumed.averages = optim.averages(self.model, settings.ema)
        mine, of = self.ranks.rank, self.ranks.world
        device = self.runtime.device
        self.feed = Feed(sets.train, sets.shares, settings.batch_tokens, config.seed, device, mine, of)
        self.updater = Updater(self.model, self._objective(), self.optimizer, self.feed, self.ranks, self.runtime)
        self.validation = self._validation()
        self.validation.check()
        if fresh:
            self.ranks.wait()  # all processes can begin, so that nothing is deleted in vain
            if self.ranks.first:
                start_anew(self.paths)
        self.state, self.differences = resume(
            self.paths, config, self.runtime, self.resumed, pieces.digest(), sets.digest, self.ranks
        )
        self.ranks.wait()  # the logs are cut
        self._begin()

    def _begin(self) -> None:
        """Takes up the state: from the start, from a checkpoint, or after going back to one."""
        state = self.state
        self.saved = state.step or -1  # the step of the newest checkpoint
        for index, key in enumerate(TOTALS):
            self.updater.totals[index] = state.since_log.get(key, 0.0)
        if not self.ranks.first:  # has counted those of all
            self.updater.totals[:2] = 0.0
        self.updater.scale, self.updater.finite_in_row = state.loss_scale or self.updater.scale, state.finite_in_row
        self.faults = Faults(self.updater, self.sets.train.where, self.journal.line)
        if state.accumulate is None:
            wanted = self.settings.accumulate
            state.accumulate = self.updater.micro_batches() if wanted == "auto" else wanted
        left_out = [Position(*at) for at in state.left_out]
        self.feed = dataclasses.replace(self.feed, left_out=left_out)
        self.updater.feed = self.feed
        self.ahead: Ahead = self.feed.ahead(Position(state.epoch, state.window, state.batch), state.accumulate)
        self.limits.begin(state)
        self.log_started = time.monotonic()

    def close(self) -> None:
        self.ahead.close()
        self.journal.close()

    def _validation(self) -> Validation:
        config = self.config
        metrics = [build(METRICS, Choice(name, options), config.tgt_lang) for name, options in config.metrics.items()]
        return Validation(
            self.sets.valid,
            self.sets.tokenizer,
            config.search,
            filters.longest(config.data.filters),
            metrics,
            self.settings.metric,
            config.tgt_lang,
            self.runtime,
            self.paths,
            self.journal.line,
            self.ranks,
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
        if self.limits.over(state) and state.finished:
            limit, more = self.limits.reached(state)
            self.journal.line(
                f"nothing to do: the run is complete at step {state.step} ({limit}); to go on, set {more}"
            )
            return 0
        state.finished = False  # a complete run goes on when its limit was raised
        if self.ranks.first:
            with write_file(self.paths.config) as stream:
                stream.write(dump(self.config.tree()).encode())
        self._greet()
        self.silent_since = time.monotonic()
        try:
            while not (over := self.limits.over(self.state)) or self.state.validated != self.state.step:
                if over or (self._due(settings.validate_every) and self.state.validated != self.state.step):
                    if self._sound():
                        self.validate()
                    continue  # patience may have run out, or the run has gone back
                if self._due(settings.save_every) and self.saved != self.state.step:
                    self.save()
                if self.stopping:
                    raise Stop
                self.update()
                self._report()
            self._finish()
        except Stop:
            if self.saved != self.state.step:
                self.save()
            name = signal.Signals(self.stopping).name
            self.journal.line(
                f"stopped by {name} at step {self.state.step}; everything is saved, the same command goes on"
            )
            return 128 + self.stopping
        return 0

    @property
    def stopping(self) -> int:
        """The signal that some process has received."""
        return int(self.ranks.most(self.signals.received)[0])

    def _due(self, every: int) -> bool:
        return self.state.step > 0 and self.state.step % every == 0

    def _finish(self) -> None:
        """The end of a run, which is validated, always saves, also the average of the last snapshots."""
        if self.saved != self.state.step:  # before the average: snapshots that no checkpoint names are deleted
            self.save()
        if len(self.state.snapshots) > 1 and self.sets.valid:
            self._score_average()
        if self.ranks.first:
            self._say_done()
        self.state.finished = True
        self.save()  # with the line above in its log, which so survives being resumed

    def _say_done(self) -> None:
        best = checkpoint.by_score(checkpoint.complete(self.paths))[0]
        score = "" if best.score is None else f" ({self.settings.metric} {abs(best.score):.2f})"
        state, (limit, _) = self.state, self.limits.reached(self.state)
        self.journal.line(
            f"done at step {state.step} ({limit}) after {self.limits.took(state)}; best is {best.directory}{score}"
        )

    # --- one update ---

    def update(self) -> None:
        """One step of the optimiser on the gradient of the mean loss per target token."""
        state, settings = self.state, self.settings
        ready = self.ahead.take()
        factor = state.rate_factor * self.schedule(state.step, self.limits.passed)
        outcome = self.updater(ready, self.config.seed, state.step, factor, settings.clip_norm, state.accumulate or 1)
        if outcome.accumulate != state.accumulate:
            self.journal.line(
                f"memory did not suffice: from step {state.step} on {outcome.accumulate} micro-batches an update"
            )
            state.accumulate = outcome.accumulate
            self.ahead.close()
            self.ahead = self.feed.ahead(ready.next, outcome.accumulate)
        for pair in outcome.too_long:
            self.journal.line(f"warning: left out, since it alone fills the memory: {self.sets.train.where(pair)}")
        sums = state.since_log
        for key, value in (("steps", 1), ("tokens", ready.tokens), ("padding", ready.padding)):
            sums[key] = sums.get(key, 0) + value
        sums["lr"] = self.optimizer.peak * factor
        state.step += 1
        state.target_tokens += ready.tokens
        state.epoch, state.window, state.batch = ready.next
        state.epochs = ready.epochs
        self.limits.look(state)
        if self.resumed.averages and not outcome.skipped:
            optim.follow(self.resumed.averages, self.updater.parameters, settings.ema, state.step)
        self.faults.follow(state.step, ready)
        if self.runtime.device.type != "cuda":  # which would have to be waited for
            self._look_back()

    def _look_back(self) -> None:
        """Goes back if too many of the updates since the last look were skipped."""
        if self.faults.too_many(self.state):
            self._go_back(f"{IN_ROW} updates in a row were not finite")

    def _sound(self) -> bool:
        """Whether the weights are numbers, and so may be kept. If not, the run goes back."""
        before = self.state
        self._look_back()
        if self.state is not before:
            return False
        tensors = [*self.model.parameters(), *self.resumed.averages]
        if all(bool(torch.isfinite(tensor).all()) for tensor in tensors):
            return True
        self._go_back("the weights are not finite")
        return False

    def _go_back(self, what: str) -> None:
        """To the newest good checkpoint, with a lower learning rate. Raises NmtError if that did not help before."""
        before = self.state
        self.state = state = go_back(self.paths, self.resumed, self.ranks, before, what)
        self.journal.line(
            f"{what}: going back from step {before.step} to step {state.step}, "
            f"with {state.rate_factor:g} times the learning rate and without those batches"
        )
        self.ahead.close()
        self._begin()

    # --- numbers ---

    def _collect(self) -> dict[str, float]:
        """Copies the sums from the device into the state, beside the time that they took."""
        sums = self.state.since_log
        totals = self.updater.totals.clone()
        self.ranks.sum(totals[:2])  # the others are the same in all processes
        sums.update(zip(TOTALS, totals.tolist(), strict=True))  # waits for a GPU
        now = time.monotonic()
        sums["seconds"] = sums.get("seconds", 0.0) + now - self.log_started
        self.log_started = now
        return sums

    def _report(self) -> None:
        """Numbers, when they are due; and once a word before them, where the first ones take long to come."""
        state, every, waited = self.state, self.settings.log_every, time.monotonic() - self.silent_since
        if self._due(every) and "steps" in state.since_log:  # it may have gone back
            self.log()
        elif waited > SILENT:
            self.journal.line(f"step {state.step} after {waited:.0f} seconds; numbers come every {every} steps")
        else:
            return
        self.silent_since = math.inf

    def log(self) -> None:
        sums, state = self._collect(), self.state
        memory = max(self.ranks.most(runtime.peak_memory(self.runtime.device)))
        seconds, left = self.limits.seconds(state), self.limits.left()
        self.journal.updates(state.step, state.epochs, sums, seconds, self.limits.passed, left, memory)
        state.since_log = {}
        self.updater.totals.zero_()
        self._look_back()

    # --- validation ---

    def _measured(self) -> Transformer:
        """The model that is measured and kept: with averaged weights, if they are averaged all along."""
        if not self.resumed.averages:
            return self.model
        model = copy.deepcopy(self.model)
        optim.replace(model, self.resumed.averages)
        return model

    def validate(self) -> None:
        """Scores the model on the validation sets, and decides whether it is a new best."""
        paused = time.monotonic()
        state, settings = self.state, self.settings
        model = self._measured()
        try:
            score = self._measure(model)
        except NotFiniteError as error:
            self._go_back(str(error))
            return
        state.validated, state.score = state.step, None if score is None else list(score)
        if settings.average and self.ranks.first:
            checkpoint.save_snapshot(self.paths, state.step, model)
        state.snapshots = [*state.snapshots, state.step][-settings.average :] if settings.average else []
        better = score is not None and (state.best is None or score > tuple(state.best))
        if better and score is not None:
            state.best, state.stale = list(score), 0
        elif score is not None:
            state.stale += 1
        self.log_started += time.monotonic() - paused
        if better or self._due(settings.save_every):
            self.save()

    def _score_average(self) -> None:
        """The mean of the last snapshots is scored like any other model, and competes for best."""
        self.ranks.wait()  # the first process writes the snapshots
        mean, count = checkpoint.average(self.paths, self.state.snapshots, self.journal.line)
        if count < 2:
            return
        averaged = copy.deepcopy(self.model)
        checkpoint.load_weights(averaged, mean, self.paths.checkpoints)
        try:
            score = self._measure(averaged, count)
        except NotFiniteError as error:
            self.journal.line(f"warning: the average of the last snapshots is not kept: {error}")
        else:
            self._write(averaged, score, averaged=True)

    def _measure(self, model: Transformer, averaged: int = 0) -> Rank | None:
        """Scores a model on the validation sets; broken off by a signal, it leaves no trace in the logs."""
        # Of several processes none may leave alone: the others would wait for its translations.
        alone = self.signals.breaking_off() if self.ranks.world == 1 else contextlib.nullcontext()
        with self.journal.whole_or_nothing(), alone:
            rows, score = self.validation.score(model, self.state.step, averaged)
            for row in rows:
                self.journal.numbers("valid", **row, target_tokens=self.state.target_tokens)
        return score

    # --- saving ---

    def save(self) -> None:
        if not self._sound():
            return
        self._collect()
        self.state.metrics_bytes, self.state.log_bytes = self.journal.sizes()
        self.state.loss_scale, self.state.finite_in_row = self.updater.scale, self.updater.finite_in_row
        score = self.state.score if self.state.validated == self.state.step else None
        self._write(self._measured(), score, averaged=False)
        self.saved = self.state.step
        self.log_started = time.monotonic()  # the speed of training is that of training

    def _write(self, model: Transformer, score: Sequence[float] | None, averaged: bool) -> None:
        if not self.ranks.first:
            return
        state = dataclasses.asdict(self.state)
        state["seconds"] = self.limits.seconds(self.state)
        name = f"step-{self.state.step:08d}" + (".average" if averaged else "")
        checkpoint.save(
            self.paths.checkpoints / name,
            model,
            {} if averaged else self.resumed.tensors(),
            {
                "step": self.state.step,
                "score": score and score[0],
                "nll": score and -score[1],
                "metric": self.settings.metric,
                "averaged": averaged,
                "train": state,
                "environment": self.runtime.describe() | {"processes": self.ranks.world},
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
        count = sum(p.numel() for p in self.model.parameters())
        where, state = self.runtime, self.state
        if state.step:
            self.journal.line(f"going on from step {state.step}")
            for difference in self.differences:
                self.journal.line(f"not the same as before the stop: {difference}")
        else:
            processes = f"{self.ranks.world} processes, each " if self.ranks.world > 1 else ""
            threads = counted(where.threads, "CPU thread")
            self.journal.line(f"{count:,} parameters on {processes}{where.device} in {where.precision}, {threads}")
            self.journal.line(self._batches())
        if self.settings.minutes:
            self.journal.line(
                "the limit is in minutes: the run cannot be reproduced exactly, and its last validation comes on top"
            )
        if not self.sets.valid:
            self.journal.line("warning: no validation set; the last checkpoint counts as the best")

    def _batches(self) -> str:
        epoch = self.feed.judged()
        operations = 6 * sum(p.numel() for p in self.model.parameters() if p.ndim == 2) * epoch.tokens
        return (
            f"{len(self.sets.train):,} pairs; an epoch has about {counted(epoch.batches, 'batch', 'batches')} of "
            f"{epoch.tokens:,.0f} target tokens, {epoch.padding:.1%} padding; an update costs about "
            f"{operations / 1e9:,.0f} GFLOP in {counted(self.state.accumulate or 1, 'micro-batch', 'micro-batches')}"
        )
