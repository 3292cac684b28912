"""Execution of OpenVINO's models for the values that reach their recurrent nodes.

OpenVINO computes what is around the nodes. The body of a loop or a condition that has recurrent
nodes is a model of its own, which runs here as often as its loop does: openvino's API shows nothing
of an execution inside a body.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino
from openvino import opset5

from rnncli.errors import InvalidRequest
from rnncli.limits import turn
from rnncli.models.evaluator import prepare
from rnncli.models.ir_model import as_array, descriptions
from rnncli.models.model import check_inputs
from rnncli.running.execution import recipe_of
from rnncli.running.sizing import Sizing
from rnncli.subjects.runtime import Refusal
from rnncli.subjects.runtimes.open_vino import PRECISION, as_tensor, message_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.models.ir_model import IrGraph, IrModel
    from rnncli.models.observation import Observer, Occurrence
    from rnncli.numerics import Array
    from rnncli.running.request import Request


def run_ir(ir: IrModel, request: Request, observer: Observer) -> None:
    """Run a model in OpenVINO, and its recurrent nodes here on the values that reached them there.

    Raises:
        RnncliError: the inputs are wrong, or OpenVINO refuses the model.
    """
    name = ir.interface.name
    if request.data_set is not None:
        raise InvalidRequest(f"{name}: --data-set {request.data_set}, but it has no test data sets")
    recipe = recipe_of(ir.interface, request)
    whole = _GraphRun(ir.graph, name, request.arithmetic._asdict(), observer)
    names = [value.name for value in ir.interface.proto.graph.input]

    def values(inputs: dict[str, Array]) -> list[Array]:
        check_inputs(ir.interface, inputs)
        return whole.values([inputs[name] for name in names])

    whole.observe(Sizing(recipe, values).settle())


@cache
def openvino_core() -> Any:
    """Return OpenVINO's entry, the same one for the life of this process.

    Each entry that compiles for the CPU gives the thread a stack for signal handlers, and when it
    ends puts back the one that it found. If two end in the order in which they began, that is a
    stack that is gone: the next signal with a handler, Ctrl-C or an alarm, kills the process.
    """
    return openvino.Core()


class _GraphRun:
    """The executions of a graph or a body, and of the bodies in it."""

    def __init__(
        self, graph: IrGraph, name: str, arithmetic: Mapping[str, Any], observer: Observer
    ) -> None:
        self._graph, self._name = graph, name

        def placed(occurrence: Occurrence) -> None:
            observer(replace(occurrence, path=(*graph.path, *occurrence.path)))

        flat = graph.flat(name)
        self._evaluator = prepare(flat, **arithmetic, observer=placed) if flat else None
        self._controls = [
            (
                control.op,
                [
                    _GraphRun(body, name, arithmetic, observer) if body.proto.node else None
                    for body in control.bodies
                ],
            )
            for control in graph.controls
        ]
        self._sources = list(graph.sources.values())
        self._reads = [control.op.input_values() for control in graph.controls]
        results = graph.net.get_results() if graph.path else []
        self._results = [result.input_value(0) for result in results]
        every = [*self._sources, *(each for read in self._reads for each in read), *self._results]
        self._places = {place: k for k, place in enumerate(dict.fromkeys(map(_place, every)))}

        # The graph as a model of its own with these results.
        outputs = {_place(each): each for each in every}
        probes = [opset5.result(outputs[place]) for place in self._places]
        try:
            net = openvino.Model(probes, graph.net.get_parameters(), "probe")
            compiled = openvino_core().compile_model(net, "CPU", {PRECISION: "f32"})
            self._request = compiled.create_infer_request()
        except RuntimeError as error:
            raise self._refused(error) from error

    def values(self, inputs: Sequence[Array]) -> list[Array]:
        """Return what recurrent nodes and bodies read, and the results of a body."""
        try:
            for k, value in enumerate(inputs):
                self._request.set_input_tensor(k, as_tensor(value))
            self._request.infer()
        except (RuntimeError, Refusal) as error:
            raise self._refused(error) from error
        return [as_array(self._request.get_output_tensor(k)) for k in range(len(self._places))]

    def observe(self, values: Sequence[Array]) -> list[Array]:
        """Evaluate the recurrent nodes at any depth on `values`; return the results of a body."""

        def of(outputs: Sequence[Any]) -> list[Array]:
            return [values[self._places[_place(output)]] for output in outputs]

        if self._evaluator:
            self._evaluator.outputs(dict(zip(self._graph.sources, of(self._sources), strict=True)))
        # Bodies of a loop or a condition run as OpenVINO's specifications say.
        for (op, bodies), read in zip(self._controls, map(of, self._reads), strict=True):
            is_if = op.get_type_name() == "If"
            chosen = int(is_if and not read[0].item())
            if body := bodies[chosen]:
                feeds = [np.empty(0)] * len(body.parameters)  # of the number of the trip, nothing
                for each in descriptions(op, chosen):
                    feeds[each.body_parameter_index] = read[each.input_index]
                if is_if:
                    body.run(feeds)
                else:
                    _repeat(op, body, feeds, read)
        return of(self._results)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run a body once; return its results."""
        return self.observe(self.values(inputs))

    @property
    def parameters(self) -> Sequence[Any]:
        """The parameters of the graph."""
        found: Sequence[Any] = self._graph.net.get_parameters()
        return found

    def _refused(self, error: Exception) -> InvalidRequest:
        return InvalidRequest(f"{self._name}: OpenVINO does not run it: {message_of(error)}")


