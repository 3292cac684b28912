"""Models of a single recurrent node, as in ONNX test cases."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from rnncli.errors import InvalidRequest
from rnncli.files.formats.pb import tensor_of
from rnncli.numerics import DType, dtype_of
from rnncli.operators.attributes import TYPES
from rnncli.operators.checking import opset_of
from rnncli.operators.operator import OPEN, PLAIN

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.operators import Operator
    from rnncli.operators.operator import Spelling, Tensor
    from rnncli.recurrence.unit import QuantisedUnit

# Before this IR version, initializers had to be graph inputs as well.
FREE_INITIALIZERS = 4

# Type of an attribute in an operator's row -> its type in a model.
STORED_TYPES: Mapping[str, AttributeProto.AttributeType] = {
    "bool": AttributeProto.INT,  # 0 or 1
    "int": AttributeProto.INT,
    "float": AttributeProto.FLOAT,
    "string": AttributeProto.STRING,
    "floats": AttributeProto.FLOATS,
    "strings": AttributeProto.STRINGS,
}


def single_node_model(
    operator: Operator,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array | DType],
    initializers: Collection[str] = (),
    *,
    spelling: Spelling = PLAIN,
    unit: QuantisedUnit | None = None,
) -> ModelProto:
    """Return a model whose graph inputs and outputs are those of one node.

    It has the operator's own opset, the oldest IR version with that opset, and the given shapes
    unless it is spelled otherwise. A unit's has DequantizeLinear and QuantizeLinear around the
    node, and an opset that has 16 bits.

    Args:
        operator: the row.
        attributes: attributes of the node; None counts as absent.
        inputs: arrays by name; absent ones become "" or, at the end, are left out.
        outputs: likewise; an element type if the shape is unknown.
        initializers: the inputs whose values become initializers.
        spelling: how the model spells the node.
        unit: which inputs and outputs are integers.
    """
    # Some schemas want outputs to be named, also where nobody asks for them.
    is_gated = operator.cell.projects
    wanted = (
        ["Y_h"] * (operator.name == "GRU-1") if is_gated else [r.name for r in operator.outputs]
    )
    named = {*outputs, *wanted}
    node = helper.make_node(
        operator.type,
        _positions([row.name for row in operator.inputs], inputs, to_the_end=spelling.empty_names),
        _positions([row.name for row in operator.outputs], named),
        name=operator.type,
        domain=operator.domain,
    )
    node.attribute.extend(
        node_attribute(operator, name, value)
        for name, value in sorted(attributes.items())
        if value is not None
    )
    fed = {name: values for name, values in inputs.items() if name not in initializers}
    held = [tensor_of(name, values) for name, values in inputs.items() if name in initializers]
    before, after, factors = _dressing(node, unit, {**inputs, **outputs})
    variant = operator.variant(attributes) if spelling.open_sizes else None
    graph = helper.make_graph(
        [*before, node, *after],
        operator.name,
        _infos(fed, operator.inputs, variant),
        _infos(outputs, operator.outputs, variant),
        [*held, *factors],
    )
    version = (unit and opset_of(operator)) or operator.version
    opsets = [helper.make_opsetid(operator.domain, version)]
    oldest = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
    return helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=max(oldest, FREE_INITIALIZERS) if held else oldest,
        producer_name="rnncli",
    )


def _dressing(
    node: NodeProto, unit: QuantisedUnit | None, tensors: Mapping[str, Array | DType]
) -> tuple[list[NodeProto], list[NodeProto], list[TensorProto]]:
    """Return the nodes before and after one, which then reads and makes reals, and their scales."""
    before, after, factors = [], [], []
    for name, dress in unit.dresses if unit else ():
        values = tensors.get(name)
        if values is None:
            continue
        shape = () if isinstance(values, DType) else values.shape
        scale, point = dress.factors(shape)
        named = {f"{name}_scale": scale, f"{name}_zero_point": point.astype(dress.numpy)}
        if dress.type == "int32":  # which has none
            del named[f"{name}_zero_point"]
        factors += [tensor_of(each, array) for each, array in named.items()]
        axis: dict[str, Any] = {} if dress.axis is None else {"axis": dress.axis % len(shape)}
        real = f"{name}_real"
        if name in node.input:
            node.input[[*node.input].index(name)] = real
            given = [name, *named]
            before.append(helper.make_node("DequantizeLinear", given, [real], f"{name}_in", **axis))
        else:
            node.output[[*node.output].index(name)] = real
            given = [real, *named]
            after.append(helper.make_node("QuantizeLinear", given, [name], f"{name}_out", **axis))
    return before, after, factors


def node_attribute(operator: Operator, name: str, value: Any) -> AttributeProto:
    """Return an attribute of the type that the operator gives it, if the value allows that.

    Raises:
        InvalidRequest: neither it nor the value says a type, as of an empty list.
    """
    row = operator.attributes.get(name)
    if row is not None and TYPES[row.type][1](value):
        written, kind = TYPES[row.type][2](value), STORED_TYPES[row.type]
        return helper.make_attribute(name, written, attr_type=kind)
    try:
        return helper.make_attribute(name, value)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"no model can have attribute '{name}': {error}") from error


def _positions(
    names: list[str], present: Collection[str], *, to_the_end: bool = False
) -> list[str]:
    """Return the names with "" for absent ones; at the end only if requested."""
    listed = [name if name in present else "" for name in names]
    while listed and not listed[-1] and not to_the_end:
        listed.pop()
    return listed


def _infos(
    tensors: Mapping[str, Array | DType], rows: Sequence[Tensor], variant: int | None
) -> list[ValueInfoProto]:
    """Return declarations; a variant of the rows' shapes leaves their open dimensions open."""
    by_name, infos = {row.name: row for row in rows}, []
    for name, values in tensors.items():
        if isinstance(values, DType):
            infos.append(_info(name, values.onnx, None))
            continue
        shape: tuple[int | str, ...] = values.shape
        if name in by_name and variant is not None:
            dims = zip(by_name[name].fitting(values.shape, {}, variant), values.shape, strict=True)
            shape = tuple(dim.symbol if dim.symbol in OPEN else size for dim, size in dims)
        infos.append(_info(name, dtype_of(values).onnx, shape))
    return infos


@lru_cache(maxsize=4096)  # a suite has few names and shapes; graphs copy the result
def _info(name: str, element_type: int, shape: tuple[int | str, ...] | None) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)
