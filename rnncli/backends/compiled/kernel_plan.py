"""The run-time parameters of a kernel: integers in one record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class KernelPlan(NamedTuple):
    """The plan of one direction of a recurrence, or of some of its time steps.

    Addresses and strides are in bytes; absent tensors have address 0. Tensors are contiguous and
    have the kernel's dtype.

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
        order: the sequences, longest first, int64 [N]; absent if all are as long as X.
        lengths: their lengths in this order, int64 [N].
        active: the number of live sequences at each step, int64 [T].
        numbers: alpha and beta of f, g and h, the bounds of clipping [8].
        sums: sums of a block of time [panels, rows, columns, lanes].
        states: H before and after a step, alternating; C; zt; rt (.) Ht-1 [5, N, units].
        gathered: the live inputs of a ragged block [rows, I].
        units: H, rounded up to whole panels.
        meeting: the team's barrier, an int64 that is 0 at first.
        bias: initial values of a panel's sums [panels, columns, lanes].
        packed_W: input weights [panels, I, width, lanes].
        packed_R: recurrent weights [panels, H, width, lanes].
        packed_P: peephole weights [3, units].
        packed: whether these four already contain the weights.
        T: steps of X.
        N: sequences.
        I: inputs.
        H: units.
        steps: steps of a block of time.
        Y_t: stride of Y from step to step.
        Y_n: stride of Y from sequence to sequence.
        done: steps run by earlier calls; the first call packs the weights if needed.
        total: steps of all calls; the last call writes the last states.
        reverse: whether steps run from last to first.
        input_forget: whether the forget gate is 1 - it.
        f: code of the activation f.
        g: code of the activation g.
        h: code of the activation h.
        members: the number of members of the team.
        d: the index of the direction.
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
