"""Claims about keys: no field of a recurrence is forgotten where recurrences are told apart."""

from dataclasses import fields, replace

import numpy as np
import pytest
from support.quantised_lstm import LSTM, away_from_ties

from rnncli.backends.backend import Compute
from rnncli.backends.compiled import driver as numba_backend
from rnncli.backends.compiled.routines import kind_of_calls
from rnncli.backends.in_place import time_steps
from rnncli.backends.in_place.prepared_calls import features_of
from rnncli.backends.in_place.time_steps import has_kernel
from rnncli.backends.in_place.walk import NumPyBackend
from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.judging.explaining.single_steps import of_whole_runs
from rnncli.judging.tolerances.derivation import kind_of_steps
from rnncli.judging.tolerances.expressions import equations_of
from rnncli.mutants.equivalence import every_field
from rnncli.mutants.runs import fingerprint, kind_of
from rnncli.mutants.structural import BlockedKernel
from rnncli.numerics import DTYPES
from rnncli.operators.node import Node
from rnncli.recurrence.activations import ACTIVATIONS
from rnncli.recurrence.cells import CELLS, CellOptions
from rnncli.recurrence.recurrence import Direction, Recurrence, UnitTensors
from rnncli.recurrence.unit import InnerLevels

ATTRIBUTES, INPUTS, _ = away_from_ties(("bidirectional", True, True, True))
RIGHT = Node(LSTM, ATTRIBUTES).recurrence(INPUTS)
RELUS = ((ACTIVATIONS["Relu"],) * 3,) * 2
MATRICES, OPTIONAL = {"X", "W", "R"}, {"Wb", "Rb", "P", "lengths"}
# Another value for each field: arrays are left out if they can be, or others of the same shape.
OTHER = {
    **{name: getattr(RIGHT, name).copy() for name in MATRICES},
    **dict.fromkeys(OPTIONAL),
    "initial": (None, None),
    "projection": np.zeros((2, 1, 1)),
    "cell": replace(CELLS["LSTM"], defaults=("Relu",) * 3),
    "dtype": DTYPES["float64"],
    "directions": (Direction.REVERSE, Direction.FORWARD),
    "activations": RELUS,
    "clip": 0.25,
    "gates": "ifco",
    "states_dtype": DTYPES["float64"],
    "options": RIGHT.options._replace(input_forget=not RIGHT.options.input_forget),
    "unit": UnitTensors(Node(LSTM, ATTRIBUTES), INPUTS),
    "quantiser": replace(RIGHT.quantiser, by_sequence=not RIGHT.quantiser.by_sequence),
    **{
        row.name: not getattr(RIGHT, row.name)
        for row in fields(Recurrence)
        if isinstance(row.default, bool)
    },
}
EQUATIONS = {"cell", "P", "Rb", "options"}
ALL = {row.name for row in fields(Recurrence) if row.init}
STEP = EQUATIONS | {"W", "R", "Wb", "initial", "activations", "clip", "clip_hidden"}
SEQUENCES = {"lengths", "initial", "directions", "keep_initial", "wants_Y"}
# A key, and the fields that it leaves out.
KEYS = {
    "every field": (every_field, set()),
    "results of mutants": (fingerprint, set()),
    "stacks of mutants": (kind_of, MATRICES),
    "whole runs": (of_whole_runs, STEP),
    "tolerances": (kind_of_steps, MATRICES | SEQUENCES | {"projection"}),
    "equations": (equations_of, ALL - EQUATIONS),
    "prepared calls": (
        lambda r: features_of(r, np.dtype(np.float64)),
        MATRICES | OPTIONAL | {"projection", "initial", "keep_initial", "wants_Y"},
    ),
    "compiled routines": (  # which compute neither changed cells nor what is quantised
        kind_of_calls,
        MATRICES
        | {"Wb", "Rb", "projection", "initial", "cell", "quantiser", "keep_initial", "wants_Y"},
    ),
}


def is_same(one, other):
    """Whether two keys are the same; arrays are compared by identity."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(map(is_same, one, other))
    are_arrays = isinstance(one, np.ndarray | tuple) or isinstance(other, np.ndarray | tuple)
    return one is other or (not are_arrays and one == other)


def test_each_field_has_another_value():
    """Whoever adds a field adds a value, and finds which keys count it."""
    assert set(OTHER) == ALL


@pytest.mark.parametrize("name", KEYS)
def test_a_key_counts_every_field_but_those_that_it_leaves_out(name):
    """A recurrence that differs in one other field has another key; the same has the same."""
    key_of, left_out = KEYS[name]
    own = key_of(RIGHT)

    counted = {f for f in OTHER if not is_same(key_of(replace(RIGHT, **{f: OTHER[f]})), own)}

    assert is_same(key_of(replace(RIGHT)), own)
    assert counted == ALL - left_out


class Watch:
    """A cell's step that keeps the options it is given."""

    def __init__(self, cell):
        self.step, self.seen = cell.step, set()

    def __call__(self, p, x, states):
        """Advance by one step."""
        self.seen.add(p.options)
        return self.step(p, x, states)


PLAIN = replace(RIGHT, quantiser=None)
# What runs a cell's equations.
RUNS = {
    "reference": lambda r: evaluate(r, NumPyEngine(np.dtype(np.float64))),
    "numpy": lambda r: NumPyBackend().run(r, Compute.NATIVE),
    "blocked kernel": lambda r: BlockedKernel().run(r),
    "tolerances": equations_of,
}


def set_to(option):
    """An option that is set; levels are of two states, of which neither is rounded."""
    return {option: InnerLevels((None, None)) if option == "levels" else True}


# An integer LSTM has equations of its own, over integers.
@pytest.mark.parametrize(
    "option", [name for name in CellOptions._fields if name not in ("integers", "projected")]
)
@pytest.mark.parametrize("name", RUNS)
def test_the_options_of_a_cell_reach_its_equations_whole(name, option):
    """Whatever runs them, and so does an option that is added later."""
    watch = Watch(PLAIN.cell)
    recurrence = replace(PLAIN, cell=replace(PLAIN.cell, step=watch)).opting(**set_to(option))

    RUNS[name](recurrence)

    assert watch.seen == {recurrence.options}


# Options of linear recurrences, which have no kernels.
OF_OTHERS = {
    *("silu", "unrounded_sum", "gap", "rounded_states", "attention", "token"),
    *("integers", "projected"),
}


@pytest.mark.parametrize("option", [name for name in CellOptions._fields if name not in OF_OTHERS])
def test_a_kernel_refuses_the_options_that_it_does_not_know(monkeypatch, option):
    """It would compute without them; what has no kernel is evaluated by its equations."""
    recurrence = PLAIN.opting(**set_to(option))
    assert has_kernel(recurrence) == (option != "levels")  # which the reference alone rounds to
    for kernels, name in ((time_steps, "_OPTIONS"), (numba_backend, "OPTIONS")):
        monkeypatch.setattr(kernels, name, getattr(kernels, name) - {option})

    assert not has_kernel(recurrence)
    reason = f"has no kernel for the LSTM with {option}"
    assert numba_backend.NumbaBackend().supports(recurrence, Compute.NATIVE) == reason
