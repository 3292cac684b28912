"""A recurrent node inside a model, evaluated by our operators."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import AttributeProto

from rnncli.backends import backend_named
from rnncli.errors import InvalidOperator, Problem
from rnncli.graph.model import attribute_value
from rnncli.graph.own_node import OwnNode
from rnncli.operators import evaluate, problems
from rnncli.operators.binding import Binding
from rnncli.operators.evaluation import compute_named
from rnncli.recurrence.readings import check_reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from onnx import NodeProto

    from rnncli.backends.backend import Backend, Compute
    from rnncli.numerics import Array
    from rnncli.operators import Operator


class Arithmetic(NamedTuple):
    """How recurrent operators are evaluated.

    Attributes:
        backend: name of the backend.
        compute: "float64" or "native".
        readings: contested points, each by its name; the operators' own defaults otherwise.
    """

    backend: str = "numpy"
    compute: str = "float64"
    readings: Mapping[str, str] = {}

    def check(self) -> None:
        """Refuse what does not exist, before a node is asked for it.

        Raises:
            InvalidRequest: there is no such backend, mode, reading or choice.
            Unsupported: the backend does not import.
        """
        backend_named(self.backend)
        compute_named(self.compute)
        for name, choice in self.readings.items():
            check_reading(name, choice)


class Description(NamedTuple):
    """What a recurrent node is.

    Attributes:
        operator: the row that evaluates it.
        attributes: as written on the node.
        outputs: the operator's names of those it makes.
        readings: every reading of the operator, resolved.
    """

    operator: Operator
    attributes: Mapping[str, Any]
    outputs: tuple[str, ...]
    readings: Mapping[str, str]


class RecurrentNode(OwnNode):
    """A node that one of our operators evaluates.

    Args:
        onnx_node: the node.
        row: the operator.
        arithmetic: how it is evaluated.

    Raises:
        InvalidOperator: an attribute breaks the specification, or there are too many inputs.
    """

    def __init__(self, onnx_node: NodeProto, row: Operator, arithmetic: Arithmetic) -> None:
        super().__init__(onnx_node)
        self._row, self._arithmetic = row, arithmetic
        self._readings = {k: v for k, v in arithmetic.readings.items() if k in row.readings}
        self._resolved = {**row.readings, **self._readings}
        self._attributes = {each.name: attribute_value(each) for each in onnx_node.attribute}
        named = zip(row.outputs, onnx_node.output, strict=False)
        self._wanted = [output.name for output, name in named if name]
        self._lengths = {given.name for given in row.inputs if given.role == "lengths"}
        self._names = [given.name for given in row.inputs]
        self._makes = [output.name for output in row.outputs]
        self._sound: list[Any] | None = None
        if found := [*_attribute_misfits(onnx_node, row), *self._node_problems()]:
            raise InvalidOperator(row.name, found)

    def _node_problems(self) -> Iterator[Problem]:
        node, row = self.onnx_node, self._row
        sides = (("inputs", row.inputs, node.input), ("outputs", row.outputs, node.output))
        for subject, rows, names in sides:
            if any(names[len(rows) :]):
                yield Problem((subject,), f"has {len(rows)} {subject}, the node names {len(names)}")
        for problem in problems(row, self._attributes, {}, self._wanted, self._readings):
            if problem.subject[0] != "inputs":  # their shapes are known when the node runs
                yield problem

    @property
    def description(self) -> Description:
        """What it is, whatever it is fed."""
        return Description(
            self._row,
            self._attributes,
            tuple(self._wanted),
            self._resolved,
        )

    def by_name(self, inputs: Sequence[Array | None]) -> dict[str, Array]:
        """Name the inputs that are there as the operator does."""
        named = zip(self._names, inputs, strict=False)
        return {name: values for name, values in named if values is not None}

    def run(self, *inputs: Array | None) -> tuple[Array | None, ...]:
        """Evaluate the node; an output it does not name is None.

        Inputs are checked, unless the last ones were sound and these are like them.
        """
        given = self.by_name(inputs)
        kinds = [None if values is None else (values.dtype, values.shape) for values in inputs]
        if kinds == self._sound:
            binding, engine, compute = self._bound
            outputs = binding.outputs(engine.run(binding.recurrence(given), compute))
        else:
            outputs = self._checked(given)
            # Of lengths the values matter, too.
            self._sound = kinds if self._lengths.isdisjoint(given) else None
        return tuple([outputs.get(name) for name in self._makes])

    def _checked(self, given: Mapping[str, Array]) -> dict[str, Array]:
        return evaluate(
            self._row,
            given,
            attributes=self._attributes,
            outputs=self._wanted,
            readings=self._readings,
            backend=self._arithmetic.backend,
            compute=self._arithmetic.compute,
        )

    @cached_property
    def _bound(self) -> tuple[Binding, Backend, Compute]:
        """What evaluates it, looked up once; only where that has been done before."""
        binding = Binding(self._row, self._attributes, self._wanted, self._resolved)
        engine, compute = self._arithmetic.backend, self._arithmetic.compute
        return binding, backend_named(engine), compute_named(compute)


def _attribute_misfits(node: NodeProto, row: Operator) -> Iterator[Problem]:
    """Yield attributes given twice, or as another type than ONNX's: the value 3 is no float 3.0."""
    seen: set[str] = set()
    for attribute in node.attribute:
        subject = ("attributes", attribute.name)
        if attribute.name in seen:
            yield Problem(subject, f"attribute '{attribute.name}' is given twice")
        seen.add(attribute.name)
        declared = row.attributes.get(attribute.name)
        given = AttributeProto.AttributeType.Name(attribute.type).lower()
        if declared and given != declared.type:
            wanted = f"must be of type {declared.type}, got type {given}"
            yield Problem(subject, f"attribute '{attribute.name}' {wanted}")
