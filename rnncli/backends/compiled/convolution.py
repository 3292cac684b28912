"""The kernel of causal depthwise convolutions: a channel at a time, in vectors of steps.

It is `recurrence.cells.convolution_step` of all steps of a channel, tap by tap, or of a single step
of all channels: the sums of a block stay in the cache until they are activated.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from numba import types

from rnncli.backends.compiled.compiling import (
    compiled,
    kernel,
    pointer,
    sources,
    summing,
)
from rnncli.backends.compiled.equations import silu
from rnncli.backends.compiled.kernel_plan import place, tensors
from rnncli.backends.compiled.kernel_shapes import Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.backends.compiled.kernel_shapes import PanelLayout

# The most sums that wait for their activation: they fit in the L1 cache, with the steps they read.
BLOCK = 2048


@compiled
def activate(code: str, layout: PanelLayout, first: int, count: int, spare: int) -> None:
    """Replace some numbers from an address on by their silu; `spare` has room for a vector."""
    whole = count - count % layout.lanes
    for k in range(0, whole, layout.lanes):
        silu(code, first + k * layout.number)
    numbers, rest = pointer(code, first), pointer(code, spare)
    for k in range(whole, count):
        rest[k - whole] = numbers[k]
    silu(code, spare)
    for k in range(whole, count):
        numbers[k] = rest[k - whole]


@summing
def convolve(code: str, begin: int, end: int, taps: int, w: int, bias: Any, x: int, y: int) -> None:
    """Compute the sums of some steps of a channel, none of which reads the window.

    Args:
        code: of the shape.
        begin: the first of the steps.
        end: the step after the last.
        taps: how many weights there are.
        w: address of the weights.
        bias: added to each sum.
        x: address of the numbers of all steps.
        y: address of their sums.
    """
    W, X, Y = pointer(code, w), pointer(code, x), pointer(code, y)
    for t in range(begin, end):
        Y[t] = bias
    for j in range(taps):
        ago = taps - 1 - j
        for t in range(begin, end):
            Y[t] += W[j] * X[t - ago]


@compiled
def convolve_window(
    code: str, end: int, taps: int, w: int, bias: Any, window: int, x: int, y: int
) -> None:
    """Compute likewise the sums of the first steps, which read the window."""
    W, before, X, Y = pointer(code, w), pointer(code, window), pointer(code, x), pointer(code, y)
    for t in range(end):
        total, inside = bias, taps - 1 - t
        for j in range(inside):
            total += W[j] * before[t + j]
        for j in range(inside, taps):
            total += W[j] * X[j - inside]
        Y[t] = total


@compiled
def take_step(
    code: str, count: int, taps: int, w: int, bias: int, window: int, after: int, x: int, y: int
) -> None:
    """Compute the sums and the windows of some channels after a single step, tap by tap."""
    W, b, X, Y = pointer(code, w), pointer(code, bias), pointer(code, x), pointer(code, y)
    old, new, inside = pointer(code, window), pointer(code, after), taps - 1
    for c in range(count):
        Y[c] = b[c] + W[c * taps + inside] * X[c]
    for j in range(inside):
        for c in range(count):
            Y[c] += W[c * taps + j] * old[c * inside + j]
    for k in range(count * inside - 1):
        new[k] = old[k + 1]
    for c in range(count if inside else 0):
        new[c * inside + inside - 1] = X[c]


@cache
def convolution_kernel(code: str) -> Callable[..., None]:
    """Compile or load the kernel of the shape with this code.

    It takes the first of some channels of all sequences and the one after the last; whether sums
    are activated; X [N, C, T]; the windows before [N, C, taps - 1], zeros where there are none; the
    weights [C, taps] and biases [C]; Y [N, C, T]; the windows after; and room for a vector.
    """
    shape = Shape.of(code)
    layout, stamp, dimensions = shape.layout, sources(), (3, 3, 2, 1, 3, 3, 1)

    @kernel(f"convolve {code}", *[types.int64] * 3, *tensors(shape.dtype, *dimensions))
    def convolve_channels(
        first: int,
        last: int,
        activates: int,
        X: Any,
        past: Any,
        W: Any,
        bias: Any,
        Y: Any,
        present: Any,
        spare: Any,
    ) -> None:
        stamp  # noqa: B018 -- part of the key of cached code
        _, C, T = X.shape
        taps, number = W.shape[1], layout.number
        x, y, w, room = place(X, 0), place(Y, 0), place(W, 0), place(spare, 0)
        before, after = place(past, 0), place(present, 0)
        row = first  # of single steps, many channels at once
        while T == 1 and row < last:
            channel, at, of_window = row % C, row * number, row * (taps - 1) * number
            count = min(BLOCK, C - channel, last - row)
            weights, biases = w + channel * taps * number, place(bias, 0) + channel * number
            old, new = before + of_window, after + of_window
            take_step(code, count, taps, weights, biases, old, new, x + at, y + at)
            if activates:
                activate(code, layout, y + at, count, room)
            row += count
        activated = row * T
        while row < last:
            of_steps, of_window = row * T * number, row * (taps - 1) * number
            weights, window, start = w + row % C * taps * number, before + of_window, bias[row % C]
            steps, sums = x + of_steps, y + of_steps
            early = min(taps - 1, T)
            convolve_window(code, early, taps, weights, start, window, steps, sums)
            for begin in range(early, max(T, early + 1), BLOCK):
                end = min(begin + BLOCK, T)
                convolve(code, begin, end, taps, weights, start, steps, sums)
                done = row * T + end
                is_last = row + 1 == last and end == T
                if activates and (done - activated >= BLOCK or is_last):
                    activate(code, layout, y + activated * number, done - activated, room)
                    activated = done
            earlier, later = pointer(code, window), pointer(code, after + of_window)
            own = pointer(code, steps)
            for k in range(taps - 1):
                later[k] = earlier[T + k] if T + k < taps - 1 else own[T + k - (taps - 1)]
            row += 1

    return convolve_channels
