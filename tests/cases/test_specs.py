"""Claims about the specs that ship with the package."""

import math
import re

import numpy as np
import pytest
import yaml
from support.tables import every

from rnncli.cases.config.config import load_config, parse_config, read_case
from rnncli.cases.library import find_spec, spec_names, specs_folder
from rnncli.cases.yaml_reader import parse_yaml, read_yaml
from rnncli.errors import RnncliWarning
from rnncli.operators import OPERATORS, evaluate
from rnncli.operators.checking import possible_readings
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.readings import READINGS

CONFIGS = [name.removeprefix("ops/") for name in spec_names() if name.startswith("ops/")]
SEMANTICS = (specs_folder() / "semantics.md").read_text()


def run(case, **more):
    """Evaluate a case."""
    arguments = {
        "attributes": case.attributes,
        "outputs": case.outputs,
        "readings": case.readings,
        **more,
    }
    return evaluate(case.operator, case.inputs, **arguments)


def without(name, *path):
    """The same example, less one thing it shows; its inputs otherwise unchanged."""
    written = read_yaml(find_spec(name)).plain
    parent = written
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    path = find_spec(name)
    return read_case(parse_yaml(yaml.safe_dump(written), path.name), path.stem, path.parent)


@every("row", OPERATORS.values(), ids=str)
def test_every_operator_has_an_example(row):
    """Named like it."""
    assert load_config(find_spec(row.slug)).operator is row


@every("name", CONFIGS)
@every("compute", ["float64", "native"])
def test_every_example_runs(name, compute):
    """With finite outputs that are not all the same."""
    for values in run(load_config(find_spec(name)), compute=compute).values():
        wide = values.astype(np.float64)
        assert np.isfinite(wide).all()
        assert wide.size == 1 or wide.std() > 0.01


@every("name", CONFIGS)
def test_every_example_teaches(name):
    """It begins with a comment, has a summary, and fits the page."""
    text = find_spec(name).read_text()

    assert text.startswith("# ")
    assert len(load_config(find_spec(name)).summary) > 20
    assert max(map(len, text.splitlines())) <= 105


FEATURES = [
    ("lstm_14_peepholes", "inputs", "P"),
    ("lstm_14_peepholes", "inputs", "initial_c"),
    ("lstm_14_peepholes", "attributes", "activation_alpha"),
    ("lstm_14_clip", "attributes", "clip"),
    ("gru_14_ragged_lengths", "inputs", "sequence_lens"),
    ("rnn_14_reverse", "attributes", "direction"),
    ("lstm_14_bidirectional_activations", "attributes", "activations"),
    ("lstm_7_input_forget", "attributes", "input_forget"),
    ("gru_7_linear_before_reset", "attributes", "linear_before_reset"),
    ("rnn_14_alpha_beta", "attributes", "activation_alpha"),
    ("rnn_14_alpha_beta", "attributes", "activation_beta"),
    ("gru_14", "attributes", "activations"),
    ("rnnsequence_5", "attributes", "clip"),
    ("rnnsequence_5", "inputs", "sequence_lengths"),
    ("webnn_gru", "attributes", "layout"),
    ("webnn_gru", "inputs", "recurrentBias"),
    ("webnn_grucell", "attributes", "resetAfter"),
    ("webnn_lstm", "attributes", "layout"),
    ("webnn_lstm", "attributes", "direction"),
    ("webnn_lstm", "inputs", "bias"),
]


@pytest.mark.parametrize("feature", FEATURES, ids=" ".join)
@pytest.mark.filterwarnings("ignore::rnncli.errors.RnncliWarning")  # alpha left without a function
def test_what_an_example_shows_matters(feature):
    """Without it every output is another one."""
    name, *path = feature
    there, gone = run(load_config(find_spec(name))), run(without(name, *path))

    for output in there:
        assert not np.array_equal(there[output], gone[output])


@pytest.mark.parametrize(
    ("name", "reading", "other"),
    [("lstm_14_clip", "clip-scope", "gates"), ("rnn_1", "recurrence", "literal")],
)
def test_the_reading_an_example_names_matters(name, reading, other):
    """The other choice gives another result."""
    case = load_config(find_spec(name))
    there, gone = run(case), run(case, readings={**case.readings, reading: other})

    assert not np.array_equal(there["Y_h"], gone["Y_h"])


def test_alpha_order_matters_where_a_function_takes_none():
    """The queue skips Tanh; the position does not."""
    text = find_spec("rnn_14_alpha_beta").read_text().replace("[LeakyRelu", "[Tanh")
    text = text.replace("[0.125, 1.5]", "[1.5]").replace("activation_beta: [0.75]", "")
    case = parse_config(text, "x")

    queue = run(case, readings={"alpha-order": "queue"})
    with pytest.warns(RnncliWarning, match="alpha value 1.5 used by no activation"):
        positional = run(case, readings={"alpha-order": "positional"})

    assert not np.array_equal(queue["Y"], positional["Y"])


