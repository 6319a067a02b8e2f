"""Counts what a whole training program of somebody else does, from outside: the ids that embeddings look up, and the
steps of the optimiser. So all are measured by one clock, whatever they print."""

import os
from pathlib import Path
from typing import Any

import torch
from meter import Job, Meter
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

SPECIALS = ["<unk>", "<blank>", "<s>", "</s>"]  # in this order, before all other names
EOS_ID = 3


def watch(job: Job) -> None:
    """From now on; ends the process when the job's time is over. Source and target are looked up in turn."""
    torch.set_num_threads(job.threads)
    meter = Meter(job.seconds)
    looked_up: list[tuple[int, int, int]] = []  # a side of a batch each: tokens, ends of sentences, places

    def look(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        if isinstance(module, nn.Embedding) and module.training:
            ids: Tensor = arguments[0]
            looked_up.append((int((ids != module.padding_idx).sum()), int((ids == EOS_ID).sum()), ids.numel()))

    def step(*_: Any) -> None:
        # A decoder's input begins with a bos and may go on to the eos, so without the eos it is as long as what it
        # learns to say.
        tokens = sum(found - ends for found, ends, _ in looked_up[1::2])
        real, places = (sum(side[i] for side in looked_up) for i in (0, 2))
        looked_up.clear()
        if meter.step(tokens, 1 - real / places):
            os._exit(0)

    register_module_forward_pre_hook(look)
    register_optimizer_step_post_hook(step)


def write_vocabulary(job: Job, path: Path, specials: list[str]) -> None:
    """A name a line. The names are the numbers that stand in the text."""
    path.write_text("\n".join([*specials, *map(str, range(len(SPECIALS), job.pieces))]) + "\n")
