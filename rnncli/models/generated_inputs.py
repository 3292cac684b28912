"""Generated inputs of a model: their values and shapes, of which some dimensions are free.

Dimensions with the same name should be equal, but no node relies on it: if the user's inputs
contradict a name, the graph may still run, as it does in ONNX Runtime.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.errors import InvalidRequest, RnncliWarning, Unsupported, did_you_mean
from rnncli.limits.budget import OutOfMemory, ask
from rnncli.models.declarations import describe, symbols, template
from rnncli.models.irregularities import says_unknown
from rnncli.models.model import declared_shape
from rnncli.models.tensor_values import LARGEST_FROM_NOTHING
from rnncli.numerics import dtype_numbered, round_to

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from onnx import ValueInfoProto

    from rnncli.models.integer_inputs import Purpose
    from rnncli.models.model import Model
    from rnncli.numerics import Array, DType


# Peak memory per generated element: float64, and its own dtype.
BYTES_PER_ELEMENT = 12


class FreeDimension(NamedTuple):
    """A dimension of generated inputs without a given size."""

    symbol: str  # the name; "" for an unnamed dimension
    # the input of an unnamed dimension; "" for a symbol, which several inputs may share
    input: str = ""
    axis: int = 0  # the axis of an unnamed dimension; 0 for a symbol

    def __str__(self) -> str:
        return f"'{self.symbol}'" if self.symbol else f"dimension {self.axis} of {self.input}"


class InputSizes:
    """The given sizes of a model's inputs; arguments and errors are those of an `InputRecipe`."""

    def __init__(
        self,
        model: Model,
        given: Mapping[str, Array],
        shapes: Mapping[str, Sequence[int]],
        dims: Mapping[str, int],
    ) -> None:
        self.model = model
        self.wanted = [value for value in model.inputs if value.name not in given]
        _check_names(model, self.wanted, shapes, dims)
        self._shapes = {name: tuple(shape) for name, shape in shapes.items()}
        fixed = self._shapes | {name: values.shape for name, values in given.items()}
        self._sizes = _symbol_sizes(model, fixed, dims)
        for value in self.wanted:
            _check_makeable(model, value)
        self.free = tuple(dict.fromkeys(self._free()))

    def _free(self) -> Iterator[FreeDimension]:
        for value in self.wanted:
            if value.name not in self._shapes:
                yield from self.free_in(value)

    def free_in(self, value: ValueInfoProto) -> Iterator[FreeDimension]:
        """Yield the free dimensions of one input."""
        if value.name in self._shapes:
            return
        for axis, size in enumerate(_declared(self.model, value)):
            if size == "":
                yield FreeDimension("", value.name, axis)
            elif isinstance(size, str) and size not in self._sizes:
                yield FreeDimension(size)

    def shape(self, value: ValueInfoProto, sizes: Mapping[FreeDimension, int]) -> tuple[int, ...]:
        """Return the shape of a generated input.

        Args:
            value: the input.
            sizes: sizes of free dimensions; 1 for the others.

        Raises:
            InvalidRequest: the shape does not fit the graph, or is too large.
        """
        asked = self._shapes.get(value.name)
        shape = tuple(self._filled(value, sizes)) if asked is None else asked
        _check_size(self.model, value, shape)
        return shape

    def _filled(self, value: ValueInfoProto, sizes: Mapping[FreeDimension, int]) -> Iterator[int]:
        for axis, size in enumerate(_declared(self.model, value)):
            if isinstance(size, int):
                yield size
            elif size in self._sizes:
                yield self._sizes[size]
            else:
                found = FreeDimension(size) if size else FreeDimension("", value.name, axis)
                yield sizes.get(found, 1)

    def option(self, dimension: FreeDimension) -> str:
        """Return the command-line option that sets a free dimension."""
        if dimension.symbol:
            return f"--dim {dimension.symbol}=N"
        (value,) = (value for value in self.wanted if value.name == dimension.input)
        return f"--shape {value.name}={template(value)}"

    def listed(self, dimensions: Iterable[FreeDimension]) -> str:
        """Return free dimensions as text, each with the option that sets it."""
        by_option: dict[str, list[FreeDimension]] = {}
        for each in dimensions:
            by_option.setdefault(self.option(each), []).append(each)
        return ", ".join(f"{_together(found)} ({text})" for text, found in by_option.items())


