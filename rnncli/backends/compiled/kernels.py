"""One direction of a recurrence, from its tensors to its outputs, as compiled code.

    pack the weights and spread the initial states
    for each block of time:
        the sums of all its gates = biases + X*(W^T)
        for each step, for each phase, for each panel of units:
            sums += H*(R^T)
            the cell's equations, a vector of units at a time
    hand out the last states

Several threads may walk together, a gang whose members own panels each: what becomes of a unit does
not depend on how many there are. `code` is that of the kernel's shape, a literal: whatever follows
from it is a constant to the compiler. Addresses and strides are in bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from numba import literal_unroll, njit, types

from rnncli.backends.compiled.compiling import compiled, plan_at, pointer, sources
from rnncli.backends.compiled.equations import Unit, advance
from rnncli.backends.compiled.gang import wait
from rnncli.backends.compiled.shapes import COLUMNS, NONE, Phase, Shape
from rnncli.backends.compiled.tiles import Product, Square, multiply, transpose

if TYPE_CHECKING:
    from collections.abc import Callable

# Terms summed in one run before the sum is added to what is there: half the error of long sums.
RUN = 256


@compiled
def pack_column(
    code: str, lanes: int, number: int, H: int, K: int, weights: int, unit: int, panel: int, stride: int
) -> None:
    """Pack a gate's weights [H, K] of a vector of units into a column of a panel; zero past H.

    Args:
        code: of the kernel's shape.
        lanes: of a vector.
        number: bytes of one.
        H: units.
        K: weights of a unit.
        weights: of the gate.
        unit: the first.
        panel: where the column starts.
        stride: from term to term.
    """
    squares = K // lanes if unit + lanes <= H else 0
    for k in range(squares):
        source = weights + (unit * K + k * lanes) * number
        transpose(code, Square(source, K * number, panel + k * lanes * stride, stride))
    given = pointer(code, weights)
    for k in range(squares * lanes, K):
        target = pointer(code, panel + k * stride)
        for lane in range(lanes):
            target[lane] = given[(unit + lane) * K + k] if unit + lane < H else 0


@compiled
def add_bias(code: str, gate: int, plan: Any, bias: int, unit: int, count: int, target: int) -> None:
    """Add a gate's bias of some units, where it has one."""
    if gate == NONE or not bias:
        return
    given, sums = pointer(code, bias), pointer(code, target)
    for k in range(count):
        sums[k] += given[gate * plan.H + unit + k]


@compiled
def pack_panel(code: str, shape: Any, phase: Phase, plan: Any, unit: int, panel: int) -> None:
    """Pack weights and biases of the units of a panel, the first of which is given."""
    lanes, number, width = shape
    vector, H, I = lanes * number, plan.H, plan.I
    stride = width * vector
    W_column, R_column = plan.packed_W + panel * I * stride, plan.packed_R + panel * H * stride
    for column in range(COLUMNS):
        group, first = column // phase.units, unit + column % phase.units * lanes
        W_gate, R_gate = phase.W[group], phase.R[group]
        bias = plan.bias + (panel * COLUMNS + column) * vector
        sums = pointer(code, bias)
        for lane in range(lanes):
            sums[lane] = 0
        add_bias(code, W_gate, plan, plan.Wb, first, min(lanes, H - first), bias)
        add_bias(code, R_gate, plan, plan.Rb, first, min(lanes, H - first), bias)
        if W_gate != NONE:
            weights = plan.W + W_gate * H * I * number
            pack_column(code, lanes, number, H, I, weights, first, W_column, stride)
            W_column += vector
        if R_gate != NONE:
            weights = plan.R + R_gate * H * H * number
            pack_column(code, lanes, number, H, H, weights, first, R_column, stride)
            R_column += vector


@compiled
def source_row(plan: Any, n: int) -> int:
    """Return the sequence that is the n-th in processing order."""
    return pointer("int64", plan.order)[n] if plan.order else n  # type: ignore[no-any-return]


@compiled
def spread(code: str, plan: Any, values: int, target: int) -> None:
    """Copy an initial state [N, H] into [N, units] in processing order; zero where absent."""
    given, state = pointer(code, values), pointer(code, target)
    for n in range(plan.N):
        row = source_row(plan, n) * plan.H
        for unit in range(plan.units):
            inside = values != 0 and unit < plan.H
            state[n * plan.units + unit] = given[row + unit] if inside else 0


@compiled
def start(code: str, number: int, plan: Any) -> None:
    """Set the states and the peephole weights."""
    state = plan.N * plan.units * number
    spread(code, plan, plan.h0, plan.states)
    spread(code, plan, plan.h0, plan.states + state)
    spread(code, plan, plan.c0, plan.states + 2 * state)
    given, packed = pointer(code, plan.P), pointer(code, plan.packed_P)
    for k in range(3):
        for unit in range(plan.units):
            inside = plan.P != 0 and unit < plan.H
            packed[k * plan.units + unit] = given[k * plan.H + unit] if inside else 0


