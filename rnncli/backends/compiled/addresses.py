"""Tensor addresses, written into kernel plans by compiled code.

Obtaining one address in NumPy costs 0.8 us.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from numba import types

from rnncli.backends.compiled.compiling import inlined, kernel, plan_at, pointer, sources
from rnncli.backends.compiled.kernel_plan import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable

STRIDE = RECORD.itemsize


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

    Args:
        plan: the plan.
        packed: the address of a record of packed weights.
        X: inputs [T, N, I].
        h0: initial H [D, N, H].
        c0: initial C [D, N, H].
        Y: H after each step [T, D, N, H].
        Y_h: last H [D, N, H].
        Y_c: last C [D, N, H].
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
