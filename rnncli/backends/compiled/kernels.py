"""One direction of a recurrence from its tensors to its outputs, as compiled code.

    pack the weights, spread the initial states
    for each block of time steps:
        sums of all its gates = biases + X * W^T
        for each step, for each phase, for each panel of columns:
            sums += H * R^T
            the cell's equations, a vector of units at a time
    hand out the last states

Several threads may walk together, each with panels of its own: what a unit becomes does not depend
on how many there are. Addresses are in bytes.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from numba import njit, types

from rnncli.backends.compiled.compiling import compiled, sources
from rnncli.backends.compiled.equations import advance
from rnncli.backends.compiled.gang import wait
from rnncli.backends.compiled.rooms import rooms
from rnncli.backends.compiled.shapes import COLUMNS, NONE, Shape
from rnncli.backends.compiled.tiles import multiply, transpose

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.numerics import Array

# Terms summed in one run before the sum is added to what is there: half the error for long sums.
RUN = 256

rooms_of = compiled(rooms)


@compiled
def address(values: Array) -> int:
    """Return where an array starts."""
    return types.intp(values.ctypes.data)  # type: ignore[no-any-return]


@compiled
def product(
    shape: str,
    tallest: int,
    number: int,
    rows: int,
    terms: int,
    A: int,
    A_stride: int,
    panel: int,
    panel_stride: int,
    start: int,
    start_stride: int,
    out: int,
    out_stride: int,
) -> None:
    """Write start + A * panel, for any number of rows and terms."""
    done = 0
    while True:
        run = min(RUN, terms - done)
        row = 0
        while row < rows:
            tiles = (rows - row + tallest - 1) // tallest
            height = (rows - row + tiles - 1) // tiles
            multiply(
                shape,
                height,
                run,
                A + row * A_stride + done * number,
                A_stride,
                panel + done * panel_stride,
                start + row * start_stride,
                start_stride,
                out + row * out_stride,
                out_stride,
            )
            row += height
        start, start_stride = out, out_stride
        done += run
        if done >= terms:
            break


@compiled
def pack(
    shape: str, lanes: int, weights: Array, unit: int, room: Array, target: int, stride: int
) -> None:
    """Pack one gate's weights [H, K] from a unit on into one column of a panel, zero past H.

    Args:
        shape: of the kernel.
        lanes: of a vector.
        weights: of the gate.
        unit: the column's first.
        room: where the panel lies.
        target: index of the column's first number in it.
        stride: numbers from term to term.
    """
    H, K = weights.shape
    number = weights.itemsize
    done = 0
    if unit + lanes <= H:
        done = K // lanes * lanes
        for k in range(0, done, lanes):
            transpose(
                shape,
                address(weights) + (unit * K + k) * number,
                K * number,
                address(room) + (target + k * stride) * number,
                stride * number,
            )
    for k in range(done, K):
        for lane in range(lanes):
            inside = unit + lane < H
            room[target + k * stride + lane] = weights[unit + lane, k] if inside else 0


@cache
def scan_kernel(code: str) -> Callable[..., None]:
    """Return the kernel of a shape.

    It takes, all of the shape's dtype unless said otherwise:

        X [T, N, I], W [G, H, I], R [G, H, H], Wb, Rb [G, H], P [3, H], h0, c0 [N, H]: contiguous,
            the optional ones empty where they are absent
        order [N], active [T]: int64, as `rnncli.backends.scan.Batch` has them; empty when not ragged
        Y [T, N, H]: any strides; empty when not wanted
        last_h, last_c [N, H]: any strides
        room [n]: one dimension, aligned to a cache line; it carries the state from call to call
        numbers: alpha and beta of f, g and h, bounds of clipping
        counter [1]: int64, zero at first, shared by the gang
        done, total: steps walked by earlier calls, and by all calls; the first call packs and
            initialises, the last one hands out last_h and last_c
        lengths [N]: int64, in processing order; empty when not ragged
        reverse, keep_initial, input_forget: booleans
        steps: of a block
        f, g, h: codes of activation functions
        member, members: which of the gang this is
    """
    shape = Shape.of(code)
    lanes, number, width, tallest = shape.lanes, shape.size, shape.width, shape.tallest
    after = shape.cell == "GRU after"
    phases = len(shape.phases)
    first, last = shape.phases[0], shape.phases[-1]
    W_gates = (first.W, last.W)
    R_gates = (first.R, last.R)
    first_units, last_units = first.units, last.units
    stamp = sources()

    real = types.float32 if number == 4 else types.float64

    def given(dimensions: int, of: Any = real) -> Any:
        return types.Array(of, dimensions, "C", readonly=True)

    integers = given(1, types.int64)
    signature = types.void(
        *[given(3)] * 3,
        *[given(2)] * 5,
        integers,
        integers,
        integers,
        types.Array(real, 3, "A"),
        *[types.Array(real, 2, "A")] * 2,
        types.Array(real, 1, "C"),
        given(1),
        types.Array(types.int64, 1, "C"),
        *[types.int64] * 3,
        *[types.boolean] * 3,
        *[types.int64] * 5,
    )

    @njit(signature, nogil=True, cache=True, error_model="numpy")
    def scan(  # noqa: C901, PLR0912, PLR0915
        X,
        W,
        R,
        Wb,
        Rb,
        P,
        h0,
        c0,
        order,
        active,
        lengths,
        Y,
        last_h,
        last_c,
        room,
        numbers,
        counter,
        done,
        total,
        steps,
        reverse,
        keep_initial,
        input_forget,
        f,
        g,
        h,
        member,
        members,
    ):
        stamp  # noqa: B018
        T, N, I = X.shape
        H = R.shape[1]
        ragged = len(order) > 0
        vector = lanes * number
        row = COLUMNS * vector
        panels = (H + first_units * lanes - 1) // (first_units * lanes)
        units = panels * first_units * lanes
        every = panels
        if phases == 2:
            more = (H + last_units * lanes - 1) // (last_units * lanes)
            every += more
            units = max(units, more * last_units * lanes)
        at = rooms_of(every, units, vector, width, number, N, I, H, steps * N)
        base = address(room)
        own = (member * panels // members, (member + 1) * panels // members)
        ours = (own, own)
        if phases == 2:
            ours = (
                own,
                (panels + member * more // members, panels + (member + 1) * more // members),
            )
        W_panel, R_panel = I * width * vector, H * width * vector
        gates_panel = steps * N * row
        state = at.C - at.H >> 1
        line = units * number

        if done == 0:
            for phase in range(phases):
                U = first_units if phase == 0 else last_units
                skipped = panels if phase else 0
                for panel in range(*ours[phase]):
                    unit = (panel - skipped) * U * lanes
                    W_column = R_column = 0
                    for group in range(COLUMNS // U):
                        wg, rg = W_gates[phase][group], R_gates[phase][group]
                        for v in range(U):
                            start = unit + v * lanes
                            if wg != NONE:
                                pack(
                                    code,
                                    lanes,
                                    W[wg],
                                    start,
                                    room,
                                    (at.W + panel * W_panel) // number + W_column * lanes,
                                    width * lanes,
                                )
                                W_column += 1
                            if rg != NONE:
                                pack(
                                    code,
                                    lanes,
                                    R[rg],
                                    start,
                                    room,
                                    (at.R + panel * R_panel) // number + R_column * lanes,
                                    width * lanes,
                                )
                                R_column += 1
                            place = (at.bias + panel * row) // number + (group * U + v) * lanes
                            for lane in range(lanes):
                                value = real(0)
                                if start + lane < H:
                                    if wg != NONE and Wb.size:
                                        value += Wb[wg, start + lane]
                                    if rg != NONE and Rb.size:
                                        value += Rb[rg, start + lane]
                                room[place + lane] = value
            if member == 0:
                for n in range(N):
                    source = order[n] if ragged else n
                    for unit in range(units):
                        inside = unit < H
                        value = h0[source, unit] if inside and h0.size else real(0)
                        place = at.H // number + n * units + unit
                        room[place] = value
                        room[place + state // number] = value
                        room[at.C // number + n * units + unit] = (
                            c0[source, unit] if inside and c0.size else real(0)
                        )
                for k in range(3):
                    for unit in range(units):
                        room[at.P // number + k * units + unit] = (
                            P[k, unit] if P.size and unit < H else real(0)
                        )
            wait(address(counter), members)

        walked = 0
        while walked < T:
            count = min(steps, T - walked)
            begin = T - walked - count if reverse else walked
            A = address(X) + begin * N * I * number
            rows = count * N
            if ragged:
                A = base + at.X
                rows = 0
                for s in range(count):
                    n = active[begin + s]
                    if member == 0:
                        for k in range(n):
                            for i in range(I):
                                room[at.X // number + (rows + k) * I + i] = X[
                                    begin + s, order[k], i
                                ]
                    rows += n
                wait(address(counter), members)
            for phase in range(phases):
                for panel in range(*ours[phase]):
                    product(
                        code,
                        tallest,
                        number,
                        rows,
                        I,
                        A,
                        I * number,
                        base + at.W + panel * W_panel,
                        width * vector,
                        base + at.bias + panel * row,
                        0,
                        base + at.gates + panel * gates_panel,
                        row,
                    )
                    if after:  # W has nothing for the last column: its sums start from Rbh
                        bias = (at.bias + panel * row) // number + 3 * lanes
                        sums = (at.gates + panel * gates_panel) // number + 3 * lanes
                        for k in range(rows):
                            for lane in range(lanes):
                                room[sums + k * COLUMNS * lanes + lane] = room[bias + lane]
            passed = rows if reverse else 0
            for s in range(count):
                t = begin + (count - 1 - s if reverse else s)
                n = active[t] if ragged else N
                if reverse:
                    passed -= n
                H_now = base + at.H + (done + walked + s) % 2 * state
                H_next = base + at.H + (done + walked + s + 1) % 2 * state
                for panel in range(*ours[0]):
                    gates = base + at.gates + panel * gates_panel + passed * row
                    product(
                        code,
                        tallest,
                        number,
                        n,
                        H,
                        H_now,
                        line,
                        base + at.R + panel * R_panel,
                        width * vector,
                        gates + (vector if after else 0),
                        row,
                        gates + (vector if after else 0),
                        row,
                    )
                    for k in range(n):
                        target = order[k] if ragged else k
                        for v in range(first_units):
                            unit = (panel * first_units + v) * lanes
                            if unit < H:
                                place = (k * units + unit) * number
                                advance(
                                    code,
                                    0,
                                    gates + k * row + v * vector,
                                    first_units * vector,
                                    H_now + place,
                                    H_next + place,
                                    base + at.C + place,
                                    base + at.z + place,
                                    base + at.reset + place,
                                    base + at.P + unit * number,
                                    base + at.P + (units + unit) * number,
                                    base + at.P + (2 * units + unit) * number,
                                    address(Y)
                                    + t * Y.strides[0]
                                    + target * Y.strides[1]
                                    + unit * number,
                                    H - unit if Y.size else 0,
                                    address(numbers),
                                    f,
                                    g,
                                    h,
                                    P.size,
                                    input_forget,
                                )
                wait(address(counter), members)
                if phases == 2:
                    for panel in range(*ours[1]):
                        gates = base + at.gates + panel * gates_panel + passed * row
                        product(
                            code,
                            tallest,
                            number,
                            n,
                            H,
                            base + at.reset,
                            line,
                            base + at.R + panel * R_panel,
                            width * vector,
                            gates,
                            row,
                            gates,
                            row,
                        )
                        for k in range(n):
                            target = order[k] if ragged else k
                            for v in range(last_units):
                                unit = ((panel - panels) * last_units + v) * lanes
                                if unit < H:
                                    place = (k * units + unit) * number
                                    advance(
                                        code,
                                        1,
                                        gates + k * row + v * vector,
                                        last_units * vector,
                                        H_now + place,
                                        H_next + place,
                                        base + at.C + place,
                                        base + at.z + place,
                                        base + at.reset + place,
                                        base + at.P,
                                        base + at.P,
                                        base + at.P,
                                        address(Y)
                                        + t * Y.strides[0]
                                        + target * Y.strides[1]
                                        + unit * number,
                                        H - unit if Y.size else 0,
                                        address(numbers),
                                        f,
                                        g,
                                        h,
                                        P.size,
                                        input_forget,
                                    )
                    wait(address(counter), members)
                if not reverse:
                    passed += n
            walked += count

        if done + T == total and member == 0:
            for n in range(N):
                target = order[n] if ragged else n
                length = lengths[n] if ragged else total
                walked_through = length if not reverse or length == 0 else total
                buffer = at.H // number + walked_through % 2 * (state // number) + n * units
                kept = length > 0 or keep_initial
                for unit in range(H):
                    last_h[target, unit] = room[buffer + unit] if kept else real(0)
                    if last_c.size:
                        last_c[target, unit] = (
                            room[at.C // number + n * units + unit] if kept else real(0)
                        )

    return scan
