"""Claims about what single mutants compute, each against arithmetic written here."""

from dataclasses import replace

import numpy as np
import pytest
from support.recurrences import recurrence_of

from rnncli.backends.backend import Compute
from rnncli.mutants.catalogue import MUTANTS, is_scored
from rnncli.mutants.mutant import RIGHT
from rnncli.mutants.walks import CHUNKS
from rnncli.recurrence.recurrence import Direction

RAGGED = {"D": 2, "lengths": [4, 1, 3], "dtype": "float64"}


def sigmoid(x):
    """1/(1 + e^-x)."""
    return 1 / (1 + np.exp(-x))


def run(name, recurrence):
    """What a mutant gives."""
    return MUTANTS[name].run(recurrence)


def right(recurrence):
    """What is right, by the walk that mutants take."""
    return RIGHT.run(recurrence, Compute.FLOAT64)


def one_step(cell, **settings):
    """A recurrence of one step and one direction, in float64."""
    return recurrence_of(cell, T=1, dtype="float64", **settings)


def products(r):
    """Xt*(W^T) and Ht-1*(R^T) of each gate of a one-step recurrence."""
    return r.X[0] @ r.W[0].swapaxes(1, 2), r.initial[0][0] @ r.R[0].swapaxes(1, 2)


def biases(r):
    """Wb + Rb of each gate."""
    return (r.Wb[0] + r.Rb[0])[:, None, :]


def test_clip_before_bias():
    """tanh(clip(Xt*(W^T) + Ht-1*(R^T)) + Wb + Rb)."""
    r = one_step("RNN", clip=0.25)
    expected = np.tanh(np.clip(sum(products(r)), -0.25, 0.25) + biases(r))

    np.testing.assert_allclose(run("clip-before-bias", r).last[0], expected, rtol=1e-12)


def lstm_gates(r):
    """The pre-activations i, o, f, c, without peepholes."""
    return sum(products(r)) + biases(r)


def test_input_forget_other_way():
    """The forget gate is computed, the input gate is 1 - it."""
    r = one_step("LSTM", input_forget=1)
    _, _, f, c = lstm_gates(r)
    expected = sigmoid(f) * r.initial[1][0] + (1 - sigmoid(f)) * np.tanh(c)

    np.testing.assert_allclose(run("input-forget-other-way", r).last[1][0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("peepholes-of-old-cell-for-o", "new"),
        ("peepholes-of-new-cell-for-o", "previous"),
        ("peepholes-of-h", "new"),
        ("peepholes-of-h", "previous"),
    ],
)
def test_peepholes_from_another_state(name, reading):
    """Po (.) Ct-1, or Po (.) Ct, or Pi and Pf (.) Ht-1, whatever Po is multiplied by."""
    r = one_step("LSTM", peepholes=True, readings={"peephole-o": reading})
    H, C = (state[0] for state in r.initial)
    Pi, Po, Pf = r.P[0]
    seen = H if name == "peepholes-of-h" else C
    i, o, f, c = lstm_gates(r)
    cell = sigmoid(f + Pf * seen) * C + sigmoid(i + Pi * seen) * np.tanh(c)
    is_old = (reading == "previous") == (name == "peepholes-of-h")
    output = sigmoid(o + Po * (C if is_old else cell))

    found = run(name, r)
    np.testing.assert_allclose(found.last[1][0], cell, rtol=1e-12)
    np.testing.assert_allclose(found.last[0][0], output * np.tanh(cell), rtol=1e-12)


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize(
    ("name", "reset"), [("reset-ignored", np.ones_like), ("reset-inverted", lambda r: 1 - r)]
)
def test_another_reset_gate(name, reset, after):
    """1, or 1 - rt, before or after the linear transformation."""
    r = one_step("GRU", linear_before_reset=after)
    x, h = products(r)
    H, Rbh, Wbh = r.initial[0][0], r.Rb[0][2], r.Wb[0][2]
    z, gate = sigmoid((x + h + biases(r))[:2])
    gate = reset(gate)
    product = gate * (h[2] + Rbh) if after else (gate * H) @ r.R[0][2].T + Rbh
    expected = (1 - z) * np.tanh(x[2] + product + Wbh) + z * H

    np.testing.assert_allclose(run(name, r).last[0][0], expected, rtol=1e-12)


def test_linear_before_reset_bias_outside():
    """g(Xt*(Wh^T) + rt (.) Ht-1*(Rh^T) + Rbh + Wbh)."""
    r = one_step("GRU", linear_before_reset=1)
    x, h = products(r)
    z, gate = sigmoid((x + h + biases(r))[:2])
    hidden = np.tanh(x[2] + gate * h[2] + biases(r)[2])
    expected = (1 - z) * hidden + z * r.initial[0][0]

    found = run("linear-before-reset-bias-outside", r).last[0][0]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_y_one_step_late():
    """Y[t] is what the step before t, in the direction's own order, has left."""
    r = recurrence_of("GRU", **RAGGED)
    wanted, found = right(r).Y, run("y-one-step-late", r).Y
    for n, length in enumerate(r.lengths):
        before = [np.array([r.initial[0][0, n], *wanted[: length - 1, 0, n]])]
        before.append(np.array([*wanted[1:length, 1, n], r.initial[0][1, n]]))
        for d in (0, 1):
            assert (found[:length, d, n] == before[d]).all()
            assert not found[length:, d, n].any()


