"""Search on scripted models, where the right answer can be read off a table."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from nmt.choice import Choice, build
from nmt.errors import ConfigError
from nmt.search.best import top
from nmt.search.constraints import Constraints
from nmt.search.ensemble import Ensemble
from nmt.search.methods import EOS, SEARCHES, Beam, Greedy, Hypothesis, Sample, Search, Sources, uniform

A, B, C, D = 4, 5, 6, 7
VOCAB = 8
NOTHING = Constraints(torch.tensor([0, 1, 2]))


class NoState:
    """For models that look at nothing but the number of the step."""

    def __init__(self, sentences: int, most: int) -> None:
        self.sentences, self.most, self.beams, self.at = sentences, most, 1, 0

    def follow(self, from_BW: Tensor) -> None:
        sentences, beams = from_BW.shape
        assert sentences == self.sentences and beams <= self.most and int(from_BW.max()) < self.beams
        self.beams = beams

    def keep(self, sentences: Tensor) -> None:
        self.sentences = len(sentences)


class Scripted:
    """The probabilities of step t are those of `table[t]`, whatever came before; the last row repeats."""

    longest: int | None = None

    def __init__(self, *table: dict[int, float]) -> None:
        self.table = table

    def correction(self, rows_N: Tensor, tokens_N: Tensor, state: NoState) -> Tensor | None:
        return None  # nothing is rounded

    def start(self, src_BS: Tensor, beams: int) -> NoState:
        return NoState(len(src_BS), beams)

    def step(self, tokens_R: Tensor, state: NoState) -> Tensor:
        assert len(tokens_R) == state.sentences * state.beams
        row = self.table[min(state.at, len(self.table) - 1)]
        state.at += 1
        probabilities = torch.tensor([row.get(i, 0.0) for i in range(VOCAB)])
        return probabilities.log().repeat(len(tokens_R), 1)


def search(how: Search, model: Scripted, *lengths: int) -> list[list[Hypothesis]]:
    src = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    return how(model, Sources(src, lengths), NOTHING)


MAKERS = {
    "greedy": Greedy,
    "sample, of one": lambda **o: Sample(top_k=1, **o),
    "beam 1": lambda **o: Beam(beam=1, **o),
    "beam 3": lambda **o: Beam(beam=3, **o),
}
every_search = pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))


def test_greedy_takes_the_most_probable_token_each_time():
    model = Scripted({A: 0.6, B: 0.4}, {C: 0.7, EOS: 0.3}, {EOS: 0.9, D: 0.1})
    [[best]] = search(Greedy(length_penalty=0.0), model, 4)
    assert best.tokens == [A, C]
    assert best.score == pytest.approx(math.log(0.6 * 0.7 * 0.9), rel=1e-5)
    assert not best.truncated


def test_the_score_is_divided_by_the_length_with_the_end_of_sentence():
    model = Scripted({A: 1.0}, {B: 0.5, EOS: 0.1}, {C: 0.5, EOS: 0.1}, {EOS: 0.5})
    for penalty in (0.0, 0.6, 1.0, 2.0, -1.0):
        [[best]] = search(Greedy(length_penalty=penalty), model, 4)
        assert best.tokens == [A, B, C]
        assert best.score == pytest.approx(math.log(0.125) / 4**penalty, rel=1e-5)


@every_search
def test_a_model_that_ends_at_once_gives_an_empty_translation(make):
    """Case 51: its end counts, so that nothing is divided by zero."""
    [[best, *_]] = search(make(length_penalty=1.0), Scripted({EOS: 0.9, A: 0.1}), 4)
    assert best.tokens == []
    assert best.score == pytest.approx(math.log(0.9), rel=1e-4)
    assert not best.truncated


@every_search
def test_a_model_that_never_ends_is_stopped_at_the_limit(make):
    """Case 51: max_ratio times the source's length plus max_extra."""
    model = Scripted({A: 0.7, B: 0.3})
    found = search(make(max_ratio=2.0, max_extra=3), model, 1, 5, 2)
    assert [len(some[0].tokens) for some in found] == [5, 13, 7]
    assert all(h.truncated for some in found for h in some)
    assert found[0][0].tokens == [A] * 5
    assert found[0][0].score == pytest.approx(math.log(0.7), rel=1e-5)


