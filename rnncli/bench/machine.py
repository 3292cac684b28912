"""The machine of a measurement: limits, processors and libraries."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.backends.threads import VARIABLE
from rnncli.jobs.processes import BLAS_THREADS
from rnncli.supervision.connection import Message, served

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


SERVE = "rnncli.bench.machine:serve"
MEASURE = "measure"

# A matrix product large enough to hide its overhead and small enough for a turn.
ORDER = 1024
# Larger than the caches of most machines.
COPIED = 64 << 20
ATTEMPTS = 8


class MachineLimits(NamedTuple):
    """The limits of one process with a number of threads."""

    flops: float  # additions and multiplications per second, in matrix products of NumPy's BLAS
    bandwidth: float  # bytes read and written per second, when copying more than any cache holds


def serve(descriptor: int) -> None:
    """Measure on each request until the other end of the socket is closed."""
    with served(descriptor) as channel:
        while True:
            request = channel.receive()
            limits = measure(request.fields["dtype"], request.fields["threads"])
            channel.send(Message(request.number, MEASURE, limits._asdict()))


def measure(dtype: str, threads: int) -> MachineLimits:
    """Measure both limits, the best of several attempts; the environment sets BLAS's threads."""
    a = np.full((ORDER, ORDER), 0.5, dtype)
    b, c = a.copy(), a.copy()
    product = _fastest(lambda: np.matmul(a, b, out=c))
    with ThreadPoolExecutor(threads) as pool:
        pairs = [
            (np.zeros(n, np.uint8), np.ones(n, np.uint8)) for n in [COPIED // threads] * threads
        ]
        copy = _fastest(lambda: list(pool.map(lambda pair: np.copyto(*pair), pairs)))
    return MachineLimits(2 * ORDER**3 / product, 2 * COPIED / copy)


def _fastest(function: Callable[[], object]) -> float:
    return min(_seconds(function) for _ in range(ATTEMPTS))


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


# These make OpenBLAS assume another processor, at half the speed; our backends do not see them.
DROPPED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
THREADS = (*BLAS_THREADS, VARIABLE)
# Without .pyc files imports take three times as long.
NO_PYC = "PYTHONDONTWRITEBYTECODE"
OTHERS = (NO_PYC, "NUMBA_DISABLE_JIT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
PACKAGES = ("numpy", "numba")


def surroundings() -> Mapping[str, str]:
    """Return the environment variables that are set and distort measurements."""
    return {n: os.environ[n] for n in (*THREADS, *DROPPED, *OTHERS) if n in os.environ}


def notes(also_dropped: Sequence[str] = ()) -> list[str]:
    """Return remarks on such variables in the measured processes, where some more are dropped."""
    effects = dict.fromkeys((*DROPPED, *also_dropped), "dropped for the measured processes")
    effects |= dict.fromkeys(THREADS, "replaced by --threads")

    remarks = [
        f"{name}={value} is set: {effects.get(name, 'it may distort')}"
        for name, value in surroundings().items()
    ]
    if load() > cores() / 4:
        busy = f"other processes keep the machine busy (load {load():.1f} on {cores()} cores)"
        remarks.append(f"{busy}: ratios are less precise, those of --by fastest least affected")
    return remarks


def environment(threads: int) -> dict[str, str]:
    """Return the environment of a measured process with a number of threads."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return {**kept, **dict.fromkeys(THREADS, str(threads))}


def facts() -> dict[str, str]:
    """Return processor, system and versions."""
    versions = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "processor": _processor(),
        "cores": str(cores()),
        "load": f"{load():.2f}",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **versions,
    }


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def load() -> float:
    """Return the machine's load average of the last minute; 0 if unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or "unknown"
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    widest = next((w for w in ("avx512f", "avx2", "asimd") if re.search(rf"\b{w}\b", text)), "")
    return " ".join(filter(None, (name[1] if name else platform.machine(), widest)))
