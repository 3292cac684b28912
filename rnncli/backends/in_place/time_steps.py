"""The in-place time steps of each cell, and their functions as a few NumPy calls.

The equations are those of `recurrence.cells`. A function `f(x, out)` writes to out, which may be x
itself; activations without a row are evaluated by their formula, which allocates arrays.

A kernel's `make` takes the buffers and functions that all steps of one direction share and returns
a function that runs some steps, each given as a tuple: `x`, the projected inputs or the addend of
the product with R; for a GRU also the projected inputs of its hidden gate; the operand of the
product; the previous H; a buffer for the new H. Gates and states are [H, N]. Everything else is
looked up once, before the first step.

A sigmoid gate may be stored as its divisor 1 + e^-x instead of as a factor, which saves a call and
a rounding: `scale` divides by the divisor or multiplies by the factor.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from rnncli.numerics import NumPyArithmetic
from rnncli.recurrence.activations import ACTIVATIONS, Activation
from rnncli.recurrence.cells import COMMON_OPTIONS, beyond, gru_step, lstm_step, rnn_step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rnncli.numerics import Array
    from rnncli.recurrence.cells import CellOptions
    from rnncli.recurrence.recurrence import Recurrence

Function: TypeAlias = "Callable[[Array, Array], object]"
Make: TypeAlias = "Callable[[Activation, Array], Function]"
Walk: TypeAlias = "Callable[[Iterable[tuple[Array, ...]]], None]"


_MATH = NumPyArithmetic()


def in_place(activation: Activation, buffer: Array, clip: float = math.inf) -> Function:
    """Return an in-place activation that clips its argument, with scratch memory of its shape."""
    function = _IN_PLACE.get(activation.function, _by_formula)(activation, buffer)
    return _of_clipped(function, buffer, clip)


def sigmoid_divisor(buffer: Array, clip: float = math.inf) -> Function:
    """Return the function 1 + e^x of a clipped argument, the divisor of a sigmoid of -x."""
    exp, add, one = np.exp, np.add, _number(1, buffer)

    def divisor(x: Array, out: Array) -> None:
        exp(x, out)
        add(out, one, out)

    return _of_clipped(divisor, buffer, clip)


def _of_clipped(function: Function, buffer: Array, clip: float) -> Function:
    if math.isinf(clip):
        return function
    bound = _between(-clip, clip, buffer)

    def clipped(x: Array, out: Array) -> None:
        bound(x, out)
        function(out, out)

    return clipped


def _between(low: float, high: float, buffer: Array) -> Callable[[Array, Array], None]:
    """Return a clipping function; NaN stays. Bounds are whole arrays, which NumPy vectorises."""
    lowest, highest = np.full_like(buffer, low), np.full_like(buffer, high)

    def bound(x: Array, out: Array) -> None:
        np.maximum(x, lowest, out=out)
        np.minimum(out, highest, out=out)

    return bound


def _number(value: float | None, buffer: Array) -> Array:
    """Return a number as a 0-dimensional array, which ufuncs handle faster than a float."""
    return np.full((), value or 0.0, buffer.dtype)


def _tanh(activation: Activation, buffer: Array) -> Function:
    del activation, buffer
    return np.tanh


def _sigmoid(activation: Activation, buffer: Array) -> Function:
    """e^x/(1 + e^x), whose negative tail is as accurate as e^x. NaN if e^x overflows."""
    del activation
    exp, add, divide, one = np.exp, np.add, np.divide, _number(1, buffer)

    def sigmoid(x: Array, out: Array) -> None:
        exp(x, out)
        add(out, one, buffer)
        divide(out, buffer, out)

    return sigmoid


def _relu(activation: Activation, buffer: Array) -> Function:
    del activation
    zero = np.zeros_like(buffer)
    return lambda x, out: np.maximum(x, zero, out=out)


def _affine(activation: Activation, buffer: Array) -> Function:
    alpha, beta = _number(activation.alpha, buffer), _number(activation.beta, buffer)

    def affine(x: Array, out: Array) -> None:
        np.multiply(x, alpha, out)
        np.add(out, beta, out)

    return affine


def _hard_sigmoid(activation: Activation, buffer: Array) -> Function:
    affine, bound = _affine(activation, buffer), _between(0, 1, buffer)

    def hard_sigmoid(x: Array, out: Array) -> None:
        affine(x, out)
        bound(out, out)

    return hard_sigmoid


def _scaled_tanh(activation: Activation, buffer: Array) -> Function:
    alpha, beta = _number(activation.alpha, buffer), _number(activation.beta, buffer)

    def scaled_tanh(x: Array, out: Array) -> None:
        np.multiply(x, beta, out)
        np.tanh(out, out)
        np.multiply(out, alpha, out)

    return scaled_tanh


def _softsign(activation: Activation, buffer: Array) -> Function:
    del activation
    one = _number(1, buffer)

    def softsign(x: Array, out: Array) -> None:
        np.abs(x, buffer)
        np.add(buffer, one, buffer)
        np.divide(x, buffer, out)

    return softsign


def _by_formula(activation: Activation, buffer: Array) -> Function:
    del buffer
    return lambda x, out: np.copyto(out, activation(_MATH, x))


_IN_PLACE: Mapping[Callable[..., Any], Make] = {
    ACTIVATIONS[name].function: make
    for name, make in {
        "Tanh": _tanh,
        "Sigmoid": _sigmoid,
        "Relu": _relu,
        "Affine": _affine,
        "HardSigmoid": _hard_sigmoid,
        "ScaledTanh": _scaled_tanh,
        "Softsign": _softsign,
    }.items()
}


@dataclass(slots=True, kw_only=True)
class StepBuffers:
    """The buffers and functions that the steps of one direction share, for some sequences."""

    gates: Array  # pre-activations, overwritten by gate values [G, H, N]. C may follow an LSTM's.
    places: Sequence[int]  # the index of each of the cell's gates in them
    hidden: Array  # the GRU's hidden gate, in `gates` or separate [H, N]
    spare: Array  # scratch memory of one gate [H, N]
    # functions that write R times a state plus x to their gates, see `Kernel.products`
    products: Sequence[Callable[[Array, Array], object]]
    functions: Sequence[Function]  # the cell's activations, of f, g, h
    # the application of a gate: `multiply` if f yields factors, `divide` if it yields divisors
    scale: Callable[[Array, Array, Array], object]
    C: Array  # the LSTM's cell state [H, N], overwritten by each step
    P: Array | None  # peephole weights [3, H, N], gates i, o, f; or None
    Rbh: Array | None  # recurrent bias of the GRU's hidden gate [H, N], or None
    options: CellOptions  # the lines of the cell's equations that hold


def _rnn(p: StepBuffers) -> Walk:
    (product,), (f,), i = p.products, p.functions, p.gates[0]

    def walk(steps: Iterable[tuple[Array, ...]]) -> None:
        for x, h, _, new in steps:
            product(h, x)
            f(i, new)

    return walk


def _gru(p: StepBuffers) -> Walk:
    """Step a GRU, whose reset gate scales the state, or its product with linear_before_reset."""
    (product, *of_reset), (f, g) = p.products, p.functions
    scale, subtract, add = p.scale, np.subtract, np.add
    (z, r), zr, hidden, spare = p.gates[:2], p.gates[:2], p.hidden, p.spare
    reset, Rbh = np.empty_like(spare), p.Rbh
    product_of_reset = of_reset[0] if of_reset else None

    def walk(steps: Iterable[tuple[Array, ...]]) -> None:
        for x, x_hidden, h, H, new in steps:
            product(h, x)
            f(zr, zr)
            if product_of_reset is not None:
                scale(H, r, reset)
                product_of_reset(reset, x_hidden)
            else:
                if Rbh is not None:
                    add(hidden, Rbh, hidden)
                scale(hidden, r, hidden)
                add(hidden, x_hidden, hidden)
            g(hidden, hidden)
            # (1 - z) (.) h + z (.) H with a single z saves a call.
            subtract(H, hidden, spare)
            scale(spare, z, spare)
            add(hidden, spare, new)

    return walk


def _lstm(p: StepBuffers) -> Walk:
    """Step an LSTM, with all three gates at once."""
    (product,), (f, g, h_of) = p.products, p.functions
    scale, scale_both, add = p.scale, _scaling_of_both(p), np.add
    iof, o, c, C = p.gates[:3], p.gates[p.places[1]], p.gates[3], p.C

    def walk(steps: Iterable[tuple[Array, ...]]) -> None:
        for x, h, _, new in steps:
            product(h, x)
            f(iof, iof)
            g(c, c)
            scale_both()
            add(C, c, C)
            h_of(C, c)
            scale(c, o, new)

    return walk


def _scaling_of_both(p: StepBuffers) -> Callable[[], object]:
    """Return a function that scales c by i and C by forget, in one call if adjacent."""
    scale, (i, _, forget, _), C = p.scale, p.places, p.C
    if forget == i + 1:
        both = p.gates[3:]
        return partial(scale, both, p.gates[i : forget + 1], both)
    i_gate, forget_gate, c = p.gates[i], p.gates[forget], p.gates[3]

    def scale_both() -> None:
        scale(c, i_gate, c)
        scale(C, forget_gate, C)

    return scale_both


def _lstm_gate_by_gate(p: StepBuffers) -> Walk:
    """Step an LSTM with peepholes or with a forget gate of 1 - it; o sees the previous or new C."""
    (product,), (f, g, h_of), peep = p.products, p.functions, _peepholes(p)
    add, multiply, subtract = np.add, np.multiply, np.subtract
    (i, o, forget, c), C = p.gates[:4], p.C
    one = np.ones((), p.gates.dtype) if p.options.input_forget else None
    previous = p.options.peephole_previous

    def walk(steps: Iterable[tuple[Array, ...]]) -> None:
        for x, h, _, new in steps:
            product(h, x)
            peep(0, i)
            f(i, i)
            if one is None:
                peep(2, forget)
                f(forget, forget)
            else:
                subtract(one, i, forget)
            g(c, c)
            multiply(i, c, c)
            if previous:
                peep(1, o)
            multiply(forget, C, C)
            add(C, c, C)
            if not previous:
                peep(1, o)
            f(o, o)
            h_of(C, c)
            multiply(o, c, new)

    return walk


def _peepholes(p: StepBuffers) -> Callable[[int, Array], None]:
    """Return a function that adds P (.) C to a gate, given its index in P; a no-op without P."""
    P, C, spare = p.P, p.C, p.spare
    if P is None:
        return lambda _, __: None

    def peep(k: int, gate: Array) -> None:
        np.multiply(P[k], C, spare)
        np.add(gate, spare, gate)

    return peep


class StackedGate(NamedTuple):
    """One of the gates computed by a product with [h, 1, x].

    Attributes:
        gate: the gate of the weights.
        of_x, of_h: whether it includes x with its bias, and h.
    """

    gate: int
    of_x: bool = True
    of_h: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The in-place implementation of a cell. Compared by identity."""

    make: Callable[[StepBuffers], Walk]  # function from the shared parts to one that runs steps
    products: tuple[slice, ...]  # the gates that each product with R computes
    # the gates whose projected inputs each argument of a step holds
    inputs: tuple[slice | int, ...]
    arguments: tuple[slice | int, ...]  # number of gates that each activation is called with
    # the order of the gates if one product computes as many as possible
    stacked: tuple[StackedGate, ...]
    divisors: int = 0  # the number of these, the first ones, that f can turn into divisors
    depth: int = sys.maxsize  # the number of inputs per partial sum, which limits rounding errors
    resets_bias: bool = False  # whether it takes Rbh apart from the biases of inputs


