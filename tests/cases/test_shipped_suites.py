"""Claims about the suites that ship: sound, complete, portable where they say so."""

import itertools
import json
import re
import warnings
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from support.shipped import suite as load

from rnncli.cases.library import find_suite, suite_names
from rnncli.cases.schemas import suite_schema
from rnncli.cases.suite.suite import suite_findings
from rnncli.errors import RnncliWarning, UndefinedDefault
from rnncli.judging.tolerances.derivation import derive
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS, evaluate, operator_named
from rnncli.operators.attributes import complete, resolve_activations
from rnncli.recurrence.readings import READINGS

ROOT = Path(__file__).parents[2]
SUITES = suite_names()
PORTABLE = ["core", "smoke", "diagnostic", "pairwise", "three-way", "exact", "openvino", "webnn"]
FAMILIES = ["RNN", "GRU", "LSTM"]
SCHEMA = jsonschema.Draft202012Validator(suite_schema())

CROWDED = ("Forward", "Both", "Reverse")

# Alpha left without a function: other readings than the default have that.
pytestmark = pytest.mark.filterwarnings("ignore::rnncli.errors.RnncliWarning")


@cache
def written(name):
    """A suite as another YAML reader reads it; these have nothing that is read in two ways."""
    reader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(find_suite(name).read_text(encoding="utf-8"), reader)  # noqa: S506 -- safe


@cache
def case_of(entry):
    """A case with its inputs, made once for all that is asked of it."""
    return entry.case()


@cache
def usual(entry):
    """The outputs of a case as it is."""
    return run(entry)


def run(entry, **changes):
    """The outputs of a case, or of one that differs a little."""
    case = case_of(entry)
    arguments = {
        "attributes": case.attributes,
        "outputs": case.outputs,
        "readings": case.readings,
        "unit": case.unit,
        **changes,
    }
    return evaluate(case.operator, case.inputs, **arguments)


def equal(one, other):
    """Whether outputs are equal, NaN to NaN."""
    wide = {name: values.astype(np.float64) for name, values in other.items()}
    return all(np.array_equal(one[n].astype(np.float64), wide[n], equal_nan=True) for n in wide)


def test_these_suites_ship():
    """One for each use."""
    assert sorted(SUITES) == sorted(
        [
            *("core", "tiles", "large", "smoke", "diagnostic", "pairwise", "three-way"),
            *("linear", "linear_contrib", "linear_tiles", "tflite", "tflite_float"),
            "edge",
            "reject",
            "exact",
            "openvino",
            "webnn",
            "quantised",
            "onnx-node",
            *("webnn_tiles", "openvino_tiles", "quantised_tiles"),
            *("units", "units_tiles"),
        ]
    )


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_is_sound(name):
    """No finding in the suite, nor in any of its cases; an editor underlines nothing either."""
    path = find_suite(name)

    assert suite_findings(path.read_bytes(), str(path), path.parent) == []
    SCHEMA.validate(written(name))


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_says_what_it_is_for(name):
    """It is called what its file is called, and begins with a comment."""
    suite = load(name)

    assert suite.name == name
    assert len(suite.summary) > 40
    assert find_suite(name).read_text(encoding="utf-8").startswith("# ")
    assert max(map(len, find_suite(name).read_text(encoding="utf-8").splitlines())) <= 105


@pytest.mark.parametrize("name", SUITES)
def test_every_case_says_what_it_finds(name):
    """By a flag at least, each with a note of a bug."""
    suite = load(name)

    assert all(entry.flags for entry in suite.entries)
    assert all(len(note) > 15 for note in suite.notes.values())


@pytest.mark.parametrize("name", SUITES)
def test_ids_can_be_names_of_files(name):
    """Unique, short, without surprises."""
    ids = [entry.id for entry in load(name).entries]

    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z0-9_.-]{1,120}", case_id) for case_id in ids)


