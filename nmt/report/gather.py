"""All that is to be seen of a run, as plain data; what is missing or damaged leaves a note, never an error."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

from nmt.checkpoint import Checkpoint, directories, open_checkpoint
from nmt.config import Config, from_tree
from nmt.data.prepare import Prepared, open_prepared
from nmt.errors import ConfigError, NmtError
from nmt.files import read_lines
from nmt.report import curves, data, sentences, settings
from nmt.report.curves import Row, number
from nmt.report.sentences import Sentence
from nmt.run import Record, Run
from nmt.strict_yaml import dump, parse_yaml

Fact = tuple[str, str, str]  # what, how much, and a remark


@dataclass
class Gathered:
    """A run, read as far as it can be: it may be going on, or may not have begun to train."""

    run: Run
    name: str
    notes: list[str] = field(default_factory=list)

    @cached_property
    def rows(self) -> list[Row]:
        return Record(self.run.metrics).rows()

    @cached_property
    def train(self) -> list[Row]:
        return curves.train_rows(self.rows)

    @cached_property
    def valid(self) -> dict[str, list[Row]]:
        return curves.valid_rows(self.rows)

    @property
    def last_step(self) -> int:
        last = [rows[-1]["step"] for rows in (self.train, *self.valid.values()) if rows]
        return max(last, default=0)

    @cached_property
    def config(self) -> Config | None:
        if not self.run.config.exists():  # which training writes
            return None
        with self.noted("its settings are not shown"):
            tree = parse_yaml("\n".join(read_lines(self.run.config)), str(self.run.config))
            try:
                config: Config = from_tree(Config, tree)
            except (AttributeError, TypeError, ValueError):
                raise ConfigError(f"{self.run.config}: is not the config of a run") from None
            return config
        return None

    @cached_property
    def prepared(self) -> Prepared | None:
        with self.noted("its data is not shown"):
            return open_prepared(self.run)
        return None

    @cached_property
    def checkpoints(self) -> list[Checkpoint]:
        """Those that can be opened, oldest first; of a run that goes on, one may go away any time."""
        found = []
        for path in directories(self.run):
            with contextlib.suppress(NmtError):
                found.append(open_checkpoint(path))
        return found

    @cached_property
    def best(self) -> dict[str, Row]:
        """Of each validation set, the row of the model that the first set decides to be the best."""
        first = next(iter(self.valid.values()), [])
        if not first:
            return {}
        name = self.config.train.metric if self.config else "nll"
        place = curves.place(curves.best(first, name))
        return {name: row for name, rows in self.valid.items() for row in rows if curves.place(row) == place}

    @cached_property
    def best_checkpoint(self) -> Checkpoint | None:
        """None where it is not there any more, or not yet."""
        places = {curves.place(row) for row in self.best.values()}
        return next((found for found in self.checkpoints if (found.step, found.averaged) in places), None)

    @cached_property
    def sentences(self) -> dict[str, list[Sentence]]:
        """By validation set, those of the best model, worst first."""
        found: dict[str, list[Sentence]] = {}
        if not self.best or self.config is None or self.prepared is None:
            return found
        with self.noted("its translations are not shown"):
            stores = self.prepared.valid()
            for name, row in self.best.items():
                if name not in stores:  # of an earlier training, on other data
                    continue
                path = self.run.translations(
                    None if len(stores) == 1 else name, *curves.place(row), self.config.tgt_lang
                )
                texts, lines = list(stores[name].texts()), list(read_lines(path))
                if len(lines) == len(texts):
                    found[name] = sentences.measured(texts, lines)
                else:
                    self.notes.append(f"{path}: has {len(lines):,} lines for {len(texts):,} sentences")
        return found

    @contextlib.contextmanager
    def noted(self, what: str) -> Iterator[None]:
        """Something is wrong with what is read inside: it is left out and said."""
        try:
            yield
        except (NmtError, OSError) as error:
            self.notes.append(f"{what}: {error}")

    def tree(self) -> dict[str, Any]:
        config, prepared = self.config, self.prepared
        tree: dict[str, Any] = {
            "name": self.name,
            "languages": f"{config.src_lang} → {config.tgt_lang}" if config else "",
            "status": self._status(),
            "facts": [list(self._validation()), list(self._tests()), *self._training()],
            "curves": curves.curves(self.train, self.valid),
            "scores": [*self._validated(), *self._evaluated()],
            "sentences": [{"set": name, **sentences.tree(found)} for name, found in self.sentences.items()],
        }
        if prepared is not None:
            with self.noted("its data is not shown"):
                tree["data"] = data.tree(prepared)
        if config is not None:
            with self.noted("its settings are not shown"):
                tree["settings"] = {"changes": settings.changes(config), "all": dump(config.tree())}
        if not self.valid and self.train:
            self.notes.append("no validation yet, or no validation set: there are no scores and no translations")
        return tree | {"notes": self.notes}

    # --- in a few words ---

    def _status(self) -> str:
        step = self.last_step
        trained = [c for c in self.checkpoints if not c.averaged]
        if trained and trained[-1].state["train"]["finished"] and trained[-1].step >= step:
            return f"complete at step {trained[-1].step:,}"
        if not self.rows:
            return "prepared, not trained yet"
        written = datetime.fromtimestamp(self.run.metrics.stat().st_mtime)
        return f"not complete: step {step:,}, last numbers from {written:%Y-%m-%d %H:%M}"

    def _validation(self) -> Iterator[Fact]:
        for name, row in self.best.items():
            for key, value in curves.scores(row).items():
                if value is not None and key != "nll":
                    yield f"{_title(key)}, {name}", f"{value:.2f}", f"best, {_model(row)}"

    def _tests(self) -> Iterator[Fact]:
        """Of the newest model that was evaluated: on the sets of the config, or on one set where it names none."""
        scores = self._evaluated()
        sets = {score["test"] for score in scores}
        chosen = (sets & set(self.config.data.test) if self.config else None) or {score["test"] for score in scores[:1]}
        first: dict[tuple[str, str], dict[str, Any]] = {}
        for score in scores:
            if score["test"] in chosen and score["model"] == scores[0]["model"]:
                first.setdefault((score["test"], score["metric"]), score)
        for score in first.values():
            yield f"{_title(score['metric'])}, {score['test']}", f"{score['value']:.2f}", score["model"]

    def _training(self) -> Iterator[list[Fact]]:
        """One by one, each if it is known: where several runs are shown, all have the same order."""
        yield [("Steps", f"{self.last_step:,}", ", ".join(self._spent()))] if self.rows else []
        speeds = [speed for row in self.train if (speed := number(row.get("target_tokens_per_second")))]
        yield [("Target tokens a second", f"{median(speeds):,.0f}", "the median of the training")] if speeds else []
        skipped = sum(number(row.get("skipped")) or 0 for row in self.train)
        yield [("Skipped updates", f"{skipped:,.0f}", "their gradients were not finite")] if skipped else []
        manifest = self.prepared.manifest if self.prepared else None
        remark = f"to train on; vocabulary {manifest['vocabulary']['tgt']:,}" if manifest else ""
        yield [("Pairs", f"{manifest['pairs']:,}", remark)] if manifest else []
        for found in self.checkpoints[-1:]:
            with contextlib.suppress(NmtError, OSError):  # it may just have gone away
                model = found.config().model
                remark = f"{model.encoder_layers} + {model.decoder_layers} layers, width {model.dim}"
                yield [("Parameters", f"{found.parameters():,}", remark)]

    def _spent(self) -> Iterator[str]:
        """Epochs and time, as the last checkpoint or a later row of the training tells them."""
        told = [(row["step"], row.get("epoch"), row.get("seconds")) for row in self.train[-1:]]
        states = [(c.step, c.state["train"]) for c in self.checkpoints if not c.averaged]
        told += [(step, state.get("epochs"), state.get("seconds")) for step, state in states]
        if told:
            _, *last = max(told, key=lambda one: one[0])
            epochs, seconds = map(number, last)
            if epochs is not None:
                yield f"{epochs:.1f} epochs"
            if seconds is not None:
                yield _duration(seconds)

    # --- scores ---

    def _validated(self) -> list[dict[str, Any]]:
        """Of the best model."""
        found = []
        for name, row in self.best.items():
            signatures = row.get("signature")
            signed = signatures if isinstance(signatures, dict) else {}
            for metric, value in curves.scores(row).items():
                if value is not None and metric in signed:
                    found.append(_score(f"{name} (validation)", _model(row), metric, value, signed[metric], row))
        return found

    def _evaluated(self) -> list[dict[str, Any]]:
        """What `nmt evaluate` has kept: the newest model first, and of each set what was made as the config says."""
        found = []
        usual = self.config.search.tree() if self.config else None
        for path in sorted(self.run.evaluate.glob("*.json"), key=lambda path: (len(path.name), path.name)):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
                row = json.loads(path.read_text(encoding="utf-8"))
                place = -row["step"], bool(row["averaged"]), str(row["test"]), row["search"] != usual
                for metric, score in row["scores"].items():
                    made = _score(row["test"], _model(row), metric, float(score["value"]), score["signature"], row)
                    made |= {"interval": score.get("interval"), "lines": row["lines"]}
                    if (place, made) not in found:  # the same again, beside another metric
                        found.append((place, made))
        return [made for _, made in sorted(found, key=lambda one: one[0])]


def _score(test: str, model: str, metric: str, value: float, signature: str, row: Row) -> dict[str, Any]:
    search = row.get("search")
    settings = " ".join(f"{key}:{value}" for key, value in search.items()) if isinstance(search, dict) else ""
    return {
        "test": test,
        "model": model,
        "metric": metric,
        "value": value,
        "signature": signature,
        "search": settings,
    }


def _model(row: Row) -> str:
    return f"step {row['step']:,}" + (", average of snapshots" if row.get("averaged") else "")


def _title(metric: str) -> str:
    return {"bleu": "BLEU", "chrf": "chrF", "chrf++": "chrF++", "ter": "TER", "ppl": "Perplexity"}.get(metric, metric)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 120 else f"{minutes} min"


def names(directories: list[Path]) -> list[str]:
    """A short name for each, which no other has."""
    absolute = [path.absolute() for path in directories]
    for length in range(1, max(len(path.parts) for path in absolute)):
        short = [str(Path(*path.parts[-length:])) for path in absolute]
        if len(set(short)) == len(short):
            return short
    return [str(path) for path in absolute]
