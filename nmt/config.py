"""The config: plain dataclasses that hold every setting, its default and its explanation, and their YAML.

The sections can also be made directly: `Train(steps=100)`. Blocks like `{name: adamw, lr: 1e-3}` are kept as `Choice`;
nmt.variants checks them against the constructors that they name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self

from nmt.choice import Choice, Count, Natural, Positive, Range, Rate
from nmt.errors import ConfigError
from nmt.settings import STRICT, Source, checked, read
from nmt.strict_yaml import KeyPath, dotted, parse_yaml

DEFAULT_METRICS = ("bleu", "chrf")


def _choice(name: str, **options: Any) -> Any:
    return field(default_factory=lambda: Choice(name, options))


@dataclass(kw_only=True)
class Data:
    __pydantic_config__ = STRICT
    root: Annotated[str, "where relative corpus paths start"] = "."
    train: Annotated[list[Choice], "one or several corpora"]
    valid: Annotated[dict[str, Choice], "one corpus, or names to corpora; the first decides best"] = field(
        default_factory=dict
    )
    test: Annotated[dict[str, Choice], "names to corpora; tgt may be a list of files: several references"] = field(
        default_factory=dict
    )
    filters: Annotated[
        dict[str, Any],
        "by filter: drop, keep, or options; they drop pairs of train, never of valid or test",
    ] = field(default_factory=dict)


@dataclass(kw_only=True)
class Model:
    __pydantic_config__ = STRICT
    dim: Annotated[Count, "width of the embeddings and of every layer's input and output"]
    heads: Annotated[Count, "attention heads; dim is divided among them"]
    ffn_dim: Annotated[Count, "inner width of the feed-forward sublayers"]
    encoder_layers: Count
    decoder_layers: Count
    dropout: Annotated[Rate, "of embeddings and of each sublayer's output"]
    attention_dropout: Annotated[Rate, "of attention weights"] = 0.0
    activation_dropout: Annotated[Rate, "after the activation of the feed-forward sublayers"] = 0.0
    word_dropout: Annotated[Rate, "of whole tokens: their embeddings are zero, on both sides"] = 0.0
    norm: Literal["layer", "rms"] = "layer"
    norm_first: Annotated[bool, "true: pre-norm; false: post-norm, as in the paper"] = True
    activation: Literal["relu", "gelu", "swiglu"] = "relu"
    position: Annotated[Choice, "how a layer knows the order"] = _choice("sinusoidal")
    tie: Annotated[
        Literal["all", "decoder", "none"],
        "one matrix for source embedding, target embedding and projection; or for the last two; or none",
    ] = "all"


@dataclass(kw_only=True)
class Keep:
    __pydantic_config__ = STRICT
    last: Annotated[Count, "newest checkpoints to keep"] = 2
    best: Annotated[Count, "best checkpoints to keep"] = 1


@dataclass(kw_only=True)
class Train:
    __pydantic_config__ = STRICT
    batch_tokens: Annotated[
        int, Range(ge=1, le=10**9), "rows x longest side, padding counted, per update over all its micro-batches"
    ] = 4096
    accumulate: Annotated[
        Literal["auto"] | Annotated[int, Range(ge=1, le=100_000)],
        "micro-batches per update; auto: as few as memory allows",
    ] = "auto"
    steps: Annotated[Count | None, "updates after which the run ends"] = None
    epochs: Annotated[Count | None, "passes over the training data after which the run ends"] = None
    minutes: Annotated[
        Positive | None,
        "wall clock of training, validation and saving, summed over resumes, after which the run ends "
        "(the last validation comes on top); not reproducible",
    ] = None
    optimizer: Choice = _choice("adamw")
    schedule: Annotated[Choice, "of the learning rate"] = _choice("inverse_sqrt")
    label_smoothing: Rate = 0.1
    objective: Choice = _choice("cross_entropy")
    subword_sampling: Annotated[Choice, "subwords drawn anew in every epoch"] = _choice("none")
    clip_norm: Annotated[float, Range(ge=0), "largest norm of the gradient; 0: no limit"] = 1.0
    device: Annotated[str, "auto, cpu, cuda, cuda:1 or mps"] = "auto"
    threads: Annotated[Literal["auto"] | Count, "CPU threads; auto: OMP_NUM_THREADS, or the cores of this process"] = (
        "auto"
    )
    precision: Annotated[Literal["auto", "fp32", "bf16", "fp16"], "auto: bf16 where the device is good at it"] = "auto"
    compile: Annotated[
        Literal["auto"] | bool, "compile the loss (needs a C++ compiler on the CPU); auto: where it pays"
    ] = "auto"
    log_every: Annotated[Count, "steps"] = 50
    validate_every: Annotated[Count, "steps; nll, ppl, and the metrics of real translations"] = 500
    save_every: Annotated[Count, "steps"] = 500
    keep: Keep = field(default_factory=Keep)
    metric: Annotated[str, "chooses best: one of `metrics`, or nll"] = "bleu"
    patience: Annotated[Natural, "validations without a new best after which the run ends; 0: no early stop"] = 0
    ema: Annotated[Rate, "decay of a moving average of the weights, which then is what is measured and kept"] = 0.0
    freeze: Annotated[list[str], "parts of the model that are not trained: encoder, src_embedding, decoder.0"] = field(
        default_factory=list
    )
    init_from: Annotated[str | None, "MODEL whose weights and tokenizer the run starts from, to fine-tune it"] = None
    tensorboard: Annotated[bool, "also write the numbers for TensorBoard, into run_dir/tensorboard"] = False
    average: Annotated[Natural, "snapshots at the last N validations, averaged at the end; 0: off"] = 5


@dataclass(kw_only=True)
class Config:
    __pydantic_config__ = STRICT
    run_dir: Annotated[str, "everything that the run writes"]
    src_lang: Annotated[str, "language code, for the signature of a score"]
    tgt_lang: Annotated[str, "language code; chooses the tokenizer of BLEU"]
    seed: Annotated[int, Range(ge=0, lt=2**32)] = 1
    data: Data
    tokenizer: Choice = _choice("bpe")
    model: Model
    train: Train
    search: Choice = _choice("beam")
    metrics: Annotated[dict[str, dict[str, Any]], "bleu, chrf, chrf++, ter, each with its options"] = field(
        default_factory=lambda: {name: {} for name in DEFAULT_METRICS}
    )

    def tree(self) -> dict[str, Any]:
        """Plain mappings, lists and scalars, as in YAML."""
        return typing.cast(dict[str, Any], _tree(self))

    def digest(self) -> str:
        """Names what shapes the result; settings that only say where or how fast it is made are left out."""
        tree = self.tree()
        del tree["run_dir"], tree["data"]["root"]
        for key in ("keep", "log_every", "device", "threads", "compile", "save_every", "tensorboard"):
            del tree["train"][key]
        return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()[:12]


def _tree(value: Any) -> Any:
    if isinstance(value, Choice):
        return _tree(value.tree())
    if dataclasses.is_dataclass(value):
        return {item.name: _tree(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: _tree(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tree(item) for item in value]
    return value


def from_tree(section: type, tree: dict[str, Any]) -> Any:
    """The opposite of `Config.tree`, for trees that were checked when they were saved. Unknown keys are an error."""
    hints = typing.get_type_hints(section)
    values = {}
    for key, value in tree.items():
        if key not in hints:
            raise ConfigError(f"the saved config has a setting `{key}` that this version does not know")
        hint = hints[key]
        if dataclasses.is_dataclass(hint) and hint is not Choice:
            value = from_tree(typing.cast(type, hint), value)
        elif hint is Choice:
            value = Choice.read(value)
        elif hint == list[Choice]:
            value = [Choice.read(item) for item in value]
        elif hint == dict[str, Choice]:
            value = {name: Choice.read(item) for name, item in value.items()}
        values[key] = value
    return section(**values)


class Override(NamedTuple):
    """A setting to replace, and where it was asked for."""

    key: str
    value: Any
    at: str

    @classmethod
    def read(cls, text: str) -> Self:
        """From `KEY=VALUE`, as a command line has it."""
        key, equals, value = text.partition("=")
        at = f"-s {text}"
        if not equals or not all(key.split(".")):
            raise ConfigError(f"{at}: expected KEY=VALUE, for example -s train.steps=1000")
        return cls(key, parse_yaml(value, at), at)


def load(file: str | Path, overrides: Sequence[str | Override] = ()) -> tuple[Config, Source]:
    """Reads a config file and applies overrides. Raises ConfigError with all problems at once."""
    source = read(file)
    _list_corpora(source)
    for override in overrides:
        _override(source, Override.read(override) if isinstance(override, str) else override)
        _list_corpora(source)
    return _validate(source), source


def _list_corpora(source: Source) -> None:
    """A single training corpus may stand without a list around it."""
    data = source.tree.get("data")
    if isinstance(data, dict) and isinstance(data.get("train"), (dict, str)):
        data["train"] = [data["train"]]
        moved = {(*p[:2], 0, *p[2:]): at for p, at in source.places.items() if p[:2] == ("data", "train")}
        source.places.update(moved)


def _validate(source: Source) -> Config:
    tree = source.tree
    data = tree.get("data")
    if isinstance(data, dict):
        valid = data.get("valid")
        # A single validation corpus may stand without a name.
        if isinstance(valid, str) or (isinstance(valid, dict) and isinstance(valid.get("name"), str)):
            data["valid"] = {"valid": valid}
            source.places.update(
                {(*p[:2], "valid", *p[2:]): at for p, at in source.places.items() if p[:2] == ("data", "valid")}
            )
        elif valid is None:
            data.pop("valid", None)
    config = checked(Config, source)
    _fill_names(config)
    found = list(_cross_checks(config, source))
    if found:
        raise ConfigError("\n".join(found))
    config.run_dir, config.data.root = map(os.path.expanduser, (config.run_dir, config.data.root))
    config.train.init_from = config.train.init_from and os.path.expanduser(config.train.init_from)
    return config


def _fill_names(section: Any) -> None:
    """A block without `name` keeps the field's default name."""
    for item in dataclasses.fields(section):
        value = getattr(section, item.name)
        if isinstance(value, Choice) and not value.name and item.default_factory is not dataclasses.MISSING:
            setattr(section, item.name, Choice(item.default_factory().name, value.options))
        elif dataclasses.is_dataclass(value) and not isinstance(value, Choice):
            _fill_names(value)