@pytest.mark.parametrize("name", [name for name in SUITES if name != "reject"])
def test_every_valid_case_runs(name):
    """With finite results that are not all zero, but at the edges; only OpenVINO's spare alphas."""
    for entry in load(name).entries:
        if entry.breakage is not None:
            assert "Invalid" in entry.flags
            continue
        with warnings.catch_warnings():
            spare = name.startswith("openvino") and "AlphaBeta" in entry.flags
            warnings.simplefilter("ignore" if spare else "error", RnncliWarning)
            outputs = usual(entry)
        for values in outputs.values():
            wide = values.astype(np.float64)
            at_an_edge = name in {"edge", "tiles", "units_tiles", "large"} or bool(
                {"NaN", "Empty"} & {*entry.flags}
            )
            assert at_an_edge or not wide.size or (np.isfinite(wide).all() and np.any(wide != 0))


LINEAR = ("linear", "linear_contrib")
# What a reading may change: cases that are about it, and opsets 1 and 3 as a whole.
BY_READING = {
    "alpha-order": {
        **dict.fromkeys(("smoke", "diagnostic"), "_alpha_order"),
        **dict.fromkeys(("core", "three-way"), "_alpha_order|_beta_order"),
        "pairwise": "_queue",
    },
    "clip-scope": {
        **dict.fromkeys(("core", "smoke", "diagnostic", "openvino"), "_clip_scope"),
        **dict.fromkeys(("pairwise", "three-way"), "lstm_shapes_.*_clip|_scope"),
    },
    "zero-length": {
        "core": "_zero_length|_narrow_defaults",
        "smoke": "_defaults",
        "diagnostic": "_zero_length|_narrow_defaults",
        "openvino": "_zero_length",
        "three-way": "_empty",
    },
    "threshold-tie": {},
    "recurrence": dict.fromkeys(("core", "smoke", "pairwise"), "_[13]_"),
    "peephole-o": {"webnn": "_peepholes|_both_states"},
    "quant-scope": {"quantised": "_plain_int8"},
    "quant-ended": {"quantised": "_ragged_last"},
    "state-round": dict.fromkeys(LINEAR, "_types_[a-z0-9]+_(b?float16)$"),
    "conv-round": dict.fromkeys(LINEAR, "_conv_types_.*_silu"),
    "requantise": {"units": "(rnn|gru)_14_gates$"},
    "round": {"units": "_ties_"},
    "preset": {"tflite": "_saturated_terms_of_both"},
    "rounding": {"tflite": "_plain_time_first"},
    "gate-sum": {"tflite": "_saturated_terms_of_(both|hidden)"},
    "activations": {"tflite": "_plain"},
    "scale-product": {"tflite": "_scale_product"},
    "cell-products": {"tflite": "_cell_products"},
    "cell-sum": {"tflite": "_odd_cell_scale_p18"},
    "clip-test": {"tflite": "_clip_below"},
    "hidden-scale": {"tflite": "_hidden_scale"},
    "state": {"tflite": "_given$"},
    "state-type": {"units": "_types_[su]16"},
}


@pytest.mark.parametrize("name", PORTABLE)
def test_portable_suites_depend_on_readings_only_where_that_is_the_point(name):
    """Every other vector has one right answer, whoever reads the specification."""
    for entry in load(name).entries:
        for reading, choice in other_choices(entry, name):
            assert equal(usual(entry), run(entry, readings={reading: choice})), (entry.id, reading)


def other_choices(entry, suite):
    """Every reading that a case is not about, with each choice that is not the default."""
    for reading, default in entry.operator.readings.items():
        if not re.search(BY_READING[reading].get(suite, "$^"), entry.id):
            others = {default, *READINGS[reading].unstored}
            yield from ((reading, c) for c in READINGS[reading].choices if c not in others)


