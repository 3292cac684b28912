"""Claims about suites: what they expand to, and that every mistake is found and placed."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from support.tables import every

from rnncli.cases.config.config import parse_config
from rnncli.cases.suite import suite as suite_module
from rnncli.cases.suite.suite import is_suite, load_suite, parse_suite, suite_findings
from rnncli.cases.yaml_reader import parse_yaml
from rnncli.errors import ConfigError, InvalidRequest, NothingSelected

SIZES = "{seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}"
START = f"suite: s\nsummary: a trial\ndefaults: {{sizes: {SIZES}}}\n"


def parse(text, **more):
    """Read a suite whose head is the usual one, or the text where it has a head."""
    whole = text if text.startswith("suite:") else START + text
    return parse_suite(whole, "s.yaml", Path(), **more)


def one(case, **more):
    """Read a suite of one case, `x`, written as one line."""
    return parse(f"cases:\n  x: {case}\n", **more)


def ids(case):
    """The ids it expands to, less what they all begin with."""
    return [entry.id.removeprefix("lstm_14_x").lstrip("_") for entry in one(case).entries]


def complaints(text):
    """What is wrong with a suite, without the file's name."""
    with pytest.raises(ConfigError) as caught:
        parse(text)
    return [line.removeprefix("s.yaml:") for line in str(caught.value).splitlines()]


def of_case(case):
    """What is wrong with a suite of one case, without the place."""
    found = complaints(f"cases:\n  x: {case}\n")
    assert all(line.startswith("5:") for line in found)
    return [line.partition(" ")[2] for line in found]


def test_the_least_suite():
    """Everything has a default."""
    suite = one("{op: LSTM-14}")
    (entry,) = suite.entries

    assert (suite.name, suite.summary, suite.seed) == ("s", "a trial", 0)
    assert (suite.golden, suite.profile, dict(suite.notes)) == ("certified", "standard", {})
    assert (entry.id, entry.operator.name, entry.dtype) == ("lstm_14_x", "LSTM-14", "float32")
    assert (entry.flags, entry.labels, entry.weights) == ((), {}, "inputs")
    assert (entry.golden, entry.profile, entry.breakage) == ("certified", "standard", None)


def test_an_entry_is_the_case_that_its_config_describes():
    """But for its random inputs, which depend on its id as well: there are as many as ids."""
    written = "inputs: {P: uniform, sequence_lens: lengths}, attributes: {clip: 3}"
    case = one(f"{{op: LSTM, opset: 14, {written}}}", seed=7).entries[0].case()

    config = parse_config(f"{{op: LSTM-14, sizes: {SIZES}, seed: 7, {written}}}", "lstm_14_x")

    assert (case.name, case.seed, case.attributes) == (config.name, 7, config.attributes)
    assert list(case.inputs) == list(config.inputs)
    assert (case.key, config.key) == ("lstm_14_x", "")
    named = config.stacked([case.key])
    assert all(np.array_equal(case.inputs[name], named[name][0]) for name in config.inputs)
    assert not np.array_equal(case.inputs["X"], config.inputs["X"])


def test_seed_can_be_replaced():
    """The command line's goes before the file's, and other seeds give other inputs."""
    text = f"{START}seed: 3\ncases: {{x: {{op: RNN-7}}}}\n"
    first, again, other = (parse(text, **more).entries[0].case() for more in ({}, {}, {"seed": 4}))

    assert (first.seed, other.seed) == (3, 4)
    assert np.array_equal(first.inputs["X"], again.inputs["X"])
    assert not np.array_equal(first.inputs["X"], other.inputs["X"])


def test_adding_a_case_changes_no_other():
    """Its inputs depend on the seed, its id and their names alone."""
    alone = one("{op: RNN-7}").entries[0].case()
    text = "cases:\n  a: {op: GRU-7}\n  x: {op: RNN-7}\n"
    beside = parse(text).entries[1].case()

    assert np.array_equal(alone.inputs["W"], beside.inputs["W"])


