"""OpenVINO, https://docs.openvino.ai: ONNX models and OpenVINO's own recurrent operators."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
from openvino import opset1, opset3, opset4, opset5

from rnncli.errors import InvalidRequest
from rnncli.models.ir_model import as_array
from rnncli.numerics import dtype_of
from rnncli.packs.ir_form import all_inputs, with_truths
from rnncli.subjects.runtime import Prepared, Refusal, TimedRuntime
from rnncli.supervision.programs import first_line
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

DEVICE = "device"
DOMAIN = "org.openvinotoolkit"
# Without this hint, processors with bfloat16 arithmetic compute float32 models in bfloat16.
PRECISION = "INFERENCE_PRECISION_HINT"
THREADS = "INFERENCE_NUM_THREADS"

# Types that NumPy lacks: OpenVINO takes the bits.
BITS = {"bf16": "bfloat16"}

# Its functions that build a node, by operator.
NATIVE: Mapping[str, Callable[..., Any]] = {
    "RNNSequence-5": opset5.rnn_sequence,
    "GRUSequence-5": opset5.gru_sequence,
    "LSTMSequence-5": opset5.lstm_sequence,
    "RNNCell-3": opset3.rnn_cell,
    "GRUCell-3": opset3.gru_cell,
    "LSTMCell-1": opset1.lstm_cell,
    "LSTMCell-4": opset4.lstm_cell,
}
# One of them requires attributes that its specification does not.
UNWRITTEN: Mapping[str, Any] = {
    "activations": None,
    "activations_alpha": None,
    "activations_beta": None,
}

# Lines of its exceptions that name places in its sources or repeat later, clearer lines.
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


# The text before the reason on a line is about OpenVINO's own passes, or names the node.
PLACED = re.compile(r".*CALLBACK HAS THROWN: |While validating (?:ONNX )?node '.*?': (?=\S)")


class OpenVino(TimedRuntime):
    """Runs OpenVINO, with a newly compiled model for each vector.

    Settings are ``device`` (CPU) and the device's own properties. Models are compiled for float32
    unless INFERENCE_PRECISION_HINT says otherwise.
    """

    refuses_by = (RuntimeError,)

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
                f"OpenVINO rejects these runtime options: {message_of(error)}"
            ) from error

    def describe(self) -> Mapping[str, str]:
        """Return version and settings."""
        version = self._versions[self._device].build_number if self._versions else "unknown"
        return {"version": version, DEVICE: self._device, **self._properties}

    @staticmethod
    def reason(error: Exception) -> str:
        """Return the line of an exception that `message_of` finds."""
        return message_of(error)

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Compile the model."""
        is_native = vector.record.domain == DOMAIN
        model = _native(vector) if is_native else self._core.read_model(vector.model)
        compiled = self._core.compile_model(model, self._device)
        request = compiled.create_infer_request()
        # An input that OpenVINO ignores, such as P, is no longer an input of its model.
        names = [_name_of(port, vector.fed) for port in compiled.inputs]
        wanted = vector.record.outputs
        outputs = {_name_of(port, wanted): k for k, port in enumerate(compiled.outputs)}

        def bound(asked: Vector) -> Prepared:
            fed = {name: as_tensor(asked.fed[name]) for name in names}
            return Prepared(
                # Its buffers are not copied: this is the fastest way to call it from Python.
                lambda: request.infer(fed, share_inputs=True, share_outputs=True),
                lambda _: {n: as_array(request.get_output_tensor(k)) for n, k in outputs.items()},
            )

        return bound


def _name_of(port: Any, known: Collection[str]) -> str:
    """Return the name of an input or output that is known, of all that its passes gave it."""
    names: list[str] = sorted(port.names)
    return next((name for name in names if name in known), names[0])


def as_tensor(values: Array) -> Any:
    """Return an array as OpenVINO's tensor.

    Raises:
        Refusal: it lacks the element type.
    """
    row = dtype_of(values)
    if row.native_to_numpy:
        return openvino.Tensor(np.array(values, row.numpy, order="C"))
    for short, name in BITS.items():
        if row.name == name:
            bits = np.ascontiguousarray(values).view(np.uint16)
            return openvino.Tensor(bits, values.shape, getattr(openvino.Type, short))
    raise Refusal(f"has no element type {row}")


def _native(vector: Vector) -> Any:
    """Build a model of one of its own operators, which its ONNX frontend cannot read."""
    record, operator = vector.record, vector.node.operator
    build = NATIVE.get(record.operator)
    if build is None:
        raise Refusal(f"cannot build {record.operator} in this version of it")
    nodes: dict[str, Any] = {}
    for name, values in all_inputs(vector).items():
        tensor = as_tensor(values)
        if name in vector.initializers or name not in vector.inputs:
            nodes[name] = openvino.op.Constant(tensor, shared_memory=False)
        else:
            nodes[name] = opset5.parameter(list(values.shape), tensor.element_type, name)
            nodes[name].output(0).tensor.set_names({name})
    attributes = with_truths(operator, vector.attributes)
    clip = attributes.pop("clip", None)
    node = build(
        *nodes.values(), **{**UNWRITTEN, **attributes}, **({} if clip is None else {"clip": clip})
    )
    results = []
    for k, row in enumerate(operator.outputs):
        if row.name in record.outputs:
            node.output(k).tensor.set_names({row.name})
            results.append(opset5.result(node.output(k)))
    fed = [nodes[name] for name in vector.fed]
    return openvino.Model(results, fed, record.operator)


def message_of(error: Exception) -> str:
    """Return the most telling line of an exception: the last one about the model."""
    lines = [PLACED.sub("", line.strip()) for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith(NOISE)]
    checks = [line for line in lines if line.startswith("Check ")]  # the last one was the first
    return printable((telling or checks)[-1]) if telling or checks else first_line(str(error))
