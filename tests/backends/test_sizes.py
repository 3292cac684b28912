"""Sizes of 0 and 1, and numbers of steps around those from which backends compute otherwise."""

from __future__ import annotations

from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from support.valid_nodes import valid_node

from rnncli import prepare
from rnncli.backends.in_place import FUSED_STEPS
from rnncli.operators import OPERATORS, evaluate

# Steps, sequences and features.
SIZES = [*product((0, 1, FUSED_STEPS - 1, FUSED_STEPS, 17), (0, 1, 2), (0, 1, 3))]
NAMES = ("seq_length", "batch_size", "input_size")
# The newest version of each operator: the others have the same equations.
NEWEST = {(row.dialect, row.type): name for name, row in OPERATORS.items()}.values()
# Those of few, where kernels are compiled, or slow.
FEW = ("RNN-22", "GRU-22", "LSTM-22", "LSTMCell-4")
# What each backend evaluates: operators, arithmetic, and the largest error.
EVALUATED = {
    "reference": (NEWEST, {"float64": 0.0, "native": 1e-5}),
    "numpy": (NEWEST, {"float64": 2e-7, "native": 1e-5}),
    "numba": (FEW, {"float64": 2e-7, "native": 1e-5}),
    "certified": (FEW, {"float64": 2e-7}),
}
WEIGHTS = {"W", "R", "B", "P"}


def kinds(row):
    """Directions, and whether lengths are given that are not all full."""
    directions = ("forward", "reverse", "bidirectional")
    return product(
        directions if "direction" in row.attributes else directions[:1],
        (False, True) if row.lengths_dtypes else (False,),
    )


@cache
def case_of(operator, direction, ragged, sizes):
    """Attributes, inputs without weights, the weights, which depend on no other size, outputs."""
    row, named = OPERATORS[operator], dict(zip(NAMES, sizes, strict=True))
    attributes, inputs = valid_node(operator, direction=direction, hidden_size=3, **named)
    _, fixed = valid_node(operator, direction=direction, hidden_size=3, input_size=sizes[2])
    weights = {tensor.name for tensor in row.inputs if tensor.role.partition("_")[0] in WEIGHTS}
    for tensor in row.inputs:
        if tensor.role == "lengths" and not ragged:
            inputs[tensor.name][...] = sizes[0]
    varying = {name: values for name, values in inputs.items() if name not in weights}
    held = {name: fixed[name] for name in weights & fixed.keys()}
    wanted = evaluate(operator, {**varying, **held}, attributes=attributes, backend="reference")
    return attributes, varying, held, wanted


def problem(call, wanted, error):
    """Say how the outputs of a call differ, or nothing."""
    try:
        found = call()
    except Exception as failure:  # noqa: BLE001 -- any is listed, with the others
        return repr(failure)
    for name, values in wanted.items():
        got = found[name]
        if (got.shape, got.dtype) != (values.shape, values.dtype):
            return f"{name} is {got.dtype} {got.shape}, not {values.dtype} {values.shape}"
        if values.size and not np.abs(got - values).max() <= error:
            return f"{name} differs by {np.abs(got - values).max()}"
    return ""


def offenders(backend, row, compute, error):
    """Yield what is wrong with a call and with two calls of a session, which has served others."""
    for direction, ragged in kinds(row):
        sessions = {}
        for sizes in SIZES:
            if 0 in sizes and not row.empty_sizes:
                continue
            attributes, varying, weights, wanted = case_of(row.name, direction, ragged, sizes)
            inputs, asked = {**varying, **weights}, {"backend": backend, "compute": compute}
            kept = sizes[2], sizes[0] if row.attribute_for("seq_length") else None

            if kept not in sessions:
                sessions[kept] = prepare(row, **asked, **attributes, **weights)
            once = partial(evaluate, row, inputs, attributes=attributes, **asked)
            again = partial(sessions[kept].run, varying)
            for call in (once, again, again):
                if said := problem(call, wanted, error):
                    yield row.name, compute, direction, ragged, sizes, said


@pytest.mark.parametrize("operator", ["RNN-22", "GRU-22", "LSTM-22"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_many_units_need_no_inputs(operator, backend):
    """Beyond the sizes of small stages, too."""
    sizes = {"seq_length": 5, "batch_size": 2, "input_size": 0, "hidden_size": 149}
    attributes, inputs = valid_node(operator, direction="bidirectional", **sizes)
    wanted = evaluate(operator, inputs, attributes=attributes, backend="reference")

    def call():
        return evaluate(operator, inputs, attributes=attributes, backend=backend)

    assert problem(call, wanted, 2e-7) == ""


@pytest.mark.parametrize("backend", EVALUATED)
def test_every_size_is_evaluated(backend):
    """In a call of its own and in sessions, each of which serves other sizes as well."""
    operators, errors = EVALUATED[backend]

    assert [] == [
        found
        for name in operators
        for compute, error in errors.items()
        for found in offenders(backend, OPERATORS[name], compute, error)
    ]
