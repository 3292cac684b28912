"""Execution of OpenVINO's models for the values that reach their recurrent nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openvino
from openvino import opset5

from rnncli.errors import InvalidRequest
from rnncli.models.declarations import check_inputs
from rnncli.models.evaluator import prepare
from rnncli.models.evaluator import run as run_graph
from rnncli.models.generated_inputs import InputRecipe
from rnncli.models.ir_model import as_array
from rnncli.running.execution import given_inputs
from rnncli.running.sizing import Sizing
from rnncli.subjects.runtime import Refusal
from rnncli.subjects.runtimes.open_vino import PRECISION, as_tensor, message_of

if TYPE_CHECKING:
    from rnncli.models.ir_model import IrModel
    from rnncli.models.observation import Observer
    from rnncli.numerics import Array
    from rnncli.running.request import Request


def run_ir(ir: IrModel, request: Request, observer: Observer) -> None:
    """Run a model in OpenVINO, and its recurrent nodes here on the values that reached them there.

    Args:
        ir: the model.
        request: on which inputs.
        observer: called for each recurrent node.

    Raises:
        RnncliError: the inputs are wrong, or OpenVINO refuses the model.
    """
    if request.data_set is not None:
        raise InvalidRequest(
            f"{ir.interface.name}: --data-set {request.data_set}, but it has no test data sets"
        )
    given = given_inputs(ir.interface, request)
    recipe = InputRecipe(
        ir.interface, given, seed=request.seed or 0, shapes=request.shapes, dims=request.dims
    )
    probe = _Probe(ir)
    values = Sizing(recipe, probe.values).settle()
    evaluator = prepare(ir.recurrent, **request.arithmetic._asdict(), observer=observer)
    run_graph(evaluator, values)


class _Probe:
    """A model whose results are the values that the recurrent nodes of another read."""

    def __init__(self, ir: IrModel) -> None:
        self._ir = ir
        outputs = [opset5.result(output) for output in ir.sources.values()]
        try:
            model = openvino.Model(outputs, ir.net.get_parameters(), "probe")
            core = openvino.Core()
            self._request: Any = core.compile_model(
                model, "CPU", {PRECISION: "f32"}
            ).create_infer_request()
        except RuntimeError as error:
            raise self._refused(error) from error

    def values(self, inputs: dict[str, Array]) -> dict[str, Array]:
        """Return the values by name."""
        check_inputs(self._ir.interface, inputs)
        try:
            for k, value in enumerate(self._ir.interface.proto.graph.input):
                self._request.set_input_tensor(k, as_tensor(inputs[value.name]))
            self._request.infer()
        except (RuntimeError, Refusal) as error:
            raise self._refused(error) from error
        return {
            name: as_array(self._request.get_output_tensor(k))
            for k, name in enumerate(self._ir.sources)
        }

    def _refused(self, error: Exception) -> InvalidRequest:
        return InvalidRequest(
            f"{self._ir.interface.name}: OpenVINO does not run it: {message_of(error)}"
        )
