"""`nmt report`: one page that shows runs, also those that are not complete, in a browser without a network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import make_toy, write

CHROMIUM = shutil.which("chromium")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium package is not installed")
MARKUP = "<script>alert(1)</script>"
RIGHT_TO_LEFT = "مرحبا"


@pytest.fixture
def run(copy_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(copy_run / "run", tmp_path / "run"))


@pytest.fixture(scope="module")
def odd_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hardly trained, on text with markup, a script from right to left and a very long line."""
    from nmt import variants
    from nmt.train import train

    directory = tmp_path_factory.mktemp("odd") / "<b>odd"
    directory.mkdir()
    config = make_toy(directory, steps=4, validate_every=2, save_every=2, log_every=1)
    odd = ["a " * 3000, f"a {MARKUP} b", f"{RIGHT_TO_LEFT} c </script><!-- <script>", ""]
    for path in directory.glob("*.src"):
        lines = [*odd, odd[1], *path.read_text().splitlines()]
        for side in (".src", ".tgt"):
            write(path.with_suffix(side), lines)
    assert train(variants.load(str(config), ["search.max_extra=2", "search.max_ratio=0.01"]), False) == 0
    return directory / "run"


def data_of(page: Path) -> dict[str, Any]:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.S)
    found: dict[str, Any] = json.loads(text)
    return found


def report(command: Callable[..., Any], *arguments: str | Path) -> list[dict[str, Any]]:
    """The runs of a page that the command writes."""
    answer = command("report", *arguments, "-o", "page.html", "--overwrite")
    assert answer.code == 0, answer.err
    assert answer.out == b""
    runs: list[dict[str, Any]] = data_of(Path("page.html"))["runs"]
    return runs


def test_a_run_as_a_page(command: Callable[..., Any], run: Path) -> None:
    assert command("evaluate", run, "--threads", "1").code == 0
    answer = command("report", run, "--attention", "2")
    assert (answer.code, answer.out) == (0, b"")
    assert re.fullmatch(r"\S+run/report.html: \d\.\d MB; open it in a browser\n", answer.err)
    [found] = data_of(run / "report.html")["runs"]
    assert (found["name"], found["languages"], found["status"]) == ("run", "en → en", "complete at step 600")
    assert found["notes"] == []
    [of_set] = found["curves"]["valid"]
    assert of_set["step"] == [200, 400, 600, 600] and of_set["averaged"] == [0, 0, 0, 3]
    assert len(found["curves"]["train"]["nll"]) == 60
    facts = {label: (value, remark) for group in found["facts"] for label, value, remark in group}
    assert facts["Steps"][0] == "600" and re.fullmatch(r"[\d.]+ epochs, \d+ s", facts["Steps"][1])
    assert facts["Target tokens a second"][1] == "the median of the training"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    best = max((row for row in rows if row["kind"] == "valid"), key=lambda row: (row["bleu"], -row["nll"]))
    tests = {score["test"]: score for score in found["scores"] if score["metric"] == "bleu"}
    assert tests["valid (validation)"]["value"] == best["bleu"]
    assert tests["toy"]["signature"].startswith("nrefs:1|") and tests["toy"]["lines"] == 40
    [sentences] = found["sentences"]
    assert sentences["lines"] == 30 == sum(sentences["histogram"])
    worst, good = sentences["groups"]["worst"][0], sentences["groups"]["best"][0]
    assert worst["score"] <= good["score"]
    assert "".join(text for text, _ in good["reference"]) == good["src"], "it has learnt to copy"
    assert found["data"]["pairs"] == sum(corpus["kept"] for corpus in found["data"]["corpora"])
    assert sum(found["data"]["lengths"]["src"]) <= found["data"]["pairs"]
    assert ["train.steps", "600", "null"] in found["settings"]["changes"]
    text = (run / "report.html").read_text()
    assert text.count('"weights"') == 2
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?!data:)', text), "nothing is fetched"


def test_a_run_shorter_than_its_first_row_of_training(command: Callable[..., Any], tmp_path: Path) -> None:
    """Epochs and time are those of its checkpoint; facts keep their order beside those of a run that has them all."""
    config = make_toy(tmp_path, train=60, steps=4, log_every=50)
    assert command("train", config).code == 0
    [found] = report(command, config)
    assert found["curves"]["train"]["step"] == []
    facts = [fact for group in found["facts"] for fact in group]
    assert [label for label, *_ in facts][-3:] == ["Steps", "Pairs", "Parameters"]
    assert facts[-3][1] == "4" and re.fullmatch(r"[\d.]+ epochs, \d+ s", facts[-3][2])


