"""Tract, https://github.com/sonos/tract; it reads models from files only."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import onnx
import tract

from rnncli.subjects.runtime import Prepared, Refusal, known_settings
from rnncli.subjects.supervision import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.formats.format import Tensors
    from rnncli.vectors.vector import Vector

BACKTRACE = "Stack backtrace:"


class Tract:
    """It has no settings and one thread."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:  # noqa: ARG002
        known_settings(settings, ())

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": tract.version()}

    def prepare(self, vector: Vector) -> Prepared:
        """Load and optimise a model; outputs have the names of the graph's, in its order."""
        names = [output.name for output in onnx.ModelProto.FromString(vector.model).graph.output]
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(vector.model)
            file.flush()
            try:
                loaded = tract.onnx().load(file.name)
                fed = [vector.fed[loaded.input_name(k)] for k in range(loaded.input_count())]
                runnable = loaded.into_model().into_runnable()
            except tract.TractError as error:
                raise Refusal(_cause(str(error))) from error
        return Prepared(
            lambda: runnable.run(fed),
            lambda outputs: dict(zip(names, (each.to_numpy() for each in outputs), strict=True)),
        )

    def run(self, vector: Vector) -> Tensors:
        """Load, optimise and run a model."""
        prepared = self.prepare(vector)
        try:
            return prepared.outputs()
        except tract.TractError as error:
            raise Refusal(_cause(str(error))) from error


def _cause(said: str) -> str:
    """Return what it says without the stack: what it did, and why that failed."""
    return printable(said.partition(BACKTRACE)[0])