LABELS = [
    ("direction: [forward, reverse]", ["forward", "reverse"]),
    ("dtype: [float16, float32]", ["float16", "float32"]),
    ("clip: [null, 1.5, 64]", ["", "clip_1.5", "clip_64"]),
    ("clip: [1e-5, .inf]", ["clip_1e-05", "clip_inf"]),
    ("hidden_size: [5, 7]", ["hidden_size_5", "hidden_size_7"]),
    ("P: [null, {peepholes: uniform}]", ["", "peepholes"]),
    ("P: {none: null, some: {uniform: [0, 1]}}", ["none", "some"]),
    ("clip-scope: [gates, activations]", ["gates", "activations"]),
    ("outputs: [null, {last: [Y_h]}]", ["", "last"]),
    ("inputs: {plain: , wide: {X: {normal: [0, 3]}}}", ["plain", "wide"]),
    ("weights: [inputs, {const: initializers}]", ["inputs", "const"]),
    ("activations: [null, {hard: [HardSigmoid, Tanh, Tanh]}]", ["", "hard"]),
]


@pytest.mark.parametrize(("axis", "labels"), LABELS)
def test_labels_of_an_axis(axis, labels):
    """Text as it is, nothing for null, numbers with the name of the axis, or what is written."""
    assert ids(f"{{op: LSTM-14, matrix: {{{axis}}}}}") == labels


def test_ids_tell_operator_version_name_and_labels_in_order():
    """The operator's own labels stand in front and are not repeated."""
    suite = one("{matrix: {direction: [reverse], opset: [7, 14], dtype: [float16], op: [GRU]}}")

    assert [entry.id for entry in suite.entries] == [
        "gru_7_x_reverse_float16",
        "gru_14_x_reverse_float16",
    ]
    assert suite.entries[0].labels == {
        "direction": "reverse",
        "opset": "opset_7",
        "dtype": "float16",
        "op": "gru",
    }


def test_a_case_named_like_its_operator_is_not_told_twice():
    """rnn_7_reverse, not rnn_7_rnn_reverse."""
    suite = parse("cases:\n  rnn: {op: RNN-7, matrix: {direction: [reverse]}}\n")

    assert suite.entries[0].id == "rnn_7_reverse"


def test_product_is_every_combination_the_last_axis_fastest():
    """In the order of the file."""
    case = "{op: LSTM-14, matrix: {direction: [forward, reverse], dtype: [float16, float32]}}"

    assert ids(case) == [
        "forward_float16",
        "forward_float32",
        "reverse_float16",
        "reverse_float32",
    ]


def test_zip_advances_together_and_tells_equal_labels_once():
    """Here operator and activations; labels of the operator's name are not repeated either."""
    suite = one(
        "{zip: {op: [RNN, GRU], opset: [7, 14], activations: {rnn: [Relu], gru: [Relu, Tanh]},"
        " inputs: {wide: {X: ones}, small: {X: zeros}}, B: {wide: ones, small: zeros}}}"
    )

    assert [entry.id for entry in suite.entries] == ["rnn_7_x_wide", "gru_14_x_small"]
    assert suite.entries[1].case().attributes["activations"] == ["Relu", "Tanh"]


def test_a_section_as_an_axis_is_merged_into_the_case():
    """Name by name; null takes away."""
    suite = one(
        "{op: LSTM-14, inputs: {B: ones, P: ones},"
        " matrix: {inputs: {same: , more: {initial_h: ones, P: null}}}}"
    )
    same, more = (list(entry.case().inputs) for entry in suite.entries)

    assert same == ["X", "W", "R", "B", "P"]
    assert more == ["X", "W", "R", "B", "initial_h"]


def test_defaults_are_merged_by_section_and_replaced_by_key():
    """Flags and matrix are replaced, sizes and attributes merged."""
    suite = parse(
        "suite: s\nsummary: x\nnotes: {A: a, B: b}\n"
        f"defaults: {{op: LSTM-14, flags: [A], sizes: {SIZES}, attributes: {{clip: 3}},"
        " matrix: {dtype: [float16]}}\n"
        "cases:\n  one: {}\n"
        "  two: {flags: [B], sizes: {seq_length: 2}, attributes: {clip: null, layout: 1},"
        " matrix: {}}\n"
    )
    one_, two = suite.entries

    assert (one_.id, one_.flags, one_.case().attributes["clip"]) == (
        "lstm_14_one_float16",
        ("A",),
        3,
    )
    assert (two.id, two.flags) == ("lstm_14_two", ("B",))
    assert two.case().attributes == {"layout": 1, "hidden_size": 5}
    assert two.case().sizes["seq_length"] == 2
    assert two.case().sizes["batch_size"] == 3


def test_flags_of_labels_are_added_to_those_of_the_case():
    """Only where the label is."""
    suite = parse(
        "notes: {A: a, B: b}\ncases:\n  x: {op: RNN-7, flags: [A], axis_flags: {ragged: [B, A]},"
        " matrix: {sequence_lens: [null, {ragged: lengths}]}}\n"
    )

    assert [entry.flags for entry in suite.entries] == [("A",), ("A", "B")]