@compiled
def live_rows(plan: Any, t: int) -> int:
    """Return how many sequences are live at a step."""
    return pointer("int64", plan.active)[t] if plan.active else plan.N  # type: ignore[no-any-return]


@compiled
def gather(code: str, plan: Any, begin: int, count: int) -> None:
    """Copy the live inputs of some steps one after the other."""
    given, target = pointer(code, plan.X), pointer(code, plan.gathered)
    rows = 0
    for t in range(begin, begin + count):
        n = live_rows(plan, t)
        for k in range(n):
            source = (t * plan.N + source_row(plan, k)) * plan.I
            for i in range(plan.I):
                target[(rows + k) * plan.I + i] = given[source + i]
        rows += n


@compiled
def whole_product(code: str, tallest: int, number: int, stride: int, product: Product) -> None:
    """Compute a Product of any number of rows and terms.

    Args:
        code: of the kernel's shape.
        tallest: rows of a tile.
        number: bytes of one.
        stride: from term to term of the panel.
        product: what to compute.
    """
    rows, terms, A, A_stride, panel, first, first_stride, out, out_stride = product
    done = 0
    while True:
        run = min(RUN, terms - done)
        row = 0
        while row < rows:
            tiles = (rows - row + tallest - 1) // tallest
            height = (rows - row + tiles - 1) // tiles
            tile = Product(
                *(height, run),
                *(A + row * A_stride + done * number, A_stride, panel + done * stride),
                *(first + row * first_stride, first_stride, out + row * out_stride, out_stride),
            )
            multiply(code, tile)
            row += height
        first, first_stride = out, out_stride
        done += run
        if done >= terms:
            break


@compiled
def project(code: str, shape: Any, tallest: int, plan: Any, X: int, rows: int, panel: int) -> None:
    """Set a panel's sums of a block to biases + X*(W^T)."""
    lanes, number, width = shape
    stride, row = width * lanes * number, COLUMNS * lanes * number
    bias, sums = plan.bias + panel * row, plan.sums + panel * plan.steps * plan.N * row
    weights = plan.packed_W + panel * plan.I * stride
    product = Product(rows, plan.I, X, plan.I * number, weights, bias, 0, sums, row)
    whole_product(code, tallest, number, stride, product)
    given = pointer(code, bias)
    for n in range(rows if stride < row else 0):  # W has nothing for the last column: Rbh alone
        target = pointer(code, sums + n * row)
        for lane in range(width * lanes, COLUMNS * lanes):
            target[lane] = given[lane]


@compiled
def recur(
    code: str, shape: Any, tallest: int, plan: Any, state: int, n: int, panel: int, sums: int
) -> None:
    """Add state*(R^T) to a panel's sums of one step."""
    lanes, number, width = shape
    stride, row = width * lanes * number, COLUMNS * lanes * number
    out = sums + row - stride  # R has nothing for the first column where W has nothing for the last
    weights = plan.packed_R + panel * plan.H * stride
    product = Product(n, plan.H, state, plan.units * number, weights, out, row, out, row)
    whole_product(code, tallest, number, stride, product)


@compiled
def update(
    code: str, shape: Any, units: int, phase: int, plan: Any, unit: int, sums: int, n: int, now: int, t: int
) -> None:
    """Apply a phase's equations to the live rows of a panel whose first unit is given."""
    lanes, number, _ = shape
    vector, line = lanes * number, plan.units * number
    for row in range(n):
        Y = plan.Y + t * plan.Y_t + source_row(plan, row) * plan.Y_n
        for k in range(units):
            first = unit + k * lanes
            if first >= plan.H:
                break
            room = (plan.H - first) if plan.Y else 0
            place = Unit(
                *(phase, sums + (row * COLUMNS + k) * vector, units * vector),
                *(plan.states + row * line + first * number, plan.N * line, now),
                *(plan.packed_P + first * number, line),
                *(Y + first * number, room),
                *(plan.numbers, plan.f, plan.g, plan.h, plan.P, plan.input_forget),
            )
            advance(code, place)


@compiled
def finish(code: str, plan: Any) -> None:
    """Hand out the last states, in the caller's order.

    The two states of H take turns at every step that is walked: a row's last one is where its last
    step has left it, which in reverse is the last step of all.
    """
    states, Y_h, Y_c = pointer(code, plan.states), pointer(code, plan.Y_h), pointer(code, plan.Y_c)
    state = plan.N * plan.units
    for n in range(plan.N):
        length = pointer("int64", plan.lengths)[n] if plan.lengths else plan.total
        kept = length > 0 or plan.keep_initial
        turns = plan.total if plan.reverse and length else length
        target, row = source_row(plan, n) * plan.H, n * plan.units
        for unit in range(plan.H):
            Y_h[target + unit] = states[turns % 2 * state + row + unit] if kept else 0
            if plan.Y_c:
                Y_c[target + unit] = states[2 * state + row + unit] if kept else 0


