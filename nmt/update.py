"""One update of the weights: gradients of micro-batches, summed over all processes; memory that does not suffice and
numbers that are not finite are dealt with here."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from nmt import optim, runtime
from nmt.errors import NmtError
from nmt.feed import Feed, Position, Ready
from nmt.loss import CHUNK, Objective
from nmt.model.attention import Attention
from nmt.model.transformer import Transformer
from nmt.optim import Optimizer
from nmt.ranks import Ranks
from nmt.runtime import Runtime

LEAST_SCALE, MOST_SCALE = 1.0, 2.0**24  # of fp16 gradients
LONG_SIDE = 64  # keys of a query, for an estimate
PATIENCE = 2_000  # finite updates after which that scale doubles
UNFIT = 3  # updates in a row of whose pairs not one fits into memory, after which training ends
TOTALS = ("loss", "nll", "norm", "used", "skipped")  # what is summed up over updates


def memory_needed(model: Transformer, tokens: int) -> float:
    """Bytes that the activations of a batch take, about: of `tokens` places on each side."""
    floats = 0
    for layer in (*model.encoder, *model.decoder):
        widths = [module.weight.shape[0] for module in layer.modules() if isinstance(module, nn.Linear)]
        floats += 3 * sum(widths)  # a product, what came of it, and its gradient
    attention = LONG_SIDE * sum(isinstance(m, Attention) * m.heads for m in model.modules() if isinstance(m, Attention))
    logits = CHUNK * model.projection.weight.shape[0] * 4
    return 4.0 * (tokens * (floats + 3 * attention) + logits)


@dataclass
class Outcome:
    """Of an update."""

    accumulate: int  # micro-batches a process that it took
    skipped: bool  # whether its gradient was not finite, where that is known already
    too_long: list[int]  # pairs that do not fit into memory even alone, and were left out


class Updater:
    """Holds what an update changes, and the sums that are logged."""

    def __init__(
        self, model: Transformer, objective: Objective, optimizer: Optimizer, feed: Feed, ranks: Ranks, where: Runtime
    ) -> None:
        self.model, self.objective, self.optimizer = model, objective, optimizer
        self.feed, self.ranks, self.where = feed, ranks, where
        self.parameters: list[nn.Parameter] = [p for p in model.parameters() if p.requires_grad]
        self.scale = 1.0 if where.precision != "fp16" else 2.0**16
        self.finite_in_row = 0
        # Numbers that stay on the device, so that a GPU is not waited for at every step: sums of loss, nll, gradient
        # norm and target tokens, and the number of updates that were skipped, which are in none of these sums; and for
        # each of the last updates whether it had a fault.
        exact = torch.float32 if where.device.type == "mps" else torch.float64  # which mps does not have
        self.totals = torch.zeros(len(TOTALS), dtype=exact, device=where.device)
        self.faults: list[Tensor] = []
        self.unfit_in_row = 0  # updates of whose pairs not one fitted into memory

    def __call__(self, ready: Ready, seed: int, step: int, factor: float, clip_norm: float, accumulate: int) -> Outcome:
        """`factor` is that of the schedule on the peak rate."""
        self.model.train()
        given, too_long = accumulate, list[int]()
        while ready.src:
            if ready.parts != self.ranks.world * accumulate:
                ready = self.feed.split(ready, accumulate)
            sums = self._gradients(ready, seed, step)
            (failed,) = self.ranks.most(sums is None)
            if not failed and sums is not None:
                self.ranks.sum_gradients(self.parameters)
                skipped, self.unfit_in_row = self._step(sums, ready.tokens, factor, clip_norm), 0
                # After a pair that alone was too much, the others may do with what was given.
                return Outcome(given if too_long else accumulate, skipped, too_long)
            self._free()
            if ready.parts < len(ready.src):
                accumulate *= 2
            else:
                ready = self._without_longest(ready, too_long)
        self.unfit_in_row += 1
        if self.unfit_in_row == UNFIT:
            raise NmtError(
                f"memory did not suffice for any pair of {UNFIT} updates in a row; make the model smaller, "
                "lower data.filters.length.max_tokens, or use another device"
            )
        self.totals[-1] += 1
        self.faults.append(torch.zeros((), dtype=torch.bool, device=self.where.device))
        return Outcome(given, True, too_long)

    def new_faults(self) -> list[bool]:
        """For each update since the last call whether it had a gradient that is not finite, and not for fp16's sake."""
        found = torch.stack(self.faults).tolist() if self.faults else []
        self.faults = []
        return found

    def micro_batches(self) -> int:
        """As few for each process as memory allows: on a GPU by trying the largest shapes of the first window."""
        if self.where.device.type != "cuda":
            available = runtime.available_memory(self.where.device) / self.ranks.world
            needed = memory_needed(self.model, self.feed.batch_tokens // self.ranks.world)
            return max(1, math.ceil(self.ranks.most(needed / available)[0]))
        specs = self.feed.specs(0, 0)
        accumulate = 1
        for spec in (max(specs, key=lambda s: len(s.pairs) * max(s.shape)), max(specs, key=lambda s: max(s.shape))):
            src, tgt = self.feed.pairs.epoch(0).ids(spec.pairs)
            ready = Ready(Position(0, 0, 0), 1, 1, spec.pairs, src, tgt, spec.shape, 0, [])
            accumulate = self.try_out(ready, accumulate)
        return accumulate

    def try_out(self, ready: Ready, accumulate: int) -> int:
        """How many micro-batches a batch needs, `accumulate` or more; nothing is changed."""
        self.model.train()
        while ready.parts < len(ready.src):
            ready = self.feed.split(ready, accumulate)
            (failed,) = self.ranks.most(self._gradients(ready, 0, 0) is None)
            self._free()
            if not failed:
                break
            accumulate *= 2
        return accumulate

    def _gradients(self, ready: Ready, seed: int, step: int) -> Tensor | None:
        """Adds up the gradients of this process's micro-batches; returns the sums of loss and nll, None if memory did
        not suffice."""
        sums = torch.zeros(2, dtype=self.totals.dtype, device=self.totals.device)
        try:
            for index, micro in enumerate(ready.mine):
                if micro is None:
                    continue
                runtime.seed_step(seed, step, self.ranks.rank * len(ready.mine) + index)
                result = self.objective(self.model, micro, self.scale / ready.tokens)
                result.loss.backward()  # type: ignore[no-untyped-call]
                sums += torch.stack([result.loss.detach() * (ready.tokens / self.scale), result.nll]).to(sums)
        except (RuntimeError, MemoryError) as error:
            if not runtime.out_of_memory(error):
                raise
            return None
        return sums

    def _free(self) -> None:
        self.optimizer.zero_grad()
        runtime.free_memory(self.where.device)

    def _without_longest(self, ready: Ready, too_long: list[int]) -> Ready:
        """A single pair that does not fit is left out, and the others are used."""
        longest = max(range(len(ready.src)), key=lambda i: len(ready.src[i]) + len(ready.tgt[i]))
        too_long.append(int(ready.pairs[longest]))
        src, tgt = ([*side[:longest], *side[longest + 1 :]] for side in (ready.src, ready.tgt))
        return replace(ready, pairs=np.delete(ready.pairs, longest), src=src, tgt=tgt, parts=0, mine=[])

    def _step(self, sums: Tensor, tokens: int, factor: float, clip_norm: float) -> bool:
        if self.scale != 1.0:
            torch._foreach_mul_([p.grad for p in self.parameters if p.grad is not None], 1 / self.scale)
        norm = optim.clip(self.parameters, clip_norm)
        blown = ~torch.isfinite(norm)
        if self.where.device.type == "cuda" and self.optimizer.can_skip and self.scale == 1.0:
            self.optimizer.step(factor, blown.float())  # decides on the device
            skipped = False
        else:
            skipped = bool(blown)
            if not skipped:
                self.optimizer.step(factor)
        self.optimizer.zero_grad()
        counted = torch.cat([sums, norm.to(sums).reshape(1), sums.new_full((1,), tokens)])
        self.totals[:-1] += torch.where(blown, 0.0, counted.nan_to_num())
        self.totals[-1] += blown
        overflows = self.where.precision == "fp16" and self.scale > LEAST_SCALE  # which is no fault
        self.faults.append(torch.zeros_like(blown) if overflows else blown)
        if self.where.precision == "fp16":
            self._rescale(skipped)
        return skipped

    def _rescale(self, skipped: bool) -> None:
        """Halves the scale of fp16 gradients when they overflow, and doubles it when they have not for long."""
        self.finite_in_row = 0 if skipped else self.finite_in_row + 1
        if skipped:
            self.scale = max(LEAST_SCALE, self.scale / 2)
        elif self.finite_in_row == PATIENCE:
            self.scale, self.finite_in_row = min(MOST_SCALE, self.scale * 2), 0
