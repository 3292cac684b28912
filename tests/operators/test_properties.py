"""Every operator under every combination of features, against three independent implementations.

The scalar specification is this project's own second opinion, written from the texts. ONNX Runtime
and OpenVINO are others' opinions, asked only where specs/semantics.md does not list them as wrong.
"""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import openvino
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from openvino import opset5
from support import scalar_specification
from support.agreement import (
    ABSOLUTE,
    RELATIVE,
    judged_by_onnxruntime,
    onnxruntime_limits,
    ours,
    within,
)
from support.examples import examples, part_of
from support.nodes import FREE, UNQUANTISED, Limits, nodes

from rnncli.numerics import DTYPES, round_to, ulp_distance
from rnncli.operators import OPERATORS
from rnncli.recurrence.recurrence import lock
from rnncli.subjects.runtimes.open_vino import NATIVE

CANCELLED = 8 * np.finfo(np.float64).eps  # what is left of numbers around 1


def widened(values):
    """Return floating-point numbers in float64; lengths stay."""
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def specified(node):
    """Evaluate a node's outputs, in the order asked for, one number at a time."""
    found = scalar_specification.evaluate(
        node.operator, node.inputs, node.attributes, node.readings
    )
    return found if node.outputs is None else {name: found[name] for name in node.outputs}


# Kernels work in chunks of up to 64 steps, which all continue where the one before ended. Other
# functions let roundings grow with every step.
MANY_STEPS = Limits(
    steps=(33, 65, 70), sequences=(1, 2), features=(1, 2), activations=("Sigmoid", "Tanh")
)


@pytest.mark.parametrize("operator", UNQUANTISED)
def test_float64_agrees_with_the_scalar_specification(operator):
    """Any node of any row agrees to 1e-12 relative, and names, shapes and dtypes are as asked."""
    agree_in_float64(operator, 100, FREE)


@pytest.mark.parametrize("operator", ["RNN-22", "GRU-22", "LSTM-22"])
def test_many_steps_agree_with_the_scalar_specification(operator):
    """Longer sequences do, too."""
    agree_in_float64(operator, 32, MANY_STEPS)


def agree_in_float64(operator, count, limits):
    """Compare so many examples, other ones of each operator."""
    own = OPERATORS[operator]
    dtype = "float64" if "float64" in own.dtypes else own.dtypes[0]
    row = replace(own, dtypes=("float64",))  # also of a dialect that has narrower ones only

    @examples(count, operator)
    @given(nodes(operators=(operator,), dtypes=(dtype,), limits=limits))
    def agrees(node):
        node.inputs = {name: widened(values) for name, values in node.inputs.items()}
        wanted = specified(node)
        for backend in ("numpy", "reference"):
            found = ours(node, row, backend=backend)
            assert list(found) == list(wanted)
            for name, values in found.items():
                assert values.dtype == np.float64
                assert values.shape == wanted[name].shape
                assert within(values, wanted[name], RELATIVE, ABSOLUTE).all(), backend

    agrees()


LSTM = OPERATORS["LSTM-22"]
PREVIOUS = {"peephole-o": "previous"}
OF_PREVIOUS = replace(LSTM, readings={**LSTM.readings, **PREVIOUS})


@pytest.mark.parametrize("backend", ["numpy", "reference", "numba"])
def test_the_output_gate_may_see_the_previous_cell_state(backend):
    """With every other feature, of an operator that has the reading; constants change nothing."""

    @examples(60)
    @given(nodes(operators=(LSTM.name,), dtypes=("float64",)))
    def agrees(node):
        assume("P" in node.inputs)
        node.readings = {**node.readings, **PREVIOUS}
        wanted = specified(node)
        for values in node.inputs.values():
            lock(values)
        node.operator = OF_PREVIOUS
        for _ in range(2):
            for name, values in ours(node, backend=backend).items():
                assert within(values, wanted[name], RELATIVE, ABSOLUTE).all()

    agrees()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_narrow_dtypes_are_float64_rounded_once(dtype):
    """All but 1 in 10,000 elements are the scalar specification's bits; the rest are 1 ulp off.

    Where numbers around 1 cancel, what float64 leaves of them is many ulp of a number near 0.
    """
    distances = Counter()

    @examples(400)
    @given(nodes(dtypes=(dtype,), operators=having(dtype)))
    def collect(node):
        found, wanted = ours(node), specified(node)
        assert list(found) == list(wanted)
        for name, values in found.items():
            rounded = round_to(wanted[name], DTYPES[dtype])
            assert values.dtype == rounded.dtype
            assert values.shape == rounded.shape
            is_cancelled = np.abs(values.astype(np.float64) - wanted[name]) <= CANCELLED
            distances.update(ulp_distance(values, rounded)[~is_cancelled].tolist())
            distances[0.0] += np.count_nonzero(is_cancelled)

    collect()
    assert set(distances) <= {0.0, 1.0}
    assert distances[0.0] >= 0.9999 * distances.total() > part_of(1200)


def having(dtype):
    """Name the operators that have an element type."""
    return tuple(name for name in UNQUANTISED if dtype in OPERATORS[name].dtypes)


# Sizes of 0 and 1 are frequent; from 8 steps on both directions are fused.
SMALL = Limits(steps=(0, 1, 1, 2, 7, 8, 9), sequences=(0, 0, 1, 1, 2, 3), features=(0, 1, 1, 2))
ENGINES = [
    (backend, compute)
    for backend in ("numpy", "numba", "reference", "certified")
    for compute in ("float64", "native")
    if (backend, compute) != ("certified", "native")
]


