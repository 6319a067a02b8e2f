"""Scores and comparisons as the sacrebleu command has them, and what `nmt evaluate` says besides."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import copy_lines, make_toy, run_nmt, write
from sacrebleu.dataset import DATASETS

from nmt import checkpoint


class Texts(NamedTuple):
    tgt_lang: str
    hypotheses: list[str]
    references: list[list[str]]


PLAIN = ["The cat sat on the mat.", "Two men are running up a hill, fast.", "“No”, he said – and left!", "It is so."]
OTHER = ["A cat sat on the mat.", "Two men run up the hill quickly.", '"No", he said, leaving.', "So it is."]
CHINESE = ["我有一只猫。", "学校后面有一朵花, 两棵树。", "他在2024年3月5日来的。", "Tom说：“好的。”"]
TEXTS = {
    "plain": Texts("en", OTHER, [PLAIN]),
    "two references": Texts("en", PLAIN, [OTHER, [line.lower() for line in PLAIN]]),
    "blank lines": Texts("de", ["", "eins zwei drei vier", "", "  "], [["", "eins zwei drei vier", "fünf", "sechs"]]),
    "a blank reference of two": Texts("de", ["eins zwei drei", "vier"], [["", "vier"], ["eins zwei drei", "fünf"]]),
    "tabs": Texts("en", ["a\tb c d e", "f g\th i"], [["a b\tc d e", "f\tg h i"]]),
    "double spaces": Texts(
        "en", ["the  cat  sat on it ", " two men run up"], [["the cat sat  on it", "two  men run up "]]
    ),
    "entities": Texts(
        "en", ["Tom &amp; Jerry &lt;3", "&quot;run&quot; now"], [["Tom & Jerry <3", '"run" now, he said']]
    ),
    "separators": Texts("en", ["one\u2028line and more", "a\u00a0b\x0cc d"], [["one line and more", "a b c d"]]),
    "Chinese": Texts("zh", CHINESE[::-1][:3] + CHINESE[3:], [CHINESE]),
    "Chinese, two references": Texts("zh-CN", ["我有猫。", *CHINESE[1:]], [CHINESE, ["我养了一只猫。", *CHINESE[1:]]]),
}
METRICS = {"bleu": "BLEU", "chrf": "chrF2", "chrf++": "chrF2++", "ter": "TER"}
ALL = [option for name in METRICS for option in ("--metric", name)]


def sacrebleu(*arguments: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "sacrebleu", *map(str, arguments), "-w", "10"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answer(started: subprocess.Popen[bytes]) -> Any:
    out, err = started.communicate()
    assert started.returncode == 0, err.decode()
    return json.loads(out)


def of_language(tgt_lang: str) -> list[str]:
    chinese = ["-tok", "zh", "--ter-asian-support", "--ter-normalized"]
    return chinese if tgt_lang.startswith("zh") else []


def succeed(answered: Any) -> Any:
    assert answered.code == 0, answered.err
    return json.loads(answered.out)


def test_every_figure_is_that_of_the_sacrebleu_command(command, tmp_path: Path):
    """Case 56: value and signature of every metric, for ten texts that a careless reader would change."""
    started = []
    for name, (tgt_lang, hypotheses, references) in TEXTS.items():
        folder = tmp_path / name
        folder.mkdir()
        hyp = write(folder / "hyp", hypotheses)
        refs = [write(folder / f"ref{i}", lines) for i, lines in enumerate(references)]
        asked = [["bleu", "chrf", "ter"], ["chrf", "--chrf-word-order", "2"]]
        theirs = [sacrebleu(*refs, "-i", hyp, "-m", *metrics, *of_language(tgt_lang)) for metrics in asked]
        started.append((tgt_lang, hyp, refs, theirs))
    for tgt_lang, hyp, refs, theirs in started:
        expected = {
            one["name"]: one for found in map(answer, theirs) for one in (found if isinstance(found, list) else [found])
        }
        named = [option for ref in refs for option in ("--ref", ref)]
        [result] = succeed(command("evaluate", "--hyp", hyp, *named, "--tgt-lang", tgt_lang, "--json", *ALL))
        assert result["scores"].keys() == METRICS.keys()
        for ours, name in METRICS.items():
            assert result["scores"][ours]["value"] == pytest.approx(expected[name]["score"], abs=1e-9), (hyp, ours)
            assert result["scores"][ours]["signature"] == expected[name]["signature"]
        ratio = re.search(r"ratio = ([\d.]+)", expected["BLEU"]["verbose_score"])
        assert ratio and result["output"]["length_ratio"] == pytest.approx(float(ratio[1]), abs=6e-4)


def three_systems(directory: Path, lines: int = 60) -> tuple[Path, Path, list[Path]]:
    """A source, its reference, and three systems: one that copies, a worse one, and one that is hardly worse."""
    reference = copy_lines(lines, 5, longest=12)
    worse = [line.replace("a", "x").replace("b", "y") for line in reference]
    hardly = [*reference[:-1], "z"]
    systems = [write(directory / name, text) for name, text in (("one", hardly), ("two", worse), ("three", reference))]
    return write(directory / "src", reference), write(directory / "ref", reference), systems


def test_a_comparison_has_the_figures_of_the_sacrebleu_command(command, tmp_path: Path):
    """Intervals and paired significance of each against the first, for every metric, with the same signatures."""
    _, ref, systems = three_systems(tmp_path)
    names = ["bleu", "chrf", "ter"]  # in the order of the command's table
    theirs = sacrebleu(ref, "-i", *systems, "-m", *names, "--paired-bs", "--format", "text", "--no-color")
    hyps = [option for path in systems for option in ("--hyp", path)]
    metrics = [option for name in names for option in ("--metric", name)]
    results = succeed(command("evaluate", *hyps, "--ref", ref, "--tgt-lang", "en", "--json", *metrics))
    assert [result["system"] for result in results] == list(map(str, systems))
    text = theirs.communicate()[0].decode()
    cells = [tuple(map(float, cell)) for cell in re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", text)]
    p_values = list(map(float, re.findall(r"\(p = ([\d.]+)\)", text)))
    signatures = dict(re.findall(r"^ - (BLEU|chrF2|TER) +(\S+)$", text, re.M))
    assert (len(cells), len(p_values), len(signatures)) == (9, 6, 3)
    for number, result in enumerate(results):
        assert result.get("against") == (str(systems[0]) if number else None)
        for at, name in enumerate(names, 3 * number):
            score, (value, mean, half) = result["scores"][name], cells[at]
            assert score["value"] == pytest.approx(value, abs=1e-9)
            assert score["interval"] == pytest.approx([mean - half, mean + half], abs=1e-9)
            assert score.get("p_value") == (pytest.approx(p_values[at - 3], abs=5.1e-5) if number else None)
            assert score["signature"] == signatures[METRICS[name]]


def test_the_interval_of_a_single_system_is_that_of_the_sacrebleu_command(command, tmp_path: Path):
    _, ref, [_, two, _] = three_systems(tmp_path)
    started = sacrebleu(ref, "-i", two, "-m", "bleu", "--confidence", "--format", "json")
    files = ("--hyp", two, "--ref", ref, "--tgt-lang", "en")
    [plain] = succeed(command("evaluate", *files, "--json", "--metric", "bleu"))
    [sure] = succeed(command("evaluate", *files, "--json", "--metric", "bleu", "--confidence"))
    theirs = answer(started)
    ours = sure["scores"]["bleu"]
    low, high = (theirs["confidence_mean"] + sign * theirs["confidence_var"] for sign in (-1, 1))
    assert ours["interval"] == pytest.approx([low, high], abs=1e-9)
    assert ours["signature"] == theirs["signature"]
    assert "interval" not in plain["scores"]["bleu"] and "bs:" not in plain["scores"]["bleu"]["signature"]
    assert f"[{low:.2f}, {high:.2f}]" in command("evaluate", *files, "--confidence").out.decode()


def test_a_comparison_for_people(command, tmp_path: Path):
    """Who is better, and whether that is chance; where they differ, side by side."""
    src, ref, [one, two, three] = three_systems(tmp_path)
    files = ("--src", src, "--ref", ref, "--tgt-lang", "en")
    code, out, err = command("evaluate", "--hyp", one, "--hyp", two, "--hyp", three, *files, "--show", "2")
    assert code == 0, err
    text = out.decode()
    assert [line.split()[-1] for line in text.splitlines() if re.match("  B .*p = ", line)] == ["worse"]
    assert re.search(r"^  C .*not significant", text, re.M)
    assert "bleu by words of the source" in text
    assert "training data" not in text and "numbers in digits" not in text  # nobody knows the first, there are none
    shown = re.findall(r"^line (\d+): chrf ([\d.]+) of A, ([\d.]+) of (\w)$", text, re.M)
    assert [other for *_, other in shown] == ["B", "B", "C"]
    assert (shown[-1][0], shown[-1][2], shown[-1][3]) == ("60", "100.0", "C")
    assert text.count("where B differs most from A") == text.count("where C differs most from A") == 1
    line = int(shown[0][0])
    block = text[text.index(f"line {line}: ") :].splitlines()[1:5]
    assert [row.split()[0] for row in block] == ["source", "reference", "A", "B"]
    assert block[3].endswith(two.read_text().splitlines()[line - 1])


def test_the_worst_lines_of_a_single_system(command, tmp_path: Path):
    """Where they are asked for."""
    src, ref, [one, *_] = three_systems(tmp_path)
    files = ("evaluate", "--hyp", one, "--src", src, "--ref", ref, "--tgt-lang", "en")
    [result] = succeed(command(*files, "--json", "--show", "2"))
    assert len(result["worst"]) == 2 and result["worst"][0]["line"] == 60
    assert result["worst"][0]["translations"] == ["z"] and result["worst"][1]["chrf"] == [100.0]
    text = command(*files, "--show", "1").out.decode()
    assert re.findall(r"^line (\d+): chrf 0\.0$", text, re.M) == ["60"] and text.endswith("\n  output     z\n")
    assert "worst" not in succeed(command(*files, "--json"))[0] and "line 60" not in command(*files).out.decode()


def test_a_model_of_another_language_is_warned_of(command, copy_run: Path, tmp_path: Path):
    """Also by a code of three letters the same language is the same."""
    config = make_toy(tmp_path, train=20, steps=1)
    for language, warned in (("fr", True), ("eng_Latn", False)):
        assert command("train", config, "-s", f"tgt_lang={language}", "-s", f"run_dir={language}").code == 0
        answered = command("evaluate", copy_run / "run", language, "--threads", "1")
        said = f"warning: {language} translates into {language}, which is not the language of the references: toy (en)"
        assert answered.code == 0 and (said in answered.err) == warned and answered.err.count("warning: ") == warned


def test_models_and_files_are_compared(command, copy_run: Path, tmp_path: Path):
    """A run with a file, on a set of its config: all of it in JSON too, and kept with the run."""
    worse = [line.replace("a", "b") for line in (copy_run / "test.tgt").read_text().splitlines()]
    hyp = write(tmp_path / "their.txt", worse)
    arguments = ("evaluate", copy_run / "run", "--hyp", hyp, "-t", "toy", "--threads", "1", "--show", "1")
    [ours, theirs] = succeed(command(*arguments, "--json"))
    assert theirs["system"] == str(hyp) and theirs["against"] == ours["system"]
    assert theirs["scores"]["bleu"]["p_value"] < 0.05 and "p_value" not in ours["scores"]["bleu"]
    found = theirs["comparison"]
    assert found["with"] == ours["system"]
    assert sum(band["lines"] for band in found["source_length"]) == 40
    assert all(
        band["bleu"] <= ours_too["bleu"]
        for band, ours_too in zip(found["source_length"], ours["comparison"]["source_length"], strict=True)
    )
    assert [band["times"] for band in found["word_frequency"]] == ["100-999"]  # 16 letters in 1,200 lines
    assert found["word_frequency"][0]["words"] == sum(len(line.split()) for line in worse)
    assert found["word_frequency"][0]["f1"] < ours["comparison"]["word_frequency"][0]["f1"]
    assert found["numbers"] == {"expected": 0, "missing": 0, "wrong": 0, "lines": []}
    assert len(found["most_different"]) == 1 and ours["comparison"]["most_different"] == []
    name = checkpoint.find(str(copy_run / "run")).directory.name
    kept = json.loads((copy_run / "run" / "evaluate" / f"toy.{name}.beam2.json").read_text())
    assert kept == {key: value for key, value in ours.items() if key != "comparison"}
    text = command(*arguments).out.decode()
    assert "F1 of words, by how often they are in the training data of A" in text
    assert "search:name:beam beam:2" in text  # beside the scores


def test_two_models_are_compared_on_the_sets_of_the_first(command, copy_run: Path, tmp_path: Path):
    """The second one has no test set of its own."""
    config = make_toy(tmp_path, train=60, steps=2)
    assert command("train", config, "-s", "data.test={}").code == 0
    [ours, theirs] = succeed(command("evaluate", copy_run / "run", tmp_path / "run", "--json", "--threads", "1"))
    assert (ours["test"], theirs["test"], theirs["lines"]) == ("toy", "toy", 40)
    assert theirs["scores"]["bleu"]["value"] < ours["scores"]["bleu"]["value"]
    assert theirs["step"] == 2 and theirs["config"] != ours["config"]
    assert list((tmp_path / "run" / "evaluate").glob("toy.step-00000002*.json"))


# --- what translations look like ---


def test_what_the_output_looks_like(command, tmp_path: Path):
    """Ten lines: three exact, one empty, two copied, one that repeats itself; what a blank line becomes is no fault."""
    src = ["", "a dog", "a cat", "12", "Berlin", "he is here", "ha ha ha ha", "b", "c", "d"]
    ref = ["", "ein Hund", "eine Katze", "12", "Berlin", "er ist hier", "ha ha ha ha", "B", "C", "D"]
    hyp = ["", "ein Hund", "", "13", "Berlin", "er ist da da da da", "ja", "b", "die C", "das D"]
    files = [(write(tmp_path / name, lines)) for name, lines in (("src", src), ("ref", ref), ("hyp", hyp))]
    arguments = ("evaluate", "--src", files[0], "--ref", files[1], "--hyp", files[2], "--tgt-lang", "de")
    [result] = succeed(command(*arguments, "--json"))
    shares = {"exact": 0.3, "empty": 0.1, "copied": 0.2, "repeated": 0.1}
    assert {name: result["output"][name] for name in shares} == pytest.approx(shares)
    text = command(*arguments).out.decode()
    assert re.search(r"length ratio \d\.\d{3}  exact 30\.0%  empty 10\.0%  repeated 10\.0%  copied 20\.0%", text)
    [result] = succeed(command(*arguments[:1], *arguments[3:], "--json"))
    assert "copied" not in result["output"]  # nobody knows the sources
    [result] = succeed(command(*arguments, "--json", "--metric", "chrf"))
    assert "length_ratio" not in result["output"]  # which is BLEU's


def test_repetition_is_seen_where_there_are_no_spaces(command, tmp_path: Path):
    ref, hyp = write(tmp_path / "ref", ["我有一只猫"] * 2), write(tmp_path / "hyp", ["我有一只猫", "猫猫猫猫"])
    [result] = succeed(command("evaluate", "--ref", ref, "--hyp", hyp, "--tgt-lang", "zh", "--json"))
    assert result["output"]["repeated"] == 0.5


# --- test sets that sacrebleu knows ---


def cached(directory: Path, name: str, pair: str, fields: dict[str, list[str]]) -> None:
    (directory / name).mkdir(parents=True)
    for field, lines in fields.items():
        write(directory / name / f"{name}.{pair}.{field}", lines)


def test_a_set_of_sacrebleus_comes_from_its_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By name, with its languages: nobody has to say --tgt-lang, and BLEU's tokenizer is the right one."""
    lines = {"src": ["I have a cat.", "So it is."], "ref": ["我有一只猫。", "是的。"]}
    cached(
        tmp_path / "cache", "wmt20", "en-zh", {**lines, **{name: ["x", "x"] for name in ("docid", "genre", "origlang")}}
    )
    monkeypatch.setenv("SACREBLEU", str(tmp_path / "cache"))
    hyp = write(tmp_path / "hyp", ["我有一只猫。", "So it is."])
    done = run_nmt("evaluate", "--hyp", hyp, "-t", "wmt20/en-zh", "--json")
    assert done.returncode == 0, done.stderr.decode()
    [result] = json.loads(done.stdout)
    assert (result["test"], result["lines"]) == ("wmt20/en-zh", 2)
    assert result["output"]["copied"] == 0.5
    theirs = answer(sacrebleu("-t", "wmt20", "-l", "en-zh", "-i", hyp))
    assert "tok:zh" in theirs["signature"]
    assert result["scores"]["bleu"]["value"] == pytest.approx(theirs["score"], abs=1e-9)


