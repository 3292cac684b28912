"""ONNX Runtime, https://onnxruntime.ai/docs/api/python/api_summary.html."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnxruntime
from onnx import ModelProto, parser

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.files.reading import read_bytes
from rnncli.subjects.runtime import Prepared, Refusal, TimedRuntime, known_settings, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.packs.vector import Vector

EP, OPTIMIZATION, LINEAR = "ep", "optimization", "linear"
# Operators of ONNX that it evaluates by their function bodies, and has kernels for in its domain.
CONTRIB, OF_CONTRIB = "com.microsoft", ("LinearAttention", "CausalConvWithState")
SUFFIX = "ExecutionProvider"
CPU = f"CPU{SUFFIX}"
# A package with a provider of its own, which has functions for its name and its library.
PACKAGE = "onnxruntime_ep_{}"
# Without it, what a provider does not take is computed on the CPU, in silence.
NO_FALLBACK = "session.disable_cpu_ep_fallback"
LEVELS = {
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
FATAL = 4
# A model by which a provider tells its options.
IDLE = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 14]> g (float[1] x) => (float[1] y) { y = Identity (x) }'
).SerializeToString()

# Their time is that of the nodes in their bodies, which have their own events.
BODIES = ("If", "Loop", "Scan")
# Names of its events: one run of the model, and the suffix of a node's.
RUN, KERNEL = "model_run", "_kernel_time"
MICROSECOND = 1e-6


class OnnxRuntime(TimedRuntime):
    """Runs ONNX Runtime, with a new session for each vector.

    Settings are ``ep``, the execution provider: ``cuda`` is CUDAExecutionProvider, and ``webgpu``
    that of the package onnxruntime-ep-webgpu; ``optimization`` (none, basic, extended, all);
    ``linear`` (standard, contrib: its own kernels of linear recurrences, in place of the function
    bodies of ONNX's operators); any name with a dot, which is a session configuration entry:
    ``session.set_denormal_as_zero=1``; and any other name for an option of another provider than
    the CPU's: ``use_tf32=0``. What a provider tells of its options is described.
    Another provider is never judged by what the CPU computes: ONNX Runtime and its Python package
    are told not to fall back, and a profile of the first run shows that every node ran where it
    should.

    Attributes:
        own: its settings; others are the provider's.
    """

    own: tuple[str, ...] = (EP, OPTIMIZATION, LINEAR)

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        self._settings = {EP: CPU, OPTIMIZATION: "all", **settings}
        one_of(LINEAR, {LINEAR: "standard", **settings}, ("standard", "contrib"))
        one_of(OPTIMIZATION, self._settings, LEVELS)
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.inter_op_num_threads = 1
        self._options.log_severity_level = FATAL
        self._options.graph_optimization_level = LEVELS[self._settings[OPTIMIZATION]]
        self._providers: list[Any] | None = None  # unless the options have it
        entries = {name: value for name, value in settings.items() if "." in name}
        self.provide(
            {name: settings[name] for name in settings.keys() - entries.keys() - {*self.own}}
        )
        if self._settings[EP] != CPU:
            entries[NO_FALLBACK] = "1"
        for name, value in entries.items():
            self._options.add_session_config_entry(name, value)

    def provide(self, options: Mapping[str, str]) -> None:
        """Choose the execution provider, with options of its own.

        Raises:
            InvalidRequest: there is none of the name, or it does not take an option.
            Unsupported: it cannot be used here.
        """
        built_in = {_short(each): each for each in onnxruntime.get_available_providers()}
        short = _short(self._settings[EP])
        if short in built_in:
            self._settings[EP] = provider = built_in[short]
            self._providers = [(provider, options)]
            if provider == CPU:
                known_settings(options, self.own)
            else:
                self._settings |= _told(provider, options)
        elif find_spec(package := PACKAGE.format(short)):
            module = import_module(package)
            self._settings[EP] = module.get_ep_names()[0]
            self.plug_in(module.get_library_path(), options)
        else:
            one_of(EP, self._settings, (*built_in, "the NAME of a package onnxruntime-ep-NAME"))

    def plug_in(self, library: str, options: Mapping[str, str]) -> None:
        """Have the provider of a library run everything, on its first device.

        Raises:
            Unsupported: it finds no device.
        """
        ep = self._settings[EP]
        onnxruntime.register_execution_provider_library(ep, library)
        devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == ep]
        if not devices:
            raise Unsupported(f"{ep} finds no device")
        self._options.add_provider_for_devices(devices[:1], options)

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        return {"version": onnxruntime.__version__, **self._settings}

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Create a session."""
        session, wanted = self.session(vector), self._settings[EP]

        # Another provider is judged only if a profile shows that it ran each node.
        events = self._events(vector, runs=1) if wanted != CPU else []
        kernels = [event for event in events if event["name"].endswith(KERNEL)]
        if wanted != CPU and not kernels:
            raise Refusal(f"no profile shows that {wanted} runs a node of it")
        for event in kernels:
            provider = event["args"].get("provider", "a provider without a name")
            if provider != wanted:
                node = f"{event['args']['op_name']} '{event['name'].removesuffix(KERNEL)}'"
                raise Refusal(f"{wanted} leaves the node {node} to {provider}")

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
            providers=self._providers,
            enable_fallback=0,
        )

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


def _short(provider: str) -> str:
    """Return the name of a provider without what all end with, in lower case."""
    return provider.removesuffix(SUFFIX).lower()


def _told(provider: str, options: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options of a provider that are in effect, as far as it tells them.

    Raises:
        InvalidRequest: it does not take an option.
        Unsupported: it cannot be used here.
    """
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = FATAL
    given = " ".join(f"{name}={value}" for name, value in options.items()) or "its own options"
    try:
        session = onnxruntime.InferenceSession(
            IDLE, quiet, providers=[(provider, dict(options))], enable_fallback=0
        )
    except Exception as error:
        raise InvalidRequest(f"{provider} does not take {given}: {error}") from error
    if provider not in session.get_providers():
        raise Unsupported(f"{provider} cannot be used here, with {given}")
    told: Mapping[str, str] = session.get_provider_options().get(provider, {})
    for name, value in options.items():
        if told.get(name, value) != value:
            raise InvalidRequest(f"{provider} does not keep {name}={value}: it is {told[name]}")
    return told


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

    own = (OPTIMIZATION, LINEAR)

    def provide(self, options: Mapping[str, str]) -> None:
        """Choose the provider and its library."""
        import onnxruntime_qnn

        known_settings(options, QNN_DEFAULTS)
        own = {**QNN_DEFAULTS, **options}
        self._settings |= {**own, EP: QNN, "onnxruntime-qnn": onnxruntime_qnn.__version__}
        library = onnxruntime_qnn.get_library_path()
        backend = str(Path(library).with_name(f"libQnn{own.pop('backend')}.so"))
        self.plug_in(library, {"backend_path": backend, **own})
