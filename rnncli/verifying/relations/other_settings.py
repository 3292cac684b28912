"""Relations between settings of a call: place of weights, layout, outputs, session, threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.packs.conversion import held_inputs
from rnncli.verifying.relations.node_call import T

if TYPE_CHECKING:
    from rnncli.files.formats.format import Tensors
    from rnncli.verifying.relations.asking import Asker
    from rnncli.verifying.relations.node_call import NodeCall

ELSEWHERE = {"inputs": "initializers", "initializers": "inputs"}


def again(call: NodeCall, ask: Asker) -> Tensors:
    """Make the same call after another call in the same session."""
    return ask.after([call, _other(call), call])


def _other(call: NodeCall) -> NodeCall:
    """Return a call of the same model with other numbers in all inputs the model does not store."""
    held = held_inputs(call.row, call.weights, call.inputs)
    fed = {name: values for name, values in call.inputs.items() if name not in held}
    other = call.with_changes({name: np.ascontiguousarray(np.flip(v)) for name, v in fed.items()})
    X = other.canonical("X")
    other = other.with_canonical("X", X + np.asarray(1, X.dtype))
    if call.get("lengths") is None:
        return other
    return other.with_lengths(np.maximum(call.sizes[T] - call.lengths, 1))


def weights_elsewhere(call: NodeCall, ask: Asker) -> Tensors:
    """Call with inputs as initializers, or initializers as inputs, for the weights."""
    return ask(call.with_changes(weights=ELSEWHERE[call.weights]))


def other_layout(call: NodeCall, ask: Asker) -> Tensors:
    """Call in the other layout."""
    layout = 1 - call.node.layout
    other = call.with_changes(attributes={**call.attributes, "layout": layout})
    inputs = {
        name: np.ascontiguousarray(other.node.in_layout(name, call.node.canonical(name, values)))
        for name, values in call.inputs.items()
    }
    found = ask(other.with_changes(inputs))
    return {
        name: call.node.in_layout(name, other.node.canonical(name, values))
        for name, values in found.items()
    }


def one_by_one(call: NodeCall, ask: Asker) -> Tensors:
    """Request each output alone."""
    return {name: ask(call.with_changes(outputs=(name,)))[name] for name in call.outputs}


def in_threads(call: NodeCall, ask: Asker) -> Tensors:
    """Call with several threads."""
    return ask.in_threads(call)
