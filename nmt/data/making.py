"""Two passes over the training corpora: survey and filter the text, then encode what is left."""

from __future__ import annotations

import copy
import hashlib
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nmt.choice import Choice, build
from nmt.config import Config
from nmt.data import filters
from nmt.data.alignment import Alignment, features
from nmt.data.corpora import Corpus
from nmt.data.duplicates import Seen
from nmt.data.encoding import Encoding, Usage, Work, example
from nmt.data.filters import Duplicates, Overlap
from nmt.data.formats import Unit
from nmt.data.languages import Sides
from nmt.data.markup import Markup
from nmt.data.oddities import Oddities
from nmt.data.report import Suspicion, corpus_sentence
from nmt.data.store import TEXT, Writer, let_go, map_file, record_batch, schema
from nmt.data.survey import COLUMNS, Survey, Surveyed, chunks
from nmt.data.tally import Tally
from nmt.errors import DataError
from nmt.files import sha256
from nmt.jobs import ordered_map
from nmt.progress import bar
from nmt.strict_yaml import dotted
from nmt.tokenizer import TOKENIZERS, Tokenizer, Trainer, blank, clean_lines


@dataclass
class Progress:
    """What is known of one training corpus."""

    label: str
    tally: Tally = field(default_factory=Tally)
    alignment: Alignment = field(default_factory=Alignment)
    places: list[tuple[int, str, int]] = field(default_factory=list)  # pair, file and line of some of them, in order
    markup: Markup = field(default_factory=Markup)
    suspicion: Suspicion | None = None


