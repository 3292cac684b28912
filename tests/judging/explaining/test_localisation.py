"""Where an error enters: claims tried on implementations that are wrong in one known place."""

import itertools
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from support.agreement import quiet
from support.emulation import NARROW, WIDE
from support.examples import examples, part_of
from support.judged import bound, computed, core, explained_verdict, outputs_of, ran, vectors_of
from support.nodes import nodes
from support.recurrences import recurrence_of
from support.recurrences import recurrence_of as made
from support.tables import every

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.judging.comparing.margins import MeasuredAttempt
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.explaining.single_steps import (
    ENGINE,
    Steps,
    forced,
    predicted,
    step_tolerances,
    steps_of,
)
from rnncli.judging.judgement import judge
from rnncli.judging.tolerances.derivation import derive, round_up
from rnncli.judging.tolerances.operation_errors import Trajectory
from rnncli.numerics import conditioning_problem
from rnncli.numerics.profiles import PROFILES
from rnncli.operators import OPERATORS
from rnncli.recurrence.lanes import in_order, lanes_of, of_directions
from rnncli.recurrence.recurrence import Direction, Result

STANDARD = PROFILES["standard"]
RAGGED = ["rnn_14_both", "gru_14_both", "lstm_14_both", "lstm_14_peepholes_both_ragged_float16"]


def localise(vector, outputs, rule=PACK_RULE):
    """Where an error enters."""
    steps = steps_of(MeasuredAttempt(vector, outputs, rule))
    return steps and steps.localisation


def checked(recurrence, Y, profile=STANDARD, differs=None):
    """Check every step of Y, of which all elements differ if not said otherwise."""
    return Steps.of(recurrence, Y, profile, np.ones(Y.shape, bool) if differs is None else differs)


def walked(recurrence, spoil=lambda d, k, h: h):
    """Evaluate step by step, each state stored in the dtype: h after step k may be spoilt."""
    T, N, _ = recurrence.X.shape
    D, _, H, _ = recurrence.W.shape
    lengths = np.full(N, T) if recurrence.lengths is None else recurrence.lengths
    Y = np.zeros((T, D, N, H), recurrence.dtype.numpy)
    last = [np.zeros((D, N, H), recurrence.dtype.numpy) for _ in range(recurrence.cell.states)]
    for d, direction in enumerate(recurrence.directions):
        part = of_directions(recurrence, slice(d, d + 1))
        X = in_order(recurrence.X, recurrence.lengths, direction)
        states, own = part.initial, np.zeros((T, N, H), recurrence.dtype.numpy)
        for k in range(T):
            step = replace(
                part, X=X[k : k + 1], lengths=None, directions=(Direction.FORWARD,), initial=states
            )
            h, *rest = backend_named("numpy").run(step, Compute.FLOAT64).last
            states = (spoil(d, k, h), *rest)
            own[k] = np.where((k < lengths)[:, None], states[0][0], 0)
            for state, kept in zip(states, last, strict=True):
                kept[d] = np.where((k < lengths)[:, None], state[0], kept[d])
        Y[:, d] = in_order(own, recurrence.lengths, direction)
    return Result(Y, tuple(last))


def spoilt_at(place, amount=0.06):
    """Add to one unit of one sequence after one step, and go on from there."""

    def spoil(d, k, h):
        if (d, k) == place[:2]:
            h = h.copy()
            h[0][place[2:]] += h.dtype.type(amount)
        return h

    return spoil


def places(recurrence):
    """Every seventh live element: direction, steps before it, sequence, unit; and its t."""
    T, N, _ = recurrence.X.shape
    H = recurrence.W.shape[2]
    lengths = np.full(N, T) if recurrence.lengths is None else recurrence.lengths
    live = [
        ((d, k, n, u), int(lengths[n] - 1 - k if direction is Direction.REVERSE else k))
        for d, direction in enumerate(recurrence.directions)
        for k in range(T)
        for n in range(N)
        for u in range(H)
        if k < lengths[n]
    ]
    return live[::7]


