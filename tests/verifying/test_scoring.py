"""Claims about scoring: what is chosen, what it is judged by, and what the shipped suites see."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.judged import outputs_of
from support.shipped import vectors

from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.scoring.adequacy import Fate, outcomes
from rnncli.mutants.catalogue import scored_of
from rnncli.operators import operator_named
from rnncli.packs.pack import open_pack
from rnncli.recurrence.cells import CELLS
from rnncli.verifying.scoring import ONNX_RULE, ScoringPlan, score_all, select

CORE = str(Path(__file__).parents[2] / "vectors" / "core")
# Every cell and dtype, a second call, another reading, and in each what its mutants cannot show.
SOME = "dtype or twice or clip_scope"


@cache
def scored(suite, selection=SOME):
    """The kill matrix of some cases of a suite."""
    plan = ScoringPlan(suite=suite, selection=selection)
    return score_all(plan, select(plan), lambda _: None)


def test_every_mutant_is_put_to_every_vector():
    """A row holds each mutant of its cell, in the order of the table."""
    matrix = scored(CORE)

    assert matrix.name == "core"
    assert matrix.unscored == {}
    for row in matrix.rows:
        assert list(row.outcomes) == [mutant.id for mutant in scored_of(row.cell)]


def test_margins_say_the_fate():
    """Beyond 1 where it shows, up to 1 where it survives, none where nothing can be seen."""
    shows = {Fate.KILLED, Fate.ACCEPTABLE}
    for row in scored(CORE).rows:
        for found in row.outcomes.values():
            assert (found.margin > 1) == (found.fate in shows)
            assert found.fate is not Fate.EQUIVALENT or (found.margin == 0 and found.reason)


def test_progress_counts_every_case():
    """What is done adds up."""
    plan = ScoringPlan(suite=CORE, selection="rnn_7 or gru_7")
    counts = []

    score_all(plan, selected := select(plan), counts.append)

    assert sum(counts) == len(selected.outputs) == 2


def test_a_suite_and_its_pack_have_one_matrix():
    """Made in memory or read back, the vectors are the same."""
    assert scored("core") == scored(CORE)


@pytest.mark.parametrize("name", ["gru_14_after", "lstm_14_peepholes", "rnn_14_activations"])
def test_onnx_rule_is_onnxs_own(name):
    """What ONNX's test runner lets pass survives, and nothing else; its defaults are these."""
    (vector,) = (v for v in open_pack(CORE).vectors() if v.id == name)
    recurrence = vector.recurrence
    mutants = scored_of(recurrence.cell.name)
    for mutant in mutants:
        found = outcomes(vector, [mutant], ONNX_RULE)[mutant.id]
        got = outputs_of(vector, mutant.run(recurrence))
        passes = found.fate in {Fate.SURVIVED, Fate.EQUIVALENT}
        assert passes_in_onnx(got, vector.answers.outputs) == passes


def passes_in_onnx(got, wanted):
    """Compare as onnx.backend.test.runner does."""
    try:
        for name, values in wanted.items():
            np.testing.assert_equal(got[name].dtype, values.dtype)
            np.testing.assert_allclose(got[name], values, rtol=1e-3, atol=1e-7)
    except AssertionError:
        return False
    return True


def test_what_cannot_be_scored_is_refused():
    """No suite, no case, only rejections, or a tolerance of no output."""
    misspelt = Rule(atol={"Yh": 1})
    with pytest.raises(InvalidRequest, match="no such file"):
        select(ScoringPlan(suite="cora"))
    with pytest.raises(NothingSelected):
        select(ScoringPlan(suite=CORE, selection="nothing_like_it"))
    with pytest.raises(InvalidRequest, match="unknown output 'Yh'; did you mean"):
        select(ScoringPlan(suite=CORE, rule=misspelt))
    with pytest.raises(NothingSelected, match="must be refused"):
        scored("reject", selection="")


EACH = pytest.mark.parametrize("suite", ["core", "smoke", "diagnostic"])

# What 16 bits cannot show: formats that are no coarser than the tensors' own, approximations that
# are closer than rounding, and numbers below the smallest. Every other bug shows in each dtype.
FINER = {
    "float16": {
        *("h-stored-in-float16", "c-stored-in-float16", "h-stored-in-bfloat16"),
        *("c-stored-in-bfloat16", "operands-in-tf32", "operands-in-float16"),
        *("computed-in-float16", "sums-in-float16", "piecewise-linear-64"),
        *("piecewise-linear-1024", "tanh-saturates-at-3", "sigmoid-zero-below-18"),
    },
    "bfloat16": {
        *("h-stored-in-bfloat16", "c-stored-in-bfloat16", "operands-in-tf32"),
        *("operands-in-bfloat16", "computed-in-bfloat16", "table-1024", "piecewise-linear-64"),
        *("piecewise-linear-1024", "pade-tanh", "fast-exp", "tanh-saturates-at-3"),
        "sigmoid-zero-below-18",
    },
}


@cache
def uncaught(suite, dtype):
    """The mutants of each cell that no vector of a dtype catches, with their fates.

    One that is killed, or answers as another reading has it, is put to no further vector.
    """
    gated = [name for name, cell in CELLS.items() if cell.projects]
    left = {cell: {mutant: set() for mutant in scored_of(cell)} for cell in gated}
    for vector in vectors(suite):
        record = vector.record
        if record.expect == "result" and record.dtype == dtype:
            mutants = left[operator_named(record.operator).cell.name]
            for call in vector.calls:
                found = outcomes(call, mutants, PACK_RULE)
                for mutant in list(mutants):
                    mutants[mutant].add(found[mutant.id].fate)
                    if mutants[mutant] & {Fate.KILLED, Fate.ACCEPTABLE}:
                        del mutants[mutant]
    return [(mutant.id, fates) for mutants in left.values() for mutant, fates in mutants.items()]


@EACH
def test_suites_catch_every_bug_in_float32(suite):
    """What is not killed is another reading of the specification."""
    assert uncaught(suite, "float32") == []


@pytest.mark.parametrize("suite", ["openvino", "webnn"])
def test_suites_of_dialects_catch_every_bug_of_what_the_dialect_has(suite):
    """What is left never shows: a clip that nobody has, an alpha that nothing takes."""
    left = uncaught(suite, "float32")

    assert [mutant for mutant, fates in left if Fate.SURVIVED in fates] == []


@EACH
@pytest.mark.parametrize("dtype", FINER)
def test_suites_catch_in_16_bits_what_rounding_does_not_hide(suite, dtype):
    """Of the other mutants every one, whatever else a kernel can do."""
    assert {mutant for mutant, _ in uncaught(suite, dtype)} <= FINER[dtype]


def test_few_vectors_are_enough():
    """The subset that `--minimise` proposes scores what all of them do."""
    matrix = scored(CORE)
    chosen = set(matrix.minimal_subset())
    subset = replace(matrix, rows=tuple(row for row in matrix.rows if row.id in chosen))

    assert killed(subset) == killed(matrix)
    assert len(chosen) < len(matrix.rows)


def killed(matrix):
    """How many mutants of each cell are."""
    return {score.name: score.killed for score in matrix.by_cell}
