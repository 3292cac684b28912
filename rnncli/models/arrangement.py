"""The division of a body's nodes: what is computed once, in every run, or by a host engine.

Exporters leave the assembly of weights to the runtime. Backends prepare constant weights once, so
nodes that read constants alone run once.

A host engine takes subgraphs of nodes that are not recurrent. A node's phase is the number of times
that the values on a path to it change from nodes that stay to nodes of the engine. Those of the
engine in one phase read nothing that nodes between them make, so they are one subgraph, and there
are no more subgraphs than the longest path has changes.
"""

from __future__ import annotations

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


def draws(node: NodeProto) -> bool:
    """Return whether a node draws random numbers; Dropout does if it is told to train."""
    return node.op_type in RANDOM and (node.op_type != "Dropout" or len(node.input) > 2)


Part: TypeAlias = Numbered | list[Numbered]

COPIES = frozenset(
    (
        *("Cast", "Concat", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather"),
        *("Identity", "Reshape", "Shape", "Size", "Slice", "Split", "Squeeze", "Transpose"),
        "Unsqueeze",
    )
)
"""Operators that compute nothing. Subgraphs of nothing else are none for an engine: it copies no
faster than NumPy, and to call it takes as long as six such nodes."""


class Region(NamedTuple):
    """A subgraph for a host engine."""

    nodes: list[Numbered]  # in order
    inputs: list[str]  # the names of the values it reads that are neither made in it nor constants
    constants: list[str]  # the names of the constants it reads
    outputs: list[str]  # the names of its values that are read elsewhere


class Division(NamedTuple):
    """The nodes of a body, divided."""

    constant: list[Numbered]  # the nodes that are computed before the first run
    parts: list[Part]  # what runs in turn: nodes that stay, and lists of nodes for a host engine
    spare: list[Numbered]  # all nodes that read constants alone, of which regions have copies

    def region(
        self, hosted: list[Numbered], constants: Collection[str], outputs: Collection[str]
    ) -> Region:
        """Return the subgraph of one of the lists."""
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
    nodes: Sequence[Numbered],
    constants: Collection[str],
    defined: Collection[str],
    outputs: Collection[str],
    *,
    folds: Collection[int],
    stays: Callable[[NodeProto], bool],
) -> Division:
    """Return the division of a body's nodes.

    Args:
        nodes: the nodes, in an order in which they can run.
        constants: the names of values that are known.
        defined: the names that have a value before the first node.
        outputs: the names of the body's outputs.
        folds: the places of nodes whose outputs depend on their inputs alone.
        stays: whether a node is not one for the engine.
    """
    spare, others = [], []
    constant, seen = {*constants, ""}, {*constants, *defined}
    for index, node in nodes:
        is_new = seen.isdisjoint(node.output)  # a name that was read keeps its meaning
        if index in folds and is_new and constant.issuperset(node.input):
            spare.append((index, node))
            constant.update(node.output)
        else:
            others.append((index, node))
        seen |= {*node.input} | captured_names(node)
    parts = _parts(others, stays)
    wanted = _read_by(part for part in parts if not isinstance(part, list)).union(outputs)
    return Division(nodes_that_make(spare, wanted), parts, spare)


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