@pytest.mark.parametrize("case_id", RAGGED)
def test_one_wrong_element_is_found_where_it_is(case_id):
    """In either direction of a ragged batch, wherever it enters: one step."""
    vector = core()[case_id]
    recurrence = vector.recurrence
    for place, t in places(recurrence):
        got = outputs_of(vector, walked(recurrence, spoilt_at(place)))

        found = localise(vector, got)

        d, _, n, u = place
        assert (found.direction, found.batch, found.unit, found.t) == (d, n, u, t)
        assert found.steps == 1
        assert f"wrong in this one of {found.of} steps, and carried on" in found.sentence


@pytest.mark.parametrize("case_id", RAGGED)
def test_the_walk_itself_is_sound(case_id):
    """Otherwise the claim above would say nothing."""
    vector = core()[case_id]

    assert judge(vector, ran(outputs_of(vector, walked(vector.recurrence)))).margin < 0.7


def test_every_live_step_is_counted():
    """Of all sequences and directions, padding aside."""
    vector = core()["lstm_14_both"]
    wrong = computed(vector, lambda r: replace(r, W=r.W * r.dtype.numpy.type(0.5)))

    found = localise(vector, wrong)

    assert found.of == 2 * int(vector.inputs["sequence_lens"].sum())
    assert found.steps == found.of
    assert "wrong in every step" in found.sentence


def test_the_first_is_the_one_with_the_fewest_steps_before_it():
    """Backwards in time the last index comes first; t is that of the tensor all the same."""
    vector = core()["gru_14_both"]
    lengths = vector.inputs["sequence_lens"]
    got = {name: values.copy() for name, values in vector.answers.outputs.items()}
    longest = int(lengths.argmax())
    got["Y"][1, 0, longest, 2] += 1
    got["Y"][lengths[longest] - 1, 1, longest, 3] += 1

    found = localise(vector, got)

    assert (found.t, found.direction, found.unit) == (lengths[longest] - 1, 1, 3)


def but(**changes):
    """Replace attributes of the recurrence."""
    return lambda recurrence: replace(recurrence, **changes)


@pytest.mark.parametrize("case_id", ["rnn_14_ragged", "gru_14_ragged", "lstm_14_ragged"])
def test_wrong_padding_is_told_from_wrong_steps(case_id):
    """Forward, without lengths, every valid step is right; what follows is no padding."""
    vector = core()[case_id]
    lengths = vector.inputs["sequence_lens"]

    found = localise(vector, computed(vector, but(lengths=None)))

    shortest = int(lengths.min())
    assert (found.t, found.batch) == (shortest, int(lengths.argmin()))
    assert found.steps == 0
    assert (
        f"past the end of sequence {found.batch}, which has length {shortest};"
        " of Y only padding is wrong" in found.sentence
    )


@pytest.mark.parametrize("case_id", ["rnn_14_reverse_ragged", "gru_14_reverse_ragged"])
def test_padding_that_is_walked_through_backwards_spoils_each_first_step(case_id):
    """In every sequence shorter than the longest, where it ends; from there on steps are right."""
    vector = core()[case_id]
    lengths = vector.inputs["sequence_lens"]
    T = vector.inputs["X"].shape[0]

    found = localise(vector, computed(vector, but(lengths=None)))

    (ragged,) = np.nonzero(lengths < T)
    assert (found.t, found.batch) == (lengths[ragged[0]] - 1, ragged[0])
    assert found.steps == len(ragged)
    assert f"direction 0 (reverse), sequence {ragged[0]}" in found.sentence
    assert f"where sequence {ragged[0]} ends; wrong in {len(ragged)} of" in found.sentence


def test_padding_keeps_its_place_in_time():
    """In reverse too: only what is valid is turned round."""
    vector = core()["rnn_14_reverse_ragged"]
    lengths = vector.inputs["sequence_lens"]
    n = int(lengths.argmin())
    got = {name: values.copy() for name, values in vector.answers.outputs.items()}
    got["Y"][lengths[n] + 1, 0, n, 4] = 1e-30

    found = localise(vector, got)

    assert (found.t, found.batch, found.unit, found.steps) == (lengths[n] + 1, n, 4, 0)


