"""The protocol of a backend."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from rnncli.recurrence.recurrence import Recurrence, Result


FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


class Compute(StrEnum):
    """The arithmetic of an evaluation."""

    FLOAT64 = "float64"
    """Inputs widened exactly, everything in float64, each output rounded once."""
    NATIVE = "native"
    """The tensors' dtype; float16 and bfloat16 compute in float32 and round each output once."""


class Backend(Protocol):
    """Evaluates recurrences. Instances hold no state between calls.

    Attributes:
        name: as `--backend` spells it.
        summary: one line for `rnncli backends`.
    """

    name: str
    summary: str

    def supports(self, recurrence: Recurrence, compute: Compute) -> str | None:
        """Return why it cannot evaluate this, or None when it can."""

    def run(self, recurrence: Recurrence, compute: Compute) -> Result:
        """Evaluate. Called only when `supports` returned None."""


def working_dtype(recurrence: Recurrence, compute: Compute) -> np.dtype[Any]:
    """Return the dtype of NumPy's arithmetic; 16-bit tensors are computed with in float32."""
    if compute is Compute.FLOAT64:
        return FLOAT64
    own = recurrence.dtype.numpy
    return own if own.itemsize >= FLOAT32.itemsize else FLOAT32
