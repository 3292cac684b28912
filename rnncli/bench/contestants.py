"""The table of implementations that can be compared."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from rnncli.backends import known_backends
from rnncli.backends.backend_table import FAMILIES
from rnncli.bench.own import BACKEND, CALL, CALLS, COMPUTE, HOST
from rnncli.errors import InvalidRequest, Unsupported, did_you_mean
from rnncli.files.regular import read_bytes
from rnncli.models.evaluation_settings import ONNX
from rnncli.subjects.runtime_table import known_subjects
from rnncli.subjects.runtimes.onnx_runtime import OnnxRuntime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.packs.vector import Vector


OWN = "rnncli.bench.own:Own"
# Runtimes for which benchmarks have their own class.
PLACES: Mapping[str, str] = {"onnxruntime": "rnncli.bench.contestants:ProfiledOnnxRuntime"}
# The default runtimes; ratios are relative to the first that is installed.
USUAL = ("onnxruntime", "openvino", "torch")
USUAL_BACKENDS = ("numpy", "numba")
# Settings for the fastest single inference.
SETTINGS: Mapping[str, Mapping[str, str]] = {"openvino": {"PERFORMANCE_HINT": "LATENCY"}}


class Contestant(NamedTuple):
    """An implementation in a benchmark.

    Attributes:
        name: the runtime's or backend's name.
        where: "module:attribute" of a factory of `rnncli.subjects.runtime.Preparing`.
        settings: the factory's settings.
        is_own: whether it is a backend of this package.
    """

    name: str
    where: str
    settings: Mapping[str, str]
    is_own: bool = False


def runtime_names() -> list[str]:
    """Return the names of all runtimes, installed or not."""
    return [*known_subjects()]


def runtimes(names: Sequence[str] | None) -> tuple[list[Contestant], dict[str, str]]:
    """Return runtimes, and the reasons for those that are missing.

    Args:
        names: the wanted runtimes; None for the installed defaults.

    Raises:
        InvalidRequest: a name is unknown.
        Unsupported: a named runtime is not installed.
    """
    found, missing = [], {}
    for name in USUAL if names is None else names:
        where, reason = _runtime(name)
        if not reason:
            found.append(Contestant(name, where, SETTINGS.get(name, {})))
        elif names is not None:
            raise Unsupported(f"runtime '{name}' is not installed: {reason}")
        else:
            missing[name] = reason
    return found, missing


def _runtime(name: str) -> tuple[str, str]:
    """Return a runtime's place, and how to install it if it is missing."""
    rows = known_subjects()
    if name not in rows:
        known = runtime_names()
        raise InvalidRequest(
            f"unknown runtime '{name}'{did_you_mean(name, known)} ({', '.join(known)})"
        )
    row = rows[name]
    hint = f"install it with: pip install 'rnncli[{row.extra}]'"
    return PLACES.get(name, row.where), "" if not row.package or find_spec(row.package) else hint


def backends(
    names: Sequence[str] | None, compute: str, call: str = "evaluate", host: str = ONNX
) -> list[Contestant]:
    """Return backends of this package.

    Args:
        names: the wanted backends; None for the available defaults.
        compute: "float64" or "native".
        call: the call that is timed: "evaluate", "bound" or "session".
        host: what evaluates the other nodes of models; tables add it to the backend's name.

    Raises:
        InvalidRequest: a name is unknown.
    """
    ground = {} if host == ONNX else {HOST: host}
    wanted = [name for name in USUAL_BACKENDS if _has(name)] if names is None else names
    for name in wanted:
        if name not in known_backends() and name.partition(":")[0] not in FAMILIES:
            near = did_you_mean(name, known_backends())
            raise InvalidRequest(f"unknown backend '{name}'{near} ({', '.join(known_backends())})")
    return [
        Contestant(
            " ".join((f"{name}{suffix}", *ground.values())),
            OWN,
            {BACKEND: name, COMPUTE: compute, CALL: each, **ground},
            is_own=True,
        )
        for name in wanted
        for each, suffix in CALLS[call].items()
    ]


def _has(backend: str) -> bool:
    """Whether a backend is known and its package, if it has one, is installed."""
    return backend in known_backends() and find_spec(backend) is not None


# Their time is that of the nodes in their bodies, which have their own events.
BODIES = ("If", "Loop", "Scan")
# Names of its events: one run of the model, and the suffix of a node's.
RUN, KERNEL = "model_run", "_kernel_time"
MICROSECOND = 1e-6


class ProfiledOnnxRuntime(OnnxRuntime):
    """`OnnxRuntime` with profiling; its operators are those of the optimised graph."""

    def node_seconds(self, vector: Vector, runs: int) -> dict[str, float]:
        """Return the seconds per run of each operator, as ONNX Runtime measures them."""
        with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
            self._options.enable_profiling = True
            self._options.profile_file_prefix = f"{folder}/profile"
            session = self.session(vector)
            self._options.enable_profiling = False
            for _ in range(1 + runs):
                session.run(None, vector.fed)
            events = json.loads(read_bytes(session.end_profiling()))
        warm = next(event["ts"] + event["dur"] for event in events if event["name"] == RUN)
        seconds: defaultdict[str, float] = defaultdict(float)
        for event in events:
            if event["name"].endswith(KERNEL) and event["ts"] >= warm:
                seconds[event["args"]["op_name"]] += event["dur"] * MICROSECOND
        for name in BODIES:
            seconds.pop(name, None)
        return {name: each / runs for name, each in seconds.items()}
