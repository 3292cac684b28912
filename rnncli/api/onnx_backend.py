"""ONNX's own backend interface, so that `onnx.backend.test` runs against this package.

import onnx.backend.test, rnncli.api.onnx_backend
tests = onnx.backend.test.BackendTest(rnncli.api.onnx_backend, __name__)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, helper
from onnx.backend.base import Backend, BackendRep

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.models.evaluation_settings import EvaluationSettings
from rnncli.models.loading import model_from
from rnncli.models.sessions import ModelSession

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.models.model import Model


class PreparedModel(BackendRep):
    """A prepared model; threads may share it."""

    def __init__(self, model: Model, arithmetic: EvaluationSettings) -> None:
        self._model, self._session = model, ModelSession(model, arithmetic)

    def run(self, inputs: Any) -> tuple[Any, ...]:  # type: ignore[override]  # no options
        """Evaluate the model.

        Args:
            inputs: by name, or in the order of the graph's inputs; a single array is the only
                input.

        Returns:
            The outputs in the graph's order.

        Raises:
            RnncliError: inputs do not fit the graph, or a node cannot be evaluated.
        """
        feeds = [inputs] if isinstance(inputs, np.ndarray) else inputs
        if isinstance(feeds, list | tuple):
            required, every = self._model.inputs, self._model.proto.graph.input
            values = every if len(feeds) == len(every) else required
            if len(feeds) > len(values):
                raise InvalidRequest(f"the model has {len(values)} inputs, {len(feeds)} were given")
            feeds = {value.name: given for value, given in zip(values, feeds, strict=False)}
        return tuple(self._session.run(dict(feeds)).values())


class RnncliBackend(Backend):
    """ONNX's backend interface."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether a device is supported: only the CPU is."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return whether every node of a model has an implementation."""
        try:
            cls.prepare(model, device, **kwargs)
        except Unsupported:
            return False
        return True

    @classmethod
    def prepare(  # type: ignore[override]  # the options are named
        cls,
        model: ModelProto,
        device: str = "CPU",
        *,
        backend: str = "numpy",
        compute: str = "float64",
        readings: Mapping[str, str] | None = None,
    ) -> PreparedModel:
        """Prepare a model, without changing it.

        Args:
            model: a model without external data, which requires a path.
            device: "CPU".
            backend: the backend of recurrent nodes.
            compute: "float64" or "native".
            readings: choices on contested points.

        Raises:
            InvalidRequest: the model is malformed.
            Unsupported: the device, or a node without an implementation.
        """
        if not cls.supports_device(device):
            raise Unsupported(f"device {device} is not supported; CPU is")
        proto = ModelProto()
        proto.CopyFrom(model)
        loaded = model_from(proto, model.graph.name or "model")
        return PreparedModel(loaded, EvaluationSettings(backend, compute, readings or {}))

    @classmethod
    def run_node(  # type: ignore[override]
        cls,
        node: NodeProto,
        inputs: Sequence[Any],
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        *,
        opset_version: int | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Evaluate one node.

        Args:
            node: of any domain.
            inputs: one per named input of the node.
            device: "CPU".
            outputs_info: element type and shape of each named output, declared in the model.
            opset_version: the version of the node's domain; None means the newest.
            kwargs: as in `prepare`.

        Returns:
            The node's named outputs, in order.

        Raises:
            RnncliError: the node is malformed or cannot be evaluated.
        """
        names = list(dict.fromkeys(name for name in node.input if name))
        outputs = [name for name in node.output if name]
        infos: list[Any] = list(outputs_info or (None for _ in outputs))
        graph = helper.make_graph(
            [node],
            node.name or node.op_type,
            [helper.make_value_info(name, TypeProto()) for name in names],
            [
                helper.make_value_info(name, TypeProto())
                if info is None
                else helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(info[0]), info[1]
                )
                for name, info in zip(outputs, infos, strict=True)
            ],
        )
        version = opset_version or (1 if node.domain else onnx.defs.onnx_opset_version())
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, version)])
        return cls.run_model(model, list(inputs), device, **kwargs)

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Prepare and evaluate a model; see `prepare` and `PreparedModel.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)


is_compatible = RnncliBackend.is_compatible
prepare = RnncliBackend.prepare
run_model = RnncliBackend.run_model
run_node = RnncliBackend.run_node
supports_device = RnncliBackend.supports_device
