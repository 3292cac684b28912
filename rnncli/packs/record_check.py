"""The check of a case's record by the specification of its operator."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.cases.config.case_shapes import SIZES, frame_of, size_names
from rnncli.errors import InvalidRequest
from rnncli.numerics import dtype_named
from rnncli.operators import operator_named
from rnncli.operators.checking import reading_problems
from rnncli.operators.node import checked
from rnncli.packs.vector import attributes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rnncli.errors import Problem
    from rnncli.numerics import Array
    from rnncli.operators import Operator


def check_record(record: Mapping[str, Any]) -> None:
    """Refuse a record that cannot be a case of its operator, whatever its tensors are.

    A case that must be refused may break any rule but that of readings, which are ours.

    Args:
        record: follows `CaseRecord`; its operator and dtype exist.

    Raises:
        InvalidRequest: a rule is broken, or a size is missing; all are named.
    """
    operator = operator_named(record["operator"])
    if record["expect"] == "rejection":
        _refuse(reading_problems(operator, record["readings"]))
        return
    attributes = attributes_of(record)
    inputs = _stand_ins(operator, record, attributes)
    checked(operator, attributes, inputs, record["outputs"], record["readings"])


def _refuse(problems: Iterable[Problem]) -> None:
    if sentences := [problem.sentence for problem in problems]:
        raise InvalidRequest("; ".join(sentences))


@cache
def _zero(dtype: str) -> Array:
    return np.zeros((), dtype_named(dtype).numpy)


def _stand_ins(
    operator: Operator, record: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, Array]:
    """Return arrays of zeros without memory, of the shapes and element types of the inputs."""
    sizes, needed = record["sizes"], size_names(operator)
    if not {*needed} <= sizes.keys() <= {*SIZES}:  # a suite may give more to all its cases
        given = ", ".join(sizes) or "none"
        raise InvalidRequest(f"{operator.name} needs the sizes {', '.join(needed)}, got {given}")
    frame = frame_of(operator, {name: sizes[name] for name in needed}, attributes)
    if frame is None:  # an attribute that decides on shapes is wrong, which is found without them
        return {}
    own = (record["dtype"],)  # of the inputs that have none by themselves
    try:
        return {
            row.name: np.broadcast_to(_zero((row.dtypes or own)[0]), frame.shape(row))
            for row in operator.inputs
            if row.name in record["inputs"]
        }
    except ValueError as error:
        raise InvalidRequest(f"no tensor has its sizes: {error}") from error
