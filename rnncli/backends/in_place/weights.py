"""The weights of one direction, as a recurrence has them and as stages want them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rnncli.recurrence.cells import placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

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
    bias, Rbh = placed(own(r.Wb), own(r.Rb), after=r.linear_before_reset)
    return Given(own(r.W), own(r.R), bias, own(r.P), Rbh)
