"""What measurements depend on besides the code, and the environment they are made in."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.backends.threads import VARIABLE
from rnncli.executors.processes import BLAS_THREADS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# They make OpenBLAS take another processor for granted, at half the speed; ours is never told so.
DROPPED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
THREADS = (*BLAS_THREADS, VARIABLE)
# Without .pyc files imports take three times as long.
NO_PYC = "PYTHONDONTWRITEBYTECODE"
OTHERS = (NO_PYC, "NUMBA_DISABLE_JIT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
PACKAGES = ("numpy", "numba")


def surroundings() -> Mapping[str, str]:
    """Return the variables that are set and distort measurements."""
    return {n: os.environ[n] for n in (*THREADS, *DROPPED, *OTHERS) if n in os.environ}


def notes(also_dropped: Sequence[str] = ()) -> list[str]:
    """Say what becomes of such variables in the processes that are measured.

    Args:
        also_dropped: variables that are dropped besides `DROPPED`.
    """
    told = dict.fromkeys((*DROPPED, *also_dropped), "dropped for what is measured")
    told |= dict.fromkeys(THREADS, "replaced by --threads")
    found = surroundings().items()
    said = [f"{name}={value} is set: {told.get(name, 'it may distort')}" for name, value in found]
    if load() > cores() / 4:
        busy = f"others keep the machine busy (load {load():.1f} on {cores()} cores)"
        said.append(f"{busy}: ratios are blurred, the fastest rounds (--by fastest) least")
    return said


def environment(threads: int) -> dict[str, str]:
    """Return the environment of a process that is measured, with so many threads."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return {**kept, **dict.fromkeys(THREADS, str(threads))}


def facts() -> dict[str, str]:
    """Return processor, system and versions."""
    return {
        "processor": _processor(),
        "cores": str(cores()),
        "load": f"{load():.2f}",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def cores() -> int:
    """Return how many this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def load() -> float:
    """Return how many processes ran or wanted to, on average of the last minute; 0 if unknown."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or "unknown"
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    widest = next((w for w in ("avx512f", "avx2", "asimd") if re.search(rf"\b{w}\b", text)), "")
    return " ".join(filter(None, (name[1] if name else platform.machine(), widest)))