def _together(dimensions: Sequence[FreeDimension]) -> str:
    """Return one symbol, or the unnamed dimensions of one input, as text."""
    *others, last = dimensions
    if last.symbol or not others:
        return last.symbol or str(last)
    axes = ", ".join(str(each.axis) for each in others)
    return f"dimensions {axes} and {last.axis} of {last.input}"


def _check_makeable(model: Model, value: ValueInfoProto) -> None:
    if value.type.WhichOneof("value") not in (None, "tensor_type"):
        raise Unsupported(f"{model.name}: input '{value.name}' is a {describe(value)}; pass it")
    if not value.type.tensor_type.elem_type:
        raise InvalidRequest(f"{model.name}: input '{value.name}' declares no dtype; pass it")


def _declared(model: Model, value: ValueInfoProto) -> tuple[int | str, ...]:
    shape = declared_shape(value)
    if shape is None:
        raise InvalidRequest(
            f"{model.name}: input '{value.name}' declares no shape; give --shape {value.name}=..."
        )
    return shape


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
            raise InvalidRequest(
                f"{model.name}: no symbolic dimension '{symbol}'{_hint(symbol, known)}"
            )
        if size < 0:
            raise InvalidRequest(f"{model.name}: dimension {symbol} must not be negative: {size}")


def _hint(symbol: str, known: Iterable[str]) -> str:
    if says_unknown(symbol):
        return ": it only says that a size is unknown; give --shape NAME=5,1,10"
    listed = ", ".join(sorted(known))
    return did_you_mean(symbol, known) or f"; there are {listed or 'none'}"


def _symbol_sizes(
    model: Model, fixed: Mapping[str, Sequence[int]], dims: Mapping[str, int]
) -> dict[str, int]:
    """Return the sizes of symbols, requested or from known shapes; the first one counts."""
    sizes = dict(dims)
    for value in model.inputs:
        declared, shape = declared_shape(value), fixed.get(value.name)
        if declared is None or shape is None or len(declared) != len(shape):
            continue
        for symbol, size in zip(declared, shape, strict=True):
            if isinstance(symbol, str) and symbol and sizes.setdefault(symbol, size) != size:
                _contradicted(
                    f"{model.name}: dimension {symbol} is {size} in {value.name} and "
                    f"{sizes[symbol]} elsewhere",
                    asked=symbol in dims,
                )
    return sizes


def _contradicted(sentence: str, *, asked: bool) -> None:
    """Raise if --dim and data contradict each other; warn if only a name is contradicted."""
    if asked:
        raise InvalidRequest(f"{sentence}, by --dim")
    warnings.warn(f"{sentence}, whatever its name says", RnncliWarning, stacklevel=2)


def _check_size(model: Model, value: ValueInfoProto, shape: Sequence[int]) -> None:
    declared = declared_shape(value)
    fits = declared is None or (
        len(declared) == len(shape)
        and all(isinstance(d, str) or d == s for d, s in zip(declared, shape, strict=True))
    )
    if not fits or min(shape, default=0) < 0:
        reason = "sizes are not negative" if fits else f"it must be {describe(value)}"
        raise InvalidRequest(
            f"{model.name}: input '{value.name}' cannot have the shape {list(shape)}: {reason}; "
            f"give --shape {value.name}={template(value)}"
        )
    # A size of 0 does not make other sizes harmless.
    needed = BYTES_PER_ELEMENT * math.prod(max(size, 1) for size in shape)
    what = f"{model.name}: input '{value.name}' of shape {list(shape)}"
    try:
        ask(needed, what, otherwise=BYTES_PER_ELEMENT * LARGEST_FROM_NOTHING)
    except OutOfMemory as error:  # other sizes may fit
        raise InvalidRequest(str(error)) from error


_RATES = {"sr": 16000, "sample_rate": 16000, "sampling_rate": 16000}
"""Scalars identified by name, for which the model refuses any other number."""


