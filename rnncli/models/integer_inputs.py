"""Purposes of a model's integer inputs, deduced from the nodes that read them.

Random integers are seldom valid: a length must not exceed the sequence, an index must exist, a
sample rate is one of two numbers. Each row of the table below is a requirement of one input of one
operator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rnncli.files.formats.pb import array_of
from rnncli.models.model import Model, Site, bodies, subgraphs, walk
from rnncli.models.shape_inference import shapes_in
from rnncli.operators import operator_for
from rnncli.operators.operator import Dim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array

    Shapes = Mapping[str, tuple[int | str, ...]]


class Purpose(NamedTuple):
    """The valid integers of an input: `low` to `high`.

    `lengths` requires descending values that start with `high`, as for packed sequences.
    """

    low: int
    high: int
    lengths: bool = False


class Facts(NamedTuple):
    """The known shapes and small constants of a skeleton."""

    shapes: Shapes
    constants: Mapping[str, Array]

    def size(self, name: str, axis: int) -> int | None:
        """Return one dimension of a value, or None if unknown."""
        shape = self.shapes.get(name, ())
        size = shape[axis] if -len(shape) <= axis < len(shape) else None
        return size if isinstance(size, int) else None


ANY = Purpose(0, 9)
"""The range of an integer of unknown purpose: small and not negative."""

# Operators that pass on the integers of their first input unchanged.
_CARRIERS = frozenset(
    {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Flatten", "Expand"}
    | {"Tile", "Slice", "Gather", "Split", "Concat"}
)


def purpose(skeleton: Model, facts: Facts, name: str) -> Purpose:
    """Return the purpose of an input's integers, the narrowest if there are several readers.

    Args:
        skeleton: from `inferred`, with the inputs' shapes.
        facts: the skeleton's facts.
        name: the input's name.
    """
    wanted, carrying = [], {name}  # the names of its values, as they are passed on
    for site in walk(skeleton):
        node = site.node
        for position in (i for i, name in enumerate(node.input) if name in carrying):
            if found := _wanted(site, position, facts):
                wanted.append(found)
            if node.op_type in _CARRIERS and (position == 0 or node.op_type == "Concat"):
                carrying.update(node.output)
            # Into bodies, but for the trip count and the condition of a loop.
            if node.op_type == "Scan" or (node.op_type == "Loop" and position > 1):
                graphs = [graph for _, graph in subgraphs(node) if position < len(graph.input)]
                carrying.update(graph.input[position].name for graph in graphs)
    return min(wanted, key=lambda found: (not found.lengths, found.high - found.low), default=ANY)


def facts_of(skeleton: Model) -> Facts:
    """Collect the shapes and small constants of a skeleton."""
    constants: dict[str, Array] = {}
    for body in bodies(skeleton.proto.graph):
        tensors = [(tensor.name, tensor) for tensor in body.initializer]
        tensors += [
            (node.output[0], attribute.t)
            for node in body.node
            if node.op_type == "Constant" and node.output
            for attribute in node.attribute
            if attribute.name == "value"
        ]
        constants |= {name: array_of(t) for name, t in tensors if t.raw_data and 0 not in t.dims}
    return Facts(shapes_in(skeleton.proto), constants)


def _wanted(site: Site, position: int, facts: Facts) -> Purpose | None:
    node = site.node
    row = operator_for(node.domain, node.op_type, site.version)
    if row and position < len(row.inputs) and row.inputs[position].role == "lengths":
        dims = row.inputs[0].shape(_attribute(site, "layout", 0))
        return _up_to_length(facts.size(node.input[0], dims.index(Dim("seq_length"))))
    ask = _WANTS.get((node.op_type, position))
    return ask(site, facts) if ask else None


def _attribute(site: Site, name: str, default: int) -> int:
    return next((a.i for a in site.node.attribute if a.name == name), default)


def _up_to_length(seq_length: int | None) -> Purpose:
    """Return valid lengths; 1 is valid for any non-empty sequence."""
    high = 1 if seq_length is None else seq_length
    return Purpose(min(1, high), high, lengths=True)


def _index(site: Site, facts: Facts) -> Purpose:
    size = facts.size(site.node.input[0], _attribute(site, "axis", 0))
    return Purpose(0, max(0, size - 1)) if size is not None else ANY


def _compared(other: int) -> Callable[[Site, Facts], Purpose | None]:
    def equal(site: Site, facts: Facts) -> Purpose | None:
        constant = facts.constants.get(site.node.input[other])
        if constant is None or constant.size != 1 or constant.dtype.kind not in "iu":
            return None
        return Purpose(int(constant.item()), int(constant.item()))

    return equal


def _below_depth(site: Site, facts: Facts) -> Purpose | None:
    depth = facts.constants.get(site.node.input[1])
    return Purpose(0, max(0, int(depth.min()) - 1)) if depth is not None else None


def _time_steps(site: Site, facts: Facts) -> Purpose:
    return _up_to_length(facts.size(site.node.input[0], _attribute(site, "time_axis", 0)))


def _fixed(low: int, high: int) -> Callable[[Site, Facts], Purpose]:
    return lambda _site, _facts: Purpose(low, high)


# (operator, position of the input) -> the requirement on its integers
_WANTS: Mapping[tuple[str, int], Callable[[Site, Facts], Purpose | None]] = {
    ("Gather", 1): _index,
    ("GatherElements", 1): _index,
    ("GatherND", 1): _index,
    ("ScatterND", 1): _index,
    ("ScatterElements", 1): _index,
    ("OneHot", 0): _below_depth,
    ("Equal", 0): _compared(1),
    ("Equal", 1): _compared(0),
    ("ReverseSequence", 1): _time_steps,
    ("Loop", 0): _fixed(3, 3),
    ("TopK", 1): _fixed(1, 1),
    ("Reshape", 1): _fixed(1, 1),
    ("Expand", 1): _fixed(1, 2),
    ("Tile", 1): _fixed(1, 2),
    ("ConstantOfShape", 0): _fixed(1, 3),
    ("Range", 1): _fixed(3, 3),
    ("Range", 2): _fixed(1, 1),
}
