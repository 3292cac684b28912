"""The weights of one direction, as a recurrence has them and as stages want them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


class Given(NamedTuple):
    """The weights of one direction, in the dtype of the arithmetic.

    Attributes:
        W, R: of the gates [G, H, I] and [G, H, H].
        bias: of the projected inputs [G, H], or None.
        P: peephole weights [3, H] where there are some.
        Rbh: recurrent bias [H] of the GRU's hidden gate, where it is reset.
    """

    W: Array
    R: Array
    bias: Array | None
    P: Array | None
    Rbh: Array | None


class Weights(NamedTuple):
    """Those weights, laid out for a stage.

    Attributes:
        W: what projects inputs.
        R: the matrix of each product with a state.
        bias: as `Given` has it, if it is not in W.
        P, Rbh: as `Given` has them.
    """

    W: Array
    R: Sequence[Array]
    bias: Array | None
    P: Array | None
    Rbh: Array | None


def given_by(recurrence: Recurrence, d: int, dtype: np.dtype[Any]) -> Given:
    """Return the weights of a direction, in the dtype of the arithmetic."""

    def own(values: Array | None) -> Any:
        return None if values is None else values[d].astype(dtype, copy=False)

    r = recurrence
    bias, Rbh = _biases(own(r.Wb), own(r.Rb), is_reset=r.linear_before_reset)
    return Given(own(r.W), own(r.R), bias, own(r.P), Rbh)


def _biases(
    Wb: Array | None, Rb: Array | None, *, is_reset: bool
) -> tuple[Array | None, Array | None]:
    """Return what is added to the projected inputs [G, H], and the Rbh that is reset [H]."""
    if Rb is None or not is_reset:
        return (Wb if Rb is None else Rb if Wb is None else Wb + Rb), None
    bias = np.zeros_like(Rb) if Wb is None else Wb.copy()
    bias[:2] += Rb[:2]
    return bias, Rb[2]
