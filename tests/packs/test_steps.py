"""Claims about the signals of every step that a pack may store."""

import warnings
from functools import cache, partial

import numpy as np
import pytest
from support import scalar_specification
from support.scalar_specification import GATES, clipped, prepared
from support.second_calls import TEXT
from support.small_suite import small_suite

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.cases.suite.suite import load_suite
from rnncli.errors import RnncliWarning
from rnncli.generating.generation import GenerationPlan, check, generate
from rnncli.generating.leftovers import premises
from rnncli.generating.production import make_vectors
from rnncli.judging.tolerances.derivation import signals_of
from rnncli.packs.conversion import convert_pack
from rnncli.packs.layouts import LAYOUTS
from rnncli.packs.pack import open_pack
from rnncli.recurrence.recurrence import Direction, Result

SUITES = ("core", "exact", "openvino")
# Multiplications of a case that the scalar specification repeats.
MOST = 50_000


@cache
def vectors_of(suite):
    """The vectors of a suite that must run, with signals, each call for itself."""
    entries = [entry for entry in load_suite(suite).with_steps().entries if not entry.breakage]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RnncliWarning)  # of an alpha that nobody takes
        made = [*make_vectors(entries)]
    return [call for vector in made for call in vector.calls]


class Watched(scalar_specification.Direction):
    """A direction that records the argument, before clipping, and the value of each activation."""

    def gate(self, function, x):
        """Record a clipped activation."""
        return self._seen(x, super().apply(function, clipped(x, self.clip)))

    def apply(self, function, x):
        """Record an activation that is not clipped."""
        return self._seen(x, super().apply(function, x))

    def _seen(self, x, y):
        self.seen.append((x, y))
        return y


def by_signal(kind, seen, H, *, forgets):
    """Name the activations that a step has called: those of an LSTM unit by unit."""
    pairs = np.array(seen, float).reshape(-1, 2)
    if kind == "LSTM":
        names = ["i", "c", "o", "h"] if forgets else ["i", "f", "c", "o", "h"]
        rows = pairs.reshape(H, len(names), 2).swapaxes(0, 1)
    else:
        names = [*GATES[kind]]
        rows = pairs.reshape(len(names), H, 2)
    found = {f"pre_{name}": row[:, 0] for name, row in zip(names, rows, strict=True)}
    found |= {f"gate_{name}": row[:, 1] for name, row in zip(names, rows, strict=True)}
    return {**found, "h_of_C": found["gate_h"]} if kind == "LSTM" else found


def replayed(vector):
    """Yield (t, d, n, signals) of every step, taken by the scalar specification from stored states.

    The states before the first step are the initial ones, and those before every other step the
    states that the vector stores for the step before it.
    """
    record, steps = vector.record, vector.steps.outputs
    node = prepared(record.operator, vector.inputs, vector.attributes, record.readings, Watched)
    stored = [steps[name].astype(np.float64) for name in steps if name.startswith("state_")]
    H = node.sizes[-1]
    for d, cell in enumerate(node.cells):
        for n, length in enumerate(node.lengths):
            states = [node.initial[name][d][n] for name in ("initial_h", "initial_c")]
            for t in cell.order(length):
                cell.seen = []
                H_t, C_t = cell.step(node.X[t][n], *states)
                found = by_signal(node.kind, cell.seen, H, forgets=cell.input_forget)
                yield t, d, n, {**found, "state_H": np.array(H_t), "state_C": np.array(C_t)}
                known = [values[t, d, n].tolist() for values in stored]
                states = [*known, *states[len(known) :]]


def unequal(got, wanted, tolerance):
    """Which values are neither within a tolerance nor equal once stored; NaN equals NaN."""
    with np.errstate(all="ignore"):
        stored = got.astype(wanted.dtype)
        near = np.abs(got - wanted.astype(np.float64)) <= tolerance.astype(np.float64)
    return ~(near | (stored == wanted) | (np.isnan(stored) & np.isnan(wanted)))


def multiplications(recurrence):
    """How many a recurrence takes in its products with W and R."""
    return recurrence.X.shape[0] * recurrence.X.shape[1] * (recurrence.W.size + recurrence.R.size)


@pytest.mark.parametrize("suite", SUITES)
def test_the_scalar_specification_repeats_every_step_from_the_stored_states(suite):
    """Every signal of every case but the largest is within its tolerance."""
    taken = 0
    for vector in (v for v in vectors_of(suite) if multiplications(v.recurrence) < MOST):
        outputs, tolerances = vector.steps.outputs, vector.steps.tolerances
        for t, d, n, found in replayed(vector) if outputs else ():
            taken += 1
            for name, values in outputs.items():
                wrong = unequal(found[name], values[t, d, n], tolerances[name][t, d, n])
                assert not wrong.any(), (vector.id, name, t, d, n)

    assert taken > 0