@pytest.mark.parametrize("reading", [name for name in READINGS if name != "threshold-tie"])
def test_every_reading_that_matters_is_shown_in_core(reading):
    """Its cases have another answer for another choice; other dialects have suites of their own."""
    choice = READINGS[reading].choices
    suite = "core" if "core" in BY_READING[reading] else next(iter(BY_READING[reading]))
    about = [e for e in load(suite).entries if re.search(BY_READING[reading][suite], e.id)]

    assert about
    for entry in about:
        first, *others = (run(entry, readings={reading: one}) for one in choice)
        assert not any(equal(first, other) for other in others)


def without_clip(entry):
    """The attributes less the clip."""
    return {name: v for name, v in case_of(entry).attributes.items() if name != "clip"}


@pytest.mark.parametrize("name", [name for name in PORTABLE if name != "exact"])
def test_an_active_clip_is_one_and_an_inactive_one_is_not(name):
    """Taken away, the result is another one, or the same to the last bit."""
    for entry in load(name).entries:
        clip = case_of(entry).attributes.get("clip")
        if clip is not None:
            assert equal(usual(entry), run(entry, attributes=without_clip(entry))) == (clip == 64)


# The versions of gated operators; `linear` has the others.
ONNX = {n for n, row in OPERATORS.items() if row.dialect == "ONNX" and row.cell.projects}


def test_smoke_has_three_cases_for_each_version():
    """Of every ONNX operator, in float32; what goes with nothing else is there once."""
    crowded = [entry for entry in load("smoke").entries if entry.flags[0] in CROWDED]
    counts = Counter(e.operator.name for e in crowded if e.dtype == "float32")

    assert counts == dict.fromkeys(ONNX, 3)


def test_core_has_everything_for_every_family():
    """Versions, dtypes, layouts, directions, placements of weights, subsets of outputs."""
    entries = load("core").entries
    versions = {entry.operator.name for entry in entries}

    assert versions == ONNX
    for family in FAMILIES:
        of_family = [entry for entry in entries if entry.operator.type == family]
        cases = [case_of(entry) for entry in of_family]
        assert 50 <= len(of_family) <= 70
        assert {e.dtype for e in of_family} == {"float16", "float32", "float64", "bfloat16"}
        assert {e.weights for e in of_family} == {"inputs", "initializers"}
        assert {case.attributes.get("layout", 0) for case in cases} == {0, 1}
        directions = {case.attributes.get("direction", "forward") for case in cases}
        assert directions - {"foward"} == {"forward", "reverse", "bidirectional"}
        assert {"clip", "activations", "activation_alpha"} <= {
            n for c in cases for n in c.attributes
        }
        assert {n for c in cases for n in c.inputs} == {
            i.name for i in of_family[0].operator.inputs
        }


@pytest.mark.parametrize("name", ["core", "smoke", "diagnostic", "pairwise", "three-way"])
def test_inputs_are_worth_computing(name):
    """H, I odd and different, distinct values, lengths from 1, to T unless the batch is padded."""
    for entry in load(name).entries:
        # Around edges they are even, equal and 1, too; some values are one number.
        if {"Sizes", "Special"} & {*entry.flags}:
            continue
        case = case_of(entry)
        sizes, inputs = case.sizes, case.inputs
        assert sizes["input_size"] % 2 == sizes["hidden_size"] % 2 == 1
        assert (sizes["input_size"] == sizes["hidden_size"]) == ("Square" in entry.flags)
        assert sizes["batch_size"] >= 3 or "One" in entry.flags
        for tensor in ("W", "R", "B"):
            values = inputs.get(tensor, np.arange(9.0)).astype(np.float64)
            assert np.unique(values).size > 0.7 * values.size  # 16-bit types have few numbers
        lengths = inputs.get("sequence_lens")
        if lengths is not None and not {"ZeroLength", "One", "EqualLengths"} & {*entry.flags}:
            longest = sizes["seq_length"] - ("PaddedBatch" in entry.flags)
            assert {1, longest} <= {*lengths.tolist()}
            assert lengths[0] < sizes["seq_length"]
            assert len({*lengths.tolist()}) == len(lengths)


