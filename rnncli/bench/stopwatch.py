"""The process of one implementation, which prepares a workload and times its calls.

It answers RUN and a vector like the process of any runtime, and adds the times; TURN with the
seconds of one call; NODES with the seconds of the nodes by operator, if the runtime can measure
them.
"""

from __future__ import annotations

import gc
import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.packs.vector import Status
from rnncli.subjects.runtime import RUN, Preparing, Refusal, put, started, vector_of
from rnncli.supervision.connection import Message, served

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

# What a turn measures: time that passed, or time of the process on all processors.
CLOCKS: Mapping[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
SERVE = "rnncli.bench.stopwatch:serve"
TURN, NODES = "turn", "nodes"
# The number of warm-up calls: some runtimes optimise after the first, others after the second.
LEAST_CALLS = 3
# Since its last turn, other processes have used the caches, and their threads may still spin; an
# idle second processor of a virtual machine is slow to come back: after 3 ms, two threads on `long`
# still took twice their time. So a turn begins with calls that are not counted. A call longer than
# this many turns gains nothing from them.
SECONDS_TO_SETTLE = 0.1
LONG_CALL = 10


def serve(descriptor: int) -> None:
    """Answer requests on a socket until its other end is closed."""
    with served(descriptor) as channel:
        runtime = started(channel)
        stopwatch = Stopwatch(runtime)
        while runtime is not None:
            channel.send(stopwatch.answer(channel.receive()))


class Stopwatch:
    """Times the calls of one prepared workload."""

    def __init__(self, runtime: Preparing) -> None:
        self._runtime = runtime
        self._vector: Vector
        self._call: Callable[[], Any]
        self._seconds = self._one = 0.0
        self._calls, self._clock = 1, CLOCKS["wall"]
        self._took: dict[str, Any] = {}

    def describe(self) -> Mapping[str, str]:
        """Return the runtime's description."""
        return self._runtime.describe()

    def answer(self, request: Message) -> Message:
        """Answer a request; an exception from a runtime that ran before is a crash."""
        answers = {RUN: self._prepared, TURN: self._turn, NODES: self._nodes}
        try:
            return answers[request.kind](request)
        except Exception as error:  # noqa: BLE001 -- whatever a runtime raises
            said = f"fails when called again: {error}"
            return Message(request.number, Status.CRASHED, {"message": said})

    def _prepared(self, request: Message) -> Message:
        """Prepare and warm up; answer with an attempt that has the outputs of one call."""
        self._seconds = request.fields.pop("seconds")
        self._clock = CLOCKS[request.fields.pop("clock")]
        vector = vector_of(request)  # whose arrays lie side by side, at any address
        inputs = {name: values.copy() for name, values in vector.inputs.items()}
        attempt = put(self.run, replace(vector, inputs=inputs))
        said = {"message": attempt.message, **self._took}
        return Message(request.number, attempt.status, said, attempt.outputs)

    def run(self, vector: Vector) -> Tensors:
        """Prepare a vector's model, warm it up and return its outputs."""
        if not hasattr(self._runtime, "prepare"):
            raise Refusal("cannot be timed: it has no method prepare")
        gc.collect()
        before = None  # the resident memory, bytes, where its peak can be reset
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            before = _memory("VmRSS")
        self._vector = vector
        start = time.perf_counter()
        prepared = self._runtime.prepare(vector)
        built = time.perf_counter()
        prepared.call()
        first = time.perf_counter()
        self._call = prepared.call

        # The seconds of one warm call.
        taken: list[float] = []
        while len(taken) < LEAST_CALLS or sum(taken) < self._seconds:
            taken.append(self._timed(1))
        self._one = min(taken)
        self._calls = max(1, int(self._seconds / self._one))
        self._took = {
            "build": built - start,
            "first": first - built,
            "memory": None if before is None else max(0, _memory("VmHWM") - before),
        }
        return prepared.named(prepared.call())

    def _turn(self, request: Message) -> Message:
        """Time as many calls as fit into a turn."""
        gc.collect()
        gc.disable()
        try:
            if self._one < LONG_CALL * self._seconds:
                spent = self._timed(1)
                while spent < SECONDS_TO_SETTLE:
                    spent += self._timed(1)
            seconds = self._timed(self._calls, self._clock) / self._calls
        finally:
            gc.enable()
        return Message(request.number, TURN, {"seconds": seconds})

    def _nodes(self, request: Message) -> Message:
        tell = getattr(self._runtime, "node_seconds", None)
        runs = max(LEAST_CALLS, self._calls)
        found = tell(self._vector, runs) if tell else None
        return Message(request.number, NODES, {"seconds": found})

    def _timed(self, calls: int, clock: Callable[[], float] = time.perf_counter) -> float:
        call = self._call
        start = clock()
        for _ in range(calls):
            call()
        return clock() - start


def _memory(name: str) -> int:
    """Return an entry of /proc/self/status, in bytes; see proc(5)."""
    text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(rf"^{name}:\s*(\d+) kB", text, re.MULTILINE)
    return int(found[1]) << 10 if found else 0
