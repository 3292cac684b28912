"""Conditions under which a case exercises a statement, with their wording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.operators.checking import element_type
from rnncli.tracing.statement import CaseCondition

if TYPE_CHECKING:
    from collections.abc import Collection

    from rnncli.tracing.traced_case import TracedCase


def writes(name: str, *values: Any) -> CaseCondition:
    """Require an attribute on the node, with one of some values if values are given."""
    listed = " or ".join(map(str, values))
    words = f"writes {name}{f' {listed}' if values else ''}"
    return CaseCondition(
        words, lambda c: name in c.written and (not values or c.written[name] in values)
    )


def leaves_out(name: str) -> CaseCondition:
    """Require that the node lacks an attribute."""
    return CaseCondition(f"leaves {name} out", lambda c: name not in c.written)


def gives(*names: str) -> CaseCondition:
    """Require that inputs are present."""
    return CaseCondition(
        f"gives {' and '.join(names)}", lambda c: all(n in c.inputs for n in names)
    )


def lacks(*names: str) -> CaseCondition:
    """Require that inputs are absent."""
    return CaseCondition(
        f"gives no {' and no '.join(names)}", lambda c: not any(n in c.inputs for n in names)
    )


def asks(*names: str) -> CaseCondition:
    """Require that outputs are requested."""
    return CaseCondition(
        f"asks for {' and '.join(names)}", lambda c: all(n in c.outputs for n in names)
    )


def asks_not(*names: str) -> CaseCondition:
    """Require that outputs are not requested."""
    return CaseCondition(
        f"does not ask for {' or '.join(names)}", lambda c: not any(n in c.outputs for n in names)
    )


def of_dtype(name: str) -> CaseCondition:
    """Require an element type."""
    return CaseCondition(f"is of {name}", lambda c: c.record["dtype"] == name)


def in_layout(layout: int) -> CaseCondition:
    """Require a layout."""
    return CaseCondition(f"has layout {layout}", lambda c: c.layout == layout)


def walks(direction: str) -> CaseCondition:
    """Require a direction, explicit or by default."""
    return CaseCondition(
        f"is {direction}", lambda c: c.vector.node.values["direction"] == direction
    )


def uses(name: str) -> CaseCondition:
    """Require an activation function."""
    return CaseCondition(f"uses {name}", lambda c: any(f.name == name for f in c.activations))


def uses_without(name: str, key: str) -> CaseCondition:
    """Require an activation function for which no alpha or beta is given."""
    return CaseCondition(f"uses {name} without {key}", lambda c: name in c.without_own(key))


def differs_under(choice: str) -> CaseCondition:
    """Require a stored alternative answer under `READING=CHOICE`."""
    return CaseCondition(
        f"has another answer under {choice}", lambda c: choice in c.record["alternatives"]
    )


def _all_different(names: Collection[str]) -> CaseCondition:
    def holds(case: TracedCase) -> bool:
        return len({case.sizes[name] for name in names}) == len(names)

    return CaseCondition(f"has different {', '.join(names)}", holds)


def _skips_one(names: list[str]) -> bool:
    """Whether a name is omitted before one that is present."""
    return "" in "\0".join(names).rstrip("\0").split("\0")


def _last_input_absent(case: TracedCase) -> bool:
    return case.operator.inputs[-1].name not in case.inputs


def _value_after_none(key: str) -> CaseCondition:
    def holds(case: TracedCase) -> bool:
        has_own = case.with_own(key)
        takes = [getattr(function, key) is not None for function in case.activations]
        return any(has and not all(takes[:k]) for k, has in enumerate(has_own))

    return CaseCondition(f"gives {key} to a function after one that takes none", holds)


RAGGED = CaseCondition(
    "has a length below T over padding that is not zero", lambda c: bool(np.any(c.padding))
)
FULL = CaseCondition("gives no lengths", lambda c: c.lengths is None)
CLIPS = CaseCondition("has values beyond the clip", lambda c: bool(c.noticed(["clip-ignored"])))
CLIPS_NOTHING = CaseCondition("has no value beyond the clip", lambda c: not CLIPS.holds(c))
BIDIRECTIONAL = CaseCondition("is bidirectional", lambda c: c.directions == 2)
ONE_DIRECTION = CaseCondition("has one direction", lambda c: c.directions == 1)
INITIALIZERS = CaseCondition(
    "holds W and R in the model", lambda c: c.record["weights"] != "inputs"
)
X_OF_THREE_SIZES = _all_different(("seq_length", "batch_size", "input_size"))
STATES_OF_TWO_SIZES = _all_different(("batch_size", "hidden_size"))
WEIGHTS_OF_TWO_SIZES = _all_different(("input_size", "hidden_size"))
ONLY_REQUIRED = CaseCondition(
    "gives the required inputs alone",
    lambda c: [*c.inputs] == [row.name for row in c.operator.inputs if not row.optional],
)
EVERY_INPUT = CaseCondition(
    "gives every input", lambda c: [*c.inputs] == [row.name for row in c.operator.inputs]
)
EMPTY_NAME_BETWEEN = CaseCondition(
    'has "" for an input before one that is given', lambda c: _skips_one(c.node_inputs)
)
TRAILING_EMPTY_NAME = CaseCondition(
    'ends its inputs with ""', lambda c: bool(c.node_inputs) and not c.node_inputs[-1]
)
INPUTS_END_EARLY = CaseCondition(
    "leaves the last inputs out of its list",
    lambda c: _last_input_absent(c) and len(c.node_inputs) < len(c.operator.inputs),
)
OUTPUTS_END_EARLY = CaseCondition(
    "leaves the last outputs out of its list",
    lambda c: bool(c.node_outputs) and len(c.node_outputs) < len(c.operator.outputs),
)
OUTPUT_SKIPPED = CaseCondition(
    'has "" for an output before one that is asked for',
    lambda c: c.outputs != [row.name for row in c.operator.outputs[: len(c.outputs)]],
)
ALPHA_AFTER_NONE, BETA_AFTER_NONE = _value_after_none("alpha"), _value_after_none("beta")


# --- cases that must be refused ---


def breaks_attribute(name: str) -> CaseCondition:
    """Require that one attribute is the only error."""
    return CaseCondition(f"breaks {name} alone", lambda c: c.broken == {("attributes", name)})


def breaks_shape(name: str) -> CaseCondition:
    """Require that the shape of one input is the only error."""

    def holds(case: TracedCase) -> bool:
        return case.broken == {("inputs", name)} and not _is_foreign(case, name)

    return CaseCondition(f"breaks the shape of {name} alone", holds)


def breaks_rank(name: str) -> CaseCondition:
    """Require that an input has too few or too many dimensions."""

    def holds(case: TracedCase) -> bool:
        (row,) = (row for row in case.operator.inputs if row.name == name)
        return ("inputs", name) in case.broken and case.inputs[name].ndim != len(row.shape())

    return CaseCondition(f"breaks the number of dimensions of {name}", holds)


def breaks_type(name: str) -> CaseCondition:
    """Require that the element type of one input is the only error."""

    def holds(case: TracedCase) -> bool:
        return case.broken == {("inputs", name)} and _is_foreign(case, name)

    return CaseCondition(f"breaks the element type of {name} alone", holds)


def breaks_output(name: str) -> CaseCondition:
    """Require that an output which the node does not have is the only error."""
    return CaseCondition(f"asks for {name} in vain", lambda c: c.broken == {("outputs", name)})


def _is_foreign(case: TracedCase, name: str) -> bool:
    """Whether an input has the wrong element type."""
    (row,) = (row for row in case.operator.inputs if row.name == name)
    given, X = element_type(case.inputs[name]), case.input_for("X")
    if row.role == "X":
        return given not in case.operator.input_dtypes(row)
    return given not in row.dtypes if row.dtypes else given != element_type(X)


def _mixes_types(case: TracedCase) -> bool:
    given = [case.inputs[row.name] for row in case.operator.inputs if row.name in case.inputs]
    floats = [element_type(values) for values in given if values.dtype.kind != "i"]
    return len({*floats}) > 1 and set(floats) <= set(case.operator.dtypes)


def lacks_required(*names: str) -> CaseCondition:
    """Require that a missing required input is the only error."""

    def holds(case: TracedCase) -> bool:
        return case.broken == {("inputs",)} and any(name not in case.inputs for name in names)

    return CaseCondition(f"leaves out {' or '.join(names)} alone", holds)


def _newer_dtype(name: str) -> CaseCondition:
    def holds(case: TracedCase) -> bool:
        X = case.inputs.get("X")
        return name not in case.operator.dtypes and X is not None and element_type(X) == name

    return CaseCondition(f"is of {name}", holds)


def _bad_hidden_size(case: TracedCase) -> bool:
    R = case.inputs.get("R")
    given = case.written.get("hidden_size")
    if R is None or given is None:
        return False
    (row,) = (row for row in case.operator.inputs if row.role == "R")
    return len(row.shape()) == R.ndim and given != R.shape[-1]


def _bad_directions(case: TracedCase) -> bool:
    W = case.inputs.get("W")
    wanted = 2 if case.written.get("direction") == "bidirectional" else 1
    return W is not None and W.ndim == 3 and W.shape[0] != wanted


def _names(case: TracedCase) -> list[str]:
    given = case.written.get("activations")
    return [str(name) for name in given] if isinstance(given, list) else []


def _unknown_activation(case: TracedCase) -> bool:
    known = {name.casefold() for name in case.operator.activations}
    return ATTRIBUTE_ACTIVATIONS.holds(case) and not {*map(str.casefold, _names(case))} <= known


def _wrong_length(case: TracedCase) -> bool:
    if case.lengths_row is None:
        return False
    name = case.lengths_row.name
    if case.broken != {("inputs", name)} or _is_foreign(case, name):
        return False
    lengths = case.inputs[name]
    return bool(np.any((lengths < 0) | (lengths > case.steps_of_x)))


ATTRIBUTE_ACTIVATIONS = breaks_attribute("activations")
UNKNOWN_ACTIVATION = CaseCondition("names a function that is not listed", _unknown_activation)
WRONG_COUNT = CaseCondition(
    "names too few or too many functions, all of them listed",
    lambda c: ATTRIBUTE_ACTIVATIONS.holds(c) and not _unknown_activation(c),
)
WRONG_HIDDEN_SIZE = CaseCondition("has a hidden_size that R contradicts", _bad_hidden_size)
WRONG_DIRECTIONS = CaseCondition("has a direction that W contradicts", _bad_directions)
EMPTY = CaseCondition(
    "has an empty tensor", lambda c: any(0 in values.shape for values in c.inputs.values())
)
WRONG_LENGTH = CaseCondition("has a length below 0 or above T", _wrong_length)
MIXED_TYPES = CaseCondition("has floating-point tensors of two types", _mixes_types)
BFLOAT16_TOO_EARLY = _newer_dtype("bfloat16")
