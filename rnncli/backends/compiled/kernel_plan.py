"""Kernel plans: a kernel's run-time parameters, and the tensors at the addresses in them.

Compiled code writes the addresses, since obtaining one in NumPy costs 0.8 us, and packs and unpacks
the tensors: weights, biases, states and inputs. `code` is the literal code of the kernel's shape.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from rnncli.backends.compiled.compiling import (
    compiled,
    inlined,
    instruction,
    kernel,
    pointer,
    sources,
)
from rnncli.backends.compiled.kernel_shapes import COLUMNS, NONE
from rnncli.backends.compiled.tiles import SquareBlock, transpose

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.backends.compiled.kernel_shapes import PanelLayout, Phase


class KernelPlan(NamedTuple):
    """The plan of one direction of a recurrence, or of some of its time steps.

    Addresses and strides are in bytes; absent tensors have address 0. Tensors are contiguous and
    have the kernel's dtype.
    """

    X: int  # inputs [T, N, I]
    W: int  # input weights [G, H, I]
    R: int  # recurrent weights [G, H, H]
    Wb: int  # input bias [G, H]
    Rb: int  # recurrent bias [G, H]
    P: int  # peephole weights [3, H]
    h0: int  # initial H [N, H]
    c0: int  # initial C [N, H]
    Y: int  # H after each step [T, N, H]; padding is left as it is
    Y_h: int  # the last H [N, H]
    Y_c: int  # the last C [N, H]
    order: int  # the sequences, longest first, int64 [N]; absent if all are as long as X
    lengths: int  # their lengths in this order, int64 [N]
    active: int  # the number of live sequences at each step, int64 [T]
    numbers: int  # alpha and beta of f, g and h, the bounds of clipping [8]
    sums: int  # sums of a block of time [panels, rows, columns, lanes]
    states: int  # H before and after a step, alternating; C; zt; rt (.) Ht-1 [5, N, units]
    gathered: int  # the live inputs of a ragged block [rows, I]
    units: int  # H, rounded up to whole panels
    meeting: int  # the team's barrier, an int64 that is 0 at first
    bias: int  # initial values of a panel's sums [panels, columns, lanes]
    packed_W: int  # input weights [panels, I, width, lanes]
    packed_R: int  # recurrent weights [panels, H, width, lanes]
    packed_P: int  # peephole weights [3, units]
    packed: int  # whether these four already contain the weights
    T: int  # steps of X
    N: int  # sequences
    I: int  # noqa: E741 -- the specification's letter: inputs
    H: int  # units
    steps: int  # steps of a block of time
    Y_t: int  # stride of Y from step to step
    Y_n: int  # stride of Y from sequence to sequence
    done: int  # steps run by earlier calls; the first call packs the weights if needed
    total: int  # steps of all calls; the last call writes the last states
    reverse: int  # whether steps run from last to first
    input_forget: int  # whether the forget gate is 1 - it
    f: int  # code of the activation f
    g: int  # code of the activation g
    h: int  # code of the activation h
    members: int  # the number of members of the team
    d: int  # the index of the direction


RECORD = np.dtype([(name, np.int64) for name in KernelPlan._fields])


STRIDE = RECORD.itemsize


@instruction
def plan_at(_: Any, address: Any) -> tuple[Any, Any]:
    """Return the KernelPlan at an address."""
    kind = from_dtype(RECORD)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(address), emit


@inlined
def place(tensor: Any, d: int) -> Any:
    """Return the address of one direction of a tensor [D, ...]; 0 if the tensor is absent."""
    return types.int64(tensor.ctypes.data) + d * tensor.strides[0] if tensor.size else 0


def tensors(dtype: str, *dimensions: int) -> list[Any]:
    """Return the Numba types of contiguous arrays with the given numbers of dimensions."""
    return [types.Array(getattr(types, dtype), n, "C", readonly=True) for n in dimensions]


@inlined
def attach(plan: Any, packed: int, X: Any, h0: Any, c0: Any, Y: Any, Y_h: Any, Y_c: Any) -> None:
    """Write the addresses that change at each call into a KernelPlan.

    Tensors are those of all directions: states [D, N, H], Y [T, D, N, H]; `packed` is the address
    of a record of packed weights.
    """
    weights = pointer("int64", packed)
    plan.bias, plan.packed_W, plan.packed_R = weights[0], weights[1], weights[2]
    plan.packed_P, plan.packed = weights[3], weights[4]
    plan.T = X.shape[0]
    plan.X = place(X, 0)
    plan.h0, plan.c0 = place(h0, plan.d), place(c0, plan.d)
    plan.Y = types.int64(Y.ctypes.data) + plan.d * Y.strides[1] if Y.size else 0
    plan.Y_t, plan.Y_n = Y.strides[0], Y.strides[2]
    plan.Y_h, plan.Y_c = place(Y_h, plan.d), place(Y_c, plan.d)


@cache
def weights_locator(dtype: str) -> Callable[..., None]:
    """Return a function that writes the addresses of unpacked weights into KernelPlans.

    It takes the address of the first plan, W, R [D, G, H, K], Wb, Rb [D, G, H] and P [D, 3, H].
    """
    stamp = sources()

    @kernel(f"locate weights {dtype}", types.int64, *tensors(dtype, 4, 4, 3, 3, 3))
    def locate(address: int, W: Any, R: Any, Wb: Any, Rb: Any, P: Any) -> None:
        stamp  # noqa: B018 -- part of the key of cached code
        for d in range(R.shape[0]):
            plan = plan_at(address + d * STRIDE)
            plan.W, plan.R = place(W, d), place(R, d)
            plan.Wb, plan.Rb, plan.P = place(Wb, d), place(Rb, d), place(P, d)

    return locate


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
