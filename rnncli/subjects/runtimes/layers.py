"""Runtimes that have recurrent layers, and no reader of ONNX models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from rnncli.operators import operator_named
from rnncli.subjects.runtime import Prepared, Refusal, known_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

STATES = ("initial_h", "initial_c")
INPUTS = ("X", "W", "R", "B", "sequence_lens", *STATES)
# Attributes that have no effect on a layer, or a rule of their own.
FREE = ("hidden_size", "output_sequence", "direction", "linear_before_reset", "activations")


class LayerRuntime(ABC):
    """Runs a layer with the weights of a vector's node.

    What its layers do not support is refused.

    Attributes:
        own: the names of its settings.
        threads: the number of threads to use.
        activations: type -> the functions of a direction that its layer has, each with the layer's
            arguments for them; by default those that every library has.
        directions: those that its layers have.
        dtypes: the element types that its layers have; () for those of its tensors.
    """

    activations: Mapping[str, Mapping[tuple[str, ...], Mapping[str, str]]] = {
        "RNN": {("tanh",): {}},
        "GRU": {("sigmoid", "tanh"): {}},
        "LSTM": {("sigmoid", "tanh", "tanh"): {}},
    }
    directions: tuple[str, ...]
    dtypes: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:
        known_settings(settings, self.own)
        self.threads = threads

    @abstractmethod
    def built(self, vector: Vector) -> Prepared:
        """Build the layer of a node that it supports."""

    def prepare(self, vector: Vector) -> Prepared:
        """Build the layer.

        Raises:
            Refusal: its layers lack a feature of the node.
        """
        if reason := next(self._lacking(vector), ""):
            raise Refusal(reason)
        return self.built(vector)

    def run(self, vector: Vector) -> Tensors:
        """Build the layer and run it."""
        return self.prepare(vector).outputs()

    def arguments(self, vector: Vector) -> Mapping[str, str] | None:
        """Return the layer's arguments for a node's activations; None if it has none for them."""
        known = self.activations[operator_named(vector.record.operator).type]
        given = tuple(name.lower() for name in vector.node.values["activations"] or ())
        D = len(vector.inputs["W"])
        fits = (each for each in known if not given or given[: D * len(each)] == each * D)
        return next((known[each] for each in fits), None)

    @staticmethod
    def states(vector: Vector) -> Tensors:
        """Return the initial states that a layer takes: those of an LSTM are a pair, or none."""
        given = {name: vector.inputs[name] for name in STATES if name in vector.inputs}
        if given and operator_named(vector.record.operator).type == "LSTM":
            none = np.zeros_like(next(iter(given.values())))
            return {name: given.get(name, none) for name in STATES}
        return given

    def _lacking(self, vector: Vector) -> Iterator[str]:
        """Yield the features of a node that the layers do not support."""
        if vector.record.is_whole_model:
            yield "has layers only, and cannot run models"
            return
        if vector.record.quantise:
            yield "its layers take no integers"
            return
        operator = operator_named(vector.record.operator)
        if operator.type not in self.activations:
            yield f"has no layer {operator.type}"
            return
        if self.dtypes and vector.record.dtype not in self.dtypes:
            yield f"its layers take only {', '.join(self.dtypes)}, not {vector.record.dtype}"
        values = vector.node.values
        for name, row in operator.attributes.items():
            if name not in FREE and values[name] != row.default:
                yield f"its layers support only {name} {row.default}, not {values[name]}"
        if self.arguments(vector) is None:
            yield f"its layers have no activations {values['activations']}"
        if values["direction"] not in self.directions:
            yield f"its layers have no direction {values['direction']}"
        if operator.type == "GRU" and not values.get("linear_before_reset"):
            yield "its layers reset only after the linear transformation: linear_before_reset 1"
        for name in vector.inputs:
            if name not in INPUTS:
                yield f"its layers take no {name}"
        if not np.all(vector.inputs.get("sequence_lens", 1)):
            yield "its layers take no sequence of length 0"