def test_the_first_step_of_a_short_sequence_is_called_the_first():
    """That the sequence ends there, being of one step or walked backwards, comes second."""
    for case_id, remark in (("lstm_14_both", "only"), ("lstm_14_reverse_ragged", "first")):
        vector = core()[case_id]
        got = {name: values + np.float32(0.01) for name, values in vector.answers.outputs.items()}

        sentence = localise(vector, got).sentence

        assert f", in its {remark} step, where sequence 0 ends; wrong in every step" in sentence


def test_errors_that_add_up_are_told_from_a_wrong_step():
    """Each step is off by a third of what it may be, always to the same side."""
    T = 400
    (base,) = [made("RNN", T=T, N=1, I=1, H=1, activations=["Affine"])]
    one = np.ones_like(base.R)
    recurrence = replace(
        base, W=one, R=one, Wb=None, Rb=None, initial=(None,), X=np.full_like(base.X, 2.0**-9)
    )
    golden = backend_named("numpy").run(recurrence, Compute.FLOAT64).Y
    (path,) = checked(recurrence, golden).paths
    step = step_tolerances(path, STANDARD).reshape(T, 1, 1, 1)
    got = (golden + np.cumsum(step / 3, axis=0)).astype(np.float32)
    differs = np.abs(got - golden) > derive(recurrence, STANDARD).Y

    found = checked(recurrence, got, differs=differs).localisation

    assert differs.any()
    assert (found.steps, found.t) == (0, int(differs.argmax()))
    assert "no step is wrong alone: errors add up" in found.sentence


def test_without_y_nothing_is_located():
    """The last states say that something is wrong, not where."""
    vector = core()["lstm_14_outputs"]
    assert vector.record.outputs == ["Y_h"]
    got = {"Y_h": vector.answers.outputs["Y_h"] + 1}

    assert localise(vector, got) is None


@pytest.mark.parametrize("wrong", [{}, {"Y": np.zeros(3)}, {"Y": np.zeros((4, 1, 3, 5))}])
def test_a_y_that_cannot_be_compared_is_not_looked_at(wrong):
    """Missing, of another shape, of another dtype."""
    assert localise(core()["lstm_14_initial"], wrong) is None


@every("case_id", core())
def test_a_right_y_has_no_first_error(case_id):
    """Whatever is wrong with the other outputs."""
    vector = core()[case_id]

    assert localise(vector, vector.answers.outputs) is None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38, 3e4])
@pytest.mark.parametrize("case_id", ["rnn_14_initial", "gru_14_initial", "lstm_14_initial"])
def test_garbage_is_found_where_it_begins(case_id, value):
    """One absurd number: the steps before it are right, and nothing overflows or raises."""
    vector = core()[case_id]
    got = {name: values.copy() for name, values in vector.answers.outputs.items()}
    got["Y"][2, 0, 1, 3] = value

    found = localise(vector, got)

    assert (found.t, found.batch, found.unit) == (2, 1, 3)


GARBAGE = (0.0, np.nan, 1e300, -np.inf)


def filled(vector, value):
    """Outputs that hold nothing else."""
    with np.errstate(over="ignore"):
        wanted = vector.answers.outputs
        return {n: np.full(v.shape, value).astype(v.dtype) for n, v in wanted.items()}


@pytest.mark.parametrize("value", GARBAGE)
def test_outputs_of_nothing_but_garbage_are_located(value):
    """An output that nobody wrote to, in every dtype and case: no exception, the first step."""
    for vector in core().values():
        located = localise(vector, filled(vector, value))
        assert located is None or located.of >= located.steps


def test_outputs_of_nothing_but_garbage_are_judged():
    """Every case by one such number after another, with all else that a verdict says."""
    for vector, value in zip(core().values(), itertools.cycle(GARBAGE), strict=False):
        got = filled(vector, value)
        assert explained_verdict(vector, got).localisation == localise(vector, got)