class Making:
    """Writes everything but the manifest into a directory."""

    def __init__(self, config: Config, directory: Path, jobs: int, say: Callable[[str], None]) -> None:
        self.config, self.directory, self.jobs, self.say = config, directory, jobs, say
        self.chosen = filters.choices(config.data.filters)
        self.oddities = Oddities()
        self.sides = Sides(config.src_lang, config.tgt_lang)  # that have seen nothing, to be copied
        self.files: dict[str, int] = {}  # names of files, numbered in the order in which they appear
        self.text = directory / "text.arrow"
        self.batches: list[tuple[int, int]] = []  # of the text put aside: corpus and rows

    def run(self, corpora: dict[str, list[Corpus]], given: Tokenizer | None = None) -> dict[str, Any]:
        """Returns the manifest, as far as it is known here. A tokenizer that is not given is trained."""
        data = self.config.data
        if given is None:
            build(TOKENIZERS, self.config.tokenizer).check()
        for file in dict.fromkeys(file for some in corpora.values() for corpus in some for file in corpus.inputs()):
            self.oddities.look_at_start(file)
        valid = dict(zip(data.valid, (list(c.read()) for c in corpora["valid"]), strict=True))
        test = dict(zip(data.test, (list(c.read()) for c in corpora["test"]), strict=True))
        sets = {
            dotted((kind, n)): units for kind, some in (("valid", valid), ("test", test)) for n, units in some.items()
        }
        tagged = [bool(corpus.options.prefix) for corpus in (*corpora["valid"], *corpora["test"])]
        for units, has_tag in zip(valid.values(), tagged, strict=False):
            if not has_tag:
                self.sides.learn([unit.src for unit in units], [unit.tgts[0] for unit in units])
        suspicions = [self._look_at(*named, has_tag) for named, has_tag in zip(sets.items(), tagged, strict=True)]
        seen = [Progress(corpus.label) for corpus in corpora["train"]]
        repeated = self._survey(corpora["train"], seen, self._overlap(sets))
        self._stop_if_empty(seen)
        tags = {corpus.tag: None for some in corpora.values() for corpus in some if corpus.tag}
        tokenizer = given or self._train_tokenizer(repeated, tags)
        tokenizer.save(self.directory)
        digest, usage = self._encode(tokenizer, seen, repeated)
        self._stop_if_empty(seen)
        self.text.unlink()
        del repeated  # which is mapped from a file there
        shutil.rmtree(self.directory / "seen")
        for (name, units), corpus in zip(valid.items(), corpora["valid"], strict=True):
            self._write_valid(name, units, corpus.options.prefix, tokenizer)
        return {
            "digest": digest,
            "tokenizer": tokenizer.digest(),
            "vocabulary": {"src": len(tokenizer.src), "tgt": len(tokenizer.tgt), "joint": tokenizer.joint},
            "pairs": sum(corpus.tally.kept for corpus in seen),
            "pieces": {"src": usage[0].pieces, "tgt": usage[1].pieces},
            "corpora": [
                {"label": corpus.label, **corpus.tally.tree(), **(corpus.suspicion.tree() if corpus.suspicion else {})}
                for corpus in seen
            ],
            "suspicions": [s.sentence() for s in (*suspicions, *(c.suspicion for c in seen)) if s and s.sentence()],
            "unused": [sentence for corpus in corpora["train"] if (sentence := corpus.unused())],
            "markup": [s for corpus in seen if (s := corpus.markup.sentence(corpus.label))],
            "odd_characters": self.oddities.tree(),
            "odd_sentences": self.oddities.sentences(),
            "usage": {"src": usage[0].tree(self.config.src_lang), "tgt": usage[1].tree(self.config.tgt_lang)},
            "valid": {name: len(units) for name, units in valid.items()},
            "test": {name: len(units) for name, units in test.items()},
            "files": list(self.files),
            "checksums": {file.name: sha256(file) for file in sorted(self.directory.glob("*.arrow"))},
        }

    def _train_tokenizer(self, repeated: np.ndarray, tags: Iterable[str]) -> Tokenizer:
        trainer: Trainer = build(TOKENIZERS, self.config.tokenizer)
        sides = [_Sample(self.text, side, repeated, trainer.sample, self.config.seed) for side in ("src", "tgt")]
        return trainer(sides[0], sides[1], self.say, tags)

    # --- validation and test sets ---

    def _look_at(self, name: str, units: list[Unit], tagged: bool) -> Suspicion:
        """A set that is kept as it is. Of the languages of a tagged one nothing is known."""
        src, tgt = [unit.src for unit in units], [unit.tgts[0] for unit in units]
        self.oddities.look(src, lambda i: units[i].where)
        for number in range(max((len(unit.tgts) for unit in units), default=0)):
            has = [unit for unit in units if number < len(unit.tgts)]
            references = [unit.tgts[number] for unit in has]
            self.oddities.look(references, lambda i, has=has: f"{has[i].where} (target)")  # type: ignore[misc]
        alignment, sides = Alignment(), copy.deepcopy(self.sides)
        alignment.add(features(clean_lines(src), clean_lines(tgt)))
        if not tagged:
            sides.add(src, tgt)
        blanks = [side for side, lines in (("source", src), ("target", tgt)) if lines and all(map(blank, lines))]
        return Suspicion(
            f"data.{name}", alignment.verdict(), sides, lambda pair: (units[pair].file, units[pair].line), blanks
        )

    def _overlap(self, sets: dict[str, list[Unit]]) -> Overlap:
        held = ((name, unit.src, tgt) for name, units in sets.items() for unit in units for tgt in unit.tgts)
        choice = self.chosen.get("overlap", Choice("overlap"))
        overlap: Overlap = build(filters.FILTERS, choice, held)
        return overlap

    def _write_valid(self, name: str, units: list[Unit], prefix: str, tokenizer: Tokenizer) -> None:
        src = [prefix + unit.src for unit in units]
        counts = np.cumsum([0, *(len(unit.tgts) for unit in units)]).astype(np.int32)
        columns = schema(max(len(tokenizer.src), len(tokenizer.tgt)))
        with Writer(self.directory / f"valid.{name}.arrow", columns) as store:
            store.write(
                record_batch(
                    columns,
                    pa.array(src, TEXT),
                    pa.ListArray.from_arrays(counts, pa.array([tgt for unit in units for tgt in unit.tgts], TEXT)),
                    tokenizer.src.encode(src),
                    tokenizer.tgt.encode([unit.tgts[0] for unit in units]),
                    pa.array([self._number(unit.file) for unit in units], pa.int32()),
                    pa.array([unit.line for unit in units], pa.int64()),
                )
            )

    def _number(self, file: str) -> int:
        return self.files.setdefault(file, len(self.files))

    # --- first pass ---

    def _survey(self, corpora: list[Corpus], seen: list[Progress], overlap: Overlap) -> np.ndarray:
        """Puts the text that passes aside; returns for each of its rows whether it is a duplicate to be dropped."""
        supplied = {"script": ((self.config.src_lang, self.config.tgt_lang),)}
        dropping: list[filters.TextFilter] = [
            overlap if name == "overlap" else build(filters.FILTERS, choice, *supplied.get(name, ()))
            for name, choice in self.chosen.items()
            if name in filters.TEXT_FILTERS
        ]
        duplicates: Duplicates = build(filters.FILTERS, self.chosen.get("duplicates", Choice("duplicates")))
        noting: list[filters.TextFilter] = [] if overlap in dropping else [overlap]
        noting += [] if "same" in self.chosen else [filters.Same()]
        work = Survey(dropping, noting, duplicates, self.sides)
        found = Seen(self.directory / "seen")
        sides = [copy.deepcopy(self.sides) for _ in corpora]
        estimates = [corpus.estimate() for corpus in corpora] if sys.stderr.isatty() else [None]
        total = None if None in estimates else sum(filter(None, estimates))
        pieces = (chunk for number, corpus in enumerate(corpora) for chunk in chunks(corpus, number))
        with Writer(self.text, COLUMNS) as out, closing(ordered_map(work, pieces, self.jobs)) as results:
            for result in bar(results, "reading", "pairs", total, lambda result: result.tally.read):
                self._note(result, seen[result.corpus], sides[result.corpus])
                found.add(result.keys)
                out.write(self._numbered(result))
        for corpus, side, of in zip(seen, sides, corpora, strict=True):
            # A prefix says that the corpus is in a direction of its own, of whose languages nothing is known.
            known = copy.deepcopy(self.sides) if of.options.prefix else side
            corpus.suspicion = Suspicion(corpus.label, corpus.alignment.verdict(), known, _Places(corpus.places))
        repeated = found.repeated()
        self._count_duplicates(seen, repeated, duplicates.reason)
        return repeated if "duplicates" in self.chosen else np.zeros(len(repeated), np.bool_)

    def _note(self, result: Surveyed, corpus: Progress, sides: Sides) -> None:
        corpus.places += [(corpus.tally.read + row, file, line) for row, file, line in result.places]
        corpus.tally.add(result.tally)
        corpus.alignment.add(result.features)
        corpus.markup.add(result.markup)
        sides.merge(result.sides)
        self.oddities.add(result.oddities)
        if len(result.kept):
            self.batches.append((result.corpus, len(result.kept)))

    def _numbered(self, result: Surveyed) -> pa.RecordBatch:
        """The rows that were kept, with files numbered as in the whole."""
        numbers = np.array([self._number(name) for name in result.names], np.int32)
        files = pa.array(numbers[result.kept.column("file").to_numpy()])
        return result.kept.set_column(COLUMNS.get_field_index("file"), "file", files)

    def _count_duplicates(self, seen: list[Progress], repeated: np.ndarray, reason: str) -> None:
        if not repeated.any():
            return
        drop, names, row = "duplicates" in self.chosen, list(self.files), 0
        _, batches = map_file(self.text)
        for (corpus, rows), batch in zip(self.batches, batches, strict=True):
            bad = np.flatnonzero(repeated[row : row + rows])
            row += rows
            examples = (example(batch, i, names) for i in bad.tolist())
            seen[corpus].tally.drop_many(reason, len(bad), examples, noted=not drop)
            seen[corpus].tally.kept -= len(bad) if drop else 0

    # --- second pass ---

    def _encode(self, tokenizer: Tokenizer, seen: list[Progress], repeated: np.ndarray) -> tuple[str, list[Usage]]:
        """Text -> ids -> store; returns the digest of the content, and how both sides use their pieces."""
        length_filters = [build(filters.FILTERS, c) for n, c in self.chosen.items() if n in filters.LENGTH_FILTERS]
        models = tokenizer.src.model, None if tokenizer.joint else tokenizer.tgt.model
        work = Encoding(models, self.text, length_filters)
        ends = np.cumsum([0, *(rows for _, rows in self.batches)])
        names, total = list(self.files), int(ends[-1])
        items = (Work(i, np.array(repeated[start:stop]), names) for i, (start, stop) in enumerate(pairwise(ends)))
        usage, digest = [Usage(), Usage()], hashlib.sha256()
        columns = schema(max(len(tokenizer.src), len(tokenizer.tgt)))
        with (
            Writer(self.directory / "train.arrow", columns) as store,
            closing(ordered_map(work, items, self.jobs)) as results,
        ):
            for i, result in enumerate(bar(results, "encoding", "pairs", total, lambda result: result.seen)):
                tally = seen[self.batches[i][0]].tally
                tally.kept -= result.seen - int(repeated[ends[i] : ends[i + 1]].sum())  # counted anew
                tally.add(result.tally)
                for side, more in zip(usage, result.usage, strict=True):
                    side.add(more)
                store.write(result.rows)
                digest.update(result.digest)
        return digest.hexdigest()[:12], usage

    def _stop_if_empty(self, seen: list[Progress]) -> None:
        if not any(corpus.tally.kept for corpus in seen):
            read = sum(corpus.tally.read for corpus in seen)
            why = "; ".join(corpus_sentence({"label": corpus.label, **corpus.tally.tree()}) for corpus in seen)
            raise DataError(f"data.train: 0 of {read:,} pairs left for training ({why})")


