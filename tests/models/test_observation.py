"""Claims about looking on: every execution is seen, and the time of each operator."""

import gc

import numpy as np
import pytest
from support.gru_places import HELD, PLACES, SIGNATURE, WEIGHTS, model_of, text_of
from support.real_models import run

from rnncli.backends.backend import Compute
from rnncli.models import observation
from rnncli.models.evaluation_settings import EvaluationSettings
from rnncli.models.evaluator import node_seconds, prepare
from rnncli.models.sessions import evaluate_model
from rnncli.mutants.mutant import RIGHT

FED = {"X": WEIGHTS["X"]}


def observed(model, inputs):
    """What an observer sees while a model runs, and what comes out."""
    seen = []
    evaluator = prepare(model, observer=seen.append)
    return seen, run(evaluator, inputs)


@pytest.mark.parametrize("place", PLACES)
def test_a_node_is_seen_wherever_it_sits(place):
    """Its operator, attributes, inputs and outputs are those of the node; the outputs stay."""
    model = model_of(text_of(place))
    seen, outputs = observed(model, WEIGHTS)
    first = seen[0]

    assert {each.key for each in seen} == {first.key}
    assert first.node.operator.name == "GRU-14"
    assert first.node.attributes == {"hidden_size": 2}
    assert "Y_h" in first.node.outputs
    assert all(np.array_equal(first.inputs[name], WEIGHTS[name]) for name in WEIGHTS)
    assert np.array_equal(outputs[0], evaluate_model(model, WEIGHTS)["out"])


@pytest.mark.parametrize("place", PLACES)
def test_what_an_observer_returns_takes_the_place_of_the_outputs(place):
    """Those of all executions, wherever the node sits."""
    model = model_of(text_of(place))

    def negated(occurrence):
        right = RIGHT.run(occurrence.node.recurrence(occurrence.inputs), Compute.FLOAT64)
        return {name: -values for name, values in occurrence.node.outputs_of(right).items()}

    (changed,) = run(prepare(model, observer=negated), WEIGHTS)
    assert not np.array_equal(changed, evaluate_model(model, WEIGHTS)["out"])


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("graph", ("GRU_0",)),
        ("If in If", ("If_1.then_branch", "If_0.then_branch", "GRU_0")),
        ("Scan", ("Scan_1.body", "GRU_1")),
        ("If in a function in a function", ("pkg::Inner", "If_1.then_branch", "GRU_0")),
    ],
)
def test_its_path_says_where(place, path):
    """Bodies from the outermost on; in a function, from there."""
    assert observed(model_of(text_of(place)), WEIGHTS)[0][0].path == path


def test_each_execution_in_a_loop_is_one():
    """A Scan over four slices runs its body four times."""
    assert len(observed(model_of(text_of("Scan")), WEIGHTS)[0]) == 4


def test_two_nodes_of_one_name_are_two():
    """Names need not be unique; the key is."""
    text = f"""g {SIGNATURE} {{
        [same] "", h = GRU <hidden_size: int = 2> (X, W, R)
        [same] "", out = GRU <hidden_size: int = 2> (X, W, R, "", "", h)
    }}"""
    first, second = observed(model_of(text), WEIGHTS)[0]

    assert first.path == second.path == ("same",)
    assert first.key != second.key
    assert (*first.inputs,) == ("X", "W", "R")
    assert (*second.inputs,) == ("X", "W", "R", "initial_h")


def test_its_size_is_that_of_inputs_and_outputs():
    """Bytes, weights included; an output that is not named has none."""
    (seen,), _ = observed(model_of(text_of("graph")), WEIGHTS)
    sizes = [values.nbytes for values in WEIGHTS.values()]

    assert seen.nbytes == sum(sizes) + 4 * 2 * 2 * 4 + 2 * 2 * 4


@pytest.mark.parametrize("place", PLACES)
def test_weights_that_the_model_holds_are_constants(place):
    """Initializers stay constants in subgraphs and through calls of functions; X never is one."""
    seen, _ = observed(model_of(text_of(place, HELD)), FED)

    assert seen[0].constants & set(WEIGHTS) == {"W", "R"}


