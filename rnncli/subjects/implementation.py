"""The implementation to judge: the data that travel to worker processes, and what they open."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from rnncli.errors import InvalidRequest
from rnncli.limits import OF_SUBJECTS, UNLIMITED, Limits
from rnncli.models.evaluation_settings import HOSTS
from rnncli.options import OptionKind, OptionValues, check, flag_of, option, traits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rnncli.packs.pack import Pack
    from rnncli.packs.vector import Attempt, Vector


class Subject(Protocol):
    """An implementation in another process, on a device, or recorded as results."""

    name: str

    def describe(self) -> Mapping[str, str]:
        """Return version, settings and precision hints of the machine for reports."""

    def attempt(self, vector: Vector) -> Attempt:
        """Run a vector; any outcome, including a crash or a hang, is the attempt's status.

        Raises:
            RnncliError: it cannot run at all: not installed, no such program, wrong results folder.
        """

    def close(self) -> None:
        """End its processes; none outlives this call."""


class SessionSubject(Subject, Protocol):
    """An implementation that can run several vectors in one session."""

    def session(self, vectors: Sequence[Vector]) -> list[Attempt]:
        """Run data sets of one model in one session, in turn.

        Returns:
            The attempts, up to the first without outputs.
        """


class KeepingSubject(SessionSubject, Protocol):
    """An implementation in its own process, which can be restarted."""

    def session(self, vectors: Sequence[Vector], first: str = "") -> list[Attempt]:
        """Run data sets of one model; see `SessionSubject`.

        Args:
            vectors: the data sets.
            first: the place of the first, `runtime.OPEN` if calls of the same model will follow
                these, and `AGAIN` if they follow others in the process; "" if it is all.
        """

    def renew(self) -> None:
        """End its process; the next call starts a new one."""

    def alone(self, vector: Vector) -> Attempt:
        """Run a vector in a process that has run no other."""


def has_sessions(subject: Subject) -> TypeGuard[SessionSubject]:
    """Whether a subject can run several vectors in one session.

    Asked for every case: `isinstance` of a protocol takes forty times as long.
    """
    return hasattr(subject, "session")


def keeps_process(subject: Subject) -> TypeGuard[KeepingSubject]:
    """Whether a subject has a process of its own, which can be restarted."""
    return has_sessions(subject) and hasattr(subject, "renew") and hasattr(subject, "alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Implementation(OptionValues):
    """What is judged, named by one of its first six attributes, and how it runs.

    All but functions and results run in a process of their own.

    Attributes:
        runtime: Judge a runtime, such as onnxruntime or openvino; `rnncli runtimes` lists them.
        backend: Judge a backend of rnncli; `rnncli backends` lists them.
        results: Judge outputs computed elsewhere: a folder laid out like the pack, or one .npz or
            .h5 (docs/howto/device.md).
        command: Judge a program started for each case; it is told {model}, {inputs}, {inputs.npz},
            {inputs.h5}, {outputs}, {outputs.npz}, {outputs.h5}, {case}, {id} and {here}
            (docs/howto/device.md).
        harness: Judge a program that is started once and answers cases in JSON lines; `rnncli
            smoke` tries it (docs/howto/harness.md).
        function: Judge a Python function: it takes a vector and returns its outputs, by name or in
            order. It refuses a case by raising NotImplementedError, ValueError or an rnncli error;
            any other exception is a crash of that case. It runs in this process, without limits.
        runtime_option: Pass a setting to the runtime, spelled as the runtime spells it.
        compute: float64: everything in float64, each output rounded once; native: the tensors'
            dtype.
        host: What evaluates the other nodes of whole models, in a backend and where `stream`
            evaluates a model itself: onnx, its reference with corrections, or onnxruntime.
        weights: Where models have W, R, B and P: as initializers, which are constants, or as inputs
            of the graph; without it, where each case has them.
        limits: What each case may take; `OF_SUBJECTS` where it is not limited.

    Raises:
        InvalidRequest: none or several are named, or an option has no effect on the named one.
    """

    runtime: str = option(
        "", kind=OptionKind.LOOKED_UP, table="rnncli.subjects.runtimes:known_subjects"
    )
    backend: str = option("", kind=OptionKind.LOOKED_UP, table="rnncli.backends:known_backends")
    results: str = option("", metavar="PATH")
    command: str = option("", metavar="'PROG {model} {inputs} {outputs}'")
    harness: str = option("", metavar="'PROG ARGS'")
    function: Callable[[Vector], Any] | None = None
    runtime_option: Mapping[str, str] | None = option(
        None, kind=OptionKind.PAIRS, section="Running"
    )
    compute: str = option(
        "float64", kind=OptionKind.NAME, known=("float64", "native"), section="Running"
    )
    host: str = option(HOSTS[0], kind=OptionKind.NAME, known=HOSTS, section="Running")
    weights: str = option(
        "", kind=OptionKind.NAME, known=("initializers", "inputs"), section="Running"
    )
    limits: Limits = UNLIMITED

    def __post_init__(self) -> None:
        check(self)
        if len(self._named) != 1:
            first, *others = KINDS
            written = f"Implementation({first}=...), or {', '.join(others)} instead"
            raise InvalidRequest(f"say what to judge, by one name: {written}")
        if self.function is not None and not callable(self.function):
            hint = _meant(self.function) if isinstance(self.function, str) else ""
            raise InvalidRequest(
                f"a function or an Implementation is judged, not {self.function!r}{hint}"
            )
        for name, value in self.given:
            kinds = AFFECTED[name]
            if self.kind not in kinds:
                these = " and ".join(f"--{each}" for each in kinds)
                this = "a function" if self.kind == FUNCTION else f"--{self.kind}"
                raise InvalidRequest(f"{name} {value} has no effect on {this}, only on {these}")

    @property
    def _named(self) -> list[str]:
        return [kind for kind in KINDS if getattr(self, kind)]

    @property
    def kind(self) -> str:
        """A key of `KINDS`."""
        return self._named[0]

    @property
    def name(self) -> str:
        """The runtime's or backend's name, the path of the results, or the command line."""
        named = getattr(self, self.kind)
        if self.kind == FUNCTION:
            return getattr(named, "__name__", type(named).__name__)
        return str(named)

    @property
    def settings(self) -> Mapping[str, str]:
        """A runtime's settings."""
        return self.runtime_option or {}

    @property
    def given(self) -> list[tuple[str, str]]:
        """The options that differ from their defaults, each with its value."""
        limits = self.limits.or_else(OF_SUBJECTS)
        own = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        own |= {
            name: (getattr(limits, name), getattr(OF_SUBJECTS, name)) for name in traits_of(limits)
        }
        differing = {flag_of(name): v for name, (v, default) in own.items() if v != default}
        plain = [(name, f"{v}") for name, v in differing.items() if name in SINGLE]
        return [*plain, *(("--runtime-option", f"{n}={v}") for n, v in self.settings.items())]

    @property
    def options(self) -> list[str]:
        """The implementation as command-line options."""
        return [f"--{self.kind}", self.name, *chain(*self.given)]

    @property
    def can_be_asked(self) -> bool:
        """Whether it can also run cases that are not in the pack."""
        return self.kind != RESULTS

    @property
    def has_threads(self) -> bool:
        """Whether the number of threads has an effect on it."""
        from rnncli.subjects.runtimes import known_subjects

        row = known_subjects().get(self.runtime)
        return bool(self.backend or (self.runtime and (row is None or row.threads)))

    @property
    def is_in_a_pack(self) -> bool:
        """Whether it is the recorded outputs of a pack itself."""
        from rnncli.packs.layouts import file_of
        from rnncli.packs.pack import is_pack

        if self.kind != RESULTS:
            return False
        path = Path(self.name)
        return is_pack(path) or (path.name == file_of(path.suffix[1:]) and is_pack(path.parent))

    def right_with(self, is_right: Callable[[Implementation], bool]) -> str:
        """Return the settings with which a runtime that fails is right: without optimisations.

        Args:
            is_right: asks the same of the runtime with other settings.

        Returns:
            NAME=VALUE; "" if it fails without them, too, or has none to leave out.
        """
        from rnncli.subjects.runtimes import known_subjects

        row = known_subjects().get(self.runtime)
        settings = {**self.settings, **(row.unoptimised if row else {})}
        if settings == {**self.settings} or not is_right(replace(self, runtime_option=settings)):
            return ""
        assert row
        return ", ".join(f"{name}={value}" for name, value in row.unoptimised.items())

    def require_room(self, pack: Pack) -> None:
        """Refuse a file of results that is too large for a pack's cases, before it is read."""
        if self.results and not Path(self.name).is_dir():
            from rnncli.subjects.results import require_room

            require_room(Path(self.name), pack.cases)

    def open(self) -> Subject:
        """Return the subject, ready to run vectors.

        Raises:
            InvalidRequest: no implementation has that name, or the folder of results or the command
                is wrong.
            Unsupported: its package is not installed.
        """
        where, others = KINDS[self.kind]
        opener: Callable[..., Subject] = pkgutil.resolve_name(where)
        return opener(getattr(self, self.kind), **{each: getattr(self, each) for each in others})


