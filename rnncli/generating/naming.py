"""Ids of captured executions: the names of nodes, fit to be names of folders on any system."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rnncli.cases.entry import LONGEST_ID

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rnncli.generating.captures import Capture


def slug(text: str) -> str:
    """Return a text in small letters, digits and underscores; "" when it has none of them.

    Of a long one the end is kept: a node's name goes from the general to the particular.
    """
    longest = LONGEST_ID - len("_1234567")  # room for a number
    return re.sub(r"[^a-z0-9]+", "_", text.lower())[-longest:].strip("_")


def ids_of(captures: Sequence[Capture]) -> list[str]:
    """Name each by its node, `lstm_1`, and from its second execution on `lstm_1_2`.

    Where two nodes have one name, the later one has its whole path. All are different.
    """
    bases: dict[int, str] = {}
    for capture in captures:
        if capture.node not in bases:
            bases[capture.node] = _base(capture, set(bases.values()))
    taken = set(bases.values())
    ids = []
    for capture in captures:
        case_id = bases[capture.node]
        if capture.number > 1:
            case_id = _free(f"{case_id}_{capture.number}", taken)
            taken.add(case_id)
        ids.append(case_id)
    return ids


def _base(capture: Capture, taken: Collection[str]) -> str:
    name = slug(capture.path[-1])
    if not name:
        return _free(slug(capture.occurrence.node.operator.type), taken)
    return name if name not in taken else _free(slug(capture.where), taken)


def _free(wanted: str, taken: Collection[str]) -> str:
    """Return an id that nothing else has."""
    found, k = wanted, 2
    while found in taken:
        found, k = f"{wanted}_{k}", k + 1
    return found
