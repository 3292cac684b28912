"""Relations of how a node is asked: where its weights are, in which layout, how often."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.metamorphic.node_call import T
from rnncli.packs.conversion import held_inputs

if TYPE_CHECKING:
    from rnncli.formats.format import Tensors
    from rnncli.metamorphic.ask import Ask
    from rnncli.metamorphic.node_call import NodeCall

ELSEWHERE = {"inputs": "initializers", "initializers": "inputs"}


def again(call: NodeCall, ask: Ask) -> Tensors:
    """Ask the same after another call of the same session."""
    return ask.after([call, _other(call), call])


def _other(call: NodeCall) -> NodeCall:
    """Return a call of the same model with other numbers in whatever the model does not hold."""
    held = held_inputs(call.row, call.weights, call.inputs)
    fed = {name: values for name, values in call.inputs.items() if name not in held}
    other = call.having({name: np.ascontiguousarray(np.flip(v)) for name, v in fed.items()})
    X = other.canonical("X")
    other = other.given_canonical("X", X + np.asarray(1, X.dtype))
    if call.get("lengths") is None:
        return other
    return other.with_lengths(np.maximum(call.sizes[T] - call.lengths, 1))


def weights_elsewhere(call: NodeCall, ask: Ask) -> Tensors:
    """Ask with the weights as initializers where they were inputs, or the other way."""
    return ask(call.having(weights=ELSEWHERE[call.weights]))


def other_layout(call: NodeCall, ask: Ask) -> Tensors:
    """Ask with the batch first where time was first, or the other way."""
    layout = 1 - call.node.layout
    other = call.having(attributes={**call.attributes, "layout": layout})
    inputs = {
        name: np.ascontiguousarray(other.node.in_layout(name, call.node.canonical(name, values)))
        for name, values in call.inputs.items()
    }
    found = ask(other.having(inputs))
    return {
        name: call.node.in_layout(name, other.node.canonical(name, values))
        for name, values in found.items()
    }


def one_by_one(call: NodeCall, ask: Ask) -> Tensors:
    """Ask for each output alone."""
    return {name: ask(call.having(outputs=(name,)))[name] for name in call.outputs}


def in_threads(call: NodeCall, ask: Ask) -> Tensors:
    """Ask with several threads."""
    return ask.in_threads(call)
