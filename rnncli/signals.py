"""Signals that must wait: an exception in the midst of loading a module in C ends the process."""

from __future__ import annotations

import os
from importlib.machinery import ExtensionFileLoader
from threading import Timer  # now: a signal may come while it is being imported
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

# After which a signal is hoped to find the module loaded.
SECONDS_TO_LOAD = 0.01


def postponed(number: int, frame: FrameType | None) -> bool:
    """Let a signal come again in a moment where a module in C is being loaded; whether one is.

    Args:
        number: of the signal.
        frame: where it came.
    """
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ExtensionFileLoader):
            send_again(number)
            return True
        frame = frame.f_back
    return False


def send_again(number: int) -> None:
    """Let a signal come once more, in a moment."""
    again = Timer(SECONDS_TO_LOAD, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
