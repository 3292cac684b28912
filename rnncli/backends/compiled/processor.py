"""What of the processor decides the shape of the kernels: width and number of its registers."""

from __future__ import annotations

import os
import platform
from functools import cache
from typing import NamedTuple

import llvmlite.binding
from numba.core import config

from rnncli.errors import InvalidRequest

VARIABLE = "RNNCLI_VECTOR_BITS"
WIDTHS = (512, 256, 128)


class Registers(NamedTuple):
    """The vector registers that kernels are written for.

    Attributes:
        bits: of one register.
        number: of them.
    """

    bits: int
    number: int


@cache
def registers() -> Registers:
    """Return this processor's, or as wide ones as the environment variable says.

    Any width is correct anywhere: LLVM composes what the processor does not have.

    Raises:
        InvalidRequest: the variable holds something else than a width.
    """
    features = llvmlite.binding.get_host_cpu_features()
    own = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    wanted = os.environ.get(VARIABLE, "").strip() or str(own)
    if wanted not in map(str, WIDTHS):
        widths = ", ".join(map(str, WIDTHS))
        raise InvalidRequest(
            f"environment variable {VARIABLE} must be one of {widths}, got '{wanted}'"
        )
    many = features.get("avx512vl") or platform.machine().lower() in {"aarch64", "arm64"}
    return Registers(int(wanted), 32 if many else 16)


def has_scaling() -> bool:
    """Return whether an instruction multiplies by powers of two: AVX-512's scalef, at every width.

    Numba may have been told to compile for another processor than this one.
    """
    is_own = config.CPU_NAME is None and config.CPU_FEATURES is None
    return is_own and bool(llvmlite.binding.get_host_cpu_features().get("avx512vl"))
