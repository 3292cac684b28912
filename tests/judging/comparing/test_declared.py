"""Claims about vectors under the readings that an implementation declares."""

import sys

import pytest
from support.judged import CORE

from rnncli.backends import backend_named
from rnncli.errors import Unsupported
from rnncli.judging.comparing.declared import under_readings
from rnncli.packs.pack import open_pack


def test_answers_that_no_pack_stores_need_an_extra(monkeypatch):
    """Its absence is told with the readings that ask for it, and how to install it."""
    monkeypatch.setitem(sys.modules, "flint", None)
    monkeypatch.delitem(sys.modules, "rnncli.backends.certified_backend", raising=False)
    backend_named.cache_clear()
    vector = next(open_pack(CORE.parent / "units").vectors())

    with pytest.raises(Unsupported) as told:
        under_readings(vector, {"round": "half-up"})

    assert f"{vector.id}: no pack has answers under round=half-up, and proving" in str(told.value)
    assert "[certified]" in str(told.value)