@every_search
def test_a_model_with_few_positions_is_stopped_where_they_end(make):
    model = Scripted({A: 0.7, B: 0.3})
    model.longest = 4
    found = search(make(max_ratio=2.0, max_extra=3), model, 5, 0)
    assert [len(some[0].tokens) for some in found] == [4, 3]


@every_search
def test_at_least_one_token_is_looked_for(make):
    [[best, *_]] = search(make(max_ratio=0.0, max_extra=0), Scripted({A: 0.9, EOS: 0.1}), 4)
    assert len(best.tokens) == 1


@every_search
def test_what_is_forbidden_is_never_produced(make):
    """However probable: the next best takes its place, at its own probability."""
    model = Scripted({0: 0.3, 1: 0.3, 2: 0.2, D: 0.1, A: 0.05}, {EOS: 1.0})
    how = make(length_penalty=0.0)
    sources = Sources(torch.zeros(1, 3, dtype=torch.long), [3])
    [found] = how(model, sources, Constraints(torch.tensor([0, 1, 2, D])))
    assert found[0].tokens == [A]
    assert found[0].score == pytest.approx(math.log(0.05), rel=1e-4)
    assert not {0, 1, 2, D} & {token for h in found for token in h.tokens}


class Branching(Scripted):
    """Greedy goes wrong here: A is the better start, but only B leads to a probable end."""

    def step(self, tokens_R: Tensor, state: NoState) -> Tensor:
        following = {2: {A: 0.6, B: 0.4}, A: {C: 0.5, D: 0.5}, B: {EOS: 1.0}}
        rows = [[following.get(int(t), {EOS: 0.4, C: 0.3, D: 0.3}).get(i, 0.0) for i in range(VOCAB)] for t in tokens_R]
        return torch.tensor(rows).log()


def test_beam_search_finds_what_greedy_misses():
    [[greedy]] = search(Greedy(length_penalty=0.0), Branching(), 4)
    [[best, *_]] = search(Beam(beam=2, length_penalty=0.0), Branching(), 4)
    assert greedy.tokens[0] == A
    assert best.tokens == [B]
    assert best.score == pytest.approx(math.log(0.4), rel=1e-4)


def test_hypotheses_are_distinct_and_sorted():
    [found] = search(Beam(beam=4, length_penalty=1.0), Branching(), 4)
    assert len(found) >= 4
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({tuple(h.tokens) for h in found}) == len(found)


def test_an_end_of_sentence_below_the_first_beams_retires_nothing():
    """2 beams: eos is only the third of the four continuations, so the sentence goes on without it."""
    model = Scripted({A: 0.5, B: 0.3, EOS: 0.2}, {EOS: 0.9, C: 0.1})
    [found] = search(Beam(beam=2, length_penalty=0.0), model, 4)
    assert [h.tokens for h in found] == [[A], [B]]


def test_a_beam_wider_than_the_vocabulary_works():
    [found] = search(Beam(beam=20, max_ratio=0.0, max_extra=2), Scripted({A: 0.5, EOS: 0.5}), 4)
    assert {tuple(h.tokens) for h in found} >= {(), (A,), (A, A)}


@pytest.mark.parametrize("size", [3, 64, 640, 641, 5003, 33_000])
def test_the_best_tokens_are_those_of_topk(size: int):
    """Whatever the vocabulary's size, where forbidden tokens are -inf, and where little else is left."""
    scores = torch.randn(6, size, generator=torch.Generator().manual_seed(size))
    scores[:, ::3] = -torch.inf
    scores[0, 2:] = -torch.inf
    count = min(10, size)
    values, tokens = top(scores, count)
    assert torch.equal(values, scores.topk(count, dim=1).values)
    assert torch.equal(values, scores.gather(1, tokens))
    assert all(len(set(row)) == count for row in tokens.tolist())


