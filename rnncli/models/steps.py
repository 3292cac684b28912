"""Nodes that run: steps of a graph, with a place in their errors, in the memory they may take.

A damaged shape in a small file can request terabytes, which an overcommitting operating system
grants, so giant outputs are refused before they are made, and live values are counted.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto

from rnncli.backends import backend_named
from rnncli.errors import (
    Exhausted,
    InvalidOperator,
    InvalidRequest,
    NodeFailure,
    Problem,
    RnncliError,
    Unsupported,
    refusal,
)
from rnncli.limits import FROM_BYTE, FROM_NOTHING, OutOfMemory, ask, shortage
from rnncli.models.model import attribute_value, operator_name
from rnncli.models.single_node import STORED_TYPES
from rnncli.operators import operator_for, problems
from rnncli.operators.evaluation import PreparedNode, compute_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from onnx import NodeProto

    from rnncli.limits import Budget
    from rnncli.models.evaluation_settings import EvaluationSettings
    from rnncli.numerics import Array
    from rnncli.operators import Node, Operator


@dataclass(slots=True, eq=False)
class Step:
    """A prepared node with the names it reads, produces, and is the last to read.

    An omitted output is None, because "" is the name of omitted inputs.
    """

    operator: Any
    path: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str | None, ...]
    captured: frozenset[str] = frozenset()
    last_reads: tuple[str | None, ...] = ()
    least: int = field(init=False)  # the number of outputs up to the last named one
    may_be_giant: str = field(init=False)  # its operator, if a small input can make a giant output
    needs_context: bool = field(init=False)

    def __post_init__(self) -> None:
        node = self.operator.onnx_node
        self.least = max((k for k, name in enumerate(self.outputs, 1) if name), default=0)
        is_listed = not node.domain and node.op_type in _ELEMENTS
        self.may_be_giant = node.op_type if is_listed else ""
        self.needs_context = self.operator.need_context()

    def run(self, values: Mapping[str | None, Any]) -> tuple[Any, ...]:
        """Run the node; return its outputs, at least the named ones."""
        inputs: Iterable[Any] = map(values.__getitem__, self.inputs)
        if self.may_be_giant:
            refuse_giant(self.may_be_giant, inputs := [*inputs])
        if self.needs_context:
            outer = {name: values[name] for name in self.captured}
            made: tuple[Any, ...] = self.operator.run(*inputs, context=outer)
        else:
            made = self.operator.run(*inputs)
        if len(made) < self.least:
            raise ValueError(f"makes {len(made)} outputs, the node names {len(self.outputs)}")
        return made


class OwnNode:
    """A node with the part of onnx's `OpRun` that evaluators use, without importing onnx."""

    def __init__(self, onnx_node: NodeProto) -> None:
        self.onnx_node = onnx_node

    def need_context(self) -> bool:
        """Whether it reads values other than its inputs: it does not."""
        return False

    def run(self, *inputs: Any) -> tuple[Any, ...]:
        """Return the outputs; unnamed ones may be None."""
        raise NotImplementedError


