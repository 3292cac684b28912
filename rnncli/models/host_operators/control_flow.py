"""If, Loop and Scan: nodes that run subgraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import AttributeProto
from onnx.reference.op_run import OpRun

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.limits import turn
from rnncli.numerics import Array, dtype_numbered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import onnx


class Body:
    """A graph attribute of a node, ready to run many times."""

    def __init__(self, node: onnx.NodeProto, evaluator: Any, attribute: str) -> None:
        self.graph = next(a.g for a in node.attribute if a.name == attribute)
        self.names = [value.name for value in self.graph.input]
        self.outputs = len(self.graph.output)
        self._evaluator = evaluator
        self._own = {tensor.name for tensor in self.graph.initializer}

    def run(self, inputs: Sequence[Any], outer: Mapping[str, Any]) -> list[Any]:
        """Run the graph once.

        Raises:
            InvalidRequest: the number of inputs is wrong.
        """
        if len(inputs) != len(self.names):
            raise InvalidRequest(f"body takes {len(self.names)} inputs, the node has {len(inputs)}")
        feeds = {**outer}
        for name in self._own:
            feeds.pop(name, None)
        feeds.update(zip(self.names, inputs, strict=True))
        return list(self._evaluator.run(None, feeds))

    def stacked(self, number: int, steps: Sequence[Array], axis: int = 0) -> Array:
        """Stack the values of an output in all steps along a new axis.

        Without steps the shape is the declared one, with 0 for unknown sizes.

        Raises:
            InvalidRequest: the values differ in shape.
            Unsupported: there were no steps, and the graph does not declare a type.
        """
        if len({step.shape for step in steps}) > 1:
            raise InvalidRequest(
                f"scan output '{self.graph.output[number].name}' changes its shape between steps"
            )
        if steps:
            return np.stack(steps, axis)
        tensor = self.graph.output[number].type.tensor_type
        if not tensor.elem_type:
            raise Unsupported(
                f"'{self.graph.output[number].name}' has no value: "
                "the body never runs, and does not declare the type"
            )
        sizes = [max(dim.dim_value, 0) for dim in tensor.shape.dim]
        sizes.insert(axis % (len(sizes) + 1), 0)
        return np.zeros(sizes, dtype_numbered(tensor.elem_type).numpy)


class _GraphNode(OpRun):
    """A node that runs subgraphs, which may read values of the enclosing graphs."""

    def __init__(self, onnx_node: onnx.NodeProto, run_params: dict[str, Any]) -> None:
        super().__init__(onnx_node, run_params)
        graphs = [a.name for a in onnx_node.attribute if a.type == AttributeProto.GRAPH]
        self._bodies = {name: Body(onnx_node, getattr(self, name), name) for name in graphs}
        settings = self.attributes_names_.difference(graphs)
        self._settings = {name: getattr(self, name) for name in settings}

    def need_context(self) -> bool:
        """Whether onnx's evaluator must pass those values."""
        return True

    def run(self, *inputs: Any, context: Any = None, **_: Any) -> tuple[Any, ...]:
        """Run the subgraphs; `context` holds the values of the enclosing graphs by name."""
        return tuple(self._run(context, *inputs, **self._settings))  # type: ignore[no-untyped-call]


class If(_GraphNode):
    """A node that runs one of two graphs, depending on a condition."""

    def _run(self, outer: Mapping[str, Any], cond: Array) -> tuple[Any, ...]:
        branch = self._bodies["then_branch" if _truth(cond) else "else_branch"]
        return tuple(branch.run((), outer))


class Loop(_GraphNode):
    """A node that runs a graph while a condition holds, up to a number of times."""

    def _run(
        self,
        outer: Mapping[str, Any],
        M: Array | None = None,
        cond: Array | None = None,
        *initial: Any,
    ) -> tuple[Any, ...]:
        """Carry `initial` through at most M iterations and stack the body's other outputs.

        Without M there is no limit; without `cond` the first iteration runs.
        """
        body = self._bodies["body"]
        carried, scanned, iteration = list(initial), [], 0
        keep, limit = cond is None or _truth(cond), None if M is None else int(M.item())
        while keep and (limit is None or iteration < limit):
            turn(iteration)
            counters = np.asarray(iteration, np.int64), np.asarray(keep)
            condition, *results = body.run([*counters, *carried], outer)
            keep, carried = _truth(condition), results[: len(initial)]
            scanned.append(results[len(initial) :])
            iteration += 1
        first = 1 + len(initial)
        numbers = range(first, body.outputs)
        return (
            *carried,
            *(body.stacked(n, [step[n - first] for step in scanned]) for n in numbers),
        )


