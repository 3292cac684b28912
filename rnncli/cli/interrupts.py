"""Signals that end a command: the first lets it tidy up, the second ends it at once."""

from __future__ import annotations

import signal
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

from rnncli.signals import postponed, send_again
from rnncli.terminal import say

if TYPE_CHECKING:
    from types import FrameType

# Those of a terminal that is closed, of Ctrl-C, and of `kill`.
NAMES = ("SIGHUP", "SIGINT", "SIGTERM")
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
# `timeout` sends its signal twice, to its child and to the child's group: that is one.
SECONDS_OF_ONE = 0.3
# What a shell adds to the number of the signal that ended a program.
SHELL_SIGNAL = 128

# The signal that came first, and when; None before.
FIRST = SimpleNamespace(number=None, at=0.0)


def begin() -> None:
    """Let signals interrupt; those that whoever started us has us ignore, as `nohup` does, stay."""
    FIRST.number = None
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)

    sys.unraisablehook = _unheard


def end() -> None:
    """Let signals end the process: there is nothing left to tidy up."""
    sys.unraisablehook = sys.__unraisablehook__
    for number in SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def told(error: BaseException) -> int:
    """Say that the command was interrupted, and what that left.

    Returns:
        What a shell makes of a program that the first signal ends: 130 of Ctrl-C.
    """
    left = f": {error}" if isinstance(error, KeyboardInterrupt) and str(error) else ""
    say(f"interrupted{left}")
    return SHELL_SIGNAL + (FIRST.number or signal.SIGINT)


def _unheard(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt once more where nothing can be raised, as while an object is thrown away."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    number, FIRST.number = FIRST.number or signal.SIGINT, None
    send_again(number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if postponed(number, frame):
        return
    if FIRST.number is None:
        FIRST.number, FIRST.at = number, time.monotonic()
        raise KeyboardInterrupt
    if time.monotonic() - FIRST.at > SECONDS_OF_ONE:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
