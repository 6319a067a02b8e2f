"""nmt export: a model in one directory, which does what the run's own does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import copy_lines, make_toy, write
from safetensors.torch import load_file

from nmt import checkpoint, variants
from nmt.choice import Choice, build
from nmt.errors import CheckpointError, ConfigError
from nmt.export import agreement
from nmt.score import Scorer
from nmt.tokenizer import TOKENIZERS
from nmt.train import train
from nmt.translate import Translator

LINES = [*copy_lines(30, 5), "", " ".join("abcdefgh" * 5)]


@pytest.fixture(scope="module")
def plain(copy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from nmt.export import export

    target = tmp_path_factory.mktemp("exports") / "plain"
    export(str(copy_run / "run"), str(target), Choice("plain"))
    return target


# --- plain ---


def test_a_plain_export_holds_what_its_use_needs_and_nothing_of_the_training(plain: Path, copy_run: Path):
    names = {path.name for path in plain.iterdir()}
    assert names == {"model.safetensors", "config.yaml", "tokenizer.model", "state.json", "README.md"}
    state = json.loads((plain / "state.json").read_text())
    assert "train" not in state and state["config_digest"]
    best = checkpoint.find(str(copy_run / "run"))
    assert (plain / "model.safetensors").read_bytes() == (best.directory / "model.safetensors").read_bytes()


def test_a_plain_export_translates_and_scores_like_the_run(plain: Path, copy_run: Path):
    ours, theirs = (Translator(str(model), "cpu", threads=1) for model in (copy_run / "run", plain))
    assert list(ours.stream(LINES)) == list(theirs.stream(LINES))
    pairs = [(line, line) for line in LINES]
    scores = [list(Scorer(str(m), "cpu", threads=1).stream(pairs)) for m in (copy_run / "run", plain)]
    assert scores[0] == scores[1]


def test_a_plain_export_is_a_model_for_every_command(command, plain: Path, copy_run: Path, tmp_path: Path):
    code, out, err = command("evaluate", plain, "--json")
    assert code == 0, err
    [ours] = json.loads(command("evaluate", copy_run / "run", "--json")[1])
    [theirs] = json.loads(out)
    assert {**ours, "system": ""} == {**theirs, "system": ""}
    source = write(tmp_path / "in", LINES)
    assert command("translate", plain, source)[:2] == command("translate", copy_run / "run", source)[:2]
    assert command("score", plain, "--src", source, "--tgt", source)[0] == 0


def test_a_run_starts_from_a_plain_export(plain: Path, copy_run: Path, tmp_path: Path):
    config = make_toy(tmp_path, train=50, steps=1, init_from=str(plain))
    assert train(variants.load(str(config), ["train.optimizer.lr=1.0e-9"]), fresh=False) == 0
    started = checkpoint.find(str(tmp_path / "run"))
    before = checkpoint.find(str(copy_run / "run")).weights()
    assert all(torch.allclose(before[name], tensor, atol=1e-6) for name, tensor in started.weights().items())
    assert started.tokenizer().digest() == checkpoint.find(str(plain)).tokenizer().digest()


def test_half_the_digits_in_half_the_space(command, copy_run: Path, tmp_path: Path):
    code, _, err = command("export", copy_run / "run", "--to", "half", "--format", "plain", "--half")
    assert code == 0
    assert re.search(r"of 30 lines, 100.0% are translated .* 100.0% of the tokens", err), err
    assert all(t.dtype == torch.float16 for t in load_file(tmp_path / "half" / "model.safetensors").values())
    ours = Translator(str(copy_run / "run"), "cpu", threads=1).translate(LINES[:10])
    assert Translator("half", "cpu", threads=1).translate(LINES[:10]) == ours


def test_the_card_tells_data_scores_and_how_to_use_it(command, copy_run: Path, tmp_path: Path):
    """With the signatures of the validation and of what `nmt evaluate` has kept; an export of an export keeps them."""
    assert command("evaluate", copy_run / "run")[0] == 0
    assert command("export", copy_run / "run", "--to", "first", "--format", "plain")[0] == 0
    assert command("export", "first", "--to", "second", "--format", "plain")[0] == 0
    card = (tmp_path / "second" / "README.md").read_text()
    assert card == (tmp_path / "first" / "README.md").read_text()
    for expected in (
        "language: [en, en]",
        "| train.src | 1,",
        "| valid | bleu |",
        "| toy | chrf |",
        "nrefs:1\\|case:mixed",
    ):
        assert expected in card, card
    assert "1 encoder and 1 decoder layers" in card and "nmt translate DIR" in card
    (tmp_path / "second" / "README.md").write_text("my own words\n")
    assert checkpoint.find(str(tmp_path / "second")).state["about"]["scores"]


def test_a_damaged_export_is_one_clear_error(command, copy_run: Path, tmp_path: Path):
    assert command("export", copy_run / "run", "--to", "out", "--format", "plain")[0] == 0
    weights = tmp_path / "out" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-3] ^= 1
    weights.write_bytes(content)
    code, _, err = command("translate", "out", stdin=b"a b\n")
    assert code == 2 and "wrong checksum" in err


# --- what may be written where ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "new", "--format", "onnx"], "--format: `onnx` is none of: ctranslate2, plain"),
        (["--to", "new", "--format", "plain", "--quantization", "int8"], "no option `quantization`"),
        (["--to", "new", "--format", "ctranslate2", "--half"], "no option `half`"),
        (["--to", "new", "--format", "ctranslate2", "--quantization", "int4"], "must be float32 or int8 or"),
        (["--to", "new", "--format", "plain", "--check", "nosuch"], "nosuch: no such file"),
        (["--to", "file", "--format", "plain"], "is a file, expected a directory"),
        (["--to", "mine", "--format", "plain"], "exists already"),
        (["--to", "mine", "--format", "plain", "--overwrite"], "holds files that are no export of ours (precious)"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(
    command, copy_run: Path, tmp_path: Path, arguments: list[str], said: str
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    (tmp_path / "file").write_text("x")
    code, out, err = command("export", copy_run / "run", *arguments)
    assert (code, out, err.count("\n")) == (2, b"", 1) and said in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine"]
    assert (tmp_path / "mine" / "precious").exists()


def test_an_export_is_replaced_only_when_asked_and_a_checkpoint_never(command, copy_run: Path, tmp_path: Path):
    arguments = ("export", copy_run / "run", "--to", tmp_path / "out", "--format", "plain")
    assert command(*arguments)[0] == 0
    code, _, err = command(*arguments)
    assert code == 2 and "--overwrite" in err
    assert command(*arguments, "--overwrite")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    best = checkpoint.find(str(copy_run / "run")).directory
    code, _, err = command("export", copy_run / "run", "--to", best, "--format", "plain", "--overwrite")
    assert code == 2 and "no export of ours" in err
    assert (best / "optimizer.safetensors").exists()


def test_agreement_counts_lines_and_tokens(plain: Path):
    tokenizer = checkpoint.find(str(plain)).tokenizer()
    lines, tokens = agreement(tokenizer, ["a b", "a b c"], ["a b", "x a c"])
    assert lines == 0.5
    assert tokens == pytest.approx(2 * (3 + 3) / (3 + 3 + 4 + 4))  # with an end of sentence each


# --- CTranslate2 ---


def random_model(directory: Path, *settings: str) -> Path:
    """A checkpoint whose weights, norms and biases too, are all random."""
    directory.mkdir()
    sizes = ("model.dim=16", "model.decoder_layers=2", "model.encoder_layers=2")
    config = variants.load(str(make_toy(directory, train=10)), [*sizes, *settings])
    letters = [*copy_lines(200, 1)]
    tokenizer = build(TOKENIZERS, config.tokenizer)(letters, [*letters, "z y x w"], lambda _: None)
    (directory / "pieces").mkdir()
    tokenizer.save(directory / "pieces")
    torch.manual_seed(3)
    model = checkpoint.build_model(config.model, len(tokenizer.src), len(tokenizer.tgt))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    state = {"step": 1, "score": None, "metric": "bleu", "averaged": False, "environment": {"precision": "fp32"}}
    digests = {f"{what}_digest": "0" for what in ("config", "data", "tokenizer")}
    checkpoint.save(directory / "model", model, None, state | digests, config, directory / "pieces")
    return directory / "model"


ARCHITECTURES = {
    "pre-norm": [],
    "post-norm": ["model.norm_first=false"],
    "rms": ["model.norm=rms"],
    "rms, post-norm": ["model.norm=rms", "model.norm_first=false"],
    "gelu": ["model.activation=gelu"],
    "swiglu": ["model.activation=swiglu"],
    "learned positions": ["model.position={name: learned, limit: 300}"],
    "rotary positions": ["model.position={name: rotary, base: 500}"],
    "two vocabularies": ["tokenizer.joint=false", "model.tie=decoder"],
    "nothing tied": ["model.tie=none"],
    "more layers on one side": ["model.encoder_layers=3"],
}


@pytest.mark.parametrize("settings", ARCHITECTURES.values(), ids=list(ARCHITECTURES))
def test_an_exported_model_gives_every_token_the_same_probability(tmp_path: Path, settings: list[str]):
    """Teacher-forced, on random weights, so that nothing can hide; also where positions go beyond any in training."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    from nmt.engine import EngineTranslator
    from nmt.export import export

    model = random_model(tmp_path / "random", *settings)
    export(str(model), str(tmp_path / "out"), Choice("ctranslate2"))
    pairs = [("a b c", "c b"), ("p", "a a a a z"), (" ".join("abcd" * 70), " ".join("hgfe" * 70))]
    scorer = Scorer(str(model), "cpu", threads=1)
    src = [scorer.tokenizer.src.pieces(ids[:-1]) for ids in scorer.tokenizer.encode_src([s for s, _ in pairs])]
    ours = list(scorer.stream(pairs))
    found = ctranslate2.Translator(str(tmp_path / "out")).score_batch(src, [one.tokens for one in ours])
    for one, other in zip(ours, found, strict=True):
        assert other.log_probs == pytest.approx(one.log_probs, abs=1e-4)
    short, lines = {"name": "greedy", "max_ratio": 0.0, "max_extra": 12}, [src for src, _ in pairs]
    step_by_step = EngineTranslator(str(tmp_path / "out"), "cpu", search=short).translate(lines)
    assert step_by_step == Translator(str(model), "cpu", threads=1, search=short).translate(lines)