def test_an_exact_stop_waits_for_what_may_still_be_better():
    """Two short hypotheses retire before the long one, which the penalty makes the best, comes to its end."""
    model = Scripted({A: 0.7, EOS: 0.3}, {A: 0.6, EOS: 0.4})
    [[early, *_]] = search(Beam(beam=2, max_length=6), model, 4)
    [[best, *_]] = search(Beam(beam=2, max_length=6, stop="exact"), model, 4)
    assert early.tokens == [A]
    assert best.tokens == [A] * 6
    assert best.score == pytest.approx(math.log(0.7 * 0.6**5) / 6, abs=1e-5)
    assert best.score > early.score
    [[short, *_]] = search(Beam(beam=2, max_length=6, stop="exact", length_penalty=-1.0), model, 4)
    assert short.tokens == []


def test_no_beam_is_an_error():
    with pytest.raises(ConfigError, match="`beam` of `beam` must be an integer >= 1"):
        build(SEARCHES, Choice("beam", {"beam": 0}))


def test_a_larger_length_penalty_never_gives_shorter_translations():
    """Case 50: over many models, the mean length rises with the penalty, as the help text says."""
    rng = torch.Generator().manual_seed(1)
    models = []
    for _ in range(40):
        table = torch.rand(6, 5, generator=rng).softmax(-1).tolist()
        models.append(Scripted(*({EOS: r[0], A: r[1], B: r[2], C: r[3], D: r[4]} for r in table)))
    lengths = []
    for penalty in (-1.0, 0.0, 0.6, 1.0, 2.0):
        how = Beam(beam=4, length_penalty=penalty)
        lengths.append(sum(len(search(how, model, 4)[0][0].tokens) for model in models))
    assert lengths == sorted(lengths)
    assert lengths[0] < lengths[-1]


@every_search
def test_sentences_of_a_batch_do_not_see_each_other(make):
    """Case 46: each sentence is found as if it were alone, though the others end earlier or later."""
    model = Scripted({A: 0.5, B: 0.3, EOS: 0.2}, {C: 0.6, D: 0.3, EOS: 0.1})
    how = make(max_ratio=1.0, max_extra=0)
    lengths = [3, 1, 6, 2, 6]
    together = search(how, model, *lengths)
    for length, found in zip(lengths, together, strict=True):
        assert found == search(how, model, length)[0]


@every_search
def test_log_probabilities_add_up_to_the_score(make):
    """One for each token and one for the end of sentence."""
    model = Scripted({A: 0.6, B: 0.3, EOS: 0.1}, {C: 0.7, EOS: 0.3}, {EOS: 0.9, D: 0.1})
    for h in search(make(length_penalty=1.0), model, 4)[0]:
        assert len(h.log_probs) == len(h.tokens) + (not h.truncated)
        assert sum(h.log_probs) / len(h.log_probs) == pytest.approx(h.score, abs=1e-5)
        assert h.tokens[:1] != [A] or h.log_probs[0] == pytest.approx(math.log(0.6), abs=1e-5)


@every_search
def test_no_translation_ends_before_the_least_length(make):
    """But at the limit, if that comes first."""
    model = Scripted({EOS: 0.9, A: 0.06, B: 0.04})
    for h in search(make(min_length=3), model, 4)[0]:
        assert len(h.tokens) >= 3 and not h.truncated
    [[best, *_]] = search(make(min_length=30, max_ratio=0.0, max_extra=5), model, 4)
    assert best.tokens == [A] * 5 and best.truncated


@every_search
def test_the_most_tokens_may_be_given(make):
    found = search(make(max_length=2), Scripted({A: 0.7, B: 0.3}), 1, 9)
    assert [len(some[0].tokens) for some in found] == [2, 2]


