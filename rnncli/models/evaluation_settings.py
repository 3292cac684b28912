"""How the nodes of a model are evaluated: settings, and the hosts of nodes not recurrent."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest, Unsupported, did_you_mean
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Mapping

ONNX = "onnx"
HOSTS = (ONNX, "onnxruntime")
"""onnx's reference, with our host operators; ONNX Runtime, which is imported if it is asked for."""


class EvaluationSettings(NamedTuple):
    """How the nodes of a model are evaluated."""

    backend: str = "numpy"  # name of the backend of recurrent nodes
    compute: str = "float64"  # "float64" or "native"
    # contested points, each by its name; the operators' own defaults otherwise
    readings: Mapping[str, str] = {}
    # what evaluates all other nodes: "onnx", its reference with our corrections, or "onnxruntime"
    host: str = ONNX

    def check(self) -> None:
        """Raise if a setting does not exist, before any node runs.

        Raises:
            InvalidRequest: there is no such backend, mode, reading, choice or host.
            Unsupported: the backend or the host does not import.
        """
        from rnncli.backends import backend_named
        from rnncli.operators.evaluation import compute_named
        from rnncli.recurrence.readings import check_reading

        if self.host not in HOSTS:
            near = did_you_mean(self.host, HOSTS)
            raise InvalidRequest(f"unknown host '{self.host}'{near} ({', '.join(HOSTS)})")
        if not find_spec(self.host):
            raise Unsupported(
                f"host '{self.host}' is not installed; install it with: {install_line('runtimes')}"
            )
        backend_named(self.backend)
        compute_named(self.compute)
        for name, choice in self.readings.items():
            check_reading(name, choice)
