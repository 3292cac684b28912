"""Which recurrent node of a model has which known bug, by outputs of the whole model alone."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper, numpy_helper

from rnncli.judging.tolerances.tolerance import DATA_SET
from rnncli.models.evaluator import prepare
from rnncli.models.loading import model_from
from rnncli.models.stacked_model import stacked_model
from rnncli.models.weights import from_torch
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.mutant import RIGHT, directions, joined
from rnncli.running.execution import execute
from rnncli.running.request import MEASURED, Request
from rnncli.verifying import model_causes
from rnncli.verifying.expected_outputs import ExpectedOutputs

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
H, INPUTS = 5, 4


def layers(cell, directions=1, count=2):
    """A model of layers with random weights."""
    draw = np.random.default_rng(len(cell)).normal
    rows, state = GATES[cell] * H, {}
    for k in range(count):
        below = INPUTS if k == 0 else directions * H
        shapes = {"weight_ih": (rows, below), "weight_hh": (rows, H), "bias_ih": rows}
        for end in [f"_l{k}", f"_l{k}_reverse"][:directions]:
            for name, shape in {**shapes, "bias_hh": rows}.items():
                state[f"{name}{end}"] = (draw(size=shape) / 2).astype(np.float32)
    return model_from(stacked_model(from_torch(state)))


def report_of(model, expected, tmp_path):
    """The judge's report on outputs that a program gave."""
    X = np.random.default_rng(1).normal(size=(7, 3, INPUTS)).astype(np.float32)
    np.savez(tmp_path / "in.npz", X=X)
    np.savez(tmp_path / "out.npz", **expected(X))
    files = {"inputs_from": str(tmp_path / "in.npz"), "expected_from": str(tmp_path / "out.npz")}
    request = Request(tolerance=DATA_SET, **files)
    (run,) = execute(model, request)
    return ExpectedOutputs().report(model, request, run)


def with_bug(model, bug, *nodes):
    """What a program gives that has a bug in some nodes: Y alone, as Keras does."""
    return running(model, MUTANTS.get(bug, RIGHT).run, *nodes)


def running(model, run, *nodes):
    """What a program gives that runs some nodes in its own way: Y alone."""

    def observe(occurrence):
        if occurrence.path[-1] in nodes:
            return occurrence.node.outputs_of(run(occurrence.node.recurrence(occurrence.inputs)))
        return None

    evaluator = prepare(model, compute="native", observer=observe)
    return lambda X: {"Y": evaluator.outputs({"X": X})["Y"]}


@pytest.mark.parametrize(
    ("cell", "directions", "bug", "nodes"),
    [
        ("GRU", 1, "gates-z-r-swapped", ["GRU_l0"]),
        ("GRU", 1, "gates-z-r-swapped", ["GRU_l1"]),
        ("GRU", 1, "gates-z-r-swapped", ["GRU_l0", "GRU_l1"]),
        ("GRU", 1, "linear-before-reset-ignored", ["GRU_l0", "GRU_l1"]),
        ("GRU", 1, "recurrent-bias-dropped", ["GRU_l1"]),
        ("LSTM", 1, "gate-order-ifco", ["LSTM_l0", "LSTM_l1"]),
        ("LSTM", 2, "reverse-y-in-order-of-computation", ["LSTM_l0"]),
        ("RNN", 2, "recurrent-bias-dropped", ["RNN_l1"]),
        ("RNN", 1, "states-never-advance", ["RNN_l0"]),
    ],
)
def test_the_node_and_its_bug_are_named_from_one_output(cell, directions, bug, nodes, tmp_path):
    """Whichever node has it, or all."""
    model = layers(cell, directions)
    report = report_of(model, with_bug(model, bug, *nodes), tmp_path)

    assert report.tolerance == MEASURED
    assert [path.rpartition(" / ")[2] for path in report.cause.nodes] == nodes
    assert bug in report.cause.fits
    assert report.cause.explained == report.cause.wrong > 0


@pytest.mark.parametrize(
    ("bug", "way", "nodes"),
    [
        ("gate-order-ifco", "forward", ["LSTM_l1"]),
        ("gate-order-ifco", "reverse", ["LSTM_l0", "LSTM_l1"]),
        ("recurrent-weights-transposed", "reverse", ["LSTM_l0"]),
        ("biases-dropped", "forward", ["LSTM_l0", "LSTM_l1"]),
    ],
)
def test_weights_of_one_direction_alone_may_be_wrong(bug, way, nodes, tmp_path):
    """The direction is named."""
    which = ["forward", "reverse"].index(way)

    def run(recurrence):
        own = enumerate(directions(recurrence))
        return joined([MUTANTS[bug].run(r) if d == which else RIGHT.run(r) for d, r in own])

    model = layers("LSTM", 2)
    report = report_of(model, running(model, run, *nodes), tmp_path)

    assert [path.rpartition(" / ")[2] for path in report.cause.nodes] == nodes
    assert f"{bug}-in-{way}" in report.cause.fits
    assert report.cause.explained == report.cause.wrong > 0


ALL = slice(None)


