"""Claims about what a vector sees of a wrong implementation, and about kill matrices."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from judged import core, outputs_of, ran, vectors_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge
from rnncli.judging.scoring.adequacy import Fate, Outcome, outcomes, unscored
from rnncli.judging.scoring.kill_matrix import Bug, KillMatrix, VectorRow

LOOSE = Rule(rtol=1e-3, atol=10)
VERDICTS = {Fate.KILLED: Verdict.DIFFERS, Fate.ACCEPTABLE: Verdict.ACCEPTABLE}
SIZES = "sizes: {seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 5}"
BIASED = f"{{op: LSTM-14, {SIZES}, inputs: {{B: uniform}}}}"


def evaluated(recurrence):
    """What the reference makes of a recurrence."""
    return backend_named("numpy").run(recurrence, Compute.FLOAT64)


class Local:
    """A mutant made here: a change of the recurrence, and one of its result."""

    def __init__(self, name, change=lambda r: r, spoil=lambda r: r, unseen=lambda _: ""):
        self.id = name
        self.change = change
        self.spoil = spoil
        self.equivalent_when = unseen

    def run(self, recurrence):
        """Evaluate."""
        return self.spoil(evaluated(self.change(recurrence)))


def no_bias(recurrence):
    """Drop the recurrent bias."""
    return replace(recurrence, Rb=None)


def spoilt(function):
    """Change Y."""
    return lambda result: replace(result, Y=function(result.Y))


RIGHT = Local("right")
NO_BIAS = Local("no-bias", no_bias, unseen=lambda r: "no recurrent bias" if r.Rb is None else "")
CUT = Local("cut", spoil=spoilt(lambda Y: Y[:-1]))
NAN = Local("nan", spoil=spoilt(lambda Y: Y * np.nan))
NUDGE = Local("nudge", spoil=spoilt(lambda Y: np.nextafter(Y, np.inf, dtype=Y.dtype)))
LOCALS = (RIGHT, NO_BIAS, CUT, NAN, NUDGE)


def fates(vector, rule=PACK_RULE, mutants=LOCALS):
    """What becomes of mutants, by id."""
    return {name: found.fate.value for name, found in outcomes(vector, mutants, rule).items()}


def test_wrong_results_are_killed():
    """Wrong numbers, shapes and NaN are seen; what is right, or within tolerance, is not."""
    (vector,) = vectors_of(BIASED)

    assert fates(vector) == {
        "right": "survived",
        "no-bias": "killed",
        "cut": "killed",
        "nan": "killed",
        "nudge": "survived",
    }


def test_what_cannot_be_seen_is_equivalent():
    """Nobody asks a vector without bias for a bias that is dropped; the reason is kept."""
    (vector,) = vectors_of(f"{{op: LSTM-14, {SIZES}}}")

    found = outcomes(vector, [NO_BIAS], PACK_RULE)["no-bias"]

    assert found == Outcome(Fate.EQUIVALENT, reason="no recurrent bias")


def test_the_rule_decides():
    """With tolerances wide enough only what is no number, or no shape, is seen."""
    (vector,) = vectors_of(BIASED)

    assert [name for name, fate in fates(vector, LOOSE).items() if fate == "killed"] == [
        "cut",
        "nan",
    ]


def test_another_reading_is_no_bug():
    """Who clips only the gates reads the specification otherwise, and is judged acceptable."""
    (vector,) = vectors_of(
        f"{{op: LSTM-14, {SIZES}, attributes: {{clip: 0.4}},"
        " inputs: {initial_c: {normal: [0, 2]}}}"
    )
    other = Local("gates-only", lambda r: replace(r, clip_hidden=not r.clip_hidden))

    found = outcomes(vector, [other], PACK_RULE)["gates-only"]
    matrix = KillMatrix("one", "", (row(vector.id, {"gates-only": found}),))

    assert (found.fate, found.reason) == (Fate.ACCEPTABLE, "answers as clip-scope=gates has it")
    assert (matrix.total.acceptable, matrix.total.percent) == (1, 100.0)
    assert matrix.survivors[0].reason == found.reason


@pytest.mark.parametrize("name", [vector.id for vector in list(core().values())[::5]])
def test_killed_is_what_verify_fails(name):
    """The kill matrix and a verdict never disagree."""
    vector = core()[name]
    recurrence = vector.recurrence
    for mutant in (RIGHT, NO_BIAS, Local("reversed", lambda r: replace(r, X=r.X[::-1]))):
        (found,) = outcomes(vector, [mutant], PACK_RULE).values()
        verdict = judge(vector, ran(outputs_of(vector, mutant.run(recurrence)))).verdict
        assert verdict is VERDICTS.get(found.fate, Verdict.PASS)


def test_what_must_be_refused_is_not_scored():
    """It has no answer that a mutant could miss."""
    rejected, right = vectors_of(
        f"{{op: LSTM-14, {SIZES}, breaks: {{shapes: {{W: [1, 12, 3]}}}}}}",
        BIASED,
    )

    assert unscored(rejected) == "must be refused"
    assert unscored(right) == ""


def test_nan_is_scored():
    """Who loses one, or makes one more, is killed; who returns them where they belong is not."""
    (vector,) = vectors_of(
        f"{{op: RNN-14, {SIZES}, golden: float64, inputs: {{X: {{special: [4, nan]}}}}}}"
    )
    lost = Local("lost", spoil=spoilt(np.nan_to_num))

    assert unscored(vector) == ""
    assert fates(vector, mutants=[RIGHT, lost, NAN, NUDGE]) == {
        "right": "survived",
        "lost": "killed",
        "nan": "killed",
        "nudge": "survived",
    }


KILLED, MISSED = Outcome(Fate.KILLED, 9.0), Outcome(Fate.SURVIVED, 0.5)
UNSEEN = Outcome(Fate.EQUIVALENT, reason="no bias")


def row(name, outcomes_by_mutant, cell="LSTM", dtype="float32"):
    """A row of a matrix."""
    return VectorRow(name, cell, dtype, outcomes_by_mutant)


MATRIX = KillMatrix(
    "some",
    "the pack's tolerances",
    (
        row("a", {"m": KILLED, "n": MISSED, "o": UNSEEN, "p": KILLED}),
        row("b", {"m": KILLED, "n": Outcome(Fate.SURVIVED, 0.9), "o": UNSEEN, "p": UNSEEN}),
        row("c", {"m": Outcome(Fate.SURVIVED, 0.0)}, cell="GRU", dtype="float16"),
    ),
    {"d": "must be refused"},
)


def test_scores_count_each_mutant_once_a_cell():
    """Killed once is killed; a mutant of two cells is two bugs; the unexercised count against."""
    lstm, gru = MATRIX.by_cell
    total = MATRIX.total

    assert (lstm.mutants, lstm.killed, lstm.survived, lstm.unexercised) == (4, 2, 1, 1)
    assert (gru.mutants, gru.killed, gru.survived, gru.unexercised) == (1, 0, 1, 0)
    assert (total.vectors, total.mutants, total.killed, total.percent) == (3, 5, 2, 40.0)
    assert [score.name for score in MATRIX.by_dtype] == ["float32", "float16"]


def test_survivors_have_reasons():
    """Never exercised, why; or how near which vector came to seeing it; or nothing changed."""
    n, o, m = MATRIX.survivors

    assert (n.bug, n.margin) == (Bug("LSTM", "n"), 0.9)
    assert n.reason == "within tolerance in 2 vectors that could show it; nearest b"
    assert (o.margin, o.reason) == (None, "never exercised: no bias")
    assert (m.bug, m.reason) == (
        Bug("GRU", "m"),
        "changes nothing in 1 vector that could show it",
    )


def test_what_only_one_vector_kills():
    """Removing a vector loses what it alone kills."""
    assert MATRIX.only == {"a": ["p"], "b": [], "c": []}
    assert MATRIX.rows[0].kills == ["m", "p"]


def test_nothing_scores_nothing():
    """Without vectors nothing survives, and no required percentage is reached."""
    empty = KillMatrix("none", "", ())

    assert (empty.total.percent, empty.survivors, empty.minimal_subset()) == (0.0, [], [])


@pytest.mark.parametrize("seed", range(20))
def test_minimal_subset_scores_the_same(seed):
    """It kills all that is killed, none of it is superfluous, and it is near the true minimum."""
    seen = np.random.default_rng(seed).random((7, 9)) < 0.3
    matrix = KillMatrix(
        "random",
        "",
        tuple(
            row(f"v{i}", {f"m{k}": KILLED if hit else MISSED for k, hit in enumerate(hits)})
            for i, hits in enumerate(seen)
        ),
    )

    chosen = [int(name[1:]) for name in matrix.minimal_subset()]

    assert chosen == sorted(chosen)
    assert (seen[chosen].any(0) == seen.any(0)).all()
    assert all((seen[[i for i in chosen if i != k]].any(0) != seen.any(0)).any() for k in chosen)
    assert len(chosen) <= math.ceil(1.5 * smallest(seen))


def smallest(seen):
    """The size of the smallest cover, by trying all."""
    return next(
        size
        for size in range(len(seen) + 1)
        for rows in itertools.combinations(range(len(seen)), size)
        if (seen[list(rows)].any(0) == seen.any(0)).all()
    )
