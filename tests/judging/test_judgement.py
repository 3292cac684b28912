"""Verdicts on attempts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support import second_calls
from support.judged import computed, core, explained_verdict, ran, vectors_of
from support.second_calls import SHAPES, right, twice
from support.small_suite import small_suite
from support.tables import every

from rnncli.files.described import jsonable
from rnncli.generating.production import make_vectors
from rnncli.judging.comparing.rule import PACK_RULE, Rule
from rnncli.judging.comparing.verdict import MARGIN_EDGES, Verdict
from rnncli.judging.explaining.hypotheses import explained
from rnncli.judging.judgement import SEVERITY, SessionCalls, judge, judge_session
from rnncli.numerics import ulp_distance
from rnncli.packs.vector import Answers, Attempt, Status

LSTM = "lstm_14_initial"
TOLERANCE = 2.0**-8


def dyadic(case_id=LSTM):
    """A vector whose answers and tolerances make every multiple of a tolerance exact."""
    vector = core()[case_id]
    answers = Answers(
        {name: np.rint(values * 64) / 64 for name, values in vector.answers.outputs.items()},
        {
            name: np.full(values.shape, TOLERANCE, np.float32)
            for name, values in vector.answers.outputs.items()
        },
    )
    return replace(vector, answers=answers, alternatives={})


def outputs_of(vector):
    """Copies of what must come out."""
    return {name: values.copy() for name, values in vector.answers.outputs.items()}


def moved(vector, name, index, tolerances):
    """Outputs with one element off by so many tolerances."""
    found = outputs_of(vector)
    found[name][index] += tolerances * TOLERANCE
    return found


@every("case_id", core())
def test_goldens_pass_with_margin_0(case_id):
    """Nothing differs, nothing is worst, every element is in the first bin."""
    vector = core()[case_id]
    found = judge(vector, ran(vector.answers.outputs, seconds=1.5))

    assert (found.id, found.verdict, found.margin) == (case_id, Verdict.PASS, 0)
    assert (found.seconds, found.message, found.fails) == (1.5, "", False)
    assert found.localisation is found.error_map is None
    assert [output.name for output in found.outputs] == vector.record.outputs
    for output in found.outputs:
        assert (output.verdict, output.differing, output.worst) == (Verdict.PASS, 0, None)
        assert (output.max_abs, output.max_ulp) == (0, 0)
        assert output.histogram == (output.size, *[0] * len(MARGIN_EDGES))


@pytest.mark.parametrize("tolerances", [0.25, 0.5, 1, 1.5, 4, 250])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_error_of_k_tolerances_has_margin_k(tolerances, sign):
    """Up to 1 it passes; the worst element is where it was put."""
    vector, index = dyadic(), (2, 0, 1, 3)
    found = judge(vector, ran(moved(vector, "Y", index, sign * tolerances)))
    output = found.outputs[0]

    passes = tolerances <= 1
    assert found.verdict is (Verdict.PASS if passes else Verdict.DIFFERS)
    assert found.margin == output.margin == tolerances
    assert output.differing == (not passes)
    assert output.max_abs == tolerances * TOLERANCE
    wanted = float(vector.answers.outputs["Y"][index])
    assert output.worst.index == index
    assert output.worst.got == wanted + sign * tolerances * TOLERANCE
    assert (output.worst.wanted, output.worst.tolerance) == (wanted, TOLERANCE)
    assert [each.verdict for each in found.outputs[1:]] == [Verdict.PASS, Verdict.PASS]


@pytest.mark.parametrize(
    ("wide", "verdict"),
    [
        (0.01, Verdict.PASS),
        (0.3, Verdict.SKIPPED),
        (1.0, Verdict.SKIPPED),
        (math.inf, Verdict.SKIPPED),
        (math.nan, Verdict.SKIPPED),
    ],
)
def test_a_packs_own_tolerances_are_doubted_where_zeros_would_pass(wide, verdict):
    """A vector made in Python may have no wider ones than `generate` allows."""
    vector = dyadic()
    tolerances = {name: t + np.float32(wide) for name, t in vector.answers.tolerances.items()}
    altered = replace(vector, answers=Answers(vector.answers.outputs, tolerances))
    found = judge(altered, ran(outputs_of(altered)))

    assert found.verdict is verdict
    assert found.message.startswith("the pack's own tolerance cannot judge" if wide != 0.01 else "")


@pytest.mark.parametrize(
    "given", [{"atol": 1e300}, {"rtol": 1e9}, {"max_ulp": 1e30}, {"atol": {"Y": 2}}]
)
def test_given_tolerances_are_doubted_where_zeros_would_pass(given):
    """Whoever types a digit too many is told."""
    vector = dyadic()
    rule = Rule(**given)
    found = judge(vector, ran(vector.answers.outputs), rule)

    assert found.verdict is Verdict.SKIPPED
    assert "the given tolerance cannot judge this: Y is ill-conditioned" in found.message


@pytest.mark.parametrize("given", [{"atol": 0.2}, {"rtol": 0.9}, {"max_ulp": 1e6}])
def test_wide_tolerances_can_be_given(given):
    """A quantised kernel is judged by its own standards."""
    vector = dyadic()
    rule = Rule(**given)

    assert judge(vector, ran(vector.answers.outputs), rule).verdict is Verdict.PASS


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_every_number_is_what_a_loop_over_elements_finds(dtype):
    """Counts, margins, distances and histogram, on errors from 0 to thousands of tolerances."""
    (vector,) = vectors_of(
        f"{{op: GRU-22, dtype: {dtype}, attributes: {{direction: bidirectional}},"
        " sizes: {seq_length: 4, batch_size: 3, input_size: 3, hidden_size: 5},"
        " inputs: {sequence_lens: lengths}}"
    )
    generator = np.random.default_rng(1)
    got = {}
    for name, values in vector.answers.outputs.items():
        factor = 10.0 ** generator.uniform(-3, 4, values.shape) * generator.integers(0, 2)
        off = factor * vector.answers.tolerances[name]
        got[name] = (values.astype(np.float64) + off).astype(values.dtype)
    got["Y"].reshape(-1)[7] = np.nan

    for output in judge(vector, ran(got)).outputs:
        g, w = got[output.name].reshape(-1), vector.answers.outputs[output.name].reshape(-1)
        tolerance = vector.answers.tolerances[output.name].reshape(-1)
        errors = [
            0.0 if a == b else math.inf if math.isnan(a) else abs(a - b)
            for a, b in zip(map(float, g), map(float, w), strict=True)
        ]
        margins = [
            0.0 if e == 0 else e / float(t) if t else math.inf
            for e, t in zip(errors, tolerance, strict=True)
        ]
        assert output.size == len(errors)
        assert output.max_abs == max(errors)
        assert output.margin == max(margins)
        assert output.differing == sum(
            not e <= float(t) for e, t in zip(errors, tolerance, strict=True)
        )
        assert output.max_ulp == ulp_distance(g, w).max()
        edges = zip([-1.0, *MARGIN_EDGES], [*MARGIN_EDGES, math.inf], strict=True)
        assert output.histogram == tuple(
            sum(low < m <= high for m in margins) for low, high in edges
        )
        if max(errors):
            position = np.ravel_multi_index(
                output.worst.index, vector.answers.outputs[output.name].shape
            )
            assert margins[position] == max(margins)


def test_the_worst_of_what_must_be_exact_is_the_farthest():
    """Several margins are infinite; the one that is farthest off is shown."""
    vector = core()["lstm_14_ragged"]
    padding = np.argwhere(vector.answers.tolerances["Y"] == 0)
    near, far = map(tuple, padding[[0, -1]])
    found = outputs_of(vector)
    found["Y"][near], found["Y"][far] = 1e-3, 5.0

    output = judge(vector, ran(found)).outputs[0]

    assert (output.margin, output.differing) == (math.inf, 2)
    assert output.worst.index == far
    assert output.worst.tolerance == 0


@pytest.mark.parametrize(("value", "verdict"), [(-0.0, Verdict.PASS), (1e-38, Verdict.DIFFERS)])
def test_padding_must_be_zero_of_either_sign(value, verdict):
    """Tolerance 0 means exactly equal."""
    vector = core()["gru_14_ragged"]
    found = outputs_of(vector)
    found["Y"][vector.answers.tolerances["Y"] == 0] = value

    assert judge(vector, ran(found)).verdict is verdict


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_differs_infinitely(value):
    """One NaN among right values is a failure that no tolerance covers."""
    vector = core()[LSTM]
    found = outputs_of(vector)
    found["Y_c"][0, 2, 4] = value

    verdict = judge(vector, ran(found))

    assert (verdict.verdict, verdict.margin) == (Verdict.DIFFERS, math.inf)
    assert verdict.outputs[2].worst.index == (0, 2, 4)
    assert jsonable(verdict)["outputs"][2]["margin"] == "inf"


def test_nan_is_matched_by_nan_only():
    """A vector of NaN passes with them, and differs where they were swallowed."""
    (vector,) = vectors_of(
        "{op: RNN-14, sizes: {seq_length: 3, batch_size: 2, input_size: 2, hidden_size: 3},"
        " inputs: {X: {special: [7, nan]}}}"
    )
    assert 0 < np.isnan(vector.answers.outputs["Y"]).mean() < 1
    swallowed = {name: np.nan_to_num(t) for name, t in vector.answers.outputs.items()}

    assert judge(vector, ran(vector.answers.outputs)).verdict is Verdict.PASS
    assert judge(vector, ran(swallowed)).verdict is Verdict.DIFFERS


def without(outputs, name):
    """Leave one out."""
    return {each: values for each, values in outputs.items() if each != name}


Y, Y_H = "Y", "Y_h"
# what an implementation does to its outputs -> problems by output
WRONG = {
    "nothing": (
        lambda _: {},
        dict.fromkeys(("Y", "Y_h", "Y_c"), "is missing; there are no outputs"),
    ),
    "missing": (lambda o: without(o, Y_H), {Y_H: "is missing; the outputs are Y, Y_c"}),
    "extra": (lambda o: {"Z": o[Y], **o}, {"Z": "was not requested"}),
    "misnamed": (
        lambda o: {"y_h": o[Y_H], **without(o, Y_H)},
        {Y_H: "is missing; the outputs are y_h, Y, Y_c", "y_h": "was not requested"},
    ),
    "transposed": (
        lambda o: {**o, Y: o[Y].swapaxes(1, 2)},
        {Y: "shape is [4, 3, 1, 5], wanted [4, 1, 3, 5]"},
    ),
    "flat": (lambda o: {**o, Y: o[Y].reshape(-1)}, {Y: "shape is [60], wanted [4, 1, 3, 5]"}),
    "scalar": (lambda o: {**o, Y: np.float32(1)[None][0]}, {Y: "shape is [], wanted [4, 1, 3, 5]"}),
    "wide": (
        lambda o: {**o, Y: o[Y].astype(np.float64)},
        {Y: "dtype is float64, wanted float32; as float32, all values are right"},
    ),
    "wide and wrong": (
        lambda o: {**o, Y: o[Y].astype(np.float64) + 1},
        {Y: "dtype is float64, wanted float32; as float32, values differ"},
    ),
    "widest": (
        lambda o: {**o, Y: o[Y].astype(np.longdouble)},
        {Y: f"dtype is {np.dtype('g')}, wanted float32; as float32, all values are right"},
    ),
    "text": (lambda o: {**o, Y: o[Y].astype(str)}, {Y: "dtype is string, wanted float32"}),
    "dates": (
        lambda o: {**o, Y: np.zeros(o[Y].shape, "M8[s]")},
        {Y: "dtype is datetime64[s], wanted float32"},
    ),
    "objects": (
        lambda o: {**o, Y: np.full(o[Y].shape, None)},
        {Y: "dtype is string, wanted float32"},
    ),
    "records": (
        lambda o: {**o, Y: np.zeros(2, [("a", "f4")])},
        {Y: "dtype is [('a', '<f4')], wanted float32"},
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_compared_is_said_in_words(what):
    """Missing, extra, misnamed, misshapen, mistyped; the other outputs are judged as ever.

    No known bug is said to fit, since no value is wrong.
    """
    change, problems = WRONG[what]
    vector = core()[LSTM]
    found = explained_verdict(vector, change(outputs_of(vector)))

    assert (found.verdict, found.fits) == (Verdict.DIFFERS, {})
    assert {each.name: each.problem for each in found.outputs if each.problem} == problems
    for output in found.outputs:
        right = output.name not in problems
        assert output.verdict is (Verdict.PASS if right else Verdict.DIFFERS)
    assert found.error_map is None


def test_thousands_of_outputs_are_not_all_listed():
    """A message stays readable."""
    vector = core()[LSTM]
    many = {f"o{k}": np.zeros(1) for k in range(5000)}

    assert len(judge(vector, ran(many)).outputs[0].problem) < 80


def test_permuted_names_differ():
    """Y_h under the name of Y_c is a wrong value, not a missing one."""
    vector = core()[LSTM]
    outputs = outputs_of(vector)
    outputs["Y_h"], outputs["Y_c"] = outputs["Y_c"], outputs["Y_h"]

    found = judge(vector, ran(outputs))

    assert [each.verdict for each in found.outputs] == ["pass", "differs", "differs"]


def test_the_order_of_outputs_means_nothing():
    """They are known by their names."""
    vector = core()[LSTM]

    assert judge(vector, ran(reversed(outputs_of(vector).items()))).verdict is Verdict.PASS


WITH_READINGS = [case_id for case_id, vector in core().items() if vector.alternatives]


@every("case_id", WITH_READINGS)
def test_another_readings_answers_are_acceptable(case_id):
    """All of its outputs, within that reading's own tolerances; it is named, and no failure."""
    vector = core()[case_id]
    for reading, answers in vector.alternatives.items():
        found = judge(vector, ran(answers.outputs))

        assert (found.verdict, found.reading, found.fails) == (Verdict.ACCEPTABLE, reading, False)
        assert {(o.verdict, o.reading) for o in found.outputs} == {(Verdict.ACCEPTABLE, reading)}
        assert found.margin == 0


