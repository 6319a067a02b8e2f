"""What all contestants of `scripts/bench train` and `quality` share: the job that they are given, and the clock."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

WARM_UP = 5  # updates that are not counted


@dataclass(frozen=True)
class Job:
    """One training, given as JSON on the command line."""

    folder: str  # with ids.src and ids.tgt (a sentence a line, ids in decimal, no end of sentence), and config.yaml
    pieces: int  # of the vocabulary that both sides share; the first four are pad, unknown, begin and end of sentence
    longest: int  # sentence, its end counted
    layers: int  # of encoder and decoder each
    dim: int
    heads: int
    ffn_dim: int
    dropout: float
    batch_tokens: int  # rows x longest side, padding counted
    seconds: float
    threads: int
    precision: str
    rate: float = 1e-3  # at its peak
    warm_up: int = 1000  # updates up to there
    seed: int = 1
    save_every: int = 0  # updates; 0: never, and the program is watched and ended after `seconds`

    @classmethod
    def given(cls) -> "Job":
        return cls(**json.loads(sys.argv[1]))

    def ids(self, side: str) -> list[list[int]]:
        lines = (Path(self.folder) / f"ids.{side}").read_text().splitlines()
        return [[int(number) for number in line.split()] for line in lines]


class Meter:
    """Counts over the first updates that take `seconds` together, after the warm-up."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.updates = self.tokens = 0
        self.padding, self.began = 0.0, 0.0

    def step(self, tokens: int, padding: float) -> bool:
        """Notes an update that is done: its real target tokens, ends of sentences counted, and its padded share of both
        sides. Once the time is over it prints one line of JSON and returns True."""
        self.updates += 1
        now = time.perf_counter()
        if self.updates == WARM_UP:
            self.began = now
        if self.updates <= WARM_UP:
            return False
        self.tokens += tokens
        self.padding += padding
        if now - self.began < self.seconds:
            return False
        counted = self.updates - WARM_UP
        figures = {
            "tokens/s": self.tokens / (now - self.began),
            "tokens/update": self.tokens / counted,
            "padding": self.padding / counted,
            "updates": counted,
        }
        print(json.dumps(figures), flush=True)
        return True
