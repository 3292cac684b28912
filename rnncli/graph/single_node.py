"""A model of one recurrent node, as ONNX test cases hold it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx import ModelProto, ValueInfoProto, helper

from rnncli.numerics import dtype_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.numerics import Array
    from rnncli.operators import Operator


def single_node_model(
    operator: Operator,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
) -> ModelProto:
    """Return a model whose graph inputs and outputs are those of one node.

    It names the operator's own opset, the oldest IR version that knows it, and shapes as given.

    Args:
        operator: the row.
        attributes: written on the node; None counts as absent.
        inputs: arrays by name; absent ones become "" or are left out at the end.
        outputs: likewise.
    """
    node = helper.make_node(
        operator.type,
        _positions([row.name for row in operator.inputs], inputs),
        _positions([row.name for row in operator.outputs], outputs),
        name=operator.type,
        domain=operator.domain,
        **{name: value for name, value in attributes.items() if value is not None},
    )
    graph = helper.make_graph([node], operator.name, _infos(inputs), _infos(outputs))
    opsets = [helper.make_opsetid(operator.domain, operator.version)]
    return helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets, ignore_unknown=True),
        producer_name="rnncli",
    )


def _positions(names: list[str], present: Mapping[str, Array]) -> list[str]:
    """Write "" for what is absent, nothing for what is absent at the end."""
    listed = [name if name in present else "" for name in names]
    while listed and not listed[-1]:
        listed.pop()
    return listed


def _infos(tensors: Mapping[str, Array]) -> list[ValueInfoProto]:
    return [
        helper.make_tensor_value_info(name, dtype_of(values).onnx, values.shape)
        for name, values in tensors.items()
    ]