LITERAL = [
    case_id
    for case_id in WITH_READINGS
    if "recurrence=literal" in core()[case_id].alternatives
    and {"Y", "Y_h"} <= {*core()[case_id].record.outputs}
]


@pytest.mark.parametrize("case_id", LITERAL)
def test_half_a_reading_differs(case_id):
    """Y of one reading and the last states of another: no implementation reads like that."""
    vector = core()[case_id]
    mixed = {
        **vector.answers.outputs,
        "Y": vector.alternatives["recurrence=literal"].outputs["Y"],
    }

    found = judge(vector, ran(mixed))

    assert (found.verdict, found.reading) == (Verdict.DIFFERS, "")
    assert {output.reading for output in found.outputs} == {""}


def rejected():
    """The vector of the small suite that must be refused."""
    return next(iter(make_vectors([small_suite().entry("lstm_14_shape")])))


ENDS = [
    (Status.REFUSED, Verdict.REFUSED, Verdict.PASS),
    (Status.CRASHED, Verdict.CRASHED, Verdict.CRASHED),
    (Status.TIMEOUT, Verdict.TIMEOUT, Verdict.TIMEOUT),
    (Status.SKIPPED, Verdict.SKIPPED, Verdict.SKIPPED),
]


@pytest.mark.parametrize(("status", "valid", "invalid"), ENDS)
def test_how_an_attempt_ended_is_its_verdict(status, valid, invalid):
    """With its message; refusing is right only where it must be."""
    attempt = Attempt(status, message="no such thing", seconds=2.0)
    for vector, verdict in ((core()[LSTM], valid), (rejected(), invalid)):
        found = judge(vector, attempt)

        assert (found.verdict, found.message, found.seconds) == (verdict, "no such thing", 2.0)
        assert found.outputs == ()


