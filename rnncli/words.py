"""Words that agree with a number, for reports and messages."""

from __future__ import annotations


def plural(count: int, one: str, many: str = "") -> str:
    """Return the word that goes with a count: 1 case, 2 cases; 1 fails, 2 fail.

    Args:
        count: the number.
        one: the singular.
        many: the plural; "" for `one` with an s.
    """
    return one if count == 1 else many or f"{one}s"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count and the word that goes with it, as `plural` has it."""
    return f"{count} {plural(count, one, many)}"
