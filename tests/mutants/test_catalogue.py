"""Claims about the table of mutants, each tried on recurrences of its cells."""

import warnings
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from support.quantised_lstm import LSTM as QUANTISED
from support.quantised_lstm import node
from support.recurrences import recurrence_of
from support.tables import every

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.errors import InvalidRequest, UndefinedDefault
from rnncli.mutants.catalogue import MUTANTS, mutant_named, mutants_of
from rnncli.mutants.mutant import RIGHT
from rnncli.operators import operator_named
from rnncli.operators.node import Node
from rnncli.recurrence.cells import CELLS as CELL_ROWS
from rnncli.recurrence.unit import QuantisedUnit

CELLS = ("RNN", "GRU", "LSTM")
# Activations of an RNN, a GRU and an LSTM.
FUNCTIONS = {
    "distinct_functions": ("Sigmoid", "Softsign Sigmoid", "Sigmoid Tanh Softsign"),
    # Functions whose defaults matter, and those whose defaults no operator defines.
    "default_values": ("HardSigmoid", "HardSigmoid LeakyRelu", "HardSigmoid LeakyRelu Softplus"),
    "other_defaults": ("LeakyRelu", "ScaledTanh HardSigmoid", "Sigmoid LeakyRelu ScaledTanh"),
    "undefined": ("ScaledTanh", "Sigmoid Affine", "ThresholdedRelu ScaledTanh Affine"),
    "softplus": ("Softplus", "Sigmoid Softplus", "Sigmoid Softplus Softplus"),
    "huge": ("Sigmoid", "Sigmoid Sigmoid", "Sigmoid Tanh Tanh"),
}
VALUED = {
    "RNN": ["ScaledTanh"],
    "GRU": ["HardSigmoid", "ScaledTanh"],
    "LSTM": ["Sigmoid", "HardSigmoid", "ScaledTanh"],
}
SHORT = {"T": 5, "N": 5, "I": 19, "H": 17}
# More than one activation in a direction, so that order and values matter.
BOTH = {**SHORT, "D": 2, "lengths": [4, 3, 0, 5, 1]}


def _given(cell, **settings):
    return {"peepholes": True} | settings if cell == "LSTM" else settings


def _valued(cell):
    """Two directions with values of alpha and beta that no function has by default."""
    names = VALUED[cell]
    taking = 2 * sum(name != "Sigmoid" for name in names)
    alpha = [round(0.3 + 0.1 * k, 1) for k in range(taking)]
    beta = [round(0.9 - 0.1 * k, 1) for k in range(taking)]
    return {"activations": names, "activation_alpha": alpha, "activation_beta": beta}


def _with_functions(name, cell):
    names = FUNCTIONS[name][CELLS.index(cell)].split()
    return recurrence_of(cell, **BOTH, **_given(cell, activations=names))


def _all_inputs(cell):
    """Every input, ragged, both directions."""
    flags = {"GRU": {"linear_before_reset": 1}, "LSTM": {"input_forget": 0}, "RNN": {}}[cell]
    return recurrence_of(cell, **BOTH, **_given(cell, clip=0.7, **flags))


def _without_clip(cell):
    """The other choice of every attribute; large enough to saturate."""
    flags = {"GRU": {"linear_before_reset": 0}, "LSTM": {"input_forget": 1}, "RNN": {}}[cell]
    return recurrence_of(cell, **BOTH, **_given(cell, scale=1.0, **flags))


def _other_functions(cell):
    return recurrence_of(cell, **BOTH, **_given(cell, **_valued(cell)))


def _different(cell):
    """The default activations forward, others with values of their own in reverse."""
    forward, reverse = recurrence_of(cell, **BOTH), _other_functions(cell)
    return replace(reverse, activations=(forward.activations[0], reverse.activations[1]))


def _long(cell):
    """More steps than any chunk has."""
    sizes = {"T": 70, "N": 2, "I": 2, "H": 3, "D": 2, "lengths": [66, 70]}
    return recurrence_of(cell, **sizes, **_given(cell))


def _square(cell):
    """As many inputs as units, so that a transposed W has its shape."""
    return recurrence_of(cell, **BOTH | {"I": 17}, **_given(cell))


def _with(cell, change):
    found = recurrence_of(cell, **BOTH, **_given(cell))
    X = found.X.copy()
    change(X)
    return replace(found, X=X)


