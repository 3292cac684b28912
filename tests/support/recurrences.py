"""Recurrences of a size to look at, with every input given."""

from dataclasses import replace

import numpy as np

from rnncli.numerics import DTYPES
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node
from rnncli.recurrence.recurrence import Constants

SIZES = (
    ("T", "seq_length", 4),
    ("N", "batch_size", 3),
    ("I", "input_size", 2),
    ("H", "hidden_size", 5),
    ("D", "num_directions", 1),
)
DIRECTIONS = {1: "forward", 2: "bidirectional"}
# An LSTM whose output gate sees the previous cell state through its peephole.
PREVIOUS = {"peepholes": True, "readings": {"peephole-o": "previous"}}


def recurrence_of(kind, *, dtype="float32", seed=0, scale=0.5, readings=None, **given):
    """Bind a node with normal inputs.

    T, N, I, H and D are its sizes (4, 3, 2, 5 and 1 if not given); `peepholes` and `lengths` are
    inputs; all else are attributes.
    """
    peepholes, lengths = given.pop("peepholes", False), given.pop("lengths", None)
    row = OPERATORS[f"{kind}-22"]
    generator = np.random.default_rng(seed)
    sizes = {symbol: given.pop(letter, size) for letter, symbol, size in SIZES}
    D = sizes["num_directions"]
    attributes = {"direction": DIRECTIONS[D], **given}
    if "activations" in attributes:
        attributes["activations"] = list(attributes["activations"]) * D
    inputs = {}
    for tensor in row.inputs:
        if tensor.role == "lengths" or (tensor.role == "P" and not peepholes):
            continue
        shape = tuple(dim.multiple * sizes[dim.symbol] for dim in tensor.shape())
        values = generator.normal(0, 1 if tensor.role == "X" else scale, shape)
        inputs[tensor.name] = values.astype(DTYPES[dtype].numpy)
    if lengths is not None:
        inputs["sequence_lens"] = np.array(lengths, np.int32)
    outputs = [output.name for output in row.outputs]
    return Node(row, attributes, outputs, {**row.readings, **(readings or {})}).recurrence(inputs)


def of_constants(recurrence, constants=None):
    """The same of weights that nobody changes; what is made of them may be given."""
    copy = replace(recurrence)
    copy.constants = Constants() if constants is None else constants
    return copy


def but(recurrence, **changes):
    """The same of the same constants, with other inputs or settings."""
    return of_constants(replace(recurrence, **changes), recurrence.constants)