def test_every_reject_case_is_refused():
    """For a reason, and the same case is right before it is broken."""
    broken = [each for each in load("linear_contrib").entries if each.breakage is not None]
    assert len(broken) > 30
    for entry in (*load("reject").entries, *broken):
        assert entry.breakage is not None
        assert entry.refusal() is not None, entry.id
        assert usual(entry)


@pytest.mark.parametrize("reverse", [False, True])
def test_exact_cases_round_nothing(reverse):
    """Computed in their own dtype, units and inputs in either order: the very same values."""
    for entry in load("exact").entries:
        case, exact = case_of(entry), usual(entry)
        inputs = {
            name: values if values.dtype.kind == "i" else values.astype(np.float64)
            for name, values in case.inputs.items()
        }
        wide = evaluate(case.operator, inputs, attributes=case.attributes, outputs=case.outputs)
        assert equal(exact, wide), entry.id
        shuffled = {**case.inputs}
        if reverse:  # the order in which products are summed
            shuffled |= {n: np.ascontiguousarray(case.inputs[n][..., ::-1]) for n in ("X", "W")}
        native = {"attributes": case.attributes, "outputs": case.outputs, "compute": "native"}
        assert equal(exact, evaluate(case.operator, shuffled, **native)), entry.id


# What the covering arrays have to cover, found without any of the package's own expansion.


def level(axis, item):
    """The label and the value of an item of an axis."""
    if isinstance(item, dict):
        ((label, value),) = item.items()
        return label, value
    if item is None:
        return "", None
    return (item.lower() if isinstance(item, str) else f"{axis}_{item}"), item


def axes_of(case):
    """Every axis of an array, with its labels and values."""
    return {axis: [level(axis, item) for item in items] for axis, items in case["matrix"].items()}


def feasible(case, axes):
    """A boolean for each combination of labels: whether some version can express it."""
    names = list(axes)
    shape = [len(levels) for levels in axes.values()]
    possible = np.ones(shape, bool)

    def forbid(test, *looked_at):
        """Exclude the combinations of these axes for which the test is true."""
        present = [name for name in looked_at if name in axes]
        fixed = {name: case.get(name) for name in looked_at if name not in axes}
        for choice in itertools.product(*(range(len(axes[name])) for name in present)):
            values = {name: axes[name][k] for name, k in zip(present, choice, strict=True)}
            plain = {name: value for name, (_, value) in values.items()} | fixed
            if test(plain):
                index = [slice(None)] * len(names)
                for name, k in zip(present, choice, strict=True):
                    index[names.index(name)] = k
                possible[tuple(index)] = False

    def row(plain):
        return OPERATORS.get(f"{plain['op']}-{plain['opset']}")

    where = ("op", "opset")
    forbid(lambda plain: row(plain) is None, *where)
    forbid(lambda plain: row(plain) and plain["dtype"] not in row(plain).dtypes, *where, "dtype")
    for name in axes:
        if any(name in known.attributes for known in OPERATORS.values()):
            forbid(
                lambda p, n=name: row(p) and p[n] is not None and n not in row(p).attributes,
                *where,
                name,
            )
    for functions in {"activations", "attributes"} & {*axes}:
        forbid(wrong_count, "op", "direction", functions)
    for excluded in case.get("exclude", ()):
        forbid_labels(possible, names, axes, excluded)
    return possible


def wrong_count(plain):
    """Whether there are too few or too many activations."""
    functions = plain.get("activations") or (plain.get("attributes") or {}).get("activations")
    if functions is None:
        return False
    per_direction = {"RNN": 1, "GRU": 2, "LSTM": 3, "RNNSequence-5": 1}[plain["op"]]
    wanted = per_direction * (2 if plain["direction"] == "bidirectional" else 1)
    return len(functions) != wanted and not (
        plain["op"].startswith("RNN")
        and plain["direction"] != "bidirectional"
        and len(functions) == 2
    )


