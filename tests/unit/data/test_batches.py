"""Batches: padding on the right, the decoder's input one behind its targets."""

from __future__ import annotations

import numpy as np
import torch

from nmt.data.batches import collate


def test_collate_shifts_pads_and_counts() -> None:
    src, tgt = [np.array([5, 3]), np.array([6, 7, 3])], [np.array([8, 9, 3]), np.array([3])]
    batch = collate(src, tgt, (4, 4), torch.device("cpu"))
    assert batch.src_BS.tolist() == [[5, 3, 0, 0], [6, 7, 3, 0]]
    assert batch.tgt_in_BT.tolist() == [[2, 8, 9, 3], [2, 3, 0, 0]]
    assert batch.targets_N.tolist() == [8, 9, 3, 3]
    assert batch.tgt.place_N[: batch.tokens].tolist() == [0, 1, 2, 4]
    assert batch.tokens == 4
