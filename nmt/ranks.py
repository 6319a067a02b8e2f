"""The processes that do one thing together: who one is, sums over all of them, agreement, and one file of all.

torchrun starts them; a process by itself is the first and only one of its kind, for which nothing here costs anything.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from nmt.errors import NmtError
from nmt.files import check_writable, write_file

T = TypeVar("T")
TIMEOUT = timedelta(minutes=10)  # after which a process gives up waiting for the others
PATIENCE = timedelta(days=30)  # the same, where one may be done long before the others
GONE = ("Connection closed", "Connection reset", "Broken pipe")  # what is said of another process that has ended


@contextlib.contextmanager
def _answered() -> Iterator[None]:
    """Raises NmtError if another process has ended, which has said why."""
    try:
        yield
    except RuntimeError as error:
        if not any(words in str(error) for words in GONE):
            raise
        raise NmtError("another process has ended; what it said before tells why") from None


class Ranks:
    """This process among `world` ones, numbered from 0. Only the first writes and speaks."""

    def __init__(self, rank: int = 0, world: int = 1, messages: Any = None) -> None:
        """`messages` is the group for what is on the host: a GPU is not waited for to agree on something."""
        self.rank, self.world, self.messages = rank, world, messages

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.world > 1:
            with _answered():
                dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, parameters: list[torch.nn.Parameter]) -> None:
        """Adds up the gradients of all processes in one message; a process without any counts as zero."""
        if self.world == 1:
            return
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([grad.flatten() for grad in grads])
        with _answered():
            dist.all_reduce(flat)
        parts = torch.split(flat, [p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def most(self, *values: float) -> list[float]:
        """The largest of each value over all processes."""
        if self.world == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        with _answered():
            dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self.messages)
        found: list[float] = tensor.tolist()
        return found

    def gather(self, value: T) -> list[T]:
        """What each process has, in their order, for all of them."""
        if self.world == 1:
            return [value]
        found: list[Any] = [None] * self.world
        with _answered():
            dist.all_gather_object(found, value, group=self.messages)
        return found

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            with _answered():
                dist.barrier(group=self.messages)


def started() -> tuple[int, int, int]:
    """What torchrun says: this process, its number on this machine, and how many there are on it."""
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    rank, local, here = (int(os.environ.get(name, fallback)) for name, fallback in zip(names, (0, 0, 1), strict=True))
    return rank, local, here


def everywhere() -> tuple[int, int]:
    """What torchrun says: this process, and how many there are on all machines."""
    return started()[0], int(os.environ.get("WORLD_SIZE", 1))


def join(device: torch.device, timeout: timedelta = TIMEOUT) -> Ranks:
    """Meets the other processes, if torchrun started more than one."""
    if everywhere()[1] == 1:
        return Ranks()
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timeout)
    return Ranks(dist.get_rank(), dist.get_world_size(), dist.new_group(backend="gloo", timeout=timeout))


def leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


@contextlib.contextmanager
def shared_file(path: str, overwrite: bool, ranks: Ranks) -> Iterator[IO[bytes]]:
    """As `write_file`, for a file that all processes write, each a part: in their order they are the file.

    It appears when all are done. The parts lie beside it, where all machines must see them.
    """
    if ranks.world == 1:
        with write_file(path, overwrite) as stream:
            yield stream
        return
    check_writable(path, overwrite)
    parts = [Path(f"{path}.part-{rank}-of-{ranks.world}") for rank in range(ranks.world)]
    try:
        with write_file(parts[ranks.rank]) as stream:
            yield stream
        ranks.wait()
        if ranks.first:
            with write_file(path, overwrite) as whole:
                for part in parts:
                    if not part.exists():
                        raise NmtError(f"{part}: is not there; all machines must write into the same directory")
                    with open(part, "rb") as stream:
                        shutil.copyfileobj(stream, whole)
        ranks.wait()
    finally:
        parts[ranks.rank].unlink(missing_ok=True)
