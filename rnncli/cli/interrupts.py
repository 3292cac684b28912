"""Signals that end a command: the first lets it tidy up, the second ends it at once."""

from __future__ import annotations

import signal
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

from rnncli.jobs.signals import DEAF, postponed, send_again
from rnncli.talk.terminal import say

if TYPE_CHECKING:
    from types import FrameType

# The signals of a closed terminal, of Ctrl-C, of Ctrl-\ and of `kill`.
NAMES = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM")
SIGNALS = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
# `timeout` signals both its child and the child's group; the two count as one.
SECONDS_OF_ONE = 0.3
# Added by a shell to the number of the signal that ended a program.
SHELL_SIGNAL = 128

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
