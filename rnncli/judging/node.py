"""A vector's node: its operator, its attributes as Python values, and its recurrence."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from rnncli.errors import RnncliWarning
from rnncli.operators import operator_named
from rnncli.operators.attributes import complete
from rnncli.operators.binding import CANONICAL, bind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator, Output
    from rnncli.recurrence.recurrence import Recurrence
    from rnncli.vectors.vector import Vector

# JSON has no such numbers: a manifest holds them as text.
_UNSAYABLE = ("inf", "-inf", "nan")


def attributes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that a case's record holds, as they are written on the node."""
    return {name: _read_back(value) for name, value in record["attributes"].items()}


def _read_back(value: Any) -> Any:
    if isinstance(value, list):
        return [_read_back(each) for each in value]
    return float(value) if value in _UNSAYABLE else value


def readings_of(record: Mapping[str, Any], reading: str) -> dict[str, str]:
    """Return all readings of a case, one of them as `READING=CHOICE` says; "" changes none."""
    name, _, choice = reading.partition("=")
    return {**record["readings"], name: choice} if reading else dict(record["readings"])


def recurrence_of(vector: Vector, reading: str = "") -> Recurrence:
    """Return the canonical recurrence of a vector that must run.

    Args:
        vector: read from a pack.
        reading: `READING=CHOICE` of another reading than its own, or "".
    """
    record = vector.record
    with warnings.catch_warnings():
        # Of alpha and beta that nobody takes people were told when the vector was made.
        warnings.simplefilter("ignore", RnncliWarning)
        return bind(
            operator_named(record["operator"]),
            attributes_of(record),
            vector.inputs,
            record["outputs"],
            readings_of(record, reading),
        )


def output_rows(operator: Operator) -> dict[str, Output]:
    """Return the rows of an operator's outputs by name."""
    return {row.name: row for row in operator.outputs}


def canonical_axes(record: Mapping[str, Any], row: Output) -> list[int]:
    """Return the order of an output's axes that is the recurrence's: T, D, N, H or D, N, H."""
    layout = complete(operator_named(record["operator"]), attributes_of(record)).get("layout") or 0
    have = row.shape(layout)
    return [have.index(dim) for dim in CANONICAL[row.role]]


def canonical(record: Mapping[str, Any], row: Output, values: Array) -> Array:
    """Return an output's values with the axes of the recurrence; a view."""
    return values.transpose(canonical_axes(record, row))
