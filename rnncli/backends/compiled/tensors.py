"""Packing and unpacking of a kernel's tensors: weights, biases, states and inputs.

Addresses are in bytes; `code` is the literal code of the kernel's shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.backends.compiled.compiling import compiled, inlined, pointer
from rnncli.backends.compiled.kernel_shapes import COLUMNS, NONE
from rnncli.backends.compiled.tiles import SquareBlock, transpose

if TYPE_CHECKING:
    from rnncli.backends.compiled.kernel_shapes import PanelLayout, Phase


@inlined
def pack_panel(
    code: str, layout: PanelLayout, phase: Phase, plan: Any, unit: int, panel: int
) -> None:
    """Pack the weights and biases of a panel's units, given the first unit."""
    W_column = plan.packed_W + panel * plan.I * layout.term
    R_column = plan.packed_R + panel * plan.H * layout.term
    for column in range(COLUMNS):
        group, first = column // phase.units, unit + column % phase.units * layout.lanes
        W_gate, R_gate = phase.W[group], phase.R[group]
        pack_bias(code, layout.lanes, plan, W_gate, R_gate, first, (panel * COLUMNS + column))
        if W_gate != NONE:
            weights = plan.W + W_gate * plan.H * plan.I * layout.number
            pack_column(code, layout, plan.H, plan.I, weights, first, W_column)
            W_column += layout.vector
        if R_gate != NONE:
            weights = plan.R + R_gate * plan.H * plan.H * layout.number
            pack_column(code, layout, plan.H, plan.H, weights, first, R_column)
            R_column += layout.vector


@compiled
def pack_column(
    code: str, layout: PanelLayout, H: int, K: int, weights: int, unit: int, target: int
) -> None:
    """Pack a gate's weights [H, K] of a vector of units into a column of a panel; zero past H."""
    lanes, number, term = layout.lanes, layout.number, layout.term
    squares = K // lanes if unit + lanes <= H else 0
    for k in range(squares):
        source = weights + (unit * K + k * lanes) * number
        transpose(code, SquareBlock(source, K * number, target + k * lanes * term, term))
    numbers = pointer(code, weights)
    for k in range(squares * lanes, K):
        packed = pointer(code, target + k * term)
        for lane in range(lanes):
            packed[lane] = numbers[(unit + lane) * K + k] if unit + lane < H else 0


@inlined
def pack_bias(
    code: str, lanes: int, plan: Any, W_gate: int, R_gate: int, unit: int, column: int
) -> None:
    """Add both biases of a vector of units, if there are any; zero past H."""
    Wb, Rb, bias = pointer(code, plan.Wb), pointer(code, plan.Rb), pointer(code, plan.bias)
    for lane in range(lanes):
        bias[column * lanes + lane] = 0
    for lane in range(min(lanes, plan.H - unit)):
        if W_gate != NONE and plan.Wb:
            bias[column * lanes + lane] += Wb[W_gate * plan.H + unit + lane]
        if R_gate != NONE and plan.Rb:
            bias[column * lanes + lane] += Rb[R_gate * plan.H + unit + lane]


@compiled
def sequence_at(plan: Any, row: int) -> int:
    """Return the index of the sequence that is a row in processing order."""
    return pointer("int64", plan.order)[row] if plan.order else row


@compiled
def live_rows(plan: Any, t: int) -> int:
    """Return the number of live sequences at a step."""
    return pointer("int64", plan.active)[t] if plan.active else plan.N  # type: ignore[no-any-return]


@inlined
def start(code: str, number: int, plan: Any) -> None:
    """Initialise the states in processing order; pack the peephole weights if needed."""
    state = plan.N * plan.units * number
    spread(code, plan, plan.h0, plan.states)
    spread(code, plan, plan.h0, plan.states + state)
    spread(code, plan, plan.c0, plan.states + 2 * state)
    source, packed = pointer(code, plan.P), pointer(code, plan.packed_P)
    for k in range(0 if plan.packed else 3):
        for unit in range(plan.units):
            inside = plan.P != 0 and unit < plan.H
            packed[k * plan.units + unit] = source[k * plan.H + unit] if inside else 0


@compiled
def spread(code: str, plan: Any, values: int, target: int) -> None:
    """Copy an initial state [N, H] to [N, units]; zero if absent and past H."""
    source_values, state = pointer(code, values), pointer(code, target)
    inside = plan.H if values else 0
    for row in range(plan.N):
        source = sequence_at(plan, row) * plan.H
        for unit in range(inside):
            state[row * plan.units + unit] = source_values[source + unit]
        for unit in range(inside, plan.units):
            state[row * plan.units + unit] = 0


@inlined
def gather(code: str, plan: Any, begin: int, count: int) -> None:
    """Copy the live inputs of some steps to contiguous memory."""
    source_values, target = pointer(code, plan.X), pointer(code, plan.gathered)
    written = 0
    for t in range(begin, begin + count):
        for row in range(live_rows(plan, t)):
            source = (t * plan.N + sequence_at(plan, row)) * plan.I
            for i in range(plan.I):
                target[written + i] = source_values[source + i]
            written += plan.I


@inlined
def finish(code: str, plan: Any) -> None:
    """Write the last states in the caller's order; the initial ones if no step was taken.

    The two buffers of H alternate at every step, so a row's last H is in the buffer of its last
    step, which in reverse is the last step of all.
    """
    state = plan.N * plan.units
    for row in range(plan.N):
        length = pointer("int64", plan.lengths)[row] if plan.lengths else plan.total
        turns = plan.total if plan.reverse and length else length
        source, target = row * plan.units, sequence_at(plan, row) * plan.H
        hand_out(code, plan, turns % 2 * state + source, plan.Y_h, target)
        if plan.Y_c:
            hand_out(code, plan, 2 * state + source, plan.Y_c, target)


@compiled
def hand_out(code: str, plan: Any, source: int, output: int, target: int) -> None:
    """Copy one row of a state to an output."""
    states, values = pointer(code, plan.states), pointer(code, output)
    for unit in range(plan.H):
        values[target + unit] = states[source + unit]
