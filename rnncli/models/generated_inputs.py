"""Generated inputs of a model, made from their declared shapes."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.errors import RnncliWarning, Unsupported
from rnncli.models.input_sizes import InputSizes
from rnncli.numerics import dtype_numbered, round_to

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from onnx import ValueInfoProto

    from rnncli.models.input_sizes import FreeDimension
    from rnncli.models.integer_inputs import Purpose
    from rnncli.models.model import Model
    from rnncli.numerics import Array, DType

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
        self.sizes = InputSizes(model, self.given, shapes or {}, dims or {})

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
        purposes = _purposes(self.model, known, whole) if whole else {}
        inputs = {name: v for name, v in self.given.items() if only is None or name in only}
        for value in wanted:
            purpose = purposes.get(value.name)
            inputs[value.name] = _values(value, found[value.name], purpose, self.seed)
        return inputs

    def elements(self, sizes: Mapping[FreeDimension, int], only: Collection[str]) -> int:
        """Return the number of elements that `make` generates for some inputs.

        Raises:
            InvalidRequest: as `make` does.
        """
        made = [value for value in self.made if value.name in only]
        return sum(math.prod(self.sizes.shape(value, sizes)) for value in made)

    def warn_of_ones(self, dimensions: Sequence[FreeDimension]) -> None:
        """Warn that dimensions were assumed to be 1."""
        if dimensions:
            listed = self.sizes.listed(dimensions)
            warnings.warn(
                f"{self.model.name}: assumed to be 1: {listed}", RnncliWarning, stacklevel=3
            )


def generate_inputs(
    model: Model, given: Mapping[str, Array] | None = None, **asked: Any
) -> dict[str, Array]:
    """Complete the inputs of a model by an `InputRecipe`; unknown sizes are 1.

    Warns:
        RnncliWarning: dimensions were assumed to be 1, or inputs contradict a symbol.
    """
    recipe = InputRecipe(model, given, **asked)
    recipe.warn_of_ones(recipe.sizes.free)
    return recipe.make({})


def _purposes(
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
