"""The spin barrier of threads that step through time together."""

from __future__ import annotations

import sys
from typing import Any

from numba import types

from rnncli.backends.compiled.compiling import compiled, instruction
from rnncli.backends.compiled.vector_lanes import ADDRESS, Builder, IRValue, pointer

# Polls of the counter, a few ns each, before a waiting thread yields its processor.
PATIENCE = 1000
# A counter value that stays negative after any number of arrivals, so that no thread waits.
DISSOLVED = -(1 << 62)
GIVE_WAY = types.ExternalFunction(
    "SwitchToThread" if sys.platform == "win32" else "sched_yield", types.int32()
)


@instruction
def arrive(_: Any, counter: Any) -> tuple[Any, Any]:
    """Atomically add 1 to the int64 at an address and return its old value."""
    del counter

    def emit(_: Any, builder: Builder, __: Any, args: Any) -> IRValue:
        place = pointer(builder, args[0], ADDRESS)
        return builder.atomic_rmw("add", place, ADDRESS(1), "acq_rel")

    return types.intp(types.intp), emit


@instruction
def arrived(_: Any, counter: Any) -> tuple[Any, Any]:
    """Return the int64 at an address, as last written by any thread."""
    del counter

    def emit(_: Any, builder: Builder, __: Any, args: Any) -> IRValue:
        return builder.load_atomic(pointer(builder, args[0], ADDRESS), "acquire", 8)

    return types.intp(types.intp), emit


@compiled
def wait(counter: int, members: int) -> None:
    """Wait until every member of the team has called this as often as the caller.

    If the team is DISSOLVED, return at once.

    Args:
        counter: address of an int64 that all members share, 0 at the start.
        members: the number of members.
    """
    if members == 1:
        return
    everyone = (arrive(counter) // members + 1) * members
    looks = 0
    while 0 <= arrived(counter) < everyone:
        looks += 1
        if looks > PATIENCE:
            GIVE_WAY()
