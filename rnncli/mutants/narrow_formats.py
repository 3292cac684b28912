"""Formats that are too narrow: for states, operands or sums."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.reference import NumPyEngine
from rnncli.mutants.changes import ALL, LSTM, family, row, stepped
from rnncli.mutants.equivalence import NO_STEP, Unreached
from rnncli.mutants.mutant import Change
from rnncli.numerics import DTYPES, round_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.mutants.changes import Function, Right
    from rnncli.mutants.mutant import Mutant
    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States
    from rnncli.recurrence.recurrence import Recurrence

COARSE = "Errors of the size of the format's last bit, growing with the length of the sequence."


def rounded(dtype: str) -> Function:
    """Return the function that rounds to a dtype and back."""
    return lambda values: round_to(values, DTYPES[dtype]).astype(values.dtype)


def tf32(values: Value) -> Value:
    """Round to the 11 significant bits of TensorFloat-32, in the range of float32."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(fraction, 11)), exponent - 11)


class RoundedOperands(NumPyEngine):
    """An engine that rounds both operands of every matrix product, but not the sums.

    Args:
        function: the rounding.
        dtype: the dtype of the arithmetic.
    """

    def __init__(self, function: Function, dtype: np.dtype[Any]) -> None:
        super().__init__(dtype)
        self.rounded = function

    def matrix(self, weights: Array) -> Array:
        """Return the rounded transposed weights."""
        return super().matrix(np.asarray(self.rounded(weights)))

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Multiply rounded values."""
        return super().multiply(np.asarray(self.rounded(values)), matrix)


class Float16Sums(NumPyEngine):
    """An engine that sums the terms of matrix products in float16, in order."""

    def multiply(self, values: Array, matrix: Array) -> Array:
        """Round every product and every partial sum."""
        total = np.zeros((*matrix.shape[:2], values.shape[1], matrix.shape[3]), np.float16)
        for k in range(values.shape[2]):
            total += (values[:, :, k, None] * matrix[:, :, None, k]).astype(np.float16)
        return total.astype(self.dtype)


def _stored(which: int, function: Function) -> Callable[[Recurrence], Recurrence]:
    """Return the change that rounds a state before the next step reads it."""

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        new = list(right(p, x, states))
        new[which] = function(new[which])
        return tuple(new)

    return stepped(step)


def _all_stored(function: Function) -> Callable[[Recurrence], Recurrence]:
    """Return the change that rounds every state before the next step reads it."""

    def step(right: Right, p: Parameters, x: Value, states: States) -> States:
        return tuple(map(function, right(p, x, states)))

    return stepped(step)


def _formats() -> Iterator[Mutant]:
    for dtype in ("bfloat16", "float16"):
        for which, name, cells in ((0, "h", ALL), (1, "c", LSTM)):
            yield row(
                f"{name}-stored-in-{dtype}",
                cells,
                f"{name.upper()} is stored in {dtype} between steps.",
                COARSE,
                _stored(which, rounded(dtype)),
                NO_STEP,
            )
    for id_, spelled, function in (
        ("tf32", "TensorFloat-32", tf32),
        ("bfloat16", "bfloat16", rounded("bfloat16")),
        ("float16", "float16", rounded("float16")),
    ):
        change = Change(engine=partial(RoundedOperands, function))
        yield row(
            f"operands-in-{id_}",
            ALL,
            f"The operands of matrix products are rounded to {spelled}.",
            COARSE,
            change,
            Unreached(change, "every operand and result is the same rounded"),
        )
    for dtype in ("bfloat16", "float16"):
        change = Change(_all_stored(rounded(dtype)), partial(RoundedOperands, rounded(dtype)))
        yield row(
            f"computed-in-{dtype}",
            ALL,
            f"The operands of matrix products are rounded to {dtype}, and so are states.",
            COARSE,
            change,
            Unreached(change, "every operand, state and result is the same rounded"),
        )
    change = Change(engine=Float16Sums)
    yield row(
        "sums-in-float16",
        ALL,
        "Matrix products are accumulated in float16.",
        "Errors grow with I and H; sums above 65504 are infinite.",
        change,
        Unreached(change, "every sum is the same in float16"),
    )


ROWS = family("formats", _formats())
