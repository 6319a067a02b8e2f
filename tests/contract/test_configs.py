"""The configs that come with the program: each loads, names a model that can be built, and is what it says."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import torch
import yaml

from nmt import variants
from nmt.checkpoint import build_model
from nmt.choice import options_of
from nmt.config import Config, from_tree
from nmt.data.filters import FILTERS, ON
from nmt.data.formats import FORMATS
from nmt.metrics import METRICS
from nmt.model.transformer import Transformer
from nmt.strict_yaml import dump, parse_yaml
from nmt.sweep import plan

CONFIGS = Path(__file__).parents[2] / "configs"
NAMES = sorted(path.stem for path in CONFIGS.glob("*.yaml") if path.stem not in ("reference", "sweep"))
PROMISED = {"demo", "multi30k", "multi30k_lc", "tatoeba_zh_en", "low_resource", "iwslt14", "base", "big"}


def load(name: str) -> Config:
    return variants.load(str(CONFIGS / f"{name}.yaml"))


def model_of(config: Config) -> Transformer:
    """All shapes, no memory."""
    pieces = config.tokenizer.options["vocab_size"]
    with torch.device("meta"):
        return build_model(config.model, pieces, pieces)


def size(model: Transformer) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_promised_configs_are_there() -> None:
    assert set(NAMES) >= PROMISED


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_config_loads_and_its_model_can_be_built(name: str) -> None:
    config = load(name)
    assert size(model_of(config)) > 0
    assert config.run_dir == f"runs/{name}"
    assert from_tree(Config, parse_yaml(dump(config.tree()), name)) == config


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_config_is_commented_and_read_alike_by_any_yaml_parser(name: str) -> None:
    """YAML 1.1 reads `1e-3` as a string: a shipped config writes 1.0e-3, so that other tools agree."""
    text = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    assert text.startswith("# ")
    assert parse_yaml(text, name) == yaml.safe_load(text)


@pytest.mark.parametrize("name", NAMES)
def test_valid_and_test_sets_are_other_text_than_the_training_set(name: str) -> None:
    data = load(name).data
    assert data.valid and data.test
    held_out = [*data.valid.values(), *data.test.values()]
    assert not [choice for choice in held_out if choice in data.train]
    assert len({str(choice) for choice in held_out}) == len(held_out)


# What the hub's card of a data set lists: configurations and splits.
HUB = {
    "wmt/wmt14": ({"cs-en", "de-en", "fr-en", "hi-en", "ru-en"}, {"train", "validation", "test"}),
    "wmt/wmt16": ({"cs-en", "de-en", "fi-en", "ro-en", "ru-en", "tr-en"}, {"train", "validation", "test"}),
}


@pytest.mark.parametrize("name", NAMES)
def test_hub_corpora_exist_and_their_columns_are_the_languages(name: str) -> None:
    config = load(name)
    corpora = [*config.data.train, *config.data.valid.values(), *config.data.test.values()]
    for options in (choice.options for choice in corpora if choice.name == "hub"):
        configurations, splits = HUB[options["dataset"]]
        assert options["config"] in configurations
        assert options["split"] in splits
        assert options["src"] == f"translation.{config.src_lang}"
        assert options["tgt"] == f"translation.{config.tgt_lang}"
        assert {config.src_lang, config.tgt_lang} == set(options["config"].split("-"))


@pytest.mark.parametrize(
    ("name", "millions", "paper"),
    [("base", 65, (512, 8, 2048, 6, 6, 0.1)), ("big", 213, (1024, 16, 4096, 6, 6, 0.3))],
)
def test_base_and_big_are_those_of_the_paper(name: str, millions: int, paper: tuple[float, ...]) -> None:
    """Vaswani et al. 2017, table 3; its sizes in millions are rounded and count a vocabulary of about 37,000."""
    config = load(name)
    model = config.model
    sizes = (model.dim, model.heads, model.ffn_dim, model.encoder_layers, model.decoder_layers, model.dropout)
    assert sizes == paper
    assert (model.norm_first, model.position.name, model.activation, model.tie) == (False, "sinusoidal", "relu", "all")
    assert size(model_of(config)) == pytest.approx(millions * 1e6, rel=0.04)
    assert config.train.label_smoothing == 0.1
    assert config.train.optimizer.options["betas"] == [0.9, 0.98]
    assert config.train.optimizer.options["eps"] == 1e-9
    assert config.train.schedule.options["warmup"] == 4000
    # The peak of dim^-0.5 * min(step^-0.5, step * warmup^-1.5)
    assert config.train.optimizer.options["lr"] == pytest.approx(model.dim**-0.5 * 4000**-0.5, rel=0.02)
    assert (config.search.options["beam"], config.search.options["length_penalty"]) == (4, 0.6)


def test_multi30k_is_the_small_model() -> None:
    config = load("multi30k")
    assert (config.model.dim, config.model.encoder_layers, config.model.decoder_layers) == (128, 4, 4)
    assert (config.tokenizer.name, config.tokenizer.options["vocab_size"]) == ("bpe", 10000)
    assert size(model_of(config)) == pytest.approx(2.6e6, rel=0.05)


def test_the_lower_cased_multi30k_has_other_text_and_scores_and_no_other_recipe() -> None:
    raw, lower = load("multi30k"), load("multi30k_lc")
    other = dataclasses.replace(lower, run_dir=raw.run_dir, data=raw.data, metrics=raw.metrics)
    assert other == raw
    assert (lower.metrics["bleu"]["tokenize"], raw.metrics["bleu"]["tokenize"]) == ("none", "auto")


def test_demo_needs_no_files() -> None:
    data = load("demo").data
    assert {choice.name for choice in [*data.train, *data.valid.values(), *data.test.values()]} == {"demo"}


def test_the_sweep_is_over_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONFIGS.parent)
    sweep = plan.load("configs/sweep.yaml")
    assert len(sweep.settings) > 2 and len(sweep.jobs) > len(sweep.settings)
    assert all(job.config.data == load("demo").data for job in sweep.jobs)


def test_the_reference_is_generated_from_the_schema() -> None:
    """To write it anew: python -c "from nmt import variants; print(variants.reference(), end='')" > FILE"""
    assert (CONFIGS / "reference.yaml").read_text(encoding="utf-8") == variants.reference()


def test_the_reference_names_every_setting_and_variant() -> None:
    text = variants.reference()
    tree = parse_yaml(text, "reference")
    config = load("base").tree()
    for section in ("data", "model", "train"):
        assert set(tree[section]) == set(config[section]), section
    assert set(tree) == set(config)
    assert set(tree["train"]["keep"]) == {"last", "best"}
    for table in (*variants.TABLES.values(), FORMATS, FILTERS, METRICS):
        for name, constructor in table.items():
            # Name, options, for filters whether it is on, and an explanation to the end of its sentence.
            entry = re.compile(rf" +# {re.escape(name)}(?: {{(.*?)}})?(?: [(](on|off)[)])?: \S.*\.")
            entries = [found for line in text.split("\n") if (found := entry.fullmatch(line))]
            assert list(options_of(constructor)) in [re.findall(r"(\w+): ", found[1] or "") for found in entries], name
            if name in FILTERS:
                assert [found[2] for found in entries] == ["on" if name in ON else "off"]
