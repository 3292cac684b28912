"""Sessions of ONNX Runtime as a host of nodes, and the process that makes the first call of each.

ONNX Runtime ends the process on some models, which no exception tells: version 1.32 on a Transpose
and a MatMul in float16 that it fuses. So a session is opened in a child first, which answers its
first call; only what survives that is opened here, for further calls.
"""

from __future__ import annotations

import atexit
import math
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rnncli.errors import Unsupported
from rnncli.jobs.processes import BLAS_THREADS
from rnncli.limits import current_activity
from rnncli.supervision.connection import LARGEST, IsolatedProcess, LostError, Message, served
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.numerics import Array

LEVEL = "ORT_DISABLE_ALL"
"""The level of optimisation: each node by its own kernel.

Measured on 2026-11-27 with ONNX Runtime 1.32.0: from ORT_ENABLE_BASIC on, GTCRN moves by 1.7e-6,
from ORT_ENABLE_EXTENDED on, models between QuantizeLinear and DequantizeLinear by whole levels; of
the models in tests/data none takes longer at this level, and sessions open in two thirds the time.
"""

FATAL = 4
SERVE = "rnncli.models.host_sessions:serve"
RAN, FAILED, REFUSED = "ran", "failed", "refused"
MODEL, CONSTANT = "model", "constant/"


class HostModel(NamedTuple):
    """A model for ONNX Runtime, and how it opens it."""

    proto: bytes
    constants: Mapping[str, Array]  # initializers whose memory is shared, by name
    threads: int
    level: str


class CallFailed(Exception):  # noqa: N818 -- reads as what it says
    """A session that opened and failed in its first call; `str()` is the reason."""


def opened(model: HostModel) -> Any:
    """Return a session; the constants must outlive it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = model.threads, 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, model.level)
    options.log_severity_level = FATAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    made = onnxruntime.OrtValue.ortvalue_from_numpy
    options.add_external_initializers(
        [*model.constants], [made(each) for each in model.constants.values()]
    )
    return onnxruntime.InferenceSession(model.proto, options, providers=["CPUExecutionProvider"])


def first_call(
    model: HostModel, outputs: Sequence[str], fed: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """Open a session in a child, which calls it; return the outputs, or None if no child can.

    Raises:
        CallFailed: the call failed.
        Unsupported: the model is refused, or it ends the process.
        TypeError: a value is neither a tensor nor a sequence.
    """
    given = [MODEL, *(CONSTANT + name for name in model.constants)]
    tensors = dict(
        zip(given, (np.frombuffer(model.proto, np.uint8), *model.constants.values()), strict=True)
    )
    inputs = {name: _packed(value, tensors) for name, value in fed.items()}
    if sum(each.nbytes for each in tensors.values()) >= LARGEST:
        return None
    try:  # a child that no other thread asks
        process = _idle().pop()
    except IndexError:
        environment = {**os.environ, **dict.fromkeys(BLAS_THREADS, "1")}
        try:
            process = IsolatedProcess(SERVE, environment=environment, shares_limit=True)
        except Unsupported:  # a system without process groups
            return None
    question = {
        "threads": model.threads,
        "level": model.level,
        "inputs": inputs,
        "outputs": [*outputs],
    }
    activity = current_activity()
    left = math.inf if activity is None or activity.left is None else activity.left
    try:
        answer = process.exchange(Message(0, RAN, question, tensors), time.monotonic() + left)
    except BaseException as error:
        process.end()
        if isinstance(error, LostError):
            raise Unsupported(f"it {error}") from None
        raise
    _idle().append(process)
    if answer.kind == RAN:
        return tuple(_unpacked(each, answer.tensors) for each in answer.fields["outputs"])
    reason = printable(str(answer.fields.get("message")))
    raise CallFailed(reason) if answer.kind == FAILED else Unsupported(reason)


_IDLE: dict[int, list[IsolatedProcess]] = {}
"""Children that wait for a question, by the process that asks them: a fork must start its own."""


def _idle() -> list[IsolatedProcess]:
    return _IDLE.setdefault(os.getpid(), [])


@atexit.register
def _end() -> None:
    for process in _idle():
        process.end()


def serve(descriptor: int) -> None:
    """Open a session for each message, and call it, until the socket's other end is closed."""
    with served(descriptor) as channel:
        while True:
            channel.send(_answer(channel.receive()))


def _answer(asked: Message) -> Message:
    about, tensors = asked.fields, dict(asked.tensors)
    proto = tensors.pop(MODEL).tobytes()
    constants = {
        name.removeprefix(CONSTANT): tensors.pop(name)
        for name in [*tensors]
        if name.startswith(CONSTANT)
    }
    kind = REFUSED
    try:
        session = opened(HostModel(proto, constants, about["threads"], about["level"]))
        kind = FAILED
        fed = {name: _unpacked(value, tensors) for name, value in about["inputs"].items()}
        made: Tensors = {}
        outputs = [_packed(each, made) for each in session.run(about["outputs"], fed)]
    except Exception as error:  # noqa: BLE001 -- ONNX Runtime raises anything
        return Message(asked.number, kind, {"message": str(error)})
    return Message(asked.number, RAN, {"outputs": outputs}, made)


def _packed(value: Any, tensors: Tensors) -> Any:
    """Return a value in JSON, whose numbers are tensors under names that are free."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_packed(each, tensors) for each in value]
    if not isinstance(value, np.ndarray):
        raise TypeError(f"a {type(value).__name__} is neither a tensor nor a sequence")
    if value.dtype.kind in "OUS":
        return {"shape": value.shape, "text": value.ravel().tolist()}
    tensors[name := f"{len(tensors)}"] = value
    return name


def _unpacked(packed: Any, tensors: Tensors) -> Any:
    if isinstance(packed, list):
        return [_unpacked(each, tensors) for each in packed]
    if isinstance(packed, dict):
        return np.array(packed["text"], object).reshape(packed["shape"])
    return None if packed is None else tensors[packed]
