"""A model and batches so small that every variant can be tried."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from nmt import checkpoint
from nmt.config import Model
from nmt.data.batches import Batch, collate
from nmt.model.transformer import Transformer

CPU, VOCAB = torch.device("cpu"), 30
SIZES = {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}


def model_of(**settings: Any) -> Transformer:
    torch.manual_seed(1)
    return checkpoint.build_model(Model(**{**SIZES, **settings}), VOCAB, VOCAB).eval()


def batch(rows: int = 4, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    sides = [[np.append(rng.integers(4, VOCAB, rng.integers(1, 9)), 3) for _ in range(rows)] for _ in range(2)]
    return collate(*sides, (10, 10), CPU)