def test_an_invalid_vector_that_ran_is_accepted():
    """Whatever came out; the message says what is wrong with it."""
    found = judge(rejected(), ran({"Y": np.zeros(3)}))

    assert (found.verdict, found.fails) == (Verdict.ACCEPTED, True)
    assert "W must be [1, 20, 3]" in found.message


def test_sound_implementations_pass():
    """What rounds otherwise is within the tolerances, with a margin above 0."""
    for vector in core().values():
        if vector.record.profile == "relative":  # this sigmoid is a tanh, not sound for that
            continue
        found = judge(vector, ran(computed(vector, implementation="in-pairs")))
        assert found.verdict is Verdict.PASS
        assert found.margin < 0.7


def test_a_case_that_differs_is_located():
    """Y is there, so the residual check says where it goes wrong."""
    vector = core()[LSTM]
    found = outputs_of(vector)
    found["Y"][1, 0, 2, 3] += 0.25

    located = explained_verdict(vector, found).localisation

    assert (located.t, located.direction, located.batch, located.unit) == (1, 0, 2, 3)


GIVEN = "lstm_14_given"


def copied(vector):
    """A vector whose inputs may be altered."""
    return replace(vector, inputs=dict(vector.inputs), later=())


def verdict_on(session):
    """The verdict on the calls of a session, explained."""
    return explained(judge_session(session, PACK_RULE))


