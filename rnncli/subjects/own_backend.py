"""A backend of this package as a subject, judged like any runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.backends import backend_named
from rnncli.backends.threads import allowed
from rnncli.limits import UNLIMITED
from rnncli.models.evaluation_settings import ONNX
from rnncli.models.sessions import prepare
from rnncli.operators import evaluate
from rnncli.operators.evaluation import compute_named
from rnncli.subjects.kept_process import IsolatedSubject
from rnncli.subjects.runtime import LoadingRuntime, known_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.limits import Limits
    from rnncli.packs.vector import Vector

BACKEND, COMPUTE, HOST = "backend", "compute", "host"
WHERE = "rnncli.subjects.own_backend:BackendRuntime"


class BackendRuntime(LoadingRuntime):
    """Evaluates a vector's node with the package's own operators, or a whole model.

    Settings are ``backend``, ``compute`` and ``host``.
    """

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        known_settings(settings, (BACKEND, COMPUTE, HOST))
        self._threads = threads
        self._backend = settings.get(BACKEND, "numpy")
        self._compute = settings.get(COMPUTE, "float64")
        self._host = settings.get(HOST, ONNX)
        self._summary = backend_named(self._backend).summary
        compute_named(self._compute)

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        from rnncli import __version__

        settings = {BACKEND: self._backend, COMPUTE: self._compute}
        settings |= {} if self._host == ONNX else {HOST: self._host}
        return {"version": f"rnncli {__version__}", **settings, "summary": self._summary}

    def load(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Prepare a whole model for several calls; nodes are evaluated one by one.

        That is under their readings.
        """
        how: dict[str, Any] = {"backend": self._backend, "compute": self._compute}
        is_model = vector.record.is_whole_model
        session = prepare(vector.model, host=self._host, **how) if is_model else None

        def run(asked: Vector) -> Tensors:
            record = asked.record
            with allowed(self._threads):
                if session:
                    return asked.run(session)
                return evaluate(
                    record.operator,
                    asked.inputs,
                    attributes=asked.attributes,
                    outputs=record.outputs,
                    readings=record.readings,
                    unit=record.unit,
                    **how,
                )

        return run


def backend_subject(
    name: str, compute: str = "float64", *, host: str = ONNX, limits: Limits = UNLIMITED
) -> IsolatedSubject:
    """Return a backend as a subject in its own process."""
    settings = {BACKEND: name, COMPUTE: compute, HOST: host}
    return IsolatedSubject(name, WHERE, settings=settings, limits=limits)
