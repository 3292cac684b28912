"""A look at which processes are left of those that a test starts."""

import contextlib
import secrets
import time
from pathlib import Path

MARK = "RNNCLI_TEST_MARK"


class Family:
    """All processes that were started since, whoever is their parent now."""

    def __init__(self, mark):
        self.mark = f"{MARK}={mark}".encode()

    def members(self):
        """Their ids, without those that only wait to be buried."""
        found = []
        for environment in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self.mark in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
        return found

    def is_gone(self):
        """Whether none is left, in a while."""
        return becomes(lambda: not self.members())

    def has(self, count):
        """Whether there are at least so many, in a while."""
        return becomes(lambda: len(self.members()) >= count)


def becomes(condition, seconds=120):
    """Whether a condition holds, in a while."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def started(monkeypatch):
    """Return the family of what is started from now on."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK, mark)
    return Family(mark)
