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
from rnncli.limits import OutOfMemory, ask
from rnncli.models.model import declared_shape, describe, symbols, template
from rnncli.models.structure import says_unknown
from rnncli.models.tensor_values import LARGEST_FROM_NOTHING
from rnncli.numerics import dtype_numbered, round_to
from rnncli.operators.packed_rows import packed_ends

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from onnx import ValueInfoProto

    from rnncli.models.model import Model
    from rnncli.models.skeleton import Purpose
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
        names, known = [value.name for value in self.wanted], symbols(model.inputs)
        for name in shapes:
            if name not in names:
                hint = did_you_mean(name, names) or f"; there are {', '.join(names) or 'none'}"
                raise InvalidRequest(f"{model.name}: no input '{name}' to give a shape{hint}")
        for symbol, size in dims.items():
            if symbol not in known:
                listed = f"there are {', '.join(sorted(known))}" if known else "all sizes are fixed"
                hint = did_you_mean(symbol, known) or f"; {listed}"
                if says_unknown(symbol):
                    hint = ": it only says that a size is unknown; give --shape NAME=5,1,10"
                raise InvalidRequest(f"{model.name}: no symbolic dimension '{symbol}'{hint}")
            if size < 0:
                raise InvalidRequest(
                    f"{model.name}: dimension {symbol} must not be negative: {size}"
                )

        # The sizes of symbols, requested or from known shapes; the first one counts.
        self._shapes = {name: tuple(shape) for name, shape in shapes.items()}
        fixed = self._shapes | {name: values.shape for name, values in given.items()}
        self._sizes = dict(dims)
        for value in model.inputs:
            declared, shape = declared_shape(value), fixed.get(value.name)
            if declared is None or shape is None or len(declared) != len(shape):
                continue
            for dim, size in zip(declared, shape, strict=True):
                if not (isinstance(dim, str) and dim):
                    continue
                if (own := self._sizes.setdefault(dim, size)) != size:
                    sentence = (
                        f"{model.name}: dimension {dim} is {size} in {value.name} and {own}"
                        " elsewhere"
                    )
                    if dim in dims:
                        raise InvalidRequest(f"{sentence}, by --dim")
                    told = f"{sentence}, whatever its name says"
                    warnings.warn(told, RnncliWarning, stacklevel=2)
        for value in self.wanted:
            where = f"{model.name}: input '{value.name}'"
            if value.type.WhichOneof("value") not in (None, "tensor_type"):
                raise Unsupported(f"{where} is a {describe(value)}; pass it")
            if not value.type.tensor_type.elem_type:
                raise InvalidRequest(f"{where} declares no dtype; pass it")
        self.free = tuple(dict.fromkeys(f for value in self.wanted for f in self.free_in(value)))

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
        shape = self._shapes.get(value.name)
        if shape is None:
            filled = []
            for axis, size in enumerate(_declared(self.model, value)):
                free = FreeDimension(str(size)) if size else FreeDimension("", value.name, axis)
                own = size if isinstance(size, int) else self._sizes.get(size)
                filled.append(sizes.get(free, 1) if own is None else own)
            shape = tuple(filled)

        declared = declared_shape(value)
        fits = declared is None or (
            len(declared) == len(shape)
            and all(isinstance(d, str) or d == s for d, s in zip(declared, shape, strict=True))
        )
        what = f"{self.model.name}: input '{value.name}'"
        if not fits or min(shape, default=0) < 0:
            reason = "sizes are not negative" if fits else f"it must be {describe(value)}"
            raise InvalidRequest(
                f"{what} cannot have the shape {list(shape)}: {reason}; "
                f"give --shape {value.name}={template(value)}"
            )
        # A size of 0 does not make other sizes harmless.
        needed = BYTES_PER_ELEMENT * math.prod(max(size, 1) for size in shape)
        most = BYTES_PER_ELEMENT * LARGEST_FROM_NOTHING
        try:
            ask(needed, f"{what} of shape {list(shape)}", otherwise=most)
        except OutOfMemory as error:  # other sizes may fit
            raise InvalidRequest(str(error)) from error
        return shape

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
        texts = []
        for option, (*others, last) in by_option.items():
            text = last.symbol or str(last)
            if others and not last.symbol:
                axes = ", ".join(str(each.axis) for each in others)
                text = f"dimensions {axes} and {last.axis} of {last.input}"
            texts.append(f"{text} ({option})")
        return ", ".join(texts)


def _declared(model: Model, value: ValueInfoProto) -> tuple[int | str, ...]:
    shape = declared_shape(value)
    if shape is None:
        raise InvalidRequest(
            f"{model.name}: input '{value.name}' declares no shape; give --shape {value.name}=..."
        )
    return shape


_RATES = {"sr": 16000, "sample_rate": 16000, "sampling_rate": 16000}
"""Scalars identified by name, for which the model refuses any other number."""

_MASKS = ("attention_mask", "input_mask")
"""Integers identified by name, which are 1: every step counts."""


class InputRecipe:
    """A recipe for the required inputs of a model that are not given.

    Floating-point values are bell-shaped; integers suit the nodes that read them: lengths up to the
    sequence's, valid indices. Those of 8 and 16 bits that no such node reads are levels, of the
    type's whole range; masks are 1. Symbols take their size from `dims`, then from given inputs.

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
    from rnncli.models.skeleton import facts_of, inferred, purpose

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
    if dtype.numpy.kind in "iu" and value.name in _MASKS:
        return np.ones(shape, dtype.numpy)
    if purpose is None:
        raise Unsupported(f"input '{value.name}' is {dtype}, which cannot be generated; pass it")
    if purpose.ends:
        return packed_ends(math.prod(shape), purpose.high).astype(dtype.numpy)
    low, high = purpose.low, purpose.high
    if dtype.numpy.itemsize <= np.int16().itemsize and not purpose.is_known:
        limits = np.iinfo(dtype.numpy)
        low, high = int(limits.min), int(limits.max)
    values = np.asarray(integers(keys, shape, low, high)[0])
    if purpose.lengths and values.size:
        values = np.sort(values.ravel())[::-1].reshape(shape).copy()
        values.flat[0] = purpose.high
    return np.asarray(values, dtype.numpy)


def _is_rate(name: str, shape: tuple[int, ...]) -> bool:
    return name in _RATES and not shape