def test_a_case_may_have_a_golden_and_a_profile_of_its_own():
    """Others have the suite's."""
    suite = parse(
        "golden: float64\nprofile: strict\n"
        "cases:\n  a: {op: RNN-7}\n  b: {op: RNN-7, golden: certified, profile: exact}\n"
    )

    assert [(e.golden, e.profile) for e in suite.entries] == [
        ("float64", "strict"),
        ("certified", "exact"),
    ]


IMPOSSIBLE = [
    ("opset: [7, 14], layout: [null, {b: 1}]", ["7", "14", "14_b"]),
    ("opset: [14, 22], dtype: [float32, bfloat16]", ["14_float32", "22_float32", "22_bfloat16"]),
    ("opset: [1, 7], output_sequence: [null, {o: 1}]", ["1", "1_o", "7"]),
    (
        (
            "opset: [7], direction: [forward, bidirectional],"
            " activations: [{one: [Tanh, Tanh, Tanh]}, {two: [Tanh, Tanh, Tanh, Relu, Relu, Relu]}]"
        ),
        ["7_forward_one", "7_bidirectional_two"],
    ),
]


@pytest.mark.parametrize(("axes", "left"), IMPOSSIBLE)
def test_what_a_version_cannot_express_is_left_out(axes, left):
    """No such attribute, dtype or number of activations."""
    suite = one(f"{{op: LSTM, matrix: {{{axes}}}}}")

    assert [e.id.removeprefix("lstm_").replace("_x", "") for e in suite.entries] == left
    assert all(entry.case() for entry in suite.entries)


def test_what_an_operator_has_not_is_left_out():
    """Peepholes only of LSTM, versions of each type only, a null of anything."""
    suite = one("{matrix: {op: [GRU, LSTM], opset: [3, 7], P: [null, {p: ones}]}}")

    assert [entry.id for entry in suite.entries] == ["gru_3_x", "gru_7_x", "lstm_7_x", "lstm_7_x_p"]
    assert all(entry.case() for entry in suite.entries)


def test_exclude_and_include():
    """By label, by value, by several labels; what is included need not be made otherwise."""
    case = (
        "{op: LSTM-14, matrix: {direction: [forward, reverse], dtype: [float16, float32, float64],"
        " clip: [null, 2.0]}, exclude: [{direction: reverse, dtype: [float16, float64]},"
        " {clip: 2.0, direction: forward}, {clip: null, dtype: Float32}],"
        " include: [{direction: reverse, dtype: float16}, {dtype: float64}]}"
    )

    assert ids(case) == [
        "forward_float16",
        "forward_float64",
        "reverse_float32_clip_2.0",
        "reverse_float16",
    ]


def test_covering_arrays_keep_to_what_is_possible():
    """Every feasible pair occurs; test_shipped_suites looks closer."""
    case = (
        "{op: LSTM, strategy: pairwise, matrix: {opset: [7, 14, 22], layout: [null, {b: 1}],"
        " dtype: [float32, bfloat16], weights: [null, {c: initializers}]}}"
    )
    made = {entry.id for entry in one(case).entries}
    everything = {entry.id for entry in one(case.replace("pairwise", "product")).entries}

    assert made < everything
    assert {"lstm_7_x_float32_c", "lstm_7_x_float32"} & made


def test_cases_are_not_read_before_they_are_asked_for(monkeypatch):
    """Expanding ten thousand would take long otherwise."""
    monkeypatch.setattr(suite_module, "read_case", None)
    sizes = "hidden_size: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], input_size: [1, 2, 3, 4, 5]"

    suite = one(f"{{matrix: {{op: [RNN, GRU, LSTM], opset: [7, 14, 22], {sizes}}}}}")

    assert len(suite.entries) == 3 * 3 * 10 * 5


def test_entries_are_found_by_id():
    """A misspelt one is suggested."""
    suite = one("{op: LSTM-14, matrix: {direction: [forward, reverse]}}")

    assert suite.entry("lstm_14_x_reverse") is suite.entries[1]
    with pytest.raises(InvalidRequest, match="did you mean 'lstm_14_x_reverse'"):
        suite.entry("lstm_14_x_revers")


