"""What every entry of a table must do, so that a new variant is tested before its author writes a test."""

from __future__ import annotations

import math
import typing
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import CPU, SIZES, VOCAB, batch, model_of

from nmt import checkpoint, runtime
from nmt.choice import Choice, build, options_of
from nmt.config import Model, Train
from nmt.data.batches import pad_sources
from nmt.errors import ConfigError
from nmt.loss import OBJECTIVES
from nmt.metrics import LOWER_IS_BETTER, METRICS
from nmt.model.layers import NORMS
from nmt.model.position import POSITIONS
from nmt.search.constraints import Constraints
from nmt.search.methods import EOS, SEARCHES, Sources
from nmt.tokenizer import TOKENIZERS
from nmt.translate import Translator
from nmt.variants import TABLES, load

DEMO = str(Path(__file__).parent.parent.parent / "configs" / "demo.yaml")
ACTIVATIONS = typing.get_args(typing.get_type_hints(Model)["activation"])


NEEDED = {"ready": {"src"}}  # options for which there can be no default


@pytest.mark.parametrize(
    ("table", "name"), [(table, name) for table in {id(t): t for t in TABLES.values()}.values() for name in table]
)
def test_every_option_has_a_default_and_every_variant_says_what_it_is(table, name: str):
    constructor = table[name]
    assert (constructor.__doc__ or "").strip()
    missing = {key for key, option in options_of(constructor).items() if option.default is option.empty}
    assert missing == NEEDED.get(name, set())


# --- parts of the model ---

VARIANTS = {
    **{f"position {name}": {"position": Choice(name)} for name in POSITIONS},
    **{
        f"norm {name}, {order}": {"norm": name, "norm_first": order == "pre"}
        for name in NORMS
        for order in ("pre", "post")
    },
    **{f"activation {name}": {"activation": name} for name in ACTIVATIONS},
}
every_variant = pytest.mark.parametrize("settings", VARIANTS.values(), ids=list(VARIANTS))


@every_variant
def test_a_model_variant_is_causal(settings: dict[str, typing.Any]):
    """Case 24."""
    model = model_of(**settings)
    src, tgt = torch.randint(4, VOCAB, (2, 6)), torch.randint(4, 20, (2, 9))
    for changed in (1, 4, 8):
        other = tgt.clone()
        other[:, changed] = VOCAB - 1
        for graph in (True, False):
            with torch.set_grad_enabled(graph):
                difference = (model.logits(model(src, tgt)) - model.logits(model(src, other))).detach().abs().amax(-1)
            assert difference[:, :changed].max() <= 1e-6
            assert difference[:, changed:].max() > 1e-5


@every_variant
def test_a_model_variant_decodes_with_a_cache_as_without(settings: dict[str, typing.Any]):
    """Case 48."""
    model = model_of(**settings)
    src = torch.tensor([[5, 6, 7, 3], [8, 3, 0, 0]])
    tgt = torch.cat([torch.full((2, 1), 2), torch.randint(4, VOCAB, (2, 40))], dim=1)
    with torch.no_grad():
        full = model.logits(model(src, tgt)).log_softmax(-1)
        state = model.start(src, 1)
        for t in range(tgt.shape[1]):
            torch.testing.assert_close(model.step(tgt[:, t], state), full[:, t], rtol=0, atol=1e-5)


@every_variant
def test_a_model_variant_learns(settings: dict[str, typing.Any]):
    """A batch that it sees again and again, it learns by heart."""
    model, pairs = model_of(**settings).train(), batch()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        total = OBJECTIVES["cross_entropy"](0.0, False)(model, pairs, 1 / pairs.tokens)
        total.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(total.nll) / total.tokens)
    assert losses[-1] < 0.5 * losses[0]


@every_variant
def test_a_model_variant_is_saved_whole(settings: dict[str, typing.Any]):
    """All that it has learnt is a parameter, and none is left out of a checkpoint."""
    model = model_of(**settings)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1)
    torch.manual_seed(99)
    again = model_of(**settings)
    checkpoint.load_weights(again, {n: p.detach() for n, p in model.named_parameters()}, Path("somewhere"))
    src, tgt = torch.randint(4, VOCAB, (2, 6)), torch.randint(4, VOCAB, (2, 9))
    assert torch.equal(model(src, tgt), again(src, tgt))


