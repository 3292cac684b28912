"""The table of all operators, looked up by name or by a node's domain, type and opset."""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.operators import (
    linear_rows,
    onnx_rows,
    onnxruntime_rows,
    openvino_rows,
    packed_rows,
    tflite_float_rows,
    tflite_rows,
    webnn_rows,
)
from rnncli.operators.operator import Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

OPERATORS: Mapping[str, Operator] = {
    row.name: row
    for module in (
        *(onnx_rows, openvino_rows, webnn_rows),
        *(onnxruntime_rows, linear_rows, packed_rows, tflite_rows, tflite_float_rows),
    )
    for row in module.ROWS
}


def operator_named(name: str) -> Operator:
    """Return the operator with a name such as `LSTM-14`.

    Raises:
        InvalidRequest: unknown name, and the message names the row that serves that opset, if any.
    """
    if name in OPERATORS:
        return OPERATORS[name]
    kind, _, version = name.partition("-")
    versioned = [row for row in _versions(kind) if row.versioned]
    folded = "" if version else kind.casefold()  # a type in another case
    called = [row for row in OPERATORS.values() if folded == row.type.casefold()]
    if versions := versioned or called:
        listed = ", ".join(row.name for row in versions)
        is_opset = version.isdecimal() and len(version) < 5  # int() refuses thousands of digits
        serving = _serving(versions, int(version)) if is_opset else None
        hint = f"; opset {version} uses {serving.name}" if serving else ""
        raise InvalidRequest(f"unknown operator '{name:.80}': there are {listed}{hint}")
    hint = did_you_mean(name, OPERATORS) or "; `rnncli ops` lists them"
    raise InvalidRequest(f"unknown operator '{name:.80}'{hint}")


# Pickled by name: each process has its own row, compared by identity.
copyreg.pickle(Operator, lambda operator: (operator_named, (operator.name,)))


def operator_for(domain: str, op_type: str, opset: int) -> Operator | None:
    """Return the operator of a model's node, or None if it is not recurrent.

    The domain "ai.onnx" is the same as ""; the opset is the version of it that the model imports.
    """
    if domain == "ai.onnx":
        domain = ""
    return _serving([row for row in _versions(op_type) if row.domain == domain], opset)


def _versions(op_type: str) -> list[Operator]:
    """Return all versions of an operator type, oldest first."""
    return [row for row in OPERATORS.values() if row.type == op_type]


def _serving(versions: list[Operator], opset: int) -> Operator | None:
    """Return the newest version that is not newer than the opset."""
    return max(
        (row for row in versions if row.version <= opset), key=lambda row: row.version, default=None
    )
