"""The runs of a sweep, one after another, each in a process of its own; what is finished is not done again."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from nmt import variants
from nmt.data.prepare import take_over
from nmt.errors import NmtError
from nmt.files import locked, remove_directory, write_file
from nmt.progress import say
from nmt.report import settings
from nmt.signals import Signals
from nmt.strict_yaml import dump
from nmt.sweep import outcomes
from nmt.sweep.outcomes import Outcome
from nmt.sweep.plan import Job, Sweep
from nmt.sweep.table import table

TRAIN = [sys.executable, "-m", "nmt", "train"]
POLL = 0.1  # seconds
Todo = Literal["begin", "go on", "begin anew", "leave"]


class Runner:
    """All runs of a sweep, and what has come of them."""

    def __init__(self, sweep: Sweep, again: bool = False) -> None:
        """`again`: runs that have failed are tried again, and those that had other settings are trained anew."""
        self.sweep, self.again = sweep, again
        self.outcomes = outcomes.read(sweep.out / "sweep.jsonl")

    def table(self) -> str:
        """Of what was trained with the settings as they are now."""
        found = ((job, self.outcomes.get(job.key)) for job in self.sweep.jobs)
        same = {job.key: one for job, one in found if one and one.config == job.digest}
        return table(self.sweep, same, [job.key for _, job, todo in self._todo() if todo == "leave"])

    def plan(self) -> str:
        """What `run` would do."""
        lines, used = [], self.used
        for number, job, todo in self._todo():
            if todo == "leave":
                lines.append(f"{self._title(number, job)}, trained with other settings ({_change(job)})")
                continue
            need = self._need(job, todo)
            fits = self._fits(used, need)
            used += need if fits else 0
            remarks = [f"{need:.1f} minutes"] if need else []
            remarks += [todo] if todo != "begin" else []
            remarks += [] if fits else ["does not fit into the limit"]
            lines.append(", ".join([self._title(number, job), *remarks]))
        known = all(job.config.train.minutes for job in self.sweep.jobs)
        then = f", at least {self._minutes(used)} when all this is done" if known else ""
        lines.append(f"{self._minutes(self.used)} used{then}")
        return "\n".join(lines) + "\n"

    def run(self) -> int:
        """Trains what is to be trained. Returns 0, or 128 + the signal that ended it early."""
        todos = list(self._todo())
        self._name_changed([job for _, job, todo in todos if todo == "leave"])
        self._name_strangers()
        left_out = 0
        with self._claimed(), Signals() as signals:
            for number, job, todo in todos:
                if todo == "leave":
                    continue
                if not self._fits(self.used, self._need(job, todo)):
                    left_out += 1
                    continue
                how = "" if todo == "begin" else f", {todo}"
                say(f"{self._title(number, job)}{how}; {self._minutes(self.used)} used")
                code = self._train(job, todo, signals)
                if code:
                    say("stopped; everything is saved, the same command goes on")
                    return code
        if left_out:
            runs = "1 run does" if left_out == 1 else f"{left_out} runs do"
            say(f"{runs} not fit into the limit of {self.sweep.limit:g} minutes; raise it to go on")
        return 0

    @property
    def used(self) -> float:
        """Minutes."""
        return sum(outcome.seconds for outcome in self.outcomes.values()) / 60

    def _minutes(self, used: float) -> str:
        return f"{used:.1f} of {self.sweep.limit:g} minutes" if self.sweep.limit else f"{used:.1f} minutes"

    def _title(self, number: int, job: Job) -> str:
        return f"{number} of {len(self.sweep.jobs)}: {job.name}"

    # --- what is to be done ---

    def _todo(self) -> Iterator[tuple[int, Job, Todo]]:
        for number, job in enumerate(self.sweep.jobs, 1):
            outcome = self.outcomes.get(job.key)
            if outcome is None:
                yield number, job, "begin"
            elif outcome.config != job.digest:
                yield number, job, "begin anew" if self.again or outcome.state == "failed" else "leave"
            elif outcome.state == "begun" or (outcome.state == "failed" and self.again):
                yield number, job, "go on"

    def _need(self, job: Job, todo: Todo) -> float:
        """How many minutes a run will take; 0 where its limit is none of time."""
        spent = self.outcomes[job.key].seconds / 60 if todo == "go on" else 0.0
        return max(0.0, (job.config.train.minutes or 0.0) - spent)

    def _fits(self, used: float, need: float) -> bool:
        limit = self.sweep.limit
        return limit is None or (used < limit and used + need <= limit)

    def _name_changed(self, jobs: list[Job]) -> None:
        if jobs:
            say(
                f"note: trained with other settings, and left as they are: {_some([f'`{job.name}`' for job in jobs])} "
                f"({_change(jobs[0])}); undo the change, give variants new names, or train these anew with --again"
            )

    def _name_strangers(self) -> None:
        jobs = {job.key for job in self.sweep.jobs}
        if strangers := [f"`{variant}, seed {seed}`" for variant, seed in self.outcomes if (variant, seed) not in jobs]:
            say(f"note: no longer in {self.sweep.file}, and kept as they are: {_some(strangers)}")

    # --- one run ---

    @contextlib.contextmanager
    def _claimed(self) -> Iterator[None]:
        out = self.sweep.out
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NmtError(f"out {out}: cannot be written: {error.strerror}") from None
        with locked(out / ".lock", "sweeping"):
            yield

    def _train(self, job: Job, todo: Todo, signals: Signals) -> int:
        """Returns 0, whatever has come of the run, or 128 + the signal that has stopped it."""
        self._make_ready(job, todo)
        outcome = self.outcomes.get(job.key) or Outcome(*job.key, job.digest)
        outcome.config, outcome.state, outcome.why, outcome.result = job.digest, "begun", "", {}
        self.outcomes[job.key] = outcome
        self._write()
        started = time.monotonic()
        try:
            code = _process(job, signals)
        finally:
            outcome.seconds += time.monotonic() - started
            self._write()
        stopped = signals.received or max(0, code - 128)
        if code == 0 or not stopped:
            self._judge(job, outcome, code)
            self._write()
        return 128 + stopped if stopped else 0

    def _make_ready(self, job: Job, todo: Todo) -> None:
        run = job.run
        if todo == "begin anew" and run.directory.exists():
            with run.claimed("beginning"):
                remove_directory(run.directory)
        with run.claimed("beginning"):
            if not run.prepared.exists():
                with contextlib.suppress(NmtError):  # its own process says what is wrong
                    take_over(job.config, (other.run for other in self.sweep.jobs), _tokenizer_from(job))
            with write_file(job.file) as stream:
                stream.write(dump(job.config.tree()).encode())

    def _judge(self, job: Job, outcome: Outcome, code: int) -> None:
        outcome.result = dict(outcomes.result(job.run, self.sweep.metric)) if code == 0 else {}
        if outcome.result:
            outcome.state = "finished"
            found = outcome.result
            what = f"{found['metric']} {found['score']:.2f} at step {found['step']:,} of {found['steps']:,}"
        else:
            outcome.state = "failed"
            outcome.why = _why(job.log, code)
            what = f"failed: {outcome.why}"
        say(f"{job.name}: {what}; {outcome.seconds / 60:.1f} minutes")

    def _write(self) -> None:
        outcomes.write(self.sweep.out / "sweep.jsonl", self.outcomes)
        with write_file(self.sweep.out / "sweep.md") as stream:
            stream.write(self.table().encode())


def _tokenizer_from(job: Job) -> Path | None:
    if not job.config.train.init_from:
        return None
    from nmt.checkpoint import find  # which loads torch

    return find(job.config.train.init_from).directory


def _process(job: Job, signals: Signals) -> int:
    """`nmt train`, in a session of its own, since Ctrl-C at the terminal would reach it a second time."""
    with open(job.log, "ab") as log:
        process = subprocess.Popen(
            [*TRAIN, str(job.file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    told = False
    try:
        while process.poll() is None:
            if signals.received and not told:
                process.send_signal(signals.received)
                told = True
            time.sleep(POLL)
    finally:
        process.kill()  # if a second signal has come
    return process.returncode


def _why(log: Path, code: int) -> str:
    """It failed, in a sentence."""
    if code < 0:
        name = signal.Signals(-code).name
        return f"killed by {name}" + (", most likely for want of memory" if name == "SIGKILL" else "")
    if code == 0:
        return "nothing was validated; is data.valid empty?"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().split("\n")
    return lines[-1].removeprefix("error: ") or f"exit code {code}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _change(job: Job) -> str:
    """What is not as it was when a run was begun."""
    try:
        before = variants.load(str(job.file))
    except NmtError:
        return f"{job.file} is gone"
    changes = settings.compared({"before": before, "now": job.config})
    return ", ".join(f"{key}: {was or 'none'} -> {now or 'none'}" for key, (was, now) in changes)