@pytest.mark.parametrize(
    ("node", "scaled", "factor", "name"),
    [
        ("LSTM_l0", ("R", ALL), 1.07, "r-scaled-by-1.07"),
        ("LSTM_l1", ("R", ALL), 1.07, "r-scaled-by-1.07"),
        ("LSTM_l0", ("W", 2), 0.5, "w-of-f-scaled-by-0.5"),
        ("GRU_l1", ("Rb", ALL), 3, "rb-scaled-by-3"),
        ("RNN_l0", ("R", ALL), 127 / 128, "r-scaled-by-0.992"),
    ],
)
def test_weights_that_are_scaled_are_named_with_the_factor(node, scaled, factor, name, tmp_path):
    """A tensor, or its part of one gate; not errors as large as those of weights in int8."""
    tensor, gates = scaled

    def run(recurrence):
        values = getattr(recurrence, tensor).copy()
        values[:, gates] *= np.float32(factor)
        return RIGHT.run(replace(recurrence, **{tensor: values}))

    model = layers(node.partition("_")[0])
    report = report_of(model, running(model, run, node), tmp_path)

    assert [path.rpartition(" / ")[2] for path in report.cause.nodes] == [node]
    assert name in report.cause.fits
    assert report.cause.explained == report.cause.wrong > 0


@pytest.mark.parametrize(("cell", "directions", "count"), [("LSTM", 1, 2), ("GRU", 2, 1)])
def test_time_may_be_taken_for_the_batch(cell, directions, count, tmp_path):
    """As where batch_first is confused: sizes that differ do not show it in Y."""

    def run(recurrence):
        found = RIGHT.run(replace(recurrence, X=recurrence.X.swapaxes(0, 1)))
        return replace(found, Y=found.Y.swapaxes(0, 2))

    model = layers(cell, directions, count)
    expected = running(model, run, *[f"{cell}_l{k}" for k in range(count)])
    report = report_of(model, expected, tmp_path)

    assert len(report.cause.nodes) == count
    assert [*report.cause.fits] == ["time-and-batch-exchanged"]
    assert report.cause.explained == report.cause.wrong > 0


OPTIONAL = {
    "B": ("biases-dropped", {"Wb": None, "Rb": None}),
    "initial_c": ("initial-c-ignored", {}),
    "initial_h": ("initial-h-ignored", {}),
    "sequence_lens": ("lengths-ignored", {"lengths": None}),
    "P": ("peepholes-dropped", {"P": None}),
}


@pytest.mark.parametrize(
    "forgotten",
    [
        *(["B"], ["initial_h"], ["sequence_lens"], ["P"]),
        *(["B", "initial_h"], ["initial_h", "sequence_lens"], [*OPTIONAL]),
    ],
    ids=" ".join,
)
def test_optional_inputs_that_are_not_passed_are_named(forgotten, tmp_path):
    """One, several or all of them."""
    draw = np.random.default_rng(5).normal
    shapes = {
        "W": (1, 4 * H, INPUTS),
        "R": (1, 4 * H, H),
        "B": (1, 8 * H),
        "P": (1, 3 * H),
        "initial_h": (1, 3, H),
        "initial_c": (1, 3, H),
    }
    tensors = {name: (draw(size=shape) / 2).astype("f") for name, shape in shapes.items()}
    tensors |= {"sequence_lens": np.array([7, 3, 5], np.int32)}
    names = ["X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P"]
    node = helper.make_node("LSTM", names, ["Y"], "lstm", hidden_size=H)
    X, Y = (helper.make_tensor_value_info(name, 1, None) for name in "XY")
    stored = [numpy_helper.from_array(values, name) for name, values in tensors.items()]
    graph = helper.make_graph([node], "g", [X], [Y], stored)
    model = model_from(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

    def run(recurrence):
        states = zip(("initial_h", "initial_c"), recurrence.initial, strict=True)
        initial = tuple(None if name in forgotten else state for name, state in states)
        lacking = {k: v for name in forgotten for k, v in OPTIONAL[name][1].items()}
        return RIGHT.run(replace(recurrence, initial=initial, **lacking))

    report = report_of(model, running(model, run, "lstm"), tmp_path)

    assert any(
        {OPTIONAL[name][0] for name in forgotten} == {*fit.split(" + ")}
        for fit in report.cause.fits
    )
    assert report.cause.explained == report.cause.wrong > 0


def test_right_outputs_of_other_roundings_agree(tmp_path):
    """The tolerance is measured, and nothing is said of causes."""
    model = layers("LSTM")
    report = report_of(model, with_bug(model, ""), tmp_path)

    assert [output.agrees for output in report.comparison] == [True]
    assert report.cause is None


def test_what_no_bug_gives_has_no_cause(tmp_path):
    """Noise is none of them."""
    noise = np.random.default_rng(2).normal(size=(7, 3, H)).astype(np.float32)
    report = report_of(layers("GRU"), lambda _: {"Y": noise}, tmp_path)

    assert not report.comparison[0].agrees
    assert (report.cause.nodes, report.cause.stopped) == ((), False)
    assert report.cause.tried > 200


def test_the_search_ends_when_its_time_is_over(monkeypatch, tmp_path):
    """And tells how far it came."""
    monkeypatch.setattr(model_causes, "SECONDS", -1.0)
    model = layers("GRU")
    report = report_of(model, with_bug(model, "states-never-advance", "GRU_l1"), tmp_path)

    assert (report.cause.tried, report.cause.stopped) == (1, True)
