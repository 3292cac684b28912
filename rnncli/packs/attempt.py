"""What an implementation made of a vector."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rnncli.formats.format import Tensors


class Status(StrEnum):
    """How it ended."""

    RAN = "ran"
    REFUSED = "refused"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    MISSING = "missing"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """One vector put to one implementation.

    Attributes:
        status: how it ended.
        outputs: what came out, by name, when it ran.
        message: what the implementation said when it refused; how it died when it crashed; what
            there is no trace of when it is missing; why the vector was not put to it when it was
            skipped.
        seconds: what running took, loading included.
    """

    status: Status
    outputs: Tensors = field(default_factory=dict)
    message: str = ""
    seconds: float = 0.0
