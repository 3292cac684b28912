"""Relations between directions: those of a bidirectional node know nothing of each other."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from rnncli.metamorphic.node_call import D, joined, picked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.ask import Ask
    from rnncli.metamorphic.node_call import NodeCall
    from rnncli.operators import Node

ALPHA_ORDERS = ("queue", "positional")


def apart(call: NodeCall, ask: Ask) -> Tensors:
    """Ask each direction alone."""
    kinds = ("forward", "reverse")
    return joined(call, [ask(of_directions(call, [d], kinds[d])) for d in range(2)], D)


def of_directions(call: NodeCall, chosen: Sequence[int], kind: str) -> NodeCall:
    """Return a call of some directions, in their order; their functions go with them.

    Args:
        call: of one direction or two.
        chosen: positions of its directions.
        kind: the attribute `direction` of the result.
    """
    some = picked(call, D, chosen)
    return some.having(
        attributes={**some.attributes, "direction": kind, **_functions(call, chosen)}
    )


def functions_problem(call: NodeCall, chosen: Sequence[int], kind: str) -> str:
    """Return why functions cannot be given to some directions alone, or ""."""
    node = of_directions(call, chosen, kind).node
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for order in ALPHA_ORDERS:
            readings = {"alpha-order": order}
            whole, some = (_activations(each, readings) for each in (call.node, node))
            if [whole[d] for d in chosen] != list(some):
                return "which function takes an alpha or beta depends on a reading"
    return ""


def _activations(node: Node, readings: dict[str, str]) -> Any:
    return node.under(readings).activations


def _functions(call: NodeCall, chosen: Sequence[int]) -> dict[str, Any]:
    """Return the attributes that name functions, for some directions."""
    names = call.attributes.get("activations")
    if names is None:
        return {}
    if call.row.equal_activations:
        return {"activations": names[:1]}
    per = len(call.row.cell.activations)
    rows = call.node.activations
    found: dict[str, Any] = {
        "activations": [name for d in chosen for name in names[d * per : (d + 1) * per]]
    }
    for attribute in call.row.attributes.values():
        value = (attribute.role or attribute.name).removeprefix("activation_")
        if value in {"alpha", "beta"} and call.attributes.get(attribute.name):
            given = [getattr(function, value) for d in chosen for function in rows[d]]
            found[attribute.name] = [each for each in given if each is not None] or None
    return found
