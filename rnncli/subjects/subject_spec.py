"""The implementation to judge, as plain data that travels to worker processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.cases.suite.keys import PLACES_OF_WEIGHTS
from rnncli.errors import InvalidRequest
from rnncli.packs.layouts import file_of
from rnncli.packs.pack import is_pack
from rnncli.subjects.table import takes_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rnncli.packs.vector import Vector
    from rnncli.subjects.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectSpec:
    """An implementation and the limits under which it runs.

    Attributes:
        kind: a key of `KINDS`.
        name: the runtime's or backend's name, the path of the results, or the command line.
        compute: a backend's arithmetic.
        settings: a runtime's settings.
        threads: the number of threads a runtime or backend may use.
        timeout: seconds per vector.
        max_memory: limit on resident memory, bytes; None for no limit.
        weights: where models have W, R, B and P, a key of `PLACES_OF_WEIGHTS`; "" for where the
            cases have them.
        function: maps a vector to its outputs in this process; it cannot travel.
    """

    kind: str
    name: str
    compute: str = "float64"
    settings: Mapping[str, str] = field(default_factory=dict)
    threads: int = 1
    timeout: float = 60.0
    max_memory: int | None = None
    weights: str = ""
    function: Callable[[Vector], Any] | None = None

    @classmethod
    def chosen(
        cls,
        subjects: Mapping[str, str | None],
        function: Callable[[Vector], Any] | None = None,
        **limits: Any,
    ) -> SubjectSpec:
        """Return the one implementation that the options name.

        Args:
            subjects: kind -> name; "" or None for kinds not named.
            function: a Python function instead.
            limits: the other fields.

        Raises:
            InvalidRequest: none or several are named, or an option has no effect on the named one.
        """
        named = {kind: name for kind, name in subjects.items() if name}
        if function is not None:
            named[FUNCTION] = getattr(function, "__name__", type(function).__name__)
        if len(named) != 1:
            listed = ", ".join(f"--{kind}" for kind in subjects)
            raise InvalidRequest(f"say what to judge: one of {listed}")
        (kind, name), *_ = named.items()
        spec = cls(kind=kind, name=name, function=function, **limits)
        for limit, value in spec.limits:
            kinds = AFFECTED[limit]
            if kind not in kinds:
                these = " and ".join(f"--{each}" for each in kinds)
                this = "a function" if kind == FUNCTION else f"--{kind}"
                raise InvalidRequest(f"{limit} {value} has no effect on {this}, only on {these}")
        return spec

    @property
    def limits(self) -> list[tuple[str, str]]:
        """The options that differ from their defaults, each with its value."""
        plain = SubjectSpec(kind=self.kind, name=self.name)
        numbers = {
            f"--{name.replace('_', '-')}": f"{getattr(self, name)}"
            for name in LIMITS
            if getattr(self, name) != getattr(plain, name)
        }
        settings = [("--runtime-option", f"{name}={v}") for name, v in self.settings.items()]
        return [*numbers.items(), *settings]

    @property
    def options(self) -> list[str]:
        """The implementation as command-line options."""
        return [f"--{self.kind}", self.name, *chain(*self.limits)]

    @property
    def place_of_weights(self) -> str:
        """Where models have the weights, as records say it; "" for where the cases have them."""
        return PLACES_OF_WEIGHTS.get(self.weights, "")

    @property
    def can_be_asked(self) -> bool:
        """Whether it can also run cases that are not in the pack."""
        return self.kind != RESULTS

    @property
    def has_threads(self) -> bool:
        """Whether `threads` has an effect on it."""
        return self.kind == "backend" or (self.kind == "runtime" and takes_threads(self.name))

    @property
    def is_in_a_pack(self) -> bool:
        """Whether it is the recorded outputs of a pack itself."""
        path = Path(self.name)
        is_file_of_one = path.name == file_of(path.suffix[1:]) and is_pack(path.parent)
        return self.kind == RESULTS and (is_pack(path) or is_file_of_one)

    def require_room(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Refuse a file of results that is too large for a pack, before it is read.

        Args:
            records: the records of all cases of the pack.

        Raises:
            UnreadableFile: it is missing or too large.
        """
        if self.kind == RESULTS and not Path(self.name).is_dir():
            from rnncli.subjects.results import require_room

            require_room(Path(self.name), records)

    def open(self) -> Subject:
        """Return the subject, ready to run vectors.

        Raises:
            InvalidRequest: no implementation has that name, or the folder of results or the command
                is wrong.
            Unsupported: its package is not installed.
        """
        return KINDS[self.kind](self)


def _runtime(spec: SubjectSpec) -> Subject:
    from rnncli.subjects.table import subject_named

    return subject_named(
        spec.name,
        settings=spec.settings,
        threads=spec.threads,
        timeout=spec.timeout,
        max_memory=spec.max_memory,
    )


def _backend(spec: SubjectSpec) -> Subject:
    from rnncli.subjects.backend import backend_subject

    return backend_subject(
        spec.name,
        spec.compute,
        threads=spec.threads,
        timeout=spec.timeout,
        max_memory=spec.max_memory,
    )


def _results(spec: SubjectSpec) -> Subject:
    from rnncli.subjects.results import results_subject

    return results_subject(spec.name)


def _command(spec: SubjectSpec) -> Subject:
    from rnncli.subjects.command import CommandSubject

    return CommandSubject(spec.name, timeout=spec.timeout, max_memory=spec.max_memory)


def _harness(spec: SubjectSpec) -> Subject:
    from rnncli.subjects.harness import HarnessSubject

    return HarnessSubject(spec.name, timeout=spec.timeout, max_memory=spec.max_memory)


def _function(spec: SubjectSpec) -> Subject:
    from rnncli.subjects.function import FunctionSubject

    assert spec.function
    return FunctionSubject(spec.function, spec.name)


RESULTS, FUNCTION = "results", "function"
# The fields that are options of their own.
LIMITS = ("compute", "threads", "timeout", "max_memory", "weights")
# Option -> the kinds of implementations that it affects.
AFFECTED: Mapping[str, tuple[str, ...]] = {
    "--compute": ("backend",),
    "--threads": ("runtime", "backend"),
    "--runtime-option": ("runtime",),
    "--timeout": ("runtime", "backend", "command", "harness"),
    "--max-memory": ("runtime", "backend", "command", "harness"),
    "--weights": ("runtime", "command", "harness"),
}
KINDS: Mapping[str, Callable[[SubjectSpec], Subject]] = {
    "runtime": _runtime,
    "backend": _backend,
    RESULTS: _results,
    "command": _command,
    "harness": _harness,
    FUNCTION: _function,
}
# The kinds that options name, in the order of their help.
NAMED = tuple(kind for kind in KINDS if kind != FUNCTION)
