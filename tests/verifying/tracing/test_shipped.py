"""Claims about what ships: core leaves no statement of an ONNX operator unchecked."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from support.shipped import vectors
from support.tables import every

from rnncli.operators import OPERATORS
from rnncli.verifying.scoring import ScoringPlan, select
from rnncli.verifying.tracing.conditions import TracedCase
from rnncli.verifying.tracing.statements import STATEMENTS, CheckKind
from rnncli.verifying.tracing.tracing import MISSING, CoverageState, TraceMatrix, trace_all

CORE = Path(__file__).parents[3] / "vectors" / "core"
# Statements that core leaves unchecked, and why.
OPEN: dict[str, str] = {}
OPEN_IN_REJECT: dict[str, str] = {}
# Conditions that no shipped case fails, and why.
ALWAYS_TRUE = {
    "equations.transpose.early": "every case of these versions multiplies a state by R",
    "outputs.y_h-required": "every case of GRU-1 asks for it, as the statement says",
    "inputs.end-early": "false only where every input is given, which some operator has no case of",
    "linear_before_reset.refused-early": "GRU-1 has no other case that must be refused",
    "layout.refused-early": "opset 7 has no other case that must be refused",
}


@cache
def traced(suite: str) -> TraceMatrix:
    """The matrix of a pack or suite."""
    plan = ScoringPlan(suite=suite)
    return trace_all(plan, select(plan), lambda _: None)


@cache
def cases() -> list[TracedCase]:
    """The cases of core and of the suite of rejections."""
    return [TracedCase(vector) for suite in ("core", "reject") for vector in vectors(suite)]


def test_core_checks_every_statement_that_a_result_can_check():
    """Of every ONNX operator, but those that are listed with the reason."""
    assert missing_in(str(CORE)) - set(OPEN) == set()


def test_reject_checks_every_statement_that_a_refusal_can_check():
    """Of every operator."""
    assert missing_in("reject") - set(OPEN_IN_REJECT) == set()


def test_openvino_checks_every_statement_that_a_result_can_check():
    """Of its sequences and its cells."""
    assert missing_in("openvino") == set()


def test_webnn_checks_every_statement_that_a_result_can_check():
    """Of its networks and their cells."""
    assert missing_in("webnn") == set()


def test_the_quantised_suites_check_every_statement_that_a_result_can_check():
    """What the small cases leave unchecked, those beyond vectors and tiles check."""
    assert missing_in("quantised") & missing_in("quantised_tiles") == set()


@every("suite", ["openvino", "openvino_tiles", "webnn", "webnn_tiles", "quantised_tiles"])
def test_each_suite_of_a_sibling_is_traced(suite):
    """By the statements of the operators that it has cases of."""
    matrix = traced(suite)

    assert {row.statement.operator for row in matrix.coverage()} == set(matrix.operators)


def test_every_operator_has_statements():
    """That a result can check."""
    runs = {row.operator for row in STATEMENTS.values() if row.kind is CheckKind.RESULT}

    assert runs == {row.family for row in OPERATORS.values()}


def test_no_statement_is_listed_that_is_checked():
    """A list of what is open gets shorter."""
    assert set(OPEN) - missing_in(str(CORE)) == set()
    assert set(OPEN_IN_REJECT) - missing_in("reject") == set()


def missing_in(suite):
    """The ids of the statements that a pack or suite leaves unchecked, or checks partly."""
    return {each.statement.id for each in traced(suite).coverage() if each.state in MISSING}


def test_every_statement_of_onnx_is_checked_listed_or_untestable():
    """Core and reject together leave nothing to chance."""
    states = {}
    for suite in (str(CORE), "reject"):
        for each in traced(suite).coverage():
            if each.state is not CoverageState.BEYOND:
                states[each.statement.id] = each.state
    onnx = {row.id for row in STATEMENTS.values() if row.dialect == "ONNX"}
    refused = {row.id for row in STATEMENTS.values() if row.kind is CheckKind.REJECTION}

    assert set(states) >= onnx | refused
    assert {id_ for id_, state in states.items() if state in MISSING} <= {*OPEN, *OPEN_IN_REJECT}


OPERATED = {row.type for row in OPERATORS.values() if row.dialect == "ONNX"}
# Those that are true of every case on purpose have no words.
CONDITIONED = [row for row in STATEMENTS.values() if row.operator in OPERATED and row.when.words]


@every("name", sorted({row.name for row in CONDITIONED}))
def test_a_condition_is_not_true_of_every_case(name):
    """Of the cases of its operators, versions and kind some fail it, or there is a reason."""
    rows = [row for row in CONDITIONED if row.name == name]
    reach = [(row, case) for row in rows for case in cases() if is_in_reach(row, case)]

    assert any(not row.when.holds(case) for row, case in reach) or name in ALWAYS_TRUE


def is_in_reach(row, case):
    """Whether a case is of a statement's operator, versions and kind."""
    kind = CheckKind.REJECTION if case.is_rejection else CheckKind.RESULT
    same = (case.operator.type, kind) == (row.operator, row.kind)
    return same and case.operator.version in row.versions
