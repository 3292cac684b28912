"""Normalisation of spellings in a model: one name for ONNX's domain, none for unknown sizes.

Two other irregularities of real models need no change: the evaluator keeps no values of omitted
outputs, which have no name, and initializers repeated as inputs (IR 3) may be replaced by fed
values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import FunctionProto, GraphProto, ModelProto

from rnncli.errors import InvalidRequest
from rnncli.models.model import all_bodies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onnx import ValueInfoProto

    from rnncli.models.model import Body

_BEFORE_IMPORTS = (1, 2)  # IR versions without opset imports
_LONG_DOMAIN = "ai.onnx"  # ONNX's own domain, written out; its usual spelling is ""


UNKNOWN: Mapping[str, str] = {
    "?": "Paddle2ONNX, and scripts that make the dimensions of an image dynamic",
    "-1": "frameworks whose shapes have -1 there, written as text",
    "none": "converters that write Python's None: skl2onnx's first versions, scripts for Keras",
    "null": "the same, by way of JSON",
    "nan": "the same, by way of a table",
    "unk": "tf2onnx's word for unknown, without its number",
    "unknown": "people",
    "dynamic": "people, for every dimension that is not fixed",
    "*": "people",
}
"""Names that mean an unknown size, in lower case, with the tools that write them.

Two dimensions with such a name need not be equal. With a number, as in tf2onnx's `unk__12` or
Paddle2ONNX's `p2o.DynamicDimension.0`, the name identifies one dimension, so it stays a symbol.
"""


def normalise(proto: ModelProto) -> None:
    """Rewrite irregular spellings found in real models.

    Raises:
        InvalidRequest: one domain is imported at two versions.
    """
    _name_imports(proto)
    for function in proto.functions:
        _name_imports(function)
        function.domain = _short(function.domain)
    for body in all_bodies(proto):
        for node in body.node:
            node.domain = _short(node.domain)
        for value in _declared_values(body):
            _forget_unknown_dimensions(value)


def _short(domain: str) -> str:
    return "" if domain == _LONG_DOMAIN else domain


def _name_imports(proto: ModelProto | FunctionProto) -> None:
    """Rename ONNX's domain to ``""``; models of IR 1 or 2, without imports, get opset 1."""
    versions: dict[str, int] = {}
    for imported in proto.opset_import:
        imported.domain = _short(imported.domain)
        if versions.setdefault(imported.domain, imported.version) != imported.version:
            domain = imported.domain or _LONG_DOMAIN
            raise InvalidRequest(f"domain {domain} is imported at two versions")
    if not versions:
        if isinstance(proto, ModelProto) and proto.ir_version not in _BEFORE_IMPORTS:
            raise InvalidRequest(
                f"imports no opset, which a model of IR version {proto.ir_version} must"
            )
        proto.opset_import.add(domain="", version=1)


def _declared_values(body: Body) -> Iterator[ValueInfoProto]:
    yield from body.value_info
    if isinstance(body, GraphProto):
        yield from body.input
        yield from body.output


def says_unknown(symbol: str) -> bool:
    """Return whether a dimension's name only means that its size is unknown."""
    return symbol.strip().lower() in UNKNOWN


def _forget_unknown_dimensions(value: ValueInfoProto) -> None:
    """Clear dimensions of unknown size, as ONNX does; Paddle writes -1."""
    for dimension in value.type.tensor_type.shape.dim:
        if dimension.dim_value < 0 or says_unknown(dimension.dim_param):
            dimension.Clear()
