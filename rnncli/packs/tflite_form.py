"""Vectors with TFLite's own model: the raw form, and `model.tflite` beside it.

    test_ID/model.tflite            one operator; weights and biases are constants
    test_ID/calls/1/model.tflite    of a second call, if its constants are others

The model is what a converter writes of an LSTM: 24 inputs, of which those that it lacks are absent,
states that are variables, and of a quantised one 5 intermediate tensors. A file has no values of
variables, and an interpreter starts from their zero points. States that a case gives are inputs of
the graph as well, so that they can be set before the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.files.formats.raw import content_of
from rnncli.models.tflite_model import GATE_SCALE, INPUTS, OPTIONS, SLOTS, STATES, schema
from rnncli.operators.tflite_rows import BIASES, CELL_STATES, GATES
from rnncli.packs import raw_form
from rnncli.packs.vector import group_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rnncli.numerics import Array
    from rnncli.packs.vector import Vector

MODEL = "model.tflite"
VERSION, FILE_ID = 3, b"TFL3"  # of the schema
OPERATOR_VERSION = 3  # the first with integers inside
ALIGNMENT = 16  # of constants, in bytes


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder.

    Raises:
        Unsupported: the raw form cannot hold it, or the package `tflite` is not installed.
    """
    models: dict[str, bytes] = {}
    for each in vector.calls:
        if (model := model_of(each)) not in models.values():
            models[f"{group_of(each.call)}{MODEL}"] = model
    return {**raw_form.files_of(vector), **models}


class FileTensor(NamedTuple):
    """A tensor of a model."""

    name: str
    dtype: str
    shape: Sequence[int]
    scale: float | None = None  # None of real numbers
    zero_point: int = 0
    values: Array | None = None  # of a constant
    is_variable: bool = False


def tensors_of(vector: Vector) -> Iterator[FileTensor]:
    """Yield the tensors of a vector's model: inputs, output, and 5 intermediates of integers."""
    node, given, sizes = vector.node, vector.inputs, vector.record.sizes
    values, dtype = node.values, vector.record.dtype
    if dtype == "float32":
        for row in (*node.operator.inputs, node.operator.outputs[0]):
            held = given.get(row.name) if row.role not in {"X", "initial_h", "initial_c"} else None
            is_state = row.name in STATES
            if held is not None or is_state or row.role in {"X", "Y"}:
                shape = [sizes[dim.symbol] for dim in row.shape(node.variant)]
                yield FileTensor(row.name, dtype, shape, values=held, is_variable=is_state)
        return
    hidden = values["output_state_scale"], values["output_state_zero_point"]
    batch, units = sizes["batch_size"], sizes["hidden_size"]
    X, scale = given["input"], np.float32(values["input_scale"])
    yield FileTensor("input", dtype, X.shape, values["input_scale"], values["input_zero_point"])
    for of in ("input", "recurrent"):
        scales = values[f"{of}_weight_scales"]
        for gate, weight_scale in zip(GATES, scales, strict=True):
            W = given[f"{of}_to_{gate}_weights"]
            yield FileTensor(f"{of}_to_{gate}_weights", "int8", W.shape, weight_scale, values=W)
    for gate, weight_scale in zip(GATES, values["input_weight_scales"], strict=True):
        product = float(scale * np.float32(weight_scale))
        bias = given[f"{gate}_gate_bias"]
        yield FileTensor(f"{gate}_gate_bias", BIASES[dtype], bias.shape, product, values=bias)
    state = [batch, units]
    yield FileTensor("output_state", dtype, state, *hidden, is_variable=True)
    cell_scale = values["cell_state_scale"]
    yield FileTensor("cell_state", CELL_STATES[dtype], state, cell_scale, is_variable=True)
    yield FileTensor("output", dtype, [*X.shape[:-1], units], *hidden)
    for gate in GATES:  # of no size: only their scales are read
        yield FileTensor(f"{gate}_intermediate", "int16", [0], GATE_SCALE)
    own = values["hidden_scale"], values["hidden_zero_point"] or 0
    yield FileTensor("hidden_intermediate", dtype, [0], *(hidden if own[0] is None else own))


def numbers_of(vector: Vector) -> dict[str, int]:
    """Return the numbers of the tensors in a vector's model by name."""
    return {tensor.name: k for k, tensor in enumerate(tensors_of(vector))}


