"""Protobuf messages, mutated field by field as their descriptors have it; and models to mutate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from fuzz_trees import CANARIES, NUMBERS, TEXTS
from google.protobuf.descriptor import FieldDescriptor as Kind
from onnx import ModelProto, TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    import random

_INTEGERS = [value for value in NUMBERS if type(value) is int and abs(value) < 1 << 64]
_FLOATS = [0.0, -0.0, 1.5, 1e38, -1e38, 1e-45, float("nan"), float("inf"), -float("inf")]
_TEXTS = [text for text in TEXTS if len(text) < 20_000]
OPERATORS = (
    *("LSTM", "GRU", "RNN", "Loop", "If", "Scan", "Identity", "Add", "MatMul", "Reshape", "Expand"),
    *("Tile", "ConstantOfShape", "Range", "Pad", "Concat", "Split", "Slice", "Gather", "Squeeze"),
    *("Unsqueeze", "Transpose", "Cast", "Constant", "Shape", "Where", "Conv", "Resize", "Softmax"),
    *("Einsum", "TopK", "OneHot", "NonZero", "CumSum", "GatherND", "ScatterND", "SequenceInsert"),
    *("SequenceAt", "SplitToSequence", "Optional", "DequantizeLinear", "QuantizeLinear", "STFT"),
    *("DFT", "MaxPool", "EyeLike", "Bernoulli", "RandomNormal", "StringSplit", "Trilu", "Unique"),
    *(
        "GroupNormalization",
        "Attention",
        "LayerNormalization",
        "Gelu",
        "MelWeightMatrix",
        "Compress",
    ),
)
NAMES = (
    "x",
    "y",
    "w",
    "s",
    "h",
    "X",
    "W",
    "R",
    "Y",
    "Y_h",
    "cond",
    "i",
    "location",
    "offset",
    "length",
)


def messages(message: Any) -> list[Any]:
    """Return a message and all in it."""
    found = [message]
    for field, value in message.ListFields():
        if field.type == Kind.TYPE_MESSAGE:
            for each in [*value] if _repeated(field) else [value]:
                found += messages(each)
    return found


def _repeated(field: Any) -> bool:
    return bool(getattr(field, "is_repeated", False))


def _value(field: Any, dice: random.Random) -> Any:
    if field.type in (Kind.TYPE_FLOAT, Kind.TYPE_DOUBLE):
        return dice.choice(_FLOATS)
    if field.type == Kind.TYPE_STRING:
        return dice.choice((*_TEXTS, *NAMES * 4, *OPERATORS)).encode("utf-8", "replace").decode()
    if field.type == Kind.TYPE_BYTES:
        return dice.choice(
            (
                b"",
                b"\xff",
                b"x" * 7,
                bytes(64),
                dice.randbytes(9),
                *(n.encode() for n in NAMES),
                *(n.encode() for n in CANARIES),
            )
        )
    if field.type == Kind.TYPE_ENUM:
        return dice.choice([*field.enum_type.values_by_number])
    low, high = (-(2**31), 2**31) if field.type == Kind.TYPE_INT32 else (-(2**63), 2**63)
    low, high = (0, 2**64) if field.type == Kind.TYPE_UINT64 else (low, high)
    return dice.choice([n for n in (*_INTEGERS, *range(32)) if low <= n < high])


def _change(message: Any, field: Any, pool: list[Any], dice: random.Random) -> None:
    """Change one field of a message: by a value of its type, or by another message of the tree."""
    name = field.name
    if field.type == Kind.TYPE_MESSAGE:
        same = [each for each in pool if each.DESCRIPTOR is field.message_type]
        other = type(dice.choice(same))() if same and dice.random() < 0.1 else None
        other = dice.choice(same) if other is None and same else other
        if _repeated(field):
            _change_list(getattr(message, name), other, dice)
        elif other is not None:
            copy = type(other)()
            copy.CopyFrom(other)
            getattr(message, name).CopyFrom(copy)
        else:
            getattr(message, name).SetInParent()
    elif _repeated(field):
        values = getattr(message, name)
        values[:] = _changed(list(values), field, dice)
    else:
        setattr(message, name, _value(field, dice))


def _change_list(values: Any, other: Any, dice: random.Random) -> None:
    choice = dice.randrange(4)
    if choice == 0 and len(values):
        del values[dice.randrange(len(values))]
    elif choice == 1 and len(values):
        order = [*values]
        dice.shuffle(order)
        copies = [type(each).FromString(each.SerializePartialToString()) for each in order]
        del values[:]
        values.extend(copies)
    elif other is not None:
        copy = type(other).FromString(other.SerializePartialToString())
        values.extend([copy] * (1 if dice.random() < 0.97 else 200))


def _changed(values: list[Any], field: Any, dice: random.Random) -> list[Any]:
    at = dice.randint(0, len(values))
    new = _value(field, dice)
    return dice.choice(
        (
            [*values[:at], new, *values[at + 1 :]],
            [*values[:at], new, *values[at:]],
            [*values[:at], *values[at + 1 :]],
            [*values, *values],
            values[::-1],
            [],
            [new] * 50,
        )
    )


def mutate(message: Any, dice: random.Random, times: int | None = None) -> Any:
    """Mutate a message in place, and return it."""
    for _ in range(times or dice.choice((1, 1, 1, 2, 2, 3, 5))):
        pool = messages(message)
        if len(pool) > 2000:
            break
        target = dice.choice(pool)
        used = [field for field, _ in target.ListFields()]
        fields = used if used and dice.random() < 0.8 else [*target.DESCRIPTOR.fields]
        field = dice.choice(fields)
        if dice.random() < 0.1:
            target.ClearField(field.name)
        else:
            _change(target, field, pool, dice)
    return message


# --- what is mutated ---------------------------------------------------------------------------


def _info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def _model(nodes, inputs, outputs, initializers=(), *, functions=(), **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers), **more)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def _array(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def _recurrent(kind, gates, **attributes):
    shapes = {"W": (1, gates, 2), "R": (1, gates, 1), "B": (1, 2 * gates)}
    weights = [_array(n, np.linspace(-1, 1, np.prod(s)).reshape(s)) for n, s in shapes.items()]
    outputs = ["Y", "Y_h", *(["Y_c"] if kind == "LSTM" else [])]
    node = helper.make_node(kind, ["X", "W", "R", "B"], outputs, hidden_size=1, **attributes)
    infos = [_info(name, None) for name in outputs]
    return _model([node], [_info("X", [3, "N", 2])], infos, weights)


def _loop(trips=3):
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["c"], ["d"]),
            helper.make_node("Add", ["h", "h"], ["k"]),
            helper.make_node("Identity", ["k"], ["scan"]),
        ],
        "body",
        [_info("i", [], TensorProto.INT64), _info("c", [], TensorProto.BOOL), _info("h", None)],
        [_info("d", [], TensorProto.BOOL), _info("k", None), _info("scan", None)],
    )
    node = helper.make_node("Loop", ["trips", "go", "x"], ["y", "ys"], body=body)
    held = [_array("trips", trips, np.int64), _array("go", True, np.bool_)]
    return _model([node], [_info("x", [2])], [_info("y", None), _info("ys", None)], held)


def _branch():
    def one(name, kind):
        return helper.make_graph(
            [helper.make_node(kind, ["x"], ["r"])], name, [], [_info("r", None)]
        )

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=one("t", "Neg"), else_branch=one("e", "Abs")
    )
    return _model([node], [_info("x", [2]), _info("c", [1], TensorProto.BOOL)], [_info("y", None)])


def _scan():
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body",
        [_info("s", [2]), _info("e", [2])],
        [_info("t", [2]), _info("o", [2])],
    )
    node = helper.make_node("Scan", ["h", "x"], ["y", "ys"], body=body, num_scan_inputs=1)
    return _model(
        [node], [_info("h", [2]), _info("x", [3, 2])], [_info("y", None), _info("ys", None)]
    )


def _functions():
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    twice = [
        helper.make_node("inner", ["a"], ["t"], domain="own"),
        helper.make_node("inner", ["t"], ["b"], domain="own"),
    ]
    outer = helper.make_function("own", "outer", ["a"], ["b"], twice, opsets)
    inner_nodes = [helper.make_node("Add", ["a", "a"], ["b"])]
    inner = helper.make_function("own", "inner", ["a"], ["b"], inner_nodes, opsets)
    node = helper.make_node("outer", ["x"], ["y"], domain="own")
    return _model([node], [_info("x", [2, "n"])], [_info("y", None)], functions=[outer, inner])


def _external():
    keys = {"location": "w.bin", "offset": "0", "length": "8"}
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=1)
    for key, value in keys.items():
        weight.external_data.add(key=key, value=value)
    return _model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [_info("x", [2])],
        [_info("y", None)],
        [weight],
    )


def _sparse():
    sparse = helper.make_sparse_tensor(_array("w", [1, 2]), _array("at", [0, 3], np.int64), [4])
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return _model([node], [_info("x", [4])], [_info("y", None)], sparse_initializer=[sparse])


def _shapes():
    nodes = [
        helper.make_node("Constant", [], ["s"], value_ints=[2, 6]),
        helper.make_node("Reshape", ["x", "s"], ["a"]),
        helper.make_node("Constant", [], ["r"], value_ints=[1, 2]),
        helper.make_node("Tile", ["a", "r"], ["b"]),
        helper.make_node("Slice", ["b", "r", "s"], ["c"]),
        helper.make_node("ConstantOfShape", ["s"], ["e"], value=_array("v", [1.5])),
        helper.make_node("Concat", ["b", "e"], ["f"], axis=1),
        helper.make_node("Transpose", ["f"], ["y"], perm=[1, 0]),
    ]
    return _model(nodes, [_info("x", [3, 4])], [_info("y", None), _info("c", None)])


def _texts():
    words = helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"b"])
    nodes = [
        helper.make_node("Identity", ["w"], ["y"]),
        helper.make_node("Cast", ["x"], ["z"], to=TensorProto.FLOAT16),
    ]
    return _model(nodes, [_info("x", [2])], [_info("y", None), _info("z", None)], [words])


def models() -> list[bytes]:
    """Return small models that have one of everything."""
    recurrent = (
        _recurrent("LSTM", 4),
        _recurrent("GRU", 3, linear_before_reset=1),
        _recurrent("RNN", 1, clip=0.5),
    )
    nested = (_loop(), _branch(), _scan(), _functions())
    found = [*recurrent, *nested, _external(), _sparse(), _shapes(), _texts()]
    return [model.SerializeToString() for model in found]


def model_from(content: bytes) -> ModelProto:
    """Return a model to mutate."""
    return ModelProto.FromString(content)


def tensors() -> list[bytes]:
    """Return tensors of several types, as files hold them."""
    kinds = (np.float32, np.float16, np.float64, np.int64, np.int32, np.bool_, np.uint8)
    found = [_array("x", np.arange(6).reshape(2, 3) % 2, kind) for kind in kinds]
    found.append(helper.make_tensor("x", TensorProto.FLOAT, [3], [1.0, 2.0, 3.0]))
    found.append(helper.make_tensor("x", TensorProto.STRING, [2], [b"a", b"\xff"]))
    found.append(helper.make_tensor("x", TensorProto.BFLOAT16, [2], [1, 2]))
    found.append(helper.make_tensor("x", TensorProto.INT4, [3], [1, 2, 3]))
    external = TensorProto(name="x", data_type=1, dims=[2], data_location=1)
    external.external_data.add(key="location", value="w.bin")
    return [each.SerializeToString() for each in (*found, external)]
