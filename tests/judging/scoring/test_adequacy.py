"""Claims about what a vector sees of a wrong implementation, and about kill matrices."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from support.judged import CORE, core, outputs_of, ran, vectors_of
from support.tables import every

from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge
from rnncli.judging.scoring.adequacy import (
    Fate,
    Outcome,
    best_of,
    outcomes,
    structural_outcomes,
    unscored,
)
from rnncli.judging.scoring.kill_matrix import (
    Bug,
    KillMatrix,
    VectorRow,
    coverage_of,
    row_of,
    whole_row,
)
from rnncli.mutants.catalogue import STRUCTURAL, structural_of
from rnncli.mutants.equivalence import always_seen
from rnncli.mutants.mutant import Change, Mutant
from rnncli.mutants.structural import Reach
from rnncli.packs.pack import open_pack

LOOSE = Rule(rtol=1e-3, atol=10)
VERDICTS = {Fate.KILLED: Verdict.DIFFERS, Fate.ACCEPTABLE: Verdict.ACCEPTABLE}
SIZES = "sizes: {seq_length: 3, batch_size: 2, input_size: 3, hidden_size: 5}"
BIASED = f"{{op: LSTM-14, {SIZES}, inputs: {{B: uniform}}}}"


def local(name, change=lambda r: r, spoil=lambda r: r, unseen=always_seen):
    """A mutant made here: a change of the recurrence, and one of its result."""
    both = Change(recurrence=change, result=lambda run, r: spoil(run(r)))
    return Mutant(name, (), "", "", "", both, unseen)


def no_bias(recurrence):
    """Drop the recurrent bias."""
    return replace(recurrence, Rb=None)


def spoilt(function):
    """Change Y."""
    return lambda result: replace(result, Y=function(result.Y))


RIGHT = local("right")
NO_BIAS = local("no-bias", no_bias, unseen=lambda r: "no recurrent bias" if r.Rb is None else "")
CUT = local("cut", spoil=spoilt(lambda Y: Y[:-1]))
NAN = local("nan", spoil=spoilt(lambda Y: Y * np.nan))
NUDGE = local("nudge", spoil=spoilt(lambda Y: np.nextafter(Y, np.inf, dtype=Y.dtype)))
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


def test_right_results_are_not_reached():
    """One whose results are right says why; that is found by running it once."""
    (vector,) = vectors_of(BIASED)
    asked = []
    copied = local("copied", spoil=lambda r: asked.append(r) or replace(r, Y=r.Y.copy()))
    nudge = replace(NUDGE, unreached="Y is right")

    found = outcomes(vector, [replace(copied, unreached="Y is right"), nudge], PACK_RULE)

    assert found["copied"] == Outcome(Fate.EQUIVALENT, reason="Y is right")
    assert found["nudge"].fate is Fate.SURVIVED
    assert len(asked) == 1


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
    other = local("gates-only", lambda r: replace(r, clip_hidden=not r.clip_hidden))

    found = outcomes(vector, [other], PACK_RULE)["gates-only"]
    matrix = KillMatrix("one", "", (row(vector.id, {"gates-only": found}),))

    assert (found.fate, found.reason) == (Fate.ACCEPTABLE, "answers as clip-scope=gates has it")
    assert (matrix.total.acceptable, matrix.total.percent) == (1, 100.0)
    assert matrix.survivors[0].reason == found.reason


def test_a_reading_that_must_be_declared_is_a_bug_without():
    """Who rounds the states of a unit otherwise and does not say so is wrong, as `verify` says."""
    units = open_pack(CORE.with_name("units")).vectors()
    vector = next(each for each in units if "requantise=state" in each.alternatives)
    other = vector.node.under({"requantise": "state"}).recurrence(vector.inputs)

    assert fates(vector, mutants=[RIGHT, local("state", lambda _: other)]) == {
        "right": "survived",
        "state": "killed",
    }


@every("name", [vector.id for vector in list(core().values())[::5]])
def test_killed_is_what_verify_fails(name):
    """The kill matrix and a verdict never disagree."""
    vector = core()[name]
    recurrence = vector.recurrence
    for mutant in (RIGHT, NO_BIAS, local("reversed", lambda r: replace(r, X=r.X[::-1]))):
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
    lost = local("lost", spoil=spoilt(np.nan_to_num))

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


SIZED = "sizes: {{seq_length: 3, batch_size: 2, input_size: 3, hidden_size: {}}}"


def structural(case):
    """What becomes of every structural mutant, by id."""
    (vector,) = vectors_of(f"{{op: LSTM-14, {case}, inputs: {{B: uniform}}}}")
    return {name: found.fate for name, found in structural_outcomes(vector, PACK_RULE).items()}


def test_a_size_beyond_an_edge_kills_what_small_ones_cannot():
    """A tail behind a vector of 8 units shows at 9, and neither at 5 nor at 16."""
    tail = "unit-tail-not-activated-8"

    assert structural(SIZED.format(9))[tail] is Fate.KILLED
    assert structural(SIZED.format(5))[tail] is Fate.EQUIVALENT
    assert structural(SIZED.format(16))[tail] is Fate.EQUIVALENT


def test_only_a_second_call_shows_what_is_kept():
    """A buffer of the call before is right in the first call."""
    once, twice = (
        structural(SIZED.format(5)),
        structural(f"{SIZED.format(5)}, calls: 2"),
    )
    kept = [row.id for row in structural_of("LSTM") if row.reach is Reach.CALLS]

    assert {once[name] for name in kept} == {Fate.EQUIVALENT}
    assert twice["kept-w"] is twice["kept-r"] is twice["kept-biases"] is Fate.KILLED
    assert twice["kept-peepholes"] is Fate.EQUIVALENT


def test_every_structural_mutant_has_an_outcome():
    """Those of its cell, in the order of the table, beside the semantic ones."""
    vector = next(iter(core().values()))
    row = whole_row(vector, PACK_RULE)

    assert list(row.structural) == [mutant.id for mutant in structural_of(row.cell)]
    assert row._replace(structural={}, of_calls=()) == row_of(vector, PACK_RULE)


def test_every_data_set_is_scored():
    """A length of the second call alone kills what ignores lengths; `kills` is of the first."""
    sizes = "sizes: {seq_length: 4, batch_size: 1, input_size: 2, hidden_size: 2}"
    text = f"{{op: RNN-14, {sizes}, calls: 2, inputs: {{sequence_lens: [4]}}}}"
    (vector,) = vectors_of(text)
    row = whole_row(vector, PACK_RULE)
    first, second = row.of_calls
    scores = {each.name: each for each in KillMatrix("two", "rule", (row,)).by_data_set}

    assert first["lengths-ignored"].fate is not Fate.KILLED
    assert second["lengths-ignored"].fate is row.outcomes["lengths-ignored"].fate is Fate.KILLED
    assert "lengths-ignored" not in row_of(vector, PACK_RULE).kills
    assert [*scores] == ["test_data_set_0", "test_data_set_1"]
    assert scores["test_data_set_0"].killed < KillMatrix("two", "rule", (row,)).total.killed


def test_the_right_kernel_is_no_mutant():
    """A mutant that changes nothing at the sizes of core survives with no error worth a name."""
    for vector in list(core().values())[::20]:
        for name, found in structural_outcomes(vector, PACK_RULE).items():
            assert found.fate is not Fate.ACCEPTABLE, name
            assert found.fate is Fate.KILLED or found.margin <= 1


def test_what_says_most_counts():
    """One call that kills is enough; of two that do not, the nearer."""
    killed, near, far = (
        Outcome(Fate.KILLED, 2.0),
        *(Outcome(Fate.SURVIVED, m) for m in (0.5, 0.1)),
    )

    assert best_of([far, killed, near]) == killed
    assert best_of([far, near]) == near


def sized(name, outcomes, **sizes):
    """A vector that sees some structural mutants."""
    given = {"T": 5, "N": 3, "I": 2, "H": 5} | sizes
    return VectorRow(name, "RNN", "float32", {}, "RNN-14", given, 1, outcomes)


def test_sized_and_size_free_are_counted_apart():
    """By what it takes to see them, and by family."""
    killed, unseen = Outcome(Fate.KILLED, 9.0), Outcome(Fate.EQUIVALENT, reason="not reached: x")
    names = ("nan-in-padding-of-r-8", "unit-tail-not-activated-8", "kept-w")
    rows = (sized("a", dict(zip(names, (killed, unseen, unseen), strict=True))),)
    structural = KillMatrix("one", "", rows).structural

    assert [(each.name, each.killed, each.mutants) for each in structural.by_reach] == [
        ("size-free", 1, 1),
        ("sized", 0, 1),
        ("second call", 0, 1),
    ]
    assert [each.name for each in structural.by_family] == [STRUCTURAL[n].family for n in names]


def test_what_is_not_covered_is_said():
    """Edges that no size crosses, a size of 1, second calls, threads, dtypes, other opsets."""
    found = {each.what: each for each in coverage_of([sized("a", {}), sized("b", {}, H=33, T=1)])}

    assert found["H, units"].covered == "5, 33, at most 33; beyond 4, 8, 16, 32"
    assert found["H, units"].missing == "1; beyond 64, 128, 256"
    assert found["T, steps"].missing == "beyond 8, 16, 32, 64, 128, 256"
    assert found["second calls"] == ("second calls", "0 of 2 cases", "2 of 2 are called once")
    assert found["threads"].covered == "nothing"
    assert "bfloat16" in found["dtypes"].missing
    assert found["operators"].missing == "RNN-1, RNN-7, RNN-22"


def test_edges_are_all_crossed_somewhere():
    """Then nothing is missing."""
    sizes = dict.fromkeys("TNIH", 300)
    found = coverage_of([sized("a", {}, **sizes), sized("b", {}, **dict.fromkeys("TNIH", 1))])

    assert [each.missing for each in found[:4]] == [""] * 4
