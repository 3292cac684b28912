"""Attempts: the outputs of an implementation for a vector, or how it failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnncli.files.formats.format import Tensors


class Status(StrEnum):
    """How an attempt ended."""

    RAN = "ran"
    REFUSED = "refused"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MISSING = "missing"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One run of one implementation on one vector.

    Attributes:
        status: how it ended.
        outputs: the outputs by name, if it ran.
        message: the implementation's message if it refused, how it died if it crashed, what is
            absent if results are missing, or why the vector was skipped.
        seconds: the time it took, loading included.
        signals: the signals of every step by name, if it recorded any; see `Vector.steps`.
    """

    status: Status
    outputs: Tensors = field(default_factory=dict)
    message: str = ""
    seconds: float = 0.0
    signals: Tensors = field(default_factory=dict)