def _with_nan(cell):
    def change(X):
        X[0, 0, 0] = np.nan

    return replace(_with(cell, change), clip=3.0)


def _tiny(cell):
    """Everything near the smallest number, zero biases: subnormal inputs and outputs."""
    found = recurrence_of(cell, **BOTH, **_given(cell))
    tiny = np.float32(1e-39)
    shrink = lambda values: None if values is None else (values * tiny).astype(np.float32)  # noqa: E731
    return replace(
        found,
        X=shrink(found.X),
        Wb=shrink(found.Wb),
        Rb=shrink(found.Rb),
        initial=tuple(map(shrink, found.initial)),
    )


def _huge(cell):
    """Arguments of Sigmoid far beyond -18, where its values are what is returned."""
    found = _with_functions("huge", cell)
    return replace(found, X=30 * found.X)


def _after(cell, **absent):
    """Reset after the linear transformation, and something that is optional absent."""
    flags = {"linear_before_reset": 1} if cell == "GRU" else {}
    return replace(recurrence_of(cell, **BOTH, **_given(cell, **flags)), **absent)


def _quantised(cell):
    """An LSTM with 8-bit weights of both directions, each column with a scale."""
    if cell != "LSTM":
        return recurrence_of(cell, **BOTH)
    return _node(("bidirectional", True, True, False))


def _quantised_ties(cell):
    """Inputs from 0 to 255/128 halfway between levels."""
    if cell != "LSTM":
        return recurrence_of(cell, **BOTH)
    found = _node(("bidirectional", False, False, True))
    X = (np.arange(1, found.X.size + 1) % 254 + 0.5) / 128
    X[0] = 255 / 128
    return replace(found, X=X.reshape(found.X.shape).astype(np.float32))


POINTED = {"scale": [0.004, 0.01, 0.002], "zero_point": 3, "axis": -2}
DRESSES = {
    "X": {"type": "uint8", "scale": 0.01, "zero_point": 50},
    "W": {"type": "uint8", **POINTED},
    "R": {"type": "int8", **POINTED},
    "B": {"type": "uint8", "scale": 0.02, "zero_point": 55},
    "initial_h": {"type": "int8", "scale": 0.01, "zero_point": 5},
    "Y": {"type": "int8", "scale": 0.004, "zero_point": -100},
    "Y_h": {"type": "uint8", "scale": 0.002, "zero_point": 7},
}


def _unit(cell, *, I=4, starts=True, **other):  # noqa: E741 -- the specification's letter
    """A unit whose tensors are of 8 bits, each with another scale and zero point."""
    draw, (T, N, H, G) = np.random.default_rng(0), (5, 3, 5, len(CELL_ROWS[cell].gates))
    shapes = {"X": (T, N, I), "W": (2, G * H, I), "R": (2, G * H, H), "B": (2, 2 * G * H)}
    shapes |= {"initial_h": (2, N, H)} if starts else {}
    inputs = {
        name: draw.integers(0, 100, shape).astype(DRESSES[name]["type"])
        for name, shape in shapes.items()
    }
    made = {"Y", "Y_h", *shapes}
    unit = QuantisedUnit.of({n: each for n, each in (DRESSES | other).items() if n in made})
    attributes = {"hidden_size": H, "direction": "bidirectional"}
    return Node(operator_named(f"{cell}-14"), attributes, unit=unit).recurrence(inputs)


def _unit_with_products(cell):
    """The same, W with one scale, so that it and X have a product of scales."""
    return _unit(cell, W={"type": "uint8", "scale": 0.004, "zero_point": 3})


def _unit_of_ties(cell):
    """A unit that sums levels halfway between those of its outputs."""
    unit = QuantisedUnit.of(
        {name: {"type": "int8", "scale": 1.0} for name in "XWR"}
        | {name: {"type": "int8", "scale": 2.0} for name in ("Y", "Y_h")}
    )
    functions = {"RNN": ["Relu"], "GRU": ["HardSigmoid", "Relu"]}
    functions["LSTM"] = ["HardSigmoid", "Relu", "Relu"]
    W = {"RNN": [1], "GRU": [0, 0, 2], "LSTM": [3, 3, 0, 1]}[cell]  # of X = 1, with which H is 1
    inputs = {"X": [[[1]]], "W": [[[k] for k in W]], "R": [[[0]] * len(W)]}
    levels = {name: np.array(values, np.int8) for name, values in inputs.items()}
    attributes = {"hidden_size": 1, "activations": functions[cell]}
    return Node(operator_named(f"{cell}-14"), attributes, unit=unit).recurrence(levels)


