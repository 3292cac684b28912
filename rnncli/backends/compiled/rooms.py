"""What a scan keeps between its steps: one piece of memory, used again by calls like it."""

from __future__ import annotations

from collections import OrderedDict
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.compiled.plan import ARRAYS, ROOMS, Plan
from rnncli.backends.compiled.shapes import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.backends.compiled.shapes import Shape

# Bytes of a cache line and of the widest vector: nothing shares a line with its neighbour.
LINE = 64
# Bytes kept for later calls; fresh memory costs up to a microsecond a page at its first touch.
KEPT = 1 << 26


class Size(NamedTuple):
    """What the memory depends on besides the kernel's shape.

    Attributes:
        N: sequences.
        I: inputs.
        H: units.
        rows: of a block of time.
        ragged: whether a block's live inputs are gathered.
    """

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
    """Room for the weights and biases of a direction as kernels want them.

    Args:
        shape: the kernel's.
        I: inputs.
        H: units.
    """

    def __init__(self, shape: Shape, I: int, H: int) -> None:  # noqa: E741
        panels, units = panels_and_units(shape, H)
        weights = panels * shape.width * shape.lanes
        row = COLUMNS * shape.lanes
        super().__init__(shape, (panels * row, weights * I, weights * H, 3 * units))


class Rooms(Memory):
    """The memory of one call.

    Attributes:
        plan: the Plan, as int64s; its fields from `numbers` to `meeting` say what lies where.
        address: of the plan.
        numbers: alpha and beta of f, g and h, the bounds of clipping [8].
        meeting: where the gang's members wait for each other [1].
        packed: room for weights that may be others at the next call, once there were some.
    """

    def __init__(self, shape: Shape, size: Size) -> None:
        panels, units = panels_and_units(shape, size.H)
        sums = panels * size.rows * COLUMNS * shape.lanes
        gathered = size.rows * size.I if size.ragged else 0
        super().__init__(shape, (8, sums, 5 * size.N * units, gathered))
        first = self.places[0] - self.memory.ctypes.data
        self.numbers = self.memory[first : first + 8 * shape.size].view(shape.dtype)
        self.meeting = np.zeros(1, np.int64)
        self.plan = np.zeros(len(Plan._fields), np.int64)
        self.address = self.plan.ctypes.data
        self.plan[ARRAYS : ARRAYS + ROOMS] = [*self.places, units, self.meeting.ctypes.data]
        self.packed: Packed | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return self.memory.nbytes + (self.packed.memory.nbytes if self.packed else 0)


class Store:
    """Rooms that no call is using; those used last are kept longest.

    Nobody can tell: whoever takes rooms writes before reading.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.free: OrderedDict[Any, list[Rooms]] = OrderedDict()
        self.nbytes = 0

    def take(self, key: Any) -> Rooms | None:
        """Return rooms that were given under a key, if there are any."""
        with self.lock:
            if not self.free.get(key):
                return None
            rooms = self.free[key].pop()
            self.nbytes -= rooms.nbytes
            return rooms

    def give(self, key: Any, rooms: Rooms) -> None:
        """Keep rooms for the next who asks for that key."""
        with self.lock:
            self.free.setdefault(key, []).append(rooms)
            self.free.move_to_end(key)
            self.nbytes += rooms.nbytes
            while self.nbytes > KEPT:
                _, dropped = self.free.popitem(last=False)
                self.nbytes -= sum(old.nbytes for old in dropped)
