"""What becomes of each setting that is not as it was when a run goes on: the table in nmt/resume.py."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt import checkpoint, optim, variants
from nmt.config import Config
from nmt.errors import CheckpointError
from nmt.ranks import Ranks
from nmt.resume import FREE, MEASURES, ON_RESUME, REFUSED, Resumed, TrainState, flat, resume, rule
from nmt.run import Run
from nmt.runtime import Runtime
from nmt.tokenizer import TOKENIZERS

WHERE = Runtime(torch.device("cpu"), "fp32", 1)
PIECES = 9

# Every setting of a config, with another value than its own.
OTHER: dict[str, Any] = {
    "run_dir": "elsewhere",
    "src_lang": "fr",
    "tgt_lang": "fr",
    "seed": 2,
    "data.root": "/else",
    "data.train": [{"name": "plain", "src": "c", "tgt": "d", "weight": 1.0}],
    "data.valid": {"valid": {"name": "plain", "src": "c", "tgt": "d"}},
    "data.test": {"test": {"name": "plain", "src": "c", "tgt": "d"}},
    "data.filters": {"empty": "keep"},
    "tokenizer.name": "char",
    "tokenizer.vocab_size": 999,
    "tokenizer.joint": False,
    "tokenizer.sample": 5,
    "model.dim": 32,
    "model.heads": 1,
    "model.ffn_dim": 64,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.dropout": 0.4,
    "model.attention_dropout": 0.4,
    "model.activation_dropout": 0.4,
    "model.word_dropout": 0.4,
    "model.norm": "rms",
    "model.norm_first": False,
    "model.activation": "gelu",
    "model.position.name": "rotary",
    "model.tie": "none",
    "train.batch_tokens": 100,
    "train.accumulate": 7,
    "train.steps": 99,
    "train.epochs": 9,
    "train.minutes": 9.0,
    "train.optimizer.name": "sgd",
    "train.optimizer.lr": 0.5,
    "train.optimizer.betas": [0.8, 0.9],
    "train.optimizer.eps": 1e-3,
    "train.optimizer.weight_decay": 0.5,
    "train.schedule.name": "cosine",
    "train.schedule.warmup": 7,
    "train.label_smoothing": 0.3,
    "train.objective.name": "rdrop",
    "train.subword_sampling.name": "unigram",
    "train.clip_norm": 3.0,
    "train.device": "cuda",
    "train.threads": 3,
    "train.precision": "bf16",
    "train.compile": True,
    "train.log_every": 3,
    "train.validate_every": 3,
    "train.save_every": 3,
    "train.keep.last": 7,
    "train.keep.best": 7,
    "train.metric": "chrf",
    "train.patience": 7,
    "train.ema": 0.9,
    "train.freeze": ["encoder"],
    "train.init_from": "another",
    "train.tensorboard": True,
    "train.average": 2,
    "search.name": "greedy",
    "search.beam": 7,
    "search.length_penalty": 0.5,
    "search.stop": "exact",
    "search.min_length": 1,
    "search.max_length": 90,
    "search.max_ratio": 7.0,
    "search.no_repeat_ngram": 3,
    "search.max_extra": 7,
    "metrics": {"ter": {}},
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    tree = {
        "run_dir": "run",
        "src_lang": "en",
        "tgt_lang": "de",
        "data": {"train": [{"name": "plain", "src": "a", "tgt": "b"}]},
        "tokenizer": {"name": "none"},
        "model": {"dim": 16, "heads": 2, "ffn_dim": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.1},
        "train": {"steps": 10},
    }
    file = tmp_path_factory.mktemp("config") / "config.yaml"
    file.write_text(yaml.safe_dump(tree))
    return variants.load(str(file))


def settings(config: Config) -> list[str]:
    """All settings; of a table of data sets, filters or metrics, the table."""
    tables = ("data.train", "data.valid", "data.test", "data.filters", "metrics")
    found = (next((t for t in tables if key == t or key.startswith(f"{t}.")), key) for key in flat(config.tree()))
    return list(dict.fromkeys(found))


def fresh(config: Config) -> Resumed:
    torch.manual_seed(1)
    model = checkpoint.build_model(config.model, PIECES, PIECES)
    optimizer = optim.OPTIMIZERS["adamw"](model.named_parameters())
    return Resumed(model, optimizer, optim.averages(model, config.train.ema))


@pytest.fixture(scope="module")
def saved(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that stopped at step 5, with a best score, in the middle of a window."""
    run, tokenizer = Run(tmp_path_factory.mktemp("run")), tmp_path_factory.mktemp("tokenizer")
    TOKENIZERS["none"](vocab_size=50)(["a b"], ["a b"], lambda _: None).save(tokenizer)
    resumed, state = (
        fresh(config),
        TrainState(step=5, epoch=1, window=2, batch=3, best=[4.0, -1.0], stale=2, accumulate=2),
    )
    digests = {"tokenizer_digest": "t", "data_digest": "d"}
    about = {"step": 5, "score": 4.0, "nll": 1.0, "metric": "bleu", "averaged": False, "train": vars(state)}
    about |= digests | {"environment": WHERE.describe() | {"processes": 1}}
    checkpoint.save(run.checkpoints / "step-00000005", resumed.model, resumed.tensors(), about, config, tokenizer)
    return run


