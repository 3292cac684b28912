"""Kernels: compiled code that evaluates one direction of a recurrence.

    pack the weights and spread the initial states
    for each block of time:
        the sums of all its gates = biases + X*(W^T)
        for each step, for each phase, for each panel of units:
            sums += H*(R^T)
            the cell's equations, a vector of units at a time
    write the last states

Several threads may work as a team whose members own different panels, and meet at a spin barrier;
the results do not depend on their number. `code` is the code of the kernel's shape, a literal, so
that everything derived from it is a constant to the compiler. Addresses are in bytes.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from numba import types

from rnncli.backends.compiled.compiling import compiled, inlined, instruction, kernel, sources
from rnncli.backends.compiled.equations import Unit, advance
from rnncli.backends.compiled.kernel_plan import (
    attach,
    finish,
    gather,
    live_rows,
    pack_panel,
    plan_at,
    sequence_at,
    start,
    tensors,
)
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.backends.compiled.tiles import TileProduct, multiply
from rnncli.backends.compiled.vector_lanes import ADDRESS, Builder, IRValue, pointer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.backends.compiled.kernel_shapes import PanelLayout, Phase


# Polls of the counter, a few ns each, before a waiting thread yields its processor.
PATIENCE = 1000
# A counter value that stays negative after any number of arrivals, so that no thread waits.
DISSOLVED = -(1 << 62)
GIVE_WAY = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


@instruction
def arrive(_: Any, counter: Any) -> tuple[Any, Any]:
    """Atomically add 1 to the int64 at an address and return its old value."""
    del counter

    def emit(_: Any, builder: Builder, __: Any, args: Any) -> IRValue:
        place = pointer(builder, args[0], ADDRESS)
        return builder.atomic_rmw("add", place, ADDRESS(1), "acq_rel")

    return types.intp(types.intp), emit


@instruction
def arrived(_: Any, counter: Any) -> tuple[Any, Any]:
    """Return the int64 at an address, as last written by any thread."""
    del counter

    def emit(_: Any, builder: Builder, __: Any, args: Any) -> IRValue:
        return builder.load_atomic(pointer(builder, args[0], ADDRESS), "acquire", 8)

    return types.intp(types.intp), emit


@compiled
def wait(counter: int, members: int) -> None:
    """Wait until every member of the team has called this as often as the caller.

    If the team is DISSOLVED, return at once.

    Args:
        counter: address of an int64 that all members share, 0 at the start.
        members: the number of members.
    """
    if members == 1:
        return
    everyone = (arrive(counter) // members + 1) * members
    looks = 0
    while 0 <= arrived(counter) < everyone:
        looks += 1
        if looks > PATIENCE:
            GIVE_WAY()


# Terms summed before the partial sum is added to the total: errors of long sums stay small, and the
# slice of a panel that several tiles use stays in the L1 cache.
RUN = 128


@compiled
def panels_of(phases: tuple[Phase, ...], k: int, lanes: int, plan: Any, member: int) -> Any:
    """Return a phase's first panel, and the range of its panels that a member owns."""
    first = count = 0
    for phase in range(k + 1):
        first += count
        width = phases[phase].units * lanes
        count = (plan.H + width - 1) // width
    begin, end = member * count // plan.members, (member + 1) * count // plan.members
    return first, first + begin, first + end


@compiled
def whole_product(code: str, layout: PanelLayout, product: TileProduct) -> None:
    """Compute a TileProduct of any number of rows and terms."""
    rows, terms, A, A_stride, panel, first, first_stride, out, out_stride = product
    done = 0
    while True:
        run = min(RUN, terms - done)
        row = 0
        while row < rows:
            tiles = (rows - row + layout.tallest - 1) // layout.tallest
            height = (rows - row + tiles - 1) // tiles
            left, right = A + row * A_stride + done * layout.number, panel + done * layout.term
            source, target = first + row * first_stride, out + row * out_stride
            sums = (source, first_stride, target, out_stride)
            multiply(code, TileProduct(height, run, left, A_stride, right, *sums))
            row += height
        first, first_stride = out, out_stride
        done += run
        if done >= terms:
            break


