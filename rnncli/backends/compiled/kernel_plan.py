"""Kernel plans: a kernel's run-time parameters, and the compiled code that writes addresses there.

Obtaining one address in NumPy costs 0.8 us.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from rnncli.backends.compiled.compiling import inlined, instruction, kernel, pointer, sources

if TYPE_CHECKING:
    from collections.abc import Callable


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


STRIDE = RECORD.itemsize


@instruction
def plan_at(_: Any, address: Any) -> tuple[Any, Any]:
    """Return the KernelPlan at an address."""
    kind = from_dtype(RECORD)

    def emit(context: Any, builder: Any, _: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return kind(address), emit


@inlined
def place(tensor: Any, d: int) -> Any:
    """Return the address of one direction of a tensor [D, ...]; 0 if the tensor is absent."""
    return types.int64(tensor.ctypes.data) + d * tensor.strides[0] if tensor.size else 0


def tensors(dtype: str, *dimensions: int) -> list[Any]:
    """Return the Numba types of contiguous arrays with the given numbers of dimensions."""
    return [types.Array(getattr(types, dtype), n, "C", readonly=True) for n in dimensions]


@inlined
def attach(plan: Any, packed: int, X: Any, h0: Any, c0: Any, Y: Any, Y_h: Any, Y_c: Any) -> None:
    """Write the addresses that change at each call into a KernelPlan.

    Tensors are those of all directions: states [D, N, H], Y [T, D, N, H]; `packed` is the address
    of a record of packed weights.
    """
    weights = pointer("int64", packed)
    plan.bias, plan.packed_W, plan.packed_R = weights[0], weights[1], weights[2]
    plan.packed_P, plan.packed = weights[3], weights[4]
    plan.T = X.shape[0]
    plan.X = place(X, 0)
    plan.h0, plan.c0 = place(h0, plan.d), place(c0, plan.d)
    plan.Y = types.int64(Y.ctypes.data) + plan.d * Y.strides[1] if Y.size else 0
    plan.Y_t, plan.Y_n = Y.strides[0], Y.strides[2]
    plan.Y_h, plan.Y_c = place(Y_h, plan.d), place(Y_c, plan.d)


@cache
def weights_locator(dtype: str) -> Callable[..., None]:
    """Return a function that writes the addresses of unpacked weights into KernelPlans.

    It takes the address of the first plan, W, R [D, G, H, K], Wb, Rb [D, G, H] and P [D, 3, H].
    """
    stamp = sources()

    @kernel(f"locate weights {dtype}", types.int64, *tensors(dtype, 4, 4, 3, 3, 3))
    def locate(address: int, W: Any, R: Any, Wb: Any, Rb: Any, P: Any) -> None:
        stamp  # noqa: B018 -- part of the key of cached code
        for d in range(R.shape[0]):
            plan = plan_at(address + d * STRIDE)
            plan.W, plan.R = place(W, d), place(R, d)
            plan.Wb, plan.Rb, plan.P = place(Wb, d), place(Rb, d), place(P, d)

    return locate
