"""Direct calls of a node's kernel, without the overhead of onnx's `run`.

For small tensors, `run` takes longer than the kernel: it logs, collects the attributes and checks
the results several times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from onnx.reference.op_run import OpRun, RuntimeTypeError
from onnx.reference.ops.op_bitshift import BitShift
from onnx.reference.ops.op_bitwise_and import BitwiseAnd
from onnx.reference.ops.op_not import Not
from onnx.reference.ops.op_relu import Relu

from rnncli.host_operators.kernel import KernelRun

Call: TypeAlias = Callable[..., tuple[Any, ...]]
"""A function from a node's inputs to its outputs."""


def call_of(operator: OpRun) -> Call:
    """Return the function that evaluates a node: its `run`, or a faster equivalent.

    The faster function raises the kernel's own errors, which `run` may hide behind a TypeError.

    Args:
        operator: the node, whose attributes are final.
    """
    if isinstance(operator, KernelRun):
        return operator.call
    shorter = _SHORTER.get(type(operator).run)
    if shorter is None or operator.has_linked_attribute or operator.need_context():
        return operator.run
    kernel: Call = operator._run  # noqa: SLF001 -- defined by operators
    if type(operator).run is OpRun.run:  # the only one that passes attributes
        attributes = {name: getattr(operator, name) for name in operator.attributes_names_}
        kernel = partial(kernel, **attributes)
    return partial(shorter, operator, kernel)


def _called(operator: OpRun, kernel: Call, *inputs: Any) -> tuple[Any, ...]:
    results = kernel(*inputs)
    if type(results) is tuple and len(results) == 1 and type(results[0]) is np.ndarray:
        return results
    return _tensors(operator, results, *inputs)


def _unary(operator: OpRun, kernel: Call, x: Any) -> tuple[Any, ...]:
    results = _called(operator, kernel, x)
    if isinstance(results[0], np.ndarray):
        _check_same("output", results[0], "input", x)
    return results


def _binary(operator: OpRun, kernel: Call, x: Any, y: Any) -> tuple[Any, ...]:
    _check_same("second input", y, "first", x)
    return _called(operator, kernel, x, y)


def _binary_of_one_type(operator: OpRun, kernel: Call, x: Any, y: Any) -> tuple[Any, ...]:
    results = _binary(operator, kernel, x, y)
    _check_same("output", results[0], "input", x)
    return results


_SHORTER: Mapping[Any, Callable[..., tuple[Any, ...]]] = {
    OpRun.run: _called,
    Not.run: _called,
    Relu.run: _unary,
    BitwiseAnd.run: _binary,
    BitShift.run: _binary_of_one_type,
}
"""The replacement of each `run` that operators share, which one of them names."""


def _check_same(name: str, values: Any, other: str, x: Any) -> None:
    if values.dtype != x.dtype:
        raise RuntimeTypeError(f"{name} is {values.dtype}, {other} is {x.dtype}")


def _tensors(operator: OpRun, results: tuple[Any, ...], *inputs: Any) -> tuple[Any, ...]:
    """Return a kernel's results; if some are not arrays, those of `run`."""
    if type(results) is tuple and results:
        for values in results:
            if type(values) is not np.ndarray:
                break
        else:
            return results
    whole: Call = operator.run
    return whole(*inputs)
