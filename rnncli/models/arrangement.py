"""The arrangement of a body's nodes: what is computed once, in every run, or by a host engine.

Exporters leave the assembly of weights to the runtime, and make initial states of zeros in a shape
that follows from the inputs. Backends prepare constant weights once, so such nodes run once.

A host engine takes subgraphs of nodes that are not recurrent. A node's phase is the number of times
that the values on a path to it change from nodes that stay to nodes of the engine. Those of the
engine in one phase read nothing that nodes between them make, so they are one subgraph, and there
are no more subgraphs than the longest path has changes.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from onnx import NodeProto

from rnncli.models.model import captured_names, nodes_that_make

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence


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


Part: TypeAlias = Numbered | list[Numbered]

COPIES = MOVES.union(("Cast", "Concat", "ConstantOfShape", "Expand", "Gather", "Split"))
"""Operators that compute nothing. Subgraphs of nothing else are none for an engine: it copies no
faster than NumPy, and to call it takes as long as six such nodes."""


class Region(NamedTuple):
    """A subgraph for a host engine.

    Attributes:
        nodes: in order.
        inputs: the names of the values it reads that are neither made in it nor constants.
        constants: the names of the constants it reads.
        outputs: the names of its values that are read elsewhere.
    """

    nodes: list[Numbered]
    inputs: list[str]
    constants: list[str]
    outputs: list[str]


class Division(NamedTuple):
    """The nodes of a body, divided.

    Attributes:
        constant: the nodes that are computed before the first run.
        shaped: those that are computed once for the shapes of inputs.
        parts: what runs in turn: nodes that stay, and lists of nodes for a host engine.
        spare: all nodes that read constants and shapes alone, of which regions have copies.
    """

    constant: list[Numbered]
    shaped: list[Numbered]
    parts: list[Part]
    spare: list[Numbered]

    def region(
        self, hosted: list[Numbered], constants: Collection[str], outputs: Collection[str]
    ) -> Region:
        """Return the subgraph of one of the lists.

        Args:
            hosted: the list.
            constants: the names of values that are known.
            outputs: the names of the body's outputs.
        """
        nodes = nodes_that_make(self.spare, _read_by([hosted])) + hosted
        made = {name for _, node in nodes for name in node.output}
        outside = dict.fromkeys(name for _, node in nodes for name in sorted(reads_of(node) - made))
        read = _read_by(part for part in self.parts if part is not hosted).union(outputs)
        return Region(
            nodes,
            [name for name in outside if name not in constants],
            [name for name in outside if name in constants],
            [name for _, node in hosted for name in node.output if name and name in read],
        )


def division_of(
    arrangement: Arrangement, outputs: Collection[str], stays: Callable[[NodeProto], bool]
) -> Division:
    """Return the division of a body's nodes.

    Args:
        arrangement: the nodes.
        outputs: the names of the body's outputs.
        stays: whether a node is not one for the engine.
    """
    parts = _parts(arrangement.others, stays)
    read = _read_by(part for part in parts if not isinstance(part, list)).union(outputs)
    shaped = nodes_that_make(arrangement.shaped, read)
    shaped = in_order(shaped + nodes_that_make(arrangement.moved, _read_by(shaped)))
    constant = nodes_that_make(arrangement.constant, read | _read_by(shaped))
    return Division(constant, shaped, parts, in_order(arrangement.constant + arrangement.shaped))


def _read_by(parts: Iterable[Part]) -> set[str]:
    """Return the names of the values that nodes read."""
    lists = (part if isinstance(part, list) else [part] for part in parts)
    return {name for nodes in lists for _, node in nodes for name in reads_of(node)}


def _parts(nodes: Sequence[Numbered], stays: Callable[[NodeProto], bool]) -> list[Part]:
    """Return what runs in turn."""
    staying = [stays(node) for _, node in nodes]
    phases = _phases([node for _, node in nodes], staying)
    found: list[Part] = []
    for phase in sorted({*phases}):
        here = [(n, stay) for n, p, stay in zip(nodes, phases, staying, strict=True) if p == phase]
        hosted = [numbered for numbered, stay in here if not stay]
        if all(not node.domain and node.op_type in COPIES for _, node in hosted):
            found += hosted
        else:
            found.append(hosted)
        found += [numbered for numbered, stay in here if stay]
    return found


def _phases(nodes: Sequence[NodeProto], staying: Sequence[bool]) -> list[int]:
    """Return each node's phase: for the engine the last that serves, so that few values cross."""
    makers: dict[str, int] = {}
    phases: list[int] = []
    for index, node in enumerate(nodes):
        before = [makers[name] for name in reads_of(node) if name in makers]
        phases.append(max((phases[i] + (staying[i] > staying[index]) for i in before), default=0))
        makers.update(dict.fromkeys(node.output, index))
    last: dict[int, int] = {}
    for index in reversed(range(len(nodes))):
        if not staying[index]:
            phases[index] = last.get(index, phases[index])
        for name in reads_of(nodes[index]) & makers.keys():
            last[makers[name]] = min(phases[index], last.get(makers[name], phases[index]))
    return phases


def shadows(nodes: Iterable[NodeProto], defined: Collection[str]) -> bool:
    """Return whether a node gives a new value to a name that was read or defined before it."""
    read = {*defined}
    for node in nodes:
        read |= reads_of(node)
        if not read.isdisjoint(node.output):
            return True
    return False


def reads_of(node: NodeProto) -> set[str]:
    """Return the names of the values that a node reads, itself and in its graphs."""
    return {*node.input, *captured_names(node)} - {""}
