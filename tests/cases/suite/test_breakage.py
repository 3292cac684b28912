"""Claims about must-reject cases: each kind breaks one thing and leaves the rest."""

from pathlib import Path

import numpy as np
import pytest

from rnncli.cases.suite.breakage import KINDS
from rnncli.cases.suite.suite import parse_suite

SIZES = "{seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}"


def broken(breaks, more=""):
    """A valid LSTM case with every input, and how it is broken."""
    inputs = (
        "{B: uniform, P: uniform, sequence_lens: lengths, initial_h: uniform, initial_c: normal}"
    )
    case = f"op: LSTM-14, sizes: {SIZES}, inputs: {inputs}, breaks: {breaks}{more}"
    suite = parse_suite(f"suite: s\nsummary: s\ncases: {{x: {{{case}}}}}", "s.yaml", Path())
    return suite.entries[0]


def change(entry):
    """What the breakage changed: attributes, and inputs by name."""
    case = entry.case()
    before = {name: values.copy() for name, values in case.inputs.items()}
    attributes, inputs = entry.breakage.apply(case.attributes, case.inputs)
    assert all(np.array_equal(before[name], values) for name, values in case.inputs.items())
    changed = {n: inputs.get(n) for n in before if inputs.get(n) is not case.inputs[n]}
    assert inputs.keys() <= before.keys()
    return {k: v for k, v in attributes.items() if case.attributes.get(k) != v}, changed


EVERY_KIND = {
    "attributes": "{attributes: {layout: 2}}",
    "inputs": "{inputs: {sequence_lens: [9, 1, 2]}}",
    "shapes": "{shapes: {W: [1, 12, 4]}}",
    "sizes": "{sizes: {R: {hidden_size: 6}}}",
    "dtypes": "{dtypes: {initial_h: float64}}",
    "drop": "{drop: [R]}",
}


def test_every_kind_is_tried():
    """A new row needs an example."""
    assert list(EVERY_KIND) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_case_is_refused_and_written_as_it_was(kind):
    """The case itself is valid, and its refusal says why."""
    entry = broken(EVERY_KIND[kind])

    assert entry.breakage.kind == kind
    assert list(entry.breakage.written) == [kind]
    assert entry.case().operator.name == "LSTM-14"
    assert entry.refusal().exit_code == 2
    assert str(entry.refusal()).startswith("lstm_14_x (LSTM-14): ")


def test_attributes_get_other_values():
    """Or go away; the inputs stay."""
    assert change(broken(EVERY_KIND["attributes"])) == ({"layout": 2}, {})
    attributes, _ = broken("{attributes: {hidden_size: null}}").breakage.apply(
        {"hidden_size": 5}, {}
    )
    assert attributes == {}


def test_inputs_get_other_values_of_their_type():
    """In the shape that is written."""
    attributes, changed = change(broken(EVERY_KIND["inputs"]))

    assert attributes == {}
    assert changed["sequence_lens"].tolist() == [9, 1, 2]
    assert changed["sequence_lens"].dtype == np.int32


def test_shapes_are_filled_with_the_values_there_are():
    """Repeated or cut short; nothing that is only zeros."""
    _, changed = change(broken(EVERY_KIND["shapes"]))

    assert changed["W"].shape == (1, 12, 4)
    assert changed["W"].dtype == np.float32
    assert np.unique(changed["W"]).size > 20


def test_sizes_change_every_dimension_they_are_in():
    """Of R both; in batch-first tensors where the size then stands."""
    _, changed = change(broken(EVERY_KIND["sizes"]))
    _, batch_first = change(
        broken("{sizes: {initial_h: {batch_size: 2}}}", ", attributes: {layout: 1}")
    )

    assert changed["R"].shape == (1, 24, 6)
    assert batch_first["initial_h"].shape == (2, 1, 5)


def test_dtypes_keep_the_values():
    """As far as they can."""
    entry = broken(EVERY_KIND["dtypes"])
    _, changed = change(entry)

    assert changed["initial_h"].dtype == np.float64
    assert np.array_equal(changed["initial_h"], entry.case().inputs["initial_h"])


def test_dropped_inputs_are_gone():
    """One or several."""
    assert change(broken("{drop: [R, W]}"))[1] == {"W": None, "R": None}


def test_how_to_break_can_be_an_axis():
    """One case, broken in several ways; the first is the valid one."""
    text = (
        f"suite: s\nsummary: s\ncases: {{x: {{op: RNN-14, sizes: {SIZES}, matrix: {{breaks:"
        " {none: null, layout: {attributes: {layout: 2}}}}}}"
    )
    valid, layout = parse_suite(text, "s.yaml", Path()).entries

    assert (valid.breakage, valid.refusal()) == (None, None)
    assert layout.breakage.written == {"attributes": {"layout": 2}}