def test_scores_of_several_evaluations(command: Callable[..., Any], run: Path) -> None:
    """All of them are shown; above, each metric once, by the search of the config."""
    shutil.rmtree(run / "evaluate", ignore_errors=True)  # of other tests
    for options in ((), ("--metric", "ter", "--metric", "bleu"), ("-s", "search.beam=1"), ("--metric", "chrf++")):
        assert command("evaluate", run, "--threads", "1", *options).code == 0
    for path in (run / "evaluate").glob("*.json"):  # the toy copies too well to tell them apart
        tree = json.loads(path.read_text())
        tree["scores"]["bleu" if "bleu" in tree["scores"] else "chrf++"]["value"] = 40 + tree["search"]["beam"]
        path.write_text(json.dumps(tree))
    [found] = report(command, run)
    shown = [(row["metric"], row["search"].split()[1], row["value"]) for row in found["scores"] if row["test"] == "toy"]
    assert sorted(metric for metric, *_ in shown) == ["bleu", "bleu", "chrf", "chrf", "chrf++", "ter"]
    assert shown[-2][:2] == ("bleu", "beam:1"), "what was searched otherwise comes last"
    tests = {label: value for label, value, _ in found["facts"][1]}
    assert tests.keys() == {"BLEU, toy", "chrF, toy", "TER, toy", "chrF++, toy"}
    assert tests["BLEU, toy"] == "42.00"


def test_the_page_in_a_run_is_ours_any_other_file_is_not(command: Callable[..., Any], run: Path) -> None:
    for _ in range(2):
        assert command("report", run, "--attention", "0").code == 0
    Path("mine").write_text("x")
    answer = command("report", run, "-o", "mine")
    assert answer.code == 2 and "mine: exists already" in answer.err and Path("mine").read_text() == "x"
    assert "no/such does not exist" in command("report", run, "-o", "no/such/page").err


def test_a_run_that_goes_on(command: Callable[..., Any], run: Path) -> None:
    """No checkpoint yet, and a last line that is half written; lines that somebody has damaged."""
    shutil.rmtree(run / "checkpoints")
    lines = (run / "metrics.jsonl").read_text().splitlines()[:25]
    odd = ["null", "[1]", '{"kind": "valid"}', '{"kind": "train", "step": 250, "nll": NaN, "loss": "\\ud800"}', "\x00"]
    (run / "metrics.jsonl").write_text("\n".join([*lines, *odd, '{"kind": "train", "st']))
    [found] = report(command, run)
    assert found["status"].startswith("not complete: step 250, last numbers from 20")
    assert found["curves"]["train"]["nll"][-1] is None
    assert found["curves"]["valid"][0]["step"] == [200]
    assert found["sentences"][0]["lines"] == 30
    assert found["notes"] == ["no attention maps: the checkpoint of its best validation is not there"]


def test_a_checkpoint_that_is_damaged_has_no_maps(command: Callable[..., Any], run: Path) -> None:
    for path in run.glob("checkpoints/*/model.safetensors"):
        path.write_bytes(b"x")
    [found] = report(command, run)
    assert "its attention is not shown: " in found["notes"][0] and "wrong checksum" in found["notes"][0]


@pytest.mark.parametrize("damaged", ["config.yaml", "prepared/manifest.json", "prepared/valid.valid.arrow"])
def test_what_is_damaged_is_left_out_and_said(command: Callable[..., Any], run: Path, damaged: str) -> None:
    (run / damaged).write_bytes(b"{x\xff")
    [found] = report(command, run)
    [note] = found["notes"]
    assert re.match("its .* (is|are) not shown: ", note)
    assert found["curves"]["valid"][0]["step"] == [200, 400, 600, 600]


def test_prepared_and_nothing_else(command: Callable[..., Any], tmp_path: Path) -> None:
    config = make_toy(tmp_path)
    assert command("prepare", config).code == 0
    [found] = report(command, config)
    assert (found["status"], found["scores"], found["sentences"]) == ("prepared, not trained yet", [], [])
    assert found["data"]["pairs"] > 0 and found["notes"] == []


