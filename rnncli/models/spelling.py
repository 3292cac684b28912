"""Make a model's spelling uniform, in place: one name for ONNX's domain, none for unknown sizes.

Two more irregularities of real models need no change of the model: an omitted output has no name
and the evaluator keeps no value for it, and initializers repeated as inputs (IR 3) are values that
a feed may replace.
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

_BEFORE_IMPORTS = (1, 2)  # versions of the IR in which a model could not say its opset
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
"""Names that say that a size is unknown, in lower case, and who writes them.

One of them at two dimensions does not mean that these are equal. A number makes a name of it:
tf2onnx counts its unknown dimensions, `unk__12`, Paddle2ONNX `p2o.DynamicDimension.0`, and each is
one dimension, so those stay symbols.
"""


def normalise(proto: ModelProto) -> None:
    """Rewrite the irregular spellings that real models contain.

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
    """Call ONNX's domain ``""``; a model older than imports, of IR 1 or 2, has opset 1."""
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
    """Tell whether a dimension's name only says that its size is not known."""
    return symbol.strip().lower() in UNKNOWN


def _forget_unknown_dimensions(value: ValueInfoProto) -> None:
    """Leave a dimension empty that has no size and no name, as ONNX does; Paddle writes -1."""
    for dimension in value.type.tensor_type.shape.dim:
        if dimension.dim_value < 0 or says_unknown(dimension.dim_param):
            dimension.Clear()