def test_output_sequence_changes_nothing():
    """As its example says."""
    case = load_config(find_spec("rnn_1_output_sequence"))
    there, gone = run(case), run(without("rnn_1_output_sequence", "attributes", "output_sequence"))

    assert list(there) == ["Y", "Y_h"]
    assert all(np.array_equal(there[name], gone[name]) for name in there)


def test_omitted_outputs_change_no_other():
    """The one that is left is what it is among all."""
    case = load_config(find_spec("lstm_14_omitted_outputs"))
    every = run(case, outputs=None)

    assert list(run(case)) == ["Y_c"]
    assert np.array_equal(run(case)["Y_c"], every["Y_c"])


def test_layout_1_is_layout_0_permuted():
    """As its example says: states and sequences, and nothing else."""
    case = load_config(find_spec("gru_14_layout_1"))
    first = {"X": (1, 0, 2), "initial_h": (1, 0, 2)}
    inputs = {n: a.transpose(first[n]) if n in first else a for n, a in case.inputs.items()}
    plain = evaluate(case.operator, inputs, attributes={**case.attributes, "layout": 0})
    found = run(case)

    assert np.array_equal(found["Y"], plain["Y"].transpose(2, 0, 1, 3))
    assert np.array_equal(found["Y_h"], plain["Y_h"].transpose(1, 0, 2))


def test_the_exact_example_is_exact():
    """Computed in float16 from the same numbers, nothing is rounded."""
    text = find_spec("rnn_22").read_text()
    wide, narrow = (
        run(parse_config(text.replace("float64", dtype), "x"), compute="native")
        for dtype in ("float64", "float16")
    )

    assert np.array_equal(wide["Y"], narrow["Y"].astype(np.float64))


def test_the_example_by_hand_is_right():
    """LSTM-22's, with Python's own arithmetic."""

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    h = c = 0.0
    for x, y in ((1, 0.5), (-0.25, 2)):
        i = sigmoid(0.5 * x - y + 0.25 * h)
        o = sigmoid(0.25 * x - 0.5 * h)
        f = sigmoid(x + 0.125 * y + h + 1)
        c = f * c + i * math.tanh(-0.5 * x + y + 0.75 * h)
        h = o * math.tanh(c)
    found = run(load_config(find_spec("lstm_22")))

    assert abs(float(found["Y_h"].item()) - h) < 1e-8
    assert abs(float(found["Y_c"].item()) - c) < 1e-8


def table():
    """The rows of the table of readings: name -> (choices, default in each dialect, operators)."""
    rows = re.findall(r"^\| `([a-z-]+)` \|(.*)\|$", SEMANTICS, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


@pytest.mark.parametrize("name", READINGS)
def test_semantics_lists_every_reading(name):
    """With its choices, its default in each dialect, and a section of its own."""
    choices, *defaults, _ = table()[name]

    assert re.findall("`([a-z0-9-]+)`", choices) == list(READINGS[name].choices)
    (header,) = re.findall(
        r"^\| reading \| choices \|(.*)\| operators \|$", SEMANTICS, re.MULTILINE
    )
    dialects = [cell.strip().removeprefix("in ") for cell in header.split("|")]
    assert set(dialects) == {row.dialect for row in OPERATORS.values()}
    for dialect, written in zip(dialects, defaults, strict=True):
        rows = [row for row in OPERATORS.values() if row.dialect == dialect]
        known = [*map(possible_readings, rows)]
        held = {readings[name] for readings in known if name in readings}
        assert {f"`{choice}`" for choice in held} == ({written} if written else set())
    assert f"### {name}: " in SEMANTICS


def test_semantics_lists_no_other_reading():
    """Nor one that is gone."""
    assert list(table()) == list(READINGS)


@pytest.mark.parametrize("name", READINGS)
def test_semantics_says_which_operators_have_a_reading(name):
    """By version, by type or by dialect."""
    written = table()[name][-1].split(", ")
    named = [
        row.name
        for row in OPERATORS.values()
        if {row.name, row.type, row.dialect, "all"} & set(written)
    ]

    assert named == [row.name for row in OPERATORS.values() if name in possible_readings(row)]


def test_semantics_lists_the_defaults_of_alpha_and_beta():
    """Of every function that takes one."""
    for name, row in ACTIVATIONS.items():
        if row.alpha is not None:
            beta = f"{row.beta:g}" if row.beta is not None else ""
            cells = [name, f"{row.alpha:.2g}", beta]
            assert re.search(r"\| *" + r" *\| *".join(map(re.escape, cells)) + r" *\|", SEMANTICS)
