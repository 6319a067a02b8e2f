"""Configs: YAML by 1.2's rules, every mistake reported at once with its line, overrides, digests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.checkpoint import run_dir
from nmt.choice import Choice
from nmt.config import Config, from_tree
from nmt.errors import ConfigError, NmtError
from nmt.strict_yaml import dump, parse_yaml
from nmt.variants import load

SMALL = """\
run_dir: runs/x
src_lang: en
tgt_lang: de
data:
  train:
    - {name: plain, src: a.en, tgt: a.de}
  valid: {name: plain, src: b.en, tgt: b.de}
model: {dim: 32, heads: 2, ffn_dim: 64, encoder_layers: 1, decoder_layers: 1, dropout: 0.1}
train: {steps: 10}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


def problems(file: Path, *overrides: str) -> list[str]:
    """The lines of the error that loading ends with."""
    with pytest.raises(ConfigError) as error:
        load(str(file), overrides)
    return str(error.value).split("\n")


# --- what is read ---


def test_a_small_config_gets_the_documented_defaults(file: Path) -> None:
    config = load(str(file))
    assert config.seed == 1
    assert config.data.root == "."
    sizes = {"vocab_size": 10000, "joint": True, "byte_fallback": "auto", "sample": 1_000_000}
    assert config.tokenizer == Choice(
        "bpe", {**sizes, "normalization": "identity", "split_digits": False, "symbols": []}
    )
    (corpus,) = config.data.train
    whole = {"label": "", "weight": 1.0, "limit": None, "prefix": "", "reverse": False}
    assert corpus == Choice("plain", {"src": "a.en", "tgt": "a.de", **whole})
    assert config.data.filters == {}
    model = config.model
    assert (model.attention_dropout, model.activation_dropout, model.norm, model.norm_first) == (0, 0, "layer", True)
    assert (model.activation, model.position.name, model.tie) == ("relu", "sinusoidal", "all")
    train = config.train
    assert (train.batch_tokens, train.accumulate, train.label_smoothing, train.clip_norm) == (4096, "auto", 0.1, 1.0)
    assert (train.device, train.threads, train.precision, train.compile) == ("auto",) * 4
    assert (train.log_every, train.validate_every, train.save_every) == (50, 500, 500)
    assert (train.keep.last, train.keep.best, train.metric, train.patience, train.average) == (2, 1, "bleu", 0, 5)
    assert train.optimizer.name == "adamw"
    assert train.optimizer.options["betas"] == [0.9, 0.98]
    assert train.optimizer.options["weight_decay"] == 0.0
    assert train.schedule == Choice("inverse_sqrt", {"warmup": "auto"})
    assert train.objective.name == "cross_entropy"
    assert train.subword_sampling == Choice("none")
    limits = {"min_length": 0, "max_length": 0, "max_ratio": 2.0, "max_extra": 20, "no_repeat_ngram": 0}
    assert config.search == Choice("beam", {"beam": 5, "stop": "enough", "length_penalty": 1.0, **limits})
    assert list(config.metrics) == ["bleu", "chrf"]
    assert config.metrics["bleu"] == {"tokenize": "auto", "lowercase": False}


