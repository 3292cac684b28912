"""Declarations of a graph's inputs: as text, and checks of inputs against them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest, did_you_mean
from rnncli.models.model import declared_shape
from rnncli.numerics import dtype_numbered, dtype_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from onnx import ValueInfoProto

    from rnncli.models.model import Model
    from rnncli.numerics import Array


def check_inputs(model: Model, inputs: Mapping[str, Array]) -> None:
    """Check inputs against the graph's declarations.

    Raises:
        InvalidRequest: a name is unknown or missing, or a dtype, a rank or a fixed dimension is
            not the declared one.
    """
    declared = check_names(model, inputs)
    missing = [value for value in model.inputs if value.name not in inputs]
    if missing:
        raise InvalidRequest(f"{model.name}: missing inputs: {described(missing)}")
    for name, values in inputs.items():
        value = declared[name]
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        wanted = f"{model.name}: input '{name}' must be {describe(value)}"
        if not isinstance(values, np.ndarray | np.generic):
            raise InvalidRequest(
                f"{wanted}, got a value of {type(values).__name__}, not an array;"
                " `numpy.array(...)` makes one"
            )
        number, shape = value.type.tensor_type.elem_type, declared_shape(value)
        dtype = dtype_of(values)
        fits = shape is None or (
            len(shape) == values.ndim
            and all(isinstance(s, str) or s == n for s, n in zip(shape, values.shape, strict=True))
        )
        if not fits or number not in (0, dtype.onnx):
            own = dtype_numbered(number).numpy.name if fits else ""
            hint = f"; `values.astype('{own}')` in NumPy gives that type" if own else ""
            raise InvalidRequest(f"{wanted}, got {dtype} {list(values.shape)}{hint}")


def check_names(model: Model, names: Iterable[str]) -> dict[str, ValueInfoProto]:
    """Check the names of inputs; return the graph's declarations of all its inputs.

    Raises:
        InvalidRequest: a name is unknown.
    """
    declared = {value.name: value for value in model.proto.graph.input}
    for name in names:
        if name not in declared:
            hint = did_you_mean(name, declared) or f"; it has {described(model.inputs) or 'none'}"
            raise InvalidRequest(f"{model.name}: no input '{name}'{hint}")
    return declared


def is_open(value: ValueInfoProto) -> bool:
    """Return whether a declared shape has unknown dimensions."""
    shape = declared_shape(value)
    return shape is None or any(isinstance(size, str) for size in shape)


def symbols(values: Iterable[ValueInfoProto]) -> set[str]:
    """Return the names of the symbolic dimensions."""
    sizes = (size for value in values for size in declared_shape(value) or ())
    return {size for size in sizes if isinstance(size, str) and size}


def template(value: ValueInfoProto) -> str:
    """Return a shape in the syntax of `--shape`: ``batch,3,N``."""
    return ",".join(str(size) or "N" for size in declared_shape(value) or ())


def described(values: Iterable[ValueInfoProto]) -> str:
    """Return names and declared types as text."""
    return ", ".join(f"{value.name} {describe(value)}" for value in values)


def describe(value: ValueInfoProto) -> str:
    """Return a declared type as text: ``float32 [batch, 3, ?]``."""
    kind = value.type.WhichOneof("value") or "tensor_type"
    if kind != "tensor_type":
        return kind.removesuffix("_type")
    number = value.type.tensor_type.elem_type
    shape = declared_shape(value)
    sizes = "of any shape" if shape is None else f"[{', '.join(str(s) or '?' for s in shape)}]"
    return f"{dtype_numbered(number) if number else 'tensor'} {sizes}"
