"""All that a kernel is told at run time: whole numbers, in one record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class KernelPlan(NamedTuple):
    """One direction of a recurrence, or some of its time steps.

    Addresses and strides are in bytes, absent tensors have address 0. Tensors are contiguous and in
    the kernel's dtype.

    Attributes:
        X: inputs [T, N, I].
        W: input weights [G, H, I].
        R: recurrent weights [G, H, H].
        Wb: input bias [G, H].
        Rb: recurrent bias [G, H].
        P: peephole weights [3, H].
        h0: initial H [N, H].
        c0: initial C [N, H].
        Y: H after each step [T, N, H]; padding is left as it is.
        Y_h: the last H [N, H].
        Y_c: the last C [N, H].
        order: the sequences, longest first, int64 [N]; absent where all are as long as X.
        lengths: theirs, in this order, int64 [N].
        active: how many are live at each step, int64 [T].
        numbers: alpha and beta of f, g and h, the bounds of clipping [8].
        sums: of a block of time [panels, rows, columns, lanes].
        states: H before and after a step, by turns; C; zt; rt (.) Ht-1 [5, N, units].
        gathered: the live inputs of a ragged block [rows, I].
        units: H, rounded up to whole panels.
        meeting: where the team's members wait for each other, an int64 that is 0 at first.
        bias: what the sums of a panel start from [panels, columns, lanes].
        packed_W: input weights [panels, I, width, lanes].
        packed_R: recurrent weights [panels, H, width, lanes].
        packed_P: peephole weights [3, units].
        packed: whether these four hold the weights already.
        T: steps of X.
        N: sequences.
        I: inputs.
        H: units.
        steps: of a block of time.
        Y_t: from step to step of Y.
        Y_n: from sequence to sequence of Y.
        done: steps that earlier calls have walked; the first call packs, if need be, and starts.
        total: steps of all calls; the last call finishes.
        reverse: whether from the last step to the first.
        input_forget: whether the forget gate is 1 - it.
        f: code of the activation f.
        g: code of the activation g.
        h: code of the activation h.
        members: how many they are.
        d: which direction it is.
    """

    X: int
    W: int
    R: int
    Wb: int
    Rb: int
    P: int
    h0: int
    c0: int
    Y: int
    Y_h: int
    Y_c: int
    order: int
    lengths: int
    active: int
    numbers: int
    sums: int
    states: int
    gathered: int
    units: int
    meeting: int
    bias: int
    packed_W: int
    packed_R: int
    packed_P: int
    packed: int
    T: int
    N: int
    I: int  # noqa: E741 -- the specification's letter
    H: int
    steps: int
    Y_t: int
    Y_n: int
    done: int
    total: int
    reverse: int
    input_forget: int
    f: int
    g: int
    h: int
    members: int
    d: int


RECORD = np.dtype([(name, np.int64) for name in KernelPlan._fields])
