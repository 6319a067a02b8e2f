"""N lines in, N lines out: what goes on around a translator, and what looks wrong with its translations."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from nmt.blocks import Translation
from nmt.errors import NmtError
from nmt.progress import say
from nmt.rows import Row

Form = Callable[[int, Translation], str]  # what is written of a line, by its number from 0

NAMED = 5  # line numbers that a summary holds of each fault
BUG = "the output is not used; this is a fault of nmt, please report it"
REPEATED, EMPTY, COPIED = "ended in a repetition", "came out empty", "came out equal to the source"
BROKEN = "\ufffd"  # stands for bytes that are no character, which some tokenizers have as pieces
GRAM, TIMES = 4, 4  # so many pieces, so many times in a row, are a repetition


class Streams(Protocol):
    """A Translator, of any engine."""

    @property
    def stream(self) -> Callable[..., Iterator[Translation]]: ...


def plain(_: int, translation: Translation) -> str:
    return translation.text


def moses(number: int, translation: Translation) -> str:
    """A line for each hypothesis, as Moses has it: number ||| text ||| score; the score of a blank line is empty."""
    return "\n".join(
        f"{number} ||| {one.text} ||| {'' if one.score is None else f'{one.score:.6f}'}"
        for one in (translation, *translation.others)
    )


def as_json(_: int, translation: Translation) -> str:
    return json.dumps(_tree(translation), ensure_ascii=False)


def nbest_as_json(_: int, translation: Translation) -> str:
    """The best one, and the list of all, the best first."""
    nbest = [_tree(one) for one in (translation, *translation.others)]
    return json.dumps({**nbest[0], "nbest": nbest}, ensure_ascii=False)


def _tree(translation: Translation) -> dict[str, Any]:
    return {
        "text": translation.text,
        "score": translation.score,
        "tokens": translation.pieces,
        "log_probs": translation.log_probs,
        "truncated": translation.truncated,
    }


# By whether JSON and several hypotheses were asked for.
FORMS: dict[tuple[bool, bool], Form] = {
    (False, False): plain,
    (False, True): moses,
    (True, False): as_json,
    (True, True): nbest_as_json,
}


def translated(
    translator: Streams,
    rows: Iterable[Row],
    form: Form = plain,
    look: Callable[[Translation], None] = lambda _: None,
    first: int = 1,
    **options: Any,
) -> Iterator[str]:
    """The lines of output, one for each row, numbered from `first`. What looks wrong with them is said at the end.

    `look` is called with each translation; `options` are those of the translator's stream. Raises NmtError at once for
    more hypotheses than the search has, and at the end if a line was lost.
    """
    waiting: deque[Row] = deque()

    def texts() -> Iterator[str]:
        for row in rows:
            waiting.append(row)
            yield row.text

    translations = translator.stream(texts(), first=first, **options)
    return _lines(translations, waiting, form, look, first)


def _lines(
    translations: Iterator[Translation],
    waiting: deque[Row],
    form: Form,
    look: Callable[[Translation], None],
    first: int,
) -> Iterator[str]:
    faults = Faults()
    done = 0
    for translation in translations:
        if not waiting:
            raise NmtError(f"{done:,} lines in, but more lines out; {BUG}")
        row = waiting.popleft()
        faults.look(first + done, row.text, translation)
        look(translation)
        yield row.line(form(first + done - 1, translation))
        done += 1
    if waiting:
        raise NmtError(f"{done + len(waiting):,} lines in, but {done:,} lines out; {BUG}")
    faults.tell()


class Faults:
    """Counts translations that look wrong, and remembers the first few of each kind."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, list[int]] = {}

    def look(self, line: int, source: str, translation: Translation) -> None:
        """At one translation; those of blank lines are as they should be."""
        if translation.score is None:
            return
        for fault in _faults(source, translation):
            self.counts[fault] += 1
            if self.counts[fault] <= NAMED:
                self.first.setdefault(fault, []).append(line)

    def tell(self) -> None:
        for fault, count in self.counts.items():
            lines = ", ".join(map(str, self.first[fault])) + (", …" if count > NAMED else "")
            say(f"warning: {count:,} translation{'s' * (count > 1)} {fault}: line{'s' * (count > 1)} {lines}")


def _faults(source: str, translation: Translation) -> Iterator[str]:
    if translation.truncated:
        yield "ended at the length limit"
    yield from faults(source, translation.text, translation.pieces)


def faults(source: str, text: str, tokens: Sequence[str]) -> Iterator[str]:
    """What looks wrong with the translation of a line that is not blank, made of these tokens."""
    text = text.strip()
    if repeats(tokens) and not repeats(source.split()) and not repeats(source.strip()):
        yield REPEATED
    if not text:
        yield EMPTY
    if text == source.strip() and any(map(str.isalpha, text)):
        yield COPIED
    if BROKEN in text and BROKEN not in source:
        yield "came out with broken characters (U+FFFD)"


def repeats(tokens: Sequence[str]) -> bool:
    """Whether the end of a sequence is the same few tokens again and again."""
    for gram in range(1, GRAM + 1):
        end = tokens[-gram * TIMES :]
        if len(end) == gram * TIMES and end[gram:] == end[:-gram]:
            return True
    return False
