"""The table of runtimes, a module each, and those that installed packages add.

A package adds a runtime by an entry point in the group ``rnncli.subjects`` that names a `Runtime`:
a class constructed with (settings, threads). It is imported only in the process it runs in.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from rnncli.errors import InvalidRequest, Unsupported, did_you_mean
from rnncli.jobs.plugins import plugins
from rnncli.limits import UNLIMITED
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.limits import Limits
    from rnncli.subjects.kept_process import IsolatedSubject


class RuntimeRow(NamedTuple):
    """A row of the table of runtimes."""

    where: str  # "module:attribute" of its `Runtime` class, imported in its own process
    summary: str  # one line for help
    package: str = ""  # the module that must be installed, or ""
    extra: str = ""  # the extra of this package that installs it, or ""
    origin: str = ""  # where a plug-in comes from, see `Plugin`; "" for ours
    threads: bool = True  # whether the number of threads has an effect
    models: bool = True  # whether it runs whole models, not only recurrent nodes
    unoptimised: Mapping[str, str] = {}  # the settings with which it runs a graph as it is

    @property
    def install(self) -> str:
        """How to install its package, or ""."""
        return f"install it with: {install_line(self.extra)}" if self.extra else ""


SUBJECTS: Mapping[str, RuntimeRow] = {
    "onnxruntime": RuntimeRow(
        "rnncli.subjects.runtimes.onnx_runtime:OnnxRuntime",
        "ONNX Runtime, on the CPU unless told otherwise",
        "onnxruntime",
        "runtimes",
        unoptimised={"optimization": "none"},
    ),
    "onnxruntime-qnn": RuntimeRow(
        "rnncli.subjects.runtimes.onnx_runtime:OnnxRuntimeQnn",
        "ONNX Runtime on Qualcomm's QNN, whose package has an emulator; quantised units",
        "onnxruntime_qnn",
        "qnn",
        unoptimised={"optimization": "none"},
    ),
    "openvino": RuntimeRow(
        "rnncli.subjects.runtimes.open_vino:OpenVino",
        "OpenVINO, on the CPU in float32 unless told otherwise",
        "openvino",
        "runtimes",
    ),
    "onnx-reference": RuntimeRow(
        "rnncli.subjects.runtimes.plain_runtimes:OnnxReference",
        "the reference evaluator of the package onnx",
    ),
    "tract": RuntimeRow(
        "rnncli.subjects.runtimes.plain_runtimes:Tract",
        "tract, on the CPU",
        "tract",
        "runtimes",
        threads=False,
    ),
    "torch": RuntimeRow(
        "rnncli.subjects.runtimes.torch_layers:TorchLayers",
        "PyTorch's layers RNN, GRU and LSTM, with the weights of the node",
        "torch",
        "torch",
        models=False,
    ),
    "onnx2pytorch": RuntimeRow(
        "rnncli.subjects.runtimes.converted_modules:Onnx2PyTorch",
        "the PyTorch module that onnx2pytorch makes of a model",
        "onnx2pytorch",
        "onnx2pytorch",
    ),
    "opencv": RuntimeRow(
        "rnncli.subjects.runtimes.plain_runtimes:OpenCV",
        "the DNN module of OpenCV 5, on the CPU",
        "cv2",
        "opencv",
    ),
    "iree": RuntimeRow(
        "rnncli.subjects.runtimes.plain_runtimes:Iree",
        "IREE, compiled for the CPU",
        "iree",
        "iree",
        threads=False,
    ),
    "emx-onnx-cgen": RuntimeRow(
        "rnncli.subjects.runtimes.emx_onnx:EmxOnnx",
        "C that emx-onnx-cgen generates, built by the C compiler of the system",
        "emx_onnx_cgen",
        "emx",
        threads=False,
    ),
    "mnn": RuntimeRow(
        "rnncli.subjects.runtimes.mnn:Mnn",
        "MNN, on the CPU; its GRU needs --weights initializers",
        "MNN",
        "mnn",
    ),
    "ncnn": RuntimeRow(
        "rnncli.subjects.runtimes.ncnn_layers:Ncnn",
        "ncnn's layers RNN, GRU and LSTM, with the weights of the node, on the CPU in float32",
        "ncnn",
        "ncnn",
        models=False,
    ),
    "tflite-micro": RuntimeRow(
        "rnncli.subjects.runtimes.tflite_runtimes:TfliteMicro",
        "tflite-micro's interpreter with its reference kernels, TFLite's LSTM alone",
        "tflite_micro",
        "tflite-micro",
        threads=False,
        models=False,
    ),
    "litert": RuntimeRow(
        "rnncli.subjects.runtimes.tflite_runtimes:LiteRt",
        "LiteRT's interpreter, TFLite's LSTM alone with int8 inputs",
        "ai_edge_litert",
        "litert",
        models=False,
    ),
}


@cache
def known_subjects() -> Mapping[str, RuntimeRow]:
    """Return our runtimes and those of installed packages, which cannot replace ours."""
    plugged = {
        name: RuntimeRow(
            plugin.where,
            f"from the package {plugin.package}",
            plugin.where.partition(":")[0].partition(".")[0],
            origin=plugin.origin,
        )
        for name, plugin in plugins("runtime").items()
    }
    return {**plugged, **SUBJECTS}


def row_of(name: str) -> RuntimeRow:
    """Return a runtime's row, by the name of the row or of the entry point.

    Raises:
        InvalidRequest: the name is unknown.
    """
    rows = known_subjects()
    if name not in rows:
        listed = ", ".join(rows)
        raise InvalidRequest(f"unknown runtime '{name}'{did_you_mean(name, rows)} ({listed})")
    return rows[name]


def subject_named(
    name: str, *, settings: Mapping[str, str] | None = None, limits: Limits = UNLIMITED
) -> IsolatedSubject:
    """Return a runtime in its own process, which starts with the first call.

    Raises:
        InvalidRequest: the name is unknown.
        Unsupported: its package is not installed.
    """
    from rnncli.subjects.kept_process import IsolatedSubject

    row = row_of(name)
    if reason := _missing(row):
        raise Unsupported(f"runtime '{name}' is not installed: {reason}")
    return IsolatedSubject(
        name, row.where, settings=settings, limits=limits, install=row.install, origin=row.origin
    )


def describe_subjects() -> list[dict[str, str]]:
    """Return name, summary and origin of every runtime, installed or not."""
    return [
        {
            "runtime": name,
            "summary": f"unusable: {reason}" if (reason := _missing(row)) else row.summary,
            "from": row.where,
        }
        for name, row in known_subjects().items()
    ]


def _missing(row: RuntimeRow) -> str:
    """Return what a row needs and is not installed, without importing it; or ""."""
    if not row.package or find_spec(row.package):
        return ""
    return f"no package {row.package}; {row.install or row.origin}"