@pytest.fixture(scope="module")
def converted(copy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("ctranslate2")
    from nmt.export import export

    target = tmp_path_factory.mktemp("exports") / "ct2"
    export(str(copy_run / "run"), str(target), Choice("ctranslate2"))
    return target


@pytest.fixture(params=[{"beam": 3}, {"name": "greedy"}, {"beam": 2, "length_penalty": 0.3}], ids=str)
def search(request: pytest.FixtureRequest) -> dict[str, Any]:
    return request.param


@pytest.mark.parametrize("batch_tokens", [None, 1, 40])
def test_the_engine_translates_as_we_do(
    converted: Path, copy_run: Path, search: dict[str, Any], batch_tokens: int | None
):
    """Text, score, length and end, in order, blanks as they are; also where the model is in doubt."""
    from nmt.engine import EngineTranslator

    ours = list(Translator(str(copy_run / "run"), "cpu", threads=1, search=search).stream(LINES))
    found = list(EngineTranslator(str(converted), "cpu", search=search).stream(LINES, batch_tokens))
    assert [one.text for one in found] == [one.text for one in ours]
    assert [(one.tokens, one.truncated) for one in found] == [(one.tokens, one.truncated) for one in ours]
    usual = Translator(str(copy_run / "run"), "cpu", threads=1, search=search)
    for line, one in zip(LINES, found, strict=True):
        assert one.score == (None if not line else pytest.approx(renormalised(usual, line, one.text), abs=1e-4))


def test_the_engine_translates_long_lines_in_parts_too(converted: Path, copy_run: Path):
    from nmt.engine import EngineTranslator

    line = " ".join(["a b c d e f."] * 3)
    found = []
    for translator in (Translator(str(copy_run / "run"), "cpu", threads=1), EngineTranslator(str(converted), "cpu")):
        translator.blocks.longest = translator.blocks.usual = 9
        said: list[str] = []
        found += translator.stream([line, ""], warn=said.append)
        assert len(said) == 1 and "line 1" in said[0]
    assert [one.text for one in found[:2]] == [one.text for one in found[2:]]


def renormalised(ours: Translator, src: str, tgt: str) -> float:
    """A score by probabilities over the pieces that may be produced, as CTranslate2 has it."""
    [src_ids], [tgt_ids] = ours.tokenizer.encode_src([src]), ours.tokenizer.encode_tgt([tgt])
    before = torch.tensor([[2, *tgt_ids[:-1]]])
    logits = ours.model.logits(ours.model(torch.from_numpy(src_ids.astype("int64"))[None], before))[0]
    scores = logits.index_fill(1, ours.constraints.forbidden, -torch.inf).log_softmax(-1)
    total = scores.gather(1, torch.from_numpy(tgt_ids.astype("int64"))[:, None]).sum().item()
    return total / len(tgt_ids) ** ours.settings.options.get("length_penalty", 1.0)


@pytest.mark.parametrize("limits", [{"max_ratio": 0.0, "max_extra": 3}, {"max_ratio": 0.5, "max_extra": 1}], ids=str)
def test_each_line_keeps_its_own_limit_in_the_engine_too(converted: Path, copy_run: Path, limits: dict[str, Any]):
    from nmt.engine import EngineTranslator

    ours = list(Translator(str(copy_run / "run"), "cpu", threads=1, search=limits).stream(LINES))
    found = list(EngineTranslator(str(converted), "cpu", search=limits).stream(LINES))
    assert [(one.text, one.truncated) for one in found] == [(one.text, one.truncated) for one in ours]
    assert any(one.truncated for one in found) and not all(one.truncated for one in found)


def test_the_export_is_compared_with_our_own_translations(command, copy_run: Path, tmp_path: Path):
    pytest.importorskip("ctranslate2")
    for quantization in ("float32", "int8"):
        code, _, err = command(
            *("export", copy_run / "run", "--to", quantization, "--format", "ctranslate2"),
            *("--quantization", quantization),
        )
        assert code == 0 and "warning" not in err
        assert re.search(r"of 30 lines, (100.0|9\d.\d)% are translated as", err), err
    names = {path.name for path in (tmp_path / "int8").iterdir()}
    assert names >= {"model.bin", "config.json", "shared_vocabulary.json", "tokenizer.model", "config.yaml"}
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("float32", "int8")]
    table = 4096 * 32 * 4  # bytes of the positions, which keep their digits
    assert sizes[1] - table < 0.5 * (sizes[0] - table)
    assert len(json.loads((tmp_path / "int8" / "state.json").read_text())["forbidden"]) == 3  # pad, unk, bos


