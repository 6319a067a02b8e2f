"""Packed tokens: what a model makes of them is what it makes of padded ones, and padding costs nothing."""

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.batches import collate
from nmt.model.layers import LayerShape
from nmt.model.position import POSITIONS
from nmt.model.transformer import Architecture, Transformer
from nmt.packing import MULTIPLE, Packed, round_size, rows_for

CPU = torch.device("cpu")
LENGTHS = np.array([3, 1, 7, 4])


def packed(width: int = 8) -> Packed:
    return Packed.of(LENGTHS, width, CPU)


def real(width: int = 8) -> Tensor:
    """[B, T], True at real tokens."""
    return torch.arange(width)[None, :] < torch.from_numpy(LENGTHS)[:, None]


@pytest.mark.parametrize("tokens", [1, MULTIPLE - 1, MULTIPLE, MULTIPLE + 1, 5 * MULTIPLE])
def test_rows_are_a_multiple_with_one_to_spare(tokens: int):
    rows = rows_for(tokens)
    assert rows % MULTIPLE == 0 and 0 < rows - tokens <= MULTIPLE
    assert len(Packed.of(np.array([tokens]), tokens, CPU).place_N) == rows


def test_packing_keeps_the_real_tokens_in_their_order():
    x = torch.randn(4, 8, 5)
    assert torch.equal(packed().pack(x)[: LENGTHS.sum()], x[real()])


def test_padding_puts_them_back():
    x = torch.randn(4, 8, 5)
    assert torch.equal(packed().pad(packed().pack(x))[real()], x[real()])


@pytest.mark.parametrize("width", [7, 8, 16])
def test_gradients_are_those_of_indexing(width: int):
    places, count = real(width), int(LENGTHS.sum())
    weights = torch.randn(4, width, 5).double() * places[:, :, None]  # nothing is asked of padding
    x = torch.randn(rows_for(count), 5).double().requires_grad_()
    (packed(width).pad(x) * weights).sum().backward()
    wanted = torch.zeros_like(x)
    wanted[:count] = weights[places]
    assert torch.equal(x.grad, wanted)

    y, weights = torch.randn(4, width, 5).double().requires_grad_(), torch.randn(count, 5).double()
    (packed(width).pack(y)[:count] * weights).sum().backward()
    wanted = torch.zeros_like(y)
    wanted[places] = weights
    assert torch.equal(y.grad, wanted)


def test_no_gradient_reaches_surplus_rows_even_where_padding_has_one():
    x = torch.randn(MULTIPLE, 5).requires_grad_()
    packed().pad(x).sum().backward()
    assert x.grad is not None and not x.grad[LENGTHS.sum() :].any()


def test_twice_is_the_batch_below_itself():
    twice, x = packed().twice(), torch.randn(8, 8, 5)
    first, second = twice.pack(x).chunk(2)
    assert torch.equal(first, packed().pack(x[:4])) and torch.equal(second, packed().pack(x[4:]))
    assert torch.equal(twice.pad(twice.pack(x))[real().repeat(2, 1)], x[real().repeat(2, 1)])
    y = torch.randn(2 * MULTIPLE, 5).requires_grad_()
    twice.pad(y).sum().backward()
    assert y.grad is not None and not torch.cat([part[LENGTHS.sum() :] for part in y.grad.chunk(2)]).any()


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("tie", ["all", "none"])
def test_a_model_packed_is_the_model_padded(position: str, norm_first: bool, tie: str):
    torch.manual_seed(1)
    shape = LayerShape(16, 2, 32, norm_first=norm_first, norm="rms" if tie == "none" else "layer")
    model = Transformer(Architecture(shape, 30, 30, 2, 2, tie, position=POSITIONS[position])).double()
    model.dtype = torch.float64
    src, tgt = ([np.random.randint(4, 30, n) for n in lengths] for lengths in (LENGTHS, LENGTHS[::-1]))
    batch = collate(src, tgt, (9, 16), CPU)

    def gradients(states: Tensor) -> list[Tensor]:
        model.zero_grad()
        model.logits(states).log_softmax(-1).gather(1, batch.targets_N[:, None]).sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    padded = model(batch.src_BS, batch.tgt_in_BT).flatten(0, 1)[batch.tgt.place_N[: batch.tokens]]
    states = model(batch.src_BS, batch.tgt_in_BT, src=batch.src, tgt=batch.tgt)[: batch.tokens]
    torch.testing.assert_close(states, padded)
    torch.testing.assert_close(gradients(states), gradients(padded))


def test_sizes_are_few_and_hardly_larger() -> None:
    rounded = [round_size(count) for count in range(1, 5000)]
    assert all(count <= size <= 1.125 * count or size == count for count, size in enumerate(rounded, 1))
    assert rounded == sorted(rounded) and [round_size(size) for size in rounded] == rounded
    assert len({size for size in rounded if 1024 <= size < 2048}) == 8