def test_a_set_of_sacrebleus_that_cannot_be_had_is_one_line(command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for variable in ("http_proxy", "https_proxy"):  # where nobody listens
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for name in ("_outdir", "_rawdir"):
        monkeypatch.setattr(DATASETS["wmt20"], name, str(tmp_path / "cache"))
    hyp = write(tmp_path / "hyp", ["a"])
    for name, said in {
        "wmt20/en-de": "sacrebleu --download wmt20 -l en-de",
        "wmt20/en-xx": "`wmt20` has no `en-xx`; its languages are cs-en",
        "wmt200/en-de": "did you mean `wmt20`?",
        "/": "no test set",
    }.items():
        code, out, err = command("evaluate", "--hyp", hyp, "-t", name)
        assert (code, out) == (2, b"") and said in err, err
        assert err.startswith("error: ") and err.count("\n") == 1


def test_a_model_translates_a_set_of_sacrebleus(command, copy_run: Path, tmp_path: Path, monkeypatch):
    """Kept under a name that is one file's."""
    lines = copy_lines(5, 3)
    cached(tmp_path, "wmt20", "en-de", dict.fromkeys(("src", "ref", "docid", "genre", "origlang"), lines))
    monkeypatch.setattr(DATASETS["wmt20"], "_outdir", str(tmp_path / "wmt20"))
    [result] = succeed(command("evaluate", copy_run / "run", "-t", "wmt20/en-de", "--json", "--threads", "1"))
    assert result["scores"]["bleu"]["value"] > 90
    assert list((copy_run / "run" / "evaluate").glob("wmt20.en-de.step-*.json"))


# --- nothing in silence ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["RUN", "-t", "toy", "--src", "src", "--ref", "ref"], "give one or the other"),
        (["--hyp", "src", "--ref", "ref", "-t", "toy", "--tgt-lang", "en"], "give one or the other"),
        (["--hyp", "src", "-t", "toy", "--tgt-lang", "en"], "-t wmt20/en-de"),
        (["RUN", "--hyp", "src"], "src has 2 lines, but the test set toy has 40"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_go_together_is_one_line(command, copy_run: Path, tmp_path: Path, arguments, said: str):
    write(tmp_path / "src", ["a", "b"]), write(tmp_path / "ref", ["a", "b"])
    code, out, err = command("evaluate", *[str(copy_run / "run") if a == "RUN" else a for a in arguments])
    assert (code, out) == (2, b"") and said in err, err
    assert err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.skipif(importlib.util.find_spec("MeCab") is not None, reason="the extra is installed")
@pytest.mark.parametrize(("language", "extra"), [("ja", "ja"), ("jpn_Jpan", "ja"), ("ko", "ko"), ("kor_Hang", "ko")])
def test_a_tokenizer_that_is_missing_is_never_another_one(command, tmp_path: Path, language: str, extra: str):
    """Case 58: for one system, for several, and from a config."""
    text = write(tmp_path / "text", ["a", "b"])
    files = ("--hyp", text, "--ref", text, "--tgt-lang", language)
    for arguments in (files, (*files, "--hyp", text), (*files, "--confidence")):
        code, out, err = command("evaluate", *arguments)
        assert (code, out) == (2, b"") and f"pip install 'sacrebleu[{extra}]'" in err, err
    code, _, err = command("prepare", make_toy(tmp_path, train=10), "-s", f"tgt_lang={language}")
    assert code == 2 and f"pip install 'sacrebleu[{extra}]'" in err
    assert "tok:none" in command("evaluate", *files, "--tokenize", "none").out.decode()  # as asked for


def test_options_of_a_config_hold_for_files_too(command, tmp_path: Path):
    """A config's tokenizer and case, unless the command line says otherwise."""
    config = make_toy(tmp_path, train=20, steps=1)
    metrics = "metrics={bleu: {tokenize: intl, lowercase: true}, chrf++: {}}"
    assert command("train", config, "-s", metrics).code == 0
    hyp = write(tmp_path / "hyp", ["A b c d"] * 40)
    [model, file] = succeed(command("evaluate", config, "--hyp", hyp, "--json"))
    assert model["scores"]["bleu"]["signature"] == file["scores"]["bleu"]["signature"]
    assert "case:lc" in file["scores"]["bleu"]["signature"] and "tok:intl" in file["scores"]["bleu"]["signature"]
    assert "nw:2" in file["scores"]["chrf++"]["signature"]
    [_, file] = succeed(command("evaluate", config, "--hyp", hyp, "--json", "--tokenize", "none"))
    assert "case:lc" in file["scores"]["bleu"]["signature"] and "tok:none" in file["scores"]["bleu"]["signature"]


def test_results_made_otherwise_are_kept_beside_each_other(command, tmp_path: Path):
    """Case 60: with other options of a metric or of the search, and of sets that only share a name."""
    assert command("train", make_toy(tmp_path, train=20, steps=1)).code == 0
    run = tmp_path / "run"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "toy", ["a b"])
    kept: dict[str, Any] = {}
    for options in (
        [],
        ["--metric", "ter"],
        ["--tokenize", "intl"],
        ["-s", "search.length_penalty=0.5"],
        ["-s", "search.beam=1"],
        ["-s", "search=greedy"],
        ["--src", "one/toy", "--ref", "one/toy"],
        ["--src", "two/toy", "--ref", "two/toy"],
    ):
        [result] = succeed(command("evaluate", run, "--json", *options))
        new = {path.name: json.loads(path.read_text()) for path in (run / "evaluate").glob("*.json")}
        [name] = new.keys() - kept.keys()
        assert new[name] == result and {**kept, **new} == new
        kept = new
    assert {
        "toy.step-00000001.beam2.json",
        "toy.step-00000001.beam1.json",
        "toy.step-00000001.greedy.json",
    } < kept.keys()
    for name in kept:  # the translations, for who wants to score them again
        assert (run / "evaluate" / f"{name.removesuffix('.json')}.en").exists()
    succeed(command("evaluate", run, "--json", "--tokenize", "intl"))
    assert len(list((run / "evaluate").glob("*.json"))) == len(kept)  # the same again has the same name


def test_a_plain_evaluation_leaves_the_interval_of_an_earlier_one(command, tmp_path: Path):
    """As long as it says something of the translations, which a report shows it with."""
    assert command("train", make_toy(tmp_path, train=20, steps=1)).code == 0
    run = tmp_path / "run"

    def bleu() -> dict[str, Any]:
        [kept] = (run / "evaluate").glob("*.json")
        found: dict[str, Any] = json.loads(kept.read_text())["scores"]["bleu"]
        return found

    succeed(command("evaluate", run, "--json", "--confidence"))
    sure = bleu()
    assert "|bs:1000|" in sure["signature"] and len(sure["interval"]) == 2
    [plain] = succeed(command("evaluate", run, "--json"))
    assert bleu() == sure and "interval" not in plain["scores"]["bleu"]
    [lines] = (run / "evaluate").glob("*.en")
    lines.write_text("other\n" * 40)
    [plain] = succeed(command("evaluate", run, "--json"))
    assert bleu() == plain["scores"]["bleu"]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_number_in_the_log_is_that_of_evaluate_for_every_set(command, tmp_path: Path, precision: str):
    """Case 57: with several validation sets, also in bf16; the translations of a validation are kept (case 60)."""
    config = make_toy(tmp_path, train=300, steps=60, validate_every=60, save_every=60, precision=precision)
    write(tmp_path / "other.src", copy_lines(12, 8)), write(tmp_path / "other.tgt", copy_lines(12, 8))
    sets = {name: f"{{name: plain, src: {name}.src, tgt: {name}.tgt}}" for name in ("valid", "other")}
    valid = f"data.valid={{first: {sets['valid']}, second: {sets['other']}}}"
    assert command("train", config, "-s", valid, "-s", "train.average=0").code == 0
    run = tmp_path / "run"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if row["kind"] == "valid"]
    assert [row["set"] for row in rows] == ["first", "second"] and rows[0]["bleu"] != rows[1]["bleu"]
    for row in rows:
        [result] = succeed(command("evaluate", run, "-t", row["set"], "--json", "--threads", "1"))
        assert result["precision"] == precision
        for name in ("bleu", "chrf"):
            assert result["scores"][name] == {"value": row[name], "signature": row["signature"][name]}
        [kept] = (run / "evaluate").glob(f"{row['set']}.*.en")
        assert kept.read_bytes() == (run / "valid" / f"{row['set']}.step-00000060.en").read_bytes()
