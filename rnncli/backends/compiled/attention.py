"""The kernel of linear attentions: a chunk of steps at a time, in one walk over the state.

    ut = bt (vt - (Et S)^T kt - sum over s < t of (kst . kt) us)          or vt without beta
    ot = scale ((Et S)^T qt + sum over s <= t of (kst . qt) us)
    S  = EC S + sum over s of ksC us^T                                    after the C steps

S is the state before the chunk, Et what the decays of steps up to t leave of its rows, and kst what
those after s and up to t leave of ks. This is `recurrence.cells.attention_step` with the state
before a chunk taken out of its steps (S. Yang et al., Parallelizing Linear Transformers with the
Delta Rule over Sequence Length, 2024); of a single step, it is that step.

Keys are decayed from step to step, not by quotients of Et, which would be 0/0; and a chunk ends
before a decay above 0, so no product exceeds its factors. No step reads what a later one writes.

On 2026-11-28, on an AMD EPYC (AVX-512), 64 steps of 32 heads of 128 by 128 took 2.46 us a step and
head in chunks of 1, and 1.98, 1.61, 1.56, 1.62 and 1.74 us in chunks of up to 2, 4, 8, 16 and 32.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from numba import typeof, types

from rnncli.backends.compiled.compiling import (
    compiled,
    kernel,
    pointer,
    sources,
    summing,
)
from rnncli.backends.compiled.equations import exponentials
from rnncli.backends.compiled.kernel_plan import place, tensors
from rnncli.backends.compiled.kernel_shapes import Shape
from rnncli.backends.compiled.kernels import RUN
from rnncli.backends.compiled.tiles import (
    SquareBlock,
    StridedProduct,
    accumulate,
    add_outer,
    fetch,
    stream,
    stream_outer,
    transpose,
)
from rnncli.recurrence.cells import AttentionForm

if TYPE_CHECKING:
    from collections.abc import Callable

    from rnncli.backends.compiled.kernel_shapes import PanelLayout

# The most steps of a chunk, a multiple of the numbers in any vector.
CHUNK = 16
# Bytes of a cache line.
LINE = 64


class Desk(NamedTuple):
    """Addresses of the scratch arrays of a thread.

    Keys are rounded up to whole vectors. Readers are, for each step, the queries of the group, and
    then the keys of all steps.
    """

    decay: int  # e^decay of a step [keys]
    left: int  # Et [keys]
    decayed: int  # kst of the steps s so far [CHUNK, keys]
    turned: int  # their transpose [keys, CHUNK]
    readers: int  # Et qt and Et kt, with their factors [readers, keys]
    inner: int  # the products of kst and readers, with their factors [readers, CHUNK]
    read: int  # what readers read in a panel of the state [readers, columns]
    written: int  # ut in a panel of columns [CHUNK, columns]
    rest: int  # the last panel of a state, if it is not whole [key_size, columns]
    zeros: int  # 0 [columns]
    one: int  # 1
    scale: int  # the form's

    @classmethod
    def counts(cls, form: AttentionForm, layout: PanelLayout) -> tuple[int, ...]:
        """Return the numbers in each array."""
        keys, columns = (
            -(-form.key_size // layout.lanes) * layout.lanes,
            layout.term // layout.number,
        )
        readers = (form.group + 1) * CHUNK
        steps = (keys, keys, CHUNK * keys, keys * CHUNK, readers * keys, readers * CHUNK)
        of_columns = (readers * columns, CHUNK * columns, form.key_size * columns, columns)
        return (*steps, *of_columns, 1, 1)


class Columns(NamedTuple):
    """A panel of columns of a state, and those of a chunk's v and o."""

    width: int  # how many there are, up to those of a panel
    before: int  # address of their first row before the chunk
    before_stride: int  # bytes from row to row
    after: int  # address of their first row after it
    after_stride: int  # bytes from row to row
    streams: int  # whether they are written past the caches
    v: int  # address of the first step's
    to_beta: int  # numbers from there to the step's beta
    v_stride: int  # numbers from step to step
    o: int  # address of the first step's, of the group's first head
    o_stride: int  # numbers from step to step


@compiled
def product(code: str, layout: PanelLayout, one: int, whole: StridedProduct, streams: int) -> None:
    """Compute a StridedProduct of any number of rows and terms, given the address of a 1."""
    rows, terms, A, A_stride, panel, first, first_stride, out, out_stride = whole[:9]
    panel_stride, factors, factor_stride = whole[9:]
    done = 0
    while True:
        run, row = min(RUN, terms - done), 0
        while row < rows:
            tiles = (rows - row + layout.tallest - 1) // layout.tallest
            height = (rows - row + tiles - 1) // tiles
            left, right = A + row * A_stride + done * layout.number, panel + done * panel_stride
            source, target = first + row * first_stride, out + row * out_stride
            factor = factors + row * factor_stride
            sums = (source, first_stride, target, out_stride, panel_stride, factor, factor_stride)
            tile = StridedProduct(height, run, left, A_stride, right, *sums)
            if streams:
                stream(code, tile)
            else:
                accumulate(code, tile)
            row += height
        first, first_stride, factors, factor_stride = out, out_stride, one, 0
        done += run
        if done >= terms:
            break