def judged(runtime, vector):
    """The verdict on a runtime of this process, each of whose objects is a process."""
    session = runtime().open(vector)
    attempts = [ran(session(copied(vector.calls[k]))) for k in vector.call_order]

    def alone(asked):
        return ran(runtime().open(asked)(copied(asked)))

    return verdict_on(SessionCalls(vector, vector.call_order, attempts, alone))


@pytest.mark.parametrize("case_id", twice())
def test_what_is_right_at_every_call_passes(case_id):
    """With the largest margin of any."""
    assert judged(second_calls.Right, twice()[case_id]).verdict is Verdict.PASS


@pytest.mark.parametrize("case_id", ["rnn_14_fill", "gru_14_fill", GIVEN])
@pytest.mark.parametrize(
    ("runtime", "kept"),
    [
        (second_calls.KeepsPadding, "padding-of-call-before"),
        (second_calls.KeepsLengths, "lengths-of-call-before"),
    ],
)
def test_what_is_kept_between_calls_is_stale(runtime, kept, case_id):
    """It fails, with the call, the outputs, and what was kept instead of a mutant."""
    found = judged(runtime, twice()[case_id])

    assert (found.verdict, found.fails, list(found.fits)) == (Verdict.STALE, True, [kept])
    assert found.message.startswith("call 2 of 3: after another call of the same session, Y")
    assert found.message.endswith("; alone it is right")
    assert found.data_set == 1


