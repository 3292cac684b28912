"""Models in the formats of other libraries, which are read as they are: OpenVINO's and TFLite's."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rnncli.models.loading import IR, TFLITE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.models.model import Model
    from rnncli.models.node_listing import UnevaluatedNode
    from rnncli.models.observation import Observer
    from rnncli.running.request import Request


class NativeModel(Protocol):
    """A model in the format of another library."""

    @property
    def recurrent(self) -> Model:
        """Its recurrent nodes, as a model of ours."""

    @property
    def interface(self) -> Model:
        """Its own inputs and outputs, as a model without nodes."""

    @property
    def unevaluated(self) -> tuple[UnevaluatedNode, ...]:
        """The recurrent nodes that are not supported."""

    def single(self) -> Model:
        """Return the model if it is recurrent nodes alone.

        Raises:
            Unsupported: it has others.
        """


class NativeFormat(NamedTuple):
    """How models of a format are read and run."""

    reader: str  # `module:function` of a path that returns a `NativeModel`
    # `module:function` of that, a request and an observer, which runs the model for the values that
    # reach the recurrent nodes
    runner: str


FORMATS: Mapping[str, NativeFormat] = {
    IR: NativeFormat("rnncli.models.ir_model:read_ir", "rnncli.running.ir_execution:run_ir"),
    TFLITE: NativeFormat(
        "rnncli.models.tflite_model:read_tflite", "rnncli.running.tflite_execution:run_tflite"
    ),
}


def _extension(target: str) -> str:
    return next((end for end in FORMATS if target.lower().endswith(end)), "")


def read_native(target: str) -> NativeModel | None:
    """Return the model in a file of such a format; None for any other target, by its name.

    Raises:
        UnreadableFile: missing, too large, truncated, foreign or hostile.
        Unsupported: the package that reads it is not installed, or lacks a part of it.
    """
    end = _extension(target)
    read = pkgutil.resolve_name(FORMATS[end].reader) if end else None
    found: NativeModel | None = read and read(Path(target))
    return found


def run_native(target: str, model: NativeModel, request: Request, observer: Observer) -> None:
    """Run a model of a file, and its recurrent nodes here on the values that reach them there.

    Raises:
        RnncliError: the inputs are wrong, or what runs the model refuses it.
    """
    pkgutil.resolve_name(FORMATS[_extension(target)].runner)(model, request, observer)
