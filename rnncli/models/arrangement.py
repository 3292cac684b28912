"""The arrangement of a body's nodes: what is computed once, and what in every run.

Exporters leave the assembly of weights to the runtime, and make initial states of zeros in a shape
that follows from the inputs. Backends prepare constant weights once, so such nodes run once.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from onnx import NodeProto

from rnncli.models.model import captured_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

Numbered: TypeAlias = tuple[int, NodeProto]
"""A node with its place in its body."""

RANDOM = frozenset(
    (
        *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomUniform"),
        *("RandomNormalLike", "RandomUniformLike"),
    )
)
"""Operators that draw different numbers in each run."""

OF_SHAPES = frozenset(("Shape", "Size"))
"""Operators that read nothing of their input but its shape."""

MOVES = frozenset(
    (
        *("Constant", "Flatten", "Identity", "Reshape", "Shape", "Size"),
        *("Slice", "Squeeze", "Transpose", "Unsqueeze"),
    )
)
"""Operators of which NumPy makes a view, and the shape follows from those of inputs, if all but the
first are constants."""


class Arrangement(NamedTuple):
    """The nodes of a body by when they run, each list in order.

    Attributes:
        constant: before the first run: they read constants alone.
        shaped: once for the shapes of inputs: they read those, constants and each other.
        others: in every run.
        moved: those of the others that only move inputs, so that shapes are read of what they make.
    """

    constant: list[Numbered]
    shaped: list[Numbered]
    others: list[Numbered]
    moved: list[Numbered]


def arranged(
    nodes: Sequence[Numbered],
    constants: Collection[str],
    inputs: Collection[str],
    defined: Collection[str],
    folds: Collection[int],
) -> Arrangement:
    """Return the arrangement of a body's nodes.

    Args:
        nodes: the nodes, in an order in which they can run.
        constants: the names of values that are known.
        inputs: the names of inputs of which one run has one shape; none of a body that runs often.
        defined: the names that have a value before the first node.
        folds: the places of nodes whose outputs depend on their inputs alone.
    """
    found = Arrangement([], [], [], [])
    constant, shaped, outlined = {*constants, ""}, set[str](), {*inputs}
    read = {*constants, *defined}
    for index, node in nodes:
        reads = {*node.input}
        may_fold = index in folds and read.isdisjoint(node.output)  # a name read keeps its meaning
        if may_fold and reads <= constant:
            found.constant.append((index, node))
            constant.update(node.output)
        elif may_fold and (reads <= constant | shaped or _reads_shapes(node, outlined)):
            found.shaped.append((index, node))
            shaped.update(node.output)
        else:
            found.others.append((index, node))
            if may_fold and _moves(node, outlined, constant):
                found.moved.append((index, node))
                outlined.update(node.output)
        read |= reads | captured_names(node)
    return found


def in_order(nodes: Iterable[Numbered]) -> list[Numbered]:
    """Return nodes in the order of their body."""
    return sorted(nodes, key=itemgetter(0))


def _reads_shapes(node: NodeProto, outlined: Collection[str]) -> bool:
    return not node.domain and node.op_type in OF_SHAPES and node.input[0] in outlined


def _moves(node: NodeProto, outlined: Collection[str], constant: Collection[str]) -> bool:
    first, *others = node.input
    is_one = not node.domain and node.op_type in MOVES
    return is_one and first in outlined and all(name in constant for name in others)


def draws(node: NodeProto) -> bool:
    """Return whether a node draws random numbers; Dropout does if it is told to train."""
    return node.op_type in RANDOM and (node.op_type != "Dropout" or len(node.input) > 2)
