"""Vectors to put to subjects, and a look at which processes are left."""

import contextlib
import dataclasses
import secrets
import time
from pathlib import Path

import pytest

from rnncli.vectors.pack import open_pack
from rnncli.vectors.vector import Vector

CORE = Path(__file__).parents[2] / "vectors" / "core"
MARK = "RNNCLI_TEST_MARK"


@pytest.fixture(scope="session")
def core():
    """The vectors of the core pack, by id."""
    pack = open_pack(CORE)
    return lambda case_id: in_memory(pack.read(pack.case(case_id)))


def in_memory(vector):
    """A vector that was read, as one that can be altered."""
    names = [field.name for field in dataclasses.fields(Vector)]
    return Vector(**{name: getattr(vector, name) for name in names})


@pytest.fixture(scope="session")
def called(core):
    """A small vector under any id."""
    vector = core("rnn_7_plain")

    def called(case_id):
        return dataclasses.replace(vector, id=case_id, record={**vector.record, "id": case_id})

    return called


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
        return _becomes(lambda: not self.members())

    def has(self, count):
        """Whether there are at least so many, in a while."""
        return _becomes(lambda: len(self.members()) >= count)


def _becomes(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def family(monkeypatch):
    """The processes that a test starts."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK, mark)
    return Family(mark)
