"""What a scan keeps between its steps: one piece of memory, used again by calls like it."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.backends.compiled.plan import ARRAYS, Plan
from rnncli.backends.compiled.shapes import COLUMNS

if TYPE_CHECKING:
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


class Rooms:
    """The memory of one call.

    Attributes:
        plan: the Plan, as int64s; its fields from `numbers` to `meeting` say what lies where.
        address: of the plan.
        numbers: alpha and beta of f, g and h, the bounds of clipping [8].
        meeting: where the gang's members wait for each other [1].
        nbytes: of all.
    """

    def __init__(self, shape: Shape, size: Size) -> None:
        counts = [-(-size.H // (phase.units * shape.lanes)) for phase in shape.phases]
        panels, units = (
            sum(counts),
            shape.lanes
            * max(count * phase.units for count, phase in zip(counts, shape.phases, strict=True)),
        )
        weights = shape.width * shape.lanes
        numbers = (
            *(8, panels * COLUMNS * shape.lanes),
            *(panels * size.I * weights, panels * size.H * weights),
            *(panels * size.rows * COLUMNS * shape.lanes, 5 * size.N * units, 3 * units),
            size.rows * size.I if size.ragged else 0,
        )
        lengths = [-(-count * shape.size // LINE) * LINE for count in numbers]
        self.memory = np.empty(sum(lengths) + 2 * LINE, np.uint8)
        self.nbytes = self.memory.nbytes
        first = -self.memory.ctypes.data % LINE
        self.numbers = self.memory[first : first + 8 * shape.size].view(shape.dtype)
        self.meeting = np.zeros(1, np.int64)
        self.plan = np.zeros(len(Plan._fields), np.int64)
        self.address = self.plan.ctypes.data
        places = np.cumsum([self.memory.ctypes.data + first, *lengths])[:-1]
        self.plan[ARRAYS:][: len(numbers) + 2] = [*places, units, self.meeting.ctypes.data]


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
