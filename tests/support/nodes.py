"""Hypothesis strategies: valid nodes of every operator, with every attribute and input."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rnncli.numerics import DTYPES, Array
from rnncli.operators import OPERATORS, Operator
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.readings import READINGS


@dataclass
class Node:
    """One valid node with its inputs."""

    operator: str
    dtype: str
    sizes: dict[str, int]
    seed: int
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: list[str] | None = None
    readings: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, Array] = field(default_factory=dict, repr=False)
    present: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """What a strategy stays within; the defaults are everything there is.

    Attributes:
        least: the smallest seq_length, batch_size and input_size.
        activations: which functions, or None for all of the operator's.
        exact_parameters: alpha and beta are given for every function that takes one.
        readings: choices that are always made.
        all_outputs: nothing is left out.
        attributes: names that may be written, or None for all.
        canonical: functions are spelled as the specification does.
        steps, sequences, features: values of seq_length, batch_size and input_size, or None for any
            from `least` up to a few.
    """

    least: int = 0
    activations: tuple[str, ...] | None = None
    exact_parameters: bool = False
    readings: dict[str, str] | None = None
    all_outputs: bool = False
    attributes: tuple[str, ...] | None = None
    canonical: bool = False
    steps: tuple[int, ...] | None = None
    sequences: tuple[int, ...] | None = None
    features: tuple[int, ...] | None = None


FREE = Limits()
DIRECTIONS = {"forward": "forward", "reverse": "backward", "bidirectional": "both"}
# Quantised ones keep few of the properties of the others: a level may be rounded another way, and
# sequences of a batch share their scale. `quantised_lstm` has nodes of theirs.
UNQUANTISED = tuple(
    name for name, row in OPERATORS.items() if row.cell.projects and not row.quantised
)
RAGGED = tuple(name for name in UNQUANTISED if OPERATORS[name].lengths_dtypes)
PARAMETER = st.sampled_from([-1.5, -0.3, 0.0, 0.1, 0.25, 0.5, 0.7, 1.0, 1.25])
SCALES = st.sampled_from(["dyadic", 0.3, 1.0, 10.0])


@st.composite
def nodes(draw, operators=UNQUANTISED, dtypes=tuple(DTYPES), limits=FREE):
    """Draw a valid node, of operators with one of the dtypes: small sizes, numbers from a seed.

    One strategy: with one for each part a draw takes half as long again.
    """
    possible = [name for name in operators if {*dtypes} & {*OPERATORS[name].dtypes}]
    row = OPERATORS[draw(st.sampled_from(possible))]
    dtype = draw(st.sampled_from([name for name in dtypes if name in row.dtypes]))
    walked = "direction" in row.attributes
    direction = draw(st.sampled_from(["forward", "reverse", "bidirectional"][: 3 if walked else 1]))
    least = limits.least if row.empty_sizes else 1
    sizes = {
        "seq_length": draw(size(limits.steps, least, 5)),
        "batch_size": draw(size(limits.sequences, least, 4)),
        "input_size": draw(size(limits.features, least, 3)),
        "hidden_size": draw(st.integers(1, 4)),
        "num_directions": 2 if direction == "bidirectional" else 1,
    }
    node = Node(row.name, dtype, sizes, draw(st.integers(0, 2**32 - 1)))
    node.attributes = attributes(draw, row, direction, sizes, limits)
    fixed = limits.readings
    node.readings = readings(draw, row) if fixed is None else fixed
    if not limits.all_outputs:
        node.outputs = outputs(draw, row, node.attributes)
    node.inputs = inputs(draw, row, node)
    node.present = tuple(node.inputs)
    return node


def size(values, least, most):
    """Draw a size: one of the values, if there are any, or any up to the most."""
    if values is None:
        return st.integers(least, most)
    return st.sampled_from([value for value in values if value >= least])


def attributes(draw, row, direction, sizes, limits):
    """Write some attributes out, leave others to their defaults."""
    found = {}
    walks = row.attributes.get("direction")
    if walks and (direction != "forward" or walks.required or draw(st.booleans())):
        found["direction"] = DIRECTIONS[direction] if row.dialect == "WebNN" else direction
    stated = {"hidden_size": "hidden_size", "hiddenSize": "hidden_size", "steps": "seq_length"}
    for name, size in stated.items():
        if name in row.attributes and (row.attributes[name].required or draw(st.booleans())):
            found[name] = sizes[size]
    choices = {
        "clip": st.sampled_from([0.1, 0.5, 1.0, 2.5, 100.0, np.inf]),
        "layout": st.sampled_from(row.attributes["layout"].choices)
        if "layout" in row.attributes
        else st.nothing(),
        "input_forget": st.sampled_from([0, 1, 1]),
        "linear_before_reset": st.sampled_from([0, 1, 1, -2] if row.dialect == "ONNX" else [0, 1]),
        "output_sequence": st.integers(0, 1),
        "resetAfter": st.booleans(),
        "returnSequence": st.booleans(),
    }
    for name, values in choices.items():
        allowed = limits.attributes is None or name in limits.attributes
        if name in row.attributes and allowed and draw(st.booleans()):
            found[name] = draw(values)
    return {**found, **functions(draw, row, sizes["num_directions"], limits)}


def functions(draw, row, directions, limits):
    """Name functions for every position, in any case, and their alpha and beta."""
    names = list(row.default_activations) * directions
    found = {}
    if limits.exact_parameters or draw(st.booleans()):
        pool = st.sampled_from(limits.activations or row.activations)
        lists = directions if row.activation_lists == "each" else 1
        names = [draw(pool) for _ in range(len(row.default_activations) * lists)]
        if row.activation_lists == "equal" and directions == 2 and draw(st.booleans()):
            names *= 2
        exact = [str.lower] if row.dialect == "WebNN" else [str]
        is_exact = limits.canonical or row.dialect == "WebNN"
        spellings = st.sampled_from(exact if is_exact else [str, str.lower, str.upper])
        spelled = [draw(spellings)(name) for name in names]
        if row.spare_activation and directions == 1 and draw(st.booleans()):
            spelled.append("Relu")
        found["activations"] = spelled
    if row.dialect == "WebNN":
        return found
    for role in ("alpha", "beta"):
        takes = sum(getattr(ACTIVATIONS[name], role) is not None for name in names)
        count = takes if limits.exact_parameters else draw(st.sampled_from([0, 1, takes, 7]))
        if count:
            name = f"activation_{role}" if row.dialect == "ONNX" else f"activations_{role}"
            found[name] = [draw(PARAMETER) for _ in range(count)]
    return found


def readings(draw, row):
    """Choose some of the operator's readings."""
    return {
        name: draw(st.sampled_from(READINGS[name].choices))
        for name in row.readings
        if draw(st.booleans())
    }


