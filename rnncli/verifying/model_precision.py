"""What makes errors of some size in a model's outputs: coarser arithmetic, by evaluating it so.

An arithmetic is named by its errors: they have the size of those that were found, within
`request.NEAR`. If they are also the same errors element by element, so that the two correlate,
nothing else is likely.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import Exhausted, RnncliError
from rnncli.judging.explaining.fitting import is_rounded_to
from rnncli.models.evaluator import Evaluator, Library
from rnncli.models.model import all_bodies
from rnncli.models.observation import Watch
from rnncli.models.steps import OwnRecurrentNode
from rnncli.models.widened_model import widened, widened_model
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.imprecision import (
    RoundedOperands,
    computing_rounded,
    multiplying,
    rounded,
    tf32,
)
from rnncli.mutants.mutant import MATH, RIGHT, Change
from rnncli.numerics import DTYPES, NumPyArithmetic
from rnncli.running.request import LARGEST, SAME, ErrorSize, LikeArithmetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping

    from rnncli.files.formats.format import Tensors
    from rnncli.models.model import Model
    from rnncli.models.observation import Occurrence
    from rnncli.models.steps import Step
    from rnncli.mutants.mutant import Elementwise
    from rnncli.numerics import Array
    from rnncli.running.request import Request

# Errors are spread alike up to this factor of their mean size, each beside the root mean square.
SPREAD = 3.0
# Operators that multiply matrices or kernels.
PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"})


def in_int8(axis: int | None, values: Array) -> Array:
    """Round weights to 255 levels about zero, one scale for all or for each row along an axis."""
    largest = np.abs(values).max(axis=axis, keepdims=True, initial=0.0)
    scale = np.where(largest, largest, 1.0) / 127
    return np.asarray(np.rint(values / scale) * scale)


def unchanged(values: Array) -> Array:
    """Return the values."""
    return values


# The types that all may be of, the coarser last.
INSIDE = ("float16", "bfloat16")


class CoarseArithmetic(NamedTuple):
    """A coarser arithmetic of a whole model."""

    name: str  # in words
    of_weights: Callable[[Array], Array] = unchanged  # the rounding of matrices and kernels
    of_values: Callable[[Array], Array] = unchanged  # that of other values
    of_biases: bool = False  # whether biases of recurrent nodes are rounded like weights
    is_of_products: bool = False  # whether only values that are multiplied are rounded
    change: Change = RIGHT  # that of recurrent nodes


class RoundedThroughout(RoundedOperands):
    """An engine that rounds products, and Sigmoid and Tanh, as well as what is multiplied."""

    def __init__(self, function: Elementwise, dtype: np.dtype[Any]) -> None:
        super().__init__(function, dtype)
        self.math = NumPyArithmetic()
        for name in ("sigmoid", "tanh"):
            vars(self.math)[name] = lambda x, name=name: function(getattr(MATH, name)(x))

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Round what is multiplied, and the product."""
        return np.asarray(self.rounded(super().multiply(values, matrix)))


def throughout(function: Elementwise) -> Change:
    """Return the change of a recurrent node in which nearly all values are rounded."""
    return replace(computing_rounded(function), engine=partial(RoundedThroughout, function))


def inside(dtype: str) -> str:
    """Return in words that all is of a type."""
    return f"{dtype} inside"


ARITHMETICS = (
    *(
        CoarseArithmetic(inside(d), rounded(d), rounded(d), True, change=throughout(rounded(d)))
        for d in INSIDE
    ),
    CoarseArithmetic(
        "TensorFloat-32 products", tf32, tf32, is_of_products=True, change=multiplying(tf32)
    ),
    *(CoarseArithmetic(f"weights in {d}", rounded(d), of_biases=True) for d in INSIDE),
    *(CoarseArithmetic(f"weights in {d}, but for biases", rounded(d)) for d in INSIDE),
    CoarseArithmetic("weights in int8", partial(in_int8, None)),
    CoarseArithmetic("weights in int8, a scale for each row", partial(in_int8, -1)),
    *(
        CoarseArithmetic(f"Sigmoid and Tanh {way}", change=MUTANTS[name].change)
        for name, way in (
            ("table-1024", "from tables of 1024 values"),
            ("table-64", "from tables of 64 values"),
            ("piecewise-linear-64", "of lines between 64 values"),
        )
    ),
)