RESULTS, FUNCTION = "results", "function"
# Option -> the kinds of implementations that it affects.
AFFECTED: Mapping[str, tuple[str, ...]] = {
    "--compute": ("backend",),
    "--host": ("runtime", "backend", "command", "harness", "function"),
    "--threads": ("runtime", "backend"),
    "--runtime-option": ("runtime",),
    "--timeout": ("runtime", "backend", "command", "harness"),
    "--max-memory": ("runtime", "backend", "command", "harness"),
    "--weights": ("runtime", "command", "harness"),
}
SINGLE = AFFECTED.keys() - {"--runtime-option"}
# Kind -> "module:attribute" of what opens it by its value, imported then, and the other attributes
# that go into it.
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "runtime": ("rnncli.subjects.runtimes:subject_named", ("settings", "limits")),
    "backend": ("rnncli.subjects.own_backend:backend_subject", ("compute", "host", "limits")),
    RESULTS: ("rnncli.subjects.results:results_subject", ()),
    "command": ("rnncli.subjects.command:CommandSubject", ("limits",)),
    "harness": ("rnncli.subjects.harness:HarnessSubject", ("limits",)),
    FUNCTION: ("rnncli.subjects.function:FunctionSubject", ("name",)),
}


def _meant(name: str) -> str:
    """Return what somebody means who judges a name."""
    from rnncli.backends import known_backends
    from rnncli.subjects.runtimes import known_subjects

    for kind, known in (("runtime", known_subjects()), ("backend", known_backends())):
        if name in known:
            return f"; write rnncli.Implementation({kind}={name!r})"
    return "; import the function that it names"