def _node(form):
    attributes, inputs = node(form)
    return Node(QUANTISED, attributes).recurrence(inputs)


RICH = {
    "all_inputs": _all_inputs,
    "without_clip": _without_clip,
    "other_functions": _other_functions,
    "distinct_functions": partial(_with_functions, "distinct_functions"),
    "square": _square,
}
# Where rare numbers and functions are, which hide other bugs.
SPECIAL = {
    "different": _different,
    **{
        name: partial(_with_functions, name)
        for name in ("default_values", "other_defaults", "undefined", "softplus")
    },
    "long": _long,
    "with_nan": _with_nan,
    "tiny": _tiny,
    "huge": _huge,
    "without_biases": lambda cell: _after(cell, Wb=None, Rb=None),
    "without_states": lambda cell: _after(cell, initial=(None,) * (2 if cell == "LSTM" else 1)),
    "previous": lambda cell: recurrence_of(
        cell, **BOTH, **_given(cell), readings={"peephole-o": "previous"}
    ),
    "other_layout": lambda cell: _after(cell, gates={"GRU": "rzh", "LSTM": "ifco"}.get(cell, "")),
    "quantised": _quantised,
    "quantised_ties": _quantised_ties,
    "unit": _unit,
    "unit_with_products": _unit_with_products,
    "unit_of_large_sums": partial(_unit, I=400, starts=False),
    "unit_of_ties": _unit_of_ties,
    "float64": lambda cell: recurrence_of(cell, dtype="float64", D=2, lengths=[4, 0, 2]),
}


def _bare(cell, **sizes):
    """Nothing that is optional: no biases, states, peepholes, lengths."""
    found = recurrence_of(cell, **sizes)
    return replace(found, Wb=None, Rb=None, initial=(None,) * found.cell.states)


POOR = {
    "bare": _bare,
    "one_step": lambda cell: _bare(cell, T=1),
    "one_step_with_inputs": lambda cell: recurrence_of(cell, T=1, D=2),
    "one_sequence": lambda cell: recurrence_of(cell, N=1, D=2),
    "reverse": lambda cell: recurrence_of(cell, direction="reverse"),
    "one_input_and_unit": lambda cell: recurrence_of(cell, I=1, H=1, D=2),
    "no_steps": lambda cell: recurrence_of(cell, T=0, D=2),
    "no_sequences": lambda cell: recurrence_of(cell, N=0, D=2),
    "no_inputs": lambda cell: recurrence_of(cell, I=0, D=2),
    "all_lengths_zero": lambda cell: recurrence_of(cell, D=2, lengths=[0, 0, 0]),
    "lengths_of_one": lambda cell: (
        _bare(cell, D=2, lengths=None) if cell == "RNN" else _of_one(cell)
    ),
    "keeps_initial": lambda cell: _kept(cell, [4, 0, 2]),
    "keeps_initial_of_all": lambda cell: _kept(cell, [0, 0, 0]),
    "last_states_only": lambda cell: replace(
        recurrence_of(cell, D=2, lengths=[4, 1, 2]), wants_Y=False
    ),
    "sixteen": lambda cell: recurrence_of(cell, N=16, I=16, H=16),
    "float16": lambda cell: recurrence_of(cell, dtype="float16", D=2, lengths=[4, 0, 2]),
    "bfloat16": lambda cell: recurrence_of(cell, dtype="bfloat16", D=2, lengths=[4, 0, 2]),
}


EVERYTHING = {**RICH, **SPECIAL, **POOR}


def _of_one(cell):
    found = recurrence_of(cell, D=2, lengths=[1, 0, 1])
    return replace(found, initial=(None,) * found.cell.states)


def _kept(cell, lengths):
    return recurrence_of(cell, D=2, lengths=lengths, readings={"zero-length": "initial"})


@cache
def recurrence_named(name, cell):
    """One of the recurrences above."""
    return EVERYTHING[name](cell)


@cache
def right(name, cell):
    """The right result of one of the recurrences above, by the walk that mutants take."""
    return RIGHT.run(recurrence_named(name, cell), Compute.FLOAT64)


def same(one, other):
    """Whether two results hold the same values, NaN in the same places."""
    pairs = [(one.Y, other.Y), *zip(one.last, other.last, strict=True)]
    return all(
        (a is None and b is None)
        or np.array_equal(a.astype(float), b.astype(float), equal_nan=True)
        for a, b in pairs
    )