def test_every_backend_agrees_where_sizes_are_0_or_1():
    """Any node of any row and dtype, of inputs that may change and of constants.

    All arithmetic in float64: to 1e-12 in float64, and to one ulp of a narrower dtype.
    """

    @examples(100)
    @given(nodes(limits=SMALL), st.sampled_from(ENGINES), st.booleans())
    def agrees(node, engine, constant):
        wanted = specified(node)
        if constant:
            for values in node.inputs.values():
                lock(values)
        for _ in range(1 + constant):
            found = ours(node, backend=engine[0], compute=engine[1])
            assert list(found) == list(wanted)
            for name, values in found.items():
                exact = wanted[name]
                assert (values.dtype, values.shape) == (DTYPES[node.dtype].numpy, exact.shape)
                assert as_promised(values, exact, engine[1]).all(), (engine, name)

    agrees()


def as_promised(values, exact, compute):
    """Tell where values are as near to those in float64 as their arithmetic allows."""
    dtype = DTYPES[values.dtype.name]
    if compute == "float64" and dtype.name != "float64":
        return ulp_distance(values, round_to(exact, dtype)) <= 1
    coarser = 1.0 if dtype.name == "float64" else 2.0**29
    output = {"float16": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype.name, 0.0)
    rounded = round_to(exact, dtype).astype(np.float64)
    bound = coarser * RELATIVE + output, coarser * ABSOLUTE
    return within(values.astype(np.float64), rounded, *bound)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_native_arithmetic_is_as_good_as_its_precision(dtype):
    """The bound of float64, in units of float32's roundoff, and one rounding of the output."""

    @examples(100)
    @given(nodes(dtypes=(dtype,), operators=having(dtype)))
    def agrees(node):
        found, wanted = ours(node, compute="native"), specified(node)
        # With Relu as a gate's activation states can square themselves, past float32's range.
        largest = max((np.abs(values).max(initial=0) for values in wanted.values()), default=0)
        assume(dtype == "float64" or largest < 1e18)
        for name, values in found.items():
            assert values.dtype == DTYPES[dtype].numpy
            assert as_promised(values, wanted[name], "native").all()

    agrees()


@pytest.mark.parametrize(
    "operator",
    [
        name
        for name, row in OPERATORS.items()
        if row.dialect == "ONNX" and row.version >= 7 and row.cell.projects
    ],
)
def test_float32_agrees_with_onnxruntime(operator):
    """Where ONNX Runtime has the case and is right, we agree to its own accuracy in float32."""
    limits = onnxruntime_limits(OPERATORS[operator])

    @examples(60)
    @given(nodes(operators=(operator,), dtypes=("float32",), limits=limits))
    def agrees(node):
        found = ours(node)
        for name, values in judged_by_onnxruntime(node, tuple(found)).items():
            assert values.shape == found[name].shape
            assert within(values, found[name], 1e-4, 1e-5).all()

    agrees()


@pytest.mark.parametrize("operator", NATIVE)
def test_float32_agrees_with_openvino(operator):
    """OpenVINO's own node, in float32, gives our numbers; to compile one takes it long."""
    limits = Limits(least=1, all_outputs=True, readings={})

    @examples(40)
    @given(nodes(operators=(operator,), dtypes=("float32",), limits=limits))
    def agrees(node):
        found = ours(node)
        # With Relu as a gate's activation states can square themselves at every step.
        assume(all(np.abs(values).max() < 1e6 for values in found.values()))
        judged = judged_by_openvino(node)
        assert list(judged) == list(found)
        for name, values in judged.items():
            assert values.shape == found[name].shape
            assert within(values, found[name], 1e-4, 1e-5).all()

    agrees()


def judged_by_openvino(node):
    """Run a model of one native node; outputs by name."""
    arrays = dict(node.inputs)
    absent = {} if "B" in arrays else {"B": np.zeros(len(arrays["W"]), np.float32)}
    if node.attributes.get("linear_before_reset") and absent:
        absent = {"B": np.zeros(len(arrays["W"]) // 3 * 4, np.float32)}
    arrays |= absent  # its Python functions require one
    if "sequence_lengths" in arrays:  # the CPU plugin knows few types
        arrays["sequence_lengths"] = arrays["sequence_lengths"].astype(np.int32)
    parameters = [opset5.parameter(values.shape, values.dtype) for values in arrays.values()]
    given = {k: v for k, v in node.attributes.items() if k not in {"clip", "linear_before_reset"}}
    for name, neutral in (
        ("activations", None),
        ("activations_alpha", []),
        ("activations_beta", []),
    ):
        given.setdefault(name, neutral)
    if node.attributes.get("linear_before_reset"):
        given["linear_before_reset"] = True
    cell = NATIVE[node.operator](*parameters, **given, clip=node.attributes.get("clip", 0.0))
    compiled = core().compile_model(
        openvino.Model(list(cell.outputs()), parameters), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    found = compiled(list(arrays.values()))
    outputs = (row.name for row in OPERATORS[node.operator].outputs)
    return {name: found[k] for k, name in enumerate(outputs)}


@cache
def core():
    """OpenVINO's entry."""
    return openvino.Core()
