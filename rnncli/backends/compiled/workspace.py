"""What a call keeps between its steps: one piece of memory, used again by calls like it."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.compiled.shapes import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.backends.compiled.shapes import Shape
    from rnncli.numerics import Array

# Bytes of a cache line and of the widest vector: nothing shares a line with its neighbour.
LINE = 64


class WorkspaceSize(NamedTuple):
    """What the memory depends on besides the kernels' shape.

    Attributes:
        D: directions.
        N: sequences.
        I: inputs.
        H: units.
        rows: of a block of time.
        ragged: whether a block's live inputs are gathered.
    """

    D: int
    N: int
    I: int  # noqa: E741 -- the specification's letter
    H: int
    rows: int
    ragged: bool


class Memory:
    """Arrays of a kernel's numbers in one piece of memory, none on a cache line of another.

    Args:
        shape: the kernel's.
        counts: how many numbers each array has.

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
    """Return how many panels H units take in all phases, and to how many they are rounded up."""
    counts = [-(-H // (phase.units * shape.lanes)) for phase in shape.phases]
    widest = max(count * phase.units for count, phase in zip(counts, shape.phases, strict=True))
    return sum(counts), widest * shape.lanes


class Packed(Memory):
    """Memory for the weights and biases of all directions as kernels want them.

    Args:
        shape: the kernels'.
        size: what the memory depends on besides: D, I and H.

    Attributes:
        records: of each direction, what a KernelPlan has from `bias` to `packed` [D, 5].
        addresses: of the records.
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
        """Say that the weights are packed: kernels read them, and write no more."""
        self.records[:, -1] = True


class Workspace(Memory):
    """The memory of one call.

    Args:
        shape: the kernels'.
        size: what the memory depends on besides.
        plans: of each direction, what calls have in common [D].
        numbers: of each direction, alpha and beta of its activations, the bounds of clipping
            [D, 8].

    Attributes:
        plans: the KernelPlans, whose fields from `numbers` to `meeting` say what lies where [D].
        addresses: of the plans.
        meetings: where the members of each direction's team wait for each other [D, 8].
        packed: memory for weights that may be others at the next call, once there were some.
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
        self.packed: Packed | None = None
        self._set(units)

    def _set(self, units: int) -> None:
        """Say in the plans what lies where."""
        for k, name in enumerate(("sums", "states", "gathered")):
            self.plans[name] = self.places[k::3]
        self.plans["units"] = units
        self.plans["numbers"] = rows_of(self.numbers)
        self.plans["meeting"] = rows_of(self.meetings)

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return self.memory.nbytes + (self.packed.memory.nbytes if self.packed else 0)


def rows_of(values: np.ndarray[Any, Any]) -> list[int]:
    """Return the addresses of an array's rows."""
    first, stride = values.ctypes.data, values.strides[0]
    return [first + stride * k for k in range(len(values))]