def test_entries_are_selected_by_parts_of_ids_and_by_flags():
    """Flags in any case of letters, and whole; nothing selected is no success."""
    suite = parse(
        "notes: {RaggedReverse: x}\ncases:\n  x: {op: RNN-7, axis_flags: {r: [RaggedReverse]},"
        " matrix: {direction: [forward, {r: reverse}]}}\n"
    )

    assert len(suite.select("")) == 2
    assert [e.id for e in suite.select("rnn_7 and not x_f")] == ["rnn_7_x_r"]
    assert [e.id for e in suite.select("RAGGEDREVERSE")] == ["rnn_7_x_r"]
    with pytest.raises(NothingSelected, match=r"s\.yaml: 'ragged' selects no case of 2"):
        suite.select("ragged")


@pytest.mark.parametrize(
    ("text", "suite"),
    [
        ("suite: x", True),
        ("cases: {}", True),
        ("op: RNN-7", False),
        ("[suite]", False),
        ("", False),
    ],
)
def test_a_suite_is_told_from_a_config(text, suite):
    """By its keys."""
    assert is_suite(parse_yaml(text, "x")) == suite


HEADS = [
    ("[1]", "1:1: a suite must be a mapping, NAME: VALUE, got a list of 1"),
    ("suite: s\nsummary: x", "1:1: 'cases' must name at least one case"),
    ("suite: s\ncases: {x: {op: RNN-7}}", "1:1: 'summary' is missing"),
    ("suite: s\nsummary:\ncases: {x: {op: RNN-7}}", "2:9: 'summary' must be text, got null"),
    ("summary: s\ncases: {x: {op: RNN-7}}", "1:1: 'suite' is missing"),
    ("suite: A b\nsummary: s", "1:8: a suite's name holds letters a-z"),
    ("suite: s\nsumary: s", "2:1: unknown key 'sumary'; did you mean 'summary'?"),
    ("suite: s\nseed: -1", "2:7: 'seed' must be an integer, 0 to"),
    ("suite: s\ngolden: certfied", "2:9: unknown golden 'certfied'; did you mean 'certified'?"),
    ("suite: s\nprofile: 3", "2:10: unknown profile '3' (there are standard"),
    ("suite: s\ncases: {A: {op: RNN-7}}", "2:9: a case's name holds letters a-z"),
    ("suite: s\ncases: [x]", "2:8: 'cases' must be a mapping"),
    ("suite: s\ncases: {x: 3}", "2:12: case 'x' must be a mapping"),
    ("suite: s\ndefaults: {opp: 3}", "2:12: unknown key 'opp'"),
    ("suite: s\nnotes: {A: x}\ncases: {x: {op: RNN-7}}", "2:9: no case has the flag 'A'"),
    ("suite: s\nnotes: {A: 3}\ncases: {x: {op: RNN-7}}", "2:12: the note of 'A' must be text"),
    (
        "suite: s\nnotes: {Ragged: x}\ncases: {x: {op: RNN-7, flags: [Raged]}}",
        "3:32: flag 'Raged' has no note; did you mean 'Ragged'?",
    ),
]


@pytest.mark.parametrize(("text", "finding"), HEADS)
def test_what_is_wrong_with_the_suite_itself(text, finding):
    """Each with its place."""
    with pytest.raises(ConfigError) as caught:
        parse_suite(text, "s.yaml", Path())

    assert any(line.startswith(f"s.yaml:{finding}") for line in str(caught.value).splitlines())


