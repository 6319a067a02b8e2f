"""Where a translation looked: word alignments for programs, heat maps for people."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import copy_lines, write
from torch import Tensor

from nmt.attention_maps import Look, aligning, alignment, fragment, looks, page, weights, word_numbers
from nmt.blocks import Pass
from nmt.model.layers import LayerShape
from nmt.model.transformer import Architecture, Transformer
from nmt.tokenizer import EOS
from nmt.translate import Translator

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def translator(copy_run: Path) -> Translator:
    return Translator(str(copy_run / "run"), device="cpu", threads=1)


def pairs_of(line: str) -> list[tuple[int, int]]:
    return [(int(source), int(target)) for source, target in (pair.split("-") for pair in line.split())]


def test_a_model_that_copies_looks_at_what_it_copies(command, copy_run: Path, tmp_path: Path) -> None:
    lines = ["", *copy_lines(80, 7), " ", "a b  c"]
    source, output, attention = write(tmp_path / "in", lines), tmp_path / "out", tmp_path / "aligned"
    answer = command("translate", copy_run / "run", source, "-o", output, "--attention", attention)
    assert (answer.code, answer.out) == (0, b"")
    assert f"{attention}: word alignments of 81 sentences\n" in answer.err
    aligned = attention.read_text().split("\n")
    assert len(aligned) == len(lines) + 1 and aligned[-1] == ""
    right = total = 0
    for line, translation, found in zip(lines, output.read_text().split("\n"), aligned, strict=False):
        pairs = pairs_of(found)
        assert [target for _, target in pairs] == list(range(len(translation.split()))), "one for each target word"
        assert all(source < len(line.split()) for source, _ in pairs)
        right += sum(source == target for source, target in pairs)
        total += len(pairs)
    assert right / total > 0.8


@pytest.mark.parametrize("options", [["--beam", "3", "--nbest", "2"], ["--json"], ["--stream"], ["--workers", "2"]])
def test_alignments_are_those_of_the_best_translation(
    command, copy_run: Path, tmp_path: Path, options: list[str]
) -> None:
    source = write(tmp_path / "in", ["", *copy_lines(9, 3), ""])
    for name, more in (("plain", []), ("other", options)):
        answer = command("translate", copy_run / "run", source, "--attention", tmp_path / name, *more)
        assert answer.code == 0, answer.err
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "other").read_bytes()


def test_parts_of_a_long_line_are_counted_through(translator: Translator) -> None:
    """And a word that was cut is one word."""
    blocks, longest = translator.blocks, translator.blocks.longest
    try:
        blocks.longest = blocks.usual = 5
        [found] = translator.stream(["a b c d e f g h i"], warn=lambda _: None)
    finally:
        blocks.longest = blocks.usual = longest
    assert len(found.passes) == 3
    aligned = pairs_of(alignment(looks(translator.model, translator.tokenizer, found.passes)))
    assert [target for _, target in aligned] == list(range(len(found.text.split())))
    assert all(abs(source - target) <= 4 for source, target in aligned), "each looked into its own part"


def look(src: list[str], tgt: list[str], best: list[int], repeated: int = 0, glued: bool = False) -> Look:
    weights_TS = np.full((len(tgt), len(src)), 0.01)
    weights_TS[np.arange(len(tgt)), best] = 0.9
    flat = np.full_like(weights_TS, 0.5)
    return Look(src, tgt, np.stack([flat, weights_TS, flat])[:, None], repeated, glued)


def test_pieces_of_a_word_count_together() -> None:
    src = ["▁a", "▁bc", "de", "▁f", "</s>"]
    assert alignment([look(src, ["▁x", "y", "▁z", "</s>"], [2, 2, 0, 4])]) == "1-0 0-1"
    assert alignment([look(src, ["▁x"], [3])]) == "2-0", "a translation that was cut has no end"
    assert alignment([look(src, ["</s>"], [4])]) == ""
    assert alignment([]) == ""


@pytest.mark.parametrize(("layers", "expected"), [(1, 0), (2, 1), (3, 1), (6, 4)])
def test_the_layer_that_aligns_best(layers: int, expected: int) -> None:
    """The last but one; of two the last, since the first has hardly seen what it translates."""
    assert aligning(layers) == expected
    weights_LHTS = np.full((layers, 1, 1, 3), 0.5)
    weights_LHTS[expected, 0, 0] = [0.1, 0.8, 0.1]
    assert alignment([Look(["▁a", "▁b", "</s>"], ["▁x"], weights_LHTS)]) == "1-0"


def test_words_of_parts_are_those_of_the_line() -> None:
    first = look(["▁T", "▁a", "▁b", "</s>"], ["▁x", "</s>"], [2, 3])
    tagged = look(["▁T", "▁c", "▁d", "</s>"], ["▁y", "▁z", "</s>"], [2, 1, 3], repeated=1)
    cut = look(["e", "▁f", "</s>"], ["q", "▁r", "</s>"], [0, 1, 2], glued=True)
    assert alignment([first, tagged, cut]) == "2-0 4-1 3-2 4-2 5-3"
    assert word_numbers(["▁", "x", "y", "▁", "▁z"]) == [0, 0, 0, 1, 2]


def test_weights_are_those_of_each_pair_alone() -> None:
    """Shapes as promised, rows that add up to 1, and padding without a part in it."""
    torch.manual_seed(2)
    model = Transformer(Architecture(LayerShape(16, 2, 32), 30, 30, 1, 3)).eval()
    src = [np.array([5, 6, 7, 8, EOS]), np.array([9, EOS])]
    tgt = [np.array([4, EOS]), np.array([7, 8, 9, EOS])]
    both = weights(model, src, tgt)
    assert [one.shape for one in both] == [(3, 2, 2, 5), (3, 2, 4, 2)]
    for one, s, t in zip(both, src, tgt, strict=True):
        np.testing.assert_allclose(one.sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(weights(model, [s], [t])[0], one, atol=1e-5)
    seen: list[Tensor] = []
    model.decoder[1].src_attention.watcher = seen.append  # type: ignore[attr-defined]
    model(torch.from_numpy(src[0])[None], torch.tensor([[2, 4]]))
    np.testing.assert_allclose(both[0][1], seen[0][0].detach(), atol=1e-5)


def test_sentences_come_back_in_their_order(translator: Translator) -> None:
    lines = copy_lines(150, 5, longest=20)
    passes = [one for found in translator.stream(lines) for one in found.passes]
    seen = looks(translator.model, translator.tokenizer, [*passes, Pass(passes[0].src, np.empty(0, np.int32))])
    assert [one.src for one in seen] == [[*translator.tokenizer.src.pieces(one.src)[:-1], "</s>"] for one in passes]
    ended = [one.tgt[-1] == EOS for one in passes]
    assert any(ended) and [one.tgt[-1] == "</s>" for one in seen] == ended, "whatever the tokenizer calls it"


ODD = Look(
    ["▁猫", "<script>alert(1)</script>", "</s>"], ["▁مرحبا", "🙂", "&amp;", "</s>"], np.full((2, 3, 4, 3), 1 / 3)
)


def test_text_on_a_page_is_text() -> None:
    made = page([ODD])
    assert "<script>alert" not in made and "</script>alert" not in made
    [data] = re.findall(r"const sentences = (.*);", made)
    [sentence] = json.loads(data)
    assert sentence["src"] == ["·猫", "<script>alert(1)</script>", "</s>"] and "🙂" in sentence["tgt"]
    assert np.shape(sentence["weights"]) == (2, 3, 4, 3)
    assert "http" not in made, "nothing is fetched"
    assert made.count(fragment([ODD])) == 1


def test_a_page_shows_the_first_sentences(command, copy_run: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in", ["", *copy_lines(130, 1)])
    answer = command("translate", copy_run / "run", source, "-o", tmp_path / "out", "--attention", tmp_path / "a.html")
    assert answer.code == 0
    assert "a.html: attention of the first 100 of 130 sentences; open it in a browser" in answer.err
    [data] = re.findall(r"const sentences = (.*);", (tmp_path / "a.html").read_text())
    assert len(json.loads(data)) == 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--attention", "no/such/a"], "no/such/a: its directory no/such does not exist"),
        (["--attention", "there"], "there: exists already"),
        (["--attention", "./out"], "./out: is named twice"),
        (["--attention", "-"], "--attention needs a file of its own"),
        (["--tgt-prefix", "-"], "INPUT and --tgt-prefix are both stdin"),
        (["--attention", "a", "--engine", "ctranslate2"], "--attention need --engine nmt"),
    ],
)
def test_mistakes_are_said_first(
    command, copy_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "there", ["x"])
    answer = command("translate", copy_run / "run", "-o", "out", *options, stdin=b"a\n")
    assert answer.code == 2 and said in answer.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]


@pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium package is not installed")
def test_a_browser_draws_the_maps(tmp_path: Path) -> None:
    """Labels in any script, a cell for each pair of pieces, and pickers that change the picture."""
    pick = 'const s = document.getElementById("head"); s.value = 2; s.dispatchEvent(new Event("change"));'
    picked = ODD.weights_LHTS.copy()
    picked[1, 1, 0] = [0.9, 0.05, 0.05]  # the second of the heads that can be picked, in the layer shown first
    sentence = Look(ODD.src, ODD.tgt, picked)
    (tmp_path / "a.html").write_text(page([sentence]).replace("</body>", f"<script>{pick}</script></body>"))
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", str(tmp_path / "a.html")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    table = done.stdout[done.stdout.index("<tbody>") :]
    assert table.count("<td") == 12
    assert "·猫 → " not in table and "·مرحبا → ·猫: 90%" in table
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in done.stdout
    assert "Shown first is layer 2, the last of two: " in done.stdout and ">2 of 2</option>" in done.stdout