@every_search
def test_nothing_is_said_twice_where_that_is_not_wanted(make):
    """A model that would say A for ever; once for single tokens, and no pair of them twice."""
    model = Scripted({A: 0.6, B: 0.25, C: 0.1, D: 0.05})
    limits = {"max_ratio": 0.0, "max_extra": 6}
    [[single, *_]] = search(make(no_repeat_ngram=1, max_ratio=0.0, max_extra=4), model, 4)
    assert sorted(single.tokens) == [A, B, C, D]
    for size in (2, 3):
        for h in search(make(no_repeat_ngram=size, **limits), model, 4)[0]:
            ngrams = [tuple(h.tokens[i : i + size]) for i in range(len(h.tokens) - size + 1)]
            assert len(ngrams) == len(set(ngrams)) == 7 - size
    [[best, *_]] = search(make(no_repeat_ngram=2, **limits), model, 4)
    assert (A, A) in list(zip(best.tokens, best.tokens[1:], strict=False))


@every_search
def test_banned_phrases_never_appear(make):
    """Of one token, and of two, which may still stand apart."""
    model = Scripted({A: 0.8, B: 0.2}, {B: 0.6, C: 0.4}, {A: 0.6, D: 0.4}, {EOS: 1.0})
    sources = Sources(torch.zeros(1, 4, dtype=torch.long), [4])
    [found] = make()(model, sources, Constraints(NOTHING.forbidden, [[A, B], [D], [B, A, C, A, A, A]]))
    assert found[0].tokens == [A, C, A]
    for h in found:
        assert D not in h.tokens and (A, B) not in list(zip(h.tokens, h.tokens[1:], strict=False))


@every_search
def test_a_translation_begins_as_it_is_told(make):
    """Each sentence with its own beginning, or none; its tokens count for the score."""
    model = Scripted({A: 0.5, B: 0.3, C: 0.2}, {A: 0.6, B: 0.3, C: 0.1}, {EOS: 0.9, A: 0.1})
    sources = Sources(torch.zeros(3, 4, dtype=torch.long), [4, 4, 4], prefixes=[[C], [], [B, C]])
    found = make(length_penalty=0.0)(model, sources, NOTHING)
    assert [some[0].tokens for some in found] == [[C, A], [A, A], [B, C]]
    assert found[2][0].score == pytest.approx(math.log(0.3 * 0.1 * 0.9), abs=1e-4)
    assert all(h.tokens[0] == C for h in found[0])


@every_search
def test_what_is_told_holds_against_all_else(make):
    """A beginning may be of tokens that are forbidden, banned or repeated, and does not count for the length limit."""
    model = Scripted({A: 0.5, B: 0.5}, {A: 0.5, B: 0.3, C: 0.2}, {B: 0.9, EOS: 0.1}, {EOS: 1.0})
    constraints = Constraints(torch.tensor([0, 1, 2, A]), [[A]])
    sources = Sources(torch.zeros(2, 1, dtype=torch.long), [1, 1], prefixes=[[A, A], []])
    found = make(no_repeat_ngram=1, max_ratio=0.0, max_extra=2)(model, sources, constraints)
    assert found[0][0].tokens == [A, A, B] and not found[0][0].truncated
    assert A not in found[1][0].tokens


class Rounded(Scripted):
    """Knows its probabilities to one digit only, and better when asked."""

    def __init__(self, rough: dict[int, float], exact: dict[int, float]) -> None:
        super().__init__(rough, {EOS: 1.0})  # the last step ends
        self.exact = exact

    def correction(self, rows_N: Tensor, tokens_N: Tensor, state: NoState) -> Tensor | None:
        known = self.exact if state.at == 1 else {}
        rough = self.table[min(state.at, len(self.table)) - 1]
        return torch.tensor([math.log(known[t] / rough[t]) if t in known else 0.0 for t in tokens_N.tolist()])


@pytest.mark.parametrize("width", [2, 3])
def test_the_best_are_chosen_by_exact_scores(width: int):
    model = Rounded({A: 0.3, B: 0.3, C: 0.3, EOS: 0.1}, {A: 0.33, B: 0.26, C: 0.30, EOS: 0.11})
    [found] = search(Beam(beam=width, length_penalty=0.0), model, 4)
    assert [h.tokens for h in found] == [[A], [C], [B]][:width]
    assert [h.score for h in found] == pytest.approx([math.log(p) for p in (0.33, 0.30, 0.26)[:width]], abs=1e-5)


