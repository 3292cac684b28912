"""Claims about the signals of a step: their names, and tolerances of their own."""

from dataclasses import replace

import numpy as np
import pytest
from support.other_cells import OTHER_CELLS, recurrence_of_cell
from support.recurrences import PREVIOUS, recurrence_of

from rnncli.backends.reference import NumPyEngine, evaluate
from rnncli.errors import InvalidRequest
from rnncli.judging.tolerances import derivation
from rnncli.judging.tolerances.derivation import derive, derive_signals, signals_of
from rnncli.numerics import FLOAT64
from rnncli.numerics.profiles import PROFILES

STANDARD, EXACT = PROFILES["standard"], PROFILES["exact"]
NAMES = {
    "RNN": "pre_i state_H",
    "GRU": "pre_z gate_z pre_r gate_r pre_h gate_h state_H",
    "LSTM": "pre_i gate_i pre_f gate_f pre_c gate_c pre_o gate_o h_of_C state_H state_C",
}


def golden_of(recurrence):
    """The signals of a recurrence in the order of their names."""
    found = evaluate(recurrence, NumPyEngine(FLOAT64), wants_signals=True).signals
    return found[[signal.row for signal in signals_of(recurrence)]]


@pytest.mark.parametrize(("cell", "names"), NAMES.items())
def test_signals_are_named_by_gate_and_state(cell, names):
    """In order of evaluation, the new states last; the RNN's gate is its state."""
    assert [signal.name for signal in signals_of(recurrence_of(cell))] == names.split()


def test_the_sum_of_the_output_gate_is_that_of_the_reading():
    """Nothing else of a step depends on the cell state that the gate sees."""
    one = recurrence_of("LSTM", T=1, **PREVIOUS)
    names = [signal.name for signal in signals_of(one)]
    previous, new = (golden_of(one.opting(peephole_previous=k))[:, 0] for k in (True, False))
    C, pre_o = names.index("state_C"), names.index("pre_o")
    Po, old = one.P[:, 1, None], one.initial[1]

    assert names == NAMES["LSTM"].split()
    np.testing.assert_allclose(new[pre_o] - previous[pre_o], Po * (new[C] - old), atol=1e-6)
    differ = [n for n, a, b in zip(names, previous, new, strict=True) if (a != b).any()]
    assert differ == ["pre_o", "gate_o", "state_H"]


def test_a_coupled_forget_gate_has_no_sum_of_its_own():
    """It is 1 - it."""
    names = {s.name for s in signals_of(recurrence_of("LSTM").opting(input_forget=True))}

    assert names == {*NAMES["LSTM"].split()} - {"pre_f", "gate_f"}


@pytest.mark.parametrize("cell", OTHER_CELLS)
def test_signals_of_any_cell_are_named_and_bounded(cell):
    """A new row needs nothing else."""
    recurrence = recurrence_of_cell(cell)
    names = [signal.name for signal in signals_of(recurrence)]
    tolerances = derive_signals(recurrence, golden_of(recurrence), STANDARD)

    assert len(names) == len({name.lower() for name in names}) == len(tolerances)
    assert np.isfinite(tolerances).all()
    assert (tolerances > 0).all()


@pytest.mark.parametrize("cell", NAMES)
def test_the_tolerance_of_a_state_is_that_of_the_output(cell):
    """Or a little more, since a step may also start at stored states."""
    recurrence = recurrence_of(cell)
    position = [signal.name for signal in signals_of(recurrence)].index("state_H")
    found = derive_signals(recurrence, golden_of(recurrence), STANDARD)[position]
    wanted = derive(replace(recurrence, wants_Y=True), STANDARD).Y

    assert (found >= wanted).all()
    assert np.median(found / wanted) < 1.01


def test_padding_has_no_tolerance():
    """It is 0, as in Y."""
    recurrence = recurrence_of("LSTM")
    T, N, _ = recurrence.X.shape
    lengths = np.array([1, *[T] * (N - 1)])
    recurrence = replace(recurrence, lengths=lengths)
    golden = golden_of(recurrence)
    found = derive_signals(recurrence, golden, STANDARD)

    assert not golden[:, 1:, :, 0].any()
    assert not found[:, 1:, :, 0].any()
    assert found[:, 0, :, 0].all()


def test_an_exact_profile_tolerates_nothing():
    """As for outputs."""
    recurrence = recurrence_of("GRU")

    assert not derive_signals(recurrence, golden_of(recurrence), EXACT).any()


def test_what_is_not_finite_must_match_exactly():
    """And leaves the tolerances of other elements finite."""
    recurrence = recurrence_of("LSTM")
    X = recurrence.X.copy()
    X[1, 0, 0] = np.nan
    recurrence = replace(recurrence, X=X)
    golden = golden_of(recurrence)
    found = derive_signals(recurrence, golden, STANDARD)

    assert np.isnan(golden).any()
    assert np.isfinite(found).all()
    assert not found[~np.isfinite(golden)].any()


def test_a_signal_of_unknown_error_is_refused(monkeypatch):
    """A pack would hold a tolerance by which everything passes."""
    recurrence = recurrence_of("GRU")
    golden = golden_of(recurrence)
    monkeypatch.setattr(
        derivation, "_tolerances", lambda *_: np.full(golden.swapaxes(1, 2).shape, np.inf)
    )

    with pytest.raises(InvalidRequest, match="signal pre_z: nothing can be said"):
        derive_signals(recurrence, golden, STANDARD)


def test_a_recurrence_of_no_steps_has_no_signals():
    """Nothing is evaluated."""
    recurrence = recurrence_of("RNN")

    assert (
        evaluate(
            replace(recurrence, X=recurrence.X[:0]), NumPyEngine(FLOAT64), wants_signals=True
        ).signals
        is None
    )