WRONG = [
    ("{opset: 7}", "'op' must name an operator"),
    ("{op: LSTM}", "'opset' must say which LSTM: 1, 7, 14, 22"),
    ("{op: LSTN-14}", "unknown operator 'LSTN-14'; did you mean 'LSTM-14'?"),
    ("{op: LSTM-14, opset: 7}", "'op' is a type, such as LSTM, got 'LSTM-14'"),
    ("{op: LSTM, opset: 13}", "opset 13 uses LSTM-7"),
    ("{op: LSTM, opset: '7'}", "'opset' must be a version, an integer, got '7'"),
    ("{op: LSTM, opset: true}", "'opset' must be a version, an integer, got True"),
    ("{op: [LSTM-14]}", "'op' must name an operator"),
    ("{op: LSTM-14, dtype: [float32]}", "LSTM-14 has no dtype ['float32']"),
    ("{op: LSTM-14, seed: 3}", "unknown key 'seed'"),
    ("{op: LSTM-14, clip: 1}", "unknown key 'clip'; write attributes: {clip: ...}"),
    ("{op: LSTM-14, B: uniform}", "unknown key 'B'; write inputs: {B: ...}"),
    ("{op: LSTM-14, hidden_size: 3}", "unknown key 'hidden_size'; write sizes: {hidden_size: ...}"),
    ("{op: LSTM-14, sizes: {hiden_size: 3}}", "unknown size 'hiden_size'; did you mean"),
    ("{op: LSTM-14, sizes: 3}", "'sizes' must be a mapping"),
    ("{op: LSTM-14, attributes: {clipp: null}}", "unknown attribute 'clipp'; did you mean 'clip'?"),
    ("{op: LSTM-14, inputs: {Q: ones}}", "unknown input 'Q'"),
    ("{op: LSTM-14, readings: {recurrence: literal}}", "LSTM-14 has no reading 'recurrence'"),
    ("{op: LSTM-7, attributes: {layout: 1}}", "LSTM-7 has no attribute 'layout'"),
    ("{op: LSTM-14, dtype: bfloat16}", "LSTM-14 has no dtype bfloat16"),
    ("{op: LSTM-14, attributes: {activations: [Tanh]}}", "activations must name 3 functions"),
    ("{op: LSTM-14, attributes: {activations: [Tan, Tanh, Tanh]}}", "unknown activation 'Tan'"),
    (
        "{op: LSTM-14, weights: constants}",
        "unknown weights 'constants'; did you mean 'initializers'?",
    ),
    ("{op: LSTM-14, flags: A}", "flags must be a list of names"),
    ("{op: LSTM-14, flags: [3]}", "a flag is a name, got 3"),
    ("{op: LSTM-14, strategy: paiwise}", "unknown strategy 'paiwise'; did you mean 'pairwise'?"),
    ("{op: LSTM-14, exclude: {a: b}}", "'exclude' must be a list"),
    ("{op: LSTM-14, matrix: [a]}", "'matrix' must be a mapping"),
    ("{op: LSTM-14, matrix: {directoin: [reverse]}}", "unknown axis 'directoin'; did you mean"),
    ("{op: LSTM-14, matrix: {summary: [a]}}", "unknown axis 'summary'"),
    ("{op: LSTM-14, matrix: {clip: 3}}", "axis 'clip' must be a list or {label: value}, got 3"),
    ("{op: LSTM-14, matrix: {clip: []}}", "axis 'clip' has no value"),
    ("{op: LSTM-14, matrix: {clip: [[3]]}}", "'a list of 1' cannot label a value of axis 'clip'"),
    ("{op: LSTM-14, matrix: {clip: [{a: 1, b: 2}]}}", "'a mapping' cannot label a value"),
    ("{op: LSTM-14, matrix: {direction: ['']}}", "cannot label a value of axis 'direction'"),
    ("{op: LSTM-14, matrix: {clip: {A b: 1}}}", "'A b' cannot label a value of axis 'clip'"),
    ("{op: LSTM-14, matrix: {clip: {A: 1}}}", "'A' cannot label a value of axis 'clip'"),
    (
        "{op: LSTM-14, matrix: {clip: [1, {clip_1: 2}]}}",
        "a second value of 'clip' is labelled clip_1",
    ),
    (
        "{op: LSTM-14, matrix: {clip: [null, null]}}",
        "a second value of 'clip' is labelled no label",
    ),
    ("{op: LSTM-14, matrix: {inputs: {a: 3}}}", "a value of axis 'inputs' is a mapping, got 3"),
    ("{op: LSTM-14, matrix: {inputs: {a: {Q: 3}}}}", "unknown input 'Q'"),
    (
        "{op: LSTM-14, matrix: {inputs: {a: {X: ones}}, X: [zeros]}}",
        "axes 'inputs' and 'X' both set 'X'",
    ),
    (
        "{op: LSTM-14, zip: {clip: [1, 2], dtype: [float32]}}",
        "the axes of 'zip' must be equally long: clip has 2, dtype has 1",
    ),
    (
        "{op: LSTM, matrix: {opset: [7, 8]}}",
        "opset 8 is impossible here: unknown operator 'LSTM-8'",
    ),
    (
        "{op: LSTM, matrix: {opset: [7, 14]}, attributes: {layout: 1}}",
        "opset 7 is impossible here: LSTM-7 has no attribute 'layout'",
    ),
    (
        "{op: LSTM-14, matrix: {dtype: [float32, flaot16]}}",
        "dtype 'flaot16' is impossible here: LSTM-14 has no dtype flaot16",
    ),
    (
        "{op: LSTM, matrix: {opset: [1, 7], layout: [null, {b: 1}]}}",
        "layout 1 is impossible here: LSTM-1 has no attribute 'layout'",
    ),
    (
        "{op: LSTM, matrix: {opset: [1, 14], output_sequence: {o: 1}, layout: [null, {b: 1}]}}",
        "layout 1 is impossible here: no values of the other axes go with it",
    ),
    (
        "{op: LSTM-14, matrix: {clip: [1]}, exclude: [{dtype: float32}]}",
        "unknown axis 'dtype' (there are clip)",
    ),
    (
        "{op: LSTM-14, matrix: {direction: [forward, reverse]}, exclude: [{direction: revers}]}",
        "axis 'direction' has no value 'revers'; did you mean 'reverse'?",
    ),
    (
        "{op: LSTM-14, matrix: {direction: [forward, reverse]}, exclude: [{direction: reverse}]}",
        "direction 'reverse' never occurs: 'exclude' removes it",
    ),
    ("{op: LSTM-14, matrix: {clip: [1]}, exclude: [{}]}", "an item of 'exclude' names no axis"),
    ("{op: LSTM-14, matrix: {clip: [1]}, include: [3]}", "an item of 'include' must be a mapping"),
    (
        "{op: LSTM-14, matrix: {clip: [1, 2]}, include: [{clip: [1, 2]}]}",
        "axis 'clip' has no value 'a list of 2'",
    ),
    (
        (
            "{op: LSTM, matrix: {opset: [7, 14], layout: [null, {b: 1}]},"
            " exclude: [{opset: 7, layout: b}]}"
        ),
        "excludes nothing: no operator can express it anyway",
    ),
    (
        "{op: LSTM, matrix: {opset: [7, 14], layout: [null, {b: 1}]}, include: [{layout: b}]}",
        "cannot be included: LSTM-7 has no attribute 'layout'",
    ),
    (
        (
            "{op: LSTM-14, zip: {clip: [1, 2], dtype: [float32, float16]},"
            " exclude: [{clip: 1, dtype: float16}]}"
        ),
        "no step of 'zip' has all of these values",
    ),
    ("{op: LSTM-14, axis_flags: {a: [A]}}", "unknown label 'a'"),
    ("{op: LSTM-14, breaks: 3}", "'breaks' must be a mapping"),
    ("{op: LSTM-14, breaks: {}}", "'breaks' must hold one of attributes, inputs"),
    ("{op: LSTM-14, breaks: {attribute: {layout: 2}}}", "unknown way to break a case 'attribute'"),
    ("{op: LSTM-14, breaks: {drop: [R], attributes: {layout: 2}}}", "must hold one of"),
    ("{op: LSTM-14, breaks: {shapes: {}}}", "'shapes' of 'breaks' names nothing"),
    ("{op: LSTM-14, breaks: {shapes: {P: [1]}}}", "unknown input of the case 'P'"),
    ("{op: LSTM-14, breaks: {drop: [Q]}}", "unknown input of the case 'Q'"),
    ("{op: LSTM-14, breaks: {shapes: {W: [1, -2]}}}", "W must be a list of sizes"),
    ("{op: LSTM-14, breaks: {shapes: {W: [100000, 100000]}}}", "W must be a list of sizes"),
    ("{op: LSTM-14, breaks: {sizes: {W: {hiden_size: 3}}}}", "W must be a mapping from seq_length"),
    ("{op: LSTM-14, breaks: {dtypes: {W: float33}}}", "W must be one of float16"),
    ("{op: LSTM-14, breaks: {inputs: {W: [[1], [1, 2]]}}}", "W must be a list of numbers"),
    ("{op: LSTM-14, breaks: {attributes: {clip: {a: 1}}}}", "clip must be a number, a word"),
]


