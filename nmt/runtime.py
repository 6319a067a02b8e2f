"""The one switch between devices: which device and precision a run uses, its threads, its random numbers.

What is only fast on a CPU (cheap dropout, plain attention) lives here too, so that the model reads the same
everywhere and runs stock kernels on CUDA.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import re
import resource
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from nmt.errors import DeviceError, NmtError
from nmt.jobs import processors
from nmt.ranks import started

T = TypeVar("T")
U = TypeVar("U")
MOST_THREADS = 1024  # far more than this end torch without a word
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Runtime:
    """Where and how exactly a model computes."""

    device: torch.device
    precision: str
    threads: int

    @property
    def dtype(self) -> torch.dtype:
        return PRECISIONS[self.precision]

    def describe(self) -> dict[str, str | int]:
        """What must be equal for two runs to be equal bit for bit."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else _cpu_name()
        return {
            "device": f"{self.device.type} ({name})",
            "precision": self.precision,
            "threads": self.threads,
            "torch": torch.__version__,
        }


def choose(device: str = "auto", precision: str = "auto", threads: str | int = "auto") -> Runtime:
    """Resolves what the user asked for against what is there. Raises DeviceError when it is not."""
    chosen = _device(device)
    count = _usual_threads() if threads == "auto" else int(threads)
    if not 1 <= count <= MOST_THREADS:
        raise DeviceError(f"threads must be 1 to {MOST_THREADS:,}, but are {count:,} instead")
    torch.set_num_threads(count)
    if chosen.type == "cpu":
        keep_memory()
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    return Runtime(chosen, _precision(precision, chosen), count)