def test_without_a_validation_set(command: Callable[..., Any], tmp_path: Path) -> None:
    config = make_toy(tmp_path, steps=2, log_every=1)
    tree = yaml.safe_load(config.read_text())
    del tree["data"]["valid"]
    config.write_text(yaml.safe_dump(tree))
    assert command("train", config).code == 0
    [found] = report(command, config)
    assert found["notes"] == ["no validation yet, or no validation set: there are no scores and no translations"]
    assert found["curves"]["valid"] == [] and found["curves"]["train"]["step"] == [1, 2]


def test_several_runs_of_other_metrics(command: Callable[..., Any], run: Path, odd_run: Path) -> None:
    metrics = odd_run / "metrics.jsonl"
    before = metrics.read_text()
    try:
        metrics.write_text(before.replace('"chrf"', '"ter"'))
        found = report(command, run, odd_run, run)
    finally:
        metrics.write_text(before)
    assert [one["name"] for one in found] == [f"{run.parent.name}/run", "<b>odd/run"], (
        "each once, by names of their own"
    )
    assert [list(one["curves"]["valid"][0]["scores"]) for one in found] == [
        ["bleu", "chrf", "nll", "ppl"],
        ["bleu", "ter", "nll", "ppl"],
    ]
    compared = data_of(Path("page.html"))["compared"]
    assert ["train.steps", ["600", "4"]] in compared["rows"]


