"""One node at a time: evaluated, or compared with ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.one_node import assert_same, model_of, ours, theirs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import onnx


@pytest.fixture
def evaluate() -> Callable[..., list[Any]]:
    """Evaluate one node: `evaluate(op_type, opset, *inputs, outputs=1, **attributes)`."""

    def run(
        op_type: str,
        opset: int,
        *inputs: Any,
        outputs: int = 1,
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        return ours(*model_of(op_type, opset, inputs, attributes, outputs, domain=domain))

    return run


@pytest.fixture
def agrees() -> Callable[..., None]:
    """Assert that one node gives what ONNX Runtime gives; called like `evaluate`."""

    def check(
        op_type: str,
        opset: int,
        *inputs: Any,
        outputs: int = 1,
        tolerance: float = 1e-5,
        domain: str = "",
        **attributes: Any,
    ) -> None:
        model, feeds = model_of(op_type, opset, inputs, attributes, outputs, domain=domain)
        assert_same(ours(model, feeds), theirs(model, feeds), tolerance)

    return check


@pytest.fixture
def evaluate_graph() -> Callable[..., list[Any]]:
    """Evaluate a model: `evaluate_graph(model, feeds)`."""
    return ours


@pytest.fixture
def models_agree() -> Callable[..., None]:
    """Assert that a model gives what ONNX Runtime gives: `models_agree(model, feeds)`."""

    def check(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> None:
        assert_same(ours(model, feeds), theirs(model, feeds))

    return check


@pytest.fixture
def normal() -> Callable[..., Any]:
    """Return float32 arrays of normal random numbers: `normal(2, 3)`."""
    generator = np.random.default_rng(20)
    return lambda *shape: generator.normal(size=shape).astype(np.float32)
