"""A whole model with its inputs as what implementations are asked to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from onnx import ModelProto, TensorProto, numpy_helper

from rnncli.errors import Unsupported
from rnncli.models.model import all_bodies
from rnncli.models.tensor_values import tensor_values
from rnncli.numerics import dtype_of
from rnncli.packs.record import UNKNOWN
from rnncli.packs.vector import Answers, Vector

if TYPE_CHECKING:
    from rnncli.files.formats.format import Tensors
    from rnncli.models.model import Model
    from rnncli.running.request import Run


def vector_of_run(name: str, model: Model, run: Run) -> Vector:
    """Return a model as a vector with the inputs of a run, and its outputs as answers.

    Its record has no operator: only what runs whole models can run it.

    Raises:
        Unsupported: an input or output is not a tensor of numbers.
        InvalidRequest: external data of the model is missing or damaged.
    """
    for tensor, values in (*run.inputs.items(), *run.outputs.items()):
        if not isinstance(values, np.ndarray) or values.dtype.kind in "OSU":
            raise Unsupported(f"{model.name}: '{tensor}' is not a tensor of numbers")
    return vector_of_call(name, whole_model(model).SerializeToString(), run.inputs, run.outputs)


def vector_of_call(name: str, serialized: bytes, inputs: Tensors, outputs: Tensors) -> Vector:
    """Return a call of a model as a vector; its dtype is the first that is floating-point."""
    rows = [dtype_of(values) for values in (*inputs.values(), *outputs.values())]
    dtype = next((row for row in rows if row.is_float), rows[-1])
    record = replace(UNKNOWN, id=name, inputs=[*inputs], outputs=[*outputs], dtype=dtype.name)
    return Vector(name, serialized, inputs, (), Answers(outputs), {}, record)


def whole_model(model: Model) -> ModelProto:
    """Return a copy of a model with its external data inside, since runtimes get no files.

    Raises:
        InvalidRequest: external data is missing or damaged.
    """
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    tensors = (t for body in all_bodies(proto) for t in getattr(body, "initializer", ()))
    for tensor in tensors:
        if tensor.data_location == TensorProto.EXTERNAL:
            values = tensor_values(tensor, model.folder)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return proto