def test_an_export_that_translates_otherwise_is_a_warning(command, copy_run: Path, monkeypatch):
    pytest.importorskip("ctranslate2")
    monkeypatch.setattr("nmt.export.EngineTranslator.translate", lambda _, lines: ["a"] * len(lines))
    code, _, err = command("export", copy_run / "run", "--to", "out", "--format", "ctranslate2")
    assert code == 0 and re.search(r"^warning: of 30 lines, \d+.\d% are translated as", err, re.M), err


def test_without_the_validation_set_lines_are_named_or_nothing_is_compared(command, plain: Path, tmp_path: Path):
    pytest.importorskip("ctranslate2")
    arguments = ("export", plain, "--to", "out", "--format", "ctranslate2")
    assert "not compared" in command(*arguments)[2]
    source = write(tmp_path / "in", LINES)
    assert "of 31 lines, 100.0%" in command(*arguments, "--overwrite", "--check", source)[2]


def test_an_export_for_ctranslate2_is_only_for_translating_with_it(command, converted: Path):
    for arguments in (["translate", converted], ["score", converted, "--src", "in", "--tgt", "in"]):
        write(Path("in"), ["a"])
        code, _, err = command(*arguments, stdin=b"a\n")
        assert (code, err.count("\n")) == (2, 1) and "was exported for ctranslate2" in err


