"""Claims about vectors under the readings that an implementation declares."""

import sys

import numpy as np
import pytest
from support import shipped
from support.judged import CORE

from rnncli.backends import backend_named
from rnncli.errors import Unsupported
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.judging.comparing.declared import under_readings
from rnncli.operators import evaluate
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


def test_integers_need_no_extra(tmp_path, monkeypatch):
    """Their arithmetic is exact: a pack is made, and judged under several readings at once."""
    monkeypatch.setitem(sys.modules, "flint", None)
    monkeypatch.delitem(sys.modules, "rnncli.backends.certified_backend", raising=False)
    backend_named.cache_clear()
    plan = GenerationPlan(suite=shipped.suite("tflite"), selection="again_batch_first_fresh")
    report = generate(plan, tmp_path / "pack", print)
    (vector,) = open_pack(tmp_path / "pack").vectors()
    readings = {"preset": "cmsis", "state": "fresh"}

    found = under_readings(vector, readings)
    for call, answered in zip(vector.calls, found.calls, strict=True):
        wanted = evaluate(
            call.node.operator, call.inputs, attributes=call.attributes, readings=readings
        )
        for name, values in wanted.items():
            np.testing.assert_array_equal(answered.answers.outputs[name], values, strict=True)
    assert not report.failed
