"""What a stage is: the memory that steps work in, what walks through them, with what weights."""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rnncli.backends.in_place.cells import kernel_of
from rnncli.recurrence.cells import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from contextvars import Context

    from rnncli.backends.in_place.cells import Kernel
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence


class NotFiniteError(ArithmeticError):
    """A number overflows, or a state is NaN or infinite: kernels are known to be right without."""


class Settings(NamedTuple):
    """What decides the memory and the calls of a step, whatever numbers there will be.

    Attributes:
        kernel: of the cell.
        N, I, H, G: live sequences, inputs, units, gates.
        steps: how many a block should have at most.
        dtype: of the arithmetic.
        activations: function, alpha and beta of each.
        clips: the bound of each one's argument.
        has_P, has_Rbh: whether there are peepholes, and an Rbh that is reset.
        input_forget: as `Parts` has it.
    """

    kernel: Kernel
    N: int
    I: int  # noqa: E741 -- the specification's letter
    H: int
    G: int
    steps: int
    dtype: np.dtype[Any]
    activations: tuple[tuple[Any, float | None, float | None], ...]
    clips: tuple[float, ...]
    has_P: bool
    has_Rbh: bool
    input_forget: bool


class Stage(Protocol):
    """Memory for a block of steps, and what walks through them in it.

    Steps are here in the order in which time is walked.

    Attributes:
        form: stages of the same form want weights laid out alike.
        steps: how many a block has at most.
        nbytes: how much memory that is.
    """

    form: Hashable
    steps: int
    nbytes: int

    def lay_out(self, given: Given, named: Callable[[str], str | None]) -> KernelWeights:
        """Lay out weights in memory that has a name of each, or none: see `Layout.matrix`."""

    def load(self, weights: KernelWeights) -> None:
        """Take the weights of a direction."""

    def run(self, X: Array, states: Sequence[Array | None]) -> tuple[Array, Sequence[Array]]:
        """Walk through a block.

        Args:
            X: inputs [S, N, I].
            states: H and, of an LSTM, C before it [N, H]; None for zero.

        Returns:
            H after each step [S, N, H], and the last states [N, H], in memory that the next block
            overwrites.

        Raises:
            FloatingPointError: a number is too large, such as e^x, in the context `in_silence`.
        """


def in_silence() -> Context:
    """Return a context in which NumPy raises what overflows and passes over all else.

    It looks at the flags of the processor after each call in any case, and to enter a context
    costs less than `np.errstate`.
    """
    with np.errstate(all="ignore", over="raise"):
        return copy_context()


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


class KernelWeights(NamedTuple):
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


def settings_of(recurrence: Recurrence, d: int, dtype: np.dtype[Any], live: int) -> Settings:
    """Return what the stage of a direction, for some sequences, depends on."""
    r = recurrence
    T, _, I = r.X.shape  # noqa: E741
    _, G, H, _ = r.W.shape
    return Settings(
        kernel=kernel_of(r),
        N=live,
        I=I,
        H=H,
        G=G,
        steps=1 << (T - 1).bit_length(),
        dtype=dtype,
        activations=tuple([(a.function, a.alpha, a.beta) for a in r.activations[d]]),
        clips=(r.clip, r.clip, r.bound("h")),
        has_P=r.P is not None,
        has_Rbh=r.Rb is not None and r.linear_before_reset,
        input_forget=r.input_forget,
    )