def test_the_engine_refuses_what_it_cannot_do(converted: Path, plain: Path):
    from nmt.engine import EngineTranslator

    with pytest.raises(CheckpointError, match="holds no model for CTranslate2; make one: nmt export"):
        EngineTranslator(str(plain), "cpu")
    with pytest.raises(ConfigError, match="no option `bean`"):
        EngineTranslator(str(converted), "cpu", search={"bean": 3})


def test_the_card_shows_how_to_translate_without_nmt(converted: Path, copy_run: Path, capsys):
    """The code in it is run."""
    card = (converted / "README.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", card, re.S)
    exec(code.replace("DIR/", f"{converted}/").replace('"DIR"', repr(str(converted))).replace('"…"', '"a b", "c"'), {})
    assert capsys.readouterr().out == "['a b', 'c']\n"


def test_where_ctranslate2_is_missing_one_line_says_how_to_get_it(command, copy_run: Path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ctranslate2", None)
    code, _, err = command("export", copy_run / "run", "--to", "out", "--format", "ctranslate2")
    assert (code, err) == (2, "error: CTranslate2 is not installed: pip install 'nmt[ctranslate2]'\n")


@pytest.mark.parametrize("penalty", ["nan", "200"])
def test_a_length_penalty_that_is_none_is_one_line(command: Any, copy_run: Path, tmp_path: Path, penalty: str):
    (tmp_path / "in").write_bytes(b"a b\n")
    code, _, said = command("score", copy_run / "run", "--src", "in", "--tgt", "in", "--length-penalty", penalty)
    assert (code, said.count("\n")) == (2, 1) and "length penalty must be from -10 to 10" in said


def test_an_empty_file_to_compare_on_is_one_line_and_writes_nothing(command: Any, copy_run: Path, tmp_path: Path):
    (tmp_path / "none").write_bytes(b"")
    code, _, said = command("export", copy_run / "run", "--to", "out", "--format", "plain", "--check", "none")
    assert (code, said.count("\n")) == (2, 1) and "holds no lines" in said
    assert not (tmp_path / "out").exists()