def fed_inputs(vector: Vector) -> dict[str, Array]:
    """Return the inputs that are no constants of a vector's model, in the model's order."""
    given = vector.inputs
    return {name: given[name] for name in ("input", *STATES) if name in given}


def model_of(vector: Vector) -> bytes:
    """Return the content of `model.tflite`.

    Raises:
        Unsupported: the package `tflite` is not installed.
    """
    return _TfliteWriter().model(vector)


class _TfliteWriter:
    """A file in the making; methods return the offset of what they have written."""

    def __init__(self) -> None:
        self._schema = schema()
        from flatbuffers import Builder

        self._builder: Any = Builder(4096)

    def model(self, vector: Vector) -> bytes:
        tflite, table, tables = self._schema, self._table, self._tables
        given, values = [*tensors_of(vector)], vector.node.values
        numbers = {tensor.name: k for k, tensor in enumerate(given)}
        slots = [-1] * INPUTS
        for name in SLOTS.keys() & numbers:
            slots[SLOTS[name]] = numbers[name]

        buffers, tensors = [table("Buffer")], []  # the first is that of all without values
        for tensor in given:
            place = 0
            if tensor.values is not None:
                place, content, to = len(buffers), content_of(tensor.values), self._builder
                to.StartVector(1, len(content), ALIGNMENT)
                to.head -= len(content)
                to.Bytes[to.head : to.head + len(content)] = content
                buffers.append(table("Buffer", Data=int(to.EndVector())))
            tensors.append(self._tensor(tensor, place))
        options = table(
            OPTIONS,
            FusedActivationFunction=tflite.ActivationFunctionType.TANH,
            CellClip=values["cell_clip"],
            ProjClip=values.get("proj_clip", 0.0),
            TimeMajor=values["time_major"],
        )
        code = tflite.BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM
        operator = table(
            "Operator",
            OpcodeIndex=0,
            Inputs=self._integers(slots),
            Outputs=self._integers([numbers["output"]]),
            BuiltinOptionsType=getattr(tflite.BuiltinOptions, OPTIONS),
            BuiltinOptions=options,
            Intermediates=self._integers(
                [k for name, k in numbers.items() if name.endswith("_intermediate")]
            ),
        )
        graph = table(
            "SubGraph",
            Tensors=tables(tensors),
            Inputs=self._integers([numbers[name] for name in fed_inputs(vector)]),
            Outputs=self._integers([numbers["output"]]),
            Operators=tables([operator]),
            Name=self._text("main"),
        )
        operator_code = table(
            "OperatorCode", DeprecatedBuiltinCode=code, Version=OPERATOR_VERSION, BuiltinCode=code
        )
        model = table(
            "Model",
            Version=VERSION,
            OperatorCodes=tables([operator_code]),
            Subgraphs=tables([graph]),
            Description=self._text(vector.id),
            Buffers=tables(buffers),
        )
        self._builder.Finish(model, FILE_ID)
        return bytes(self._builder.Output())

    def _tensor(self, tensor: FileTensor, place: int) -> int:
        scaled = {}
        if tensor.scale is not None:
            scales = np.atleast_1d(np.array(tensor.scale, np.float32))
            points = np.array([tensor.zero_point])
            scaled["Scale"] = self._builder.CreateNumpyVector(scales)
            scaled["ZeroPoint"] = self._builder.CreateNumpyVector(points)
        quantisation = self._table("QuantizationParameters", **scaled)
        return self._table(
            "Tensor",
            Shape=self._integers(tensor.shape),
            Type=getattr(self._schema.TensorType, tensor.dtype.upper()),
            Buffer=place,
            Name=self._text(tensor.name),
            Quantization=quantisation,
            IsVariable=tensor.is_variable,
        )

    def _table(self, kind: str, **fields: Any) -> int:
        """Write a table; what its fields refer to is written before."""
        getattr(self._schema, f"{kind}Start")(self._builder)
        for name, value in fields.items():
            getattr(self._schema, f"{kind}Add{name}")(self._builder, value)
        return int(getattr(self._schema, f"{kind}End")(self._builder))

    def _tables(self, offsets: list[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _integers(self, values: Sequence[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.array(values, np.int32)))

    def _text(self, text: str) -> int:
        return int(self._builder.CreateString(text))
