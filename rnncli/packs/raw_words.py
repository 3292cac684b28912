"""The attributes and readings of a case in plain words, for `case.json`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from rnncli.errors import RnncliWarning
from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.operators import Node
    from rnncli.operators.operator import Attribute, Tensor
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.activations import Activation


def explained_readings(record: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return for each reading of a case its choice, the contested point, and the meaning."""
    return {
        name: {
            "choice": choice,
            "about": READINGS[name].summary,
            "means": READINGS[name].meanings[choice],
        }
        for name, choice in record["readings"].items()
    }


def in_words(vector: Vector) -> list[str]:
    """Return what a kernel must know about a case: tensors, attributes and activations."""
    if vector.record["expect"] == "rejection":
        return [f"must be refused: {vector.record['reason']}"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # generation reported unused alpha and beta
        return [*_sentences(vector.node, vector)]


def _sentences(node: Node, vector: Vector) -> Iterator[str]:
    operator = node.operator
    for row in operator.inputs:
        yield _tensor(row, node.variant, given=row.name in vector.inputs, absent="absent")
    for output in operator.outputs:
        is_asked = output.name in node.outputs
        yield _tensor(output, node.variant, given=is_asked, absent="not requested")
    yield f"gates in {operator.gated}: {', '.join(node.gates)}"
    for attribute in operator.attributes.values():
        value = attribute.spelled(node.values[attribute.role or attribute.name])
        yield _attribute(attribute, value)
    for direction, activations in zip(node.directions, node.activations, strict=True):
        words = "; ".join(map(_activation, activations))
        yield f"activations of direction {direction.name.lower()}: {words}"


def _tensor(row: Tensor, variant: int, *, given: bool, absent: str) -> str:
    if not given:
        return f"{row.name}: {absent}"
    shape = ", ".join(
        dim.symbol if dim.multiple == 1 else f"{dim.multiple}*{dim.symbol}"
        for dim in row.shape(variant)
    )
    return f"{row.name} [{shape}]: {row.summary.partition('; absent')[0]}"


def _attribute(row: Attribute, value: Any) -> str:
    shown = str(value).lower() if value is None or isinstance(value, bool) else value
    return f"attribute {row.name}: {shown}; {row.summary}"


def _activation(activation: Activation) -> str:
    named = {"alpha": activation.alpha, "beta": activation.beta}
    given = [f"{name} {value!r}" for name, value in named.items() if value is not None]
    return ", ".join([f"{activation.name} {activation.formula}", *given])
