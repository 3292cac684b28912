"""Vectors with OpenVINO's own model: the raw form, and `model.xml` with `model.bin` beside it.

The model is one native node with its parameters and results, as the IR of version 11 has them:
https://docs.openvino.ai, "OpenVINO IR format". Initializers are constants, in `model.bin` one after
the other, and so are absent inputs, as zeros. Attributes are written with their defaults: OpenVINO
2026.4 fails on a sequence without activations, which its specification allows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from rnncli.files.formats.raw import content_of
from rnncli.models.ir_model import TYPES
from rnncli.numerics import dtype_named, dtype_of
from rnncli.packs import raw_form
from rnncli.packs.vector import held_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.operators.operator import Operator, Tensor
    from rnncli.packs.vector import Vector

XML, BIN = "model.xml", "model.bin"
IR_VERSION = "11"


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder.

    Raises:
        Unsupported: the raw form cannot hold it.
    """
    return {**raw_form.files_of(vector), **model_files(vector)}


def model_files(vector: Vector) -> dict[str, bytes]:
    """Return the model of a vector: its layers and edges, and its constants."""
    model = _IrModel(vector)
    tree = ET.Element("net", name=vector.id, version=IR_VERSION)
    tree.extend((model.layers, model.edges))
    ET.indent(tree)
    text = ET.tostring(tree, encoding="unicode", xml_declaration=False)
    return {XML: f'<?xml version="1.0"?>\n{text}\n'.encode(), BIN: bytes(model.constants)}


class _IrModel:
    """The elements of a model of one node.

    Attributes:
        layers: parameters and constants in the node's order, the node, its results.
        edges: from their ports to its ports, and from its ports to theirs.
        constants: the content of `model.bin`.
    """

    def __init__(self, vector: Vector) -> None:
        self.layers, self.edges = ET.Element("layers"), ET.Element("edges")
        self.constants = bytearray()
        given = vector.inputs
        held = held_inputs(vector.node.operator, vector.record.weights, given)
        for name, values in all_inputs(vector).items():
            is_constant = name in held or name not in given
            form: dict[str, Any] = {
                "shape": values.shape,
                "element_type": TYPES[dtype_of(values).name][0],
            }
            if is_constant:
                content = content_of(values)
                form |= {"offset": len(self.constants), "size": len(content)}
                self.constants += content
            layer = self._layer(name, "Const" if is_constant else "Parameter", 1, **form)
            _port(ET.SubElement(layer, "output"), 0, values, name)
        self._node(vector)

    def _layer(self, name: str, kind: str, opset: int, **data: Any) -> ET.Element:
        place = str(len(self.layers))
        layer = ET.SubElement(
            self.layers, "layer", id=place, name=name, type=kind, version=f"opset{opset}"
        )
        written = {}
        for key, value in data.items():  # lists with commas, truth as true and false
            text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            written[key] = text.lower() if isinstance(value, bool) else text
        if data:
            ET.SubElement(layer, "data", written)
        return layer

    def _node(self, vector: Vector) -> None:
        """Add the node, its results, and all edges."""
        operator, node = vector.node.operator, vector.node
        values = {
            row.name: node.values[row.role or row.name] for row in operator.attributes.values()
        }
        given = {name: v for name, v in values.items() if v is not None and v != math.inf}
        written = with_truths(operator, given)
        place = len(self.layers)
        layer = self._layer(operator.type, operator.type, operator.version, **written)
        inputs, outputs = ET.SubElement(layer, "input"), ET.SubElement(layer, "output")
        for port, tensor in enumerate(all_inputs(vector).values()):
            _port(inputs, port, tensor)
            self._edge(port, 0, place, port)
        for k, row in enumerate(operator.outputs, len(operator.inputs)):
            shape = _shape(vector, row)
            _port(outputs, k, vector.inputs["X"], row.name, shape)
            if row.name in node.outputs:
                result = self._layer(f"{row.name}/result", "Result", 1)
                _port(ET.SubElement(result, "input"), 0, vector.inputs["X"], shape=shape)
                self._edge(place, k, len(self.layers) - 1, 0)

    def _edge(self, source: int, port: int, target: int, target_port: int) -> None:
        names = ("from-layer", "from-port", "to-layer", "to-port")
        ends = zip(names, map(str, (source, port, target, target_port)), strict=True)
        ET.SubElement(self.edges, "edge", dict(ends))


def all_inputs(vector: Vector) -> dict[str, Array]:
    """Return the inputs in the operator's order; absent ones, which mean zero, as zeros.

    OpenVINO's reader requires them, also where its specification does not.
    """
    dtype, given = dtype_named(vector.record.dtype).numpy, vector.inputs
    return {
        row.name: given[row.name] if row.name in given else np.zeros(_shape(vector, row), dtype)
        for row in vector.node.operator.inputs
    }


def _shape(vector: Vector, row: Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor, also of one that is not given or not requested."""
    sizes = {**vector.record.sizes, "num_directions": len(vector.node.directions)}
    return tuple(dim.multiple * sizes[dim.symbol] for dim in row.shape(vector.node.variant))


def _port(
    parent: ET.Element,
    place: int,
    like: Array,
    name: str = "",
    shape: Sequence[int] | None = None,
) -> None:
    """Add a port of a tensor's element type, and its shape unless another is given."""
    precision = TYPES[dtype_of(like).name][1]
    about = {"id": str(place), "precision": precision, **({"names": name} if name else {})}
    port = ET.SubElement(parent, "port", about)
    for size in like.shape if shape is None else shape:
        ET.SubElement(port, "dim").text = str(size)


def with_truths(operator: Operator, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with truth values where the specification has 0 and 1 for them."""
    rows = operator.attributes
    return {
        name: bool(value) if name in rows and rows[name].choices == (0, 1) else value
        for name, value in attributes.items()
    }
