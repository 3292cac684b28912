"""The inputs of a model that nobody gives: made from their declared shapes."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from rnncli.errors import InvalidRequest, RnncliWarning, Unsupported, did_you_mean
from rnncli.graph.declarations import describe, described, is_open, symbols, template
from rnncli.graph.model import declared_shape
from rnncli.graph.tensors import LARGEST_FROM_NOTHING
from rnncli.numerics import dtype_numbered, round_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onnx import ValueInfoProto

    from rnncli.graph.model import Model
    from rnncli.graph.purposes import Purpose
    from rnncli.numerics import Array, DType

_RATES = {"sr": 16000, "sample_rate": 16000, "sampling_rate": 16000}
"""Scalars whose name says what they are; any other number would be refused by the model."""


def generate_inputs(
    model: Model,
    given: Mapping[str, Array] | None = None,
    *,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> dict[str, Array]:
    """Complete the inputs of a model: make those that are required and not given.

    Floating-point values are bell-shaped; integers are what the nodes that read them can use:
    lengths up to the sequence's, indices that exist. Symbols take their size from `dims`, then from
    given inputs; those nobody names become 1.

    Args:
        model: the model.
        given: inputs that need not be made.
        seed: another one gives other values.
        shapes: of inputs to be made, all dimensions.
        dims: sizes of symbolic dimensions.

    Returns:
        All inputs by name, given and made.

    Raises:
        InvalidRequest: a shape or symbol does not fit the graph.
        Unsupported: an input cannot be made: strings, sequences.

    Warns:
        RnncliWarning: dimensions were assumed to be 1.
    """
    given, shapes, dims = given or {}, shapes or {}, dims or {}
    wanted = [value for value in model.inputs if value.name not in given]
    found = _shapes(model, wanted, given, shapes, dims)
    known = found | {name: np.shape(values) for name, values in given.items()}
    whole = [value.name for value in wanted if _dtype(value).numpy.kind in "iu"]
    purposes = _purposes(model, known, whole) if whole else {}
    inputs = dict(given)
    for value in wanted:
        purpose = purposes.get(value.name)
        inputs[value.name] = _values(value, found[value.name], purpose, seed)
    return inputs


def _purposes(
    model: Model, shapes: Mapping[str, Sequence[int]], names: Sequence[str]
) -> dict[str, Purpose]:
    """Return what the integers of some inputs are for; that takes onnx's shape inference."""
    from rnncli.graph.purposes import facts_of, purpose
    from rnncli.graph.shapes import inferred

    skeleton = inferred(model, shapes)
    facts = facts_of(skeleton)
    return {name: purpose(skeleton, facts, name) for name in names}


@contextmanager
def explain_generated(model: Model, made: Iterable[str]) -> Iterator[None]:
    """Add to the failure of a run on made inputs which shapes to give.

    Args:
        model: the model.
        made: names of the inputs that `generate_inputs` made; with none, nothing is added.
    """
    names = set(made)
    try:
        yield
    except InvalidRequest as error:
        values = [value for value in model.inputs if value.name in names]
        if not values:
            raise
        raise InvalidRequest(f"{error}; {shape_hint(values)}") from error


def shape_hint(values: Sequence[ValueInfoProto]) -> str:
    """Say which options give made inputs other shapes."""
    options = [f"--dim {symbol}=N" for symbol in sorted(symbols(values))]
    options += [f"--shape {value.name}={template(value)}" for value in values if is_open(value)]
    advice = f"try {' or '.join(options)}" if options else "give them with -i NAME=FILE"
    return f"inputs were made for {described(values)}; {advice}"


def _shapes(
    model: Model,
    wanted: Sequence[ValueInfoProto],
    given: Mapping[str, Array],
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
) -> dict[str, tuple[int, ...]]:
    """Return the size of every dimension of every input to be made."""
    _check_names(model, wanted, shapes, dims)
    fixed = {name: tuple(shape) for name, shape in shapes.items()}
    fixed |= {name: values.shape for name, values in given.items()}
    sizes = _symbol_sizes(model, fixed, dims)
    found: dict[str, tuple[int, ...]] = {}
    assumed: list[str] = []
    for value in wanted:
        _check_makeable(model, value)
        shape = fixed.get(value.name)
        if shape is None:
            declared = _declared(model, value)
            shape = tuple(s if isinstance(s, int) else sizes.get(s, 1) for s in declared)
            assumed += _assumed(value, declared, sizes)
        _check_size(model, value, shape)
        found[value.name] = shape
    if assumed:
        warnings.warn(
            f"{model.name}: assumed to be 1: {', '.join(dict.fromkeys(assumed))}",
            RnncliWarning,
            stacklevel=3,
        )
    return found


