"""Linear recurrences on compiled kernels: from a recurrence to kernel calls and back to tensors."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from rnncli.backends.compiled.attention import CHUNK, Desk, attention_kernel
from rnncli.backends.compiled.convolution import convolution_kernel
from rnncli.backends.compiled.kernel_shapes import Shape, registers
from rnncli.backends.compiled.routines import LINE, AlignedArrays
from rnncli.backends.threads import at_once, threads
from rnncli.limits import check_clock
from rnncli.numerics import round_to
from rnncli.recurrence.recurrence import Result, working_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.numerics import Array, DType
    from rnncli.recurrence.cells import AttentionForm
    from rnncli.recurrence.recurrence import Compute, Recurrence

# Cell -> its options that are evaluated.
OPTIONS: Mapping[str, frozenset[str]] = {
    "LinearAttention": frozenset({"attention", "token", "rounded_states"}),
    "CausalConv": frozenset({"silu", "unrounded_sum", "gap"}),
}
# The least number of multiplications worth waking threads for: about a millisecond.
WORTHWHILE = 1e8
# Tensors that need conversion are processed in blocks of time of about this many numbers.
BLOCK_NUMBERS = 1 << 20
# Bytes of states from which on they are written past the caches, which cannot keep them: 64 MiB
# take 13.8 ms instead of 17.1 on an AMD EPYC with 32 MiB of L3, on 2026-11-28.
STREAMED = 1 << 24
# Memory of states of such a size, for the next ones: the system takes 7 ms to zero 64 MiB, which
# the kernel computes in 6.
SPARE: list[Array] = []


def run(recurrence: Recurrence, compute: Compute) -> Result:
    """Evaluate a linear recurrence; round each output once."""
    dtype = working_dtype(recurrence, compute)
    attends = recurrence.options.attention is not None
    Y, *last = (_attend if attends else _convolve)(recurrence, dtype)
    return Result(Y if recurrence.wants_Y else None, tuple(last))


class AttentionRoutine:
    """The kernel of attentions of one form and arithmetic, and scratch arrays kept between calls.

    Args:
        form: the form.
        dtype: the arithmetic's dtype.
    """

    def __init__(self, form: AttentionForm, dtype: np.dtype[Any]) -> None:
        self._form = form._replace(scale=form.scale or 1 / math.sqrt(form.key_size))
        self._shape = Shape("LinearAttention", True, dtype.name, *registers())
        self._kernel = attention_kernel(self._shape.code)
        self._free: list[AlignedArrays] = []

    def __call__(self, first: int, last: int, streams: int, *tensors: Array) -> None:
        """Run the kernel for some of the states."""
        try:
            arrays = self._free.pop()
        except IndexError:
            counts = Desk.counts(self._form, self._shape.layout)
            arrays = AlignedArrays(self._shape, counts)
        self._kernel(first, last, self._form, Desk(*arrays.places), streams, *tensors)
        self._free.append(arrays)


attention_routine = lru_cache(maxsize=64)(AttentionRoutine)


def _attend(recurrence: Recurrence, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return Y and the last states, computed in blocks of time if tensors need conversion."""
    r, form, past = recurrence.plain, recurrence.options.attention, recurrence.initial[1]
    assert form is not None
    (T, N, width), is_native, rounds = r.X.shape, dtype == r.dtype.numpy, r.options.rounded_states
    block = max(1, BLOCK_NUMBERS // max(1, N * width) // CHUNK) * CHUNK
    steps = 1 if rounds else T or 1 if is_native else block
    routine = attention_routine(form, dtype)
    of_outputs, of_states = r.widths
    Y, S = np.empty((T, 1, N, *of_outputs), r.dtype.numpy), aligned((N, *of_states), dtype)
    streams = S.nbytes >= STREAMED and S.strides[1] % LINE == 0
    before = np.empty((0, 0, 0), dtype) if past is None else tensor(past[0], dtype)
    for start in range(0, T or 1, steps):
        check_clock()
        X, own = tensor(r.X[start : start + steps], dtype), Y[start : start + steps, 0]
        out = own if is_native else np.empty(own.shape, dtype)
        _share(N, 3 * T * S.size, routine, int(streams), X, before, out, S)
        if not is_native:
            own[...] = round_to(out, r.dtype)
        if rounds:
            S[...] = round_to(S, r.dtypes[1])
        before = S
    H = Y[-1] if T else np.zeros(Y.shape[1:], Y.dtype)
    return Y, H, _rounded(S, r.dtypes[1])[None]


def _convolve(recurrence: Recurrence, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """Return Y and the last states; sums that are rounded before silu take a second call.

    With a dilation of d, every d-th step is a step of a channel of its own, without one.
    """
    r, (T, N, C), past = recurrence, recurrence.X.shape, recurrence.initial[1]
    d = 1 + r.options.gap
    taps = np.moveaxis(r.W[0, ..., 0], 0, -1)
    bias = np.zeros(C) if r.Wb is None else r.Wb[0, 0]
    window = np.zeros((N, C, (taps.shape[-1] - 1) * d)) if past is None else past[0]
    rounds = r.options.silu and not r.options.unrounded_sum and dtype != r.dtype.numpy
    X = np.moveaxis(r.X, 0, -1)
    given = (_apart(X, d), _apart(window, d), np.repeat(taps, d, 0), np.repeat(bias, d))
    Y, S = _channels(dtype, *given, activates=r.options.silu and not rounds)
    if rounds:  # silu of a convolution of one tap, which is 1
        one = (np.zeros((N, C * d, 0)), np.ones((C * d, 1)), np.zeros(C * d))
        Y, _ = _channels(dtype, round_to(Y, r.dtype), *one, activates=True)
    if d > 1:
        whole = Y.reshape(N, C, d, Y.shape[-1]).swapaxes(-1, -2)
        Y = whole.reshape(N, C, Y.shape[-1] * d)[..., :T]
    if d > 1 or r.lengths is not None:
        ends = np.full(N, T) if r.lengths is None else r.lengths
        held = ends[:, None, None] + np.arange(window.shape[-1])
        S = np.take_along_axis(np.concatenate([window, X], axis=-1), held, axis=-1)
    steps = np.moveaxis(_rounded(Y, r.dtype), -1, 0)[:, None]
    H = steps[-1] if T else np.zeros((1, N, C), steps.dtype)
    return steps, H, _rounded(S, r.dtypes[1])[None]


def _apart(values: Array, d: int) -> Array:
    """Return values [N, C, T] as [N, C*d, T/d], of every d-th step one, with zeros at the end."""
    N, C, T = values.shape
    count = -(-T // d)
    whole = np.pad(values, ((0, 0), (0, 0), (0, count * d - T)))
    return whole.reshape(N, C, count, d).swapaxes(-1, -2).reshape(N, C * d, count)


def _channels(dtype: np.dtype[Any], *given: Array, activates: bool) -> tuple[Array, Array]:
    """Return the sums [N, C, T] and the last windows, given X, the windows, taps and biases."""
    X, window, taps, bias = (tensor(values, dtype) for values in given)
    shape = Shape("CausalConv", True, dtype.name, *registers())
    Y, S, spare = np.empty(X.shape, dtype), np.empty(window.shape, dtype), shape.lanes

    def convolve(first: int, last: int) -> None:
        room = np.zeros(spare, dtype)
        convolution_kernel(shape.code)(
            first, last, int(activates), X, window, taps, bias, Y, S, room
        )

    N, C, T = X.shape
    _share(N * C, N * C * T * (taps.shape[1] + activates), convolve)
    return Y, S


def _share(count: int, multiplications: float, task: Callable[..., None], *given: Any) -> None:
    """Run a task for ranges of a count, one for each thread."""
    members = min(threads(), count) if multiplications > WORTHWHILE else 1
    if members <= 1:
        task(0, count, *given)
        return
    ends = [count * k // members for k in range(members + 1)]
    at_once([partial(task, *range_, *given) for range_ in pairwise(ends)])


def tensor(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return a tensor in the kernels' format, copied if necessary."""
    values = np.ascontiguousarray(values, dtype)
    return values if values.flags.aligned else values.copy()


def _rounded(values: Array, dtype: DType) -> Array:
    """Round once, unless values have the dtype."""
    return values if values.dtype == dtype.numpy else round_to(values, dtype)


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array of any numbers, nobody else's, whose first one begins a cache line."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + LINE, np.uint8) if size < STREAMED else lent(size + LINE)
    first = -memory.__array_interface__["data"][0] % LINE
    return memory[first : first + size].view(dtype).reshape(shape)


class Loan:
    """What arrays of lent memory have as their base; it ends with the last of them."""

    def __init__(self, memory: Array) -> None:
        self.__array_interface__ = memory.__array_interface__


def lent(size: int) -> Array:
    """Return so many bytes, which are the last that were given back, if these are as many."""
    try:
        memory = SPARE.pop()
    except IndexError:
        memory = np.empty(0, np.uint8)
    if memory.size != size:
        memory = np.empty(size, np.uint8)
    loan = Loan(memory)
    finalize(loan, _take_back, memory).atexit = False
    return np.asarray(loan)


def _take_back(memory: Array) -> None:
    SPARE[:] = [memory]
