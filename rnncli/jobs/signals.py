"""Signals that end a command: the first lets it tidy up, the second ends it at once.

An exception while a C module is being loaded would end the process, so a signal waits for that.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from importlib.machinery import ExtensionFileLoader
from threading import Timer  # imported early: a signal may arrive during a later import
from types import SimpleNamespace
from typing import TYPE_CHECKING

from rnncli.talk.terminal import say

if TYPE_CHECKING:
    from types import CodeType, FrameType

# The signals of a closed terminal, of Ctrl-C, of Ctrl-\ and of `kill`.
NAMES = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
# `timeout` signals both its child and the child's group; the two count as one.
SECONDS_OF_ONE = 0.3
# Added by a shell to the number of the signal that ended a program.
SHELL_SIGNAL = 128
# Seconds after which a deferred signal is sent again.
SECONDS_TO_LOAD = 0.01
# The code of functions in which an exception would be lost.
DEAF: set[CodeType] = set()

# The first signal and its time; None before.
FIRST = SimpleNamespace(number=None, at=0.0)


def begin() -> None:
    """Let signals interrupt, except those our parent made us ignore, as `nohup` does."""
    FIRST.number = None
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)

    sys.unraisablehook = _unheard


def end() -> None:
    """Let signals end the process, since nothing is left to tidy up."""
    sys.unraisablehook = sys.__unraisablehook__
    for number in SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def report_interrupt(error: BaseException) -> int:
    """Report that the command was interrupted and what is kept.

    Returns:
        The exit code a shell gives for the first signal: 130 for Ctrl-C.
    """
    left = f": {error}" if isinstance(error, KeyboardInterrupt) and str(error) else ""
    say(f"interrupted{left}")
    return SHELL_SIGNAL + (FIRST.number or signal.SIGINT)


def _unheard(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt once more where nothing can be raised, as in the deletion of an object."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    number, FIRST.number = FIRST.number or signal.SIGINT, None
    send_again(number)


DEAF.add(_unheard.__code__)  # it may be slower than the signal that it sends again


def _interrupt(number: int, frame: FrameType | None) -> None:
    if postponed(number, frame):
        return
    if FIRST.number is None:
        FIRST.number, FIRST.at = number, time.monotonic()
        raise KeyboardInterrupt
    if time.monotonic() - FIRST.at > SECONDS_OF_ONE:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


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
