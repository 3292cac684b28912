"""OpenVINO, https://docs.openvino.ai: ONNX models, and its own recurrent operators."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
from openvino import opset5

from rnncli.errors import InvalidRequest
from rnncli.numerics import DTYPES, dtype_of
from rnncli.subjects.runtime import Prepared, Refusal
from rnncli.subjects.supervision.programs import first_line, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rnncli.formats.format import Tensors
    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

DEVICE = "device"
DOMAIN = "org.openvinotoolkit"
# Without it, processors with bfloat16 arithmetic compute float32 models in that.
PRECISION = "INFERENCE_PRECISION_HINT"
THREADS = "INFERENCE_NUM_THREADS"

# Where NumPy has no type OpenVINO uses one of the same width: the bits are right, the name is not.
BITS = {"bf16": "bfloat16"}

# Lines of its exceptions that say where in its sources, or what is said better below.
NOISE = (
    "-- Conversion is failed",
    "-- GRU",
    "-- LSTM",
    "-- RNN",
    "Check ",
    "Exception from ",
    "FrontEnd API failed",
    "Model wasn't fully converted",
    "Summary:",
    "To facilitate ",
    "While validating ",
)


# What comes before it on a line tells of OpenVINO's own passes.
THROWN = "CALLBACK HAS THROWN: "


class OpenVino:
    """A compiled model for each vector.

    Settings are ``device`` (CPU) and the device's own properties. Models are compiled for float32
    unless INFERENCE_PRECISION_HINT says otherwise.
    """

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        properties = {PRECISION: "f32", THREADS: str(threads), **settings}
        self._device = properties.pop(DEVICE, "CPU")
        self._properties = properties
        self._core = openvino.Core()
        try:
            self._core.set_property(self._device, properties)
            self._versions = self._core.get_versions(self._device)
        except RuntimeError as error:
            raise InvalidRequest(
                f"OpenVINO does not take these runtime options: {_said(error)}"
            ) from error

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        version = self._versions[self._device].build_number if self._versions else "unknown"
        return {"version": version, DEVICE: self._device, **self._properties}

    def prepare(self, vector: Vector) -> Prepared:
        """Compile a model."""
        with _refusing():
            return self._compiled(vector)(vector)

    def open(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Compile a model, for many vectors."""
        with _refusing():
            bound = self._compiled(vector)
        return lambda asked: _outputs(bound, asked)

    def run(self, vector: Vector) -> Tensors:
        """Compile and run a model."""
        return self.open(vector)(vector)

    def _compiled(self, vector: Vector) -> Callable[[Vector], Prepared]:
        is_native = vector.record.get("domain") == DOMAIN
        model = _native(vector) if is_native else self._core.read_model(vector.model)
        compiled = self._core.compile_model(model, self._device)
        request = compiled.create_infer_request()
        # An input that it ignores, such as P, is no input of its model any more.
        names = [port.any_name for port in compiled.inputs]
        outputs = {port.any_name: k for k, port in enumerate(compiled.outputs)}

        def bound(asked: Vector) -> Prepared:
            fed = {name: _tensor(asked.fed[name]) for name in names}
            return Prepared(
                # Its own buffers are not copied: that is the fastest it can be called from Python.
                lambda: request.infer(fed, share_inputs=True, share_outputs=True),
                lambda _: {n: _array(request.get_output_tensor(k)) for n, k in outputs.items()},
            )

        return bound


def _outputs(bound: Callable[[Vector], Prepared], vector: Vector) -> Tensors:
    with _refusing():
        return bound(vector).outputs()


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn what it raises into a refusal with its most telling line."""
    try:
        yield
    except RuntimeError as error:
        raise Refusal(_said(error)) from error


def _tensor(values: Array) -> Any:
    row = dtype_of(values)
    if row.native_to_numpy:
        return openvino.Tensor(np.array(values, row.numpy, order="C"))
    for short, name in BITS.items():
        if row.name == name:
            bits = np.ascontiguousarray(values).view(np.uint16)
            return openvino.Tensor(bits, values.shape, getattr(openvino.Type, short))
    raise Refusal(f"has no elements of type {row}")


def _array(tensor: Any) -> Array:
    name = BITS.get(tensor.element_type.get_type_name())
    values = np.array(tensor.data)
    return values.view(DTYPES[name].numpy) if name else values


def _native(vector: Vector) -> Any:
    """Build a model of one RNNSequence-5, which its ONNX frontend does not read."""
    record = vector.record
    if record["operator"] != "RNNSequence-5":
        raise Refusal(f"cannot be given {record['operator']} by this version of rnncli")
    nodes = dict(_parameters(vector))
    attributes = vector.attributes
    node = opset5.rnn_sequence(
        *(nodes[name] for name in record["inputs"]),
        attributes["hidden_size"],
        attributes["direction"],
        attributes.get("activations"),
        attributes.get("activations_alpha"),
        attributes.get("activations_beta"),
        attributes.get("clip", 0.0),
    )
    results = []
    for k, name in enumerate(("Y", "Ho")):
        if name in record["outputs"]:
            node.output(k).tensor.set_names({name})
            results.append(opset5.result(node.output(k)))
    fed = [nodes[name] for name in vector.fed]
    return openvino.Model(results, fed, record["operator"])


def _parameters(vector: Vector) -> Iterator[tuple[str, Any]]:
    for name, values in vector.inputs.items():
        tensor = _tensor(values)
        if name in vector.initializers:
            yield name, openvino.op.Constant(tensor, shared_memory=False)
        else:
            node = opset5.parameter(list(values.shape), tensor.element_type, name)
            node.output(0).tensor.set_names({name})
            yield name, node


def _said(error: Exception) -> str:
    """Return the most telling line of its many: the last one that tells of the model."""
    lines = (line.rpartition(THROWN)[2].strip() for line in str(error).splitlines())
    telling = [line for line in lines if line and not line.startswith(NOISE)]
    return printable(telling[-1]) if telling else first_line(str(error))
