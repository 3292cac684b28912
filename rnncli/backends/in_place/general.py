"""The stage of all but small recurrences: inputs are projected before stepping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.in_place.memory_layouts import layout_for
from rnncli.backends.in_place.numpy_functions import in_place
from rnncli.backends.in_place.plan import DirectionWeights, KernelWeights, Settings
from rnncli.backends.in_place.time_steps import StepBuffers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.backends.in_place.time_steps import Walk
    from rnncli.numerics import Array
    from rnncli.recurrence.activations import Activation


class GeneralStage:
    """A stage that projects the inputs of a block of steps at once, before stepping.

    Args:
        settings: the stage's settings.
        activations: the cell's activations, of f, g, h.

    Attributes:
        layout: the layout of its memory.
    """

    def __init__(self, settings: Settings, activations: Sequence[Activation]) -> None:
        kernel, dtype, G = settings.kernel, settings.dtype, settings.G
        self.layout = layout = layout_for(settings.N, settings.H, dtype, kernel.depth)
        self.form = layout.form
        self.kernel = kernel
        self.steps = min(settings.steps, layout.steps(G * settings.H))
        gates, spare, peepholes = (np.empty((g, *layout.unit), dtype) for g in (G, G, 3))
        self.C, self.Rbh = np.empty((2, *layout.unit), dtype)
        self.last_C = layout.history(1, dtype)[0]
        self.P = peepholes if settings.has_P else None
        reset = layout.history(1, dtype)[0]
        self.products = [
            layout.product(gates[part], gates[sums])
            for part, sums in zip(kernel.products, kernel.inputs, strict=False)
        ]
        functions = zip(activations, kernel.arguments, settings.clips, strict=False)
        self.walk: Walk = kernel.make(
            StepBuffers(
                gates=gates,
                places=range(G),
                hidden=gates[-1],
                spare=spare[0],
                products=self.products,
                functions=[in_place(a, spare[part], clip) for a, part, clip in functions],
                scale=np.multiply,
                C=self.C,
                P=self.P,
                Rbh=self.Rbh if settings.has_Rbh else None,
                operand=layout.operands(reset),
                operand_unit=layout.units(reset),
                options=settings.options,
            )
        )
        # The history starts with the state before the first step.
        self.projection = layout.projection(self.steps, G, dtype)
        self.history = layout.history(self.steps + 1, dtype)
        inputs, states = layout.inputs(self.projection), layout.units(self.history)
        parts = [inputs[:, part] for part in kernel.inputs]
        operands = layout.operands(self.history)
        self.calls = list(zip(*parts, operands, states, states[1:], strict=False))
        self.nbytes = self.projection.nbytes + self.history.nbytes + 4 * gates.nbytes

    def lay_out(
        self, weights: DirectionWeights, named: Callable[[str], str | None]
    ) -> KernelWeights:
        """Lay out W, and R by product."""
        return KernelWeights(
            W=self.layout.matrix(named("W"), weights.W),
            R=[
                self.layout.matrix(named(f"R{k}"), weights.R[gates])
                for k, gates in enumerate(self.kernel.products)
            ],
            bias=weights.bias,
            P=weights.P,
            Rbh=weights.Rbh,
        )

    def load(self, weights: KernelWeights) -> None:
        """Store references; copy what the steps have looked up."""
        self.W, self.bias = weights.W, weights.bias
        for product, matrix in zip(self.products, weights.R, strict=True):
            product.load(matrix)
        for buffer, values in ((self.P, weights.P), (self.Rbh, weights.Rbh)):
            if buffer is not None and values is not None:
                buffer[...] = self.layout.units(values[..., None, :])

    def run(self, X: Array, states: Sequence[Array | None]) -> tuple[Array, Sequence[Array]]:
        """Project the inputs and run the steps."""
        count, units = len(X), self.layout.units
        X = X.astype(self.C.dtype, order="C", copy=False)
        self.layout.project(X, self.W, self.bias, self.projection)
        for buffer, state in zip((units(self.history[0]), self.C), states, strict=False):
            buffer[...] = 0 if state is None else units(state)
        self.walk(self.calls if count == self.steps else self.calls[:count])
        units(self.last_C)[...] = self.C
        return self.history[1 : count + 1], (self.history[count], self.last_C)[: len(states)]
