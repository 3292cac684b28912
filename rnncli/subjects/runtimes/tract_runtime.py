"""Tract, https://github.com/sonos/tract, which reads models from files only."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import onnx
import tract

from rnncli.subjects.runtime import Prepared, TimedRuntime
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rnncli.packs.vector import Vector

BACKTRACE = "Stack backtrace:"


class Tract(TimedRuntime):
    """Runs tract, without settings, on one thread."""

    refuses_by = (tract.TractError,)

    def describe(self) -> Mapping[str, str]:
        """Return the version."""
        return {"version": tract.version()}

    def bind(self, vector: Vector) -> Callable[[Vector], Prepared]:
        """Load and optimise the model; outputs have the graph's names, in its order."""
        names = [output.name for output in onnx.ModelProto.FromString(vector.model).graph.output]
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(vector.model)
            file.flush()
            loaded = tract.onnx().load(file.name)
            order = [loaded.input_name(k) for k in range(loaded.input_count())]
            runnable = loaded.into_model().into_runnable()

        def bound(asked: Vector) -> Prepared:
            fed = [asked.fed[name] for name in order]
            return Prepared(
                lambda: runnable.run(fed),
                lambda outs: dict(zip(names, (out.to_numpy() for out in outs), strict=True)),
            )

        return bound

    @staticmethod
    def reason(error: Exception) -> str:
        """Return the message without the stack: the failed step and its reason."""
        return printable(str(error).partition(BACKTRACE)[0])
