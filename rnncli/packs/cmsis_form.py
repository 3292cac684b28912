"""Vectors as test data of CMSIS-NN: the raw form, and `test_data.h` beside it.

    test_ID/test_data.h            sizes, multipliers and shifts as macros, tensors as arrays
    test_ID/calls/1/test_data.h    a second call

https://github.com/ARM-software/CMSIS-NN, Tests/UnitTest/TestCases/TestData: names are those of its
LSTMs, behind the id of the case, such as `ID_INPUT_GATE_HIDDEN_SHIFT` and `ID_cell_gate_bias`. A
kernel needs no arithmetic on scales then. Its own tests lack the effective biases, which fold the
zero points, and the states before the first step and after the last. Outputs are those of the
reading `preset=cmsis`, and what builds with single rounding have otherwise is chosen by their own
macro; a clip of 0 is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.numerics import dtype_of
from rnncli.operators.evaluation import evaluate
from rnncli.operators.node import checked
from rnncli.operators.tflite_rows import GATES
from rnncli.packs import raw_form
from rnncli.packs.derived_forms import INTEGERS, constants, prefix_of
from rnncli.packs.vector import group_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

HEADER = "test_data.h"
DOUBLE = {"preset": "cmsis"}
SINGLE = {**DOUBLE, "rounding": "single"}
IS_SINGLE = "CMSIS_NN_USE_SINGLE_ROUNDING"
OUTPUTS = {
    "output": "output",
    "final_output_state": "final_hidden_state",
    "final_cell_state": "final_cell_state",
}


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder.

    Raises:
        Unsupported: the raw form cannot hold it.
    """
    headers = {
        f"{group_of(each.call)}{HEADER}": "\n".join([*_lines(each), ""]).encode()
        for each in vector.calls
    }
    return {**raw_form.files_of(vector), **headers}


def _lines(vector: Vector) -> Iterator[str]:
    prefix = prefix_of(f"{vector.id}_call{vector.call}" if vector.call else vector.id)
    yield from ("#pragma once", "#include <stdbool.h>", "#include <stdint.h>", "")
    single = _defined(prefix, vector, SINGLE)
    for name, text in _defined(prefix, vector, DOUBLE).items():
        if text == single[name]:
            yield text
        else:
            yield from (f"#ifdef {IS_SINGLE}", single[name], "#else", text, "#endif")


def _defined(prefix: str, vector: Vector, readings: Mapping[str, str]) -> dict[str, str]:
    """Return the lines of each macro and array by its name."""
    macros, arrays = data_of(vector, readings)
    found = {}
    for name, value in macros.items():
        spelled = str(value).lower() if isinstance(value, bool) else value
        found[name] = f"#define {prefix.upper()}_{name} {spelled}"
    for name, values in arrays.items():
        kind = INTEGERS[dtype_of(values).name]
        found[name] = "\n".join(constants(kind, f"{prefix}_{name}", values))
    return found


def data_of(
    vector: Vector, readings: Mapping[str, str] = DOUBLE
) -> tuple[dict[str, bool | int], dict[str, Array]]:
    """Return the numbers and the tensors of a case by their names in CMSIS-NN's test data.

    Tensors that CMSIS-NN's data lack have names like these.
    """
    operator, given, sizes = vector.node.operator, vector.inputs, vector.record.sizes
    node = checked(operator, vector.attributes, given, None, readings)
    form = node.recurrence(given).options.integers
    assert form is not None
    of = form.multipliers
    factors = {
        "FORGET_TO_CELL": of.forgotten,
        "INPUT_TO_CELL": of.written,
        "OUTPUT": of.output,
        **{f"{gate.upper()}_GATE_INPUT": m for gate, m in zip(GATES, of.inputs, strict=True)},
        **{f"{gate.upper()}_GATE_HIDDEN": m for gate, m in zip(GATES, of.hidden, strict=True)},
    }
    macros: dict[str, bool | int] = {
        "TIME_MAJOR": bool(node.values["time_major"]),
        "BATCH_SIZE": sizes["batch_size"],
        "TIME_STEPS": sizes["seq_length"],
        "INPUT_SIZE": sizes["input_size"],
        "HIDDEN_SIZE": sizes["hidden_size"],
        "CELL_SCALE_POWER": form.exponent,
        "INPUT_ZERO_POINT": -form.inputs.zero_point,  # what CMSIS-NN adds to an input
        "OUTPUT_ZERO_POINT": form.hidden.zero_point,
        "CELL_CLIP": form.bound or 0,
        **{f"{name}_MULTIPLIER": m.value for name, m in factors.items()},
        **{f"{name}_SHIFT": m.shift for name, m in factors.items()},
    }

    state = sizes["batch_size"], sizes["hidden_size"]
    zero = np.full(state, form.hidden.zero_point, given["input"].dtype)
    arrays = {
        "input_tensor": given["input"],
        "initial_hidden_state": given.get("output_state", zero),
        "initial_cell_state": given.get("cell_state", np.zeros(state, np.int16)),
    }
    for gate in GATES:
        W, R = given[f"input_to_{gate}_weights"], given[f"recurrent_to_{gate}_weights"]
        bias = given[f"{gate}_gate_bias"]
        arrays |= {
            f"{gate}_gate_input_weights": W,
            f"{gate}_gate_hidden_weights": R,
            f"{gate}_gate_bias": bias,
            f"{gate}_gate_input_effective_bias": _folded(W, form.inputs.zero_point, bias),
            f"{gate}_gate_hidden_effective_bias": _folded(R, form.hidden.zero_point, 0 * bias),
        }
    made = evaluate(operator, given, attributes=vector.attributes, readings=readings)
    return macros, arrays | {OUTPUTS[name]: values for name, values in made.items()}


def _folded(weights: Array, zero_point: int, bias: Array) -> Array:
    """Return a bias with what the zero point of the factor of the weights adds to the product."""
    folded: Any = bias - zero_point * weights.sum(axis=1, dtype=np.int64)
    return np.asarray(folded, bias.dtype)
