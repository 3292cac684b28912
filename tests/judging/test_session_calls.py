"""Verdicts on cases that one session is asked more than once."""

from dataclasses import replace

import numpy as np
import pytest
import second_calls
from judged import ran
from second_calls import right, twice

from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.explaining.explanation import explained
from rnncli.judging.session_calls import SEVERITY, SessionCalls, judge_session
from rnncli.packs.vector import Attempt, Status

LSTM = "lstm_14_given"


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


@pytest.mark.parametrize("case_id", ["rnn_14_fill", "gru_14_fill", LSTM])
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


def test_what_is_wrong_alone_is_not_stale():
    """It differs, and the data set is named."""
    found = judged(second_calls.WrongAtSecond, twice()[LSTM])

    assert (found.verdict, found.data_set) == (Verdict.DIFFERS, 1)


def test_the_first_data_set_is_asked_again():
    """A session that only the way back confuses."""
    vector = twice()[LSTM]
    off = {name: values + 1 for name, values in right(vector).items()}
    attempts = [ran(right(vector)), ran(right(vector.later[0])), ran(off)]
    found = verdict_on(SessionCalls(vector, (0, 1, 0), attempts, lambda _: None))

    assert (found.verdict, found.data_set) == (Verdict.STALE, 0)
    assert found.message.startswith("call 3 of 3: after another call of the same session, Y, Y_h")


@pytest.mark.parametrize("status", [Status.REFUSED, Status.CRASHED, Status.TIMEOUT])
def test_a_later_call_that_gives_nothing_is_stale_where_it_is_right_alone(status):
    """And says what it said."""
    vector = twice()[LSTM]
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
    vector = twice()[LSTM]
    attempts = [ran(right(vector)), Attempt(status)]
    found = verdict_on(SessionCalls(vector, (0, 1), attempts))

    assert (found.verdict, found.data_set) == (verdict, 1)


def test_every_verdict_has_its_place():
    """None is worse than every other by accident."""
    assert {*SEVERITY} == {*Verdict}


def test_where_the_first_call_differs_that_is_said():
    """Although the second is farther off; nobody is asked anything again."""
    vector = twice()[LSTM]
    near, far = (
        [ran({n: v + off for n, v in right(each).items()}) for each in vector.calls]
        for off in (np.float32(0.1), np.float32(1))
    )
    attempts = [near[0], far[1], near[0]]
    found = verdict_on(SessionCalls(vector, (0, 1, 0), attempts, pytest.fail))

    assert (found.verdict, found.data_set) == (Verdict.DIFFERS, 0)


def test_of_calls_that_pass_the_one_farthest_off_is_told_of():
    """Its margin is that of the case."""
    vector = twice()[LSTM]
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