def forbid_labels(possible, names, axes, excluded):
    """Take an item of `exclude` away."""
    index = [range(count) for count in possible.shape]
    for axis, labels in excluded.items():
        wanted = labels if isinstance(labels, list) else [labels]
        wanted = [str(label or "").lower() for label in wanted]
        index[names.index(axis)] = [k for k, (label, _) in enumerate(axes[axis]) if label in wanted]
        assert index[names.index(axis)]
    possible[np.ix_(*index)] = False


def is_array(body):
    """Whether a case is a covering array; what functions are about is computed, not counted."""
    return body.get("strategy") != "product" and "Special" not in body.get("flags", ())


COVERING = ("pairwise", "three-way")
SPECIAL = "|".join(
    case for name in COVERING for case, body in written(name)["cases"].items() if not is_array(body)
)
ARRAYS = [
    (name, case, {"pairwise": 2, "3-way": 3}[body.get("strategy") or defaults["strategy"]])
    for name in COVERING
    for defaults, cases in [(written(name)["defaults"], written(name)["cases"])]
    for case, body in cases.items()
    if is_array(body)
]


@pytest.mark.parametrize(("suite", "name", "strength"), ARRAYS)
def test_arrays_cover_every_feasible_tuple_and_hold_only_feasible_rows(suite, name, strength):
    """By enumerating every combination there is."""
    case = written(suite)["cases"][name]
    axes = axes_of(case)
    possible = feasible(case, axes)
    whole = name in {"rnn", "gru", "lstm"}  # its name is the operator's, which ids do not repeat
    own = re.compile(
        rf"{name}_\d+(?!.*_(first|sizes|shapes|again|{SPECIAL}))" if whole else rf"_{name}(_|$)"
    )
    entries = [entry for entry in load(suite).entries if own.search(entry.id)]
    rows = np.array(
        [
            [
                [label for label, _ in levels].index(entry.labels[axis])
                for axis, levels in axes.items()
            ]
            for entry in entries
        ]
    )

    assert possible[tuple(rows.T)].all()
    for chosen in itertools.combinations(range(len(axes)), strength):
        others = tuple(k for k in range(len(axes)) if k not in chosen)
        covered = np.zeros([possible.shape[k] for k in chosen], bool)
        covered[tuple(rows[:, list(chosen)].T)] = True
        assert np.array_equal(covered, possible.any(axis=others))


@pytest.mark.parametrize(
    ("name", "scopes"),
    [("quantised", ["batch", "row"]), ("quantised_tiles", ["batch"])],
)
def test_no_value_of_a_quantised_suite_is_near_a_tie(name, scopes):
    """In any call, so tolerances are those of float32, and a level more is noticed.

    Where cases are large, only under the reading that has a scale for the batch.
    """
    for entry in load(name).entries:
        case = case_of(entry)
        for call, scope in itertools.product(range(entry.calls), scopes):
            inputs = {n: each[0] for n, each in case.stacked([entry.id], call).items()}
            bound = case.node.under({"quant-scope": scope}).recurrence(inputs)
            found = derive(replace(bound, wants_Y=True), PROFILES["standard"])
            assert max(values.max() for values in (found.Y, *found.last)) < 2e-5, entry.id


def test_no_committed_case_leaves_a_value_to_a_default_of_our_own():
    """Affine and ScaledTanh have their alpha and beta: no specification gives these defaults."""
    cases = [
        case
        for manifest in ROOT.glob("vectors/*/manifest.json")
        for case in json.loads(manifest.read_text("utf-8"))["cases"]
        if "activations" in case["attributes"]
    ]
    assert len(cases) > 100
    with warnings.catch_warnings():
        warnings.simplefilter("error", UndefinedDefault)
        for case in cases:
            operator, attributes = operator_named(case["operator"]), case["attributes"]
            directions = 1 + (attributes.get("direction") == "bidirectional")
            resolve_activations(operator, complete(operator, attributes), directions, {})
