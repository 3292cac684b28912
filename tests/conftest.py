"""What holds for every test."""

from __future__ import annotations

import signal

import between_workers

# A shell without job control starts what runs in the background with Ctrl-C ignored, and so would
# be the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """Share what is made once among the workers, which start after this."""
    if not hasattr(config, "workerinput"):
        between_workers.begin()


def pytest_unconfigure(config):
    """Leave nothing behind."""
    if not hasattr(config, "workerinput"):
        between_workers.end()