@pytest.mark.parametrize("case_id", twice(SHAPES))
@pytest.mark.parametrize(
    ("runtime", "verdict"),
    [(second_calls.Right, Verdict.PASS), (second_calls.KeepsLongest, Verdict.STALE)],
)
def test_calls_of_more_and_fewer_steps_are_asked_of_one_session(runtime, verdict, case_id):
    """There and back, so that each size follows a larger and a smaller one."""
    vector = twice(SHAPES)[case_id]
    found = judged(runtime, vector)

    assert vector.call_order == (0, 1, 2, 1, 0)
    assert found.verdict is verdict, found.message
    assert found.message.startswith("call 2 of 5: " if verdict is Verdict.STALE else "")


def test_what_is_wrong_alone_is_not_stale():
    """It differs, and the data set is named."""
    found = judged(second_calls.WrongAtSecond, twice()[GIVEN])

    assert (found.verdict, found.data_set) == (Verdict.DIFFERS, 1)


def test_the_first_data_set_is_asked_again():
    """A session that only the way back confuses."""
    vector = twice()[GIVEN]
    off = {name: values + 1 for name, values in right(vector).items()}
    attempts = [ran(right(vector)), ran(right(vector.later[0])), ran(off)]
    found = verdict_on(SessionCalls(vector, (0, 1, 0), attempts, lambda _: None))

    assert (found.verdict, found.data_set) == (Verdict.STALE, 0)
    assert found.message.startswith("call 3 of 3: after another call of the same session, Y, Y_h")


def test_a_function_is_not_asked_alone_but_what_it_keeps_is_named():
    """Of its data sets only the first comes again, and is known to be right alone."""
    vector = twice()[GIVEN]
    session = second_calls.KeepsPadding().open(vector)
    attempts = [ran(session(copied(vector.calls[k]))) for k in vector.call_order]
    second = verdict_on(SessionCalls(vector, vector.call_order, attempts))
    attempts[1] = ran(right(vector.later[0]))
    third = verdict_on(SessionCalls(vector, vector.call_order, attempts))

    assert (second.verdict, second.data_set) == (Verdict.DIFFERS, 1)
    assert list(second.fits) == ["padding-of-call-before"]
    assert (third.verdict, third.data_set) == (Verdict.STALE, 0)


