"""The memory that steps work in, and the loop over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.in_place.activations import in_place
from rnncli.backends.in_place.cells import Kernel, Parts
from rnncli.backends.in_place.layouts import layout_for
from rnncli.backends.in_place.memory import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation


class Settings(NamedTuple):
    """What decides the memory and the calls of a step, whatever numbers there will be.

    Attributes:
        kernel: of the cell.
        N, H, G: live sequences, units, gates.
        steps: how many a block should have at most.
        dtype: of the arithmetic.
        activations: function, alpha and beta of each.
        clips: the bound of each one's argument.
        has_P, has_Rbh: whether there are peepholes, and an Rbh that is reset.
        input_forget: as `Parts` has it.
    """

    kernel: Kernel
    N: int
    H: int
    G: int
    steps: int
    dtype: np.dtype[Any]
    activations: tuple[tuple[Any, float | None, float | None], ...]
    clips: tuple[float, ...]
    has_P: bool
    has_Rbh: bool
    input_forget: bool


class Weights(NamedTuple):
    """The weights of one direction, laid out.

    Attributes:
        W: as the layout's `matrix` returns it.
        R: of each product, alike.
        bias: of the projected inputs [G, H], or None.
        P: peephole weights [3, H] where there are some.
        Rbh: recurrent bias [H] of the GRU's hidden gate, where it is reset.
    """

    W: Array
    R: Sequence[Array]
    bias: Array | None
    P: Array | None
    Rbh: Array | None


def stage_for(settings: Settings, activations: Sequence[Activation]) -> Stage:
    """Return a stage, the one of before where this thread still has it."""
    return kept(settings, lambda: Stage(settings, activations))


class Stage:
    """Memory for a block of steps, and the step that works in it.

    Steps are here in the order in which time is walked.

    Args:
        settings: what it is for.
        activations: f, g, h, as many as there are.

    Attributes:
        layout: of all its memory.
        steps: how many a block has at most.
        nbytes: how much memory that is.
    """

    def __init__(self, settings: Settings, activations: Sequence[Activation]) -> None:
        kernel, dtype, G = settings.kernel, settings.dtype, settings.G
        self.layout = layout = layout_for(settings.N, settings.H, dtype)
        self.steps = min(settings.steps, layout.steps(G * settings.H))
        gates, spare, peepholes = (np.empty((g, *layout.unit), dtype) for g in (G, G, 3))
        self.C, self.Rbh = np.empty((2, *layout.unit), dtype)
        self.P = peepholes if settings.has_P else None
        reset = layout.history(1, dtype)[0]
        self.products = [layout.product(gates[part]) for part in kernel.products]
        functions = zip(activations, kernel.arguments, settings.clips, strict=False)
        self.step = kernel.make(
            Parts(
                gates=gates,
                spare=spare[0],
                products=self.products,
                functions=[in_place(a, spare[part], clip) for a, part, clip in functions],
                C=self.C,
                P=self.P,
                Rbh=self.Rbh if settings.has_Rbh else None,
                operand=layout.operands(reset),
                operand_unit=layout.units(reset),
                input_forget=settings.input_forget,
            )
        )
        # The history begins with the state before the first step.
        self.projection = layout.projection(self.steps, G, dtype)
        self.history = layout.history(self.steps + 1, dtype)
        inputs, states = layout.inputs(self.projection), layout.units(self.history)
        parts = [inputs[:, part] for part in kernel.inputs]
        operands = layout.operands(self.history)
        self.calls = list(zip(*parts, operands, states, states[1:], strict=False))
        self.nbytes = self.projection.nbytes + self.history.nbytes + 4 * gates.nbytes

    def load(self, weights: Weights) -> None:
        """Take the weights of a direction."""
        self.W, self.bias = weights.W, weights.bias
        for product, matrix in zip(self.products, weights.R, strict=True):
            product.load(matrix)
        for room, values in ((self.P, weights.P), (self.Rbh, weights.Rbh)):
            if room is not None and values is not None:
                room[...] = self.layout.units(values[..., None, :])

    def run(self, X: Array, states: Sequence[Array]) -> Array:
        """Walk through a block from some states, which are replaced by the last.

        Args:
            X: inputs [S, N, I], contiguous.
            states: H and, of an LSTM, C [N, H].

        Returns:
            H after each step [S, N, H], in memory that the next block overwrites.
        """
        count, step = len(X), self.step
        self.layout.project(X, self.W, self.bias, self.projection)
        self.history[0] = states[0]
        for cell in states[1:]:
            self.C[...] = self.layout.units(cell)
        for arguments in self.calls if count == self.steps else self.calls[:count]:
            step(*arguments)
        states[0][...] = self.history[count]
        for cell in states[1:]:
            self.layout.units(cell)[...] = self.C
        return self.history[1 : count + 1]
