"""Layouts of packs: what each can hold is known before anything is made."""

import sys

import pytest

from rnncli.cases.library import find_suite
from rnncli.cases.suite.suite import load_suite
from rnncli.errors import Unsupported
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.packs.conversion import convert_pack
from rnncli.packs.layouts import LAYOUTS
from rnncli.packs.pack import installed_packs, open_pack


def plan(suite, layout, selection=""):
    """Of a shipped suite."""
    return GenerationPlan(suite=load_suite(find_suite(suite)), layout=layout, selection=selection)


OF_A_DIALECT = {
    name: row.whose for name, row in LAYOUTS.items() if row.whose and "." not in row.whose
}


@pytest.mark.parametrize(("layout", "dialect"), OF_A_DIALECT.items())
def test_other_operators_have_no_models_of_a_dialect(layout, dialect, tmp_path):
    """No case is made or converted, and no folder appears."""
    reason = f"-[0-9]+ is not an operator of {dialect}"

    with pytest.raises(Unsupported, match=reason):
        generate(plan("smoke", layout), tmp_path / "made", print)
    with pytest.raises(Unsupported, match=reason):
        convert_pack(open_pack(installed_packs()["core"]), tmp_path / "other", layout)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("layout", "operator"), [("ir", "RNNCell"), ("wpt", "webnn")])
def test_a_case_that_must_be_refused_has_no_model(layout, operator, tmp_path):
    """Its outputs have no shape to declare."""
    with pytest.raises(Unsupported, match="must be refused has no outputs"):
        generate(plan("reject", layout, operator), tmp_path / "made", print)


def test_a_layout_whose_package_is_missing_is_refused_first(tmp_path, monkeypatch):
    """With the line that installs it, before minutes of work."""
    monkeypatch.setitem(sys.modules, "tflite", None)

    with pytest.raises(Unsupported, match=r"install it with: .*tflite"):
        generate(plan("tflite", "tflite"), tmp_path / "made", print)
    assert not [*tmp_path.iterdir()]