@pytest.mark.parametrize("status", [Status.REFUSED, Status.CRASHED, Status.TIMEOUT])
def test_a_later_call_that_gives_nothing_is_stale_where_it_is_right_alone(status):
    """And says what it said."""
    vector = twice()[GIVEN]
    attempts = [ran(right(vector)), Attempt(status, message="no luck")]
    found = verdict_on(SessionCalls(vector, (0, 1, 0), attempts, lambda asked: ran(right(asked))))

    assert found.verdict is Verdict.STALE
    assert "no luck; alone it is right" in found.message


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(Status.MISSING, Verdict.MISSING), (Status.CRASHED, Verdict.CRASHED)],
)
def test_calls_of_processes_of_their_own_are_never_stale(status, verdict):
    """Each is judged as it is; the worst is that of the case."""
    vector = twice()[GIVEN]
    attempts = [ran(right(vector)), Attempt(status)]
    found = verdict_on(SessionCalls(vector, (0, 1), attempts))

    assert (found.verdict, found.data_set) == (verdict, 1)


def test_every_verdict_has_its_place():
    """None is worse than every other by accident."""
    assert {*SEVERITY} == {*Verdict}


def test_where_the_first_call_differs_that_is_said():
    """Although the second is farther off; nobody is asked anything again."""
    vector = twice()[GIVEN]
    near, far = (
        [ran({n: v + off for n, v in right(each).items()}) for each in vector.calls]
        for off in (np.float32(0.1), np.float32(1))
    )
    attempts = [near[0], far[1], near[0]]
    found = verdict_on(SessionCalls(vector, (0, 1, 0), attempts, pytest.fail))

    assert (found.verdict, found.data_set) == (Verdict.DIFFERS, 0)


def test_of_calls_that_pass_the_one_farthest_off_is_told_of():
    """Its margin is that of the case."""
    vector = twice()[GIVEN]
    second = vector.later[0]
    off = {
        n: v + t / 2
        for (n, v), t in zip(
            second.answers.outputs.items(), second.answers.tolerances.values(), strict=True
        )
    }
    attempts = [ran(vector.answers.outputs), ran(off), ran(vector.answers.outputs)]
    found = verdict_on(SessionCalls(vector, (0, 1, 0), attempts, pytest.fail))

    assert (found.verdict, found.data_set, found.seconds) == (Verdict.PASS, 1, 0)
    assert 0.3 < found.margin < 0.7


def test_every_call_is_acceptable_by_the_same_reading():
    """An implementation that reads the specification one way, and then the other, is wrong."""
    vector = twice()["lstm_14_clip"]
    (reading, other), *_ = vector.alternatives.items()
    second = vector.later[0]
    both = [ran(other.outputs), ran(second.alternatives[reading].outputs), ran(other.outputs)]
    mixed = [ran(other.outputs), ran(second.answers.outputs), ran(other.outputs)]
    same, odd = (
        verdict_on(SessionCalls(vector, (0, 1, 0), attempts, lambda _: None))
        for attempts in (both, mixed)
    )

    assert (same.verdict, same.reading) == (Verdict.ACCEPTABLE, reading)
    assert (odd.verdict, odd.data_set) == (Verdict.DIFFERS, 1)
    assert odd.message.startswith(f"call 2 of 3: does not follow {reading}")


CONSTANT = """\
suite: constant
summary: Outputs of one number.
cases:
  zeros:
    op: GRU-14
    sizes: {seq_length: 2, batch_size: 2, input_size: 2, hidden_size: 3}
    outputs: [Y, Y_h]
    inputs: {X: zeros, %s}
"""


@every(
    "inputs, verdict", {"B: zeros": "skipped", "B: zeros, sequence_lens: [0, 0]": "pass"}.items()
)
def test_one_number_throughout_shows_nothing_unless_no_sequence_has_a_step(inputs, verdict):
    """A kernel that fills its outputs gives it, too; without a step zeros are what is specified."""
    (vector,) = make_vectors(small_suite(CONSTANT % inputs).entries)
    found = judge(vector, ran(vector.answers.outputs))

    assert found.verdict == verdict
    assert not any(output.size for output in found.outputs) or verdict == "skipped"
    assert ("one number throughout" in found.message) is (verdict == "skipped")
    assert judge(vector, ran({k: v + 1 for k, v in outputs_of(vector).items()})).fails