def test_last_h_one_step_early():
    """The last but one of each direction, or the initial state where there was one step."""
    r = recurrence_of("RNN", **RAGGED)
    Y, (found,) = right(r).Y, run("last-h-one-step-early", r).last

    assert (found[0] == [Y[2, 0, 0], r.initial[0][0, 1], Y[1, 0, 2]]).all()
    assert (found[1] == [Y[1, 1, 0], r.initial[0][1, 1], Y[1, 1, 2]]).all()


def test_padding_read_reversed():
    """Reverse reads the last steps of X, padding included, in place of the first."""
    r = recurrence_of("RNN", **RAGGED)
    found = run("padding-read-reversed", r)
    for n, length in enumerate(r.lengths):
        states = tuple(state[:, n : n + 1] for state in r.initial)
        alone = replace(r, X=r.X[4 - length :, n : n + 1], lengths=None, initial=states)
        np.testing.assert_allclose(found.Y[:length, 1, n], right(alone).Y[:, 1, 0], rtol=1e-12)
        np.testing.assert_allclose(found.Y[:, 0, n], right(r).Y[:, 0, n], rtol=1e-12)


def test_padding_written_reversed():
    """The right values of reverse, at the end of Y instead of at its start."""
    r = recurrence_of("RNN", **RAGGED)
    wanted, found = right(r).Y, run("padding-written-reversed", r).Y
    for n, length in enumerate(r.lengths):
        assert (found[4 - length :, 1, n] == wanted[:length, 1, n]).all()
        assert not found[: 4 - length, 1, n].any()
        assert (found[:, 0, n] == wanted[:, 0, n]).all()


def test_padding_flipped():
    """X[::-1], a forward pass with the lengths as they are, and Y[::-1]."""
    r = recurrence_of("RNN", **RAGGED)
    found = run("padding-flipped", r)
    for n, length in enumerate(r.lengths):
        states = tuple(state[:, n : n + 1] for state in r.initial)
        alone = replace(r, X=r.X[4 - length :, n : n + 1], lengths=None, initial=states)
        wanted = right(alone)
        np.testing.assert_allclose(found.Y[4 - length :, 1, n], wanted.Y[:, 1, 0], rtol=1e-12)
        np.testing.assert_allclose(found.last[0][1, n], wanted.last[0][1, 0], rtol=1e-12)
        assert not found.Y[: 4 - length, 1, n].any()
        np.testing.assert_allclose(found.Y[:, 0, n], right(r).Y[:, 0, n], rtol=1e-12)


@pytest.mark.parametrize("cell", ["RNN", "GRU", "LSTM"])
def test_both_directions_run_forward(cell):
    """The second one of two is that of X flipped, written flipped; a lone reverse one is right."""
    r = recurrence_of(cell, D=2, dtype="float64")
    flipped = right(replace(r, X=r.X[::-1]))
    wrong = run("both-directions-run-forward", r)

    np.testing.assert_allclose(wrong.Y[:, 0], right(r).Y[:, 0], rtol=1e-12)
    np.testing.assert_allclose(wrong.Y[::-1, 1], flipped.Y[:, 1], rtol=1e-12)
    assert not np.allclose(wrong.Y[:, 1], right(r).Y[:, 1])

    alone = replace(recurrence_of(cell, dtype="float64"), directions=(Direction.REVERSE,))
    np.testing.assert_array_equal(run("both-directions-run-forward", alone).Y, right(alone).Y)


def test_gate_order():
    """A kernel of the order ifco takes the second block for f, which is o."""
    r = recurrence_of("LSTM")
    order = [0, 3, 1, 2]  # where i, o, f and c stand in ifco
    misread = {name: getattr(r, name)[:, order] for name in ("W", "R", "Wb", "Rb")}
    expected = right(replace(r, **misread))

    assert (run("gate-order-ifco", r).Y == expected.Y).all()


def test_layout_ignored():
    """Every buffer is taken for one of the other order of dimensions."""
    r = recurrence_of("RNN", D=2)
    T, N, _ = r.X.shape
    buffers = replace(
        r,
        X=np.ascontiguousarray(r.X.transpose(1, 0, 2)).ravel().reshape(T, N, -1),
        initial=(np.ascontiguousarray(r.initial[0].transpose(1, 0, 2)).ravel().reshape(2, N, 5),),
    )
    Y = right(buffers).Y.ravel().reshape(N, T, 2, 5)
    h = right(buffers).last[0].ravel().reshape(N, 2, 5)
    found = run("layout-ignored", r)

    assert (found.Y.transpose(2, 0, 1, 3) == Y).all()
    assert (found.last[0].transpose(1, 0, 2) == h).all()


