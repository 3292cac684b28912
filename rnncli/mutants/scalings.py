"""Weights that are multiplied by a number, which is fitted to the outputs of a kernel."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.mutants.mutant import ALL, Change, Mutant
from rnncli.recurrence.cells import CELLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# What is scaled -> the fields of a recurrence.
TENSORS = {"w": ("W",), "r": ("R",), "b": ("Wb", "Rb"), "wb": ("Wb",), "rb": ("Rb",), "p": ("P",)}
_NAME = re.compile(r"([wrbp]+)(?:-of-([a-z]))?-scaled-by-(-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?)")
FAMILY = "scales"
# The least number of wrong elements that a factor fits by no chance.
FEWEST = 4
# The change of a factor by which effects are measured, and the part of an error that must be in
# their direction.
STEP, ALIKE = 1 / 64, 0.5
# Steps of a fit, and the relative change of a factor that ends it.
MOST, NEAR = 12, 1e-7


class Scaling(NamedTuple):
    """A tensor of weights, or its part of one gate."""

    tensor: str  # a key of `TENSORS`
    gate: str = ""  # the gate's letter; "" for all

    def by(self, factor: float) -> Mutant:
        """Return the bug that multiplies it by a factor."""
        of = f" of gate {self.gate}" if self.gate else ""
        name = {"wb": "Wb", "rb": "Rb"}.get(self.tensor, self.tensor.upper())
        return Mutant(
            f"{self.tensor}{f'-of-{self.gate}' if self.gate else ''}-scaled-by-{factor:.3g}",
            tuple(cell for cell in ALL if not self.gate or self.gate in CELLS[cell].gates),
            FAMILY,
            f"{name}{of} is multiplied by {factor:.3g}.",
            "Every value is off.",
            Change(recurrence=lambda recurrence: self._scaled(recurrence, factor)),
        )

    def fitted(
        self, outputs: Callable[[Mutant], Array | None], right: Array, got: Array
    ) -> Mutant | None:
        """Return the bug by the factor whose outputs are nearest to those that were got, or None.

        Args:
            outputs: returns the outputs, flat, with a bug; None if there are none.
            right: those without a bug.
            got: the outputs that were got.
        """
        use = np.isfinite(right) & np.isfinite(got)
        before, factor, found, off = 1.0, 1 + STEP, right[use], (got - right)[use]
        for k in range(MOST):
            made = outputs(self.by(factor))
            if made is None or not np.isfinite(made[use]).all():
                return None
            slope = (made[use] - found) / (factor - before)
            size = float(slope @ slope)
            if not size or (k == 0 and (slope @ off) ** 2 < ALIKE**2 * size * float(off @ off)):
                return None
            move = float(slope @ (got - made)[use]) / size
            before, found, factor = factor, made[use], factor + move
            if abs(move) <= NEAR * abs(factor):
                break
        return self.by(factor)

    def _scaled(self, recurrence: Recurrence, factor: float) -> Recurrence:
        gates = recurrence.cell.gates
        if self.gate not in gates:
            return recurrence
        which = gates.index(self.gate) if self.gate else np.s_[:]
        changed = {}
        for name in TENSORS[self.tensor]:
            if (values := getattr(recurrence, name)) is not None:
                changed[name] = values.astype(np.float64)
                changed[name][:, which] *= factor
        return replace(recurrence, **changed)


def scalings_of(recurrence: Recurrence) -> Iterator[list[Scaling]]:
    """Yield the tensors that a recurrence has, then their parts of each gate."""
    if recurrence.quantiser or recurrence.unit or not recurrence.cell.projects:
        return
    there = [
        tensor
        for tensor, names in TENSORS.items()
        if any(
            np.any(values) for name in names if (values := getattr(recurrence, name)) is not None
        )
    ]
    yield [Scaling(tensor) for tensor in there]
    if len(gates := recurrence.cell.gates) > 1:
        yield [Scaling(tensor, gate) for tensor in there if tensor != "p" for gate in gates]


def scaling_named(name: str) -> Mutant | None:
    """Return the bug of a name; None if it is another one."""
    found = _NAME.fullmatch(name)
    if not found or found[1] not in TENSORS:
        return None
    return Scaling(found[1], found[2] or "").by(float(found[3]))
