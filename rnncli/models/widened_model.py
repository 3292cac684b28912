"""A model in float64: the same nodes, with every floating-point tensor of 64 bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper

from rnncli.errors import RnncliError
from rnncli.files.formats.pb import tensor_of
from rnncli.models.implementations import schema_of
from rnncli.models.model import Model, all_bodies, bodies, opsets
from rnncli.models.tensor_values import sparse_tensor_values, tensor_values
from rnncli.numerics import DTYPES, dtype_of
from rnncli.operators import operator_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from onnx import TypeProto

    from rnncli.numerics import Array

    Change: TypeAlias = Callable[[str, Array], Array]

# The types that become float64, and their numbers in ONNX.
NARROWER = ("float32", "float16", "bfloat16")
NUMBERS = frozenset(DTYPES[name].onnx for name in NARROWER)
# The same as schemas and rows of operators name the widest of them, and float64.
FLOAT, DOUBLE = {"tensor(float)", "float32"}, {"tensor(double)", "float64"}
# Activations within [-1, 1], which kernels approximate to an absolute error.
BOUNDED = frozenset({"Sigmoid", "Tanh", "Softmax", "HardSigmoid", "Erf", "Softsign"})
# Operators that round to levels: an input near a tie may be rounded either way.
LEVELLING = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
# The first operator set whose Add takes a scalar without being told.
BROADCASTS = 7
# Attributes whose value is the element type of an output.
TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_datatype"})


def widened(values: Array) -> Array:
    """Return a tensor in float64 if its type is a narrower floating-point one; that is exact."""
    return values.astype(np.float64) if dtype_of(values).name in NARROWER else values


def has_levels(model: Model) -> bool:
    """Whether a node of a model rounds to levels."""
    return any(node.op_type in LEVELLING for body in all_bodies(model.proto) for node in body.node)


def widened_model(model: Model, change: Change | None = None, shift: float = 0.0) -> Model:
    """Return a model that computes in float64 what a model computes in narrower types.

    Inputs, outputs, constants and what Cast and others make are of 64 bits. What an operator takes
    or makes in float32 but not in float64, such as the scales of QuantizeLinear, is cast for it.
    Attributes are float32 in ONNX; they stay.

    Args:
        model: a loaded model, which stays as it is.
        change: applied to the name and values of each tensor of two or more dimensions that the
            model holds, such as matrices and kernels, before they are widened; and to a 1 of
            float32, whose change is added to the outputs of `BOUNDED` activations and of recurrent
            nodes with such.
        shift: added to the inputs of `LEVELLING` nodes, as a part of the largest of their values.

    Raises:
        RnncliError: a tensor that the model holds is damaged.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    widening = _Widening(model, change, shift)
    try:
        for root in (proto.graph, *proto.functions):
            versions = opsets(root if isinstance(root, FunctionProto) else proto)
            for body in reversed([*bodies(root)]):  # nodes are replaced: the innermost come first
                widening.apply(body, versions)
    except RnncliError as error:
        raise type(error)(f"{model.name}: {error}") from error
    return Model(proto, model.name, model.folder)