def test_sums_in_float16():
    """A sum that float16 cannot hold is infinite, and tanh of it 1."""
    r = recurrence_of("RNN", T=1)
    huge = replace(r, X=np.full_like(r.X, 300), W=np.full_like(r.W, 300))

    assert (run("sums-in-float16", huge).Y == 1).all()
    assert "every sum" in MUTANTS["sums-in-float16"].equivalent_when(huge)


@pytest.mark.parametrize(
    ("value", "kept"), [(1 + 2**-10, 1 + 2**-10), (1 + 2**-12, 1.0), (1 + 3 * 2**-11, 1 + 2**-9)]
)
def test_tensor_float_32_has_eleven_bits(value, kept):
    """Ties go to even."""
    from rnncli.mutants.imprecision import tf32

    assert tf32(np.array([value])) == kept


LONG = {"T": 11, "N": 3, "D": 2, "lengths": [11, 0, 9], "dtype": "float64"}


def test_no_suite_is_scored_by_states_that_start_anew():
    """They name what is wrong, as finer variants do; so do moved inputs."""
    assert not any(is_scored(f"h-reset-every-{every}-steps") for every in CHUNKS)
    assert not is_scored("x-one-step-late")


@pytest.mark.parametrize(
    ("name", "kept"), [("h-reset", (1,)), ("c-reset", (0,)), ("states-reset", ())]
)
def test_a_state_is_zero_again_after_four_steps(name, kept):
    """Steps 4 to 7 are those of a sequence of their own; reverse counts from a sequence's end."""
    r = recurrence_of("LSTM", **LONG)
    found = run(f"{name}-every-4-steps", r)
    four = right(replace(r, X=r.X[:4], lengths=np.minimum(r.lengths, 4)))
    start = tuple(s if k in kept else np.zeros_like(s) for k, s in enumerate(four.last))
    next_four = right(replace(r, X=r.X[4:8], lengths=None, initial=start))

    np.testing.assert_allclose(found.Y[:4, 0], four.Y[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found.Y[4:8, 0, 0], next_four.Y[:, 0, 0], rtol=1e-12)
    last = right(replace(r, X=r.X[7:11], lengths=None, directions=r.directions))
    np.testing.assert_allclose(found.Y[7:11, 1, 0], last.Y[:, 1, 0], rtol=1e-12)


@pytest.mark.parametrize("keeps", [False, True])
def test_sequences_of_length_zero_end_as_they_should(keeps):
    """With zero states, or with the initial ones where the reading has it so."""
    r = replace(recurrence_of("LSTM", **LONG), keep_initial=keeps)
    found, wanted = run("states-reset-to-initial-every-4-steps", r), right(r)

    for state, other in zip(found.last, wanted.last, strict=True):
        np.testing.assert_array_equal(state[:, 1], other[:, 1])
    np.testing.assert_array_equal(found.Y[9:, 0, 2], 0)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("x-one-step-late", [-1, 0, 1, 2]),
        ("x-first-step-twice", [0, 0, 1, 2]),
        ("x-one-step-early", [1, 2, 3, -1]),
        ("x-last-step-twice", [1, 2, 3, 3]),
    ],
)
def test_each_step_reads_the_x_of_another(name, steps):
    """-1 stands for zeros."""
    r = recurrence_of("GRU", T=4, dtype="float64")
    X = np.concatenate([r.X, np.zeros_like(r.X[:1])])[steps]

    np.testing.assert_array_equal(run(name, r).Y, right(replace(r, X=X)).Y)


def test_another_default_is_right_where_the_value_is_given():
    """LeakyRelu's 0.01 is another library's 0.3; a given 0.5 is 0.5."""
    default = recurrence_of("RNN", activations=["LeakyRelu"])
    given = recurrence_of("RNN", activations=["LeakyRelu"], activation_alpha=[0.5])
    third = recurrence_of("RNN", activations=["LeakyRelu"], activation_alpha=[0.3])
    name = "leakyrelu-alpha-0.3"

    np.testing.assert_allclose(run(name, default).Y, right(third).Y, rtol=1e-6)
    np.testing.assert_array_equal(run(name, given).Y, right(given).Y)


@pytest.mark.parametrize("cell", ["GRU", "LSTM"])
def test_units_before_gates(cell):
    """Row h*G + g of the stored weights is read as that of gate g and unit h."""
    r = recurrence_of(cell, D=2, H=3)
    read = MUTANTS["units-before-gates"].change.recurrence(r)
    for name in ("W", "R", "Wb", "Rb"):
        right, wrong = getattr(r, name), getattr(read, name)
        D, G, H, *_ = right.shape
        for d in range(D):
            rows = [right[d, g, h] for g in range(G) for h in range(H)]
            found = [[wrong[d, g, h] for g in range(G)] for h in range(H)]
            np.testing.assert_array_equal(np.concatenate(found), rows)
