"""Threads that walk through time together, and where they wait for each other."""

from __future__ import annotations

import sys
from typing import Any

from numba import types

from rnncli.backends.compiled.compiling import compiled, instruction
from rnncli.backends.compiled.vector_lanes import ADDRESS, Builder, IRValue, pointer

# Looks at the counter, a few ns each, before a waiting thread offers its processor to others.
PATIENCE = 1000
# A counter that no number of arrivals makes positive: nobody waits any more.
DISSOLVED = -(1 << 62)
GIVE_WAY = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


@instruction
def arrive(_: Any, counter: Any) -> tuple[Any, Any]:
    """Add 1 to the int64 at an address, atomically; return what it was."""
    del counter

    def emit(_: Any, builder: Builder, __: Any, args: Any) -> IRValue:
        place = pointer(builder, args[0], ADDRESS)
        return builder.atomic_rmw("add", place, ADDRESS(1), "acq_rel")

    return types.intp(types.intp), emit


@instruction
def arrived(_: Any, counter: Any) -> tuple[Any, Any]:
    """Return the int64 at an address, as other threads have left it."""
    del counter

    def emit(_: Any, builder: Builder, __: Any, args: Any) -> IRValue:
        return builder.load_atomic(pointer(builder, args[0], ADDRESS), "acquire", 8)

    return types.intp(types.intp), emit


@compiled
def wait(counter: int, members: int) -> None:
    """Return once every member of the team has called this as often as the caller.

    Or at once, for good, where the team is DISSOLVED.

    Args:
        counter: address of an int64 that all members share, 0 at the start.
        members: how many there are.
    """
    if members == 1:
        return
    everyone = (arrive(counter) // members + 1) * members
    looks = 0
    while 0 <= arrived(counter) < everyone:
        looks += 1
        if looks > PATIENCE:
            GIVE_WAY()
