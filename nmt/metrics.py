"""Scores of translations against references, by sacrebleu: a value never goes without its signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from nmt.choice import Natural, did_you_mean
from nmt.data.languages import base_language
from nmt.errors import ConfigError, DataError

# sacrebleu's 13a splits at spaces and punctuation, so these languages need a tokenizer of their own.
TOKENIZERS = {"zh": "zh", "yue": "zh", "cn": "zh", "ja": "ja-mecab", "ko": "ko-mecab"}
RESAMPLES = 1000
CHRF_PLUS_PLUS = 2  # its order of words


@dataclass(frozen=True)
class Score:
    """A number and how it was made."""

    name: str
    value: float
    signature: str
    interval: tuple[float, float] | None = None  # 95%, where it was resampled
    p_value: float | None = None  # of the difference to the first of several systems
    length_ratio: float | None = None  # of BLEU: its tokens to those of the nearest references

    def tree(self) -> dict[str, Any]:
        resampled = {"interval": self.interval and list(self.interval), "p_value": self.p_value}
        known = {key: value for key, value in resampled.items() if value is not None}
        return {"value": self.value, "signature": self.signature, **known}


class Metric(Protocol):
    """`references` holds one list of lines for each reference translation of the whole set."""

    def __call__(self, hypotheses: list[str], references: list[list[str]]) -> Score:
        """The score of one system."""

    def resampled(self, systems: Sequence[list[str]], references: list[list[str]]) -> list[Score]:
        """Scores with intervals by bootstrap resampling; those after the first with a paired test against it."""


class _Sacrebleu:
    def __init__(self, name: str, metric: Any) -> None:
        self.name, self.metric = name, metric

    def __call__(self, hypotheses: list[str], references: list[list[str]]) -> Score:
        found = self.metric.corpus_score(hypotheses, references)
        ratio = getattr(found, "ratio", None)
        return Score(self.name, found.score, str(self.metric.get_signature()), length_ratio=ratio)

    def resampled(self, systems: Sequence[list[str]], references: list[list[str]]) -> list[Score]:
        named: Any = [(str(number), hypotheses) for number, hypotheses in enumerate(systems)]
        answer: Any = PairedTest(named, {self.name: self.metric}, references, "bs", RESAMPLES)()
        [signature], [_, found] = (list(of_metric.values()) for of_metric in answer)
        scores = []
        for hypotheses, one in zip(systems, found, strict=True):
            mean, half = float(one.mean), float(one.ci)
            interval = mean - half, mean + half
            score = self(hypotheses, references)
            scores.append(replace(score, signature=str(signature), interval=interval, p_value=one.p_value))
        return scores


def bleu(tgt_lang: str, *, tokenize: str = "auto", lowercase: bool = False) -> Metric:
    """BLEU (Papineni et al. 2002; Post 2018); the tokenizer follows the target language unless it is named."""
    language = base_language(tgt_lang)
    chosen = TOKENIZERS.get(language, "13a") if tokenize == "auto" else tokenize
    try:
        # sacrebleu advises against text that is tokenised already: whoever says `none` means it.
        return _Sacrebleu("bleu", BLEU(tokenize=chosen, lowercase=lowercase, force=chosen == "none"))
    except OSError as error:  # a model that has to be fetched
        raise ConfigError(f"metrics.bleu: the tokenizer {chosen} cannot be fetched: {error}") from None
    except (ImportError, RuntimeError) as error:
        raise ConfigError(
            f"metrics.bleu: the tokenizer {chosen} for `{tgt_lang}` needs more packages: "
            f"pip install 'sacrebleu[{chosen.split('-')[0]}]' ({str(error).strip().splitlines()[0]})"
        ) from None
    except (KeyError, ValueError):
        known = ", ".join(sorted(BLEU.TOKENIZERS))
        raise ConfigError(f"metrics.bleu: tokenize must be auto or one of {known}, but is {chosen!r} instead") from None


def chrf(tgt_lang: str, *, word_order: Natural = 0, lowercase: bool = False) -> Metric:
    """chrF (Popovic 2015)."""
    return _Sacrebleu("chrf", CHRF(word_order=word_order, lowercase=lowercase))


def chrf_plus_plus(tgt_lang: str, *, lowercase: bool = False) -> Metric:
    """chrF++ (Popovic 2017): chrF with word_order 2."""
    return _Sacrebleu("chrf++", CHRF(word_order=CHRF_PLUS_PLUS, lowercase=lowercase))


def ter(
    tgt_lang: str,
    *,
    normalized: bool = False,
    asian_support: Literal["auto"] | bool = "auto",
    case_sensitive: bool = False,
) -> Metric:
    """Translation edit rate (Snover et al. 2006): lower is better. asian_support auto: for zh, ja and ko."""
    asian = base_language(tgt_lang) in TOKENIZERS if asian_support == "auto" else asian_support
    metric = TER(normalized=normalized or asian, asian_support=asian, case_sensitive=case_sensitive)
    return _Sacrebleu("ter", metric)


METRICS: Mapping[str, Callable[..., Metric]] = {"bleu": bleu, "chrf": chrf, "chrf++": chrf_plus_plus, "ter": ter}
LOWER_IS_BETTER = ("nll", "ter")


def sentence_chrf(hypothesis: str, references: Sequence[str]) -> float:
    """chrF of a line by itself: to sort sentences, not to report."""
    return float(CHRF().sentence_score(hypothesis, references).score)


class Published(NamedTuple):
    """A test set that sacrebleu knows, as files in its cache."""

    src: str
    refs: list[str]
    tgt_lang: str


def published(name: str) -> Published:
    """The set of a name like wmt20/en-de, fetched if it is not in sacrebleu's cache ($SACREBLEU, or ~/.sacrebleu)."""
    from sacrebleu.dataset import DATASETS  # takes long to load
    from sacrebleu.utils import SACREBLEU_DIR

    test, _, pair = name.rpartition("/")
    if test not in DATASETS:
        raise ConfigError(
            f"-t {name}: sacreBLEU knows no test set `{test}`{did_you_mean(test, DATASETS)}; see `sacrebleu --list`"
        )
    found: Any = DATASETS[test]
    if pair not in found.langpairs:
        raise ConfigError(f"-t {name}: `{test}` has no `{pair}`; its languages are {', '.join(found.langpairs)}")
    try:
        src, refs = found.get_source_file(pair), found.get_reference_files(pair)
    except (OSError, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code != 1:  # a signal; sacrebleu itself ends with 1
            raise
        raise DataError(
            f"-t {name}: is not in sacreBLEU's cache {SACREBLEU_DIR} and cannot be fetched ({error}); where there is a "
            f"network, `sacrebleu --download {test} -l {pair}` puts it there"
        ) from None
    if not refs:
        raise DataError(f"-t {name}: sacreBLEU has no references for it")
    return Published(src, refs, pair.rpartition("-")[2])