@pytest.mark.parametrize("name", [name for name in POSITIONS if "limit" in options_of(POSITIONS[name])])
def test_a_position_with_a_limit_translates_lines_beyond_it(name: str):
    """The source is cut in parts with a warning, and each translation ends at the limit, whatever the model wants."""
    line = " ".join("abcdefghij"[i % 10] for i in range(40))
    tokenizer = TOKENIZERS["none"](vocab_size=50)([line], [line], print)
    torch.manual_seed(1)
    settings = Model(**SIZES, position=Choice(name, {"limit": 16}))
    model = checkpoint.build_model(settings, len(tokenizer.src), len(tokenizer.tgt))
    said: list[str] = []
    for search in SEARCHES:
        translator = Translator.of(model, tokenizer, Choice(search), runtime.choose("cpu", "fp32", 1))
        translator.constraints = Constraints(torch.tensor([*tokenizer.forbidden(), EOS]))  # it never wants to end
        [translation] = translator.stream([line], warn=said.append)
        assert translation.truncated and 0 < translation.tokens <= 3 * 16
    assert all("line 1 has 40 pieces" in message and "in 3 parts" in message for message in said) and said


def test_rotary_positions_need_heads_of_an_even_size():
    """Said while the config is checked, in one line with its place, and not in the middle of a first batch."""
    heads = ["model.dim=36", "model.position=rotary"]
    with pytest.raises(ConfigError) as error:
        load(DEMO, [*heads, "model.heads=4"])
    assert str(error.value) == (
        "-s model.position=rotary: `model.position: rotary` turns pairs of numbers, so model.dim / model.heads must be "
        "even, but is 9; change model.heads"
    )
    assert load(DEMO, [*heads, "model.heads=6"]).model.position.name == "rotary"
    assert load(DEMO, ["model.dim=36", "model.heads=4"]).model.position.name == "sinusoidal"


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_does_not_see_the_scale_of_its_input(name: str):
    norm, x = NORMS[name](32), torch.randn(5, 32)
    torch.testing.assert_close(norm(x), norm(1000 * x), rtol=1e-3, atol=1e-3)
    assert norm(x).square().mean().item() == pytest.approx(1.0, abs=0.05)
    assert norm(x.bfloat16()).dtype == torch.bfloat16


# --- scores and search ---

GOOD = ["the cat sat on the mat today", "a dog runs over the green hill", "two men are here right now"]
WORSE = ["the cat lay on a mat today", "a dog walks over a hill", "two women are there right now"]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("language", ["de", "zh"])
def test_a_metric_prefers_the_better_translation(name: str, language: str):
    metric = build(METRICS, Choice(name), language)
    perfect, worse = metric(GOOD, [GOOD]), metric(WORSE, [GOOD])
    assert perfect.name == name
    assert perfect.value == pytest.approx(0 if name in LOWER_IS_BETTER else 100, abs=1e-9)
    assert worse.value > perfect.value if name in LOWER_IS_BETTER else worse.value < perfect.value
    assert perfect.signature == worse.signature and "version" in perfect.signature


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_takes_several_references_and_blank_lines(name: str):
    """Case 31: a blank reference, a blank hypothesis, one pair."""
    metric = build(METRICS, Choice(name), "de")
    assert metric(GOOD, [WORSE, GOOD]).value == pytest.approx(metric(GOOD, [GOOD]).value)
    assert "nrefs:2" in metric(GOOD, [WORSE, GOOD]).signature
    for hypotheses, references in [([""], [""]), (["a"], [""]), ([""], ["a"]), (GOOD[:1], GOOD[:1])]:
        assert math.isfinite(metric(hypotheses, [references]).value)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_keeps_to_its_promises(name: str):
    """For each source hypotheses, best first, of allowed tokens only and within the limit, whatever the batch."""
    search = build(SEARCHES, Choice(name, {"max_ratio": 1.0, "max_extra": 2}))
    model, rng = model_of(), np.random.default_rng(1)
    with torch.no_grad():
        model.projection.weight[EOS] += 0.2
    sources = [np.append(rng.integers(4, VOCAB, n), 3) for n in (1, 12, 3, 7)]
    constraints = Constraints(torch.tensor([0, 1, 2, 7, 9]))
    with torch.inference_mode():
        found = search(model, Sources(pad_sources(sources, CPU), [len(s) for s in sources]), constraints)
        alone = [
            search(model, Sources(pad_sources([s], CPU), [len(s)], [i]), constraints)[0] for i, s in enumerate(sources)
        ]
    assert len(found) == 4
    for source, hypotheses, single in zip(sources, found, alone, strict=True):
        assert hypotheses
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(h.tokens) for h in hypotheses}) == len(hypotheses)
        for h in hypotheses:
            assert not {0, 1, 2, 7, 9, EOS} & set(h.tokens)
            assert len(h.tokens) <= len(source) + 2
            assert h.truncated or len(h.tokens) < len(source) + 2
        assert [h.tokens for h in hypotheses] == [h.tokens for h in single]
        assert scores == pytest.approx([h.score for h in single], abs=1e-4)


def test_every_choice_of_the_config_names_a_variant_that_exists():
    """The defaults that the schema names are entries of their tables."""
    train = Train(steps=1)
    for section, path in [(train, p) for p in ("optimizer", "schedule", "objective", "subword_sampling")]:
        assert getattr(section, path).name in TABLES[("train", path)]
