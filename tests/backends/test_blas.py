"""OpenBLAS has as many threads as evaluations may use, and afterwards as many as before."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from valid_nodes import valid_node

import rnncli
from rnncli.backends import blas
from rnncli.backends.blas import LIMITS, UNSHARED_PRODUCT, bounded, openblas
from rnncli.models.sessions import evaluate_model


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
    monkeypatch.setattr(blas, "openblas", lambda: (made.get, made.set))
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
        for threads, count in ((None, 1), (1, 1), (2, 2)):
            library.told.clear()
            rnncli.prepare(model, limits=rnncli.Limits(threads=threads)).run(inputs)
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