def test_exact_cases_are_located_by_the_standard_profile():
    """States that are wrong already are no longer dyadic, and a right step from them rounds."""
    (vector,) = vectors_of(
        "{op: RNN-14, profile: exact, sizes: {seq_length: 4, batch_size: 2, input_size: 3,"
        " hidden_size: 3}, attributes: {activations: [Relu]}, inputs: {X: {dyadic: [2, 2]},"
        " W: {dyadic: [2, 2]}, R: {dyadic: [1, 2]}}}"
    )
    recurrence = vector.recurrence
    spoilt = walked(recurrence, spoilt_at((0, 1, 1, 2), amount=0.1))

    found = localise(vector, outputs_of(vector, spoilt))

    assert (found.t, found.batch, found.unit, found.steps) == (1, 1, 2, 1)


def test_states_may_be_carried_more_exactly_than_they_are_stored():
    """Float16 outputs of a float32 implementation: each step starts from what was not rounded."""
    recurrence = made("RNN", T=8, N=4, H=100, dtype="float16", scale=0.15, activations=["Affine"])
    recurrence = replace(recurrence, R=recurrence.R * np.float16(0.5))
    Y = WIDE["blas"].run(recurrence).Y

    assert checked(recurrence, Y).margin.max() < 0.7


def test_an_lstms_cells_carry_their_errors():
    """Stored in float16 at each of 200 steps with the forget gate open, they drift from ours."""
    recurrence = made("LSTM", T=200, N=4, H=3, dtype="float16", scale=0.3)
    Wb = recurrence.Wb.copy()
    Wb[:, 2] = 9
    recurrence = replace(recurrence, Wb=Wb, X=recurrence.X * np.float16(0.1))
    Y = WIDE["term-by-term"].run(recurrence).Y

    assert checked(recurrence, Y).margin.max() < 0.7


def test_a_state_too_large_to_be_stored_says_nothing_of_the_next():
    """70000 is infinite in float16, half of it is not: an implementation may have kept it."""
    base = made("RNN", T=3, N=1, I=1, H=1, dtype="float16", activations=["Affine"])
    one, X = np.ones_like(base.R), np.zeros_like(base.X)
    X[0] = 3.5e4
    recurrence = replace(base, W=one * 2, R=one / 2, Wb=None, Rb=None, initial=(None,), X=X)
    Y = backend_named("numpy").run(recurrence, Compute.FLOAT64).Y

    assert Y.ravel().tolist() == [np.inf, 35008, 17504]
    assert checked(recurrence, Y).margin.max() < 1


def test_another_profile_judges_steps_too():
    """Sums in float16 are right by the profile that says so, and wrong steps by the pack's."""
    recurrence = made("RNN", T=6, N=2, I=300, H=40, dtype="float16", scale=0.06)
    Y = NARROW["dtype-accumulator"].run(recurrence).Y

    assert checked(recurrence, Y, PROFILES["dtype-accumulator"]).margin.max() < 0.7
    assert checked(recurrence, Y).margin.max() > 0.7


def test_a_rule_says_what_differs():
    """By tolerances that accept a slow drift nothing is located."""
    vector = core()["gru_14_initial"]
    got = {n: v + np.float32(1e-3) for n, v in vector.answers.outputs.items()}

    assert localise(vector, got, Rule(profile="exact")) is not None


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_no_false_alarm_on_emulated_implementations(dtype):
    """On any node fit to judge by, no step of theirs reaches 0.7 of what it may be off."""
    with_gates = [row for row in OPERATORS.values() if row.cell.projects and row.has("seq_length")]
    operators = tuple(row.name for row in with_gates if dtype in row.dtypes)
    worst, judged = [0.0], [0]

    @examples(60)
    @given(nodes(dtypes=(dtype,), operators=operators))
    def check(node):
        recurrence = bound(node)
        golden = backend_named("numpy").run(recurrence, Compute.FLOAT64)
        tolerance = derive(recurrence, STANDARD, golden)
        pairs = list(zip((golden.Y, *golden.last), (tolerance.Y, *tolerance.last), strict=True))
        finite = all(np.isfinite(g.astype(np.float64)).all() for g, _ in pairs)
        if not finite or any(conditioning_problem(*pair) for pair in pairs):
            return
        for name, implementation in WIDE.items():
            if not golden.Y.size or (dtype == "float64" and name == "backwards"):
                continue  # its softplus is float32's
            found = checked(recurrence, implementation.run(recurrence).Y)
            worst[0] = max(worst[0], found.margin.max())
            judged[0] += found.margin.size

    check()
    assert judged[0] > part_of(800)
    assert worst[0] < 0.7


