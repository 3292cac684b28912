"""The implementation to judge, as plain data that travels to worker processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnncli.errors import InvalidRequest
from rnncli.packs.pack import file_of, is_pack
from rnncli.subjects.table import takes_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        function: maps a vector to its outputs in this process; it cannot travel.
    """

    kind: str
    name: str
    compute: str = "float64"
    settings: Mapping[str, str] = field(default_factory=dict)
    threads: int = 1
    timeout: float = 60.0
    max_memory: int | None = None
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
            InvalidRequest: none or several are named, or a function is given limits, which nothing
                could enforce.
        """
        named = {kind: name for kind, name in subjects.items() if name}
        if function is not None:
            named[FUNCTION] = getattr(function, "__name__", type(function).__name__)
        if len(named) != 1:
            listed = ", ".join(f"--{kind}" for kind in subjects)
            raise InvalidRequest(f"say what to judge: one of {listed}")
        (kind, name), *_ = named.items()
        spec = cls(kind=kind, name=name, function=function, **limits)
        if function is not None and (options := spec.limits):
            raise InvalidRequest(
                f"{options[0]} is not for a function, which runs in this process as it is"
            )
        return spec

    @property
    def limits(self) -> list[str]:
        """The limits that differ from their defaults, as command-line options."""
        plain = SubjectSpec(kind=self.kind, name=self.name)
        fields = [
            (f"--{name.replace('_', '-')}", f"{getattr(self, name)}")
            for name in ("compute", "threads", "timeout", "max_memory")
            if getattr(self, name) != getattr(plain, name)
        ]
        settings = [("--runtime-option", f"{name}={v}") for name, v in self.settings.items()]
        return [word for pair in (*fields, *settings) for word in pair]

    @property
    def options(self) -> list[str]:
        """The implementation as command-line options."""
        return [f"--{self.kind}", self.name, *self.limits]

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


def _function(spec: SubjectSpec) -> Subject:
    from rnncli.subjects.function import FunctionSubject

    assert spec.function
    return FunctionSubject(spec.function, spec.name)


RESULTS, FUNCTION = "results", "function"
KINDS: Mapping[str, Callable[[SubjectSpec], Subject]] = {
    "runtime": _runtime,
    "backend": _backend,
    RESULTS: _results,
    "command": _command,
    FUNCTION: _function,
}
