"""What CUDA must do as the CPU does. Run by scripts/gpu_check; skipped where there is no GPU.

Needs neither pydantic nor datasets, so that it runs on a machine that has torch and little else.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt import checkpoint, runtime, score
from nmt.choice import Choice, build
from nmt.config import Config, Data, Model, Train
from nmt.data.batches import Batch, collate, pad_sources
from nmt.data.plan import Share
from nmt.loss import CrossEntropy
from nmt.model.attention import attend, attend_plainly
from nmt.model.transformer import Transformer
from nmt.optim import OPTIMIZERS, clip
from nmt.ranks import Ranks
from nmt.resume import newest
from nmt.run import Run
from nmt.search.constraints import Constraints
from nmt.search.methods import SEARCHES, Hypothesis, Sources
from nmt.tokenizer import EOS, TOKENIZERS
from nmt.train import fit
from nmt.trainer import Sets

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
PIECES = 60
VARIANTS: dict[str, dict[str, Any]] = {
    "as shipped": {},
    "as in the paper": {"norm_first": False},
    "the other parts": {
        "norm": "rms",
        "activation": "swiglu",
        "position": Choice("learned", {"limit": 64}),
        "tie": "none",
    },
}


@pytest.fixture(autouse=True)
def settings_of_cuda() -> None:
    runtime.choose("cuda", "fp32")


def make_model(device: torch.device, dropout: float = 0.0, **variant: Any) -> Transformer:
    """The same weights on every device."""
    torch.manual_seed(1)
    sizes = {"dim": 64, "heads": 4, "ffn_dim": 128, "encoder_layers": 2, "decoder_layers": 2}
    return checkpoint.build_model(Model(**sizes, dropout=dropout, **variant), PIECES, PIECES).to(device)


def sentences(count: int, longest: int = 30) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [np.append(rng.integers(4, PIECES, n), EOS) for n in rng.integers(1, longest, count)]


def make_batch(device: torch.device) -> Batch:
    src = sentences(40)
    return collate(src, src[::-1], (32, 32), device)


def search(model: Transformer, src: list[np.ndarray], name: str = "beam") -> list[list[Hypothesis]]:
    device = model.src_embedding.weight.device
    forbidden = torch.tensor([0, 1, 2], device=device)
    with torch.inference_mode():
        sources = Sources(pad_sources(src, device), [len(ids) for ids in src])
        return build(SEARCHES, Choice(name))(model, sources, Constraints(forbidden))


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_training_in_fp32_moves_the_weights_as_on_the_cpu(variant: dict[str, Any]) -> None:
    trained = []
    for device in (GPU, CPU):
        model = make_model(device, **variant)
        before = [p.detach().cpu().clone() for p in model.parameters()]
        # Without Adam's division by the gradient's size, which makes large steps out of rounding errors.
        optimizer = OPTIMIZERS["sgd"](model.named_parameters(), lr=0.5)
        batch = make_batch(device)
        for _ in range(3):
            sums = CrossEntropy(0.1, False)(model, batch, 1 / batch.tokens)
            sums.loss.backward()
            clip(list(model.parameters()), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        moved = torch.cat([(p.detach().cpu() - b).flatten() for p, b in zip(model.parameters(), before, strict=True)])
        trained.append((sums.loss.item(), sums.nll.item(), moved))
    (gpu_loss, gpu_nll, gpu_moved), (cpu_loss, cpu_nll, cpu_moved) = trained
    assert gpu_loss == pytest.approx(cpu_loss, rel=1e-5)
    assert gpu_nll == pytest.approx(cpu_nll, rel=1e-5)
    assert cpu_moved.norm() > 0.1
    assert (gpu_moved - cpu_moved).norm() < 1e-3 * cpu_moved.norm()


def test_the_seed_of_a_step_reproduces_its_dropout() -> None:
    model = make_model(GPU, dropout=0.3, attention_dropout=0.3, activation_dropout=0.3)
    batch = make_batch(GPU)

    def states(step: int, micro_batch: int) -> Tensor:
        runtime.seed_step(7, step, micro_batch)
        with torch.no_grad():
            return model(batch.src_BS, batch.tgt_in_BT)

    first = states(3, 0)
    assert not torch.equal(states(4, 0), first)
    assert not torch.equal(states(3, 1), first)
    assert torch.equal(states(3, 0), first)


@pytest.mark.parametrize("name", ["greedy", "beam"])
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_search_in_fp32_finds_what_it_finds_on_the_cpu(variant: dict[str, Any], name: str) -> None:
    src = sentences(12, longest=15)  # at most 2 * 15 + 20 tokens: within the learned positions
    gpu, cpu = (search(make_model(device, **variant).freeze(torch.float32), src, name) for device in (GPU, CPU))
    assert [[h.tokens for h in some] for some in gpu] == [[h.tokens for h in some] for some in cpu]
    for some, others in zip(gpu, cpu, strict=True):
        assert [h.score for h in some] == pytest.approx([h.score for h in others], abs=1e-4)


def test_a_translation_in_fp32_does_not_depend_on_its_batch() -> None:
    model, src = make_model(GPU).freeze(torch.float32), sentences(12)
    together = [some[0].tokens for some in search(model, src)]
    assert [search(model, [ids])[0][0].tokens for ids in src] == together


def test_decoding_beyond_the_first_table_of_positions_leaves_the_model_trainable() -> None:
    model = make_model(GPU)
    long = [np.append(np.full(300, 5), EOS)]
    scored = score.log_probs(model, long, long, GPU)[0]
    assert scored == pytest.approx(score.log_probs(make_model(CPU), long, long, CPU)[0], abs=1e-4)
    batch = collate(long, long, (301, 301), GPU)
    sums = CrossEntropy(0.0, False)(model, batch, 1 / batch.tokens)
    sums.loss.backward()
    assert sums.nll.item() == pytest.approx(-scored.sum(), rel=1e-4)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("masked, causal", [(True, False), (False, True), (False, False)])
def test_fused_attention_and_its_gradients_equal_the_plain_path(precision: str, masked: bool, causal: bool) -> None:
    torch.manual_seed(1)
    tensors = [torch.randn(3, 2, 13, 32, device=GPU, dtype=runtime.PRECISIONS[precision]) for _ in range(3)]
    lengths = torch.tensor([1, 6, 13], device=GPU)
    keep = (torch.arange(13, device=GPU) < lengths[:, None])[:, None, None, :] if masked else None
    results = []
    for function in (attend, lambda *arguments: attend_plainly(*arguments)[0]):
        inputs = [t.clone().requires_grad_() for t in tensors]
        out = function(*inputs, keep, causal, 0.0)
        results.append([out, *torch.autograd.grad(out.float().square().sum(), inputs)])
    for fused, plain in zip(*results, strict=True):
        assert (fused - plain).norm() < (1e-5 if precision == "fp32" else 2e-2) * plain.norm()


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_training_in_bf16_stays_finite_and_learns(name: str) -> None:
    model = make_model(GPU, dropout=0.1)
    model.dtype = torch.bfloat16
    optimizer = OPTIMIZERS[name](model.named_parameters())
    batch, losses = make_batch(GPU), []
    for step in range(30):
        runtime.seed_step(1, step)
        sums = CrossEntropy(0.1, False)(model, batch, 1 / batch.tokens)
        sums.loss.backward()
        assert torch.isfinite(clip(list(model.parameters()), 1.0))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(sums.loss.item())
    assert all(p.dtype == torch.float32 and bool(torch.isfinite(p).all()) for p in model.parameters())
    assert losses[-1] < losses[0] - 0.3


class Pairs:
    """Copying, in memory, as a Trainer wants it."""

    def __init__(self, lines: list[str], ids: list[np.ndarray]) -> None:
        self.lines, self.sentences = lines, ids

    def __len__(self) -> int:
        return len(self.lines)

    def epoch(self, epoch: int) -> Pairs:
        return self

    def lengths(self, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lengths = np.array([len(self.sentences[i]) for i in pairs])
        return lengths, lengths

    def ids(self, pairs: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        chosen = [self.sentences[i] for i in pairs]
        return chosen, chosen

    def where(self, pair: int) -> str:
        return f"memory:{pair + 1}"

    def texts(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        return ((line, (line,)) for line in self.lines)


def run(directory: Path, steps: int, precision: str) -> checkpoint.Checkpoint:
    """Trains in `directory`, or goes on training there, and returns the last checkpoint."""
    rng = np.random.default_rng(1)
    lines = [" ".join(rng.choice(list("abcdefgh"), rng.integers(1, 9))) for _ in range(200)]
    tokenizer = TOKENIZERS["none"](vocab_size=100)(lines, lines, lambda message: None)
    directory.mkdir(exist_ok=True)
    tokenizer.save(directory)
    ids = tokenizer.encode_src(lines)
    sets = Sets(
        Pairs(lines, ids), [Share(len(lines))], {"valid": Pairs(lines[:5], ids[:5])}, tokenizer, directory, "toy"
    )
    optimizer = Choice("sgd", {"lr": 0.1, "momentum": 0.9})
    schedule = Choice("inverse_sqrt", {"warmup": 2})
    sizes = {"dim": 32, "heads": 2, "ffn_dim": 64, "encoder_layers": 1, "decoder_layers": 1}
    config = Config(
        run_dir=str(directory),
        src_lang="en",
        tgt_lang="en",
        data=Data(train=[Choice("toy", {"weight": 1.0})]),
        model=Model(**sizes, dropout=0.1, attention_dropout=0.1),
        train=Train(
            batch_tokens=200,
            accumulate=2,
            steps=steps,
            device="cuda",
            precision=precision,
            average=0,
            optimizer=optimizer,
            schedule=schedule,
        ),
    )
    with contextlib.redirect_stderr(io.StringIO()):
        assert fit(config, sets) == 0
    last = newest(Run(directory), Ranks())
    assert last is not None and last.step == steps
    return last


def test_a_run_on_the_gpu_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole", 8, "fp32")
    run(tmp_path / "parts", 4, "fp32")
    parts = run(tmp_path / "parts", 8, "fp32")
    for name in (checkpoint.WEIGHTS, checkpoint.OPTIMIZER):
        expected, found = whole.tensors(name), parts.tensors(name)
        assert expected.keys() == found.keys()
        # Not bit for bit: kernels on a GPU may add up a gradient in any order.
        for key, tensor in expected.items():
            torch.testing.assert_close(found[key], tensor, rtol=1e-3, atol=1e-5, msg=key)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_a_checkpoint_from_the_gpu_translates_on_the_cpu(tmp_path: Path, precision: str) -> None:
    found = run(tmp_path / "run", 4, precision)
    found.verify()
    cpu, gpu = found.load_model(), found.load_model().to(GPU)
    assert all(p.device == CPU and p.dtype == torch.float32 for p in cpu.parameters())
    rng = np.random.default_rng(2)
    src = [np.append(rng.integers(4, 10, n), EOS) for n in (1, 4, 9)]
    expected = [some[0].tokens for some in search(gpu.freeze(torch.float32), src)]
    assert [some[0].tokens for some in search(cpu.freeze(torch.float32), src)] == expected