class _Places:
    """The place of a pair by its number, from those of some before it: about, where a pair is more than a line."""

    def __init__(self, known: list[tuple[int, str, int]]) -> None:
        self.known = known

    def __call__(self, pair: int) -> tuple[str, int]:
        first, file, line = next(place for place in reversed(self.known) if place[0] <= pair)
        return file, line + pair - first


@dataclass
class _Sample:
    """One side of the text put aside, or of pairs spread evenly over it, `size` at most. It can be read again."""

    text: Path
    side: str
    dropped: np.ndarray
    size: int
    seed: int

    def __iter__(self) -> Iterator[str]:
        mapped, batches = map_file(self.text)
        left = len(self.dropped) - int(self.dropped.sum())
        # One of each stretch of equal length: in order, and without a list of all.
        draws = np.random.default_rng(self.seed).random(min(self.size, left))
        wanted = ((np.arange(len(draws)) + draws) * left / max(1, len(draws))).astype(np.int64)
        row = passed = 0
        for batch in batches:
            rows = np.flatnonzero(~self.dropped[row : row + len(batch)])
            first, last = np.searchsorted(wanted, (passed, passed + len(rows)))
            chosen = rows[wanted[first:last] - passed]
            yield from batch.column(self.side).take(pa.array(chosen)).to_pylist()
            row, passed = row + len(batch), passed + len(rows)
            let_go(mapped)
