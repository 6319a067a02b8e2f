"""Scores of translations against references, by sacrebleu: a value never goes without its signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmt.choice import Natural
from nmt.errors import ConfigError

# sacrebleu's 13a splits at spaces and punctuation, so these languages need a tokenizer of their own.
TOKENIZERS = {"zh": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
ALIASES = {"zho": "zh", "chi": "zh", "cmn": "zh", "yue": "zh", "cn": "zh", "jpn": "ja", "kor": "ko"}


def language_of(code: str) -> str:
    """The language of a code like zh, zh-CN, zho_Hans or cmn, two letters for those of TOKENIZERS."""
    language = code.replace("_", "-").split("-")[0].lower()
    return ALIASES.get(language, language)


@dataclass(frozen=True)
class Score:
    """A number and how it was made."""

    name: str
    value: float
    signature: str

    def tree(self) -> dict[str, Any]:
        return {"value": self.value, "signature": self.signature}


class Metric(Protocol):
    def __call__(self, hypotheses: list[str], references: list[list[str]]) -> Score:
        """`references` holds one list of lines for each reference translation of the whole set."""


class _Sacrebleu:
    def __init__(self, name: str, metric: Any) -> None:
        self.name, self.metric = name, metric

    def __call__(self, hypotheses: list[str], references: list[list[str]]) -> Score:
        value = self.metric.corpus_score(hypotheses, references).score
        return Score(self.name, value, str(self.metric.get_signature()))


def bleu(tgt_lang: str, *, tokenize: str = "auto", lowercase: bool = False) -> Metric:
    """BLEU (Papineni et al. 2002; Post 2018); the tokenizer follows the target language unless it is named."""
    language = language_of(tgt_lang)
    chosen = TOKENIZERS.get(language, "13a") if tokenize == "auto" else tokenize
    try:
        return _Sacrebleu("bleu", BLEU(tokenize=chosen, lowercase=lowercase))
    except (ImportError, RuntimeError, OSError) as error:
        raise ConfigError(
            f"metrics.bleu: the tokenizer {chosen} for `{tgt_lang}` needs more packages: "
            f"pip install 'sacrebleu[{chosen.split('-')[0]}]' ({str(error).strip().splitlines()[0]})"
        ) from None
    except (KeyError, ValueError):
        known = ", ".join(sorted(BLEU.TOKENIZERS))
        raise ConfigError(f"metrics.bleu: tokenize must be auto or one of {known}, but is {chosen!r} instead") from None


def chrf(tgt_lang: str, *, word_order: Natural = 0, lowercase: bool = False) -> Metric:
    """chrF (Popovic 2015); word_order 2 makes it chrF++."""
    return _Sacrebleu("chrf", CHRF(word_order=word_order, lowercase=lowercase))


def ter(
    tgt_lang: str,
    *,
    normalized: bool = False,
    asian_support: Literal["auto"] | bool = "auto",
    case_sensitive: bool = False,
) -> Metric:
    """Translation edit rate (Snover et al. 2006): lower is better. asian_support auto: for zh, ja and ko."""
    asian = language_of(tgt_lang) in TOKENIZERS if asian_support == "auto" else asian_support
    metric = TER(normalized=normalized or asian, asian_support=asian, case_sensitive=case_sensitive)
    return _Sacrebleu("ter", metric)


def of_sentences(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[float]:
    """chrF of each line by itself, against the references beside it: to sort sentences, not to report."""
    metric = CHRF()
    return [metric.sentence_score(one, list(refs)).score for one, refs in zip(hypotheses, references, strict=True)]


METRICS: Mapping[str, Callable[..., Metric]] = {"bleu": bleu, "chrf": chrf, "ter": ter}
LOWER_IS_BETTER = ("nll", "ter")
