"""Measuring implementations against each other in turns, each in its own process."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rnncli.bench import machine, stopwatch
from rnncli.bench.machine import MachineLimits, environment
from rnncli.bench.measurement import RAN, Measurement, WorkloadMeasurements, largest_error
from rnncli.errors import Unsupported
from rnncli.limits import OF_CONTESTS, Limits
from rnncli.packs.vector import Status
from rnncli.subjects.runtime import READY, START, question
from rnncli.supervision.connection import IsolatedProcess, LostError, Message
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.bench.contestants import Contestant
    from rnncli.bench.workloads import PlannedWorkload, Workload
    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

# Errors by which a process is lost.
LOST = (Status.CRASHED, Status.TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestTerms:
    """The conditions of a measurement."""

    # of each implementation, and of any answer, which includes compilation
    limits: Limits = OF_CONTESTS
    rounds: int = 15  # the number of turns for each
    seconds: float = 0.02  # the length of a turn; a longer call runs once
    clock: str = "wall"  # a name of `stopwatch.CLOCKS`
    statistic: str = "median"  # the statistic over all rounds
    compute: str = "native"  # the arithmetic of our backends, "float64" or "native"
    # the call of our backends that is timed: "evaluate", "bound" or "session"
    call: str = "evaluate"
    nodes: bool = False  # whether the nodes of models are also timed

    @property
    def threads(self) -> int:
        """The number of threads of each implementation."""
        return self.limits.threads or 1

    @property
    def timeout(self) -> float:
        """The seconds for any answer, including compilation."""
        return self.limits.timeout or math.inf


# What ratios depend on.
STORED = (
    "threads",
    "rounds",
    "seconds",
    "timeout",
    "clock",
    "statistic",
    "compute",
    "call",
    "nodes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestPlan:
    """The workloads, implementations and conditions of a benchmark."""

    workloads: Sequence[PlannedWorkload]  # the workloads, without tensors
    # the implementations; ratios are relative to the first that runs
    contestants: Sequence[Contestant]
    terms: ContestTerms  # the conditions
    notes: tuple[str, ...] = ()  # remarks for the user

    @property
    def turns(self) -> int:
        """The number of turns if no implementation fails."""
        return len(self.workloads) * len(self.contestants) * self.terms.rounds

    def header(self) -> dict[str, Any]:
        """Return the conditions that ratios depend on, as JSON values."""
        terms = {name: getattr(self.terms, name) for name in STORED}
        return {"baseline": self.contestants[0].name, **terms}


def contests(plan: ContestPlan, done: Callable[[int, str], None]) -> Iterator[WorkloadMeasurements]:
    """Measure every workload; yield each contest when it has finished, and tell of its turns."""
    terms = plan.terms
    with ExitStack() as stack:
        meter = Meter(terms)
        stack.callback(meter.end)
        for each in plan.workloads:
            done(0, f"{each.name}: generating tensors")
            workload = each.workload()
            meter.limits(workload)
            measured = _contest(workload, plan.contestants, terms, done)
            yield WorkloadMeasurements(workload, meter.limits(workload), measured, terms.statistic)


class Meter:
    """Measures the machine's limits, in a process like those of the implementations."""

    def __init__(self, terms: ContestTerms) -> None:
        self._terms = terms
        self._process = IsolatedProcess(machine.SERVE, environment=environment(terms.threads))
        self._best: dict[str, MachineLimits] = {}

    def limits(self, workload: Workload) -> MachineLimits:
        """Measure once more; return the best values so far in a workload's arithmetic.

        Raises:
            Unsupported: its process is lost.
        """
        wide = workload.vector.record.dtype == "float64" or self._terms.compute != "native"
        dtype = "float64" if wide else "float32"
        fields = {"dtype": dtype, "threads": self._terms.threads}
        deadline = time.monotonic() + self._terms.timeout
        try:
            answer = self._process.exchange(Message(0, machine.MEASURE, fields), deadline)
        except (LostError, TimeoutError) as error:
            raise Unsupported(f"the machine's limits cannot be measured: {error}") from None
        found = MachineLimits(**answer.fields)
        before = self._best.get(dtype, found)
        self._best[dtype] = MachineLimits(*map(max, zip(before, found, strict=True)))
        return self._best[dtype]

    def end(self) -> None:
        """End its process."""
        self._process.end()


