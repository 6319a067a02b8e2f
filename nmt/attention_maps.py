"""Where a translation looked: attention to the source, as word alignments or as a page of heat maps.

The weights are those of a teacher-forced pass over the translation. Shapes: L layers, H heads, T target and S source
pieces, ends of sentence included.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import IO

import numpy as np
import torch

from nmt.blocks import Pass, Translation
from nmt.data.batches import collate
from nmt.model.transformer import Transformer, watch
from nmt.tokenizer import EOS, Tokenizer

SHOWN = 100  # sentences on a page
END = "</s>"
BATCH = 64  # sentences that are looked at together


@dataclass
class Look:
    """One sentence, or one part of a long line."""

    src: list[str]  # pieces, with the end of sentence
    tgt: list[str]  # likewise, but for one that was cut
    weights_LHTS: np.ndarray
    repeated: int = 0  # as in a Pass
    glued: bool = False


def weights(model: Transformer, src: Sequence[np.ndarray], tgt: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Attention to the source for pairs of ids, [L, H, T, S] each; row t is what predicted token t."""
    shape = max(map(len, src)), max(map(len, tgt))
    batch = collate(list(src), list(tgt), shape, model.src_embedding.weight.device)
    with torch.inference_mode(), watch(model) as seen:
        model(batch.src_BS, batch.tgt_in_BT)
    layers = [seen[f"decoder.{i}.src_attention"][0] for i in range(len(model.decoder))]
    all_BLHTS = torch.stack(layers, dim=1).float().cpu().numpy()
    return [one[:, :, : len(t), : len(s)].copy() for one, s, t in zip(all_BLHTS, src, tgt, strict=True)]


def looks(model: Transformer, tokenizer: Tokenizer, passes: Iterable[Pass]) -> list[Look]:
    """At translations, in their order; those of like length are looked at together."""
    all_passes = [one for one in passes if len(one.tgt)]
    order = sorted(range(len(all_passes)), key=lambda i: len(all_passes[i].src) + len(all_passes[i].tgt))
    found: dict[int, Look] = {}
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        some = [all_passes[i] for i in chosen]
        for i, one, seen in zip(
            chosen, some, weights(model, [one.src for one in some], [one.tgt for one in some]), strict=True
        ):
            src, tgt = _named(tokenizer.src.pieces(one.src), one.src), _named(tokenizer.tgt.pieces(one.tgt), one.tgt)
            found[i] = Look(src, tgt, seen, one.repeated, one.glued)
    return [found[i] for i in range(len(all_passes))]


def _named(pieces: list[str], ids: np.ndarray) -> list[str]:
    """Tokenizers have names of their own for the end of sentence; here it is always the same."""
    return [*pieces[:-1], END] if ids[-1] == EOS else pieces


# --- word alignments ---


def aligning(layers: int) -> int:
    """The layer that tells best which words belong together: the last but one (Garg et al. 2019), of two the last."""
    return max(min(1, layers - 1), layers - 2)


def alignment(parts: Sequence[Look]) -> str:
    """In Pharaoh form, `0-0 1-2`: for each target word the source word that it looked at most.

    Words are what stands between spaces, and are counted over all parts of a line. The weights are those of the
    layer that aligns best, the mean over its heads, added up over the pieces of a word.
    """
    pairs, src_words, tgt_words = [], 0, 0
    for part in parts:
        of_src, of_tgt = word_numbers(part.src[part.repeated : -1]), word_numbers(_without_end(part.tgt))
        src_words -= part.glued  # the word goes on
        tgt_words -= part.glued
        if of_src and of_tgt:
            mean_TS = part.weights_LHTS[aligning(len(part.weights_LHTS))].mean(0)
            by_word = np.zeros((of_tgt[-1] + 1, of_src[-1] + 1))
            np.add.at(by_word, np.ix_(of_tgt, of_src), mean_TS[: len(of_tgt), part.repeated :][:, : len(of_src)])
            pairs += [f"{src_words + source}-{tgt_words + word}" for word, source in enumerate(by_word.argmax(1))]
        src_words += of_src[-1] + 1 if of_src else 0
        tgt_words += of_tgt[-1] + 1 if of_tgt else 0
    return " ".join(pairs)


