"""The processes that train one model together: who one is, sums over all of them, and agreement.

torchrun starts them; a process by itself is the first and only one of its kind, for which nothing here costs anything.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")
TIMEOUT = timedelta(minutes=10)  # after which a process gives up waiting for the others


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
            dist.all_reduce(tensor)
        return tensor

    def sum_gradients(self, parameters: list[torch.nn.Parameter]) -> None:
        """Adds up the gradients of all processes in one message; a process without any counts as zero."""
        if self.world == 1:
            return
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        flat = torch.cat([grad.flatten() for grad in grads])
        dist.all_reduce(flat)
        parts = torch.split(flat, [p.numel() for p in parameters])
        for parameter, part in zip(parameters, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def most(self, *values: float) -> list[float]:
        """The largest of each value over all processes."""
        if self.world == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self.messages)
        found: list[float] = tensor.tolist()
        return found

    def gather(self, value: T) -> list[T]:
        """What each process has, in their order, for all of them."""
        if self.world == 1:
            return [value]
        found: list[Any] = [None] * self.world
        dist.all_gather_object(found, value, group=self.messages)
        return found

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            dist.barrier(group=self.messages)


def started() -> tuple[int, int, int]:
    """What torchrun says: this process, its number on this machine, and how many there are on it."""
    names = ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    rank, local, here = (int(os.environ.get(name, fallback)) for name, fallback in zip(names, (0, 0, 1), strict=True))
    return rank, local, here


def join(device: torch.device) -> Ranks:
    """Meets the other processes, if torchrun started more than one."""
    world = int(os.environ.get("WORLD_SIZE", 1))
    if world == 1:
        return Ranks()
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
    return Ranks(dist.get_rank(), world, dist.new_group(backend="gloo", timeout=TIMEOUT))


def leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