@pytest.mark.parametrize("place", PLACES)
def test_weights_that_are_fed_are_none(place):
    """What comes in as an input of the graph is no constant anywhere."""
    (first, *_), _ = observed(model_of(text_of(place)), WEIGHTS)

    assert first.constants & set(WEIGHTS) == set()


# W, made of initializers or not, by one line.
MADE = {
    "w = Identity (W)": True,
    "w = Mul (two, W)": True,
    "zero = Constant <value_ints = [0]> () w0 = Squeeze (W, zero) w = Unsqueeze (w0, zero)": True,
    "shape = Shape (W) w = ConstantOfShape (shape)": True,
    "w = pkg.Twice (W)": True,
    "w = If (yes) <then_branch = t () => (a) { a = Mul (two, W) },"
    " else_branch = e () => (b) { b = Identity (W) }>": True,
    "s = ReduceSum <keepdims = 0> (X) w = Mul (s, W)": False,
    "s = ReduceSum <keepdims = 0> (X) w = pkg.Scaled (W, s)": False,
}


@pytest.mark.parametrize("line", MADE)
def test_what_is_made_of_constants_alone_is_one(line):
    """Exporters leave it to the runtime to put weights together."""
    text = f"""g {HELD} {{
        two = Constant <value = float {{2.0}}> ()
        yes = Constant <value = bool {{1}}> ()
        {line}
        unused, out = GRU <hidden_size: int = 2> (X, w, R)
    }}
    <domain: "pkg", opset_import: ["" : 17]> Twice (a) => (b) {{ b = Add (a, a) }}
    <domain: "pkg", opset_import: ["" : 17]> Scaled (a, s) => (b) {{ b = Mul (a, s) }}
    """
    (seen,), _ = observed(model_of(text), FED)

    assert ("W" in seen.constants) == MADE[line]


def test_an_initializer_that_is_replaced_is_no_constant():
    """Before IR 4 initializers are inputs with a default; what is fed instead is an input."""
    model = model_of(text_of("graph", HELD))
    other = WEIGHTS["W"] + 1
    (seen,), _ = observed(model, FED | {"W": other})

    assert seen.constants == {"R"}
    assert np.array_equal(seen.inputs["W"], other)


def test_constants_that_die_are_forgotten():
    """A loop that reads constants in each iteration does not fill memory: each is made once."""
    evaluator = prepare(model_of(text_of("Scan", HELD)), observer=lambda _: None)
    watch = evaluator._library.watch
    counted = []
    for _ in range(3):
        run(evaluator, FED)
        gc.collect()
        counted.append(len(watch._constants))

    assert len(set(counted)) == 1
    assert counted[0] <= 10


TEXT = """\
g (float[2] X, bool yes) => (float[2] Y) {
  A = Add(X, X)
  B = Add(A, X)
  C = own.twice(B)
  Y = If (yes) <
    then_branch = a () => (float[2] D) { D = Neg(C) },
    else_branch = b () => (float[2] E) { E = Abs(C) }
  >
}
<domain: "own", opset_import: ["" : 17]>
twice (x) => (y) { y = Mul(x, x) }
"""


@pytest.fixture
def ticking(monkeypatch):
    """A clock that goes on by a second whenever it is looked at."""
    times = iter(range(1000))
    monkeypatch.setattr(observation.time, "perf_counter", lambda: next(times))


def test_each_operator_is_charged_with_its_own_nodes(parse, ticking):
    """Two additions, a node in a function, one in a branch; a mean over the runs."""
    model = parse(TEXT, more=', "own" : 1')
    inputs = {"X": np.ones(2, np.float32), "yes": np.array(True)}

    found = node_seconds(model, inputs, 3, EvaluationSettings("numpy", "native"))

    assert found.pop("Add") == 2
    assert found == dict.fromkeys(["Mul", "own::twice", "Neg", "If"], 1)
