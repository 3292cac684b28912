"""The stage protocol, its settings and its weights."""

from __future__ import annotations

from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rnncli.backends.in_place.time_steps import kernel_of
from rnncli.recurrence.cells import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from contextvars import Context

    from rnncli.backends.in_place.time_steps import Kernel
    from rnncli.numerics import Array
    from rnncli.recurrence.cells import CellOptions
    from rnncli.recurrence.recurrence import Recurrence


class NotFiniteError(ArithmeticError):
    """An overflow, or a NaN or infinite state, with which kernels are not known to be right."""


class Settings(NamedTuple):
    """The settings that determine the memory and the calls of a step.

    Attributes:
        kernel: the cell's kernel.
        N, I, H, G: numbers of live sequences, inputs, units and gates.
        steps: the maximum number of steps in a block.
        dtype: the dtype of the arithmetic.
        activations: the function, alpha and beta of each.
        clips: the bound of each activation's argument.
        has_P, has_Rbh: whether there are peepholes, and an Rbh scaled by the reset gate.
        options: as `StepBuffers` has it.
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
    options: CellOptions


class Stage(Protocol):
    """Memory for a block of steps, and the code that runs them in it.

    Steps are in processing order.

    Attributes:
        form: equal for stages with the same layout of weights.
        steps: the maximum number of steps in a block.
        nbytes: the size of the memory.
    """

    form: Hashable
    steps: int
    nbytes: int

    def lay_out(
        self, weights: DirectionWeights, named: Callable[[str], str | None]
    ) -> KernelWeights:
        """Lay out weights, in memory named by `named` or without a name; see `Layout.matrix`."""

    def load(self, weights: KernelWeights) -> None:
        """Set the weights of a direction."""

    def run(self, X: Array, states: Sequence[Array | None]) -> tuple[Array, Sequence[Array]]:
        """Run a block of steps.

        Args:
            X: inputs [S, N, I].
            states: H and, for an LSTM, C before the block [N, H]; None means zero.

        Returns:
            H after each step [S, N, H], and the last states [N, H], in memory overwritten by the
            next block.

        Raises:
            FloatingPointError: a number, such as e^x, overflows in the context `in_silence`.
        """


def in_silence() -> Context:
    """Return a context in which NumPy raises overflows and ignores other conditions.

    NumPy checks the processor's flags after each call in any case, and entering a context is
    cheaper than `np.errstate`.
    """
    with np.errstate(all="ignore", over="raise"):
        return copy_context()


class DirectionWeights(NamedTuple):
    """The weights of one direction, in the dtype of the arithmetic.

    Attributes:
        W, R: weights of the gates [G, H, I] and [G, H, H].
        bias: bias of the projected inputs [G, H], or None.
        P: peephole weights [3, H], or None.
        Rbh: recurrent bias [H] of the GRU's hidden gate, if it is scaled by the reset gate.
    """

    W: Array
    R: Array
    bias: Array | None
    P: Array | None
    Rbh: Array | None


class KernelWeights(NamedTuple):
    """The weights of one direction, laid out for a stage.

    Attributes:
        W: the matrix that projects inputs.
        R: the matrix of each product with a state.
        bias: as in `DirectionWeights`, unless it is part of W.
        P, Rbh: as in `DirectionWeights`.
    """

    W: Array
    R: Sequence[Array]
    bias: Array | None
    P: Array | None
    Rbh: Array | None


def direction_weights(recurrence: Recurrence, d: int, dtype: np.dtype[Any]) -> DirectionWeights:
    """Return the weights of a direction, in the dtype of the arithmetic."""

    def own(values: Array | None) -> Any:
        return None if values is None else values[d].astype(dtype, copy=False)

    r = recurrence
    bias, Rbh = placed(own(r.Wb), own(r.Rb), r.options)
    return DirectionWeights(own(r.W), own(r.R), bias, own(r.P), Rbh)


def settings_of(recurrence: Recurrence, d: int, dtype: np.dtype[Any], live: int) -> Settings:
    """Return the settings of the stage of a direction, for some sequences."""
    r = recurrence
    T, _, I = r.X.shape  # noqa: E741
    _, G, H, _ = r.W.shape
    kernel = kernel_of(r)
    return Settings(
        kernel=kernel,
        N=live,
        I=I,
        H=H,
        G=G,
        steps=1 << (T - 1).bit_length(),
        dtype=dtype,
        activations=tuple([(a.function, a.alpha, a.beta) for a in r.activations[d]]),
        clips=(r.clip, r.clip, r.bound("h")),
        has_P=r.P is not None,
        has_Rbh=r.Rb is not None and kernel.resets_bias,
        options=r.options,
    )