def test_no_false_alarm_on_onnxruntime():
    """What it gets right has no wrong step; that is most of the pack."""
    checked = 0
    for vector in core().values():
        if vector.record.dtype != "float32" or "Y" not in vector.record.outputs:
            continue
        try:
            session = onnxruntime.InferenceSession(vector.model, quiet())
            names = [output.name for output in session.get_outputs()]
            got = dict(zip(names, session.run(None, dict(vector.fed)), strict=True))
        except Exception:  # noqa: BLE001, S112 -- it raises its own kinds for what it refuses
            continue
        if judge(vector, ran(got)).verdict == "pass":
            assert localise(vector, got) is None
            checked += 1

    assert checked > 40


def evaluated(recurrence):
    """Return its result in float64."""
    return backend_named("numpy").run(recurrence, Compute.FLOAT64)


def path_of(recurrence, Y, d=0):
    """Return one direction of the states of Y."""
    return Trajectory.of(of_directions(recurrence, slice(d, d + 1)), Y[:, d : d + 1], hostile=False)


def cells(path, t):
    """Return the C [D, N, H] of an LSTM that its known h give before a step."""
    found = forced(lanes_of(path.recurrence), ENGINE, path.X[:, :t], path.H[:, :t])
    return found[1][0]


def test_from_right_states_each_step_gives_the_next():
    """On any node, in every direction; the backend carries its states, here each is given."""

    @examples(100)
    @given(nodes(dtypes=("float64",)))
    def agree(node):
        recurrence = replace(bound(node), wants_Y=True)  # which a cell does not ask for
        Y = evaluated(recurrence).Y
        T, D, N, _ = Y.shape
        lengths = np.full(N, T) if recurrence.lengths is None else recurrence.lengths
        live = np.arange(T)[:, None] < lengths
        for d in range(D):
            path = path_of(recurrence, Y, d)
            wanted = in_order(Y[:, d], recurrence.lengths, recurrence.directions[d])
            with np.errstate(invalid="ignore", over="ignore"):
                assert np.allclose(
                    predicted(path)[0][live], wanted[live], rtol=1e-9, atol=1e-12, equal_nan=True
                )

    agree()


def test_cells_are_those_of_the_backend():
    """C is not among the outputs but for its last; every one is carried right."""
    recurrence = recurrence_of("LSTM", dtype="float64", peepholes=True, clip=0.7)
    path = path_of(recurrence, evaluated(recurrence).Y)

    for t in range(1, 5):
        last = evaluated(replace(recurrence, X=recurrence.X[:t])).last[1]
        assert np.allclose(cells(path, t)[0], last[0], rtol=1e-12)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_first_step_may_be_off_as_the_whole_recurrence_may(kind, dtype):
    """Nothing comes before it: the tolerance is the derived one."""
    recurrence = recurrence_of(kind, dtype=dtype)
    Y = evaluated(recurrence).Y

    alone = step_tolerances(path_of(recurrence, Y), STANDARD)[0, 0]

    assert np.array_equal(round_up(alone), derive(recurrence, STANDARD).Y[0, 0])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_later_steps_are_judged_more_narrowly_than_the_whole(kind):
    """They carry no error of the steps before; an LSTM's do in C."""
    recurrence = recurrence_of(kind, T=12, scale=0.7)
    Y = evaluated(recurrence).Y

    alone = step_tolerances(path_of(recurrence, Y), STANDARD)[0]
    whole = derive(recurrence, STANDARD).Y[:, 0].astype(np.float64)

    assert (alone <= whole).all()
    assert np.median(alone[4:] / whole[4:]) < (0.98 if kind == "LSTM" else 0.85)
    assert (alone > 0).all()


