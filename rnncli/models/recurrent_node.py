"""Nodes that run: the step of a graph, and recurrent ones, by our operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto

from rnncli.backends import backend_named
from rnncli.errors import InvalidOperator, Problem
from rnncli.models.memory import refuse_giant
from rnncli.models.model import attribute_value
from rnncli.models.single_node import STORED_TYPES
from rnncli.operators import problems
from rnncli.operators.evaluation import PreparedNode, compute_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto

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

    def run(self, values: Mapping[str | None, Any]) -> tuple[Any, ...]:
        """Run the node; return its outputs, at least the named ones."""
        operator, inputs = self.operator, [values[name] for name in self.inputs]
        if not operator.onnx_node.domain:
            refuse_giant(operator.op_type, inputs)
        if operator.need_context():
            outer = {name: values[name] for name in self.captured}
            made: tuple[Any, ...] = operator.run(*inputs, context=outer)
        else:
            made = operator.run(*inputs)
        if any(self.outputs[len(made) :]):
            raise ValueError(f"makes {len(made)} outputs, the node names {len(self.outputs)}")
        return made


class OwnNode:
    """A node with the part of onnx's `OpRun` that evaluators use, without importing onnx."""

    def __init__(self, onnx_node: NodeProto) -> None:
        self.onnx_node = onnx_node

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return self.onnx_node.op_type

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
            raise InvalidOperator(row.name, found)
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
            if any(tensors[len(rows) :]):
                yield Problem((side,), f"has {len(rows)} {side}, the node names {len(tensors)}")
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
