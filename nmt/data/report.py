"""What `prepare` found, in words: for the terminal, and as prepare.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nmt.data.alignment import Verdict
from nmt.data.languages import Sides
from nmt.strict_yaml import dotted

MOST_SAME = 0.5  # of the pairs may have equal sides


@dataclass
class Suspicion:
    """Whether the sides of a corpus go together."""

    label: str
    verdict: Verdict
    sides: Sides
    place: Callable[[int], tuple[str, int]]  # file and line of a pair
    blank: list[str] = field(default_factory=list)  # sides without any text, of a set to measure with

    def sentence(self) -> str:
        """What looks wrong, or nothing."""
        found = [f"all lines of the {side} are blank, so that its scores say nothing" for side in self.blank]
        if self.sides.swapped():
            found.append("looks swapped: the source is in the target's language, and the other way round")
        else:
            found += [f"the {side} is hardly in a script of its language" for side in self.sides.foreign()]
        if self.sides.same_text_share > MOST_SAME:
            found.append(
                f"source and target are the same text in {self.sides.same_text_share:.0%} of the pairs looked at"
            )
        kind = self.verdict.kind
        if kind:
            file, line = self.place(self.verdict.first)
            end = "" if self.verdict.last is None else f", up to about line {self.place(self.verdict.last)[1]}"
            if kind == "shifted":
                lag = self.verdict.lag
                where = f"{abs(lag)} line{'s' * (abs(lag) != 1)} {'later' if lag > 0 else 'earlier'}"
                found.append(
                    f"looks shifted from about line {line} on{end}: "
                    f"translations stand {where} than they should ({file})"
                )
            elif self.verdict.first or self.verdict.last is not None:
                found.append(f"looks shuffled from about line {line} on{end} ({file})")
            else:
                found.append("looks shuffled: sources and targets do not go together")
        return f"{self.label}: {'; '.join(found)}" if found else ""

    def tree(self) -> dict[str, Any]:
        return {
            "length_correlation": _rounded(self.verdict.length_correlation),
            "number_agreement": _rounded(self.verdict.number_agreement),
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 3)


def lines(manifest: dict[str, Any]) -> list[str]:
    """For the terminal."""
    vocabulary, pieces = manifest["vocabulary"], manifest["pieces"]
    sizes = f"{vocabulary['src']:,}" + ("" if vocabulary["joint"] else f" and {vocabulary['tgt']:,}")
    return [
        *manifest["odd_sentences"],
        *map(corpus_sentence, manifest["corpora"]),
        *manifest["unused"],
        *manifest["markup"],
        *(f"warning: {sentence}" for sentence in manifest["suspicions"]),
        *(
            f"warning: {dotted(('data', 'valid', name))} holds no lines; it is left out of validation"
            for name, count in manifest["valid"].items()
            if not count
        ),
        *_piece_sentences(manifest["usage"]),
        f"{manifest['pairs']:,} pairs for training, {pieces['src']:,} source and {pieces['tgt']:,} target pieces; "
        f"vocabulary {sizes}",
    ]


def corpus_sentence(corpus: dict[str, Any]) -> str:
    """captions: 29,000 pairs read, 28,990 kept; dropped: 10 duplicate (first at train.en:17)."""
    parts = [f"{corpus['label']}: {corpus['read']:,} pairs read, {corpus['kept']:,} kept"]
    for what in ("dropped", "noted"):
        counts = [
            f"{count:,} {reason} (first at {corpus['examples'][reason][0]['where']})"
            for reason, count in corpus[what].items()
        ]
        if counts:
            parts.append(f"{'dropped' if what == 'dropped' else 'kept, but'}: {', '.join(counts)}")
    return "; ".join(parts)


def _piece_sentences(usage: dict[str, Any]) -> list[str]:
    found = []
    for side, name in (("src", "source"), ("tgt", "target")):
        of = usage[side]
        trip = of["round_trip"]
        changed = trip["changed"] - trip["spaces"]
        found.append(
            f"{name}: {_rate(of)} pieces a {_unit(of)}, "
            f"{_per(of['characters'], of['pieces'] - of['lines'])} characters a piece; "
            f"{_share(of['unknown'], of['pieces'])} unknown, {_share(of['bytes'], of['pieces'])} bytes; "
            f"{changed:,} of {trip['lines']:,} lines tried do not come back as they were"
            + (f", for example {trip['example'][0]!r} -> {trip['example'][1]!r}" if trip["example"] else "")
        )
    return found


def _unit(side: dict[str, Any]) -> str:
    return str(side.get("unit", "word"))  # older manifests do not say it


def _rate(side: dict[str, Any]) -> str:
    return _per(side["pieces"] - side["lines"], side[f"{_unit(side)}s"])


def _per(count: int, of: int) -> str:
    return f"{count / of:.2f}" if of else "no"


def _share(count: int, of: int) -> str:
    return "none" if not count else f"{count:,} ({count / of:.2%})"


def markdown(manifest: dict[str, Any]) -> str:
    """prepare.md: all of it, with examples."""
    vocabulary = manifest["vocabulary"]
    out = ["# Prepared data", "", f"{manifest['pairs']:,} pairs for training; digest {manifest['digest']}.", ""]
    if manifest["suspicions"]:
        out += ["## Look at this first", "", *(f"- {sentence}" for sentence in manifest["suspicions"]), ""]
    out += ["## Corpora", "", "| corpus | read | kept | dropped | length correlation | numbers agree |"]
    out.append("|---|---:|---:|---:|---:|---:|")
    for corpus in manifest["corpora"]:
        numbers = ["–" if corpus[key] is None else f"{corpus[key]:.2f}" for key in _ALIGNMENT]
        counts = [f"{count:,}" for count in (corpus["read"], corpus["kept"], sum(corpus["dropped"].values()))]
        out.append(f"| {' | '.join([_cell(corpus['label']), *counts, *numbers])} |")
    out += ["", *manifest["unused"]]
    for kind in ("valid", "test"):
        sets = ", ".join(f"{name} {count:,}" for name, count in manifest[kind].items())
        out.append(f"{kind.capitalize()}: {sets or 'none'}. ")
    out.append("")
    for corpus in manifest["corpora"]:
        out += _drops(corpus)
    out += ["## Odd characters", ""]
    out += [f"- {sentence}" for sentence in manifest["odd_sentences"]] or ["None."]
    if manifest["markup"]:
        out += ["", "## Markup", "", *(f"- {sentence}" for sentence in manifest["markup"])]
    joint = "one for both sides" if vocabulary["joint"] else "one a side"
    out += ["", "## Pieces", "", f"Vocabulary: {vocabulary['src']:,} and {vocabulary['tgt']:,}, {joint}.", ""]
    return "\n".join([*out, *_usage_table(manifest["usage"])]) + "\n"


_ALIGNMENT = ("length_correlation", "number_agreement")


def _drops(corpus: dict[str, Any]) -> list[str]:
    out = []
    for what in ("dropped", "noted"):
        for reason, count in corpus[what].items():
            out += [
                f"### {_cell(corpus['label'])}: {count:,} {_cell(reason)}{'' if what == 'dropped' else ' (kept)'}",
                "",
            ]
            for example in corpus["examples"][reason]:
                out.append(f"- {_cell(example['where'])}: {_code(example['src'])} — {_code(example['tgt'])}")
            out.append("")
    return out


def usage_rows(usage: dict[str, Any]) -> list[tuple[str, ...]]:
    """What the tokenizer makes of the text: a name, then source and target."""
    src, tgt = usage["src"], usage["tgt"]
    return [
        ("pieces", *(f"{side['pieces']:,}" for side in (src, tgt))),
        (
            "pieces a word",
            *(_rate(side) + (" a character" if _unit(side) == "character" else "") for side in (src, tgt)),
        ),
        ("unknown pieces", *(_share(side["unknown"], side["pieces"]) for side in (src, tgt))),
        ("byte pieces", *(_share(side["bytes"], side["pieces"]) for side in (src, tgt))),
        *(
            (f"pieces a line, {key}", *(f"{side['lengths'][key]:,}" for side in (src, tgt)))
            for key in ("mean", "p1", "p10", "p50", "p90", "p99", "max")
        ),
        ("lines tried there and back", *(f"{side['round_trip']['lines']:,}" for side in (src, tgt))),
        ("of these changed in white space", *(f"{side['round_trip']['spaces']:,}" for side in (src, tgt))),
        (
            "changed otherwise",
            *(f"{side['round_trip']['changed'] - side['round_trip']['spaces']:,}" for side in (src, tgt)),
        ),
    ]


def _usage_table(usage: dict[str, Any]) -> list[str]:
    rows = (f"| {' | '.join(row)} |" for row in usage_rows(usage))
    return ["| | source | target |", "|---|---:|---:|", *rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    return f"`{text.replace('`', chr(39))}`" if text.strip() else "(empty)"
