"""Relations between directions, which are independent in a bidirectional node."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from rnncli.verifying.relations.node_call import D, joined, picked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.operators import Node
    from rnncli.verifying.relations.asking import Asker
    from rnncli.verifying.relations.node_call import NodeCall

ALPHA_ORDERS = ("queue", "positional")


def apart(call: NodeCall, ask: Asker) -> Tensors:
    """Call each direction alone."""
    kinds = ("forward", "reverse")
    return joined(call, [ask(of_directions(call, [d], kinds[d])) for d in range(2)], D)


def of_directions(call: NodeCall, chosen: Sequence[int], kind: str) -> NodeCall:
    """Return a call with some directions, in order, with their functions.

    Args:
        call: a call with one or two directions.
        chosen: positions of the directions to keep.
        kind: the result's direction: forward, reverse or bidirectional.
    """
    some = picked(call, D, chosen)
    return some.with_changes(
        attributes={
            **some.attributes,
            **call.row.written("direction", kind),
            **_functions(call, chosen),
        }
    )


def functions_problem(call: NodeCall, chosen: Sequence[int], kind: str) -> str:
    """Return the reason that directions cannot get their functions alone, or ""."""
    node = of_directions(call, chosen, kind).node
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for order in ALPHA_ORDERS:
            readings = {"alpha-order": order}
            whole, some = (_activations(each, readings) for each in (call.node, node))
            if [whole[d] for d in chosen] != list(some):
                return "the function that takes an alpha or beta depends on a reading"
    return ""


def _activations(node: Node, readings: dict[str, str]) -> Any:
    return node.under(readings).activations


def _functions(call: NodeCall, chosen: Sequence[int]) -> dict[str, Any]:
    """Return the attributes that name the functions of some directions."""
    names = call.attributes.get("activations")
    if names is None:
        return {}
    per = len(call.row.cell.activations)
    if call.row.activation_lists != "each":
        return {"activations": names[:per]}
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