def _cross_checks(config: Config, source: Source) -> Iterator[str]:
    model, train = config.model, config.train
    if model.dim % model.heads:
        yield (
            f"{source.place(('model', 'heads'))}: `model.heads` must divide `model.dim`, "
            f"but {model.dim} is no multiple of {model.heads}"
        )
    if model.dim % 2:
        yield f"{source.place(('model', 'dim'))}: `model.dim` must be even, but is {model.dim} instead"
    if not (train.steps or train.epochs or train.minutes):
        yield (f"{source.place(('train',))}: `train` needs at least one limit: `steps`, `epochs` or `minutes`")
    if train.metric != "nll" and train.metric not in config.metrics:
        yield (
            f"{source.place(('train', 'metric'))}: `train.metric` must be nll or one of `metrics` "
            f"({', '.join(config.metrics)}), but is {train.metric!r} instead"
        )
    if not config.data.train:
        yield f"{source.place(('data', 'train'))}: `data.train` must list at least one corpus"
    if "\0" in config.run_dir:
        yield f"{source.place(('run_dir',))}: `run_dir` must be a path, without NUL, but is {config.run_dir!r} instead"
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", train.device):
        yield (
            f"{source.place(('train', 'device'))}: `train.device` must be auto, cpu, mps, cuda or cuda:N, "
            f"but is {train.device!r} instead"
        )