@summing
def dot(code: str, total: Any, a: int, b: int, count: int) -> Any:
    """Add the product of two vectors at addresses to a number."""
    x, y = pointer(code, a), pointer(code, b)
    for i in range(count):
        total += x[i] * y[i]
    return total


@compiled
def chunk_length(code: str, decays: int, line: int, numbers: int, left: int) -> int:
    """Return how many of the steps left make a chunk: none but the first has a decay above 0.

    Args:
        code: of the shape.
        decays: the address of the first step's decays.
        line: the numbers from step to step.
        numbers: how many decays a step has.
        left: the number of steps.
    """
    values, most = pointer(code, decays), min(CHUNK, left)
    for t in range(1, most):
        grows = 0
        for i in range(numbers):
            grows |= not values[t * line + i] <= 0
        if grows:
            return t
    return most


@compiled
def read_steps(
    code: str, layout: PanelLayout, form: AttentionForm, desk: Desk, x: int, line: int, count: int
) -> None:
    """Compute what the panels of a chunk share, given the address of its first step.

    All that reads the state has its factor: scale for qt, -bt for kt.
    """
    group, K = form.group, form.key_size
    keys, number = -(-K // layout.lanes) * layout.lanes, layout.number
    scale, zeros = pointer(code, desk.scale)[0], pointer(code, desk.zeros)
    X, decay, left = pointer(code, x), pointer(code, desk.decay), pointer(code, desk.left)
    decayed, readers = pointer(code, desk.decayed), pointer(code, desk.readers)
    inner = pointer(code, desk.inner)
    for i in range(K):
        left[i] = 1
    for t in range(count):
        step = t * line
        k = step + group * K
        g = k + K + form.value_size
        for i in range(step, g, LINE // number):  # this step of the next chunk
            fetch(x + (i + count * line) * number)
        if form.decays:
            for i in range(form.decays):
                decay[i] = X[g + i]
            for i in range(0, form.decays, layout.lanes):
                exponentials(code, desk.decay + i * number)
            if form.decays == 1:
                for i in range(1, K):
                    decay[i] = decay[0]
            for i in range(K):
                left[i] *= decay[i]
            for s in range(t):
                for i in range(K):
                    decayed[s * keys + i] *= decay[i]
        for i in range(K):
            decayed[t * keys + i] = X[k + i]
        for h in range(group + form.has_beta):
            row = t * group + h if h < group else count * group + t
            factor = scale if h < group else -X[g + form.decays]
            for i in range(K):
                readers[row * keys + i] = left[i] * (factor * X[step + h * K + i])
            for s in range(t + 1):
                past, own = desk.decayed + s * keys * number, x + (step + h * K) * number
                inner[row * CHUNK + s] = factor * dot(code, zeros[0], past, own, K)
    if count > 1:
        for s in range(0, CHUNK, layout.lanes):
            for i in range(0, keys, layout.lanes):
                source = desk.decayed + (s * keys + i) * number
                target = desk.turned + (i * CHUNK + s) * number
                transpose(code, SquareBlock(source, keys * number, target, CHUNK * number))


@compiled
def advance_columns(
    code: str,
    layout: PanelLayout,
    form: AttentionForm,
    desk: Desk,
    count: int,
    panel: Columns,
) -> None:
    """Advance a panel of columns by a chunk of `count` steps, after `read_steps`."""
    group, K, number, line = form.group, form.key_size, layout.number, layout.term
    keys, width = -(-K // layout.lanes) * layout.lanes, layout.term // layout.number
    v, o, read = pointer(code, panel.v), pointer(code, panel.o), pointer(code, desk.read)
    written, inner = pointer(code, desk.written), CHUNK * number

    rows = count * (group + form.has_beta)
    sums = (desk.zeros, 0, desk.read, line, panel.before_stride, desk.one, 0)
    readers = (rows, K, desk.readers, keys * number, panel.before)
    product(code, layout, desk.one, StridedProduct(*readers, *sums), 0)

    for t in range(count):
        step, u = t * panel.v_stride, t * width
        for j in range(panel.width):
            written[u + j] = v[step + j]
        if form.has_beta:
            beta, row = v[step + panel.to_beta], count * group + t
            for j in range(panel.width):
                written[u + j] = beta * written[u + j] + read[row * width + j]
            own = desk.written + u * number
            sums = (own, 0, own, 0, line, desk.one, 0)
            accumulate(code, StridedProduct(1, t, desk.inner + row * inner, 0, desk.written, *sums))
        own, row = desk.read + t * group * line, desk.inner + t * group * inner
        sums = (own, line, own, line, line, desk.one, 0)
        outputs = StridedProduct(group, t + 1, row, inner, desk.written, *sums)
        product(code, layout, desk.one, outputs, 0)
        for h in range(group):
            place, own = t * panel.o_stride + h * form.value_size, (t * group + h) * width
            for j in range(panel.width):
                o[place + j] = read[own + j]

    A, A_stride = (desk.turned, inner) if count > 1 else (desk.decayed, number)
    scaled = (panel.before, panel.before_stride, panel.after, panel.after_stride, line)
    state = StridedProduct(K, count, A, A_stride, desk.written, *scaled, desk.left, number)
    if count > 1:
        product(code, layout, desk.one, state, panel.streams)
    elif panel.streams:
        stream_outer(code, state)
    else:
        add_outer(code, state)


@compiled
def copy_rows(
    code: str,
    source: int,
    source_stride: int,
    target: int,
    target_stride: int,
    rows: int,
    count: int,
) -> None:
    """Copy `count` numbers of each of some rows; strides are in numbers."""
    a, b = pointer(code, source), pointer(code, target)
    for row in range(rows):
        for j in range(count):
            b[row * target_stride + j] = a[row * source_stride + j]


FORM = typeof(AttentionForm(1, 1, 1))
DESK = types.NamedUniTuple(types.int64, len(Desk._fields), Desk)


@cache
def attention_kernel(code: str) -> Callable[..., None]:
    """Compile or load the kernel of the shape with this code.

    It takes the first of some states and the one after the last; the form, with its scale; a desk;
    whether states are written past the caches; X [T, N, I], the states before, which may be absent
    or those after, Y [T, N, group * value_size] and the states after [N, key_size, value_size].
    """
    shape = Shape.of(code)
    layout, stamp, integer = shape.layout, sources(), types.int64
    arguments = (integer, integer, FORM, DESK, integer, *tensors(shape.dtype, 3, 3, 3, 3))

    @kernel(f"attend {code}", *arguments)
    def attend(
        first: int,
        last: int,
        form: AttentionForm,
        desk: Desk,
        streams: int,
        X: Any,
        past: Any,
        Y: Any,
        S: Any,
    ) -> None:
        stamp  # noqa: B018 -- part of the key of cached code
        T, N, width = X.shape
        group, K, V, number = form.group, form.key_size, form.value_size, layout.number
        panel, zeros = layout.term // number, pointer(code, desk.zeros)
        pointer(code, desk.one)[0], pointer(code, desk.scale)[0] = 1, form.scale
        for j in range(panel):
            zeros[j] = 0
        x, y, present = place(X, 0), place(Y, 0), place(S, 0)
        before = place(past, 0) or present
        of_v, of_decay, line = (group + 1) * K, (group + 1) * K + V, N * width
        columns = V % panel  # of the panel that is not whole
        for n in range(first, last):
            state = n * K * V * number
            old, new = before + state, present + state
            if not past.size:
                copy_rows(code, desk.zeros, 0, new, 1, K * V, 1)
            elif T == 0:
                copy_rows(code, old, V, new, V, K, V)
            at_rest = (V - columns) * number
            copy_rows(code, old + at_rest, V, desk.rest, panel, K, columns)
            done = 0
            while done < T:
                step = x + (done * N + n) * width * number
                decays = step + of_decay * number
                count = chunk_length(code, decays, line, form.decays, T - done)
                read_steps(code, layout, form, desk, step, line, count)
                streaming = streams and done + count == T
                for p in range(0, V, panel):
                    at, v = p * number, step + (of_v + p) * number
                    o = y + ((done * N + n) * group * V + p) * number
                    steps = (v, V - p + form.decays, line, o, N * group * V)
                    if p + panel <= V:
                        stride = V * number
                        rows = (old + at, stride, new + at, stride, streaming)
                        whole = Columns(panel, *rows, *steps)
                        advance_columns(code, layout, form, desk, count, whole)
                    else:
                        rows = (desk.rest, layout.term, desk.rest, layout.term, 0)
                        part = Columns(columns, *rows, *steps)
                        advance_columns(code, layout, form, desk, count, part)
                done, old = done + count, new
            if T:
                copy_rows(code, desk.rest, panel, new + at_rest, V, K, columns)

    return attend
