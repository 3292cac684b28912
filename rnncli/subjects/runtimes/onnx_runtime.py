"""ONNX Runtime, https://onnxruntime.ai/docs/api/python/api_summary.html."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnxruntime
from onnx import ModelProto

from rnncli.errors import InvalidRequest
from rnncli.files.reading import read_bytes
from rnncli.subjects.runtime import Prepared, Refusal, TimedRuntime, known_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.packs.vector import Vector

EP, OPTIMIZATION, LINEAR = "ep", "optimization", "linear"
# Operators of ONNX that it evaluates by their function bodies, and has kernels for in its domain.
CONTRIB, OF_CONTRIB = "com.microsoft", ("LinearAttention", "CausalConvWithState")
CPU = "CPUExecutionProvider"
# Without it, what a provider does not take is computed on the CPU, in silence.
NO_FALLBACK = "session.disable_cpu_ep_fallback"
LEVELS = {
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
FATAL = 4

# Their time is that of the nodes in their bodies, which have their own events.
BODIES = ("If", "Loop", "Scan")
# Names of its events: one run of the model, and the suffix of a node's.
RUN, KERNEL = "model_run", "_kernel_time"
MICROSECOND = 1e-6


class OnnxRuntime(TimedRuntime):
    """Runs ONNX Runtime, with a new session for each vector.

    Settings are ``ep``, the execution provider, ``optimization`` (none, basic, extended, all),
    ``linear`` (standard, contrib: its own kernels of linear recurrences, in place of the function
    bodies of ONNX's operators), and any name with a dot, which is a session configuration entry:
    ``session.set_denormal_as_zero=1``.
    Another provider than the CPU's is never judged by what the CPU computes: ONNX Runtime is told
    not to fall back, and a profile of the first run shows that every node ran where it should.

    Attributes:
        is_built_in: whether its provider is part of ONNX Runtime, else one that the options have.
    """

    is_built_in = True

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        entries = {name: value for name, value in settings.items() if "." in name}
        others = {name: value for name, value in settings.items() if "." not in name}
        known_settings(others, (EP, OPTIMIZATION, LINEAR))
        self._settings = {EP: CPU, OPTIMIZATION: "all", **settings}
        _one_of(LINEAR, {LINEAR: "standard", **settings}, ("standard", "contrib"))
        if self.is_built_in:
            _one_of(EP, self._settings, onnxruntime.get_available_providers())
        _one_of(OPTIMIZATION, self._settings, LEVELS)
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.inter_op_num_threads = 1
        self._options.log_severity_level = FATAL
        self._options.graph_optimization_level = LEVELS[self._settings[OPTIMIZATION]]
        if self._settings[EP] != CPU:
            entries[NO_FALLBACK] = "1"
        for name, value in entries.items():
            self._options.add_session_config_entry(name, value)

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        return {"version": onnxruntime.__version__, **self._settings}

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Create a session."""
        session = self.session(vector)
        if self._settings[EP] != CPU:
            self._refuse_others(vector)
        names = [output.name for output in session.get_outputs()]

        def bound(asked: Vector) -> Prepared:
            fed = asked.fed
            return Prepared(
                lambda: session.run(names, fed),
                lambda outputs: dict(zip(names, outputs, strict=True)),
            )

        return bound

    def session(self, vector: Vector) -> Any:
        """Return a session with a vector's model."""
        contrib = self._settings.get(LINEAR) == "contrib"
        return onnxruntime.InferenceSession(
            of_contrib(vector.model) if contrib else vector.model,
            self._options,
            providers=[self._settings[EP]] if self.is_built_in else None,
        )

    def _refuse_others(self, vector: Vector) -> None:
        """Run a model once and refuse it unless a profile shows that the provider ran each node."""
        wanted = self._settings[EP]
        kernels = [each for each in self._events(vector, runs=1) if each["name"].endswith(KERNEL)]
        if not kernels:
            raise Refusal(f"no profile shows that {wanted} runs a node of it")
        for event in kernels:
            provider = event["args"].get("provider", "a provider without a name")
            if provider != wanted:
                node = f"{event['args']['op_name']} '{event['name'].removesuffix(KERNEL)}'"
                raise Refusal(f"{wanted} leaves the node {node} to {provider}")

    def node_seconds(self, vector: Vector, runs: int) -> dict[str, float]:
        """Return the seconds per run of each operator, as ONNX Runtime measures them."""
        events = self._events(vector, 1 + runs)
        warm = next(event["ts"] + event["dur"] for event in events if event["name"] == RUN)
        seconds: defaultdict[str, float] = defaultdict(float)
        for event in events:
            if event["name"].endswith(KERNEL) and event["ts"] >= warm:
                seconds[event["args"]["op_name"]] += event["dur"] * MICROSECOND
        for name in BODIES:
            seconds.pop(name, None)
        return {name: each / runs for name, each in seconds.items()}

    def _events(self, vector: Vector, runs: int) -> list[dict[str, Any]]:
        """Return the events of a profile of some runs."""
        with tempfile.TemporaryDirectory(prefix="rnncli-") as folder:
            self._options.enable_profiling = True
            self._options.profile_file_prefix = f"{folder}/profile"
            try:
                session = self.session(vector)
            finally:
                self._options.enable_profiling = False
            for _ in range(runs):
                session.run(None, vector.fed)
            found: list[dict[str, Any]] = json.loads(read_bytes(session.end_profiling()))
        return found


def of_contrib(model: bytes) -> bytes:
    """Return a model whose linear recurrences are ONNX Runtime's operators of the same names."""
    proto = ModelProto.FromString(model)
    standard = [n for n in proto.graph.node if not n.domain and n.op_type in OF_CONTRIB]
    if not standard:
        return model
    for node in standard:
        node.domain = CONTRIB
    if CONTRIB not in {opset.domain for opset in proto.opset_import}:
        proto.opset_import.add(domain=CONTRIB, version=1)
    changed: bytes = proto.SerializeToString()
    return changed


def _one_of(name: str, settings: Mapping[str, str], choices: Any) -> None:
    if settings[name] not in choices:
        raise InvalidRequest(
            f"runtime option '{name}' must be one of {', '.join(choices)}, got '{settings[name]}'"
        )


QNN = "QNNExecutionProvider"
# Of the provider, as its documentation has them; the emulator is that of a Snapdragon 8 Gen 3.
QNN_DEFAULTS = {"backend": "Htp", "htp_arch": "75", "soc_model": "57"}


class OnnxRuntimeQnn(OnnxRuntime):
    """Runs nodes on Qualcomm's QNN alone, on its emulator of an NPU or on a device.

    What it leaves to the CPU is refused.
    https://onnxruntime.ai/docs/execution-providers/QNN-ExecutionProvider.html

    Settings are those of ONNX Runtime but for ``ep``, and ``backend``, ``htp_arch`` and
    ``soc_model`` of the provider.
    """

    is_built_in = False

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        import onnxruntime_qnn

        self._version = onnxruntime_qnn.__version__
        own = {name: settings.get(name, value) for name, value in QNN_DEFAULTS.items()}
        others = {name: value for name, value in settings.items() if name not in own}
        known_settings({EP} & others.keys(), QNN_DEFAULTS)  # which is this one's own
        super().__init__({**others, EP: QNN}, threads)
        self._settings |= own
        onnxruntime.register_execution_provider_library(QNN, onnxruntime_qnn.get_library_path())
        devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == QNN]
        if not devices:
            raise Refusal(f"{QNN} finds no device")
        folder = Path(onnxruntime_qnn.get_library_path()).parent
        options = {
            "backend_path": str(folder / f"libQnn{own['backend']}.so"),
            **{name: own[name] for name in ("htp_arch", "soc_model")},
        }
        self._options.add_provider_for_devices(devices[:1], options)

    def describe(self) -> Mapping[str, str]:
        """Return the versions of both packages, and settings."""
        return {**super().describe(), "onnxruntime-qnn": self._version}
