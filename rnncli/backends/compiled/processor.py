"""The processor's vector registers, which decide the shape of the kernels."""

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
        number: number of registers.
    """

    bits: int
    number: int


@cache
def registers() -> Registers:
    """Return this processor's registers, with the width of the environment variable if it is set.

    Every width is correct on every processor, because LLVM splits vectors that are too wide.

    Raises:
        InvalidRequest: the variable is not a width.
    """
    features = llvmlite.binding.get_host_cpu_features()
    own = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    width = os.environ.get(VARIABLE, "").strip() or str(own)
    if width not in map(str, WIDTHS):
        widths = ", ".join(map(str, WIDTHS))
        raise InvalidRequest(
            f"environment variable {VARIABLE} must be one of {widths}, got '{width}'"
        )
    many = features.get("avx512vl") or platform.machine().lower() in {"aarch64", "arm64"}
    return Registers(int(width), 32 if many else 16)


def has_scaling() -> bool:
    """Return whether the processor can multiply by powers of two (AVX-512's scalef) at every width.

    The answer is that of the processor that Numba compiles for, which may be configured.
    """
    is_own = config.CPU_NAME is None and config.CPU_FEATURES is None
    return is_own and bool(llvmlite.binding.get_host_cpu_features().get("avx512vl"))
