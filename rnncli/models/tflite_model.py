"""Models of TFLite, `model.tflite`, and their recurrent operators.

The package `tflite` has the classes of the schema; nothing of a graph is run. The LSTMs of
the main subgraph become a model of ours. Its inputs are the tensors that they read, but for
constants, which are initializers. States are variables, which start from zero; one that is also an
input of the file's graph is one of ours.

https://github.com/tensorflow/tensorflow/blob/master/tensorflow/compiler/mlir/lite/schema/schema.fbs
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from onnx import TensorProto, helper

from rnncli.errors import InvalidOperator, UnreadableFile, Unsupported, listed
from rnncli.files.formats.pb import tensor_of
from rnncli.files.reading import read_bytes
from rnncli.models.evaluation_settings import EvaluationSettings
from rnncli.models.loading import model_from
from rnncli.models.model import GRAPH, Model
from rnncli.models.node_listing import RECURRENT, UnevaluatedNode
from rnncli.models.single_node import FREE_INITIALIZERS, node_attribute
from rnncli.models.steps import OwnRecurrentNode
from rnncli.numerics import DTYPES, dtype_named
from rnncli.operators import operator_named
from rnncli.operators.tflite_float_rows import OWN_INPUT_GATE, PEEPHOLES
from rnncli.operators.tflite_rows import GATES
from rnncli.talk.installing import install_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from onnx import NodeProto, ValueInfoProto

    from rnncli.numerics import Array

DOMAIN = "tflite"
OPERATOR = "UNIDIRECTIONAL_SEQUENCE_LSTM"
LOOP = "WHILE"
OPTIONS = "UnidirectionalSequenceLSTMOptions"
INPUTS = 24  # of the operator, absent ones included
# Our name of an input -> its place. Behind them are the scales of layer normalisation.
SLOTS: Mapping[str, int] = {
    "input": 0,
    **{f"input_to_{gate}_weights": 1 + k for k, gate in enumerate(GATES)},
    **{f"recurrent_to_{gate}_weights": 5 + k for k, gate in enumerate(GATES)},
    **{name: 9 + k for k, name in enumerate(PEEPHOLES)},
    **{f"{gate}_gate_bias": 12 + k for k, gate in enumerate(GATES)},
    "projection_weights": 16,
    "projection_bias": 17,
    "output_state": 18,
    "cell_state": 19,
}
STATES = ("output_state", "cell_state")
NORMS = (20, 21, 22, 23)
_PARTS = {"peepholes": (9, 10, 11), "a projection": (16, 17)}
GATE_SCALE = 2.0**-12  # of the intermediate tensors of the gates
# Our names of element types; the schema has them in capitals.
TYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bool"),
)


def schema() -> Any:
    """Return the package `tflite`, the classes of the schema.

    Raises:
        Unsupported: it is not installed.
    """
    try:
        import flatbuffers  # noqa: F401 -- which it needs
        import tflite
    except ImportError as error:
        raise Unsupported(
            "TFLite's models are read and written by the package tflite, which is not installed;"
            f" install it with: {install_line('tflite')}"
        ) from error
    return tflite


class TfliteTensor(NamedTuple):
    """A tensor of the main subgraph."""

    number: int
    name: str  # unique: with its number if the file has the name twice
    dtype: str  # "" for a type that is not supported
    shape: tuple[int, ...]
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    values: Array | None  # of a constant

    @property
    def info(self) -> ValueInfoProto:
        """Its declaration."""
        onnx_type = DTYPES[self.dtype].onnx if self.dtype else TensorProto.UNDEFINED
        return helper.make_tensor_value_info(self.name, onnx_type, self.shape)


@dataclass(frozen=True, eq=False)
class TfliteModel:
    """A model of TFLite."""

    content: bytes
    recurrent: Model  # the LSTMs, with their constants
    interface: Model  # its own inputs and outputs, as a model without nodes
    unevaluated: tuple[UnevaluatedNode, ...]  # recurrent operators that are not supported
    others: tuple[str, ...]  # the other operators, in order
    numbers: Mapping[str, int]  # of the tensors by name

    def single(self) -> Model:
        """Return the model if it consists of LSTMs alone.

        Raises:
            Unsupported: it has other operators, or none.
        """
        name = self.recurrent.name
        if not (self.recurrent.proto.graph.node or self.unevaluated or self.others):
            raise Unsupported(f"{name}: has no operators")
        if not self.recurrent.proto.graph.node and len(self.unevaluated) == 1 and not self.others:
            raise Unsupported(f"{name}: cannot be evaluated here: {self.unevaluated[0]}")
        if not self.others and not self.unevaluated:
            return self.recurrent
        left = [*map(str, self.unevaluated)]
        left += [
            f"{count} {kind}" if count > 1 else kind for kind, count in Counter(self.others).items()
        ]
        hint = f"; `rnncli extract` takes each {OPERATOR} out of it"
        raise Unsupported(
            f"{name}: has operators that are not evaluated here: {', '.join(left)}"
            f"{hint if self.recurrent.proto.graph.node else ''}"
        )


def read_tflite(path: Path) -> TfliteModel:
    """Read a model of TFLite.

    Raises:
        UnreadableFile: missing, too large, truncated, foreign or hostile.
        Unsupported: the package `tflite` is not installed.
    """
    content = read_bytes(path)
    tflite = schema()
    if not tflite.Model.ModelBufferHasIdentifier(content, 0):
        raise UnreadableFile(f"{path}: not a model of TFLite: bytes 4 to 7 are not TFL3")
    try:
        return _TfliteReader(tflite, content, str(path)).model()
    except (struct.error, IndexError, TypeError, ValueError, AttributeError) as error:
        # What its classes raise where an offset leads out of the file.
        raise UnreadableFile(f"{path}: damaged: {error}") from error


class _TfliteReader:
    """The parts of a model of ours, gathered from a file."""

    def __init__(self, tflite: Any, content: bytes, name: str) -> None:
        self._tflite, self._content, self._name = tflite, content, name
        self._file = tflite.Model.GetRootAs(content)
        self._names = {n: k for k, n in vars(tflite.BuiltinOperator).items() if isinstance(n, int)}
        self._types = {getattr(tflite.TensorType, name.upper()): name for name in TYPES}
        if not self._file.SubgraphsLength():
            raise ValueError("it has no subgraph")
        graph = self._file.Subgraphs(0)
        self._graph, self._tensors = graph, [*self._all_tensors(graph)]
        self._held: dict[str, Array] = {}

    def model(self) -> TfliteModel:
        """Return the model."""
        nodes, made, unevaluated, others = [], [], [], []
        for place in range(self._file.SubgraphsLength()):
            graph = self._file.Subgraphs(place)
            for k in range(graph.OperatorsLength()):
                op = graph.Operators(k)
                kind = self._kind(op)
                where, reason = f"{kind}_{place}_{k}" if place else f"{kind}_{k}", ""
                if kind == OPERATOR and not place:
                    try:
                        node, outputs = self._node(op, where)
                    except Unsupported as error:
                        reason = str(error)
                    else:
                        nodes.append(node)
                        made += outputs
                        continue
                elif kind == OPERATOR:
                    reason = "it is in a subgraph that another operator calls"
                elif kind == LOOP:
                    reason = "a loop, as Keras 3 writes an LSTM; tf_keras exports it whole"
                elif not RECURRENT.search(kind):
                    others.append(kind)
                    continue
                unevaluated.append(
                    UnevaluatedNode(where, f"{DOMAIN}::{kind}", (GRAPH, where), reason)
                )
        written = {name for node in nodes for name in node.output}
        read = dict.fromkeys(name for node in nodes for name in node.input if name)
        by_name = {tensor.name: tensor for tensor in self._tensors}
        inputs = [by_name[n].info for n in read if n not in written and n not in self._held]
        held = [tensor_of(name, values) for name, values in self._held.items()]
        opsets = [helper.make_opsetid(DOMAIN, 1)]
        graph = helper.make_graph(nodes, "recurrent operators", inputs, made, held)
        proto = helper.make_model(graph, opset_imports=opsets, ir_version=FREE_INITIALIZERS)
        inputs, outputs = (
            [self._tensors[k].info for k in numbers.tolist()]
            for numbers in (self._graph.InputsAsNumpy(), self._graph.OutputsAsNumpy())
        )
        interface = helper.make_model(helper.make_graph([], "interface", inputs, outputs))
        return TfliteModel(
            self._content,
            model_from(proto, self._name) if nodes else Model(proto, self._name),
            Model(interface, self._name),
            tuple(unevaluated),
            tuple(others),
            {tensor.name: tensor.number for tensor in self._tensors},
        )

    def _kind(self, op: Any) -> str:
        code = self._file.OperatorCodes(op.OpcodeIndex())
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        if number == self._tflite.BuiltinOperator.CUSTOM and code.CustomCode():
            return str(code.CustomCode().decode(errors="replace"))
        return str(self._names.get(number, f"operator {number}"))

    def _all_tensors(self, graph: Any) -> Iterator[TfliteTensor]:
        named = [
            (graph.Tensors(k).Name() or b"").decode(errors="replace")
            for k in range(graph.TensorsLength())
        ]
        for k, name in enumerate(named):
            tensor = graph.Tensors(k)
            dtype = self._types.get(tensor.Type(), "")
            shape = tuple(tensor.ShapeAsNumpy().tolist()) if tensor.ShapeLength() else ()
            told = tensor.Quantization()
            scales = told.ScaleAsNumpy().tolist() if told and told.ScaleLength() else []
            points = told.ZeroPointAsNumpy().tolist() if told and told.ZeroPointLength() else []
            values = None
            buffer = self._file.Buffers(tensor.Buffer())
            if dtype and buffer.DataLength():
                stored = dtype_named(dtype).numpy.newbyteorder("<")
                # A view: many tensors of a hostile file may have the same buffer.
                values = buffer.DataAsNumpy().view(stored).reshape(shape)
            unique = name if name and named.count(name) == 1 else f"{name or 'tensor'}:{k}"
            yield TfliteTensor(k, unique, dtype, shape, tuple(scales), tuple(points), values)

    def _node(self, op: Any, name: str) -> tuple[NodeProto, list[ValueInfoProto]]:
        """Return the node of an operator, and its outputs.

        Raises:
            Unsupported: it is not an LSTM as a row has it.
        """
        slots = op.InputsAsNumpy().tolist()
        slots += [-1] * (INPUTS - len(slots))
        given = {n: self._tensors[slots[k]] for n, k in SLOTS.items() if slots[k] >= 0}
        output = self._tensors[op.Outputs(0)]
        options = self._tflite.UnidirectionalSequenceLSTMOptions()
        if op.BuiltinOptions():
            options.Init(op.BuiltinOptions().Bytes, op.BuiltinOptions().Pos)
        is_real = slots[0] >= 0 and self._tensors[slots[0]].dtype == "float32"
        faults = self._faults_of_floats(given) if is_real else self._faults(given, output, slots)
        tanh, function = self._tflite.ActivationFunctionType.TANH, options.FusedActivationFunction()
        if reason := next(faults, ""):
            raise Unsupported(reason)
        if function != tanh:
            raise Unsupported(f"its fused activation function is {function}, not TANH")
        if any(slots[k] >= 0 for k in NORMS):
            raise Unsupported("it has layer normalisation")
        attributes = {"time_major": options.TimeMajor(), "cell_clip": options.CellClip()}
        form = ""
        if is_real:
            words = {"coupled": OWN_INPUT_GATE[0] not in given, "peephole": PEEPHOLES[1] in given}
            attributes["variant"] = "_".join(word for word in words if words[word]) or "plain"
            form = "_PROJECTED" if "projection_weights" in given else "_FLOAT"
            attributes |= {"proj_clip": options.ProjClip()} if form == "_PROJECTED" else {}
        else:
            attributes |= self._scales(given, op)

        row = operator_named(f"{DOMAIN}.{OPERATOR}{form}")
        fed = self._graph.InputsAsNumpy().tolist()  # of which a state may be one
        inputs = [
            given[name].name
            if name in given and (name not in STATES or given[name].number in fed)
            else ""
            for name in (each.name for each in row.inputs)
        ]
        # What the variables hold after the call.
        finals = [f"{name} / final_{state}" for state in STATES]
        outputs = [output.name, *finals]
        node = helper.make_node(row.type, inputs, outputs, name, domain=DOMAIN)
        node.attribute.extend(node_attribute(row, *pair) for pair in sorted(attributes.items()))
        try:
            OwnRecurrentNode(node, row, EvaluationSettings())  # which refuses wrong ones
        except InvalidOperator as error:
            sentences = listed([problem.sentence for problem in error.problems], "; ")
            raise Unsupported(sentences) from error
        self._held |= {t.name: t.values for t in given.values() if t.values is not None}
        states = (given[state] for state in STATES)
        after = [t._replace(name=n).info for t, n in zip(states, finals, strict=True)]
        return node, [output.info, *after]

    def _scales(self, given: Mapping[str, TfliteTensor], op: Any) -> dict[str, Any]:
        """Return the attributes of an integer LSTM that say what its integers stand for."""
        x, h, c = (given[n] for n in ("input", *STATES))
        attributes: dict[str, Any] = {
            "input_scale": x.scales[0],
            "input_zero_point": x.zero_points[0],
            "output_state_scale": h.scales[0],
            "output_state_zero_point": h.zero_points[0],
            "cell_state_scale": c.scales[0],
        }
        for of in ("input", "recurrent"):
            scales = [given[f"{of}_to_{gate}_weights"].scales[0] for gate in GATES]
            attributes[f"{of}_weight_scales"] = scales
        if op.IntermediatesLength() == len(GATES) + 1:
            inner = self._tensors[op.Intermediates(len(GATES))]
            own = [(*each.scales[:1], *each.zero_points[:1]) for each in (inner, h)]
            if own[0] and own[0] != own[1]:
                attributes |= {"hidden_scale": own[0][0], "hidden_zero_point": own[0][1]}
        return attributes

    def _faults_of_floats(self, given: Mapping[str, TfliteTensor]) -> Iterator[str]:
        """Yield why an operator with float32 inputs is not an LSTM that is evaluated here."""
        optional = {*OWN_INPUT_GATE, *PEEPHOLES, "projection_weights", "projection_bias"}
        yield from (_missing(name) for name in SLOTS if name not in {*given, *optional})
        for name, tensor in given.items():
            if tensor.dtype != "float32":
                yield f"it has float32 inputs, and {name} is of {tensor.dtype or 'another type'}"
            yield from _wrong_kind(name, tensor)
        if "projection_bias" in given and "projection_weights" not in given:
            yield "it has the bias of a projection without its weights"

    def _faults(
        self,
        given: Mapping[str, TfliteTensor],
        output: TfliteTensor,
        slots: Sequence[int],
    ) -> Iterator[str]:
        """Yield why an operator is not an integer LSTM that is evaluated here."""
        needed = (row.name for row in operator_named(f"{DOMAIN}.{OPERATOR}").inputs)
        if missing := [name for name in needed if name not in given]:
            yield _missing(missing[0])
            return
        yield from (
            f"it has {part}"
            for part, places in _PARTS.items()
            if any(slots[k] >= 0 for k in places)
        )
        x, h, c = (given[name] for name in ("input", *STATES))
        kinds = x.dtype, given["input_to_input_weights"].dtype, c.dtype
        if kinds[0] not in {"int8", "int16"} or kinds[1:] != ("int8", "int16"):
            told = zip(("inputs", "weights", "cell states"), kinds, strict=True)
            words = ", ".join(f"{kind or 'another type'} {what}" for what, kind in told)
            yield (
                f"it has {words}; evaluated are int8 or int16 inputs, int8 weights, int16 states,"
                " or all of float32"
            )
        for name, tensor in given.items():
            counts = {len(tensor.scales), len(tensor.zero_points)}
            if counts != {1} and not name.endswith("bias"):
                yield f"{name} has {len(tensor.scales)} scales; one of all values is evaluated"
            elif (name.endswith("weights") or name == "cell_state") and any(tensor.zero_points):
                yield f"{name} has zero point {tensor.zero_points[0]}, not 0"
            yield from _wrong_kind(name, tensor)
        if (output.scales, output.zero_points) != (h.scales, h.zero_points):
            yield "output and output_state have different scales or zero points"


def _missing(name: str) -> str:
    ends = ", without which neither tflite-micro nor LiteRT loads it"
    return f"no {name}{ends if name.endswith('bias') else ''}"


def _wrong_kind(name: str, tensor: TfliteTensor) -> Iterator[str]:
    """Yield whether a tensor is a constant that should not be, or is not one that should."""
    if (tensor.values is None) != (name == "input" or name in STATES):
        yield f"{name} is {'not ' if tensor.values is None else ''}a constant"