class Scan(_GraphNode):
    """A node that runs a graph for each slice of its inputs (from opset 9 on)."""

    def _run(
        self,
        outer: Mapping[str, Any],
        *inputs: Any,
        num_scan_inputs: int,
        scan_input_axes: Sequence[int] | None = None,
        scan_input_directions: Sequence[int] | None = None,
        scan_output_axes: Sequence[int] | None = None,
        scan_output_directions: Sequence[int] | None = None,
    ) -> tuple[Any, ...]:
        """Carry the states through the steps and stack the body's other outputs.

        The inputs are states, then the tensors to slice. Axes are 0 if absent; a direction of 1 is
        for what is read or written from the end.
        """
        body = self._bodies["body"]
        count = len(inputs) - num_scan_inputs
        axes = scan_input_axes or [0] * num_scan_inputs
        directions = scan_input_directions or [0] * num_scan_inputs
        slices = [
            _directed(np.moveaxis(x, axis, 0), direction)
            for x, axis, direction in zip(inputs[count:], axes, directions, strict=True)
        ]
        states, scanned = _scanned(body, list(inputs[:count]), slices, outer)
        numbers = range(count, body.outputs)
        axes = scan_output_axes or [0] * len(numbers)
        directions = scan_output_directions or [0] * len(numbers)
        outputs = (
            body.stacked(n, _directed([step[n - count] for step in scanned], direction), axis)
            for n, axis, direction in zip(numbers, axes, directions, strict=True)
        )
        return (*states, *outputs)


class Scan8(_GraphNode):
    """A node that runs a graph for each slice of each sequence of a batch (opset 8)."""

    def _run(
        self,
        outer: Mapping[str, Any],
        sequence_lens: Array | None,
        *inputs: Array,
        num_scan_inputs: int,
        directions: Sequence[int] | None = None,
    ) -> tuple[Any, ...]:
        """Scan every sequence separately; outputs are zero after the end of a short one.

        The inputs are states [batch, ...], then tensors to slice, [batch, sequence, ...].
        """
        body = self._bodies["body"]
        count = len(inputs) - num_scan_inputs
        longest = inputs[count].shape[1]
        per_sequence = []
        for b in range(len(inputs[0])):
            length = longest if sequence_lens is None else int(sequence_lens[b])
            slices = [
                _directed(x[b, :length], direction)
                for x, direction in zip(
                    inputs[count:], directions or [0] * num_scan_inputs, strict=True
                )
            ]
            states, scanned = _scanned(body, [x[b] for x in inputs[:count]], slices, outer)
            numbers = range(count, body.outputs)
            outputs = (body.stacked(n, [step[n - count] for step in scanned]) for n in numbers)
            padded = (np.pad(y, [(0, longest - len(y))] + [(0, 0)] * (y.ndim - 1)) for y in outputs)
            per_sequence.append([*states, *padded])
        return tuple(np.stack(values) for values in zip(*per_sequence, strict=True))


def _scanned(
    body: Body,
    states: list[Any],
    slices: Sequence[Array],
    outer: Mapping[str, Any],
) -> tuple[list[Any], list[list[Any]]]:
    """Run a body over slices; return the last states and the other outputs of each step."""
    lengths = {len(x) for x in slices}
    if len(lengths) != 1:
        raise InvalidRequest(f"scan inputs must have one length, got {sorted(lengths)}")
    scanned = []
    for iteration, step in enumerate(zip(*slices, strict=True)):
        turn(iteration)
        results = body.run([*states, *map(np.asarray, step)], outer)
        states = results[: len(states)]
        scanned.append(results[len(states) :])
    return states, scanned


def _directed(steps: Any, direction: int) -> Any:
    return steps[::-1] if direction else steps


def _truth(cond: Array) -> bool:
    """Return the value of a condition.

    Raises:
        InvalidRequest: the condition is not a single value.
    """
    if cond.size != 1:
        raise InvalidRequest(f"a condition must be one value, got shape {list(np.shape(cond))}")
    return bool(cond.item())
