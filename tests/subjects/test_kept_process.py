"""Claims about runtimes in processes of their own: whatever they do, the run goes on."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from support import hostile_runtimes
from support.second_calls import twice

from rnncli.errors import InvalidRequest, Unsupported
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.comparing.verdict import Verdict
from rnncli.judging.judgement import judge_session
from rnncli.limits import Limits
from rnncli.packs.vector import Status
from rnncli.subjects.kept_process import IsolatedSubject
from rnncli.subjects.runtimes import subject_named
from rnncli.verifying.case_judging import session_calls_of

CORE = Path(__file__).parents[2] / "vectors" / "core"

MIB = 1 << 20
PATIENT = 120  # seconds, of which a machine with much to do may need some

HOSTILE = "support.hostile_runtimes:Hostile"


@pytest.fixture(scope="module")
def hostile():
    """One subject for all that does not take its time."""
    subject = IsolatedSubject("hostile", HOSTILE, limits=Limits(timeout=PATIENT))
    yield subject
    subject.close()


def answered(attempt):
    """Whether an attempt is that of a runtime in good health."""
    return attempt.status is Status.RAN and np.array_equal(
        attempt.outputs["Y"], hostile_runtimes.NUMBERS
    )


# Of those that say what happened: the signal, the exit code or the fault of the answer, and the
# last word of the process.
MESSAGES = {
    "segfault": "died of SIGSEGV",
    "abort": "died of SIGABRT: terminate called: [31mout of luck",
    "leave": "ended with exit code 7",
    "exit_politely": "ended with exit code 1: enough",
    "half": "ended with exit code 0",
    "answer_another": "gave garbage: the answer to 12345, not 1",
    "rejoice": "gave garbage: answered 'rejoiced'",
    "returns_a_list": "gave garbage: returned list, not a dict of outputs by name",
    "output_is_none": "gave garbage: output 'Y' is NoneType, not a tensor",
}


@pytest.mark.parametrize("way", hostile_runtimes.CRASHES)
def test_a_crash_is_a_verdict_and_the_next_vector_runs(hostile, called, way):
    """Dying and writing what is no answer concern one vector only, and the message says what."""
    attempt = hostile.attempt(called(way))

    assert attempt.status is Status.CRASHED
    assert attempt.message.isprintable()
    assert attempt.message
    assert way not in MESSAGES or attempt.message == MESSAGES[way]
    assert answered(hostile.attempt(called("good")))


def test_what_is_said_is_said_of_a_crash():
    """A way by another name would be compared with nothing."""
    assert {*MESSAGES} <= {*hostile_runtimes.CRASHES}


def test_a_process_that_closes_its_line_is_ended(called, family, monkeypatch):
    """It lives, but nothing can come from it any more."""
    monkeypatch.setattr("rnncli.supervision.connection.SECONDS_TO_BE_BURIED", 0.2)
    subject = IsolatedSubject("hostile", HOSTILE)
    try:
        attempt = subject.attempt(called("close"))
        assert attempt.status is Status.CRASHED
        assert attempt.message == "gave garbage: fell silent without an answer"
        assert answered(subject.attempt(called("good")))
    finally:
        subject.close()
    assert family.is_gone()


def test_an_answer_too_many_is_not_taken_for_the_next(hostile, called):
    """The next vector gets its own, from a new process if need be."""
    attempt = hostile.attempt(called("answer_twice"))

    assert attempt.status is Status.RAN
    assert answered(hostile.attempt(called("good")))
    assert answered(hostile.attempt(called("good")))


@pytest.mark.parametrize("way", hostile_runtimes.REFUSALS)
def test_an_exception_is_a_refusal(hostile, called, way):
    """Its first line is the message, fit for a terminal, and the process is kept."""
    attempt = hostile.attempt(called(way))

    assert attempt.status is Status.REFUSED
    assert attempt.message == hostile_runtimes.REFUSALS[way][1].strip()


def test_a_hang_is_a_timeout_and_the_next_vector_runs(called, family):
    """The process is ended, even one that is stopped and deaf."""
    subject = IsolatedSubject("hostile", HOSTILE, limits=Limits(timeout=PATIENT))
    try:
        assert answered(subject.attempt(called("good")))
        for way in hostile_runtimes.HANGS:
            subject.timeout = 0.3
            assert subject.attempt(called(way)).status is Status.TIMEOUT, way
            subject.timeout = PATIENT
            assert answered(subject.attempt(called("good"))), way
    finally:
        subject.close()
    assert family.is_gone()


@pytest.mark.parametrize("way", hostile_runtimes.HOGS)
def test_a_memory_hog_is_a_crash_and_the_next_vector_runs(called, family, way):
    """Memory counts wherever it is taken, also in a child of the process."""
    limits = Limits(max_memory=400 * MIB)
    subject = IsolatedSubject("hostile", HOSTILE, limits=limits)
    try:
        attempt = subject.attempt(called(way))
        assert attempt.status is Status.CRASHED
        assert "MiB of memory, more than it may" in attempt.message
        assert answered(subject.attempt(called("good")))
    finally:
        subject.close()
    assert family.is_gone()


def test_what_a_runtime_starts_ends_with_it(called, family):
    """Children, sessions of their own and orphans that hold the line are all ended."""
    subject = IsolatedSubject("hostile", HOSTILE)
    try:
        assert answered(subject.attempt(called("forks")))
        assert family.has(5)
        assert subject.attempt(called("forks_and_dies")).message == "died of SIGSEGV"
        assert answered(subject.attempt(called("good")))
    finally:
        subject.close()
    assert family.is_gone()


def test_what_a_runtime_writes_does_not_reach_our_streams(called, capfd):
    """Megabytes on both streams are read and forgotten."""
    subject = IsolatedSubject("hostile", HOSTILE)
    try:
        assert answered(subject.attempt(called("talks")))
    finally:
        subject.close()
    assert capfd.readouterr() == ("", "")


def test_a_runtime_that_cannot_run_refuses_every_call(called):
    """Alone and in a session, which ends there."""
    subject = IsolatedSubject("idle", "support.hostile_runtimes:Idle")
    try:
        attempts = [subject.attempt(called("good")), *subject.session([called("good")] * 2)]
    finally:
        subject.close()
    assert [attempt.status for attempt in attempts] == [Status.REFUSED] * 2


def test_a_verdict_does_not_depend_on_the_vectors_before(called):
    """Where a process dies that had answered before, a new one decides."""
    subject = IsolatedSubject("grudge", "support.hostile_runtimes:Grudge")
    try:
        attempts = [subject.attempt(called("good")) for _ in range(3)]
    finally:
        subject.close()
    assert all(map(answered, attempts))


def test_the_description_comes_from_the_process():
    """Threads are those asked for."""
    subject = IsolatedSubject("hostile", HOSTILE, limits=Limits(threads=3))
    try:
        assert subject.describe() == {"version": "6.66", "told": "3", "threads": "3"}
    finally:
        subject.close()


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (
            "support.hostile_runtimes:needs_what_is_missing",
            "'it' does not import: No module named 'no_such_package'; do that; it is hers",
        ),
        (
            "support.hostile_runtimes:dies_at_birth",
            "'it' does not start: died of SIGABRT; it is hers",
        ),
        (
            "support.hostile_runtimes:Silent",
            "'it' does not start: ended with exit code 1: TypeError: describe() returned NoneType",
        ),
    ],
)
def test_a_runtime_that_cannot_be_asked_at_all_is_an_error(called, family, where, sentence):
    """It is no verdict on any vector."""
    subject = IsolatedSubject("it", where, install="do that", origin="it is hers")

    for ask in (subject.describe, lambda: subject.attempt(called("good"))):
        with pytest.raises(Unsupported) as error:
            ask()
        assert str(error.value).startswith(sentence)
    assert family.is_gone()


def test_a_limit_that_is_too_small_to_start_is_an_error(called, family):
    """Every vector would say the same."""
    subject = IsolatedSubject("hostile", HOSTILE, limits=Limits(max_memory=MIB))

    with pytest.raises(Unsupported, match="'hostile' does not start: took"):
        subject.attempt(called("good"))
    assert family.is_gone()


def test_an_unknown_setting_is_an_error():
    """Nothing that a user asks for is ignored."""
    subject = IsolatedSubject(
        "numpy", "rnncli.subjects.own_backend:BackendRuntime", settings={"computer": "x"}
    )

    with pytest.raises(InvalidRequest, match="did you mean 'compute'"):
        subject.describe()


JUDGE = """
import sys
sys.path[:] = {path!r}
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.judging.judgement import judge_session
from rnncli.judging.comparing.verdict import Verdict
from rnncli.limits import Limits
from rnncli.subjects.kept_process import IsolatedSubject
from rnncli.subjects.runtimes import subject_named
from rnncli.packs.pack import open_pack
from rnncli.packs.vector import Vector
from msgspec.structs import replace

