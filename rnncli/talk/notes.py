"""Progress notes for a user at a terminal; the library itself prints nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The command line adds a printer.
LISTENERS: list[Callable[[str], None]] = []


def tell(sentence: str) -> None:
    """Pass a sentence to all listeners."""
    for listen in LISTENERS:
        listen(sentence)