_I, _ZR, _HIDDEN, _ZRH = slice(0, 1), slice(0, 2), slice(2, 3), slice(0, 3)
_IOF, _IOFC = slice(0, 3), slice(0, 4)
_ALL = [StackedGate(gate) for gate in range(4)]
_OF_X, _OF_H = StackedGate(2, of_h=False), StackedGate(2, of_x=False)
# An RNN does not damp the errors of its sums, and inputs are larger than states.
_RNN = Kernel(_rnn, (_I,), (_I,), (0,), (*_ALL[:1],), depth=128)
_GRU = Kernel(_gru, (_ZR, _HIDDEN), (_ZR, 2), (_ZR, 2), (*_ALL[:2], _OF_X), divisors=2)
_GRU_LINEAR = replace(_GRU, products=(_ZRH,), stacked=(*_ALL[:2], _OF_H, _OF_X), resets_bias=True)
# With o in front, i and forget are neighbours, and so are c and C: see `_scaling_of_both`.
_OIFC = (_ALL[1], _ALL[0], _ALL[2], _ALL[3])
_LSTM = Kernel(_lstm, (_IOFC,), (_IOFC,), (_IOF, 3, 3), _OIFC, divisors=3)
_LSTM_GATE_BY_GATE = Kernel(_lstm_gate_by_gate, (_IOFC,), (_IOFC,), (0, 3, 3), (*_ALL,))


# The options that kernels evaluate.
_OPTIONS = COMMON_OPTIONS | {"peephole_previous"}
# Equations -> the kernel of a recurrence; others, such as a mutant's, have none.
_KERNELS: Mapping[Callable[..., object], Callable[[Recurrence], Kernel]] = {
    rnn_step: lambda _: _RNN,
    gru_step: lambda r: _GRU_LINEAR if r.options.linear_before_reset else _GRU,
    lstm_step: lambda r: _LSTM_GATE_BY_GATE if r.P is not None or r.options.input_forget else _LSTM,
}


def has_kernel(recurrence: Recurrence) -> bool:
    """Return whether a recurrence has a kernel: its cell's equations, options and products."""
    r = recurrence
    return r.cell.step in _KERNELS and r.quantiser is None and not beyond(r.options, _OPTIONS)


def kernel_of(recurrence: Recurrence) -> Kernel:
    """Return the kernel of a recurrence's cell."""
    return _KERNELS[recurrence.cell.step](recurrence)