class InputRecipe:
    """A recipe for the required inputs of a model that are not given.

    Floating-point values are bell-shaped; integers suit the nodes that read them: lengths up to the
    sequence's, valid indices. Symbols take their size from `dims`, then from given inputs.

    Args:
        model: the model.
        given: inputs that are not generated.
        seed: seed of the values.
        shapes: complete shapes of generated inputs.
        dims: sizes of symbolic dimensions.

    Raises:
        InvalidRequest: a shape or symbol does not fit the graph.
        Unsupported: an input cannot be generated, such as a sequence.

    Warns:
        RnncliWarning: inputs have different sizes for one symbol.
    """

    def __init__(
        self,
        model: Model,
        given: Mapping[str, Array] | None = None,
        *,
        seed: int = 0,
        shapes: Mapping[str, Sequence[int]] | None = None,
        dims: Mapping[str, int] | None = None,
    ) -> None:
        self.model, self.given, self.seed = model, given or {}, seed
        self.dims, self._shapes = dims or {}, shapes or {}
        self.sizes = InputSizes(model, self.given, self._shapes, self.dims)

    def without_dims(self) -> InputRecipe:
        """Return the recipe in which the symbolic dimensions of `dims` are free."""
        return InputRecipe(self.model, self.given, seed=self.seed, shapes=self._shapes)

    @property
    def made(self) -> list[ValueInfoProto]:
        """The inputs to generate."""
        return self.sizes.wanted

    def make(
        self, sizes: Mapping[FreeDimension, int], only: Collection[str] | None = None
    ) -> dict[str, Array]:
        """Return all inputs by name, given and generated.

        Args:
            sizes: sizes of free dimensions; the others are 1.
            only: the requested inputs; None for all.

        Raises:
            InvalidRequest: a shape does not fit the graph.
            Unsupported: an input cannot be generated, such as strings.
        """
        found = {value.name: self.sizes.shape(value, sizes) for value in self.made}
        known = found | {name: np.shape(values) for name, values in self.given.items()}
        wanted = [value for value in self.made if only is None or value.name in only]
        whole = [
            value.name
            for value in wanted
            if _dtype(value).numpy.kind in "iu" and not _is_rate(value.name, found[value.name])
        ]
        found_purposes = purposes(self.model, known, whole) if whole else {}
        inputs = {name: v for name, v in self.given.items() if only is None or name in only}
        for value in wanted:
            purpose = found_purposes.get(value.name)
            inputs[value.name] = _values(value, found[value.name], purpose, self.seed)
        return inputs

    def elements(self, sizes: Mapping[FreeDimension, int], only: Collection[str]) -> int:
        """Return the number of elements that `make` generates for some inputs.

        Raises:
            InvalidRequest: as `make` does.
        """
        made = [value for value in self.made if value.name in only]
        return sum(math.prod(self.sizes.shape(value, sizes)) for value in made)


def purposes(
    model: Model, shapes: Mapping[str, Sequence[int]], names: Sequence[str]
) -> dict[str, Purpose]:
    """Return the purposes of integer inputs, which requires onnx's shape inference."""
    from rnncli.models.integer_inputs import facts_of, purpose
    from rnncli.models.shape_inference import inferred

    skeleton = inferred(model, shapes)
    facts = facts_of(skeleton)
    return {name: purpose(skeleton, facts, name) for name in names}


def _dtype(value: ValueInfoProto) -> DType:
    return dtype_numbered(value.type.tensor_type.elem_type)


def _values(
    value: ValueInfoProto, shape: tuple[int, ...], purpose: Purpose | None, seed: int
) -> Array:
    from rnncli.numerics.randomness import bell, integers, seed_key

    dtype = _dtype(value)
    keys = [seed_key(seed, "inputs", value.name)]
    if dtype.is_float:
        return np.asarray(round_to(bell(keys, shape)[0], dtype))
    if dtype.name == "bool":
        return integers(keys, shape, 0, 1)[0].astype(bool) if shape else np.asarray(True)
    if dtype.numpy.kind in "iu" and _is_rate(value.name, shape):
        return np.asarray(_RATES[value.name], dtype.numpy)
    if purpose is None:
        raise Unsupported(f"input '{value.name}' is {dtype}, which cannot be generated; pass it")
    return np.asarray(_integers(keys, shape, purpose), dtype.numpy)


def _is_rate(name: str, shape: tuple[int, ...]) -> bool:
    return name in _RATES and not shape


def _integers(keys: list[int], shape: tuple[int, ...], purpose: Purpose) -> Array:
    from rnncli.numerics.randomness import integers

    values = np.asarray(integers(keys, shape, purpose.low, purpose.high)[0])
    if purpose.lengths and values.size:
        values = np.sort(values.ravel())[::-1].reshape(shape).copy()
        values.flat[0] = purpose.high
    return values