@inlined
def project(code: str, layout: PanelLayout, plan: Any, X: int, rows: int, panel: int) -> None:
    """Set a panel's sums of a block to biases + X*(W^T)."""
    bias = plan.bias + panel * layout.row
    sums = plan.sums + panel * plan.steps * plan.N * layout.row
    if layout.term < layout.row:  # W has no last column: its sums are the bias
        nothing = TileProduct(rows, 0, X, 0, 0, bias, 0, sums, layout.row)
        last = layout.row - layout.term
        whole_product(code, layout, shifted(nothing, last))
    weights = plan.packed_W + panel * plan.I * layout.term
    line = plan.I * layout.number
    product = TileProduct(rows, plan.I, X, line, weights, bias, 0, sums, layout.row)
    whole_product(code, layout, product)


@inlined
def recur(
    code: str, layout: PanelLayout, plan: Any, state: int, n: int, panel: int, sums: int
) -> None:
    """Add state*(R^T) to the sums of one panel and step."""
    weights = plan.packed_R + panel * plan.H * layout.term
    line, row = plan.units * layout.number, layout.row
    # R has no first column if W has no last one.
    product = TileProduct(n, plan.H, state, line, weights, sums, row, sums, row)
    whole_product(code, layout, shifted(product, row - layout.term))


@compiled
def shifted(product: TileProduct, distance: int) -> TileProduct:
    """Return a product whose sums are read and written some bytes further."""
    rows, terms, A, A_stride, panel, first, first_stride, out, out_stride = product
    sums = (first + distance, first_stride, out + distance, out_stride)
    return TileProduct(rows, terms, A, A_stride, panel, *sums)


@inlined
def update(
    code: str,
    layout: PanelLayout,
    units: int,
    k: int,
    plan: Any,
    unit: int,
    sums: int,
    t: int,
    now: int,
) -> None:
    """Apply the k-th phase's equations to the live rows of a panel, given its first unit.

    Rows are processed in pairs, so that the instructions of one fill the latencies of the other.
    """
    n = live_rows(plan, t)
    for row in range(0, n, 2):
        for v in range(units):
            first, column = unit + v * layout.lanes, sums + v * layout.vector
            if first >= plan.H:
                break
            one = unit_at(layout, units, k, plan, first, column, t, now, row)
            if row + 1 < n:
                other = unit_at(layout, units, k, plan, first, column, t, now, row + 1)
                advance(code, (one, other))
            else:
                advance(code, (one,))


@compiled
def unit_at(
    layout: PanelLayout,
    units: int,
    k: int,
    plan: Any,
    first: int,
    sums: int,
    t: int,
    now: int,
    row: int,
) -> Unit:
    """Return the Unit of a row and a vector of units, given the first unit."""
    number, line = layout.number, plan.units * layout.number
    Y = plan.Y + t * plan.Y_t + sequence_at(plan, row) * plan.Y_n
    room = (plan.H - first) if plan.Y else 0
    return Unit(
        *(k, sums + row * layout.row, units * layout.vector),
        *(plan.states + row * line + first * number, plan.N * line, now),
        *(plan.packed_P + first * number, line, Y + first * number, room),
        *(plan.numbers, plan.f, plan.g, plan.h, plan.P, plan.input_forget),
    )


@inlined
def pack(code: str, layout: PanelLayout, phases: tuple[Phase, ...], plan: Any, member: int) -> None:
    """Pack a member's panels, unless they are packed, and initialise the states."""
    if not plan.packed:
        for k in range(len(phases)):
            first, begin, end = panels_of(phases, k, layout.lanes, plan, member)
            for panel in range(begin, end):
                unit = (panel - first) * phases[k].units * layout.lanes
                pack_panel(code, layout, phases[k], plan, unit, panel)
    if member == 0:
        start(code, layout.number, plan)
    wait(plan.meeting, plan.members)


