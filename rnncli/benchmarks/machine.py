"""What this machine can do: the limits that figures are compared with, measured beside them."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rnncli.subjects.messages import Channel, Message

if TYPE_CHECKING:
    from collections.abc import Callable

SERVE = "rnncli.benchmarks.machine:serve"
MEASURE = "measure"

# A matrix product large enough that its overhead is gone, small enough for a turn.
ORDER = 1024
# Above the caches of most machines.
COPIED = 64 << 20
ATTEMPTS = 8


class MachineLimits(NamedTuple):
    """Of one process with so many threads.

    Attributes:
        flops: additions and multiplications a second, in matrix products of NumPy's BLAS.
        bandwidth: bytes read and written a second, copying what no cache holds.
    """

    flops: float
    bandwidth: float


def serve(descriptor: int) -> None:
    """Measure whenever asked to, until the other end is closed."""
    channel = Channel(socket.socket(fileno=descriptor))
    with suppress(EOFError):
        while True:
            request = channel.receive()
            limits = measure(request.fields["dtype"], request.fields["threads"])
            channel.send(Message(request.number, MEASURE, limits._asdict()))


def measure(dtype: str, threads: int) -> MachineLimits:
    """Measure both limits, the best of several attempts each.

    Args:
        dtype: of the arithmetic, float32 or float64.
        threads: that copy; those of BLAS are the environment's.
    """
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