@every(("case", "finding"), WRONG)
def test_what_is_wrong_with_a_case(case, finding):
    """Each in one sentence."""
    assert any(finding in line for line in of_case(case))


def test_findings_stand_where_the_mistake_is():
    """Also in defaults, in axes and in flags; all of them at once."""
    found = complaints(
        "cases:\n"
        "  a: {op: LSTM, matrix: {opset: [7, 15], clip: {a: 1, 'B': 2}}}\n"
        "  b: {op: LSTM-14, flags: [A], exclude: [{x: y}]}\n"
    )

    assert [line.partition(" ")[0] for line in found] == ["5:37:", "5:55:", "6:28:", "6:43:"]


def test_ids_are_unique():
    """A second one names the first."""
    first, second = "matrix: {clip: {a_b: 1}}", "matrix: {clip: {b: 1}}"
    text = f"cases:\n  x: {{op: RNN-7, {first}}}\n  x_a: {{op: RNN-7, {second}}}"

    assert complaints(text) == ["6:3: a second case is called rnn_7_x_a_b, as on line 5"]


def test_ids_have_an_end():
    """File systems do, too."""
    (found,) = of_case(f"{{op: LSTM-14, matrix: {{clip: {{{'a' * 130}: 1}}}}}}")

    assert found.startswith("an id of 140 characters, at most 120 fit: lstm_14_x_aaa")