def gone_on(
    saved: Run, config: Config, tokenizer: str = "t", data: str = "d", world: int = 1
) -> tuple[TrainState, list[str]]:
    ranks = Ranks()
    ranks.world = world
    ranks.wait = lambda: None  # type: ignore[method-assign]
    return resume(saved, config, WHERE, fresh(config), tokenizer, data, ranks)


def with_other(config: Config, key: str) -> Config:
    """The config with one setting changed."""
    changed = copy.deepcopy(config)
    tree = changed.tree()
    *path, name = key.split(".")
    place = tree
    for part in path:
        place = place[part]
    assert place[name] != OTHER[key]
    place[name] = OTHER[key]
    changed.tree = lambda: tree  # type: ignore[method-assign]
    return changed


def test_all_settings_are_looked_at_below_and_none_is_in_the_table_that_is_none(config: Config):
    found = settings(config)
    assert sorted(OTHER) == sorted(found)
    for name in (*ON_RESUME, *MEASURES):
        assert any(key == name or key.startswith(f"{name}.") or name.startswith(f"{key}.") for key in found), name


def test_nothing_changed_is_nothing_said(saved: Run, config: Config):
    state, said = gone_on(saved, config)
    assert said == []
    assert (state.step, state.window, state.batch, state.best, state.stale) == (5, 2, 3, [4.0, -1.0], 2)


@pytest.mark.parametrize("key", OTHER)
def test_a_changed_setting_is_refused_or_said_or_free(saved: Run, config: Config, key: str):
    changed = with_other(config, key)
    if rule(key) == REFUSED:
        with pytest.raises(CheckpointError, match=rf"does not fit the config \({key}: .* -> .*\); undo the change"):
            gone_on(saved, changed)
        return
    state, said = gone_on(saved, changed)
    assert state.step == 5
    if rule(key) == FREE:
        assert said == []
    else:
        assert len(said) >= 1 and all(line.startswith(key) and " -> " in line for line in said), said
    measured = any(key == measure or key.startswith(f"{measure}.") for measure in MEASURES)
    assert (state.best, state.stale) == ((None, 0) if measured else ([4.0, -1.0], 2))
    assert state.accumulate == (None if key == "train.accumulate" else 2)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("model.dim", REFUSED),
        ("model.dropout", "applied"),
        ("train.optimizer.name", REFUSED),
        ("train.optimizer.lr", "applied"),
        ("train.freeze", REFUSED),
        ("train.keep.last", FREE),
        ("data.train", FREE),
        ("train.steps", "applied"),
        ("search.beam", "applied"),
    ],
)
def test_the_longest_name_in_the_table_counts(key: str, expected: str):
    assert rule(key) == expected


def test_another_tokenizer_is_refused(saved: Run, config: Config):
    with pytest.raises(CheckpointError, match="another tokenizer"):
        gone_on(saved, config, tokenizer="other")


def test_other_data_is_refused(saved: Run, config: Config):
    with pytest.raises(CheckpointError, match=r"was trained on other data \(d\) than is prepared \(other\)"):
        gone_on(saved, config, data="other")


def test_weights_of_corpora_are_said(saved: Run, config: Config):
    changed = copy.deepcopy(config)
    changed.data.train[0].options["weight"] = 2.0
    assert gone_on(saved, changed)[1] == ["data.train weights: [1.0] -> [2.0]"]


def test_another_number_of_processes_is_said(saved: Run, config: Config):
    state, said = gone_on(saved, config, world=2)
    assert said == ["processes: 1 -> 2"]
    assert (state.window, state.batch) == (2, 3)


def test_without_a_checkpoint_the_state_is_new(tmp_path: Path, config: Config):
    run = Run(tmp_path)
    run.metrics.write_text("from a run that was killed before its first checkpoint\n")
    assert gone_on(run, config) == (TrainState(), [])
    assert run.metrics.read_text() == ""
