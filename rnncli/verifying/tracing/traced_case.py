"""A case as seen by the conditions of statements: node, inputs and the bugs it shows.

Texts about a case, such as its name, flags and summary, are not used.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from rnncli.errors import RnncliWarning, UnreadableFile
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.scoring.adequacy import Fate, outcomes
from rnncli.operators import operator_named
from rnncli.operators.checking import problems
from rnncli.operators.node import checked
from rnncli.verifying.tracing.violations import violation_named

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rnncli.numerics import Array
    from rnncli.operators.operator import Input, Operator
    from rnncli.packs.vector import Vector
    from rnncli.recurrence.activations import Activation


# The fate of a violation that is distinguished from the specification.
TOLD = {Fate.KILLED, Fate.ACCEPTABLE}


class TracedCase:
    """A vector with cached properties for the conditions of statements.

    Args:
        vector: any case's vector. The kills in its manifest are not read, since a pack may claim
            any.

    Raises:
        InvalidOperator: the case is invalid although it should run.
        UnreadableFile: one of its files is missing or damaged.
    """

    def __init__(self, vector: Vector) -> None:
        self.vector, self.record = vector, vector.record
        self.operator: Operator = operator_named(vector.record["operator"])
        self.is_rejection = vector.record["expect"] == "rejection"
        if not self.is_rejection:
            checked(self.operator, self.written, self.inputs, self.outputs, self.record["readings"])
        self._noticed: dict[str, bool] = {}

    @property
    def written(self) -> dict[str, Any]:
        """The explicit attributes of its node."""
        return self.vector.attributes

    @property
    def inputs(self) -> dict[str, Array]:
        """The present inputs, by name."""
        return dict(self.vector.inputs)

    @property
    def outputs(self) -> list[str]:
        """The names of the requested outputs."""
        return list(self.record["outputs"])

    @cached_property
    def sizes(self) -> dict[str, int]:
        """seq_length, batch_size, input_size and hidden_size of a case that runs."""
        names = ("seq_length", "batch_size", "input_size", "hidden_size")
        return dict(zip(names, (*self.X.shape, self.input_for("R").shape[-1]), strict=True))

    def input_for(self, role: str) -> Array:
        """Return a required input by its role."""
        (name,) = (row.name for row in self.operator.inputs if row.role == role)
        return self.inputs[name]

    @property
    def X(self) -> Array:
        """The inputs with canonical axes, of a case that runs."""
        return self.vector.node.canonical(self.operator.inputs[0].name, self.input_for("X"))

    @property
    def layout(self) -> int:
        """The layout; 1 is batch first."""
        return self.vector.node.layout

    @property
    def direction(self) -> str:
        """The direction, explicit or by default."""
        return str(self.vector.node.values["direction"])

    @property
    def directions(self) -> int:
        """The number of directions."""
        return len(self.vector.node.directions)

    @property
    def lengths_row(self) -> Input | None:
        """The row of the input with the lengths; None if the operator has none."""
        return next((row for row in self.operator.inputs if row.role == "lengths"), None)

    @property
    def lengths(self) -> Array | None:
        """The valid steps of each sequence, if given."""
        return self.inputs.get(self.lengths_row.name) if self.lengths_row else None

    @property
    def steps_of_x(self) -> int:
        """The number of steps of X, also if another part of the case is broken."""
        shape = self.operator.inputs[0].shape(self.operator.variant(self.written))
        axis = [dim.symbol for dim in shape].index("seq_length")
        return int(self.input_for("X").shape[axis])

    @cached_property
    def padding(self) -> Array:
        """The elements of X beyond the ends of sequences."""
        X = self.X
        if self.lengths is None:
            return X[:0].ravel()
        return np.asarray(X[np.arange(len(X))[:, None] >= self.lengths])

    @cached_property
    def activations(self) -> list[Activation]:
        """The functions of every direction, in the attribute's order."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RnncliWarning)
            return [each for row in self.vector.node.activations for each in row]

    def without_own(self, key: str) -> set[str]:
        """Return the functions that take an alpha (or beta) but are given none.

        Args:
            key: alpha or beta.
        """
        takers = [each.name for each in self.activations if getattr(each, key) is not None]
        given = self.vector.node.values.get(f"activation_{key}") or ()
        return set(takers[len(given) :])

    def with_own(self, key: str) -> list[bool]:
        """Return for each function whether it takes an alpha (or beta) and is given one."""
        given = iter(self.vector.node.values.get(f"activation_{key}") or ())
        takes = [getattr(each, key) is not None for each in self.activations]
        return [take and next(given, None) is not None for take in takes]

    @cached_property
    def node_inputs(self) -> list[str]:
        """The input names on the model's node, "" for omitted ones."""
        return list(self._proto.input) if self.vector.model else list(self.record["inputs"])

    @cached_property
    def node_outputs(self) -> list[str]:
        """The output names on the model's node, "" for omitted ones."""
        return list(self._proto.output) if self.vector.model else list(self.record["outputs"])

    @cached_property
    def _proto(self) -> onnx.NodeProto:
        try:
            nodes = onnx.ModelProto.FromString(self.vector.model).graph.node
        except DecodeError as error:
            raise UnreadableFile(f"{self.vector.id}: its model is not an ONNX model") from error
        if len(nodes) != 1:
            raise UnreadableFile(f"{self.vector.id}: its model has {len(nodes)} nodes instead of 1")
        node: onnx.NodeProto = nodes[0]
        return node

    @cached_property
    def broken(self) -> set[tuple[str, ...]]:
        """The errors of a case that must be refused: ("attributes", "clip"), ("inputs", "P")."""
        found = problems(self.operator, self.written, self.inputs, self.outputs)
        return {problem.subject for problem in found}

    def noticed(self, names: Iterable[str]) -> list[str]:
        """Return the given violations that the case distinguishes from the specification.

        A violation that answers as another reading does is distinguished as well: `verify` calls it
        acceptable, not right.
        """
        wanted = list(names)
        fresh = [violation_named(name) for name in wanted if name not in self._noticed]
        if fresh:
            found = outcomes(self.vector, fresh, PACK_RULE)
            self._noticed |= {name: each.fate in TOLD for name, each in found.items()}
        return [name for name in wanted if self._noticed[name]]
