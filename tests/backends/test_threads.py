"""Backends, and OpenBLAS for them, have no more threads than evaluations may use."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
import pytest
from support.valid_nodes import valid_node

import rnncli
from rnncli.backends import threads as threads_module
from rnncli.backends.threads import (
    LIMITS,
    UNSHARED_PRODUCT,
    allowed,
    at_once,
    bounded,
    openblas,
    threads,
)
from rnncli.errors import InvalidRequest
from rnncli.models.sessions import evaluate_model


@pytest.mark.parametrize(("value", "count"), [("", 1), (" ", 1), ("1", 1), ("2", 2), (" 16 ", 16)])
def test_the_variable_is_the_number(monkeypatch, value, count):
    """Empty is unset."""
    monkeypatch.setenv("RNNCLI_THREADS", value)
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 64)

    assert threads() == count


def test_no_more_than_processors(monkeypatch):
    """Members of a team that took turns on one would all be late."""
    monkeypatch.setenv("RNNCLI_THREADS", "1000000000")
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 3)

    assert threads() == 3


def test_unset_is_one(monkeypatch):
    """Nobody gets threads without asking."""
    monkeypatch.delenv("RNNCLI_THREADS", raising=False)

    assert threads() == 1


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "²", "0x2"])
def test_what_is_no_number_of_threads_is_refused(monkeypatch, value):
    """With the variable's name, what it wants and what it got."""
    monkeypatch.setenv("RNNCLI_THREADS", value)

    with pytest.raises(InvalidRequest, match=f"RNNCLI_THREADS must be a whole number.*'{value}'"):
        threads()


def test_what_is_allowed_goes_before_the_environment(monkeypatch):
    """Until it is not allowed any more; never more than there are processors."""
    monkeypatch.setenv("RNNCLI_THREADS", "2")
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 4)

    with allowed(9):
        assert threads() == 4
        with allowed(None):
            assert threads() == 2
    assert threads() == 2


@pytest.mark.parametrize("threads", ["1", "2", "3", "8"])
def test_every_task_is_run_once(threads, monkeypatch):
    """By as many threads as there are, whatever the number of tasks."""
    monkeypatch.setenv("RNNCLI_THREADS", threads)
    for count in range(6):
        done = []
        at_once([partial(done.append, k) for k in range(count)])
        assert sorted(done) == list(range(count))


def test_failures_in_threads_are_not_lost(monkeypatch):
    """What a task raises comes out, and the pool is free again."""
    monkeypatch.setenv("RNNCLI_THREADS", "2")

    def fail():
        raise ValueError("broken")

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            at_once([lambda: None, fail])


class Library:
    """A BLAS of 8 threads that notes what it is told."""

    def __init__(self):
        self.count, self.told = 8, []

    def get(self):
        """Return the number of threads."""
        return self.count

    def set(self, count):
        """Set it."""
        self.count = count
        self.told.append(count)


@pytest.fixture
def library(monkeypatch):
    """Stands in for NumPy's OpenBLAS, on a machine of 64 processors and without the variable."""
    made = Library()
    monkeypatch.setattr(threads_module, "openblas", lambda: (made.get, made.set))
    monkeypatch.setattr("rnncli.backends.threads.available", lambda: 64)
    monkeypatch.delenv("RNNCLI_THREADS", raising=False)
    return made


def test_the_number_returns():
    """Of the real library, after a failure as well."""
    if openblas() is None:
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    get, _ = openblas()
    before = get()

    def fail():
        with LIMITS.at_most(1):
            assert get() == 1
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert get() == before


def test_the_smallest_limit_holds_for_all(library):
    """In whatever order evaluations end; none raises the caller's number."""
    first, second, third = (LIMITS.at_most(count) for count in (3, 1, 99))

    first.__enter__()
    third.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert library.count == 1
    second.__exit__(None, None, None)
    assert library.count == 8
    third.__exit__(None, None, None)
    assert library.told == [3, 1, 8]


def test_a_product_that_is_not_shared_pays_nothing():
    """The function itself is returned."""
    assert bounded(np.matmul, UNSHARED_PRODUCT) is np.matmul
    assert bounded(np.matmul, UNSHARED_PRODUCT + 1) is not np.matmul


def node(op_type, *shapes, dtype="float", **attributes):
    """Return a model of one node, and its inputs."""
    names = [f"i{k}" for k in range(len(shapes))]
    element = getattr(onnx.TensorProto, dtype.upper())
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, names, ["y"], **attributes)],
        op_type,
        [
            onnx.helper.make_tensor_value_info(name, element, s)
            for name, s in zip(names, shapes, strict=True)
        ],
        [onnx.helper.make_empty_tensor_value_info("y")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)])
    model.ir_version = 10
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    return model, {name: np.ones(shape, dtype) for name, shape in zip(names, shapes, strict=True)}


MODELS = [
    node("MatMul", (2, 96, 64), (64, 64)),
    node("Gemm", (256, 64), (64, 64)),
    node("MatMulInteger", (256, 64), (64, 64), dtype="uint8"),
    node("Conv", (1, 16, 40, 40), (16, 16, 3, 3)),
    node("Conv", (2, 16, 40, 40), (16, 8, 3, 3), group=2),
    node("ConvTranspose", (1, 16, 40, 40), (16, 16, 3, 3)),
    node("ConvTranspose", (1, 16, 40, 40), (16, 16, 3, 3), strides=[2, 2]),
    node("Attention", (1, 2, 96, 64), (1, 2, 96, 64), (1, 2, 96, 64)),
]


def test_large_products_of_models_are_limited(library):
    """In every operator that multiplies matrices, to one thread unless more are asked for."""
    for model, inputs in MODELS:
        for allowance, count in ((None, 1), (1, 1), (2, 2)):
            library.told.clear()
            rnncli.prepare(model, limits=rnncli.Limits(threads=allowance)).run(inputs)
            assert set(library.told) == {count, 8}, model.graph.name
            assert library.told[-1] == 8
    model, inputs = node("MatMul", (4, 8), (8, 8))
    library.told.clear()
    evaluate_model(model, inputs)
    assert library.told == []


SMALL = {"seq_length": 3, "batch_size": 2, "input_size": 4, "hidden_size": 4}
LARGE = {"seq_length": 3, "batch_size": 64, "input_size": 64, "hidden_size": 64}
SHORT = {"seq_length": 1, "batch_size": 1, "input_size": 512, "hidden_size": 512}


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize(("sizes", "told"), [(SMALL, []), (LARGE, [1, 8]), (SHORT, [1, 8])])
def test_large_recurrences_are_limited(library, backend, sizes, told):
    """In a call of their own, and in every call of a session."""
    attributes, inputs = valid_node("LSTM-22", direction="bidirectional", **sizes)
    X = {"X": inputs.pop("X")}

    rnncli.evaluate("LSTM-22", {**X, **inputs}, backend=backend, **attributes)
    assert library.told == told
    session = rnncli.prepare("LSTM-22", backend=backend, **attributes, **inputs)
    for _ in range(3):
        library.told.clear()
        session.run(X)
        assert library.told == told