def test_greedy_scores_are_exact():
    """Of what is not looked at the probability is taken as it is: here that of all but the best two is right."""
    model = Rounded({A: 0.5, B: 0.4, EOS: 0.1}, {A: 0.55, B: 0.35})
    [[best]] = search(Greedy(length_penalty=0.0), model, 4)
    assert best.tokens == [A] and best.score == pytest.approx(math.log(0.55), abs=1e-5)


@pytest.mark.parametrize("method", [Greedy(length_penalty=0.0), Beam(beam=2, length_penalty=0.0)])
def test_what_one_token_gains_the_others_lose(method: Search):
    """A probability stays below 1, however much too small it was."""
    [[best, *_]] = search(method, Rounded({A: 0.9, B: 0.05, EOS: 0.05}, {A: 1.2}), 4)
    assert best.tokens == [A] and best.score == pytest.approx(math.log(1.2 / 1.3), abs=1e-5)


def draws(count: int, first: int = 0, **options: float) -> list[list[int]]:
    model = Scripted({A: 0.5, B: 0.3, C: 0.15, D: 0.05}, {EOS: 1.0})
    sources = Sources(torch.zeros(count, 1, dtype=torch.long), [1] * count, range(first, first + count))
    return [some[0].tokens for some in Sample(**options)(model, sources, NOTHING)]


def test_samples_are_distributed_as_the_model_says():
    found = [tokens[0] for tokens in draws(4000)]
    for token, share in ((A, 0.5), (B, 0.3), (C, 0.15), (D, 0.05)):
        assert found.count(token) / 4000 == pytest.approx(share, abs=0.03)
    sharp = [tokens[0] for tokens in draws(2000, temperature=0.5)]  # probabilities squared, then made to add up to 1
    assert sharp.count(A) / 2000 == pytest.approx(0.25 / 0.365, abs=0.04)


def test_samples_keep_to_the_most_probable_tokens():
    assert {tokens[0] for tokens in draws(500, top_k=2)} == {A, B}
    assert {tokens[0] for tokens in draws(500, top_p=0.6)} == {A, B}
    assert {tokens[0] for tokens in draws(500, top_p=0.81)} == {A, B, C}
    assert {tokens[0] for tokens in draws(500, top_p=0.01)} == {A}
    assert {tokens[0] for tokens in draws(500, top_k=3, top_p=0.45)} == {A}  # of what the k leave: 0.53


def test_a_sample_depends_on_seed_and_line_and_not_on_the_batch():
    """Case 55."""
    together = draws(50)
    assert together == draws(50)
    assert together == [tokens for i in range(50) for tokens in draws(1, i)]
    assert together != draws(50, seed=2)
    assert together != draws(50, first=50)


def test_random_numbers_are_spread_evenly():
    numbers = uniform(1, range(20_000), 3)
    assert numbers.min() >= 0 and numbers.max() < 1
    assert numbers.mean() == pytest.approx(0.5, abs=0.01)
    shares = [((numbers >= i / 10) & (numbers < (i + 1) / 10)).mean() for i in range(10)]
    assert shares == pytest.approx([0.1] * 10, abs=0.01)
    following = uniform(1, range(20_000), 4)
    assert abs(((numbers - 0.5) * (following - 0.5)).mean()) < 0.003


def test_an_ensemble_predicts_the_mean_of_its_models():
    """A is best for neither sum of log-probabilities nor for one of them alone, but B is for the mean."""
    models = [Scripted({A: 0.9, B: 0.1}, {EOS: 1.0}), Scripted({B: 0.95, A: 0.05}, {EOS: 1.0})]
    ensemble = Ensemble(models)
    [[best, *_]] = search(Beam(beam=2, length_penalty=0.0), ensemble, 4)
    assert best.tokens == [B]
    assert best.score == pytest.approx(math.log((0.1 + 0.95) / 2), abs=1e-5)
    models[1].longest = 7
    assert ensemble.longest == 7
