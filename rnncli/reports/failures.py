"""Failures as sentences."""

from __future__ import annotations

from rnncli.errors import RnncliError

INVALID = 2
INTERNAL_ERROR = 70


def describe(error: BaseException) -> tuple[str, int]:
    """Return the sentence that explains a failure and the exit code it calls for."""
    if isinstance(error, RnncliError):
        return f"error: {error}", error.exit_code
    if isinstance(error, MemoryError):
        return f"error: not enough memory{f': {error}' if str(error) else ''}", INVALID
    if isinstance(error, OSError) and error.filename:
        return f"error: {error.filename}: {error.strerror}", INVALID
    kind = type(error).__name__
    return f"internal error: {kind}: {error}; rerun with --traceback", INTERNAL_ERROR
