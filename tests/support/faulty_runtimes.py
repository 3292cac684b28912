"""ONNX Runtime with a fault in some of a model's nodes, wherever they are."""

import os

import onnx

from rnncli.models.model import all_bodies
from rnncli.subjects.runtimes.onnx_runtime import OnnxRuntime


def is_bidirectional(node):
    """Whether it has two directions."""
    return any(a.name == "direction" and a.s == b"bidirectional" for a in node.attribute)


def forget_lengths(node):
    """Read padding as data."""
    node.input[4] = ""


def swap_reset(node):
    """Apply the reset gate on the other side of the product, in bidirectional GRUs alone."""
    if is_bidirectional(node):
        (kept,) = (a for a in node.attribute if a.name == "linear_before_reset")
        kept.i = 1 - kept.i


def lose_bias(node):
    """Read no bias."""
    node.input[3] = ""


def subtract(node):
    """Subtract."""
    node.op_type = "Sub"


def refuse(node):
    """Have no such operator."""
    node.op_type = "Missing"


def die(node):
    """Take the process down."""
    os._exit(7)


# The runtime's option `fault` -> the operator of its nodes, and what becomes of each.
FAULTS = {
    "lengths": ("LSTM", forget_lengths),
    "reset": ("GRU", swap_reset),
    "bias": ("GRU", lose_bias),
    "end": ("GRU", die),
    "add": ("Add", subtract),
    "open": ("Add", subtract),
    "refusal": ("Add", refuse),
    "death": ("Add", die),
    "nothing": ("", None),
}


class FaultyRuntime(OnnxRuntime):
    """Changes the nodes of a model before it is loaded, unless it is told to optimise nothing."""

    def __init__(self, settings, threads):
        own = {name: value for name, value in settings.items() if name != "fault"}
        self._fault = settings["fault"] if own.get("optimization") != "none" else "nothing"
        super().__init__(own, threads)

    def session(self, vector):
        """Return a session with the changed model."""
        model = onnx.ModelProto.FromString(vector.model)
        operator, change = FAULTS[self._fault]
        if self._fault == "open" and not any(
            dim.dim_param for each in model.graph.input for dim in each.type.tensor_type.shape.dim
        ):
            operator = ""
        for node in (node for body in all_bodies(model) for node in body.node):
            if node.op_type == operator:
                change(node)
        object.__setattr__(vector, "model", model.SerializeToString())
        return super().session(vector)