def outputs(draw, row, given):
    """Ask for all outputs, or some of them in any order, or none."""
    names = [
        output.name for output in row.outputs if not output.condition or given.get(output.condition)
    ]
    return draw(st.none() | st.lists(st.sampled_from(names), unique=True))


def inputs(draw, row: Operator, node: Node):
    """Fill the required inputs and some of the optional ones."""
    generator = np.random.default_rng(node.seed)
    scale = draw(SCALES)
    found = {}
    for tensor in row.inputs:
        if tensor.optional and not draw(st.booleans()):
            continue
        dims = tensor.shape(row.variant(node.attributes))
        shape = tuple(dim.multiple * node.sizes[dim.symbol] for dim in dims)
        if tensor.role == "lengths":
            T = node.sizes["seq_length"]
            lengths = [draw(st.integers(0, T)) for _ in range(*shape)]
            dtype = draw(st.sampled_from(row.input_dtypes(tensor)))
            found[tensor.name] = np.array(lengths, DTYPES[dtype].numpy)
        else:
            weights = tensor.role in {"W", "R", "P"}
            values = numbers(
                generator, shape, scale if not weights or scale == "dyadic" else min(scale, 0.7)
            )
            found[tensor.name] = values.astype(DTYPES[node.dtype].numpy)
    return found


def numbers(generator, shape, scale):
    """Fill a tensor: normal numbers, or quarters, whose sums are exact and hit ties.

    Weights stay small: a recurrence with large ones is chaotic, and then two orders of summation
    are as far apart as two right answers can be.
    """
    if scale == "dyadic":
        return generator.integers(-4, 5, shape) / 4
    return generator.normal(0, scale, shape)