@pytest.mark.parametrize("suite", SUITES)
def test_the_stored_states_are_the_outputs_bit_for_bit(suite):
    """H of every step is Y; the states of the last steps are Y_h and Y_c."""
    compared = 0
    for vector in vectors_of(suite):
        if not vector.steps.outputs:
            continue
        recurrence, steps = vector.recurrence, vector.steps.outputs
        states = [values for name, values in steps.items() if name.startswith("state_")]
        last = tuple(map(partial(last_of, recurrence), states, recurrence.initial))
        for name, values in vector.node.outputs_of(Result(states[0], last)).items():
            compared += 1
            assert values.tobytes() == vector.answers.outputs[name].tobytes(), (vector.id, name)

    assert compared > 0


@pytest.mark.parametrize("suite", ["core", "openvino"])
def test_a_run_in_float32_is_within_the_tolerances_of_all_signals(suite):
    """Although the errors of its states are its own; a signal that is wrong by 0.1 % is not."""
    compared = caught = 0
    for vector in vectors_of(suite):
        if vector.record.dtype != "float32" or not vector.steps.outputs:
            continue
        recurrence = vector.recurrence
        found = evaluate(recurrence, NumPyEngine(np.dtype(np.float32)), wants_signals=True)
        for signal in signals_of(recurrence):
            name, got = signal.name, found.signals[signal.row].astype(np.float64)
            wanted, tolerance = (
                values[name] for values in (vector.steps.outputs, vector.steps.tolerances)
            )
            compared += 1
            caught += unequal(got * 1.001, wanted, tolerance).any()
            assert not unequal(got, wanted, tolerance).any(), (vector.id, name)

    assert caught > 0.9 * compared > 0


SOME_FILES = {
    "onnx": ("test_lstm_14_given/steps/output_0.pb", "test_lstm_14_given/steps_1/tolerance_1.pb"),
    "raw": (
        "test_lstm_14_given/steps/outputs/pre_i.bin",
        "test_lstm_14_given/calls/1/steps/tolerances/state_H.bin",
    ),
    "c": ("test_lstm_14_given/case.h",),
    "hex": ("test_lstm_14_given/steps/outputs/pre_i.hex",),
    "npz": ("vectors.npz",),
    "h5": ("vectors.h5",),
}


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A pack with signals, of second calls and other readings."""
    folder = tmp_path_factory.mktemp("steps") / "pack"
    plan = GenerationPlan(suite=small_suite(TEXT).with_steps())
    assert generate(plan, folder, lambda _: None).failed == ()
    return open_pack(folder)


@pytest.mark.parametrize("layout", SOME_FILES)
def test_every_layout_stores_them(pack, layout, tmp_path):
    """And those that are read give them back bit for bit."""
    folder = tmp_path / layout
    convert_pack(pack, folder, layout)
    for path in SOME_FILES[layout]:
        assert (folder / path).is_file()
    if not LAYOUTS[layout].reader:
        return

    for one, other in zip(pack.vectors(), open_pack(folder).vectors(), strict=True):
        for vector, again in zip(one.calls, other.calls, strict=True):
            assert vector.steps.outputs
            stored = dict(vector.own_tensors())
            assert {n: v.tobytes() for n, v in stored.items()} == {
                n: v.tobytes() for n, v in again.own_tensors()
            }


def test_a_pack_without_them_is_the_same_but_for_their_files(pack, tmp_path):
    """Goldens, tolerances and models do not depend on the option."""
    folder = tmp_path / "pack"
    generate(GenerationPlan(suite=small_suite(TEXT)), folder, lambda _: None)
    plain = open_pack(folder).manifest.sums()

    more = {path: sum_ for path, sum_ in pack.manifest.sums().items() if "/steps" not in path}
    assert plain == more


def test_a_pack_checks_against_its_suite_only_with_the_same_option(pack):
    """Without it the files are extra."""
    suite = small_suite(TEXT)

    assert check(GenerationPlan(suite=suite.with_steps()), pack.folder, print).findings == ()
    words = {word for _, word in check(GenerationPlan(suite=suite), pack.folder, print).findings}
    assert words == {"extra", "stale or altered"}


def test_an_interrupted_pack_is_not_continued_with_another_choice():
    """The journal holds the option."""
    suite = small_suite(TEXT)

    assert premises(suite) != premises(suite.with_steps())


def last_of(recurrence, values, initial):
    """The state after each sequence's last step [D, N, H]; for no step as zero-length says."""
    T, D, N, H = values.shape
    found = np.zeros((D, N, H), values.dtype)
    if recurrence.keep_initial and initial is not None:
        found = initial.copy()
    for d, direction in enumerate(recurrence.directions):
        for n in range(N):
            length = T if recurrence.lengths is None else int(recurrence.lengths[n])
            if length:
                found[d, n] = values[length - 1 if direction is Direction.FORWARD else 0, d, n]
    return found
