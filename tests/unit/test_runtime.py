"""Devices, precision, seeds and the cheap dropout."""

from __future__ import annotations

import pytest
import torch

from nmt import runtime
from nmt.errors import DeviceError


def ones(count: int = 1_000_000) -> torch.Tensor:
    return torch.ones(count)


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate: float):
    """The rate is rounded to 1/256, and what is left is scaled by that rounded rate."""
    torch.manual_seed(1)
    out = runtime.dropout(ones(), rate)
    dropped = (out == 0).float().mean().item()
    assert dropped == pytest.approx(rate, abs=1 / 512 + 0.002)
    assert out.mean().item() == pytest.approx(1.0, abs=0.02)
    rounded = round(rate * 256) / 256
    torch.testing.assert_close(out[out != 0].unique(), torch.tensor([1 / (1 - rounded)]))


def test_dropout_draws_each_element_by_itself():
    """Neighbours are dropped independently of each other, also those whose numbers come from one 64-bit word."""
    torch.manual_seed(1)
    kept = (runtime.dropout(ones(), 0.5) != 0).float() - 0.5
    for distance in (1, 2, 7, 8, 64):
        assert abs((kept[distance:] * kept[:-distance]).mean().item()) < 0.002


def test_dropout_of_the_same_seed_is_the_same_and_of_other_steps_another():
    def mask(*seed: int) -> torch.Tensor:
        runtime.seed_step(*seed)
        return runtime.dropout(ones(1000), 0.5) == 0

    first = mask(1, 10, 0)
    assert torch.equal(first, mask(1, 10, 0))
    others = [mask(1, 11, 0), mask(1, 10, 1), mask(2, 10, 0), mask(1, 0, 10), mask(10, 1, 0)]
    for i, other in enumerate(others):
        for known in [first, *others[:i]]:
            assert (other == known).float().mean().item() == pytest.approx(0.5, abs=0.08)


def test_dropout_of_rate_0_is_nothing_at_all():
    x = ones(10)
    assert runtime.dropout(x, 0.0) is x


@pytest.mark.parametrize("rate", [0.9, 0.99, 0.999])
def test_dropout_of_a_high_rate_stays_finite(rate: float):
    torch.manual_seed(1)
    assert runtime.dropout(ones(1000), rate).isfinite().all()


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (3, 5), (2, 3, 11)])
def test_dropout_keeps_shape_and_type(shape: tuple[int, ...]):
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        out = runtime.dropout(torch.ones(shape, dtype=dtype), 0.3)
        assert (out.shape, out.dtype) == (torch.Size(shape), dtype)


def test_the_gradient_of_dropout_is_its_mask():
    torch.manual_seed(1)
    x = torch.ones(100, requires_grad=True)
    out = runtime.dropout(x, 0.25)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_softmax_and_its_gradient_are_torchs():
    """In fp64 to rounding; in bf16 the result is what is remembered, so the gradient is that of the rounded one."""
    scores = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(2, 3, 5, dtype=torch.float64)
    (expected,) = torch.autograd.grad(scores.softmax(-1), scores, upstream)
    (found,) = torch.autograd.grad(runtime.softmax(scores, torch.float64), scores, upstream)
    assert torch.equal(runtime.softmax(scores, torch.float64), scores.softmax(-1))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    half = runtime.softmax(scores.float(), torch.bfloat16)
    assert half.dtype == torch.bfloat16
    (rounded,) = torch.autograd.grad(half, scores, upstream.bfloat16())
    torch.testing.assert_close(rounded, expected, rtol=0.05, atol=0.01)


def test_a_device_that_is_not_there_is_one_clear_error():
    """Case 63."""
    if not torch.cuda.is_available():
        with pytest.raises(DeviceError, match=r"cuda.*finds no CUDA GPU"):
            runtime.choose("cuda")
    else:
        with pytest.raises(DeviceError, match="there are"):
            runtime.choose(f"cuda:{torch.cuda.device_count()}")
    with pytest.raises(DeviceError, match="auto, cpu, mps"):
        runtime.choose("gpu")


def test_threads_beyond_reason_are_one_clear_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda count: pytest.fail("as many threads would end the process"))
    for threads in (0, 100_000):
        with pytest.raises(DeviceError, match=f"threads must be 1 to 1,024, but are {threads:,} instead"):
            runtime.choose("cpu", "fp32", threads)


@pytest.mark.parametrize(
    ("asked", "here", "count"),
    [
        *((None, 1, 8), ("3", 1, 3), ("1", 1, 1), ("3,2", 1, 3), ("", 1, 8), ("0", 1, 8), ("many", 1, 8)),
        *((None, 4, 2), ("3", 4, 3), ("1", 4, 2)),  # 1 is what torchrun sets, whatever the user wants
    ],
)
def test_threads_by_default_are_those_that_the_environment_asks_for_or_the_cores(
    monkeypatch: pytest.MonkeyPatch, asked: str | None, here: int, count: int
):
    monkeypatch.setattr(runtime, "processors", lambda: 8)
    monkeypatch.setattr(runtime, "started", lambda: (0, 0, here))
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    assert runtime.choose("cpu", "fp32").threads == count
    assert runtime.choose("cpu", "fp32", 5).threads == 5


def test_an_unknown_precision_is_one_clear_error():
    with pytest.raises(DeviceError, match="fp32, bf16 or fp16"):
        runtime.choose("cpu", "fp8")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"),
            True,
        ),
        (RuntimeError("MPS backend out of memory"), True),
        (MemoryError(), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (OSError("can't allocate memory"), False),
    ],
)
def test_what_says_that_memory_does_not_suffice(error: Exception, expected: bool):
    assert runtime.out_of_memory(error) == expected


def test_memory_is_counted_in_bytes():
    """There is more of it than this process holds, and that is more than torch alone takes."""
    cpu = torch.device("cpu")
    held = runtime.peak_memory(cpu)
    assert 50e6 < held < 1e12
    assert runtime.available_memory(cpu) > 50e6


def test_where_the_system_does_not_tell_memory_is_endless(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runtime, "_meminfo", lambda key: 0.0)
    assert runtime.available_memory(torch.device("cpu")) == float("inf")


def test_what_is_chosen_is_what_is_used():
    before = torch.get_num_threads()
    try:
        where = runtime.choose("cpu", "bf16", 1)
        assert (where.device.type, where.dtype, torch.get_num_threads()) == ("cpu", torch.bfloat16, 1)
        assert runtime.choose("cpu", "fp32", "1").dtype == torch.float32
        assert runtime.choose("cpu").precision in runtime.PRECISIONS
        assert set(where.describe()) == {"device", "precision", "threads", "torch"}
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_weight_multiplies_as_it_did(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x, weight, bias = torch.randn(7, 3, 24).to(dtype), torch.randn(40, 24).to(dtype), torch.randn(40).to(dtype)
    packed = runtime.pack(weight)
    if packed is None:
        pytest.skip("this machine does not pack")
    for given in (bias, None):
        found = runtime.packed_linear(x, packed, given)
        torch.testing.assert_close(found, torch.nn.functional.linear(x, weight, given))
        torch.testing.assert_close(runtime.packed_linear(x[:1], packed, given), found[:1])


def test_what_cannot_be_packed_is_left_as_it_is() -> None:
    assert runtime.pack(torch.empty(4, 4, device="meta")) is None
    assert runtime.pack(torch.zeros(4, 4, dtype=torch.float64)) is None