def test_states_may_have_been_carried_more_exactly_than_they_were_stored():
    """A step from a stored state may be off by its rounding more than one from an initial state."""
    recurrence = recurrence_of("RNN", T=2, H=60, dtype="float16", activations=["Affine"], scale=0.1)
    Y = evaluated(recurrence).Y
    alone = replace(recurrence, X=recurrence.X[1:], initial=(Y[0],))

    found = step_tolerances(path_of(recurrence, Y), STANDARD)[0, 1]
    exact = step_tolerances(path_of(alone, Y[1:]), STANDARD)[0, 0]

    entering = 6 / np.sqrt(3) * 2.0**-11 * np.abs(Y[0, 0].astype(np.float64))
    through = np.sqrt(entering**2 @ (recurrence.R[0, 0].astype(np.float64) ** 2).T)
    assert np.allclose(found**2 - exact**2, through**2, rtol=1e-2)


def test_an_lstms_steps_carry_the_errors_of_its_cells():
    """With its forget gate open, a step after 200 others is more off than one from a known C."""
    recurrence = recurrence_of("LSTM", T=200, dtype="float64", scale=0.3)
    Wb = recurrence.Wb.copy()
    Wb[:, 2] = 9
    recurrence = replace(recurrence, Wb=Wb, X=recurrence.X * 0.1)
    Y = evaluated(recurrence).Y
    path = path_of(recurrence, Y)
    known = replace(recurrence, X=recurrence.X[-1:], initial=(Y[-2], cells(path, 199)))

    found = step_tolerances(path, STANDARD)[0, -1]
    exact = step_tolerances(path_of(known, Y[-1:]), STANDARD)[0, 0]

    assert (found / exact).max() > 3  # of a unit whose h(C) is not saturated
    assert (found > exact).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_absurd_states_raise_nothing(kind, value):
    """Tolerances are never NaN; steps far from the absurd one keep theirs."""
    recurrence = recurrence_of(kind, T=6, dtype="float64")
    Y = evaluated(recurrence).Y
    clean = step_tolerances(path_of(recurrence, Y), STANDARD)
    Y = Y.copy()
    Y[2, 0, 1, 3] = value

    found = step_tolerances(path_of(recurrence, Y), STANDARD)

    assert not np.isnan(found).any()
    assert np.allclose(found[:, :, [0, 2]], clean[:, :, [0, 2]], rtol=1e-6)


def test_what_overflows_is_infinite():
    """A step beyond the largest float16 gives infinity there, as the outputs have it."""
    recurrence = recurrence_of("RNN", dtype="float16", activations=["Affine"])
    recurrence = replace(recurrence, X=np.full_like(recurrence.X, 6e4), W=recurrence.W * 0 + 1)
    Y = evaluated(recurrence).Y

    assert np.isinf(Y[0]).all()
    assert np.array_equal(predicted(path_of(recurrence, Y))[0, 0], Y[0, 0].astype(np.float64))


@pytest.mark.parametrize(
    ("step", "said"), [(0, "4 of 4 steps differ"), (3, "1 of 4 steps differs")]
)
def test_the_first_step_of_a_linear_recurrence_that_differs_is_named(step, said):
    """As the first of a chunk; what a step reads is not known apart from the states before it."""
    small = "sizes: {seq_length: 4, batch_size: 2, q_num_heads: 2, kv_num_heads: 2, key_size: 3"
    (vector,) = vectors_of(f"{{op: LinearAttention-27, {small}, value_size: 3}}}}")
    outputs = {name: values.copy() for name, values in vector.answers.outputs.items()}
    outputs["output"][1, step:, 5] += 1
    found = explained_verdict(vector, outputs).localisation

    assert found.sentence == f"first wrong at t={step}; {said}"
    assert (found.t, found.steps, found.of) == (step, 4 - step, 4)
