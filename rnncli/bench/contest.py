"""Measuring implementations against each other: in turns, each in a process of its own."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rnncli.bench import machine, stopwatch
from rnncli.bench.machine import MachineLimits, environment
from rnncli.bench.measurement import RAN, Measurement, WorkloadMeasurements, largest_error
from rnncli.errors import Unsupported
from rnncli.packs.attempt import Status
from rnncli.subjects.supervision.messages import Message
from rnncli.subjects.supervision.programs import printable
from rnncli.subjects.supervision.python_process import IsolatedProcess, LostError
from rnncli.subjects.worker import READY, START, question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.bench.contestants import Contestant
    from rnncli.bench.workloads import Planned, Workload
    from rnncli.formats.format import Tensors
    from rnncli.packs.vector import Vector

# How a process is lost.
LOST = (Status.CRASHED, Status.TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestTerms:
    """How is measured.

    Attributes:
        threads: how many each implementation may use.
        rounds: how often each has its turn.
        seconds: that a turn lasts; a longer call is called once.
        timeout: seconds for any answer, in which a kernel may be compiled.
        statistic: what stands for all rounds.
        compute: of our backends, "float64" or "native".
        call: what is timed of our backends: "evaluate", "bound" or "session".
        nodes: whether the nodes of models are timed as well.
    """

    threads: int = 1
    rounds: int = 15
    seconds: float = 0.02
    timeout: float = 120.0
    statistic: str = "median"
    compute: str = "native"
    call: str = "evaluate"
    nodes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestPlan:
    """All that is measured.

    Attributes:
        workloads: not made yet.
        contestants: the first that runs is what ratios refer to.
        terms: how.
        notes: what the user should know of it.
    """

    workloads: Sequence[Planned]
    contestants: Sequence[Contestant]
    terms: ContestTerms
    notes: tuple[str, ...] = ()

    @property
    def turns(self) -> int:
        """How many there are, if none fails."""
        return len(self.workloads) * len(self.contestants) * self.terms.rounds

    def header(self) -> dict[str, Any]:
        """Return what ratios depend on, as JSON has it."""
        return {"baseline": self.contestants[0].name, **asdict(self.terms)}


def contests(plan: ContestPlan, done: Callable[[int, str], None]) -> Iterator[WorkloadMeasurements]:
    """Measure every workload; yield each contest when it is over.

    Args:
        plan: what is measured, and how.
        done: called with a number of turns that are over, and what is measured.
    """
    terms = plan.terms
    with ExitStack() as stack:
        meter = Meter(terms)
        stack.callback(meter.end)
        for each in plan.workloads:
            done(0, f"{each.name}: making its tensors")
            workload = each.workload()
            meter.limits(workload)
            measured = _contest(workload, plan.contestants, terms, done)
            yield WorkloadMeasurements(workload, meter.limits(workload), measured, terms.statistic)


class Meter:
    """Measures what the machine can do, in a process like those of the implementations.

    Args:
        terms: whose threads and arithmetic count.
    """

    def __init__(self, terms: ContestTerms) -> None:
        self._terms = terms
        self._process = IsolatedProcess(machine.SERVE, environment=environment(terms.threads))
        self._best: dict[str, MachineLimits] = {}

    def limits(self, workload: Workload) -> MachineLimits:
        """Measure once more, and return the best so far in the arithmetic of a workload.

        Raises:
            Unsupported: its process is lost.
        """
        wide = workload.vector.record.get("dtype") == "float64" or self._terms.compute != "native"
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
    """One implementation at one workload, in its own process.

    Args:
        contestant: which implementation.
        workload: what it is given.
        terms: how is measured.

    Attributes:
        measured: what came of it; when it failed, why.
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
            was_lost = ready.kind in LOST
            self._fail(ready.kind if was_lost else "unusable", str(ready.fields.get("message")))
            return
        self.measured.description = {k: printable(str(v)) for k, v in ready.fields.items()}
        if answer := self._loaded(self._workload.vector, self._workload.exact):
            for name in ("build", "first", "memory"):
                setattr(self.measured, name, answer.fields[name])

    def _loaded(self, vector: Vector, exact: Tensors) -> Message | None:
        """Load and run a vector and compare its outputs; None when that has failed."""
        request = question(self._next(), vector)
        request.fields["seconds"] = self._terms.seconds
        answer = self._answer(request)
        if answer.kind != Status.RAN:
            self._fail(answer.kind, str(answer.fields.get("message")))
            return None
        missing = [name for name in exact if name not in answer.tensors]
        if missing:
            self._fail(Status.REFUSED, f"gives no {', '.join(missing)}")
            return None
        self.measured.errors.append(largest_error(answer.tensors, exact))
        return answer

    def turn(self) -> None:
        """Time one turn, unless it has failed."""
        if self.measured.status != RAN:
            return
        answer = self._answer(Message(self._next(), stopwatch.TURN))
        if answer.kind == stopwatch.TURN:
            self.measured.seconds.append(answer.fields["seconds"])
        else:
            self._fail(answer.kind, str(answer.fields.get("message")))

    def try_others(self) -> None:
        """Compare the outputs of the other data, too, unless it has failed."""
        for vector, exact in self._workload.others:
            if self.measured.status == RAN:
                self._loaded(vector, exact)

    def look_inside(self) -> None:
        """Ask what the nodes take, by operator, unless it has failed."""
        if self.measured.status != RAN:
            return
        answer = self._answer(Message(self._next(), stopwatch.NODES))
        if answer.kind == stopwatch.NODES:
            self.measured.nodes = answer.fields["seconds"]
        else:
            self._fail(answer.kind, str(answer.fields.get("message")))

    def end(self) -> None:
        """End its process."""
        self._process.end()

    def _next(self) -> int:
        self._asked += 1
        return self._asked

    def _answer(self, message: Message) -> Message:
        """Return its answer, or what it would have said of its own end."""
        timeout = self._terms.timeout
        try:
            return self._process.exchange(message, time.monotonic() + timeout)
        except TimeoutError:
            return _said(message, Status.TIMEOUT, f"gave no answer within {timeout:g} s")
        except LostError as error:
            return _said(message, Status.CRASHED, str(error))

    def _fail(self, status: str, message: str) -> None:
        """Take it out of the contest, and end what may still be busy."""
        self.measured.status, self.measured.message = str(status), printable(message)
        self._process.end()


def _said(message: Message, kind: str, sentence: str) -> Message:
    fields: dict[str, Any] = {"message": sentence}
    return Message(message.number, kind, fields)
