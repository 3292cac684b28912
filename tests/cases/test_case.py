"""Claims about cases: described as YAML, and the same again when read."""

from pathlib import Path

import numpy as np
import yaml
from support.tables import every

from rnncli.cases.case import describe
from rnncli.cases.config.config import load_config, parse_config
from rnncli.cases.library import find_spec, spec_names
from rnncli.cases.schemas import config_schema
from rnncli.operators import evaluate

CONFIGS = [name for name in spec_names() if name.startswith("ops/")]


def outputs(case):
    """What a case evaluates to, as bytes."""
    found = evaluate(
        case.operator,
        case.inputs,
        attributes=case.attributes,
        outputs=case.outputs,
        readings=case.readings,
    )
    return {name: values.tobytes() for name, values in found.items()}


@every("name", CONFIGS)
def test_a_described_case_is_the_same_case(name, monkeypatch):
    """Every default written out, read again: the same inputs, the same outputs."""
    path = find_spec(name)
    monkeypatch.chdir(path.parent)  # where its file lies
    case = load_config(path)
    text = yaml.safe_dump(describe(case), sort_keys=False)

    again = parse_config(text, f"<{case.name}>")

    assert describe(again) == describe(case)
    assert {n: a.tobytes() for n, a in again.inputs.items()} == {
        n: a.tobytes() for n, a in case.inputs.items()
    }
    assert outputs(again) == outputs(case)


# The keys of linear recurrences alone.
OF_LINEAR = {"states_dtype", "decay_form", "beta_form", "key_form", "bias_form"}


def test_every_default_is_there():
    """As one would write it, in that order."""
    text = "op: GRU-14\nsizes: {seq_length: 1, batch_size: 2, input_size: 3, hidden_size: 4}\n"
    text += "attributes: {direction: bidirectional, clip: 2}\ninputs: {B: zeros, initial_h: "
    text += "[[[0, 1, 2, 3], [0, 1, 2, 3]], [[0, 1, 2, 3], [0, 1, 2, .inf]]]}"

    assert describe(parse_config(text, "x")) == {
        "op": "GRU-14",
        "summary": "",
        "sizes": {"seq_length": 1, "batch_size": 2, "input_size": 3, "hidden_size": 4},
        "dtype": "float32",
        "lengths_dtype": None,
        "attributes": {
            "activations": ["Sigmoid", "Tanh", "Sigmoid", "Tanh"],
            "clip": 2,
            "direction": "bidirectional",
            "hidden_size": 4,
            "layout": 0,
            "linear_before_reset": 0,
        },
        "inputs": {
            "X": {"normal": [0.0, 1.0]},
            "W": {"weights": [1.5]},
            "R": {"weights": [1.5]},
            "B": "zeros",
            "sequence_lens": None,
            "initial_h": [[[0, 1, 2, 3]] * 2, [[0, 1, 2, 3], [0, 1, 2, float("inf")]]],
        },
        "outputs": ["Y", "Y_h"],
        "readings": {"alpha-order": "queue", "threshold-tie": "ge", "zero-length": "zero"},
        "seed": 0,
    }
    of_others = {"weights_dtype", "scales", "quantise", *OF_LINEAR}
    keys = [key for key in config_schema()["properties"] if key not in of_others]
    assert list(describe(parse_config(text, "x"))) == keys


def test_a_quantised_case_says_the_form_of_its_weights():
    """And reads the same."""
    case = load_config(find_spec("dynamicquantizelstm_1"))
    again = parse_config(yaml.safe_dump(describe(case)), "x")

    keys = [k for k in config_schema()["properties"] if k not in {"quantise", *OF_LINEAR}]
    assert list(describe(case)) == keys
    assert (describe(case)["weights_dtype"], describe(case)["scales"]) == ("int8", "per_channel")
    assert all(np.array_equal(values, again.inputs[name]) for name, values in case.inputs.items())
    assert case.inputs["W"].dtype == case.inputs["R_zero_point"].dtype == np.int8
    assert case.inputs["W_scale"].shape == case.inputs["W_zero_point"].shape == (2, 20)


def test_a_case_knows_where_its_yaml_says_what():
    """So that later findings have a place, too."""
    case = load_config(find_spec("rnnsequence_5"))

    assert Path(case.place_of(("inputs", "sequence_lengths")).file).name == "rnnsequence_5.yaml"
    assert case.place_of(("inputs", "X")) == case.place_of(("inputs",))


def test_given_values_are_kept(tmp_path):
    """A literal is in the case as it stands in the file."""
    path = tmp_path / "x.yaml"
    path.write_text(
        "op: RNN-7\nsizes: {seq_length: 1, batch_size: 1, input_size: 2, hidden_size: 1}\n"
        "inputs: {X: [[[0.5, -1]]], W: [[[1, 2]]], R: [[[0]]]}\nattributes: {activations: [Relu]}\n"
    )
    case = load_config(path)

    assert case.inputs["X"].tolist() == [[[0.5, -1.0]]]
    assert np.frombuffer(outputs(case)["Y"], np.float32).tolist() == [0.0]
