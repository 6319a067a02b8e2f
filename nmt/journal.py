"""What a training writes down as it goes: lines for people, numbers for programs, a bar for who watches."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from nmt.errors import NmtError, NotFiniteError
from nmt.progress import TrainingProgress
from nmt.run import Record, Run, cut, size
from nmt.signals import Stop


class Journal:
    """train.log and stderr, metrics.jsonl, and TensorBoard where it is wanted. Only the first process writes."""

    def __init__(self, paths: Run, first: bool, tensorboard: bool) -> None:
        self.paths, self.first = paths, first
        self.progress = TrainingProgress(paths.log if first else None)
        self.record = Record(paths.metrics)
        self.board = summary_writer()(str(paths.directory / "tensorboard")) if tensorboard and first else None
        self.line = self.progress.line

    def close(self) -> None:
        self.progress.close()
        if self.board is not None:
            self.board.close()

    def numbers(self, kind: str, **values: Any) -> None:
        """A row of metrics.jsonl, and of TensorBoard."""
        if self.first:
            self.record.append(kind, **values)
        if self.board is not None:
            for key, value in values.items():
                if isinstance(value, (int, float)) and key != "step":
                    self.board.add_scalar(f"{kind}/{key}", value, values["step"])

    def updates(
        self,
        step: int,
        epochs: float,
        sums: Mapping[str, float],
        seconds: float,
        passed: float,
        left: float,
        memory: float,
    ) -> None:
        """What the updates since the last such row came to: sums over them, after `seconds` of the whole run, of which
        the share `passed` is done, with so many seconds `left`; `memory` in bytes."""
        steps, speed = sums["steps"], sums["tokens"] / sums["seconds"]
        used = sums["used"] or math.nan  # tokens; none where all updates were skipped
        loss, nll, norm = sums["loss"] / used, sums["nll"] / used, sums["norm"] / max(1.0, steps - sums["skipped"])
        ppl = math.exp(min(nll, 100))
        self.numbers(
            "train",
            step=step,
            epoch=round(epochs, 4),
            loss=loss if sums["used"] else None,
            nll=nll if sums["used"] else None,
            ppl=ppl if sums["used"] else None,
            lr=sums["lr"],
            grad_norm=norm,
            target_tokens_per_second=speed,
            padding=sums["padding"] / steps,
            skipped=int(sums["skipped"]),
            seconds=round(seconds, 1),
            memory_gb=round(memory / 1e9, 2),
        )
        self.line(
            f"step {step}  epoch {epochs:.2f}  loss {loss:.3f}  ppl {ppl:.2f}  norm {norm:.2f}  lr {sums['lr']:.2e}  "
            f"{speed:,.0f} target tokens/s  {memory / 1e9:.1f} GB  {_time(left)} left"
        )
        self.progress.at(passed, f"step {step} loss {loss:.3f} {speed:,.0f} tok/s lr {sums['lr']:.1e}")

    def sizes(self) -> tuple[int, int]:
        """Of metrics.jsonl and train.log, in bytes."""
        return size(self.paths.metrics), size(self.paths.log)

    @contextlib.contextmanager
    def whole_or_nothing(self) -> Iterator[None]:
        """What is written inside is taken back if a signal or numbers that are none break it off."""
        before = self.sizes()
        try:
            yield
        except (Stop, NotFiniteError):
            cut(self.paths.metrics, before[0])
            cut(self.paths.log, before[1])
            raise


def _time(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def summary_writer() -> Any:
    """TensorBoard's. Raises NmtError where it is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise NmtError("train.tensorboard needs the package tensorboard: pip install 'nmt[tensorboard]'") from None
    return SummaryWriter