def test_a_tilde_is_the_home_directory(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    config = load(str(file), ["run_dir=~/x", "data.root=~/text", "train.init_from=~/y"])
    assert (config.run_dir, config.data.root, config.train.init_from) == ("/home/me/x", "/home/me/text", "/home/me/y")
    file.write_text(SMALL.replace("runs/x", "~/runs/x"))
    assert run_dir(str(file)) == Path("/home/me/runs/x")
    assert load(str(file), ["run_dir=a~/b"]).run_dir == "a~/b"


def test_one_validation_corpus_needs_no_name_and_several_keep_theirs(file: Path) -> None:
    assert list(load(str(file)).data.valid) == ["valid"]
    several = load(str(file), ["data.valid={dev: {name: plain, src: x, tgt: y}, news: demo}"])
    assert [(name, choice.name) for name, choice in several.data.valid.items()] == [("dev", "plain"), ("news", "demo")]
    assert load(str(file), ["data.valid=demo"]).data.valid["valid"].name == "demo"
    assert load(str(file), ["data.valid="]).data.valid == {}
    assert "`data.valid` `demo` has no option `splot`" in problems(file, "data.valid={name: demo, splot: dev}")[0]


def test_one_training_corpus_needs_no_list(file: Path) -> None:
    assert [c.name for c in load(str(file), ["data.train={name: demo, split: test}"]).data.train] == ["demo"]
    assert [c.name for c in load(str(file), ["data.train=demo"]).data.train] == ["demo"]


def test_a_setting_of_the_only_training_corpus_needs_no_index(file: Path) -> None:
    assert load(str(file), ["data.train.limit=1000"]).data.train[0].options["limit"] == 1000
    file.write_text(SMALL.replace("train:\n    - {", "train: {"))
    (corpus,) = load(str(file), ["data.train.limit=1000", "data.train.src=c"]).data.train
    assert (corpus.name, corpus.options["src"], corpus.options["limit"]) == ("plain", "c", 1000)
    (message,) = problems(file, "data.train.limmit=1000")
    assert message.startswith("-s data.train.limmit=1000: ") and "did you mean `limit`?" in message
    (message,) = problems(file, "data.train=[demo, demo]", "data.train.limit=1000")
    assert message == (
        "-s data.train.limit=1000: data.train is a list of 2 corpora; name one by its number, like data.train.0.limit"
    )


def test_a_block_without_a_name_keeps_the_default_variant(file: Path) -> None:
    assert load(str(file), ["train.optimizer={lr: 1e-4}"]).train.optimizer.name == "adamw"
    assert load(str(file), ["tokenizer={vocab_size: 77}"]).tokenizer.options["vocab_size"] == 77


SCALARS: list[tuple[str, Any]] = [
    ("1e-3", 0.001),
    ("1E+3", 1000.0),
    ("7.0e-4", 0.0007),
    (".5", 0.5),
    ("5.", 5.0),
    ("-1.5", -1.5),
    (".inf", float("inf")),
    ("-.inf", float("-inf")),
    ("12", 12),
    ("+12", 12),
    ("010", 10),
    ("0x1F", 31),
    ("0o17", 15),
    ("true", True),
    ("False", False),
    ("", None),
    ("~", None),
    ("null", None),
    ("no", "no"),
    ("yes", "yes"),
    ("on", "on"),
    ("off", "off"),
    ("y", "y"),
    ("22:30", "22:30"),
    ("1_000", "1_000"),
    ("2016-01-31", "2016-01-31"),
    ("1.2.3", "1.2.3"),
    ('"1e-3"', "1e-3"),
    ("'no'", "no"),
    ("=", "="),
    ("[1, no, 1e-3]", [1, "no", 0.001]),
    ("{a: {b: [x]}}", {"a": {"b": ["x"]}}),
    ("{2016: a, no: b, 1e-3: c}", {"2016": "a", "no": "b", "1e-3": "c"}),
]


@pytest.mark.parametrize(("text", "value"), SCALARS, ids=[text or "nothing" for text, _ in SCALARS])
def test_yaml_is_read_by_the_core_rules_of_1_2(text: str, value: Any) -> None:
    """Case 61."""
    read = parse_yaml(text, "test")
    assert read == value
    assert type(read) is type(value)


def test_norwegian_is_a_language_and_1e_3_a_rate(file: Path) -> None:
    """Case 61."""
    config = load(str(file), ["src_lang=no", "train.optimizer.lr=1e-3", "train.clip_norm=1e0"])
    assert config.src_lang == "no"
    assert config.train.optimizer.options["lr"] == 0.001
    assert config.train.clip_norm == 1.0


@pytest.mark.parametrize("change", [lambda s: "\ufeff" + s, lambda s: s.replace("\n", "\r\n"), lambda s: "---\n" + s])
def test_byte_order_mark_crlf_and_a_document_start_change_nothing(file: Path, change: Any) -> None:
    expected = load(str(file))
    file.write_bytes(change(SMALL).encode())
    assert load(str(file)) == expected


# --- what is refused ---

UNREADABLE = {
    "empty": ("", "expected a mapping"),
    "only a comment": ("# nothing\n", "expected a mapping"),
    "a list": ("- a\n", "expected a mapping"),
    "a word": ("run_dir", "expected a mapping"),
    "tab": ("run_dir: x\ndata:\n\ttrain: []\n", r"small.yaml:3: is not valid YAML.*\\t"),
    "unclosed": ("data: {train: [\n", "small.yaml:[12]: is not valid YAML"),
    "two documents": ("a: 1\n---\nb: 2\n", "not valid YAML"),
    "control character": ("run_dir: a\0b\n", "not valid YAML"),
    "twice": ("seed: 1\nmodel: {dim: 2}\nseed: 2\n", "small.yaml:3: `seed` is set twice"),
    "twice inside": ("model:\n  dim: 1\n  heads: 1\n  dim: 1\n", "small.yaml:4: `model.dim` is set twice"),
    "a list as key": ("? [a, b]\n: 1\n", "small.yaml:1: a key must be a plain word"),
    "contains itself": ("data: &d\n  train: *d\n", "small.yaml"),
    "a tag that lies": ("seed: !!int one\n", "small.yaml:1"),
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_config_says_so_in_one_line(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    found = problems(file)
    assert re.search(message, found[0]), found
    assert len(found) == 1


def test_a_config_that_is_not_utf8_is_one_error(file: Path) -> None:
    for encoding in ("utf-16", "latin1"):
        file.write_bytes(SMALL.replace("runs/x", "läufe/x").encode(encoding))
        assert "UTF-8" in problems(file)[0]


def test_a_config_that_is_missing_or_a_directory_is_one_error(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "no.yaml", "no such file"), (tmp_path, "is a directory")):
        with pytest.raises(NmtError, match=why):
            load(str(path))


def test_all_mistakes_are_reported_at_once_each_with_its_line_and_the_nearest_name(file: Path) -> None:
    """Case 61."""
    text = SMALL.replace("train: {steps: 10}", "train:\n  steps: ten\n  lable_smoothing: 0.1\n  optimiser: adamw")
    file.write_text(text.replace("dim: 32", "dim: -32") + "sead: 3\n")
    found = problems(file)
    assert len(found) == 5
    expected = [
        (8, "model.dim", "-32"),
        (10, "train.steps", "'ten'"),
        (11, "train.lable_smoothing", "did you mean `label_smoothing`?"),
        (12, "train.optimiser", "did you mean `optimizer`?"),
        (13, "sead", "did you mean `seed`?"),
    ]
    for line, key, hint in expected:
        (message,) = [m for m in found if m.startswith(f"{file}:{line}: `{key}`")]
        assert hint in message


def test_mistakes_inside_choices_are_reported_together_too(file: Path) -> None:
    text = SMALL.replace("train: {steps: 10}", "train:\n  steps: 10\n  optimizer: adamv\n  schedule: {warmup: fast}")
    file.write_text(text + "tokenizer: {name: bpe, vocab_sizes: 5}\nsearch: {name: beam, beam: 2.5}\n")
    found = problems(file)
    assert [re.match(rf"{file}:(\d+): `([\w.]+)`", m).groups() for m in found] == [  # type: ignore[union-attr]
        ("13", "tokenizer"),
        ("11", "train.optimizer"),
        ("12", "train.schedule"),
        ("14", "search"),
    ]
    assert "did you mean `vocab_size`?" in found[0]
    assert "did you mean `adamw`?" in found[1]
    assert "`warmup`" in found[2] and "'fast'" in found[2]
    assert "`beam` of `beam` must be an integer >= 1, but is 2.5" in found[3]


def test_missing_settings_are_all_named(file: Path) -> None:
    file.write_text("seed: 1\nmodel: {dim: 4}\n")
    text = "\n".join(problems(file))
    for key in ("run_dir", "src_lang", "tgt_lang", "data", "train", "model.heads", "model.dropout"):
        assert f"`{key}` is missing" in text


WRONG_VALUES = [
    "seed=-1",
    "seed=1.5",
    "model.dim=0",
    "model.dim=32.0",
    "model.dim='32'",
    "model.dim=1_000",
    "model.dim=true",
    "model.dim=",
    "model.dropout=1",
    "model.dropout=-0.1",
    "model.dropout=.nan",
    "model.norm=batch",
    "model.norm_first=yes",
    "model.tie=both",
    "train.steps=0",
    "train.steps=1e3",
    "train.minutes=0",
    "train.minutes=.nan",
    "train.batch_tokens=-1",
    "train.batch_tokens=100000000000000000000",
    "train.accumulate=0",
    "train.accumulate=1000000000000",
    "train.accumulate=many",
    "train.label_smoothing=1.0",
    "train.clip_norm=-1",
    "train.precision=fp8",
    "train.device=gpu",
    "train.device=cuda:x",
    "train.threads=0",
    "train.keep.last=0",
    "train.patience=-1",
    "train.average=-2",
    "train.metric=rouge",
    "train.log_every=0",
    "run_dir=3",
    "run_dir=",
    'run_dir="a\\0b"',
    "src_lang=true",
]


@pytest.mark.parametrize("override", WRONG_VALUES)
def test_a_wrong_value_is_one_line_that_names_the_key(file: Path, override: str) -> None:
    """Case 61."""
    (message,) = problems(file, override)
    assert message.startswith(f"-s {override}")
    assert f"`{override.partition('=')[0]}`" in message


@pytest.mark.parametrize(
    ("override", "wanted"),
    [
        ("train=3", "settings (a mapping), but is 3"),
        ("metrics=bleu", "a mapping, but is 'bleu'"),
        ("metrics.bleu=13a", "a mapping, but is '13a'"),
        ("train.freeze=encoder", "a list of text, but is 'encoder'"),
        ("train.freeze=[3]", "text, but is 3"),
        ("data.train=3", "a list of blocks with a name, but is 3"),
        ("model.dim=0", "an integer >= 1, but is 0"),
        ("model.dropout=x", "a number >= 0 and < 1, but is 'x'"),
        ("model.norm_first=yes", "true or false, but is 'yes'"),
        ("train.accumulate=many", "auto or an integer from 1 to 100000, but is 'many'"),
        ("search.length_penalty=200", "a number from -10 to 10, but is 200"),
    ],
)
def test_a_wrong_value_is_told_what_is_right_in_plain_words(file: Path, override: str, wanted: str) -> None:
    (message,) = problems(file, override)
    assert message.endswith(f" must be {wanted} instead")


# Options of variants: their constructors hold the bounds.
WRONG_OPTIONS = [
    "search.length_penalty=200",
    "search.length_penalty=-1e9",
    "tokenizer.vocab_size=0",
    "tokenizer.vocab_size=-5",
    "tokenizer.vocab_size=big",
    "tokenizer.vocab_size=9999999999999",
    "tokenizer.joint=1",
    "tokenizer.sample=0",
    "tokenizer.normalization=nfc",
    "tokenizer.split_digits=1",
    "tokenizer.symbols=<b>",
    "tokenizer.symbols=[1]",
    "tokenizer.symbols=[a b]",
    "tokenizer.symbols=['']",
    'tokenizer.symbols=["\\u200b"]',
    "tokenizer={name: char, split_digits: true}",
    "tokenizer={name: none, normalization: nfkc}",
    "tokenizer={name: ready}",
    "tokenizer={name: ready, src: a, vocab_size: 5}",
    "train.subword_sampling=bpe",
    "train.subword_sampling=unigram",  # of a bpe tokenizer
    "train.subword_sampling={name: bpe_dropout, rate: 1}",
    "train.subword_sampling={name: bpe_dropout, alpha: 0.2}",
    "train.subword_sampling={name: unigram, alpha: 0}",
    "train.optimizer.lr=-1",
    "train.optimizer.lr=.nan",
    "train.optimizer.lr=fast",
    "train.optimizer.betas=[0.9]",
    "train.optimizer.betas=[0.9, 2]",
    "train.optimizer.betas=0.9",
    "train.optimizer.weight_decay=-1",
    "train.optimizer.momentum=0.9",
    "train.schedule.warmup=-1",
    "train.schedule={name: warm}",
    "train.objective=mse",
    "data.filters.length={max_tokens: 0}",
    "data.filters.ratio={max: 0}",
    "data.filters.lenght={max_tokens: 5}",
    "data.filters.overlap={by: line}",
    "data.filters.duplicates={by: either}",
    "data.filters.script={min: 2}",
    "data.filters.script.src=Latin",
    "data.filters.characters={max: 0}",
    "data.filters.empty={max: 0}",
    "data.filters.regex={any: '('}",
    "data.filters.regex={any: ['(']}",
    "data.filters.length=250",
    "data.filters.duplicates=dropp",
    "model.position={name: learned, limit: 0}",
    "model.position=absolute",
    "search.beam=0",
    "search.beam=-1",
    "search.max_ratio=-1",
    "search.max_extra=-1",
    "search=sampling",
    "data.train.0={name: plian, src: x, tgt: y}",
    "data.train.0.scr=x",
    "data.train.0.weight=0",
    "data.train.0.limit=0",
    "data.train.0.prefix=2",
    "data.train.0.reverse=1",
    "data.valid.weight=2",
    "data.test={a: {name: demo, weight: 0.5}}",
    "data.train.0.tgt=[]",
    "data.train.0={name: tsv, path: x, src: -1}",
    "data.valid={name: demo, split: dev}",
    "data.test={a: {src: x}}",
    "data.test={news/2014: demo}",
    "data.valid={..: demo}",
    "metrics={bleu: {tokenise: 13a}}",
    "metrics={bleu: {tokenize: 13b}}",
    "metrics={bleu: {}, rouge: {}}",
    "metrics.bleu=13a",
]


@pytest.mark.parametrize("override", WRONG_OPTIONS)
def test_a_wrong_option_is_one_error_before_any_work(file: Path, override: str) -> None:
    """Case 61."""
    (message,) = problems(file, override)
    assert override.partition("=")[0].split(".")[-1] in message


def test_a_wrong_option_is_placed_where_it_stands(file: Path) -> None:
    text = SMALL.replace("train: {steps: 10}", "train:\n  steps: 10\n  optimizer:\n    name: adamw\n    lr: fast")
    file.write_text(text)
    (message,) = problems(file)
    assert message.startswith(f"{file}:13: ")
    (message,) = problems(file, "train.optimizer.lr=quick")
    assert message.startswith("-s train.optimizer.lr=quick: ")
    file.write_text(SMALL)
    for override in ("data.train.0.name=plane", "data.train.name=tsv", "data.valid.name=plane"):
        (message,) = problems(file, override)
        assert message.startswith(f"-s {override}: ")


def test_settings_that_do_not_go_together_are_refused(file: Path) -> None:
    """Case 26."""
    assert "`model.heads` must divide" in problems(file, "model.heads=3")[0]
    assert "`model.dim` must be even" in problems(file, "model.dim=33", "model.heads=3")[0]
    assert "one vocabulary for both sides" in problems(file, "tokenizer.joint=false")[0]
    load(str(file), ["tokenizer.joint=false", "model.tie=decoder"])
    assert "lower its max_tokens" in problems(file, "model.position={name: learned, limit: 100}")[0]
    load(str(file), ["model.position={name: learned, limit: 100}", "data.filters.length.max_tokens=100"])
    assert "at least one limit" in problems(file, "train.steps=")[0]
    assert "at least one corpus" in problems(file, "data.train=[]")[0]
    load(str(file), ["train.metric=nll", "metrics={}"])
    assert (
        "needs tokenizer.name bpe, but it is char"
        in problems(file, "tokenizer.name=char", "train.subword_sampling=bpe_dropout")[0]
    )
    load(str(file), ["train.subword_sampling=bpe_dropout"])
    load(str(file), ["tokenizer.name=unigram", "train.subword_sampling=unigram"])
    load(str(file), ["tokenizer.name=char", "train.subword_sampling={name: bpe_dropout, rate: 0}"])
    ready = "tokenizer={name: ready, src: a.model, tgt: b.model}"
    assert "one vocabulary for both sides" in problems(file, ready)[0]
    load(str(file), [ready, "model.tie=none", "train.subword_sampling=unigram"])  # of its kind nothing is known yet


@pytest.mark.parametrize(
    ("language", "hint"),
    [("german", "`de`"), ("Chinese", "`zh`"), ("English (US)", "`en`"), ("jp", "`ja`"), ("klingon", ""), ("d", "")],
)
def test_a_language_that_is_no_code_is_refused_with_the_code_that_was_meant(
    file: Path, language: str, hint: str
) -> None:
    for key in ("src_lang", "tgt_lang"):
        (message,) = problems(file, f"{key}={language}")
        assert f"`{key}` must be a language code like de" in message
        assert ("did you mean" in message, hint in message) == (bool(hint), True)


@pytest.mark.parametrize("code", ["de", "zh-CN", "zh_Hans", "eng_Latn", "pt-BR", "yue", "sr-Latn-RS", "es-419", "EN"])
def test_codes_may_have_region_and_script(file: Path, code: str) -> None:
    assert load(str(file), [f"src_lang={code}", f"tgt_lang={code}"]).tgt_lang == code


# --- overrides ---


def test_an_override_wins_over_the_file_and_the_last_over_the_first(file: Path) -> None:
    config = load(str(file), ["train.steps=20", "train.steps=30", "run_dir=runs/a=b", "data.test.news.name=demo"])
    assert config.train.steps == 30
    assert config.run_dir == "runs/a=b"  # split at the first =
    assert config.data.test["news"].name == "demo"


def test_integers_index_lists(file: Path) -> None:
    config = load(str(file), ["data.train=[demo, {name: plain, src: x, tgt: y}]", "data.train.1.src=z"])
    assert config.data.train[1].options["src"] == "z"


def test_a_number_may_be_the_name_of_a_set(file: Path) -> None:
    config = load(str(file), ["data.test={2016: demo}", "data.test.2016.split=test", "data.test.2017.name=demo"])
    assert config.data.test["2016"].options["split"] == "test"
    assert list(config.data.test) == ["2016", "2017"]


def test_a_mapping_replaces_wholly_and_a_new_name_drops_the_old_options(file: Path) -> None:
    config = load(str(file), ["tokenizer={name: bpe, vocab_size: 50}", "tokenizer.name=unigram"])
    assert config.tokenizer.options["vocab_size"] == 10000
    config = load(str(file), ["tokenizer={name: bpe, vocab_size: 50}", "tokenizer.name=bpe"])
    assert config.tokenizer.options["vocab_size"] == 50
    config = load(str(file), ["search.beam=9", "search={length_penalty: 2}"])
    assert config.search.options["beam"] == 5


def test_an_override_reaches_into_what_the_file_leaves_out_or_only_names(file: Path) -> None:
    assert load(str(file), ["search.beam=9"]).search.options["beam"] == 9
    assert load(str(file), ["search=beam", "search.beam=9"]).search.options["beam"] == 9
    filters = ["data.filters.duplicates=keep", "data.filters.length.max_tokens=7"]
    assert load(str(file), filters).data.filters == {"duplicates": "keep", "length": {"max_tokens": 7}}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.steps", "expected KEY=VALUE"),
        ("=5", "expected KEY=VALUE"),
        ("train.step=5", "did you mean `steps`?"),
        ("trian.steps=5", "did you mean `train`?"),
        ("model.dim.x=5", "`model.dim` is a single value"),
        ("data.train.1.src=x", "`data.train.1` must be an index below 1"),
        ("data.train.1=demo", "`data.train.1` must be an index below 1"),
        ("data.train.-1.src=x", "must be an index below 1"),
        ("train.steps=[", "is not valid YAML"),
        ("train.steps={a: 1, a: 2}", "set twice"),
        ("5=3", "`5` is no setting here"),
        ("..=3", "expected KEY=VALUE"),
        ("model.=3", "expected KEY=VALUE"),
        ("data.name=x", "`data.name` is no setting here"),
        ("name=x", "`name` is no setting here"),
    ],
)
def test_a_wrong_override_is_one_error_that_repeats_it(file: Path, override: str, message: str) -> None:
    (found,) = problems(file, override)
    assert found.startswith(f"-s {override}")
    assert message in found


