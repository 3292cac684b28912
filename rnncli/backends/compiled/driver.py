"""From a canonical recurrence to calls of its kernel."""

from __future__ import annotations

import math
from functools import cache, partial
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.compiled.crew import CREW
from rnncli.backends.compiled.equations import FUNCTIONS
from rnncli.backends.compiled.kernels import locator, scan_kernel
from rnncli.backends.compiled.plan import ARRAYS, ROOMS, Plan
from rnncli.backends.compiled.processor import registers
from rnncli.backends.compiled.rooms import Size, Store
from rnncli.backends.compiled.shapes import Shape
from rnncli.backends.scan import Batch, block_steps
from rnncli.backends.threads import threads
from rnncli.numerics import round_to
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.recurrence import Direction, Result

if TYPE_CHECKING:
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

# Rows of a block of time: enough to use a panel of weights often, few enough for its sums to stay
# in cache.
BLOCK_ROWS = 96
# Multiplications that one more thread must save to be worth waking: about half a millisecond.
WORTHWHILE = 5e7

STORE = Store()
CODES = {function: code for code, function in enumerate(FUNCTIONS)}
# What kernels of plain shapes compute with.
PLAIN = {
    cell: [CODES[ACTIVATIONS[name].function] for name in names]
    for cell, names in {
        "RNN": ("Tanh",),
        "GRU": ("Sigmoid", "Tanh"),
        "LSTM": ("Sigmoid", "Tanh", "Tanh"),
    }.items()
}
TAIL = Struct(f"{len(Plan._fields) - ARRAYS - ROOMS}q")
EMPTY = np.empty(0, np.int64)