def _usual_threads() -> int:
    """What the user says by OMP_NUM_THREADS, else the cores of this process."""
    asked, here = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip(), started()[2]
    if asked.isdecimal() and int(asked) > (here > 1):  # for several processes torchrun sets 1 by itself
        return int(asked)
    return max(1, processors() // here)


def _device(name: str) -> torch.device:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", name):
        raise DeviceError(f"device must be auto, cpu, mps, cuda or cuda:N, but is {name!r} instead")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    if name.startswith("cuda"):
        if not torch.cuda.is_available():
            raise DeviceError(
                f"device {name} was asked for, but this torch ({torch.__version__}) finds no CUDA GPU; "
                "use the device cpu or auto, or install a CUDA build of torch and its driver"
            )
        index, found = int(name.partition(":")[2] or started()[1]), torch.cuda.device_count()
        if index >= found:
            raise DeviceError(f"device {name} was asked for, but there are {found} GPUs, cuda:0 to cuda:{found - 1}")
        return torch.device("cuda", index)
    if name == "mps" and not torch.backends.mps.is_available():
        raise DeviceError("device mps was asked for, but this machine has none; use the device cpu or auto")
    return torch.device(name)


def _precision(name: str, device: torch.device) -> str:
    if name not in ("auto", *PRECISIONS):
        raise DeviceError(f"precision must be auto, fp32, bf16 or fp16, but is {name!r} instead")
    if name == "fp16" and device.type != "cuda":
        raise DeviceError(f"precision fp16 is for CUDA GPUs, but the device is {device}; use bf16 or fp32")
    if name != "auto":
        return name
    if device.type == "cuda":
        return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp32"
    # AVX512-BF16 and AMX multiply bf16 in hardware; without them oneDNN emulates it, slower than fp32.
    return "bf16" if device.type == "cpu" and "avx512_bf16" in _cpu_flags() else "fp32"


def _cpu_flags() -> set[str]:
    return set(_cpuinfo("flags").split())


def _cpu_name() -> str:
    return _cpuinfo("model name").partition(": ")[2].strip() or platform.machine()


def _cpuinfo(key: str) -> str:
    """The line of Linux's /proc/cpuinfo that starts with `key`; elsewhere nothing."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            return next((line for line in stream if line.startswith(key)), "")
    except OSError:
        return ""


def seed_step(seed: int, step: int, micro_batch: int = 0) -> None:
    """Makes every random number of one micro-batch a function of (seed, step, micro_batch), on all devices."""
    # Three odd multipliers spread neighbouring steps over the 64 bits; the generators do the rest.
    mixed = seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + micro_batch * 0x94D049BB133111EB
    torch.manual_seed(mixed % 2**63)


def dropout(x: Tensor, rate: float) -> Tensor:
    """Zeroes elements with probability `rate` and scales the others to keep the mean.

    The CPU generator is serial and makes one number per element a fifth of a training step or more. There, 64-bit
    words are drawn and their bytes compared, in the type of x, since comparing bytes themselves takes five times as
    long. So the rate is rounded to 1/256, and the scale is that of the rounded rate.
    """
    if rate == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    threshold = min(255, max(1, round(rate * 256)))
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    return _Dropout.apply(x, words.view(torch.uint8)[: x.numel()].view(x.shape), threshold)  # type: ignore[no-any-return, no-untyped-call]


class _Dropout(Function):
    """Remembers the bytes, half as long as the factors that they become, which are computed twice."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, drawn: Tensor, threshold: int) -> Tensor:
        ctx.save_for_backward(drawn)
        ctx.threshold = threshold
        return _factors(drawn, threshold, x.dtype).mul_(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (drawn,) = ctx.saved_tensors
        return _factors(drawn, ctx.threshold, grad.dtype).mul_(grad), None, None


def _factors(drawn: Tensor, threshold: int, dtype: torch.dtype) -> Tensor:
    return drawn.to(dtype).ge_(threshold).mul_(256 / (256 - threshold))


def softmax(scores: Tensor, dtype: torch.dtype) -> Tensor:
    """Over the last dimension, computed in the precision of the scores, and remembered in that of the result."""
    return _Softmax.apply(scores, dtype)  # type: ignore[no-any-return, no-untyped-call]


class _Softmax(Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, dtype: torch.dtype) -> Tensor:
        weights = scores.softmax(-1).to(dtype)
        ctx.save_for_backward(weights)
        ctx.exact = scores.dtype
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        exact: torch.dtype = ctx.exact
        return torch._softmax_backward_data(grad.to(exact), weights.to(exact), -1, exact), None


def send(array: np.ndarray, device: torch.device) -> Tensor:
    """To a device; to a GPU without waiting for it."""
    tensor = torch.from_numpy(array)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def prefers_plain_attention(x: Tensor) -> bool:
    """On a CPU three plain products are faster than the fused kernel: in training above all its backward in bf16, in
    decoding its handling of a single query."""
    return x.device.type == "cpu"


def pack(weight: Tensor) -> Tensor | None:
    """A weight [out, in] in the order in which oneDNN multiplies it on a CPU: 5 to 20% faster than to put it in that
    order at every use. None where that cannot be."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    try:
        return torch.ops.mkldnn._reorder_linear_weight(weight.detach())  # type: ignore[no-any-return]
    except (RuntimeError, AttributeError):  # a type that this processor does not have, or a torch without the operator
        return None


def packed_linear(x: Tensor, packed: Tensor, bias: Tensor | None = None, relu: bool = False) -> Tensor:
    """As F.linear, with what `pack` has made of the weight, and relu after it if that is wanted."""
    after = "relu" if relu else "none"
    return torch.ops.mkldnn._linear_pointwise(x, packed, bias, after, [], "")  # type: ignore[no-any-return]


def keep_memory() -> None:
    """Makes glibc keep freed memory instead of handing every large tensor back to the kernel and faulting it in again
    page by page, which costs a fifth of a training step on a CPU. Other C libraries are left as they are."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        for parameter, value in ((-4, 0), (-1, 2**31 - 1), (-2, 2**26)):  # M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD
            libc.mallopt(parameter, value)


class _Heap(ctypes.Structure):
    """What glibc's mallinfo2 tells; `fordblks` are the bytes that lie free."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def trim_memory(most: int = 2**29) -> None:
    """Gives back what `keep_memory` has kept if it is more than so many bytes, as it is in time where batches differ in
    size: it lies in pieces of which none is large enough."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallinfo2.restype = _Heap
        if libc.mallinfo2().fordblks > most:
            libc.malloc_trim(0)


def keep_few_kernels() -> None:
    """Has oneDNN, and torch's layer above it, remember so few of the kernels that they make for each shape as one step
    of a decoder needs: by default they keep 1,024 each, of which 0.5 GB come together while a long file is translated.
    For processes that only translate, before their first product; whoever has set the variables knows better."""
    for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(variable, "64")


def available_memory(device: torch.device) -> float:
    """Bytes that may be used."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    available = _meminfo("MemAvailable")
    return available if available else float("inf")


def peak_memory(device: torch.device) -> float:
    """Bytes that this process has held at most: of the GPU on one, else of main memory."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    unit = 1 if platform.system() == "Darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _meminfo(key: str) -> float:
    """Bytes, from Linux's /proc/meminfo; elsewhere 0."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as stream:
            return next((float(line.split()[1]) * 1024 for line in stream if line.startswith(key)), 0.0)
    except OSError:
        return 0.0


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory did not suffice."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)


def free_memory(device: torch.device) -> None:
    """Gives back what nobody uses any more."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def in_halves(
    work: Callable[[list[T]], list[U]], items: list[T], device: torch.device, too_much: Callable[[T], str]
) -> list[U]:
    """work(items), in two halves, and so on, where memory does not suffice for all at once.

    Raises NmtError with what `too_much` says of a single item that does not fit.
    """
    try:
        return work(items)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        if len(items) == 1:
            raise NmtError(f"memory does not suffice {too_much(items[0])}") from None
    free_memory(device)
    half = len(items) // 2
    return [*in_halves(work, items[:half], device, too_much), *in_halves(work, items[half:], device, too_much)]
