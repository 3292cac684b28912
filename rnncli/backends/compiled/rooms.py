"""One buffer for everything a scan keeps between its steps, and where in it each thing lies."""

from __future__ import annotations

from typing import NamedTuple

from rnncli.backends.compiled.shapes import COLUMNS

# Bytes of a cache line and of the widest vector: nothing shares a line with its neighbour.
LINE = 64


class Rooms(NamedTuple):
    """Offsets in bytes.

    Attributes:
        bias: of a panel's columns [panels, column, lane].
        W: packed input weights [panels, I, width, lane].
        R: packed recurrent weights [panels, H, width, lane].
        gates: sums of a block of time steps [panels, rows, column, lane].
        H: two states [2, N, units]: that before a step and that after it.
        C: cell states [N, units].
        z: update gates [N, units].
        reset: rt (.) Ht-1 [N, units].
        P: peephole weights [3, units].
        X: the live inputs of a ragged block [rows, I].
        end: the size of all.
    """

    bias: int
    W: int
    R: int
    gates: int
    H: int
    C: int
    z: int
    reset: int
    P: int
    X: int
    end: int


def rooms(
    panels: int, units: int, vector: int, width: int, number: int, N: int, I: int, H: int, rows: int
) -> Rooms:
    """Lay out the rooms one after the other.

    Args:
        panels: of all phases together.
        units: H, rounded up to whole panels.
        vector: bytes of one.
        width: columns of packed weights.
        number: bytes of one.
        N: sequences.
        I: inputs.
        H: units.
        rows: of a block of time steps.
    """
    row = COLUMNS * vector
    state = (N * units * number + LINE - 1) // LINE * LINE
    bias = 0
    W = bias + panels * row
    R = W + panels * I * width * vector
    gates = R + panels * H * width * vector
    at_H = gates + panels * rows * row
    C = at_H + 2 * state
    z = C + state
    reset = z + state
    P = reset + state
    X = P + (3 * units * number + LINE - 1) // LINE * LINE
    end = X + rows * I * number
    return Rooms(bias, W, R, gates, at_H, C, z, reset, P, X, end)
