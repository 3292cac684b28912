"""The compiled backend, and its driver: from a recurrence to kernel calls and back to tensors.

The cells' equations are vector code, compiled for this processor by Numba, with every activation,
feature and reading. Equations and activation functions from elsewhere, which exist only in Python,
are refused.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rnncli.backends.backend import QUANTISED
from rnncli.backends.compiled import integers, linear
from rnncli.backends.compiled.equations import OPTIONS
from rnncli.backends.compiled.kernel_shapes import PHASES
from rnncli.backends.compiled.kernels import DISSOLVED
from rnncli.backends.compiled.routines import CODES, ROUTINES, PackedWeights, rows_of
from rnncli.backends.threads import POOL, threads
from rnncli.errors import Unsupported
from rnncli.limits import check_clock
from rnncli.numerics import round_to
from rnncli.recurrence.cells import CELLS, beyond
from rnncli.recurrence.lanes import LongestFirst, clear_unstarted
from rnncli.recurrence.recurrence import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rnncli.backends.compiled.routines import Routine, Workspace
    from rnncli.numerics import Array, DType
    from rnncli.recurrence.recurrence import Compute, Recurrence


# Cell that does not project inputs -> its options that are evaluated.
OTHERS = {**linear.OPTIONS, **integers.OPTIONS}
# The least number of multiplications worth waking threads for: about a millisecond.
WORTHWHILE = 1e8
# The least number of multiplications per member and step worth a barrier, which takes 0.1 to 0.5
# us, depending on the distance of the processors.
PART_WORTHWHILE = 1 << 14
# Tensors that need conversion are processed in blocks of time of about this many numbers and at
# least this many rows: enough for an efficient matrix product, few enough to bound memory.
BLOCK_NUMBERS, BLOCK_ROWS = 1 << 18, 256


def run(recurrence: Recurrence, compute: Compute) -> Result:
    """Evaluate a recurrence; round each output once.

    A tiny recurrence takes 1 us to compute, so the code avoids calls where it can.
    """
    if not recurrence.cell.projects:
        of_integers = recurrence.options.integers is not None
        return integers.run(recurrence) if of_integers else linear.run(recurrence, compute)
    call = Call(recurrence, compute)
    team = team_size(call.T, call.routine)
    try:
        call.walk(team)
    finally:
        if team > 1:
            POOL.release()
    return call.result()


def bind(recurrence: Recurrence, compute: Compute) -> BoundScan | None:
    """Return a fast path for recurrences like one, or None; see `backend.bound_call`.

    There is one if packed weights are cached, what needs conversion is one block, and one thread
    suffices.
    """
    constants = recurrence.constants
    if constants is None or not recurrence.X.size:
        return None
    routine = ROUTINES.of(recurrence, compute, is_kept=True)
    packed: PackedWeights | None = constants.get(routine.layout)
    T = len(recurrence.X)
    is_short = T * routine.multiplications <= WORTHWHILE
    is_one_block = routine.is_native or block_steps(recurrence) == T
    if packed is None or not (is_short and is_one_block):
        return None
    kind = BoundScan if recurrence.lengths is None else RaggedScan
    return kind(routine, packed, recurrence)


class BoundScan:
    """A prepared call for recurrences of the same weights and sizes; a tiny one takes 1 us."""

    def __init__(self, routine: Routine, packed: PackedWeights, recurrence: Recurrence) -> None:
        self._routine, self._T = routine, len(recurrence.X)
        self._scans = [(d, scan, packed.addresses[d]) for d, scan in enumerate(routine.scans)]
        self._states, self._dtype = routine.states, routine.dtype
        self._rounds_to = None if routine.is_native else recurrence.dtype
        self._shape = (self._T, *routine.states) if recurrence.wants_Y else None

    def __call__(
        self, X: Array, initial: Sequence[Array | None], lengths: Array | None
    ) -> tuple[Array | None, ...]:
        """Return Y and the last states."""
        del lengths
        workspace = self._routine.take()
        Y = self._routine.no_Y if self._shape is None else np.empty(self._shape, self._dtype)
        made = self._walk(workspace, X, initial, Y)
        self._routine.give(workspace)
        return made if self._rounds_to is None else self._rounded(made, self._rounds_to)

    @staticmethod
    def _rounded(tensors: tuple[Array, ...], dtype: DType) -> tuple[Array, ...]:
        return tuple([round_to(values, dtype) for values in tensors])

    def _walk(
        self, workspace: Workspace, X: Array, initial: Sequence[Array | None], Y: Array
    ) -> tuple[Array, ...]:
        tensor, states, dtype = self._routine.tensor, self._states, self._dtype
        X, h0, Y_h = tensor(X), tensor(initial[0]), np.empty(states, dtype)
        c0 = Y_c = self._routine.absent
        if len(initial) == 2:
            c0, Y_c = tensor(initial[1]), np.empty(states, dtype)
        plans, T = workspace.addresses, self._T
        for d, scan, packed in self._scans:
            scan(plans[d], packed, 0, T, 1, 0, X, h0, c0, Y, Y_h, Y_c)
        return (Y, Y_h, Y_c) if len(initial) == 2 else (Y, Y_h)


class RaggedScan(BoundScan):
    """A prepared call for ragged batches, with workspaces that hold their order and lengths."""

    def __init__(self, routine: Routine, packed: PackedWeights, recurrence: Recurrence) -> None:
        super().__init__(routine, packed, recurrence)
        self._free: list[tuple[Workspace, Array, Array, Array]] = []
        self._before = -np.arange(self._T)
        self._keeps_initial = recurrence.keep_initial

    def __call__(
        self, X: Array, initial: Sequence[Array | None], lengths: Array | None
    ) -> tuple[Array | None, ...]:
        """Return Y and the last states."""
        assert lengths is not None
        try:
            own = self._free.pop()
        except IndexError:
            new, N = self._routine.take(), len(lengths)
            order, falling, active = (np.empty(count, np.int64) for count in (N, N, self._T))
            for name, values in (("order", order), ("lengths", falling), ("active", active)):
                new.plans[name] = values.ctypes.data
            own = new, order, falling, active
        workspace, order, falling, active = own
        negative = np.negative(lengths, dtype=np.int64)
        order[...] = negative.argsort(kind="stable")
        negative = negative[order]
        np.negative(negative, out=falling)
        active[...] = negative.searchsorted(self._before)
        Y = self._routine.no_Y if self._shape is None else np.zeros(self._shape, self._dtype)
        made = self._walk(workspace, X, initial, Y)
        if not (falling[-1] or self._keeps_initial):
            for state in made[1:]:
                state[:, lengths == 0] = 0
        self._free.append(own)
        return made if self._rounds_to is None else self._rounded(made, self._rounds_to)


def team_size(T: int, routine: Routine) -> int:
    """Return the number of threads to use; if it is more than 1, the pool is reserved."""
    if T * routine.multiplications <= WORTHWHILE:
        return 1
    members = max(1, routine.recurrent // PART_WORTHWHILE)
    size = min(threads(), routine.size.D * members)
    return size if size > 1 and POOL.reserve() else 1


def block_steps(recurrence: Recurrence) -> int:
    """Return the number of time steps to convert together."""
    T, N, I = recurrence.X.shape  # noqa: E741
    numbers = N * max(recurrence.W.shape[2], I)
    steps: int = max(BLOCK_NUMBERS // max(1, numbers), BLOCK_ROWS // max(1, N), 1)
    most: int = max(1, T)
    return min(steps, most)


class Call:
    """One evaluation: its tensors in the kernels' format and a workspace of its own."""

    def __init__(self, recurrence: Recurrence, compute: Compute) -> None:
        self.recurrence = r = recurrence
        self.constants = constants = r.constants
        self.routine = routine = ROUTINES.of(r, compute, is_kept=constants is not None)
        self.workspace = routine.take()
        self.kept: PackedWeights | None = (
            None if constants is None else constants.get(routine.layout)
        )
        self.packed = (
            self.kept or self.workspace.packed or PackedWeights(routine.shape, routine.size)
        )
        if self.kept is None:  # the kernels pack the weights, whose addresses the plans have
            self.weights = [routine.tensor(values) for values in (r.W, r.R, r.Wb, r.Rb, r.P)]
            routine.locate(self.workspace.addresses[0], *self.weights)
        shape, dtype = routine.states, routine.dtype
        self.T = T = len(r.X)
        fresh = np.empty if r.lengths is None else np.zeros
        self.Y = fresh((T, *shape), r.dtype.numpy) if r.wants_Y else None
        self.h0, self.Y_h = self.routine.tensor(r.initial[0]), np.empty(shape, dtype)
        self.c0 = self.Y_c = routine.absent
        if len(r.initial) == 2:
            self.c0, self.Y_c = self.routine.tensor(r.initial[1]), np.empty(shape, dtype)
        if r.lengths is not None:
            # Write the addresses of a ragged batch's order, lengths and live rows into the
            # plans.
            batch = LongestFirst.of(self.recurrence)
            order = np.arange(len(r.lengths)) if batch.order is None else batch.order
            self.active = np.array(batch.active, np.int64)
            self.sorted = order, r.lengths[order], self.active
            for name, values in zip(("order", "lengths", "active"), self.sorted, strict=True):
                self.workspace.plans[name] = values.ctypes.data

    def walk(self, team: int) -> None:
        """Run all steps, in one kernel call unless tensors must be converted."""
        if not self.routine.is_native:
            self._walk_in_blocks(team)
            return
        X = self.routine.tensor(self.recurrence.X)
        self._scan([X] * self.routine.size.D, self.Y, 0, team)

    def _walk_in_blocks(self, team: int) -> None:
        """Run one block of time after another, which bounds the memory of converted tensors."""
        r, T = self.recurrence, self.T
        steps = block_steps(r)
        for done in range(0, T or 1, steps):
            check_clock()
            count = min(steps, T - done)
            starts = [T - done - count if back else done for back in self.routine.is_reverse]
            blocks = [slice(start, start + count) for start in starts]
            if r.lengths is not None:
                first, number = self.active.ctypes.data, self.active.itemsize
                self.workspace.plans["active"] = [first + start * number for start in starts]
            inputs = [self.routine.tensor(r.X[block]) for block in blocks]
            Y = None
            if self.Y is not None:
                Y = np.zeros((count, *self.Y_h.shape), self.routine.dtype)
            self._scan(inputs, Y, done, team)
            if self.Y is not None and Y is not None:
                for d, block in enumerate(blocks):
                    self.Y[block, d] = round_to(Y[:, d], r.dtype)

    def _scan(self, inputs: Sequence[Array], Y: Array | None, done: int, team: int) -> None:
        """Run the steps of each direction, each with its share of the team."""
        routine, plans, packed = self.routine, self.workspace.addresses, self.packed.addresses
        T, h0, c0, Y_h, Y_c = self.T, self.h0, self.c0, self.Y_h, self.Y_c
        out = routine.no_Y if Y is None else Y
        if team == 1:
            for d, scan in enumerate(routine.scans):
                scan(plans[d], packed[d], done, T, 1, 0, inputs[d], h0, c0, out, Y_h, Y_c)
            return

        # Each member of the team has a plan of its own.
        members, meetings = max(1, team // len(routine.scans)), self.workspace.meetings
        own_plans, tasks = np.repeat(self.workspace.plans, members), []
        meetings.fill(0)
        for k, plan in enumerate(rows_of(own_plans)):
            d, member = divmod(k, members)
            numbers = (plan, packed[d], done, T, members, member)
            tasks.append(partial(routine.scans[d], *numbers, inputs[d], h0, c0, out, Y_h, Y_c))
        POOL.run(tasks, partial(meetings.fill, DISSOLVED))

    def result(self) -> Result:
        """Round the last states, cache the packed constants and release the workspace.

        Cached weights belong to no workspace and are never written again.
        """
        if self.constants is not None and self.kept is None:
            self.packed.seal()
            self.constants.keep(self.routine.layout, self.packed)
        self.routine.give(self.workspace)
        last: tuple[Array, ...] = (self.Y_h, self.Y_c)[: len(self.recurrence.initial)]
        if not self.routine.is_native:
            last = tuple([round_to(state, self.recurrence.dtype) for state in last])
        clear_unstarted(self.recurrence, last)
        return Result(self.Y, last)


class NumbaBackend:
    """A backend with kernels compiled on first use and cached on disk."""

    name = "numba"
    summary = "fast: kernels compiled for this processor; every operator, dtype and reading"

    def __init__(self) -> None:
        from numba.core import config

        if config.DISABLE_JIT:
            raise Unsupported(
                "backend 'numba' compiles its kernels, which the environment variable"
                " NUMBA_DISABLE_JIT forbids"
            )

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why a recurrence has no kernel, or None."""
        del compute
        name = recurrence.cell.name
        if name not in PHASES and name not in OTHERS:
            return f"has no kernel for the {name}"
        if recurrence.quantiser is not None:
            return QUANTISED
        if CELLS.get(name) != recurrence.cell:
            return f"has a kernel for the specification's {name}, but not for modified equations"
        if others := beyond(recurrence.options, OTHERS.get(name, OPTIONS)):
            return f"has no kernel for the {name} with {others[0]}"
        pads = recurrence.options.attention is not None and recurrence.lengths is not None
        if pads and not all(
            np.isfinite(v).all() for v in (recurrence.X, *recurrence.initial[1:]) if v is not None
        ):
            return "lets what is not finite spread over the steps behind a packed sequence"
        foreign = [
            row.name for rows in recurrence.activations for row in rows if row.function not in CODES
        ]
        return f"has no compiled form of activation {foreign[0]}" if foreign else None

    # Compiled code propagates NaN and infinity as IEEE 754 specifies.
    run, bind = staticmethod(run), staticmethod(bind)