def run(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Evaluate a recurrence in some precision, float32 or float64; round each output once."""
    T, N, _ = recurrence.X.shape
    D, _, H, _ = recurrence.W.shape
    full = np.empty if recurrence.lengths is None else np.zeros
    Y = full((T, D, N, H), recurrence.dtype.numpy) if recurrence.wants_Y else None
    last = tuple(np.empty((D, N, H), dtype) for _ in range(recurrence.cell.states))
    gang = gang_size(recurrence)
    members = max(1, gang // D)
    scans = [Scan(recurrence, d, dtype, Y, last, members) for d in range(D)]
    steps = scans[0].block_steps
    for done in range(0, max(T, 1), max(steps, 1)):
        for scan in scans:
            scan.take(done)
        if gang == 1:
            for scan in scans:
                scan.kernel(scan.rooms.address, 0)
        else:
            CREW.run([partial(s.kernel, s.rooms.address, k) for s in scans for k in range(members)])
        for scan in scans:
            scan.give(done)
    for scan in scans:
        STORE.give(scan.key, scan.rooms)
    if gang > 1:
        CREW.release()
    if dtype != recurrence.dtype.numpy:
        last = tuple(round_to(state, recurrence.dtype) for state in last)
    return Result(Y, last)


def gang_size(recurrence: Recurrence) -> int:
    """Return with how many threads to compute; more than one are reserved."""
    wanted = threads()
    if wanted == 1:
        return 1
    (T, N, I), (D, G, H, _) = recurrence.X.shape, recurrence.W.shape
    worthwhile = T * N * D * G * H * (I + H) > WORTHWHILE
    return wanted if worthwhile and CREW.reserve() else 1


@cache
def compiled_for(cell: str, plain: bool, dtype: str) -> tuple[Shape, Any, Any]:
    """Return the shape of a kernel, the kernel, and its locator."""
    shape = Shape(cell, plain, dtype, *registers())
    return shape, scan_kernel(shape.code), locator(dtype)


class Scan:
    """One direction of a recurrence."""

    def __init__(
        self,
        recurrence: Recurrence,
        d: int,
        dtype: np.dtype[Any],
        Y: Array | None,
        last: tuple[Array, ...],
        members: int,
    ) -> None:
        self.recurrence = recurrence
        self.d = d
        self.dtype = dtype
        self.T, self.N, self.I = recurrence.X.shape
        self.H = recurrence.W.shape[2]
        self.members = members
        self.is_native = recurrence.dtype.numpy == dtype
        self.Y = None if Y is None else Y[:, d]
        self.empty = np.empty((0, 0), dtype)
        self.last = [state[d] for state in last] + [self.empty]
        codes = [CODES[row.function] for row in recurrence.activations[d]]
        plain = (
            codes == PLAIN[recurrence.cell.name]
            and recurrence.P is None
            and recurrence.clip == math.inf
            and not recurrence.input_forget
        )
        cell = recurrence.cell.name + " after" * recurrence.linear_before_reset
        self.shape, self.kernel, self.locate = compiled_for(cell, plain, dtype.name)
        self.codes = [*codes, 0, 0][:3]
        self._order()
        steps = max(1, min(self.T, BLOCK_ROWS // max(1, self.N)))
        self.steps = steps
        self.block_steps = (
            self.T if self.is_native else block_steps(self.T, self.N, max(self.I, self.H))
        )
        self.key = (
            self.shape,
            Size(self.N, self.I, self.H, steps * self.N, recurrence.lengths is not None),
        )
        self.rooms = STORE.take(*self.key)
        if not plain:
            self._set_numbers()
        self.weights = [
            *(self._given(recurrence.W), self._given(recurrence.R)),
            *(self._given(recurrence.Wb), self._given(recurrence.Rb), self._given(recurrence.P)),
            *(self._given(state) for state in recurrence.initial),
        ]
        if len(recurrence.initial) == 1:
            self.weights.append(self.empty)

    def _given(self, values: Array | None) -> Array:
        return self.empty if values is None else np.ascontiguousarray(values[self.d], self.dtype)

    def _order(self) -> None:
        self.order = self.lengths = self.active = EMPTY
        lengths = self.recurrence.lengths
        if lengths is not None:
            batch = Batch.of(lengths, self.T, self.N)
            self.order = np.arange(self.N) if batch.order is None else batch.order
            self.lengths = lengths[self.order]
            self.active = np.array(batch.active, np.int64)

    def _set_numbers(self) -> None:
        rows = self.recurrence.activations[self.d]
        numbers = self.rooms.numbers
        numbers[:6] = 0
        for k, row in enumerate(rows):
            numbers[2 * k : 2 * k + 2] = row.alpha or 0, row.beta or 0
        clip = self.recurrence.clip
        numbers[6:] = clip, clip if self.recurrence.clip_hidden else math.inf

    def take(self, done: int) -> None:
        """Point the plan at the next block."""
        r, rooms = self.recurrence, self.rooms
        reverse = r.directions[self.d] is Direction.REVERSE
        T = min(self.block_steps, self.T - done)
        begin = self.T - done - T if reverse else done
        self.block = slice(begin, begin + T)
        if T == self.T and self.is_native:
            X, Y, active = r.X, self.Y, self.active
            X = np.ascontiguousarray(X)
        else:
            X = np.ascontiguousarray(r.X[self.block], self.dtype)
            Y = None if self.Y is None else np.zeros((T, self.N, self.H), self.dtype)
            active = self.active[self.block]
        if Y is None:
            Y = np.empty((0, 0, 0), self.dtype)
        self.Y_block = Y
        W, R, *rest = self.weights
        self.locate(
            rooms.plan, X, W, R, *rest, Y, self.last[0], self.last[1], self.order, self.lengths, active
        )
        self.X_block = X
        rooms.meeting[0] = 0
        TAIL.pack_into(
            rooms.plan,
            8 * (ARRAYS + ROOMS),
            *(T, self.N, self.I, self.H, self.steps, Y.strides[0], Y.strides[1]),
            *(done, self.T, reverse, r.keep_initial, r.input_forget, *self.codes, self.members),
        )

    def give(self, done: int) -> None:
        if not self.is_native and self.Y is not None:
            self.Y[self.block] = round_to(self.Y_block, self.recurrence.dtype)
