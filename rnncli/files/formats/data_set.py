"""Data sets: inputs and outputs of a model, and their names in a plain file of tensors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array

_ROLE = re.compile(r"test_data_set_(0|[1-9][0-9]{0,8})/(inputs|outputs)/(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DataSet:
    """The inputs and outputs of one evaluation.

    Attributes:
        inputs: inputs in the model's order.
        outputs: outputs in the model's order.
    """

    inputs: Tensors = field(default_factory=dict)
    outputs: Tensors = field(default_factory=dict)


def flatten(data_sets: Sequence[DataSet]) -> Tensors:
    """Return all tensors of some data sets by unique names; the inverse of `unflatten`.

    The outputs of one data set without inputs keep their names. Otherwise a name is
    ``test_data_set_N/inputs/NAME`` or ``test_data_set_N/outputs/NAME``.
    """
    if len(data_sets) == 1 and not data_sets[0].inputs and not _all_roles(data_sets[0].outputs):
        return dict(data_sets[0].outputs)
    return dict(_prefixed(data_sets))


def unflatten(tensors: Tensors) -> tuple[DataSet, ...]:
    """Return the data sets in a plain file; if not all names have a role, all are outputs."""
    if not _all_roles(tensors):
        return (DataSet(outputs=tensors),)
    data_sets: dict[int, DataSet] = {}
    for full_name, values in tensors.items():
        match = _ROLE.fullmatch(full_name)
        assert match
        number, role, name = match.groups()
        getattr(data_sets.setdefault(int(number), DataSet()), role)[name] = values
    return tuple(data_sets[number] for number in sorted(data_sets))


def _all_roles(tensors: Tensors) -> bool:
    return bool(tensors) and all(_ROLE.fullmatch(name) for name in tensors)


def _prefixed(data_sets: Sequence[DataSet]) -> Iterator[tuple[str, Array]]:
    for number, data_set in enumerate(data_sets):
        for role in ("inputs", "outputs"):
            for name, values in getattr(data_set, role).items():
                yield f"test_data_set_{number}/{role}/{name}", values
