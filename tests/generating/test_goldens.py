"""Claims about goldens: computed, proved, and different under other readings."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import scalar_specification
from support.exact_rounding import correctly_rounded
from support.shipped import suite as shipped
from support.shipped import vectors
from support.valid_nodes import valid_node

from rnncli.cases.library import specs_folder
from rnncli.generating.goldens import other_readings
from rnncli.operators import OPERATORS
from rnncli.operators.node import Node

pytestmark = pytest.mark.filterwarnings("ignore::rnncli.errors.RnncliWarning")

SUITES = sorted(path.stem for path in (specs_folder() / "suites").glob("*.yaml"))


def exact(record, inputs, readings):
    """The outputs of a case as 60-digit numbers, by a scalar loop of its own."""
    attributes = {
        name: float(value) if value in ("inf", "-inf", "nan") else value
        for name, value in record.attributes.items()
        if not isinstance(value, list)
    } | {name: value for name, value in record.attributes.items() if isinstance(value, list)}
    with scalar_specification.digits(60):
        return scalar_specification.evaluate(record.operator, inputs, attributes, readings)


@pytest.mark.parametrize("suite", ["core", "smoke", "openvino", "webnn", "diagnostic"])
def test_goldens_equal_sixty_digits_rounded_once(suite):
    """Bit for bit, the answers under other readings included: balls and digits agree."""
    compared = Counter()
    for vector in vectors(suite):
        if vector.record.golden.kind != "certified":
            continue
        under = {"": vector.answers, **vector.alternatives}
        for change, answers in under.items():
            name, _, choice = change.partition("=")
            readings = {**vector.record.readings, **({name: choice} if change else {})}
            wanted = exact(vector.record, vector.inputs, readings)
            for output, values in answers.outputs.items():
                dtype = vector.record.dtype
                rounded = [correctly_rounded(number, dtype) for number in wanted[output].ravel()]
                assert values.astype(np.float64).ravel().tolist() == rounded, vector.id
                compared[vector.record.operator] += 1

    assert compared.total() > 50


def test_only_special_values_go_without_a_certificate():
    """Where a golden is not certified, an input is NaN or infinite."""
    for vector in vectors("edge"):
        finite = all(np.isfinite(t.astype(np.float64)).all() for t in vector.inputs.values())
        if vector.record.golden.kind == "float64":
            assert not finite, vector.id


@pytest.mark.parametrize("suite", SUITES)
def test_every_case_of_a_shipped_suite_can_be_made(suite):
    """No element is unresolved, nothing is ill-conditioned, and what must be refused is."""
    kinds = Counter(vector.record.golden.kind for vector in vectors(suite))

    assert kinds.total() == len(shipped(suite).entries)
    assert kinds["certified"] or suite == "reject"


def test_suites_are_where_the_readme_says():
    """Twenty-four suites ship."""
    assert len(SUITES) == 24
    assert (Path(__file__).parents[2] / "specs" / "suites").samefile(specs_folder() / "suites")


PREVIOUS = {"peephole-o": "previous"}


@pytest.mark.parametrize("is_given", [True, False])
def test_the_peephole_of_the_output_gate_matters_where_there_is_one(is_given):
    """To an operator that has the reading; the other choice is the other cell state."""
    row = OPERATORS["LSTM-14"]
    attributes, inputs = valid_node(row.name)
    node = Node(replace(row, readings={**row.readings, **PREVIOUS}), attributes)
    recurrence = node.recurrence(inputs if is_given else without_P(inputs))

    found = dict(other_readings(node, recurrence))

    assert ("peephole-o=new" in found) == is_given
    if is_given:
        assert not node.under(found["peephole-o=new"]).recurrence(inputs).options.peephole_previous


def without_P(inputs):
    """Leave the peepholes out."""
    return {name: values for name, values in inputs.items() if name != "P"}