@inlined
def open_block(
    code: str,
    layout: PanelLayout,
    phases: tuple[Phase, ...],
    plan: Any,
    begin: int,
    count: int,
    member: int,
) -> int:
    """Project the inputs of some steps onto a member's panels; return the number of rows."""
    X, rows = plan.X + begin * plan.N * plan.I * layout.number, count * plan.N
    if plan.active:
        X, rows = plan.gathered, 0
        for t in range(begin, begin + count):
            rows += live_rows(plan, t)
        if member == 0:
            gather(code, plan, begin, count)
        wait(plan.meeting, plan.members)
    for k in range(len(phases)):
        _, own, end = panels_of(phases, k, layout.lanes, plan, member)
        for panel in range(own, end):
            project(code, layout, plan, X, rows, panel)
    return rows  # type: ignore[no-any-return]


@inlined
def step(
    code: str,
    layout: PanelLayout,
    phases: tuple[Phase, ...],
    plan: Any,
    t: int,
    passed: int,
    now: int,
    member: int,
) -> None:
    """Run one step, whose sums follow those of the given rows of the block.

    Panels alternate in order: those that one step used last are in the cache when the next begins.
    """
    n = live_rows(plan, t)
    for k in range(len(phases)):
        first, own, end = panels_of(phases, k, layout.lanes, plan, member)
        state = plan.states + (now if k == 0 else 4) * plan.N * plan.units * layout.number
        for walked in range(own, end):
            panel = own + end - 1 - walked if t % 2 else walked
            sums = plan.sums + (panel * plan.steps * plan.N + passed) * layout.row
            recur(code, layout, plan, state, n, panel, sums)
            unit = (panel - first) * phases[k].units * layout.lanes
            update(code, layout, phases[k].units, k, plan, unit, sums, t, now)
        wait(plan.meeting, plan.members)


@cache
def scan_kernel(code: str) -> Callable[..., None]:
    """Compile or load the kernel of the shape with this code.

    It takes the addresses of a KernelPlan (one per member) and of a record of packed weights;
    `done`, `total` and `members` of the plan; the index of the member; and the tensors of `attach`.
    """
    shape = Shape.of(code)
    layout, phases, stamp = shape.layout, shape.phases, sources()

    @kernel(f"scan {code}", *[types.int64] * 6, *tensors(shape.dtype, 3, 3, 3, 4, 3, 3))
    def scan(
        address: int,
        packed: int,
        done: int,
        total: int,
        members: int,
        member: int,
        X: Any,
        h0: Any,
        c0: Any,
        Y: Any,
        Y_h: Any,
        Y_c: Any,
    ) -> None:
        stamp  # noqa: B018 -- part of the key of cached code
        plan = plan_at(address)
        plan.done, plan.total, plan.members = done, total, members
        attach(plan, packed, X, h0, c0, Y, Y_h, Y_c)
        # Here and not in a function, which Numba would copy with all that is inlined in it.
        if plan.done == 0:
            pack(code, layout, phases, plan, member)
        for walked in range(0, plan.T, plan.steps):
            count = min(plan.steps, plan.T - walked)
            begin = plan.T - walked - count if plan.reverse else walked
            rows = open_block(code, layout, phases, plan, begin, count, member)
            passed = rows if plan.reverse else 0
            for k in range(count):
                t = begin + (count - 1 - k if plan.reverse else k)
                n = live_rows(plan, t)
                passed -= n if plan.reverse else 0
                step(code, layout, phases, plan, t, passed, (plan.done + walked + k) % 2, member)
                passed += 0 if plan.reverse else n
        if plan.done + plan.T == plan.total and member == 0:
            finish(code, plan)

    return scan
