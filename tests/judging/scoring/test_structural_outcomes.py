"""Claims about what vectors see of structural mutants, and about what they cover besides."""

from __future__ import annotations

from judged import core, vectors_of

from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.scoring.adequacy import Fate, Outcome
from rnncli.judging.scoring.coverage import coverage_of
from rnncli.judging.scoring.kill_matrix import KillMatrix, VectorRow, row_of, whole_row
from rnncli.judging.scoring.structural_outcomes import best_of, structural_outcomes
from rnncli.mutants.catalogue import STRUCTURAL, structural_of
from rnncli.mutants.structural.bug import Reach

SIZES = "sizes: {{seq_length: 3, batch_size: 2, input_size: 3, hidden_size: {}}}"


def fates(case):
    """What becomes of every structural mutant, by id."""
    (vector,) = vectors_of(f"{{op: LSTM-14, {case}, inputs: {{B: uniform}}}}")
    return {name: found.fate for name, found in structural_outcomes(vector, PACK_RULE).items()}


def test_a_size_beyond_an_edge_kills_what_small_ones_cannot():
    """A tail behind a vector of 8 units shows at 9, and neither at 5 nor at 16."""
    tail = "unit-tail-not-activated-8"

    assert fates(SIZES.format(9))[tail] is Fate.KILLED
    assert fates(SIZES.format(5))[tail] is Fate.EQUIVALENT
    assert fates(SIZES.format(16))[tail] is Fate.EQUIVALENT


def test_only_a_second_call_shows_what_is_kept():
    """A buffer of the call before is right in the first call."""
    once, twice = fates(SIZES.format(5)), fates(f"{SIZES.format(5)}, calls: 2")
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


def row(name, outcomes, **sizes):
    """A vector that sees some structural mutants."""
    given = {"T": 5, "N": 3, "I": 2, "H": 5} | sizes
    return VectorRow(name, "RNN", "float32", {}, "RNN-14", given, 1, outcomes)


def test_sized_and_size_free_are_counted_apart():
    """By what it takes to see them, and by family."""
    killed, unseen = Outcome(Fate.KILLED, 9.0), Outcome(Fate.EQUIVALENT, reason="not reached: x")
    names = ("nan-in-padding-of-r-8", "unit-tail-not-activated-8", "kept-w")
    rows = (row("a", dict(zip(names, (killed, unseen, unseen), strict=True))),)
    structural = KillMatrix("one", "", rows).structural

    assert [(each.name, each.killed, each.mutants) for each in structural.by_reach] == [
        ("size-free", 1, 1),
        ("sized", 0, 1),
        ("second call", 0, 1),
    ]
    assert [each.name for each in structural.by_family] == [STRUCTURAL[n].family for n in names]


def test_what_is_not_covered_is_said():
    """Edges that no size crosses, a size of 1, second calls, threads, dtypes, other opsets."""
    found = {each.what: each for each in coverage_of([row("a", {}), row("b", {}, H=33, T=1)])}

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
    found = coverage_of([row("a", {}, **sizes), row("b", {}, **dict.fromkeys("TNIH", 1))])

    assert [each.missing for each in found[:4]] == [""] * 4