# --- saving and comparing ---


def test_a_saved_config_is_read_back_the_same(file: Path) -> None:
    config = load(str(file), ["src_lang=no", "run_dir='1e-3'", "train.optimizer.lr=1e-9", "data.test={'2016': demo}"])
    assert from_tree(Config, parse_yaml(dump(config.tree()), "saved")) == config


def test_a_saved_config_is_itself_a_config(file: Path, tmp_path: Path) -> None:
    config = load(str(file))
    saved = tmp_path / "saved.yaml"
    saved.write_text(dump(config.tree()))
    assert load(str(saved)) == config


def test_a_saved_setting_that_this_version_does_not_know_is_refused(file: Path) -> None:
    tree = load(str(file)).tree()
    tree["train"]["future"] = 1
    with pytest.raises(ConfigError, match="`future`"):
        from_tree(Config, tree)


# Words that one YAML or another takes for something else.
TRICKY = [
    *("~", "null", "no", "yes", "on", "off", "true", "nan", ".nan", ".inf", "1e5", "1e-3", "-.5", "+.5", ".5e3"),
    *("0o17", "0x1f", "08", "089", "010", "1_0", "22:30", "1:2:3", "2016-01-31", "-", "?", ":", "=", "<<", "*"),
    *("&", "!", "|", ">", "%", "@", "`", "#", "", " ", "a: b", "a #b", "- a", "\t", "a\nb", "\0", "猫"),
]