pack = open_pack({core!r})
read = pack.read(pack.case("rnn_7_plain"))
subject = IsolatedSubject("hostile", {HOSTILE!r}, limits=Limits(timeout=1000))
def called(name):
    record = replace(read.record, id=name)
    return Vector(name, read.model, read.inputs, (), read.answers, {{}}, record)

subject.attempt(called("forks"))
print("ready", flush=True)
try:
    subject.attempt(called("sleep"))
finally:
    print("left", flush=True)
"""


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGKILL, ""), (signal.SIGTERM, ""), (signal.SIGINT, "left\n")]
)
def test_nothing_outlives_the_judge(family, number, said):
    """Killed, told to end or interrupted while a runtime hangs: its processes go with it."""
    text = textwrap.dedent(JUDGE).format(path=sys.path, core=str(CORE), HOSTILE=HOSTILE)
    with subprocess.Popen(
        [sys.executable, "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as judge:
        assert judge.stdout.readline() == "ready\n"
        time.sleep(0.05)
        judge.send_signal(number)
        assert judge.stdout.read() == said
        assert judge.wait() == -number
    assert family.is_gone()


@pytest.mark.parametrize(
    ("runtime", "verdict", "words"),
    [
        ("Right", Verdict.PASS, ""),
        (
            "KeepsPadding",
            Verdict.STALE,
            "call 2 of 3: after another call of the same session, Y is",
        ),
        ("KeepsLengths", Verdict.STALE, "call 2 of 3: after another call of the same session, Y"),
        ("KeepsForTheProcess", Verdict.STALE, "call 2 of 3: "),
        ("KeepsWithoutSessions", Verdict.STALE, "call 2 of 3: "),
        ("RefusesAgain", Verdict.STALE, "it is refused: ValueError: busy; alone it is right"),
        ("DiesAgain", Verdict.STALE, "it crashes: died of SIGABRT; alone it is right"),
        ("WrongAtSecond", Verdict.DIFFERS, ""),
    ],
)
def test_a_session_is_kept_over_the_calls_of_a_case(runtime, verdict, words):
    """What it keeps of one call to the next is stale; alone is a process that was asked nothing."""
    limits = Limits(timeout=PATIENT)
    subject = IsolatedSubject(runtime, f"support.second_calls:{runtime}", limits=limits)
    try:
        found = judge_session(
            session_calls_of(subject, twice()["lstm_14_given"]), PACK_RULE
        ).verdict
    finally:
        subject.close()

    assert (found.verdict, found.data_set) == (verdict, 0 if verdict == "pass" else 1)
    assert words in found.message


@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "tract", "onnx-reference"])
def test_a_runtime_is_asked_again_in_its_session(name):
    """Two data sets and the first again; the answers to the first are the same."""
    vector = twice()["lstm_14_clip"]
    try:
        subject = subject_named(name)
    except Unsupported as missing:
        pytest.skip(str(missing))
    try:
        session = session_calls_of(subject, vector)
        alone = [subject.alone(each) for each in vector.calls]
    finally:
        subject.close()

    assert [attempt.status for attempt in session.attempts] in (["ran"] * 3, ["refused"])
    for attempt, k in zip(session.attempts, session.order, strict=False):
        for output, values in attempt.outputs.items():
            assert np.array_equal(values, alone[k].outputs[output])