def _place(output: Any) -> tuple[int, int]:
    """Return what identifies an output of a node."""
    return output.get_node().get_instance_id(), output.get_index()


def _repeat(op: Any, body: _GraphRun, feeds: list[Array], inputs: Sequence[Array]) -> None:
    """Run the body of a loop until its number of trips or its condition ends it."""
    described = descriptions(op, 0)
    slices = [each for each in described if type(each).__name__ == "SliceInputDescription"]
    merged = [each for each in described if type(each).__name__ == "MergedInputDescription"]
    counter, condition = _NO_PORTS
    if op.get_type_name() == "Loop":
        counter, condition = op.get_special_body_ports()
    for trip in _trips(op, slices, inputs):
        turn(trip)
        for each in slices:
            values = inputs[each.input_index]
            begin = _bounds(values, each)[0] + trip * each.stride
            if each.stride < 0:  # goes backwards
                begin -= each.part_size - 1
            axis = (slice(None),) * each.axis
            part = values[(*axis, slice(begin, begin + each.part_size))]
            feeds[each.body_parameter_index] = part
        if counter in range(len(feeds)):
            parameter = body.parameters[counter]
            shape = parameter.get_partial_shape()
            rank = shape.rank.get_length() if shape.rank.is_static else 0
            feeds[counter] = np.full([1] * rank, trip, parameter.get_element_type().to_dtype())
        results = body.run(feeds)
        for each in merged:
            feeds[each.body_parameter_index] = results[each.body_value_index]
        if condition in range(len(results)) and not results[condition].item():
            break


_NO_PORTS = (-1, -1)


def _trips(op: Any, slices: Sequence[Any], inputs: Sequence[Array]) -> Iterable[int]:
    """Return the numbers of the trips that a loop makes, unless its condition ends it."""
    if op.get_type_name() == "TensorIterator":
        parts = []  # the number of them in each sliced input
        for each in slices:
            values = inputs[each.input_index]
            first, last = _bounds(values, each)
            whole = int((abs(last - first) + 1) // each.part_size)
            parts.append(whole if values.shape[each.axis] else 0)
        return range(min(parts, default=0))
    limit, begins = inputs[0].item(), inputs[1].item()
    if not begins:
        return ()
    return count() if limit < 0 else range(limit)


def _bounds(values: Array, described: Any) -> tuple[int, int]:
    """Return the first and the last index of a sliced axis."""
    size = values.shape[described.axis]
    first, last = (k + size if k < 0 else k for k in (described.start, described.end))
    return first, last