class OwnRecurrentNode(OwnNode):
    """A node evaluated by one of our operators.

    Raises:
        InvalidOperator: an attribute breaks the specification, or there are too many inputs.
        Unsupported: an attribute does not, but is not evaluated here.
    """

    def __init__(self, onnx_node: NodeProto, row: Operator, arithmetic: EvaluationSettings) -> None:
        super().__init__(onnx_node)
        self._row = row
        self._readings = {k: v for k, v in arithmetic.readings.items() if k in row.readings}
        self._attributes = {each.name: attribute_value(each) for each in onnx_node.attribute}
        named = [*zip(row.outputs, onnx_node.output, strict=False)]
        self._makes = [output.name if name else "" for output, name in named]
        self._wanted = [name for name in self._makes if name]
        self._absent = (None,) * (len(row.inputs) - len(onnx_node.input))
        if found := [*self._problems()]:
            raise refusal(row.name, found)
        engine = backend_named(arithmetic.backend), compute_named(arithmetic.compute)
        self._prepared = PreparedNode(row, self._attributes, self._wanted, self._readings, engine)

    def _problems(self) -> Iterator[Problem]:
        """Yield what is wrong with the node, whatever its inputs are."""
        node, row = self.onnx_node, self._row
        # Attributes given twice, or as another type than ONNX's: the value 3 is no float 3.0.
        seen: set[str] = set()
        for attribute in node.attribute:
            subject: tuple[str, ...] = ("attributes", attribute.name)
            if attribute.name in seen:
                yield Problem(subject, f"attribute '{attribute.name}' is given twice")
            seen.add(attribute.name)
            declared = row.attributes.get(attribute.name)
            names = AttributeProto.AttributeType.Name
            if declared and attribute.type != (stored := STORED_TYPES[declared.type]):
                given = names(attribute.type).lower()
                wanted = f"must be of type {names(stored).lower()}, got type {given}"
                yield Problem(subject, f"attribute '{attribute.name}' {wanted}")

        sides = (("inputs", row.inputs, node.input), ("outputs", row.outputs, node.output))
        for side, rows, tensors in sides:
            others = tensors[len(rows) :]
            known = zip_longest(row.beyond.get(side, ())[: len(others)], others)
            if beyond := [name for name, tensor in known if tensor]:
                sentence = f"has {len(rows)} {side}, the node names {len(tensors)}"
                if is_known := None not in beyond:
                    sentence = f"{side} are not evaluated here: {', '.join(beyond)}"
                yield Problem((side,), sentence, is_unsupported=is_known)
        for problem in problems(row, self._attributes, {}, self._wanted, self._readings):
            if problem.subject[0] != "inputs":  # their shapes are known when the node runs
                yield problem

    @property
    def node(self) -> Node:
        """The node, independent of its inputs."""
        return self._prepared.node

    def by_name(self, inputs: Sequence[Array | None]) -> dict[str, Array]:
        """Return the present inputs by the operator's names."""
        return self._prepared.by_name(inputs)

    def run(self, *inputs: Array | None) -> tuple[Array | None, ...]:
        """Evaluate the node; unnamed outputs are None."""
        made = self._prepared.run(inputs + self._absent)
        if len(made) == len(self._makes):
            return made
        named = dict(zip(self._wanted, made, strict=True))
        return tuple([named.get(name) for name in self._makes])


_NODE = ": node '"
"""The text between a model's name and a node's in every message about a node."""


def place(model: str, path: Sequence[str], node: NodeProto, versions: Mapping[str, int]) -> str:
    """Return a node's name for messages: ``model.onnx: node 'lstm_3' (LSTM-14)``."""
    row = operator_for(node.domain, node.op_type, versions.get(node.domain, 0))
    return f"{model}{_NODE}{' / '.join(path)}' ({row.name if row else operator_name(node)})"


@contextmanager
def placed(
    model: str, path: Sequence[str], node: NodeProto, versions: Mapping[str, int]
) -> Iterator[None]:
    """Convert a node's exception into an error whose message begins with the node.

    A message that already begins with the model and a node comes from an inner node.
    """
    try:
        yield
    except Exception as error:  # onnx's kernels raise anything
        begins = error.where if isinstance(error, InvalidOperator) else str(error)
        if isinstance(error, RnncliError) and begins.startswith(f"{model}{_NODE}"):
            if error.failure and node.output:
                error.failure = error.failure._replace(makes=tuple(node.output))
            raise
        where = place(model, path, node, versions)
        if isinstance(error, InvalidOperator):
            about: RnncliError = InvalidOperator(where, error.problems)
        elif isinstance(error, RnncliError):
            about = type(error)(f"{where}: {error}")
        elif isinstance(error, MemoryError):
            about = OutOfMemory(f"{where}: {shortage(error)}")
        else:
            missing = isinstance(error, NotImplementedError | ImportError)
            about = (Unsupported if missing else InvalidRequest)(f"{where}: {_reason(error)}")
        if not isinstance(about, Exhausted):  # other sizes of inputs would not help
            about.failure = NodeFailure(where.removeprefix(f"{model}: "), tuple(node.output))
        raise about from error