def _check_makeable(model: Model, value: ValueInfoProto) -> None:
    if value.type.WhichOneof("value") not in (None, "tensor_type"):
        raise Unsupported(f"{model.name}: input '{value.name}' is a {describe(value)}; give it")
    if not value.type.tensor_type.elem_type:
        raise InvalidRequest(f"{model.name}: input '{value.name}' declares no dtype; give it")


def _declared(model: Model, value: ValueInfoProto) -> tuple[int | str, ...]:
    shape = declared_shape(value)
    if shape is None:
        raise InvalidRequest(
            f"{model.name}: input '{value.name}' declares no shape; give --shape {value.name}=..."
        )
    return shape


def _assumed(
    value: ValueInfoProto, declared: Sequence[int | str], sizes: Mapping[str, int]
) -> Iterator[str]:
    """Yield the option for every dimension nobody gave a size."""
    for size in declared:
        if size == "":
            yield f"'?' in {value.name} {describe(value)} (--shape {value.name}=...)"
        elif isinstance(size, str) and size not in sizes:
            yield f"{size} (--dim {size}=N)"


def _check_names(
    model: Model,
    wanted: Sequence[ValueInfoProto],
    shapes: Mapping[str, Sequence[int]],
    dims: Mapping[str, int],
) -> None:
    names = {value.name: value for value in wanted}
    for name in shapes:
        if name not in names:
            raise InvalidRequest(
                f"{model.name}: no input '{name}' to give a shape{did_you_mean(name, names)}"
            )
    known = symbols(model.inputs)
    for symbol, size in dims.items():
        if symbol not in known:
            listed = f"; there are {', '.join(sorted(known))}" if known else "; there are none"
            hint = did_you_mean(symbol, known) or listed
            raise InvalidRequest(f"{model.name}: no symbolic dimension '{symbol}'{hint}")
        if size < 0:
            raise InvalidRequest(f"{model.name}: dimension {symbol} must not be negative: {size}")


def _symbol_sizes(
    model: Model, fixed: Mapping[str, Sequence[int]], dims: Mapping[str, int]
) -> dict[str, int]:
    """Return the sizes of symbols: asked for, and of shapes already fixed."""
    sizes = dict(dims)
    for value in model.inputs:
        declared, shape = declared_shape(value), fixed.get(value.name)
        if declared is None or shape is None or len(declared) != len(shape):
            continue
        for symbol, size in zip(declared, shape, strict=True):
            if isinstance(symbol, str) and symbol and sizes.setdefault(symbol, size) != size:
                raise InvalidRequest(
                    f"{model.name}: dimension {symbol} is {size} in {value.name} and "
                    f"{sizes[symbol]} elsewhere"
                )
    return sizes


def _check_size(model: Model, value: ValueInfoProto, shape: Sequence[int]) -> None:
    declared = declared_shape(value)
    fits = declared is None or (
        len(declared) == len(shape)
        and all(isinstance(d, str) or d == s for d, s in zip(declared, shape, strict=True))
    )
    if not fits or min(shape, default=0) < 0 or math.prod(shape) > LARGEST_FROM_NOTHING:
        reason = "too large to be made" if fits else f"it must be {describe(value)}"
        raise InvalidRequest(
            f"{model.name}: input '{value.name}' cannot have the shape {list(shape)}: {reason}; "
            f"give --shape {value.name}={template(value)}"
        )


def _dtype(value: ValueInfoProto) -> DType:
    return dtype_numbered(value.type.tensor_type.elem_type)


def _values(
    value: ValueInfoProto, shape: tuple[int, ...], purpose: Purpose | None, seed: int
) -> Array:
    from rnncli.randomness import bell, integers, seed_key

    dtype = _dtype(value)
    keys = [seed_key(seed, "inputs", value.name)]
    if dtype.is_float:
        return np.asarray(round_to(bell(keys, shape)[0], dtype))
    if dtype.name == "bool":
        return integers(keys, shape, 0, 1)[0].astype(bool) if shape else np.asarray(True)
    if purpose is None:
        raise Unsupported(f"input '{value.name}' is {dtype}, which cannot be made; give it")
    if value.name in _RATES and not shape:
        return np.asarray(_RATES[value.name], dtype.numpy)
    return np.asarray(_integers(keys, shape, purpose), dtype.numpy)


def _integers(keys: list[int], shape: tuple[int, ...], purpose: Purpose) -> Array:
    from rnncli.randomness import integers

    values = np.asarray(integers(keys, shape, purpose.low, purpose.high)[0])
    if purpose.lengths and values.size:
        values = np.sort(values.ravel())[::-1].reshape(shape).copy()
        values.flat[0] = purpose.high
    return values
