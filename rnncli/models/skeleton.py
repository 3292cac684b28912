"""What a model tells of its values: shapes, and which integers its inputs may be.

ONNX's inference runs on a skeleton: the model with inlined functions and without the data of larger
tensors, so that nothing above 2 GB is serialised.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    TensorProto,
    numpy_helper,
    shape_inference,
)
from onnx.inliner import inline_local_functions

from rnncli.errors import InvalidRequest, RnncliError
from rnncli.files.formats.pb import array_of
from rnncli.models.model import Model, Site, bodies, declared_shape, subgraphs, walk
from rnncli.models.tensor_values import tensor_values
from rnncli.operators import operator_for
from rnncli.operators.operator import Dim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rnncli.numerics import Array

    Shapes = Mapping[str, tuple[int | str, ...]]


_LARGEST_KEPT = 1024  # elements; inference reads shapes and axes, never weights
# Elements of a vector that may be a shape: ONNX's inference writes down each of them.
_LONGEST_SHAPE = 1 << 20


def inferred(
    model: Model,
    shapes: Mapping[str, Sequence[int | str]],
    *,
    trusting: bool = True,
    strict: bool = False,
) -> Model:
    """Return the model's skeleton with all inferred shapes.

    Args:
        model: the model.
        shapes: the shapes of some inputs, in sizes and symbols, instead of the declared ones.
        trusting: whether shapes that the model declares for other values are taken as they are.
        strict: whether what does not fit is an error, rather than of unknown shape.

    Raises:
        InvalidRequest: something does not fit, if `strict`.
    """
    # What inference reads, field by field: no larger values are ever copied.
    source = model.proto
    skeleton = ModelProto(ir_version=source.ir_version, opset_import=source.opset_import)
    skeleton.functions.extend(source.functions)
    _copy_graph(source.graph, skeleton.graph, model.folder)
    if not trusting:
        for body in bodies(skeleton.graph):
            assert isinstance(body, GraphProto)
            del body.value_info[:]
            for value in body.output:
                value.type.tensor_type.ClearField("shape")
    for value in skeleton.graph.input:
        if value.name in shapes:
            value.type.tensor_type.shape.Clear()
            for size in shapes[value.name]:
                kind = "dim_value" if isinstance(size, int) else "dim_param"
                value.type.tensor_type.shape.dim.add(**{kind: size})
    try:
        if skeleton.functions:
            skeleton = inline_local_functions(skeleton)
        lengths = [shape[0] for shape in shapes_in(skeleton).values() if len(shape) == 1]
        is_long = any(isinstance(n, int) and n > _LONGEST_SHAPE for n in lengths)
        skeleton = shape_inference.infer_shapes(skeleton, strict_mode=strict, data_prop=not is_long)
    except Exception as error:
        if strict:  # otherwise unknown shapes are not an error; evaluation reports others
            raise InvalidRequest(str(error)) from error
    return Model(skeleton, model.name)


def shapes_in(proto: ModelProto) -> dict[str, tuple[int | str, ...]]:
    """Return the declared or inferred shape of every value of the graph and its subgraphs."""
    found: dict[str, tuple[int | str, ...]] = {}
    for body in bodies(proto.graph):
        assert isinstance(body, GraphProto)
        for value in (*body.output, *body.value_info, *body.input):
            if (shape := declared_shape(value)) is not None:
                found[value.name] = shape
        found |= {tensor.name: tuple(tensor.dims) for tensor in body.initializer}
    return found


def _copy_graph(source: GraphProto, target: GraphProto, folder: Path | None) -> None:
    target.name = source.name
    target.input.extend(source.input)
    target.output.extend(source.output)
    target.value_info.extend(source.value_info)
    target.initializer.extend(_header(tensor, folder) for tensor in source.initializer)
    for node in source.node:
        held = target.node.add(name=node.name, op_type=node.op_type, domain=node.domain)
        held.overload = node.overload
        held.input.extend(node.input)
        held.output.extend(node.output)
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                copy = held.attribute.add(name=attribute.name, type=attribute.type)
                _copy_graph(attribute.g, copy.g, folder)
            elif attribute.type == AttributeProto.TENSOR:
                copy = held.attribute.add(name=attribute.name, type=attribute.type)
                copy.t.CopyFrom(_header(attribute.t, folder))
            else:
                held.attribute.add().CopyFrom(attribute)


def _header(tensor: TensorProto, folder: Path | None) -> TensorProto:
    """Return name, type and shape of a tensor, with its values if there are few."""
    if tensor.data_type != TensorProto.STRING and math.prod(tensor.dims) <= _LARGEST_KEPT:
        try:
            return numpy_helper.from_array(tensor_values(tensor, folder), tensor.name)
        except RnncliError:  # evaluation will report it
            pass
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)


class Purpose(NamedTuple):
    """The valid integers of an input: `low` to `high`.

    `lengths` requires descending values that start with `high`, as for packed sequences; `ends`
    rising ones from `low` to `high`, as where packed sequences begin and end.
    """

    low: int
    high: int
    lengths: bool = False
    ends: bool = False
    is_known: bool = True


class Facts(NamedTuple):
    """The known shapes and small constants of a skeleton."""

    shapes: Shapes
    constants: Mapping[str, Array]

    def size(self, name: str, axis: int) -> int | None:
        """Return one dimension of a value, or None if unknown."""
        shape = self.shapes.get(name, ())
        size = shape[axis] if -len(shape) <= axis < len(shape) else None
        return size if isinstance(size, int) else None


ANY = Purpose(0, 9, is_known=False)
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
    if row and position < len(row.inputs) and row.inputs[position].role == "offsets":
        return Purpose(0, facts.size(node.input[0], 0) or 1, ends=True)
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