def _without_end(pieces: list[str]) -> list[str]:
    return pieces[:-1] if pieces[-1:] == [END] else pieces


def word_numbers(pieces: Sequence[str]) -> list[int]:
    """The number of the word that each piece belongs to."""
    numbers: list[int] = []
    number = 0
    for i, piece in enumerate(pieces):
        number += i > 0 and piece.startswith("▁")
        numbers.append(number)
    return numbers


class Attention:
    """Writes what translations looked at into a stream, as a page of HTML or as a line of alignments for each."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, stream: IO[bytes], as_page: bool, ahead: int) -> None:
        """So many translations `ahead` are looked at together."""
        self.model, self.tokenizer, self.stream, self.as_page = model, tokenizer, stream, as_page
        self.ahead = ahead
        self.waiting: list[Translation] = []
        self.shown: list[Look] = []
        self.seen = 0

    def add(self, translation: Translation) -> None:
        self.seen += bool(translation.passes)
        if self.as_page and self.seen > SHOWN:
            return
        self.waiting.append(translation)
        if len(self.waiting) >= self.ahead:
            self._look()

    def close(self) -> None:
        self._look()
        if self.as_page:
            self.stream.write(page(self.shown).encode())

    @property
    def held(self) -> str:
        """What the stream holds, for people."""
        sentences = f"{self.seen:,} sentence{'s' if self.seen != 1 else ''}"
        if not self.as_page:
            return f"word alignments of {sentences}"
        first = f"the first {SHOWN} of " if self.seen > SHOWN else ""
        return f"attention of {first}{sentences}; open it in a browser"

    def _look(self) -> None:
        found = iter(looks(self.model, self.tokenizer, (one for t in self.waiting for one in t.passes)))
        for translation in self.waiting:
            parts = [next(found) for one in translation.passes if len(one.tgt)]
            if self.as_page:
                self.shown += parts
            else:
                self.stream.write(alignment(parts).encode() + b"\n")
        self.stream.flush()
        self.waiting = []


# --- heat maps ---


def style() -> str:
    """The style of every page that is written."""
    return (files("nmt") / "page.css").read_text(encoding="utf-8")


def page(shown: Sequence[Look]) -> str:
    """A self-contained page of HTML: a heat map for each sentence, with sentence, layer and head to pick."""
    return PAGE.replace("STYLE", style()).replace("MAPS", fragment(shown))


def fragment(shown: Sequence[Look], labels: Sequence[str] = ()) -> str:
    """The maps as a part of a page, which may have one such part; sentences go by their numbers or by `labels`.

    They may come from models of different sizes.
    """
    sentences = [
        {
            "label": label,
            "src": [_label(piece) for piece in look.src],
            "tgt": [_label(piece) for piece in look.tgt],
            "layer": aligning(len(look.weights_LHTS)),
            "weights": np.rint(look.weights_LHTS * 100).astype(int).tolist(),
        }
        for label, look in zip(labels or map(str, range(1, len(shown) + 1)), shown, strict=True)
    ]
    data = json.dumps(sentences, ensure_ascii=False).replace("<", "\\u003c")  # nothing may look like markup
    return FRAGMENT.replace("DATA", data)


def _label(piece: str) -> str:
    return piece.replace("▁", "·")


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Where translations looked</title>
<link rel="icon" href="data:,">
<style>STYLE</style></head><body>
<header><p class="kicker">nmt translate --attention</p><h1>Where translations looked</h1></header>
MAPS
</body></html>
"""
FRAGMENT = """<style>
.attention { --heat: 37, 99, 235; margin-top: 1rem; }
@media (prefers-color-scheme: dark) { .attention { --heat: 96, 165, 250; } }
.attention .scale { display: inline-flex; align-items: center; gap: .5rem; }
.attention .scale i {
  width: 8rem; height: .8rem; border: 1px solid var(--line);
  background: linear-gradient(to right, rgba(var(--heat), 0), rgb(var(--heat)));
}
.attention nav { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin-bottom: 1rem; }
.attention select { font: inherit; max-width: min(32rem, 85vw); }
.attention .map { overflow-x: auto; padding-bottom: .5rem; }
.attention table { border-collapse: collapse; }
.attention th { font-weight: normal; padding: 2px 5px; white-space: pre; unicode-bidi: isolate; }
.attention thead th { writing-mode: vertical-rl; text-align: end; vertical-align: bottom; }
.attention thead th.upright { text-orientation: upright; }
.attention tbody th { text-align: end; position: sticky; left: 0; background: var(--surface); }
.attention td { min-width: 1.7em; height: 1.7em; border: 1px solid rgba(128, 128, 128, .25); padding: 0; }
</style>
<section class="attention card">
<p>A row is a piece of the translation, a column a piece of the source, and a cell how much of its attention the row
gave to the column when it was written. <span id="why"></span></p>
<nav>
<label>Sentence <select id="sentence"></select></label>
<label>Layer <select id="layer"></select></label>
<label>Head <select id="head"></select></label>
<span class="scale small muted">0% <i></i> 100%</span>
</nav>
<div class="map"><table id="map"></table></div>
<script>
{
  const sentences = DATA;
  const pick = name => document.getElementById(name);
  const make = (tag, text) => Object.assign(document.createElement(tag), {textContent: text});
  const label = text => Object.assign(make("th", text), {dir: "auto"});
  const options = (name, labels, first = 0) => {  // what is picked stays so, where it can
    const before = pick(name).value;
    pick(name).replaceChildren(...labels.map((text, i) => new Option(text, i)));
    pick(name).value = before in labels ? before : first;
  };
  const draw = () => {
    const {src, tgt, weights} = sentences[pick("sentence").value];
    const heads = weights[pick("layer").value], head = +pick("head").value;
    const at = (t, s) => head ? heads[head - 1][t][s] : heads.reduce((sum, one) => sum + one[t][s], 0) / heads.length;
    const top = make("tr", "");
    top.append(make("th", ""), ...src.map(label));
    const rows = tgt.map((piece, t) => {
      const row = make("tr", "");
      row.append(label(piece), ...src.map((from, s) => {
        const cell = make("td", ""), value = at(t, s);
        cell.style.background = `rgba(var(--heat), ${value / 100})`;
        cell.title = `${piece} → ${from}: ${value.toFixed(0)}%`;
        return cell;
      }));
      return row;
    });
    const head_row = make("thead", ""), body = make("tbody", "");
    head_row.append(top);
    body.append(...rows);
    pick("map").replaceChildren(head_row, body);
  };
  const fit = () => {
    const {weights, layer} = sentences[pick("sentence").value], layers = weights.length;
    options("layer", weights.map((_, i) => `${i + 1} of ${layers}`), layer);
    options("head", ["mean of all", ...weights[0].map((_, i) => i + 1)]);
    const which = layers > 2 ? "the last but one" : "the last of two";
    const why = `Shown first is layer ${layer + 1}, ${which}: as a rule it tells best which words belong together.`;
    pick("why").textContent = layers > 1 ? why : "";
    draw();
  };
  if (sentences.length) {
    const text = one => one.src.slice(0, -1).join("").replaceAll("·", " ").trim();
    options("sentence", sentences.map(one => `${one.label}: ${text(one)}`));
    pick("sentence").addEventListener("change", fit);
    for (const name of ["layer", "head"]) pick(name).addEventListener("change", draw);
    fit();
  } else {
    pick("map").replaceChildren(make("caption", "No sentence was translated."));
  }
}
</script>
</section>"""
