"""Workspaces: one block of memory per call, reused by similar calls."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.compiled.kernel_shapes import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.backends.compiled.kernel_shapes import Shape
    from rnncli.numerics import Array

# Bytes of a cache line and of the widest vector; no two arrays share a line.
LINE = 64


class WorkspaceSize(NamedTuple):
    """The sizes that determine a workspace, in addition to the kernels' shape.

    Attributes:
        D: directions.
        N: sequences.
        I: inputs.
        H: units.
        rows: rows of a block of time.
        ragged: whether a block's live inputs are gathered.
    """

    D: int
    N: int
    I: int  # noqa: E741 -- the specification's letter
    H: int
    rows: int
    ragged: bool


class AlignedArrays:
    """Arrays of a kernel's numbers in one block of memory, which share no cache line.

    Args:
        shape: the kernel's.
        counts: number of elements of each array.

    Attributes:
        memory: the bytes.
        places: the arrays' addresses.
    """

    def __init__(self, shape: Shape, counts: Iterable[int]) -> None:
        lengths = [-(-count * shape.size // LINE) * LINE for count in counts]
        self.memory = np.empty(sum(lengths) + 2 * LINE, np.uint8)
        address = self.memory.ctypes.data
        first = address + -address % LINE
        self.places = [first + place for place in accumulate([0, *lengths[:-1]])]


def panels_and_units(shape: Shape, H: int) -> tuple[int, int]:
    """Return the number of panels of H units in all phases, and the units rounded up to panels."""
    counts = [-(-H // (phase.units * shape.lanes)) for phase in shape.phases]
    widest = max(count * phase.units for count, phase in zip(counts, shape.phases, strict=True))
    return sum(counts), widest * shape.lanes


class PackedWeights(AlignedArrays):
    """AlignedArrays for the packed weights and biases of all directions.

    Args:
        shape: the kernels'.
        size: the sizes, of which D, I and H matter.

    Attributes:
        records: the fields `bias` to `packed` of each direction's KernelPlan [D, 5].
        addresses: addresses of the records.
    """

    def __init__(self, shape: Shape, size: WorkspaceSize) -> None:
        panels, units = panels_and_units(shape, size.H)
        weights = panels * shape.width * shape.lanes
        row = COLUMNS * shape.lanes
        counts = (panels * row, weights * size.I, weights * size.H, 3 * units)
        super().__init__(shape, counts * size.D)
        self.records = np.zeros((size.D, len(counts) + 1), np.int64)
        self.records[:, :-1] = np.reshape(self.places, (size.D, -1))
        self.addresses = rows_of(self.records)

    def seal(self) -> None:
        """Mark the weights as packed, so that kernels only read them."""
        self.records[:, -1] = True


class Workspace(AlignedArrays):
    """The memory of one call.

    Args:
        shape: the kernels'.
        size: the other sizes.
        plans: the part of each direction's plan that calls share [D].
        numbers: alpha and beta of each direction's activations and the bounds of clipping [D, 8].

    Attributes:
        plans: the KernelPlans, with addresses in the fields `numbers` to `meeting` [D].
        addresses: addresses of the plans.
        meetings: the barrier of each direction's team [D, 8].
        packed: memory for weights that may change at the next call, allocated on first use.
    """

    def __init__(self, shape: Shape, size: WorkspaceSize, plans: Array, numbers: Array) -> None:
        panels, units = panels_and_units(shape, size.H)
        sums = panels * size.rows * COLUMNS * shape.lanes
        gathered = size.rows * size.I if size.ragged else 0
        super().__init__(shape, (sums, 5 * size.N * units, gathered) * size.D)
        self.numbers = numbers
        self.meetings = np.zeros((size.D, LINE // 8), np.int64)
        self.plans = plans.copy()
        self.addresses = rows_of(self.plans)
        self.packed: PackedWeights | None = None
        self._set(units)

    def _set(self, units: int) -> None:
        """Write the addresses into the plans."""
        for k, name in enumerate(("sums", "states", "gathered")):
            self.plans[name] = self.places[k::3]
        self.plans["units"] = units
        self.plans["numbers"] = rows_of(self.numbers)
        self.plans["meeting"] = rows_of(self.meetings)

    @property
    def nbytes(self) -> int:
        """Total size in bytes."""
        return self.memory.nbytes + (self.packed.memory.nbytes if self.packed else 0)


def rows_of(values: np.ndarray[Any, Any]) -> list[int]:
    """Return the addresses of an array's rows."""
    first, stride = values.ctypes.data, values.strides[0]
    return [first + stride * k for k in range(len(values))]