def test_findings_of_a_suite_include_those_of_its_cases():
    """What only reading a case tells, once, with the first case it concerns."""
    case = "{op: RNN-7, attributes: {clip: -1}, matrix: {dtype: [float16, float32]}}"
    text = f"{START}cases:\n  x: {case}\n"
    (found,) = suite_findings(text, "s.yaml", Path())

    assert str(found[0]) == "s.yaml:5:37"
    assert found[1].startswith("attribute 'clip' must be greater than 0")
    assert found[1].endswith("[rnn_7_x_float16]")


def test_a_note_without_a_flag_hides_no_finding_of_a_case():
    """One lint tells of both, what may be the cause first."""
    text = f"{START}notes: {{A: x}}\ncases:\n  x: {{op: RNN-7, inputs: {{B: gaussian}}}}\n"
    about_case, about_note = suite_findings(text, "s.yaml", Path())

    assert about_note[1] == "no case has the flag 'A'"
    assert about_case[1].startswith("unknown fill 'gaussian' for B")


def test_a_flag_of_a_value_that_is_wrong_hides_no_finding_of_the_value():
    """Whoever renamed the label would be told of the value next."""
    case = "{op: RNN-7, matrix: {direction: [reversed]}, axis_flags: {reverse: [A]}}"
    text = f"{START}notes: {{A: x}}\ncases:\n  x: {case}\n"
    found = [sentence for _, sentence in suite_findings(text, "s.yaml", Path())]

    assert found[0].startswith("attribute 'direction' must be one of forward, reverse,")
    assert found[1:] == [
        "unknown label 'reverse'; did you mean 'reversed'?",
        "no case has the flag 'A'",
    ]


def test_wrong_values_in_the_defaults_hide_no_finding_of_what_stands_below():
    """One round tells all, each place once, in file order, and of flags what follows."""
    text = """\
suite: s
summary: Some.
seed: 1
notes: {A: x}
defaults:
  op: LSTM-14
  sizes: {seq_length: 2, batch_size: 1, input_size: 2, hidden_size: 2}
  dtype: fp16
  weights: constants
  profile: nosuch
  inputs: {initial_c: gauss}
cases:
  x: {attributes: {clip: -1}}
  y: {op: GRU-14, inputs: {initial_c: null}, matrix: {direction: [both]}}
"""
    found = [
        (place.line, sentence.partition(";")[0].partition(" (")[0].partition(",")[0])
        for place, sentence in suite_findings(text, "s.yaml", Path())
    ]

    assert found == [
        (8, "LSTM-14 has no dtype fp16"),
        (8, "GRU-14 has no dtype fp16"),
        (9, "unknown weights 'constants'"),
        (10, "unknown profile 'nosuch'"),
        (11, "unknown fill 'gauss' for initial_c"),
        (13, "attribute 'clip' must be greater than 0"),
        (14, "attribute 'direction' must be one of forward"),
        (4, "no case has the flag 'A'"),
    ]


def test_a_value_that_no_specification_gives_is_found():
    """A suite writes it out; a value of a function with a default it may leave to that."""
    case = "{op: RNN-7, attributes: {activations: [%s]}}"
    cases = f"cases:\n  x: {case % 'Elu'}\n  y: {case % 'Affine'}\n"
    found = suite_findings(f"{START}{cases}", "s.yaml", Path())

    assert [sentence.partition(":")[0] for _, sentence in found] == [
        "Affine without alpha",
        "Affine without beta",
    ]


def test_a_break_that_breaks_nothing_is_found():
    """The case would be valid."""
    text = f"{START}cases:\n  x: {{op: RNN-7, breaks: {{attributes: {{clip: 3}}}}}}"
    (found,) = suite_findings(text, "s.yaml", Path())

    assert found[1] == "{'attributes': {'clip': 3}} breaks nothing [rnn_7_x]"


