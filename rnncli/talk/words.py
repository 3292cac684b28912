"""Words for reports and messages: those that agree with a number, and those of strangers."""

from __future__ import annotations

# Characters of what a stranger wrote that are shown.
LONGEST_SHOWN = 300


def plural(count: int, one: str, many: str = "") -> str:
    """Return the word, by default one with an s, for a count: 1 case, 2 cases; 1 fails, 2 fail."""
    return one if count == 1 else many or f"{one}s"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count and the word that goes with it, as `plural` has it."""
    return f"{count} {plural(count, one, many)}"


def printable(text: str) -> str:
    """Return one line of bounded length without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST_SHOWN else line[:LONGEST_SHOWN] + "..."
