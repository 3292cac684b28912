"""What is told to whoever waits at a terminal; a library keeps quiet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The command line adds what prints.
LISTENERS: list[Callable[[str], None]] = []


def tell(sentence: str) -> None:
    """Tell all who listen."""
    for listen in LISTENERS:
        listen(sentence)