def test_a_sound_suite_has_no_findings():
    """And a text that is none has its reader's."""
    assert suite_findings(f"{START}cases: {{x: {{op: RNN-7}}}}", "s.yaml", Path()) == []
    assert suite_findings("a: [", "s.yaml", Path())[0][0].line == 1


def test_suites_are_found_by_name(tmp_path, monkeypatch):
    """Those that ship; a file goes before them, a folder, such as their pack, does not."""
    assert load_suite("core").name == "core"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smoke").mkdir()
    assert load_suite("smoke").name == "smoke"
    (tmp_path / "core.yaml").write_text(f"{START}cases: {{x: {{op: RNN-7}}}}")
    assert load_suite(tmp_path / "core.yaml").name == "s"
    with pytest.raises(InvalidRequest, match="not a suite; write core -k id:gru_14_clip"):
        load_suite("core::gru_14_clip")
    with pytest.raises(InvalidRequest, match="no suite of that name; did you mean 'core'"):
        load_suite("coree")


HUGE = ", ".join(f"a{k}: {k}.5" for k in range(1, 120))


@pytest.mark.parametrize(
    ("case", "finding"),
    [
        (
            (
                f"{{op: LSTM-14, matrix: {{clip: {{{HUGE}}}, activation_alpha: {{{HUGE}}},"
                f" activation_beta: {{{HUGE}}}}}}}"
            ),
            "'x' has 1,685,159 combinations; at most 1,000,000 are made",
        ),
        (
            (
                f"{{op: LSTM-14, matrix: {{clip: {{{HUGE}}}, hidden_size: {{{HUGE}}},"
                " input_size: [1, 2, 3, 4, 5, 6, 7, 8]}}"
            ),
            "the suite has more than 100,000 cases from here on",
        ),
        (
            (
                f"{{op: LSTM-14, strategy: 3-way, matrix: {{clip: {{{HUGE}}},"
                f" hidden_size: {{{HUGE}}}, input_size: {{{HUGE}}}}}}}"
            ),
            "'x' has 1,685,159 triples; at most 30,000 are made",
        ),
        (
            f"{{matrix: {{op: {{{HUGE}}}, opset: {{{HUGE}}}, clip: {{{HUGE}}}}}}}",
            "axes op, opset, clip have 1,685,159 combinations; at most 100,000",
        ),
    ],
)
def test_matrices_have_an_end(case, finding):
    """Said before anything is made."""
    assert of_case(case)[0] == finding


@pytest.mark.parametrize("name", ["core", "reject", "pairwise"])
def test_a_suite_travels_whole(name):
    """In another process its entries are the same, of the operators that are there."""
    suite = load_suite(name)
    found = pickle.loads(pickle.dumps(suite))  # noqa: S301 -- our own

    assert [entry.id for entry in found.entries] == [entry.id for entry in suite.entries]
    for entry, before in zip(found.entries[::9], suite.entries[::9], strict=True):
        assert entry.operator is before.operator
        assert str(entry.refusal()) == str(before.refusal())
        inputs = entry.case().inputs
        assert {n: v.tobytes() for n, v in inputs.items()} == {
            n: v.tobytes() for n, v in before.case().inputs.items()
        }


def test_what_is_wrong_with_a_case_that_travelled_has_its_place():
    """Keys and values still know where they stand."""
    text = "suite: s\nsummary: S.\ncases:\n  a:\n    op: RNN-14\n    attributes: {clip: -1}\n"
    suite = parse_suite(text, "s.yaml", Path())
    (entry,) = pickle.loads(pickle.dumps(suite)).entries  # noqa: S301 -- our own

    with pytest.raises(ConfigError, match=r"s\.yaml:6:24: "):
        entry.case()


OTHERS = """\
suite: s
summary: a trial
defaults: {inputs: {initial_h: uniform}}
cases:
  x:
    op: RNNSequence-5
    sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5}
    attributes: {direction: forward}
    inputs: {%s}
"""


def test_a_null_takes_away_a_default_that_is_about_other_operators():
    """RNNSequence has no initial_h, and need not have one to do without it."""
    (entry,) = parse(OTHERS % "initial_h: null").entries

    assert "initial_h" not in entry.case().inputs
    assert "unknown input 'initial_h'" in complaints(OTHERS % "")[0]
    assert "unknown input 'initial_hh'" in complaints(OTHERS % "initial_hh: null")[-1]
