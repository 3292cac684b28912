"""Vectors as cases of web-platform-tests: the raw form, and `wpt.json` beside it.

    test_ID/wpt.json            a test as `webnn_conformance_test` takes them in a list
    test_ID/calls/1/wpt.json    a second call

https://github.com/web-platform-tests/wpt, webnn/resources/utils.js: a test has a name and a graph,
whose inputs, operators and expected outputs are in the terms of https://www.w3.org/TR/webnn/. Two
entries are our own, and WPT's runner ignores them: `tolerance`, the absolute tolerance of every
element of an output, and `otherReadings`, outputs that are acceptable, too.

A number is the exact value of its element. NaN and infinities, which JSON lacks, are the strings
"NaN", "Infinity" and "-Infinity": JavaScript's typed arrays convert them.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.numerics import dtype_of
from rnncli.operators.attributes import TYPES
from rnncli.packs import raw_form
from rnncli.packs.vector import group_of, held_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rnncli.numerics import Array
    from rnncli.packs.vector import Answers, Vector

JSON = "wpt.json"


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder.

    Raises:
        Unsupported: the raw form cannot hold it.
    """
    tests = {
        f"{group_of(each.call)}{JSON}": _text(case_of(each), depth=3).encode() + b"\n"
        for each in vector.calls
    }
    return {**raw_form.files_of(vector), **tests}


def case_of(vector: Vector) -> dict[str, Any]:
    """Return one call of a vector as a test of WPT."""
    operator, node = vector.node.operator, vector.node
    outputs = operator.present_outputs(node.values)
    held = held_inputs(operator, vector.record.weights, vector.inputs)
    graph = {
        "inputs": {
            name: {**_tensor(values), **({"constant": True} if name in held else {})}
            for name, values in vector.inputs.items()
        },
        "operators": [
            {
                "name": operator.type,
                "arguments": [*_arguments(vector)],
                # An operator that never has more than one returns no list.
                "outputs": list(outputs) if len(operator.outputs) > 1 else outputs[0],
            }
        ],
        "expectedOutputs": _expected(vector.answers),
    }
    if vector.alternatives:
        graph["otherReadings"] = {
            reading: _expected(answers) for reading, answers in vector.alternatives.items()
        }
    return {"name": f"{vector.id} call {vector.call}" if vector.call else vector.id, "graph": graph}


def _arguments(vector: Vector) -> Iterator[dict[str, Any]]:
    """Yield the arguments of the operator's method in order, each by its name."""
    operator = vector.node.operator
    values = {
        name: TYPES[operator.attributes[name].type][2](value)
        for name, value in vector.attributes.items()
    }
    options = {}
    for row in operator.inputs:
        if not row.optional:
            yield {row.name: row.name}
        elif row.name in vector.inputs:
            options[row.name] = row.name
    for attribute in operator.attributes.values():
        if attribute.required:
            yield {attribute.name: values[attribute.name]}
        elif attribute.name in values:
            options[attribute.name] = values[attribute.name]
    if options:
        yield {"options": options}


def _expected(answers: Answers) -> dict[str, Any]:
    return {
        name: {**_tensor(values), "tolerance": _numbers(answers.tolerances[name])}
        for name, values in answers.outputs.items()
    }


def _tensor(values: Array) -> dict[str, Any]:
    descriptor = {"dataType": dtype_of(values).name, "shape": list(values.shape)}
    return {"data": _numbers(values), "descriptor": descriptor}


def _numbers(values: Array) -> list[float | str]:
    """Return the elements; `json` writes NaN and infinities as JavaScript does."""
    elements = values.astype(np.float64).ravel().tolist()
    return [each if math.isfinite(each) else json.dumps(each) for each in elements]


def _text(value: Any, *, depth: int) -> str:
    """Return JSON with a line for each entry of objects down to a depth."""
    if not (depth and isinstance(value, dict)):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    lines = [f"{json.dumps(name)}: {_text(row, depth=depth - 1)}" for name, row in value.items()]
    return "\n".join(["{", ",\n".join(lines), "}"])
