"""One time step of each cell, in place; the equations are those of `recurrence.cells`.

A kernel's `make` takes the parts that the steps of one direction share and returns the step. That
is called with the projected inputs, then the previous H, as products want it and in the order of
the gates, then room for the new H in that order. What it needs is looked up once, before time runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rnncli.recurrence.cells import gru_step, lstm_step, rnn_step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.backends.in_place.activations import Function
    from rnncli.backends.in_place.layouts import Product
    from rnncli.numerics import Array
    from rnncli.recurrence.recurrence import Recurrence

Step: TypeAlias = "Callable[..., None]"


@dataclass(slots=True, kw_only=True)
class Parts:
    """What the steps of one direction share, for so many sequences.

    Attributes:
        gates: pre-activations, and what becomes of them [G, *unit].
        spare: memory to compute with, of a gate [*unit].
        products: each writes a state's product with R into its gates, see `Kernel.products`.
        functions: activations f, g, h, as many as the cell has.
        C: the LSTM's cell state [*unit], overwritten by each step.
        P: peephole weights [3, *unit], gates i, o, f; or None.
        Rbh: recurrent bias of the GRU's hidden gate [*unit], or None where there is none to reset.
        operand: room for r (.) H as products want it.
        operand_unit: the same memory in the order of the gates.
        input_forget: the LSTM's forget gate is 1 - it.
    """

    gates: Array
    spare: Array
    products: Sequence[Product]
    functions: Sequence[Function]
    C: Array
    P: Array | None
    Rbh: Array | None
    operand: Array
    operand_unit: Array
    input_forget: bool


def _rnn(p: Parts) -> Step:
    (product,), (f,), add = p.products, p.functions, np.add
    gates, i = p.gates, p.gates[0]

    def step(x: Array, h: Array, _: Array, new: Array) -> None:
        product(h)
        add(gates, x, gates)
        f(i, new)

    return step


def _gru(p: Parts) -> Step:
    (product, product_of_reset), (f, g) = p.products, p.functions
    add, multiply, blend = np.add, np.multiply, _blend(p)
    (_, r, hidden), zr = p.gates, p.gates[:2]
    reset, reset_unit = p.operand, p.operand_unit

    def step(x: Array, x_hidden: Array, h: Array, H: Array, new: Array) -> None:
        product(h)
        add(zr, x, zr)
        f(zr, zr)
        multiply(r, H, reset_unit)
        product_of_reset(reset)
        add(hidden, x_hidden, hidden)
        g(hidden, hidden)
        blend(H, new)

    return step


def _gru_linear_before_reset(p: Parts) -> Step:
    (product,), (f, g) = p.products, p.functions
    add, multiply, blend = np.add, np.multiply, _blend(p)
    (_, r, hidden), zr = p.gates, p.gates[:2]
    Rbh = p.Rbh

    def step(x: Array, x_hidden: Array, h: Array, H: Array, new: Array) -> None:
        product(h)
        add(zr, x, zr)
        f(zr, zr)
        if Rbh is not None:
            add(hidden, Rbh, hidden)
        multiply(r, hidden, hidden)
        add(hidden, x_hidden, hidden)
        g(hidden, hidden)
        blend(H, new)

    return step


def _blend(p: Parts) -> Callable[[Array, Array], None]:
    """(1 - z) (.) h + z (.) H, with z once: a call less."""
    (z, _, hidden), spare = p.gates, p.spare
    subtract, multiply, add = np.subtract, np.multiply, np.add

    def blend(H: Array, new: Array) -> None:
        subtract(H, hidden, spare)
        multiply(z, spare, spare)
        add(hidden, spare, new)

    return blend


def _lstm(p: Parts) -> Step:
    """All three gates at once."""
    (product,), (f, g, h_of) = p.products, p.functions
    add, multiply = np.add, np.multiply
    gates, (i, o, forget, c), C = p.gates, p.gates, p.C
    iof = p.gates[:3]

    def step(x: Array, h: Array, _: Array, new: Array) -> None:
        product(h)
        add(gates, x, gates)
        f(iof, iof)
        g(c, c)
        multiply(i, c, c)
        multiply(forget, C, C)
        add(C, c, C)
        h_of(C, c)
        multiply(o, c, new)

    return step


def _lstm_gate_by_gate(p: Parts) -> Step:
    """With peepholes, which o needs from the new C, or with a forget gate of 1 - it."""
    (product,), (f, g, h_of), peep = p.products, p.functions, _peepholes(p)
    add, multiply, subtract = np.add, np.multiply, np.subtract
    gates, (i, o, forget, c), C = p.gates, p.gates, p.C
    one = np.ones((), gates.dtype) if p.input_forget else None

    def step(x: Array, h: Array, _: Array, new: Array) -> None:
        product(h)
        add(gates, x, gates)
        peep(0, i)
        f(i, i)
        if one is None:
            peep(2, forget)
            f(forget, forget)
        else:
            subtract(one, i, forget)
        g(c, c)
        multiply(i, c, c)
        multiply(forget, C, C)
        add(C, c, C)
        peep(1, o)
        f(o, o)
        h_of(C, c)
        multiply(o, c, new)

    return step


def _peepholes(p: Parts) -> Callable[[int, Array], None]:
    """Return what adds P (.) C to a gate, by its place in P; absent P add nothing."""
    P, C, spare = p.P, p.C, p.spare
    if P is None:
        return lambda _, __: None

    def peep(k: int, gate: Array) -> None:
        np.multiply(P[k], C, spare)
        np.add(gate, spare, gate)

    return peep


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """How a cell is stepped; each is equal to itself alone.

    Attributes:
        make: parts -> step.
        products: the gates that each product with R makes.
        inputs: the gates whose projected inputs each argument of the step holds.
        arguments: gates of the shape that each activation is called with.
    """

    make: Callable[[Parts], Step]
    products: tuple[slice, ...]
    inputs: tuple[slice | int, ...]
    arguments: tuple[slice | int, ...]


_I, _ZR, _HIDDEN, _ZRH = slice(0, 1), slice(0, 2), slice(2, 3), slice(0, 3)
_IOF, _IOFC = slice(0, 3), slice(0, 4)
_RNN = Kernel(_rnn, (_I,), (_I,), (0,))
_GRU = Kernel(_gru, (_ZR, _HIDDEN), (_ZR, 2), (_ZR, 2))
_GRU_LINEAR = Kernel(_gru_linear_before_reset, (_ZRH,), (_ZR, 2), (_ZR, 2))
_LSTM = Kernel(_lstm, (_IOFC,), (_IOFC,), (_IOF, 3, 3))
_LSTM_GATE_BY_GATE = Kernel(_lstm_gate_by_gate, (_IOFC,), (_IOFC,), (0, 3, 3))


def _of_lstm(recurrence: Recurrence) -> Kernel:
    plain = recurrence.P is None and not recurrence.input_forget
    return _LSTM if plain else _LSTM_GATE_BY_GATE


# The equations -> the kernel of a recurrence; other equations, such as a mutant's, have none.
_KERNELS: Mapping[Callable[..., object], Callable[[Recurrence], Kernel]] = {
    rnn_step: lambda _: _RNN,
    gru_step: lambda recurrence: _GRU_LINEAR if recurrence.linear_before_reset else _GRU,
    lstm_step: _of_lstm,
}


def kernel_of(recurrence: Recurrence) -> Kernel | None:
    """Return how the cell of a recurrence is stepped, or None for equations unknown here."""
    found = _KERNELS.get(recurrence.cell.step)
    return None if found is None else found(recurrence)