SCALAR = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.sampled_from(TRICKY),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters="\ufeff"), max_size=20),
)
TREE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(TRICKY) | st.text(max_size=8, alphabet="ab1.e-~: "), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(tree=TREE)
def test_what_is_dumped_is_read_back(tree: Any) -> None:
    assert parse_yaml(dump({"key": tree}), "test") == {"key": tree}


@pytest.mark.parametrize("word", TRICKY, ids=repr)
def test_a_string_stays_a_string(word: str) -> None:
    assert parse_yaml(dump({word: word}), "test") == {word: word}


def test_the_digest_follows_what_shapes_the_result_and_nothing_else(file: Path) -> None:
    digest = load(str(file)).digest()
    same = ["run_dir=y", "data.root=/z", "train.device=cpu", "train.threads=3", "train.log_every=7"]
    same += ["train.keep.last=9", "train.save_every=3", "train.compile=false", "data.train.0.limit="]
    for override in same:
        assert load(str(file), [override]).digest() == digest, override
    assert load(str(file), ["train.optimizer={name: adamw}", "search.beam=5"]).digest() == digest
    other = ["seed=2", "train.optimizer.lr=0.5", "model.dropout=0.2", "data.train.0.src=c", "train.precision=fp32"]
    other += ["data.train.0.weight=2", "data.filters.same=drop", "train.subword_sampling=bpe_dropout"]
    for override in other:
        assert load(str(file), [override]).digest() != digest, override


def test_every_setting_of_the_schema_can_be_overridden(file: Path) -> None:
    """No key of the schema is out of reach of -s: each, set to the value that it has, changes nothing."""
    config = load(str(file))
    file.write_text(dump(config.tree()))

    def leaves(tree: dict[str, Any], path: str) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        for key, value in tree.items():
            inner = isinstance(value, dict) and value
            found += leaves(value, f"{path}{key}.") if inner else [(f"{path}{key}", value)]
        return found

    settings = leaves(config.tree(), "")
    assert len(settings) > 50
    for key, value in settings:
        assert load(str(file), [f"{key}={json.dumps(value)}"]) == config, key