@pytest.mark.parametrize(("name", "said"), [("empty", "is no run"), ("gone", "does not exist"), ("file", "is no run")])
def test_what_is_no_run(command: Callable[..., Any], tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    answer = command("report", name)
    assert (answer.code, answer.out) == (2, b"")
    assert answer.err.startswith(f"error: {name}: {said}; ") and answer.err.count("\n") == 1


def test_text_is_text(command: Callable[..., Any], odd_run: Path) -> None:
    [found] = report(command, odd_run)
    assert any(MARKUP in example["src"] for drop in found["data"]["drops"] for example in drop["examples"])
    page = Path("page.html").read_text("utf-8")
    assert MARKUP not in page and "</script><!--" not in page


# --- in a browser ---


def chromium(page: Path, script: str, wanted: str) -> subprocess.CompletedProcess[str]:
    """The page in a browser, with a script of ours."""
    text, _, end = page.read_text("utf-8").rpartition("</body>")
    page.write_text(f"{text}<script>{script}</script></body>{end}", "utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1200,900", "--virtual-time-budget=30000"]
    return subprocess.run(
        [str(CHROMIUM), *options, "--enable-logging=stderr", "--v=0", wanted, page.absolute().as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )


def browse(page: Path, script: str) -> str:
    """The page as a browser has made it; the browser must have had nothing to complain of."""
    done = chromium(page, script, "--dump-dom")
    assert "CONSOLE" not in done.stderr, done.stderr
    # What is seen: without the programs and their data.
    return re.sub(r"<(script|style)\b.*?</\1>", "", done.stdout, flags=re.S)


@needs_browser
def test_a_browser_that_complains_is_heard(command: Callable[..., Any], run: Path) -> None:
    report(command, run, "--attention", "0")
    with pytest.raises(AssertionError, match="nowhere is not defined"):
        browse(Path("page.html"), "nowhere()")


CLICK = """
const press = name => [...document.querySelectorAll("button")].find(b => b.textContent === name).click();
const pick = (id, value) => {
  const select = document.getElementById(id);
  select.value = value;
  select.dispatchEvent(new Event("change"));
};
const tell = (name, value) => {
  const output = document.createElement("output");
  output.textContent = `${name}=${value}`;
  document.body.append(output);
};
const axis = () => document.querySelector("#curves .xtitle")?.textContent;
"""


@needs_browser
def test_a_browser_draws_the_page(command: Callable[..., Any], run: Path) -> None:
    """Curves over steps and time, sentences from worst to best, layers and heads."""
    shutil.rmtree(run / "evaluate", ignore_errors=True)  # of other tests
    assert command("evaluate", run, "--threads", "1").code == 0
    [kept] = (run / "evaluate").glob("*.json")
    kept.write_text(kept.read_text().replace('"value": ', '"interval": [12.345, 98.7], "value": '))
    report(command, run, "--attention", "3")
    seen = browse(
        Path("page.html"),
        CLICK
        + """
        addEventListener("load", () => setTimeout(() => {
          tell("before", axis());
          const charts = [...document.querySelectorAll("#curves .card")];
          const layouts = charts.map(card => card.querySelector(".plot").layout);
          tell("ranges", new Set(layouts.map(layout => layout.xaxis.range.join())).size);
          const loss = charts.findIndex(card => card.querySelector("h3").textContent === "Loss");
          tell("late", layouts[loss].yaxis.range[1] < Math.max(...charts[loss].querySelector(".plot").data[0].y));
          press("Time");
          press("Best");
          const map = document.getElementById("map").outerHTML;
          pick("sentence", 2);
          pick("head", 1);
          setTimeout(() => {
            tell("after", axis());
            tell("curves", document.querySelectorAll("#curves .scatterlayer .trace").length);
            const [x, y] = ["x", "y"].map(axis => [...document.querySelectorAll(`#sentences .${axis}tick`)]);
            tell("last", x.at(-1).textContent);
            tell("apart", x[0].getBoundingClientRect().top - y[0].getBoundingClientRect().top > 12);  // their size
            tell("bars", document.querySelectorAll("#sentences .bars .point, #corpora .lines path").length > 5);
            tell("map", map !== document.getElementById("map").outerHTML);
            tell("wide", document.documentElement.scrollWidth > innerWidth);
          }, 3000);
        }, 3000));
        """,
    )
    for said in (
        "before=steps",
        "ranges=1",
        "late=true",
        "after=minutes",
        "bars=true",
        "map=true",
        "wide=false",
        "last=100",
        "apart=true",
    ):
        assert f"<output>{said}</output>" in seen
    assert int(re.findall("<output>curves=(.*?)</output>", seen)[0]) >= 10
    assert 'aria-pressed="true">Best<' in seen and 'aria-pressed="false">Worst<' in seen
    assert "95% interval" in seen and seen.count("12.35 – 98.70") + seen.count("12.34 – 98.70") == 2
    assert "Thin lines: training. Dots: validation. Diamonds: average of the last snapshots." in seen
    assert "complete at step 600" in seen and "nrefs:1|case:mixed" in seen and "Gradient norm" in seen


@needs_browser
def test_charts_are_as_wide_as_their_places(command: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    """Also when these get narrower, in the very frame in which that is seen: without a frame nothing is observed."""
    report(command, run, "--attention", "0")
    script = """
        const widths = () => [...document.querySelectorAll("#curves .plot")].map(place => [
          Math.round(place.querySelector(".main-svg").getBoundingClientRect().width), place.clientWidth]);
        addEventListener("load", () => setTimeout(() => {
          const before = widths();
          console.log("before", before.every(([width, place]) => width === place));
          document.body.style.width = "380px";
          new ResizeObserver(() => {
            console.log("narrower", widths().every(([width], i) => width < before[i][0]));
            console.log("after", widths().every(([width, place]) => width === place));
          }).observe(document.body);
        }, 3000));
        """
    said = chromium(Path("page.html"), script, f"--screenshot={tmp_path / 'page.png'}").stderr
    assert re.findall(r"(before|narrower|after) (true|false)", said) == [
        ("before", "true"),
        ("narrower", "true"),
        ("after", "true"),
    ]


@needs_browser
def test_a_browser_shows_several_runs_and_text_as_text(command: Callable[..., Any], run: Path, odd_run: Path) -> None:
    report(command, run, odd_run)
    seen = browse(
        Path("page.html"),
        CLICK
        + """
        addEventListener("load", () => setTimeout(() => {
          const lines = () => document.querySelectorAll("#curves .scatterlayer .trace").length, all = lines();
          document.querySelector(".runs button").click();  // hides the first
          for (const tabs of document.querySelectorAll(".tabs button:last-child")) tabs.click();  // the second run
          setTimeout(() => {
            tell("fewer", lines() < all);
            tell("scripts", [...document.scripts].some(script => script.textContent === "alert(1)"));
          }, 3000);
        }, 3000));
        """,
    )
    assert "<output>fewer=true</output>" in seen and "<output>scripts=false</output>" in seen
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in seen and "&lt;b&gt;odd/run" in seen and RIGHT_TO_LEFT in seen
    assert "<b>odd" not in seen


@needs_browser
@pytest.mark.parametrize("cut", ["prepared", "checkpoints", "metrics.jsonl", "config.yaml"])
def test_a_browser_draws_what_is_there(command: Callable[..., Any], run: Path, cut: str) -> None:
    path = run / cut
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    report(command, run)
    assert "<h1>run</h1>" in browse(Path("page.html"), "")