class RoundingWatch(Watch):
    """A watch that rounds what each step makes, as an arithmetic has it."""

    def __init__(self, arithmetic: CoarseArithmetic, multiplied: frozenset[str]) -> None:
        super().__init__(self._computed)
        self._arithmetic, self._multiplied = arithmetic, multiplied

    def _computed(self, occurrence: Occurrence) -> Tensors | None:
        change = self._arithmetic.change
        recurrence = occurrence.node.recurrence(occurrence.inputs)
        return None if change is RIGHT else occurrence.node.outputs_of(change.run(recurrence))

    def ran(self, step: Step, values: MutableMapping[str | None, Any]) -> None:
        """Process a step that has run."""
        super().ran(step, values)
        if self._arithmetic.is_of_products and isinstance(step.operator, OwnRecurrentNode):
            return
        for name in step.outputs:
            if isinstance(values.get(name), np.ndarray):
                values[name] = self.rounded(f"{name}", values[name])

    def rounded(self, name: str, values: Array) -> Array:
        """Return a value as it is kept."""
        is_kept = self._arithmetic.is_of_products and name not in self._multiplied
        return values if is_kept or values.dtype.kind != "f" else self._arithmetic.of_values(values)


def outputs_in(
    model: Model, arithmetic: CoarseArithmetic, request: Request, inputs: Tensors
) -> Tensors:
    """Return the outputs of a model in float64, but for what an arithmetic rounds.

    Raises:
        RnncliError: it cannot be evaluated so.
    """

    def change(_: str, values: Array) -> Array:
        # Biases of a node are a matrix for ONNX, of one row for each direction.
        long = sum(size > 1 for size in values.shape)
        is_weights = values.dtype.kind == "f" and long > (not arithmetic.of_biases)
        return arithmetic.of_weights(widened(values)) if is_weights else values

    wide = widened_model(model, change)
    bodies = all_bodies(model.proto)
    read = (
        n for body in bodies for node in body.node if node.op_type in PRODUCTS for n in node.input
    )
    watch = RoundingWatch(arithmetic, frozenset(read))
    library = Library(wide, request.arithmetic._replace(host="onnx"), watch)
    evaluator = Evaluator(wide.proto.graph, wide.opsets, library)
    return evaluator.outputs({n: watch.rounded(n, widened(v)) for n, v in inputs.items()})


def error_size(
    model: Model, request: Request, inputs: Tensors, got: Mapping[str, Array]
) -> ErrorSize | None:
    """Return how large the errors of outputs are, and which arithmetics make such errors.

    Args:
        model: the model, which can be evaluated in float64.
        request: how its nodes are evaluated.
        inputs: its inputs.
        got: the outputs of another program, by the model's names.

    Returns:
        None if no floating-point output has finite errors.
    """
    try:
        exact = outputs_in(model, CoarseArithmetic("float64"), request, inputs)
    except RnncliError:
        return None
    names = [
        name
        for name, values in got.items()
        if name in exact and values.dtype.kind == "f" and exact[name].shape == values.shape
    ]
    scale = {name: np.abs(exact[name]).max(initial=0.0) or 1.0 for name in names}

    def errors(outputs: Mapping[str, Array]) -> Array:
        """Return all errors in parts of the largest value of their output."""
        parts = ((widened(outputs[n]) - exact[n]).ravel() / scale[n] for n in names)
        return np.concatenate([np.zeros(0), *parts])

    found = errors(got)
    size = float(np.sqrt(np.mean(found**2))) if found.size else 0.0
    if not (np.isfinite(size) and size):
        return None
    likes = []
    for arithmetic in ARITHMETICS:
        try:
            theirs = errors(outputs_in(model, arithmetic, request, inputs))
        except Exhausted:
            raise
        except RnncliError:
            continue
        own = float(np.sqrt(np.mean(theirs**2)))
        # An arithmetic spreads its errors, or has few: that of one element is of none that does.
        spread = np.mean(np.abs(theirs)) / own if own else 0.0
        part = np.mean(np.abs(found)) / size
        if np.isfinite(own) and 1 / SPREAD <= part / (spread or np.inf) <= SPREAD:
            alike = float(np.mean(found * theirs) / size / own)
            likes.append(LikeArithmetic(arithmetic.name, size / own, alike))
    largest = max(float(np.abs(widened(got[n]) - exact[n]).max()) for n in names)
    narrow = ""
    for dtype in INSIDE:
        if all(is_rounded_to(got[n], exact[n], DTYPES[dtype]) for n in names):
            narrow = dtype
    return ErrorSize(largest, size, tuple(_nearest(likes, narrow, size)), narrow)


def _nearest(likes: list[LikeArithmetic], narrow: str, size: float) -> Iterator[LikeArithmetic]:
    """Yield those that make such errors; else the one nearest in size, of errors not too large."""
    same = [each for each in likes if each.correlation >= SAME and each.is_near]
    own = [each for each in likes if each.name == inside(narrow) and each.is_near]
    near = same or own or [each for each in likes if each.is_near] or likes
    if size > LARGEST and near is not same:
        return
    near.sort(key=lambda each: (-each.correlation if same else 0, abs(np.log(each.times))))
    yield from near[: 3 if near[0].is_near else 1] if near else ()
