"""Signals of a step: what an implementation computes between its inputs and its states."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.numerics import Array
    from rnncli.recurrence.arithmetic import Value
    from rnncli.recurrence.cells import Parameters, States


class StepSignals:
    """A recording of the signals of every step of some lanes.

    The signals of a step are the argument, before clipping, and the value of each activation, in
    order of evaluation, and then the new states.
    """

    def __init__(self) -> None:
        self._steps: list[Array] = []
        self._rows: list[Array] = []

    def watching(self, p: Parameters) -> Parameters:
        """Return parameters whose activations are recorded."""
        return replace(p, f=self._watched(p.f), g=self._watched(p.g), h=self._watched(p.h))

    def _watched(self, function: Callable[[Value], Value]) -> Callable[[Value], Value]:
        def watched(x: Value) -> Value:
            y = function(x)
            for pair in zip(*map(_per_gate, (x, y)), strict=True):
                self._rows += pair
            return y

        return watched

    def keep(self, states: States, live: Array | None, zero: Array) -> None:
        """End a step.

        Args:
            states: the new states, each [L, N, H].
            live: whether it is a step of the sequence and not padding [L, N, 1]; None if all are.
            zero: the value in padding.
        """
        signals = np.stack([*self._rows, *states])
        self._steps.append(signals if live is None else np.where(live, signals, zero))
        self._rows = []

    def values(self) -> Array:
        """Return the signals of all steps, [signals, L, T, N, H]."""
        return np.stack(self._steps, axis=2)


def _per_gate(values: Value) -> list[Value]:
    """Return the values [L, N, H] of each gate of an activation's argument."""
    return [*values] if values.ndim > len("LNH") else [values]