class _Widening:
    """The widening of a model's bodies, one by one."""

    def __init__(self, model: Model, change: Change | None, shift: float) -> None:
        self._folder, self._change, self._shift = model.folder, change, shift
        self._functions = {(each.domain, each.name) for each in model.proto.functions}
        self._casts = 0

    def apply(self, body: Any, versions: Mapping[str, int]) -> None:
        """Widen a graph or a function, without the graphs inside it."""
        if not isinstance(body, FunctionProto):
            dense = [s for s in body.sparse_initializer if s.values.data_type in NUMBERS]
            tensors = [self._held(tensor) for tensor in body.initializer]
            for sparse in dense:
                values = widened(sparse_tensor_values(sparse, self._folder))
                tensors.append(tensor_of(sparse.values.name, values))
            _refill(body.sparse_initializer, [s for s in body.sparse_initializer if s not in dense])
            _refill(body.initializer, tensors)
            for value in (*body.input, *body.output, *body.value_info):
                _widen_type(value.type)
        _refill(body.node, [each for node in body.node for each in self._nodes(node, versions)])

    def _held(self, tensor: TensorProto) -> TensorProto:
        """Return a tensor that the model holds, in float64 if it is of a narrower type."""
        if tensor.data_type not in NUMBERS:
            return tensor
        values = tensor_values(tensor, self._folder)
        if self._change and values.ndim > 1:
            values = self._change(tensor.name, values)
        return tensor_of(tensor.name, widened(values))

    def _nodes(self, node: NodeProto, versions: Mapping[str, int]) -> Iterator[NodeProto]:
        """Yield a node that computes in float64, between the casts that it needs."""
        _refill(node.attribute, [self._attribute(each) for each in node.attribute])
        is_old = versions.get("", 0) < BROADCASTS
        if operator_for(node.domain, node.op_type, versions.get(node.domain, 0)):
            given = [each.strings for each in node.attribute if each.name == "activations"]
            named = {each.decode() for each in given[0]} if given else BOUNDED
        else:
            named = set() if node.domain else {node.op_type}
        is_moved = self._change and not is_old and not BOUNDED.isdisjoint(named)
        changes = [*self._changes(node)] if is_moved else []
        if self._shift and node.op_type in LEVELLING:
            # It takes its values plus a part of the largest of them.
            values = node.input[0]
            size, largest, part, shift, node.input[0] = (self._new(values) for _ in range(5))
            yield helper.make_node("Abs", [values], [size])
            yield helper.make_node("ReduceMax", [size], [largest], keepdims=0)
            held = tensor_of("", np.asarray(self._shift))
            yield helper.make_node("Constant", [], [part], value=held)
            yield helper.make_node("Mul", [largest, part], [shift])
            yield helper.make_node("Add", [values, shift], [node.input[0]])
        is_call = (node.domain, node.op_type) in self._functions
        inputs, outputs = ((), ()) if is_call else _narrow_places(node, versions)
        for k in inputs:
            cast = self._new(node.input[k])
            yield helper.make_node("Cast", [node.input[k]], [cast], to=TensorProto.FLOAT)
            node.input[k] = cast
        wanted = [node.output[k] for k in outputs]
        for k in outputs:
            node.output[k] = self._new(node.output[k])
        yield node
        for k, name in zip(outputs, wanted, strict=True):
            yield helper.make_node("Cast", [node.output[k]], [name], to=TensorProto.DOUBLE)
        yield from changes

    def _changes(self, node: NodeProto) -> Iterator[NodeProto]:
        """Rename the outputs of a node; yield nodes that add a change of 1 to each."""
        assert self._change
        for k, name in enumerate(node.output):
            if name:
                node.output[k], moved = self._new(name), self._new(name)
                change = np.float64(self._change(name, np.ones((), np.float32))) - 1
                held = tensor_of("", np.asarray(change))
                yield helper.make_node("Constant", [], [moved], value=held)
                yield helper.make_node("Add", [node.output[k], moved], [name])

    def _new(self, name: str) -> str:
        self._casts += 1
        return f"{name}/float32/{self._casts}"

    def _attribute(self, attribute: AttributeProto) -> AttributeProto:
        """Return an attribute that makes float64 of what it makes a narrower type of."""
        if attribute.name in TYPE_ATTRIBUTES and attribute.i in NUMBERS:
            return helper.make_attribute(attribute.name, TensorProto.DOUBLE)
        if attribute.name in {"value_float", "value_floats"}:  # of Constant
            values = np.float64(helper.get_attribute_value(attribute))
            return helper.make_attribute("value", tensor_of("", np.asarray(values)))
        if attribute.HasField("t"):
            attribute.t.CopyFrom(self._held(attribute.t))
        if attribute.HasField("tp"):
            _widen_type(attribute.tp)
        return attribute


def _refill(field: Any, values: Sequence[Any]) -> None:
    """Give a repeated field of a protobuf other values."""
    copies = [type(value).FromString(value.SerializeToString()) for value in values]
    del field[:]
    field.extend(copies)


def _widen_type(declared: TypeProto) -> None:
    kind = declared.WhichOneof("value")
    if kind in {"sequence_type", "optional_type"}:
        _widen_type(getattr(declared, kind).elem_type)
    elif kind == "tensor_type" and declared.tensor_type.elem_type in NUMBERS:
        declared.tensor_type.elem_type = TensorProto.DOUBLE


def _narrow_places(
    node: NodeProto, versions: Mapping[str, int]
) -> tuple[Sequence[int], Sequence[int]]:
    """Return which inputs and outputs of a node may be float32, but not float64.

    A type that the operator has by default becomes an attribute.
    """
    version = versions.get(node.domain, 0)
    sides: list[list[Collection[str]]]
    if row := operator_for(node.domain, node.op_type, version):
        sides = [
            [(each.dtypes or row.dtypes) for each in side] for side in (row.inputs, row.outputs)
        ]
    elif schema := schema_of(node.domain, node.op_type, version):
        given = {attribute.name for attribute in node.attribute}
        for name in (TYPE_ATTRIBUTES & schema.attributes.keys()) - given:
            if schema.attributes[name].default_value.i in NUMBERS:
                node.attribute.append(helper.make_attribute(name, TensorProto.DOUBLE))
        if node.op_type == "ConstantOfShape" and "value" not in given:
            node.attribute.append(helper.make_attribute("value", tensor_of("", np.zeros(1))))
        sides = [[each.types for each in side] for side in (schema.inputs, schema.outputs)]
    else:
        return (), ()
    inputs: list[int] = []
    outputs: list[int] = []
    for names, types, found in zip(
        (node.input, node.output), sides, (inputs, outputs), strict=True
    ):
        for k, name in enumerate(names):
            # The last type may stand for any number.
            allowed = {*types[min(k, len(types) - 1)]} if name and types else set[str]()
            if allowed & FLOAT and not allowed & DOUBLE:
                found.append(k)
    return inputs, outputs
