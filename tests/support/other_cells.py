"""Cells that no table has: what holds for every cell is tried on these as well."""

import numpy as np

from rnncli.numerics import DTYPES
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import Cell
from rnncli.recurrence.recurrence import Direction, Recurrence


def minimal_gated_step(p, x, states):
    """Take a step of the minimal gated unit.

    f = s(Wf x + Rf h + b), c = tanh(Wc x + Rc (f (.) h) + b), h = (1 - f) (.) h + f (.) c
    """
    (H,) = states
    (f,) = p.f(x[:1] + p.R(H, slice(0, 1)))
    c = p.g(x[1] + p.R(f * H, slice(1, 2))[0])
    return ((1 - f) * H + f * c,)


def simple_step(p, x, states):
    """Take a step whose candidate is not activated.

    f = s(Wf x + Rf h + b), h = f (.) h + (1 - f) (.) (W x + b)
    """
    (H,) = states
    f = p.f(x[0] + p.R(H, slice(0, 1))[0])
    return (f * H + (1 - f) * x[1],)


def carried_step(p, x, states):
    """Take a step of two states, C in no activation.

    C = f (.) C - (1 - f) (.) c, h = o (.) C
    """
    H, C = states
    f, o, c = x + p.R(H)
    f = p.f(f)
    C = f * C - (1 - f) * p.g(c)
    return p.f(o) * C, C


def squared_step(p, x, states):
    """Take a step that is linear in nothing.

    h = s(W x + R (h (.) h - 2 h) + b)
    """
    (H,) = states
    return (p.f(x[0] + p.R(H * H - 2 * H)[0]),)


def row(name, gates, states, step):
    """Return a row as those of the package."""
    return Cell(name, gates, states, activations="fg", defaults=("Sigmoid", "Tanh"), step=step)


OTHER_CELLS = {
    "minimal": row("minimal", "fc", 1, minimal_gated_step),
    "simple": row("simple", "fc", 1, simple_step),
    "carried": row("carried", "foc", 2, carried_step),
    "squared": row("squared", "f", 1, squared_step),
}


def recurrence_of_cell(name, *, dtype="float32", T=6, N=3, I=4, H=5, D=2, seed=0, scale=0.5):  # noqa: E741
    """Return a recurrence of a cell, with normal inputs and every input given."""
    cell, own = OTHER_CELLS[name], DTYPES[dtype]
    generator = np.random.default_rng(seed)
    G = len(cell.gates)

    def normal(*shape, scale=scale):
        return generator.normal(0, scale, shape).astype(own.numpy)

    return Recurrence(
        cell=cell,
        dtype=own,
        X=normal(T, N, I, scale=1.0),
        W=normal(D, G, H, I),
        R=normal(D, G, H, H),
        Wb=normal(D, G, H),
        Rb=normal(D, G, H),
        P=None,
        initial=tuple(normal(D, N, H) for _ in range(cell.states)),
        lengths=None,
        directions=(Direction.FORWARD, Direction.REVERSE)[:D],
        activations=(tuple(ACTIVATIONS[name] for name in cell.defaults),) * D,
    )