def _override(source: Source, override: Override) -> None:
    """Applies one override to the tree as read."""
    key, value, at = override
    parts = _of_a_corpus(source.tree, key.split("."), at)
    parent: Any = source.tree
    path: KeyPath = ()
    for part in parts[:-1]:
        child, path = _child(parent, part, path, at)
        if child is None or isinstance(child, str):
            # `-s search.beam=8` where the config says nothing, or just `search: beam`.
            child = {"name": child} if child is not None and path[:2] != ("data", "filters") else {}
            if path == ("metrics",):  # the others of the default metrics stay
                child = {name: {} for name in DEFAULT_METRICS}
            parent[path[-1]] = child
            source.places[path] = at
        parent = child
    _, full = _child(parent, parts[-1], path, at)
    changed = full
    if full[-1] == "name" and not _is_section(path) and parent.get("name") != value:
        parent.clear()  # the options of another variant do not carry over
        changed = path
    parent[full[-1]] = value
    source.places = {p: line for p, line in source.places.items() if p[: len(changed)] != changed}
    source.places[changed] = at


def _of_a_corpus(tree: dict[str, Any], parts: list[str], at: str) -> list[str]:
    """A setting of data.train's only corpus needs no index."""
    data = tree.get("data")
    train = data.get("train") if isinstance(data, dict) and parts[:2] == ["data", "train"] else None
    if not isinstance(train, list) or len(parts) < 3 or re.fullmatch(r"-?\d+", parts[2]):
        return parts
    indexed = ["data", "train", "0", *parts[2:]]
    if len(train) != 1:
        raise ConfigError(
            f"{at}: data.train is a list of {len(train)} corpora; name one by its number, like {'.'.join(indexed)}"
        )
    return indexed


def _child(parent: Any, part: str, path: KeyPath, at: str) -> tuple[Any, KeyPath]:
    """What stands under a key or an index, None if nothing does, and its path."""
    if isinstance(parent, list):
        if not part.isdigit() or int(part) >= len(parent):
            raise ConfigError(f"{at}: `{dotted((*path, part))}` must be an index below {len(parent)}")
        return parent[int(part)], (*path, int(part))
    if not isinstance(parent, dict):
        raise ConfigError(f"{at}: `{dotted(path)}` is a single value and has no `{part}`")
    return parent.get(part), (*path, part)


def _is_section(path: KeyPath) -> bool:
    """Whether a path leads to a fixed section of the schema, not to a block with a name."""
    section: Any = Config
    for key in path:
        section = typing.get_type_hints(section).get(str(key)) if dataclasses.is_dataclass(section) else None
    return dataclasses.is_dataclass(section) and section is not Choice
