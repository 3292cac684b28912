"""Routines: what recurrences that differ only in their values share, their workspaces included."""

from __future__ import annotations

import math
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.compiled.equations import FUNCTIONS, equations_of
from rnncli.backends.compiled.kernel_plan import RECORD, weights_locator
from rnncli.backends.compiled.kernel_shapes import COLUMNS, Shape, registers
from rnncli.backends.compiled.kernels import scan_kernel
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.recurrence import TENSORS, Direction, all_but, working_dtype

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Compute, Recurrence


# Bytes of a cache line and of the widest vector; no two arrays share a line.
LINE = 64


class WorkspaceSize(NamedTuple):
    """The sizes that determine a workspace, in addition to the kernels' shape."""

    D: int  # directions
    N: int  # sequences
    I: int  # noqa: E741 -- the specification's letter: inputs
    H: int  # units
    rows: int  # rows of a block of time
    ragged: bool  # whether a block's live inputs are gathered


class AlignedArrays:
    """Arrays of a kernel's numbers in one block of memory, which share no cache line.

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

    Of the sizes D, I and H matter.

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

        # Write the addresses into the plans.
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


# Rows of a block of time: enough to reuse a panel of weights, few enough to keep the sums in cache.
BLOCK_ROWS = 96
# Bytes of weights per additional row of a block. W is read once per block, R at every step: if both
# come from memory, longer blocks are 5 to 14 % faster.
WEIGHTS_PER_ROW = 1 << 16
# Limits of the cache: routines, and bytes of their workspaces. Fresh memory costs up to a
# microsecond per page at first touch.
MOST_ROUTINES, MOST_BYTES = 256, 1 << 26
# Read from the key by name or identity, which is faster to hash; seen by each call; refused.
_other_settings = all_but(
    *(*TENSORS, "initial"),
    *("dtype", "cell", "activations", "keep_initial", "wants_Y", "quantiser"),
)

CODES = {function: code for code, function in enumerate(FUNCTIONS)}


class Routine:
    """A routine for all recurrences with the settings, sizes and dtype of one.

    T may differ, up to the same power of two.

    Args:
        recurrence: one of them.
        compute: the arithmetic.
        is_kept: whether their packed weights are cached elsewhere.

    Attributes:
        dtype: of the arithmetic, float32 or float64.
        is_native: whether the tensors have the same dtype.
        layout: the cache key of packed weights that it can use.
        scans: the kernel of each direction.
        locate: writes the addresses of weights into KernelPlans.
        states: shape of the states.
        multiplications: multiplications in one step.
        recurrent: those in one direction's H*(R^T).
        is_reverse: for each direction.
        absent, no_Y: stand-ins for absent tensors.
    """

    def __init__(self, recurrence: Recurrence, compute: Compute, *, is_kept: bool) -> None:
        r = recurrence
        self.dtype = dtype = working_dtype(r, compute)
        self.is_native = dtype == r.dtype.numpy
        self.activations = r.activations  # kept alive so that their ids stay unique
        self.is_kept = is_kept

        # The shape of each direction's kernel; all have the same panels.
        cell = equations_of(r)
        simple = r.P is None and r.clip == math.inf and not r.options.input_forget
        defaults = [CODES[ACTIVATIONS[name].function] for name in r.cell.defaults]
        plain = [simple and codes == defaults for codes in codes_of(r)]
        shapes = [Shape(cell, is_plain, dtype.name, *registers()) for is_plain in plain]
        self.shape = shapes[0]
        self.layout = f"{self.shape.cell} {dtype.name}"
        self.scans = [scan_kernel(shape.code) for shape in shapes]
        self.locate = weights_locator(dtype.name)
        self.is_reverse = [direction is Direction.REVERSE for direction in r.directions]
        T, N, I = r.X.shape  # noqa: E741
        D, _, H, _ = r.W.shape
        # The rows of a block of time, unless a single step has more.
        weights = (r.W[0].nbytes + r.R[0].nbytes) * dtype.itemsize // r.W.itemsize
        rows = max(BLOCK_ROWS, weights // WEIGHTS_PER_ROW)
        steps = min(1 << (T - 1).bit_length(), rows // (N or 1)) or 1
        self.size = WorkspaceSize(D, N, I, H, steps * N, r.lengths is not None)
        self.states = D, N, H
        self.multiplications, self.recurrent = N * (r.W.size + r.R.size), N * r.R[0].size

        # Alpha and beta of each direction's activations, and the bounds of clipping.
        self.numbers = np.zeros((D, 8), dtype)
        for d, activations in enumerate(r.activations):
            for k, row in enumerate(activations):
                self.numbers[d, 2 * k : 2 * k + 2] = row.alpha or 0, row.beta or 0
        self.numbers[:, 6:] = r.clip, r.bound("h")

        # The part of the KernelPlans that all calls share [D].
        self.plans = np.zeros(D, RECORD)
        same = {"N": N, "I": I, "H": H, "steps": steps}
        flags = {"P": r.P is not None, "input_forget": r.options.input_forget}
        codes = dict(zip("fgh", zip(*codes_of(r), strict=True), strict=False))
        own = {"d": range(D), "reverse": self.is_reverse, **codes}
        for name, value in {**same, **flags, **own}.items():
            self.plans[name] = value
        self.absent, self.no_Y = np.empty((0, 0, 0), dtype), np.empty((0, 0, 0, 0), dtype)
        self.free: list[Workspace] = []

    def tensor(self, values: Array | None) -> Array:
        """Return a tensor in the kernels' format, copied if necessary."""
        if values is None:
            return self.absent
        values = np.ascontiguousarray(values, self.dtype)
        return values if values.flags.aligned else values.copy()

    def take(self) -> Workspace:
        """Return an unused workspace with arbitrary contents."""
        try:
            return self.free.pop()
        except IndexError:
            workspace = Workspace(self.shape, self.size, self.plans, self.numbers)
            if not self.is_kept:
                workspace.packed = PackedWeights(self.shape, self.size)
            ROUTINES.count(workspace.nbytes)
            return workspace

    def give(self, workspace: Workspace) -> None:
        """Return a workspace to the cache."""
        self.free.append(workspace)