@compiled
def panels_of(phases: tuple[Phase, ...], k: int, lanes: int, plan: Any, member: int) -> Any:
    """Return a phase's first panel, and from which to which of its panels a member owns."""
    first = count = 0
    for phase in range(k + 1):
        first += count
        width = phases[phase].units * lanes
        count = (plan.H + width - 1) // width
    begin, end = member * count // plan.members, (member + 1) * count // plan.members
    return first, first + begin, first + end


@cache
def locator(dtype: str) -> Callable[..., None]:
    """Return what writes the addresses of a call's arrays into the first fields of a Plan.

    It takes the Plan as int64s and then the arrays: in NumPy alone an address costs a microsecond.
    """
    real = getattr(types, dtype)

    def tensors(count: int, dimensions: int, kind: Any = real) -> list[Any]:
        return [types.Array(kind, dimensions, "C", readonly=True)] * count

    @njit(
        types.void(
            types.Array(types.int64, 1, "C"),
            *(*tensors(3, 3), *tensors(5, 2)),
            *(types.Array(real, 3, "A"), *tensors(2, 2), *tensors(3, 1, types.int64)),
        ),
        cache=True,
    )  # type: ignore[untyped-decorator]
    def locate(plan, X, W, R, Wb, Rb, P, h0, c0, Y, Y_h, Y_c, order, lengths, active):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        arrays = (X, W, R, Wb, Rb, P, h0, c0, Y, Y_h, Y_c, order, lengths, active)
        k = 0
        for array in literal_unroll(arrays):
            plan[k] = types.int64(array.ctypes.data) if array.size else 0
            k += 1  # noqa: SIM113 -- Numba unrolls tuples of different types, without enumerate

    return locate  # type: ignore[no-any-return]


@cache
def scan_kernel(code: str) -> Callable[..., None]:
    """Compile, or load from where Numba keeps it, the kernel of the shape with this code.

    It takes the address of a Plan, and which member of the gang this is.
    """
    known = Shape.of(code)
    phases, tallest, lanes, number = known.phases, known.tallest, known.lanes, known.size
    shape = (lanes, number, known.width)
    stamp = sources()

    @njit(types.void(types.int64, types.int64), nogil=True, cache=True, error_model="numpy")  # type: ignore[untyped-decorator]
    def scan(address: int, member: int) -> None:
        stamp  # noqa: B018 -- a part of the key that compiled code is kept under
        plan = plan_at(address)
        if plan.done == 0:
            for k in range(len(phases)):
                first, begin, end = panels_of(phases, k, lanes, plan, member)
                for panel in range(begin, end):
                    unit = (panel - first) * phases[k].units * lanes
                    pack_panel(code, shape, phases[k], plan, unit, panel)
            if member == 0:
                start(code, number, plan)
            wait(plan.meeting, plan.members)
        for walked in range(0, plan.T, plan.steps):
            count = min(plan.steps, plan.T - walked)
            begin = plan.T - walked - count if plan.reverse else walked
            rows, X = count * plan.N, plan.X + begin * plan.N * plan.I * number
            if plan.active:
                rows, X = 0, plan.gathered
                for t in range(begin, begin + count):
                    rows += live_rows(plan, t)
                if member == 0:
                    gather(code, plan, begin, count)
                wait(plan.meeting, plan.members)
            for k in range(len(phases)):
                _, own, end = panels_of(phases, k, lanes, plan, member)
                for panel in range(own, end):
                    project(code, shape, tallest, plan, X, rows, panel)
            passed = rows if plan.reverse else 0
            for step in range(count):
                t = begin + (count - 1 - step if plan.reverse else step)
                n = live_rows(plan, t)
                if plan.reverse:
                    passed -= n
                now = (plan.done + walked + step) % 2
                for k in range(len(phases)):
                    first, own, end = panels_of(phases, k, lanes, plan, member)
                    state = plan.states + (now if k == 0 else 4) * plan.N * plan.units * number
                    for panel in range(own, end):
                        sums = plan.sums + (panel * plan.steps * plan.N + passed) * COLUMNS * lanes * number
                        recur(code, shape, tallest, plan, state, n, panel, sums)
                        unit = (panel - first) * phases[k].units * lanes
                        update(code, shape, phases[k].units, k, plan, unit, sums, n, now, t)
                    wait(plan.meeting, plan.members)
                if not plan.reverse:
                    passed += n
        if plan.done + plan.T == plan.total and member == 0:
            finish(code, plan)

    return scan  # type: ignore[no-any-return]