def _contest(
    workload: Workload,
    contestants: Sequence[Contestant],
    terms: ContestTerms,
    done: Callable[[int, str], None],
) -> tuple[Measurement, ...]:
    with ExitStack() as stack:
        racers = []
        for contestant in contestants:
            racer = Racer(contestant, workload, terms)
            stack.callback(racer.end)
            done(0, f"{workload.name} {workload.operator} {contestant.name}: loading")
            racer.prepare()
            racers.append(racer)
        for _ in range(terms.rounds):
            for racer in racers:
                racer.turn()
                done(1, f"{workload.name} {workload.operator} {racer.measured.implementation}")
        for racer in racers:
            racer.try_others()
        if terms.nodes and workload.is_model:
            for racer in racers:
                racer.look_inside()
    return tuple(racer.measured for racer in racers)


class Racer:
    """One implementation on one workload, in its own process.

    Attributes:
        measured: its measurement, or the reason of its failure.
    """

    def __init__(self, contestant: Contestant, workload: Workload, terms: ContestTerms) -> None:
        self._contestant, self._workload, self._terms = contestant, workload, terms
        self._process = IsolatedProcess(stopwatch.SERVE, environment=environment(terms.threads))
        self._asked = 0
        self.measured = Measurement(
            workload.name, workload.operator, contestant.name, contestant.is_own
        )

    def prepare(self) -> None:
        """Start, load, warm up, and compare the outputs."""
        where, settings = self._contestant.where, dict(self._contestant.settings)
        order = {"runtime": where, "settings": settings, "threads": self._terms.threads}
        ready = self._answer(Message(0, START, order))
        if ready.kind != READY:
            status = ready.kind if ready.kind in LOST else "unusable"
            self._fail(status, ready.fields.get("message"))
            return
        self.measured.description = {k: printable(str(v)) for k, v in ready.fields.items()}
        if answer := self._loaded(self._workload.vector, self._workload.exact):
            for name in ("build", "first", "memory"):
                setattr(self.measured, name, answer.fields[name])

    def _loaded(self, vector: Vector, exact: Tensors) -> Message | None:
        """Load and run a vector and compare its outputs; return None if that fails."""
        request = question(self._next(), vector)
        request.fields.update(seconds=self._terms.seconds, clock=self._terms.clock)
        answer = self._answer(request)
        if answer.kind != Status.RAN:
            self._fail(answer.kind, answer.fields.get("message"))
            return None
        if missing := [name for name in exact if name not in answer.tensors]:
            self._fail(Status.REFUSED, f"returns no {', '.join(missing)}")
            return None
        self.measured.errors.append(largest_error(answer.tensors, exact))
        return answer

    def turn(self) -> None:
        """Time one turn, unless it has failed."""
        if (seconds := self._timed(stopwatch.TURN)) is not None:
            self.measured.seconds.append(seconds)

    def try_others(self) -> None:
        """Compare the outputs on other data as well, unless it has failed."""
        for vector, exact in self._workload.others:
            if self.measured.status == RAN:
                self._loaded(vector, exact)

    def look_inside(self) -> None:
        """Measure the nodes by operator, unless it has failed."""
        self.measured.nodes = self._timed(stopwatch.NODES)

    def _timed(self, kind: str) -> Any:
        """Return the seconds in an answer of a kind; None if it has failed, now or before."""
        if self.measured.status != RAN:
            return None
        answer = self._answer(Message(self._next(), kind))
        if answer.kind == kind:
            return answer.fields["seconds"]
        self._fail(answer.kind, answer.fields.get("message"))
        return None

    def end(self) -> None:
        """End its process."""
        self._process.end()

    def _next(self) -> int:
        self._asked += 1
        return self._asked

    def _answer(self, message: Message) -> Message:
        """Return its answer, or an answer that reports its end."""
        timeout = self._terms.timeout
        try:
            return self._process.exchange(message, time.monotonic() + timeout)
        except TimeoutError:
            kind, said = Status.TIMEOUT, f"gave no answer within {timeout:g} s"
        except LostError as error:
            kind, said = Status.CRASHED, str(error)
        return Message(message.number, kind, {"message": said})

    def _fail(self, status: str, message: object) -> None:
        """Remove it from the contest and end its process, which may still be busy."""
        self.measured.status, self.measured.message = str(status), printable(str(message))
        self._process.end()