def assert_shaped_like(found, wanted):
    """Shapes and dtypes of two results agree."""
    described = [
        [(state.shape, state.dtype) for state in result.last]
        + ([] if result.Y is None else [(result.Y.shape, result.Y.dtype)])
        for result in (found, wanted)
    ]
    assert described[0] == described[1]


ROWS = [(cell, row) for cell in CELLS for row in mutants_of(cell)]
EVERY = pytest.mark.parametrize(
    ("cell", "row"), ROWS, ids=lambda value: getattr(value, "id", value)
)


def differing(cell, row):
    """The recurrences that show a row; its results have the right shapes, and it warns of none."""
    found = set()
    for name in EVERYTHING:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UndefinedDefault)
            result = row.run(recurrence_named(name, cell))
        assert_shaped_like(result, right(name, cell))
        if not same(result, right(name, cell)):
            found.add(name)
    return found


@EVERY
def test_it_is_seen_where_it_gives_no_reason_and_nowhere_else(cell, row):
    """Where a row says that it cannot be seen, its results are the right ones; it never raises.

    On recurrences with everything in them, a row differs or says why it cannot.
    """
    shown = differing(cell, row)
    reasons = {n: row.equivalent_when(recurrence_named(n, cell)) for n in shown | {*RICH}}

    assert [name for name in shown if reasons[name]] == []
    assert [name for name in RICH if name not in shown and not reasons[name]] == []
    assert shown & {*RICH, *SPECIAL}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_changed_result_keeps_its_type(cell, dtype):
    """One of another type would make the others of its stack wrong, too."""
    recurrence = recurrence_of(cell, dtype=dtype, N=3, lengths=[4, 2, 3], clip=8.0)
    wanted = RIGHT.run(recurrence)
    changing = [row for row in mutants_of(cell) if row.change.result is not RIGHT.result]

    assert len(changing) > 10
    for row in changing:
        assert_shaped_like(row.run(recurrence), wanted)


@pytest.mark.parametrize(("cell", "least"), [("LSTM", 60), ("GRU", 50), ("RNN", 35)])
def test_there_are_enough(cell, least):
    """Plausible bugs of each cell."""
    assert len(mutants_of(cell)) >= least


@every("row", MUTANTS.values(), ids=MUTANTS)
def test_rows_explain_themselves(row):
    """Each has sentences, a family and cells."""
    assert row.sentence.endswith(".")
    assert row.effect.endswith(".")
    assert row.family
    assert set(row.cells) <= set(CELL_ROWS)
    assert row.cells


def test_ids_are_unique():
    """No row hides another."""
    from rnncli.mutants.catalogue import _ROWS

    assert len(MUTANTS) == len(_ROWS)


def test_a_misspelt_id_is_suggested():
    """As every name is."""
    with pytest.raises(InvalidRequest, match="did you mean 'recurrent-bias-dropped'"):
        mutant_named("recurent-bias-dropped")


@every("id_", MUTANTS)
def test_it_is_a_backend_of_its_cells_only(id_):
    """It supports them, and says of another cell whose bug it is."""
    backend, cells = backend_named(f"mutant:{id_}"), MUTANTS[id_].cells

    assert backend.name == f"mutant:{id_}"
    for cell in CELLS:
        reason = backend.supports(recurrence_of(cell), Compute.FLOAT64)
        assert (reason is None) == (cell in cells)
        assert reason is None or (cells[0] in reason and reason.endswith(f"not of {cell}"))


@pytest.mark.parametrize("compute", Compute)
def test_it_computes_as_it_is_asked_to(compute):
    """In either arithmetic the bug is that of the row."""
    recurrence = recurrence_of("LSTM")
    backend = backend_named("mutant:recurrent-bias-dropped")
    found = backend.run(recurrence, compute)

    assert (found.Y == MUTANTS["recurrent-bias-dropped"].run(recurrence, compute).Y).all()
    assert (found.Y != backend_named("numpy").run(recurrence, compute).Y).any()


@pytest.mark.parametrize("name", ["mutant:", "mutant:nothing", "mutant", "mutant:mutant:x"])
def test_unknown_ids_are_refused(name):
    """A prefix alone names nothing."""
    with pytest.raises(InvalidRequest, match=r"unknown (mutant|backend)"):
        backend_named(name)
