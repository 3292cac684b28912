"""The other answers of a case: those of readings that could change its result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from rnncli.recurrence.readings import READINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.operators import Node
    from rnncli.recurrence.recurrence import Recurrence

Test: TypeAlias = "Callable[[Node, Recurrence], bool]"


def _has_parameters(node: Node, _: Recurrence) -> bool:
    return bool(node.values["activation_alpha"] or node.values["activation_beta"])


def _has_empty_sequence(_: Node, recurrence: Recurrence) -> bool:
    lengths = recurrence.lengths
    return recurrence.X.shape[-3] == 0 or (lengths is not None and bool((lengths == 0).any()))


def _has_threshold(_: Node, recurrence: Recurrence) -> bool:
    names = {activation.name for row in recurrence.activations for activation in row}
    return "ThresholdedRelu" in names


# When a reading may matter at all; one that is not here always may.
MAY_MATTER: Mapping[str, Test] = {
    "alpha-order": _has_parameters,
    "clip-scope": lambda _, recurrence: math.isfinite(recurrence.clip),
    "zero-length": _has_empty_sequence,
    "threshold-tie": _has_threshold,
}


def other_readings(node: Node, recurrence: Recurrence) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield (`READING=CHOICE`, all readings) for every single choice that may change the result.

    Args:
        node: of a case, with its own readings.
        recurrence: the case under those, or a stack of such.
    """
    for name, chosen in node.readings.items():
        test = MAY_MATTER.get(name)
        if test is None or test(node, recurrence):
            for choice in READINGS[name].choices:
                if choice != chosen:
                    yield f"{name}={choice}", {**node.readings, name: choice}