def _reason(error: Exception) -> str:
    """Return an exception's message in one line, or the cause of a TypeError that OpRun raised."""
    if isinstance(error, TypeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    sentence = " ".join(str(error).split())[:300]
    # The checker's by its name: importing the class would import all of onnx.
    kind = type(error)
    is_of_checker = kind.__name__ == "ValidationError" and kind.__module__.startswith("onnx.")
    plain = isinstance(error, ValueError | NotImplementedError) or is_of_checker
    return sentence if plain and sentence else f"{kind.__name__} {sentence}".strip()


def refuse_giant(op_type: str, inputs: Sequence[Any]) -> None:
    """Raise if these inputs give an operator in `_ELEMENTS` a giant output.

    Raises:
        OutOfMemory: the output exceeds the run's memory.
    """
    if not inputs or inputs[-1] is None:
        return
    elements = _ELEMENTS[op_type](*inputs)
    arrays = [values for values in inputs if isinstance(values, np.ndarray | np.generic)]
    width = _WIDTHS.get(op_type, arrays[0].itemsize)
    limit = max(FROM_NOTHING, FROM_BYTE * max(values.nbytes for values in arrays))
    ask(elements * width, "its output", otherwise=limit)


def _product(sizes: Any) -> int:
    return math.prod(map(int, np.ravel(sizes).tolist()))


def _expanded(values: Any, shape: Any) -> int:
    sizes = [*map(int, np.ravel(shape).tolist())]
    ours = [1] * (len(sizes) - values.ndim) + list(values.shape)
    theirs = [1] * (values.ndim - len(sizes)) + sizes
    return math.prod(max(pair) for pair in zip(ours, theirs, strict=True))


def _range(start: Any, limit: Any, delta: Any) -> float:
    step = float(delta.item())
    return (float(limit.item()) - float(start.item())) / step if step else 0


def _padded(values: Any, pads: Any = (), _fill: Any = None, axes: Any = None) -> int:
    sizes, amounts = [*values.shape], np.ravel(pads).tolist()
    count = len(amounts) // 2
    for i, axis in enumerate(range(count) if axes is None else np.ravel(axes).tolist()):
        sizes[axis] += int(amounts[i]) + int(amounts[i + count])
    return math.prod(sizes)


def _resized(values: Any, *factors: Any) -> float:
    """Return the size of Resize's or Upsample's output; sizes come last, scales before them."""
    given = [f for f in factors if f is not None and f.size == values.ndim]
    if not given:
        return 0
    sizes = given[-1]
    scaled = sizes.dtype.kind == "f"
    return float(math.prod(map(float, sizes))) * (values.size if scaled else 1)


# The number of elements of an operator's output, from its inputs.
_ELEMENTS: Mapping[str, Callable[..., float]] = {
    "ConstantOfShape": _product,
    "Expand": _expanded,
    "Tile": lambda values, repeats: values.size * _product(repeats),
    "Range": _range,
    "Pad": _padded,
    "OneHot": lambda indices, depth, *_: indices.size * int(np.ravel(depth)[0]),
    "Resize": _resized,
    "Upsample": _resized,
}

# Bytes of an output element, if it does not have the first input's type.
_WIDTHS: Mapping[str, int] = {"ConstantOfShape": 4, "OneHot": 4}


class MemoryTally:
    """A tally of live arrays, each counted once even if several values view it.

    Args:
        budget: the run's budget.
        given: values that existed before; they and their views do not count.
    """

    def __init__(self, budget: Budget, given: Iterable[Any]) -> None:
        self._budget = budget
        self._given = {id(owner) for value in given for owner in _owners(value)}
        self._alive: dict[int, list[int]] = {}  # by owner: number of values, bytes

    def add(self, values: Iterable[Any]) -> None:
        """Count the outputs of a node.

        Raises:
            OutOfMemory: the live values exceed the budget.
        """
        for owner in (owner for value in values for owner in _owners(value)):
            if id(owner) in self._alive:
                self._alive[id(owner)][0] += 1
            elif id(owner) not in self._given:
                self._alive[id(owner)] = [1, owner.nbytes]
                self._budget.count(owner.nbytes)

    def drop(self, value: Any) -> None:
        """Release a value that has no further readers."""
        for owner in _owners(value):
            if found := self._alive.get(id(owner)):
                found[0] -= 1
                if not found[0]:
                    self._budget.count(-found[1])
                    del self._alive[id(owner)]

    def close(self) -> None:
        """Release everything; returned values are counted by their receiver."""
        self._budget.count(-sum(nbytes for _, nbytes in self._alive.values()))


def _owners(value: Any) -> Iterator[Array]:
    """Yield the arrays that own a value's memory; a sequence has many."""
    if isinstance(value, np.ndarray):
        yield value.base if isinstance(value.base, np.ndarray) else value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _owners(each)
