"""Tract, https://github.com/sonos/tract, which reads models from files only."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import onnx
import tract

from rnncli.subjects.runtime import Prepared, Refusal, known_settings
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.vector import Vector

BACKTRACE = "Stack backtrace:"


class Tract:
    """Runs tract, without settings, on one thread."""

    def __init__(self, settings: Mapping[str, str], threads: int) -> None:  # noqa: ARG002
        known_settings(settings, ())

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": tract.version()}

    def prepare(self, vector: Vector) -> Prepared:
        """Load and optimise the model."""
        return self._loaded(vector)(vector)

    def open(self, vector: Vector) -> Callable[[Vector], Tensors]:
        """Load and optimise the model for any number of vectors."""
        bound = self._loaded(vector)
        return lambda asked: _outputs(bound(asked))

    def run(self, vector: Vector) -> Tensors:
        """Load, optimise and run the model."""
        return self.open(vector)(vector)

    def _loaded(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Load the model; outputs have the graph's names, in its order."""
        names = [output.name for output in onnx.ModelProto.FromString(vector.model).graph.output]
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(vector.model)
            file.flush()
            try:
                loaded = tract.onnx().load(file.name)
                order = [loaded.input_name(k) for k in range(loaded.input_count())]
                runnable = loaded.into_model().into_runnable()
            except tract.TractError as error:
                raise Refusal(_cause(str(error))) from error

        def bound(asked: Vector) -> Prepared:
            fed = [asked.fed[name] for name in order]
            return Prepared(
                lambda: runnable.run(fed),
                lambda outs: dict(zip(names, (out.to_numpy() for out in outs), strict=True)),
            )

        return bound


def _outputs(prepared: Prepared) -> Tensors:
    try:
        return prepared.outputs()
    except tract.TractError as error:
        raise Refusal(_cause(str(error))) from error


def _cause(message: str) -> str:
    """Return the message without the stack: the failed step and its reason."""
    return printable(message.partition(BACKTRACE)[0])
