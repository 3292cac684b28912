"""From a canonical recurrence to calls of its kernel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from rnncli.backends.compiled.equations import FUNCTIONS
from rnncli.backends.compiled.kernels import scan_kernel
from rnncli.backends.compiled.processor import registers
from rnncli.backends.compiled.rooms import LINE, rooms
from rnncli.backends.compiled.shapes import Shape
from rnncli.backends.scan import Batch
from rnncli.recurrence.recurrence import Direction, Recurrence, Result

if TYPE_CHECKING:
    from rnncli.numerics import Array

BLOCK_ROWS = 96


def run(recurrence: Recurrence, dtype: np.dtype[Any]) -> Result:
    """Evaluate a recurrence."""
    T, N, I = recurrence.X.shape
    D, G, H, _ = recurrence.W.shape
    Y = np.zeros((T, D, N, H), dtype) if recurrence.wants_Y else np.empty((0, D, 0, 0), dtype)
    last = tuple(np.empty((D, N, H), dtype) for _ in range(recurrence.cell.states))
    for d in range(D):
        scan(recurrence, d, dtype, Y[:, d], [state[d] for state in last])
    return Result(Y if recurrence.wants_Y else None, last)


def scan(r: Recurrence, d: int, dtype, Y, last) -> None:
    T, N, I = r.X.shape
    D, G, H, _ = r.W.shape
    empty = np.empty((0, 0), dtype)
    none = np.empty(0, np.int64)

    def given(values, dims=2):
        return empty if values is None else np.ascontiguousarray(values[d], dtype)

    cell = "GRU after" if r.cell.name == "GRU" and r.linear_before_reset else r.cell.name
    codes = [FUNCTIONS.index(a.function) for a in r.activations[d]] + [0, 0]
    from rnncli.recurrence.activations import ACTIVATIONS as AA

    default = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}[
        r.cell.name
    ]
    plain = (
        all(a.function is AA[n].function for a, n in zip(r.activations[d], default))
        and not math.isfinite(r.clip)
        and r.P is None
        and not r.input_forget
    )
    regs = registers()
    shape = Shape(cell, plain, dtype.name, regs.bits, regs.count)
    kernel = scan_kernel(shape.code)
    numbers = []
    for a in r.activations[d]:
        numbers += [a.alpha or 0, a.beta or 0]
    numbers += [0] * (6 - len(numbers))
    numbers += [r.clip, r.clip if r.clip_hidden else math.inf]
    steps = max(1, min(T, BLOCK_ROWS // max(1, N)))
    L = shape.lanes
    panels = [-(-H // (p.units * L)) for p in shape.phases]
    units = max(n * p.units * L for n, p in zip(panels, shape.phases))
    at = rooms(sum(panels), units, L * shape.size, shape.width, shape.size, N, I, H, steps * N)
    raw = np.empty(at.end + LINE, np.uint8)
    shift = -raw.ctypes.data % LINE
    room = raw[shift : shift + at.end].view(dtype)
    order = active = lengths = none
    if r.lengths is not None:
        b = Batch.of(r.lengths, T, N)
        order = np.arange(N) if b.order is None else b.order
        active = np.array(b.active, np.int64)
        lengths = r.lengths[order]
    kernel(
        np.ascontiguousarray(r.X, dtype),
        given(r.W),
        given(r.R),
        given(r.Wb),
        given(r.Rb),
        given(r.P),
        given(r.initial[0]),
        given(r.initial[1]) if len(r.initial) > 1 else empty,
        order,
        active,
        lengths,
        Y,
        last[0],
        last[1] if len(last) > 1 else empty,
        room,
        np.array(numbers, dtype),
        np.zeros(1, np.int64),
        0,
        T,
        steps,
        r.directions[d] is Direction.REVERSE,
        r.keep_initial,
        r.input_forget,
        *codes[:3],
        0,
        1,
    )
