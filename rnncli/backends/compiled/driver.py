"""From a canonical recurrence to calls of its kernels, and back to tensors."""

from __future__ import annotations

import math
from functools import cache, partial
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.compiled.equations import FUNCTIONS
from rnncli.backends.compiled.gang import DISSOLVED
from rnncli.backends.compiled.kernels import locator, scan_kernel
from rnncli.backends.compiled.plan import ARRAYS, ROOMS, Plan
from rnncli.backends.compiled.processor import registers
from rnncli.backends.compiled.rooms import Packed, Rooms, Size, Store
from rnncli.backends.compiled.shapes import Shape
from rnncli.backends.crew import CREW
from rnncli.backends.order import Batch
from rnncli.backends.scan import block_steps
from rnncli.backends.threads import threads
from rnncli.numerics import round_to
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.constants import Constants
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# Rows of a block of time: enough to use a panel of weights often, few enough for its sums to stay
# in cache.
BLOCK_ROWS = 96
# Bytes of weights for which a block has another row. W is read once a block, R at every step: where
# both come from memory long blocks are 5 to 14 % faster.
WEIGHTS_PER_ROW = 1 << 16
# Multiplications from which on threads are worth waking: about a millisecond of them.
WORTHWHILE = 1e8

STORE = Store()
CODES = {function: code for code, function in enumerate(FUNCTIONS)}
# What kernels of plain shapes compute with.
PLAIN = {
    cell: tuple(CODES[ACTIVATIONS[name].function] for name in names)
    for cell, names in {
        "RNN": ("Tanh",),
        "GRU": ("Sigmoid", "Tanh"),
        "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    }.items()
}
# A plan's fields after those that its arrays and its rooms set.
NUMBERS = Struct(f"{len(Plan._fields) - ARRAYS - ROOMS}q")
NUMBERS_AT = 8 * (ARRAYS + ROOMS)
# Tensors that are not there.
ABSENT = {np.dtype(name): np.empty((0, 0), name) for name in ("float32", "float64")}
NO_Y = {dtype: values.reshape(0, 0, 0) for dtype, values in ABSENT.items()}
NO_ORDER = np.empty(0, np.int64)


class Compiled:
    """A kernel and what belongs to it.

    Attributes:
        shape: its shape.
        scan: the kernel.
        locate: what puts the addresses of arrays into its plans.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.scan: Callable[[int, int], None] = scan_kernel(shape.code)
        self.locate: Callable[..., None] = locator(shape.dtype)


@cache
def compiled(cell: str, plain: bool, dtype: np.dtype[Any]) -> Compiled:
    """Return the kernel for a cell."""
    return Compiled(Shape(cell, plain, dtype.name, *registers()))


def run(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Evaluate a recurrence in float32 or float64, and round each output once."""
    T, N, _ = recurrence.X.shape
    D, _, H, _ = recurrence.W.shape
    own = recurrence.dtype.numpy
    fresh = np.empty if recurrence.lengths is None else np.zeros
    Y = fresh((T, D, N, H), own) if recurrence.wants_Y else None
    last = tuple([np.empty((D, N, H), dtype) for _ in range(recurrence.cell.states)])
    gang = gang_size(recurrence)
    try:
        walk(recurrence, dtype, Y, last, gang)
    finally:
        if gang > 1:
            CREW.release()
    if dtype != own:
        last = tuple([round_to(state, recurrence.dtype) for state in last])
    return Result(Y, last)


def gang_size(recurrence: Recurrence) -> int:
    """Return with how many threads to compute; where there are several, the crew is reserved."""
    steps = recurrence.X.shape[0] * recurrence.X.shape[1]
    if steps * (recurrence.W.size + recurrence.R.size) <= WORTHWHILE:
        return 1
    wanted = threads()
    return wanted if wanted > 1 and CREW.reserve() else 1


def walk(
    recurrence: Recurrence,
    dtype: np.dtype[Any],
    Y: Array | None,
    last: tuple[Array, ...],
    gang: int,
) -> None:
    """Walk all directions, each with its share of the gang, a block of time after the other.

    There is one block only, unless tensors must be converted: then blocks bound the memory.
    """
    T, N, _ = recurrence.X.shape
    D, _, H, width = recurrence.W.shape
    is_native = dtype == recurrence.dtype.numpy
    steps = T if is_native else block_steps(T, N, max(H, width))
    members = max(1, gang // D)
    scans = [Scan(recurrence, d, dtype, last, members) for d in range(D)]
    for done in range(0, T or 1, steps or 1):
        for scan in scans:
            scan.prepare(done, steps, None if Y is None else Y[:, scan.d])
        if gang == 1:
            for scan in scans:
                scan.compiled.scan(scan.rooms.address, 0)
        else:
            CREW.run(
                [
                    partial(scan.compiled.scan, scan.rooms.address, member)
                    for scan in scans
                    for member in range(members)
                ],
                partial(dissolve, [scan.rooms.meeting for scan in scans]),
            )
        if Y is not None and not is_native:
            for scan in scans:
                Y[scan.block, scan.d] = round_to(scan.Y, recurrence.dtype)
    for scan in scans:
        scan.finish()


def dissolve(meetings: Sequence[Array]) -> None:
    """Let the members of gangs wait for nobody any more."""
    for meeting in meetings:
        meeting[0] = DISSOLVED


class Scan:
    """One direction of a recurrence: its kernel, its memory, its tensors as kernels take them."""

    def __init__(
        self,
        recurrence: Recurrence,
        d: int,
        dtype: np.dtype[Any],
        last: tuple[Array, ...],
        members: int,
    ) -> None:
        self.recurrence = r = recurrence
        self.d = d
        self.dtype = dtype
        self.members = members
        self.T, self.N, self.I = r.X.shape
        self.H = r.W.shape[2]
        self.codes = tuple([CODES[row.function] for row in r.activations[d]])
        simple = r.P is None and r.clip == math.inf and not r.input_forget
        is_plain = simple and self.codes == PLAIN[r.cell.name]
        cell = r.cell.name + " after" * r.linear_before_reset
        self.compiled = compiled(cell, is_plain, dtype)
        self.order, self.lengths, self.active = self._order()
        self.steps = min(self.T, self._block_rows() // (self.N or 1)) or 1
        size = Size(self.N, self.I, self.H, self.steps * self.N, r.lengths is not None)
        self.key = (self.compiled, size)
        self.rooms = STORE.take(self.key) or Rooms(self.compiled.shape, size)
        if not is_plain:
            self._set_numbers()
        self.constants = Constants.of(r)
        kept: tuple[Packed, list[Array]] | None = None
        if self.constants is not None:
            kept = self.constants.get((self.compiled, d))
        self.is_packed = kept is not None
        self.packed, weights = kept or self._unpacked()
        states = (*r.initial, None)[:2]
        self.tensors = [*weights, *[self._tensor(state) for state in states]]
        self.last = [state[d] for state in last]
        if len(last) == 1:
            self.last.append(ABSENT[dtype])

    def _tensor(self, values: Array | None) -> Array:
        """Return this direction's part as kernels take it."""
        if values is None:
            return ABSENT[self.dtype]
        return np.ascontiguousarray(values[self.d], self.dtype)

    def _unpacked(self) -> tuple[Packed, list[Array]]:
        """Return room for packed weights, and W, R, Wb, Rb and P."""
        r, rooms = self.recurrence, self.rooms
        if rooms.packed is None:
            rooms.packed = Packed(self.compiled.shape, self.I, self.H)
        return rooms.packed, [self._tensor(values) for values in (r.W, r.R, r.Wb, r.Rb, r.P)]

    def finish(self) -> None:
        """Keep what was packed of constants, with P, whose presence matters; give back the rooms.

        Kept weights belong to no rooms any more, and nobody writes there again.
        """
        if self.constants is not None and not self.is_packed:
            W, b = NO_Y[self.dtype], ABSENT[self.dtype]
            self.constants.keep(
                (self.compiled, self.d), (self.packed, [W, W, b, b, self.tensors[4]])
            )
            self.rooms.packed = None
        STORE.give(self.key, self.rooms)

    def _order(self) -> tuple[Array, Array, Array]:
        """Return the order, lengths and live rows of a ragged batch."""
        lengths = self.recurrence.lengths
        if lengths is None:
            return NO_ORDER, NO_ORDER, NO_ORDER
        batch = Batch.of(lengths, self.T, self.N)
        order = np.arange(self.N) if batch.order is None else batch.order
        return order, lengths[order], np.array(batch.active, np.int64)

    def _block_rows(self) -> int:
        """Return how many rows a block of time has, unless a single step has more."""
        weights: int = self.recurrence.W[0].size + self.recurrence.R[0].size
        return max(BLOCK_ROWS, weights * self.dtype.itemsize // WEIGHTS_PER_ROW)

    def _set_numbers(self) -> None:
        """Write alpha and beta of each activation and the bounds of clipping."""
        r, numbers = self.recurrence, self.rooms.numbers
        numbers[:6] = 0
        for k, row in enumerate(r.activations[self.d]):
            numbers[2 * k : 2 * k + 2] = row.alpha or 0, row.beta or 0
        numbers[6:] = r.clip, r.clip if r.clip_hidden else math.inf

    def prepare(self, done: int, steps: int, Y: Array | None) -> None:
        """Plan the next block, of some steps, after those that are done."""
        r, rooms, dtype = self.recurrence, self.rooms, self.dtype
        T = min(steps, self.T - done)
        reverse = r.directions[self.d] is Direction.REVERSE
        begin = self.T - done - T if reverse else done
        self.block = slice(begin, begin + T)
        self.X = np.ascontiguousarray(r.X[self.block], dtype)
        if Y is None:
            Y = NO_Y[dtype]
        elif Y.dtype != dtype:
            Y = np.zeros((T, self.N, self.H), dtype)
        self.Y = Y
        self.live = self.active[self.block]
        rooms.meeting[0] = 0
        self.compiled.locate(
            rooms.plan,
            *(self.X, *self.tensors, Y, *self.last, self.order, self.lengths, self.live),
        )
        NUMBERS.pack_into(
            rooms.plan,  # type: ignore[arg-type]
            NUMBERS_AT,
            *(*self.packed.places, self.is_packed),
            *(T, self.N, self.I, self.H, self.steps, Y.strides[0], Y.strides[1]),
            *(done, self.T, reverse, r.keep_initial, r.input_forget),
            *(*self.codes, 0, 0)[:3],
            self.members,
        )