def codes_of(recurrence: Recurrence) -> list[list[int]]:
    """Return the codes of each direction's activations."""
    return [[CODES[row.function] for row in rows] for rows in recurrence.activations]


def kind_of_calls(recurrence: Recurrence) -> tuple[Any, ...]:
    """Return the key that the recurrences of a routine share."""
    r = recurrence
    T, N, I = r.X.shape  # noqa: E741
    D, _, H, _ = r.W.shape
    return (
        *(r.dtype.name, r.cell.name, (T - 1).bit_length(), N, I, D, H),
        *(r.P is None, r.lengths is None, id(r.activations)),
        *_other_settings(r),
    )


class Routines:
    """The cache of routines, cleared if there are too many or their workspaces are too large."""

    def __init__(self) -> None:
        self.known: dict[Hashable, Routine] = {}
        self.nbytes = 0
        self.lock = Lock()

    def of(self, recurrence: Recurrence, compute: Compute, *, is_kept: bool) -> Routine:
        """Return the routine of a recurrence."""
        key = compute, is_kept, *kind_of_calls(recurrence)
        if known := self.known.get(key):
            return known
        routine = Routine(recurrence, compute, is_kept=is_kept)
        with self.lock:
            if len(self.known) >= MOST_ROUTINES:
                self._forget()
            self.known[key] = routine
        return routine

    def count(self, nbytes: int) -> None:
        """Count memory that a routine allocated for its workspaces."""
        with self.lock:
            self.nbytes += nbytes
            if self.nbytes > MOST_BYTES:
                self._forget()

    def _forget(self) -> None:
        """Clear the cache; workspaces in use are freed when their calls end."""
        self.known, self.nbytes = {}, 0


ROUTINES = Routines()
