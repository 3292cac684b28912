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
    """

    X: int  # inputs [T, N, I]
    W: int  # input weights [G, H, I]
    R: int  # recurrent weights [G, H, H]
    Wb: int  # input bias [G, H]
    Rb: int  # recurrent bias [G, H]
    P: int  # peephole weights [3, H]
    h0: int  # initial H [N, H]
    c0: int  # initial C [N, H]
    Y: int  # H after each step [T, N, H]; padding is left as it is
    Y_h: int  # the last H [N, H]
    Y_c: int  # the last C [N, H]
    order: int  # the sequences, longest first, int64 [N]; absent if all are as long as X
    lengths: int  # their lengths in this order, int64 [N]
    active: int  # the number of live sequences at each step, int64 [T]
    numbers: int  # alpha and beta of f, g and h, the bounds of clipping [8]
    sums: int  # sums of a block of time [panels, rows, columns, lanes]
    states: int  # H before and after a step, alternating; C; zt; rt (.) Ht-1 [5, N, units]
    gathered: int  # the live inputs of a ragged block [rows, I]
    units: int  # H, rounded up to whole panels
    meeting: int  # the team's barrier, an int64 that is 0 at first
    bias: int  # initial values of a panel's sums [panels, columns, lanes]
    packed_W: int  # input weights [panels, I, width, lanes]
    packed_R: int  # recurrent weights [panels, H, width, lanes]
    packed_P: int  # peephole weights [3, units]
    packed: int  # whether these four already contain the weights
    T: int  # steps of X
    N: int  # sequences
    I: int  # noqa: E741 -- the specification's letter: inputs
    H: int  # units
    steps: int  # steps of a block of time
    Y_t: int  # stride of Y from step to step
    Y_n: int  # stride of Y from sequence to sequence
    done: int  # steps run by earlier calls; the first call packs the weights if needed
    total: int  # steps of all calls; the last call writes the last states
    reverse: int  # whether steps run from last to first
    input_forget: int  # whether the forget gate is 1 - it
    f: int  # code of the activation f
    g: int  # code of the activation g
    h: int  # code of the activation h
    members: int  # the number of members of the team
    d: int  # the index of the direction


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
