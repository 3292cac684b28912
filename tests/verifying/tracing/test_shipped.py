"""Claims about what ships: no statement of any version of an operator is left unchecked."""

from __future__ import annotations

from functools import cache

import pytest
from support.between_workers import made_once
from support.shipped import vectors
from support.tables import every

from rnncli.errors import NothingSelected
from rnncli.operators import OPERATORS
from rnncli.verifying.tracing.conditions import TracedCase
from rnncli.verifying.tracing.statements import STATEMENTS, CheckKind
from rnncli.verifying.tracing.tracing import MISSING, TraceMatrix, trace_of

# Dialect -> the suites that together check every statement of each version of its operators.
TOGETHER = {
    "ONNX": ("core", "smoke", "pairwise", "linear", "reject"),
    "OpenVINO": ("openvino", "reject"),
    "WebNN": ("webnn", "reject"),
    "ONNX Runtime": ("quantised", "quantised_tiles", "linear_contrib", "reject"),
}
# Conditions that no shipped case fails, and why.
ALWAYS_TRUE = {
    "equations.transpose.early": "every case of these versions multiplies a state by R",
    "outputs.y_h-required": "every case of GRU-1 asks for it, as the statement says",
    "inputs.end-early": "false only where every input is given, which some operator has no case of",
}


@cache
def traced(suite: str) -> TraceMatrix:
    """The matrix of a suite."""
    cases = made_once(f"traced-{suite}", lambda: tuple(map(trace_of, vectors(suite))))
    return TraceMatrix(suite, cases)


@cache
def cases() -> list[TracedCase]:
    """The cases of core, of linear, of rejections, and of a version of which core has few."""
    parts = (("core",), ("reject",), ("linear",), ("pairwise", "gru_1_"))
    return [TracedCase(vector) for part in parts for vector in vectors(*part)]


def unchecked(row):
    """What no case of a version checks: statements, each with its violations that none notices."""
    left = {
        each: {"any case", *each.against}
        for each in STATEMENTS.values()
        if each.operator == row.family and row.version in each.versions
        if each.kind is not CheckKind.NONE
    }
    assert left
    for vector in (each for suite in TOGETHER[row.dialect] for each in vectors(suite)):
        if vector.record.operator == row.name:
            case = TracedCase(vector)
            for each, unnoticed in left.items():
                if unnoticed and (noticed := each.found_in(case)) is not None:
                    unnoticed.difference_update(("any case", *noticed))
    return {each.id: unnoticed for each, unnoticed in left.items() if unnoticed}


@every("row", [row for row in OPERATORS.values() if row.dialect != "TFLite"], ids=str)
def test_every_statement_of_every_version_is_checked_or_untestable(row):
    """By cases of that version, of the suites of its dialect together, each violation by one."""
    assert unchecked(row) == {}


def test_an_operator_without_a_text_has_no_statements():
    """TFLite's LSTM is what its implementations do: readings, and no sentences."""
    with pytest.raises(NothingSelected, match="tflite: no text specifies"):
        traced("tflite").coverage()


def test_core_checks_every_statement_that_a_result_can_check():
    """Of every ONNX operator, in some version, so that the committed pack alone shows each bug."""
    assert [each.statement.id for each in traced("core").coverage() if each.state in MISSING] == []


@every("suite", ["openvino", "openvino_tiles", "webnn", "webnn_tiles", "quantised_tiles"])
def test_each_suite_of_a_sibling_is_traced(suite):
    """By the statements of the operators that it has cases of."""
    matrix = traced(suite)

    assert {row.statement.operator for row in matrix.coverage()} == set(matrix.operators)


def test_every_operator_has_statements():
    """That a result can check; TFLite's has no text."""
    runs = {row.operator for row in STATEMENTS.values() if row.kind is CheckKind.RESULT}

    assert runs == {row.family for row in OPERATORS.values() if row.dialect != "TFLite"}


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
