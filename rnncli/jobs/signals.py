"""Deferred signals: an exception while a C module is being loaded would end the process."""

from __future__ import annotations

import os
from importlib.machinery import ExtensionFileLoader
from threading import Timer  # imported early: a signal may arrive during a later import
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType

# Seconds after which a deferred signal is sent again.
SECONDS_TO_LOAD = 0.01
# The code of functions in which an exception would be lost.
DEAF: set[CodeType] = set()


def postponed(number: int, frame: FrameType | None) -> bool:
    """Defer a signal if a C module is being loaded, or an exception would be lost.

    Returns:
        Whether it was deferred.
    """
    while frame is not None:
        is_loading = isinstance(frame.f_locals.get("self"), ExtensionFileLoader)
        if is_loading or frame.f_code in DEAF:
            send_again(number)
            return True
        frame = frame.f_back
    return False


def send_again(number: int) -> None:
    """Send a signal again after a moment."""
    again = Timer(SECONDS_TO_LOAD, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
