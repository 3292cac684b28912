"""Vectors to put to subjects."""

import dataclasses
from pathlib import Path

import pytest
from msgspec.structs import replace as with_entries

from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Vector

CORE = Path(__file__).parents[2] / "vectors" / "core"


@pytest.fixture(scope="session")
def core_pack():
    """The core pack."""
    return open_pack(CORE)


@pytest.fixture(scope="session")
def core(core_pack):
    """The vectors of the core pack, by id."""
    return lambda case_id: in_memory(core_pack.read(core_pack.case(case_id)))


def in_memory(vector):
    """A vector that was read, as one that can be altered."""
    names = [field.name for field in dataclasses.fields(Vector)]
    return Vector(**{name: getattr(vector, name) for name in names})


@pytest.fixture(scope="session")
def called(core):
    """A small vector under any id."""
    vector = core("rnn_7_plain")

    def called(case_id):
        return dataclasses.replace(
            vector, id=case_id, record=with_entries(vector.record, id=case_id)
        )

    return called
