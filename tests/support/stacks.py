"""Stacks of nodes that are alike, and the recurrences in them."""

from dataclasses import replace

import numpy as np

from rnncli.operators import OPERATORS
from rnncli.operators.node import Node

ARRAYS = ("X", "W", "R", "Wb", "Rb", "P", "lengths")


def siblings(node, count=3):
    """Return nodes of the same sizes and attributes: the given one, and others like it."""
    generator = np.random.default_rng(node.seed)
    others = [
        replace(node, inputs={n: _shuffled(v, generator) for n, v in node.inputs.items()})
        for _ in range(count - 1)
    ]
    return [node, *others]


def _shuffled(values, generator):
    return generator.permutation(values.ravel()).reshape(values.shape)


def bound(node, inputs=None):
    """Bind a node, or with inputs [n, ...] a stack."""
    row = OPERATORS[node.operator]
    names = node.outputs or [output.name for output in row.outputs]
    readings = {**row.readings, **node.readings}
    return Node(row, node.attributes, names, readings).recurrence(inputs or node.inputs)


def stacked(found):
    """Return the stack of some nodes' inputs."""
    return {name: np.stack([node.inputs[name] for node in found]) for name in found[0].inputs}
