"""Claims about contests: whatever an implementation does, the others are measured."""

import signal
import subprocess
import sys

import pytest
from support import families
from support.rivals import on_little_data

from rnncli.bench import workloads
from rnncli.bench.contest import ContestPlan, ContestTerms, contests
from rnncli.bench.contestants import Contestant, backends
from rnncli.bench.measurement import RAN
from rnncli.bench.workloads import planned
from rnncli.limits import Limits

TERMS = ContestTerms(rounds=3, seconds=1e-4)
NUMPY = backends(["numpy"], "native")


# Each way to misbehave, and what is told of it.
FAILING = {
    "dies at birth": ("crashed", "died of SIGSEGV"),
    "refuses": ("refused", "ValueError: not this one"),
    "leaves out": ("refused", "returns no Y_h"),
    "crashes": ("crashed", "died of SIGSEGV"),
    "crashes later": ("crashed", "died of SIGSEGV"),
    "raises later": ("crashed", "fails when called again: tired"),
    "cannot be timed": ("refused", "cannot be timed: it has no method prepare"),
    "is not there": ("unusable", "No module named 'no_such_package'"),
}
OTHERS = {"cannot be timed": "support.rivals:Untimed", "is not there": "no_such_package:It"}


@pytest.fixture(autouse=True, scope="module")
def little():
    """Little is measured besides the contestants."""
    with pytest.MonkeyPatch.context() as patch:
        on_little_data(patch)
        yield


def rival(way=""):
    """An implementation that misbehaves in some way, of that name."""
    settings = {"way": way} if way else {}
    return Contestant(way or "rival", OTHERS.get(way, "support.rivals:Rival"), settings)


def measured(*contestants, terms=TERMS, done=lambda *_: None):
    """What comes of one small workload."""
    tiny = planned(["tiny"], ["GRU"], "float32", {})
    plan = ContestPlan(workloads=tiny, contestants=(*NUMPY, *contestants), terms=terms)
    (contest,) = contests(plan, done)
    return contest


@pytest.fixture(scope="module")
def contest(little):
    """One of our backend, a rival that is right, one that is wrong, and all that fail."""
    return measured(*map(rival, ["", "is wrong", *FAILING]))


def test_everyone_has_its_turn_in_every_round():
    """Turns are told as they are over, in the order of the contestants."""
    told = []
    contest = measured(rival(), done=lambda count, note: told.append((count, note.split()[-1])))

    assert [who for count, who in told if count] == ["numpy", "rival"] * TERMS.rounds
    for each in contest.measurements:
        assert (each.status, len(each.seconds)) == (RAN, TERMS.rounds)
        assert min(each.seconds) > 0


def test_turns_are_known_beforehand():
    """Those of every contestant in every round."""
    tiny = planned(["tiny"], ["RNN"], "float32", {})
    plan = ContestPlan(workloads=tiny, contestants=(*NUMPY, rival()), terms=TERMS)

    assert plan.turns == 2 * TERMS.rounds


def test_what_was_measured_is_told(contest):
    """Version, error, times of loading and of the first call; memory where the system knows."""
    own, other, *_ = contest.measurements

    assert own.description["version"].startswith("rnncli")
    assert other.description == {"version": "6.66"}
    assert own.error == other.error < 1e-6
    assert min(own.build, own.first) > 0
    if sys.platform == "linux":
        assert own.memory >= 0


@pytest.mark.parametrize("way", FAILING)
def test_one_that_fails_leaves_the_others_alone(contest, way):
    """It is told how and why, and has no speed."""
    own, *others = contest.records()
    (failed,) = (each for each in others if each.implementation == way)

    assert (failed.status, failed.message) == FAILING[way]
    assert (failed.seconds, failed.ratio, failed.gflops) == (None, None, None)
    assert (own.status, len(own.rounds)) == (RAN, TERMS.rounds)


def test_one_that_hangs_is_ended():
    """After the time it is given, in which the other starts and answers on a slow machine, too."""
    contest = measured(
        rival("hangs"), terms=ContestTerms(rounds=1, seconds=1e-4, limits=Limits(timeout=10))
    )
    own, other = contest.measurements

    assert (other.status, other.message) == ("timeout", "gave no answer within 10 s")
    assert own.status == RAN


def test_a_wrong_result_is_told_by_its_error(contest):
    """Speed without accuracy is seen beside it."""
    _, _, wrong, *_ = contest.measurements

    assert wrong.error == pytest.approx(0.5, abs=1e-5)


def test_errors_are_those_of_all_data(contest):
    """Few outputs are computed of other data as well."""
    own, other, *_ = contest.measurements

    assert len(own.errors) == len(other.errors) == workloads.MOST_DATA
    assert own.error == max(own.errors) > min(own.errors)


JUDGE = """
import sys
sys.path[:] = {path!r}
from rnncli.bench.contest import ContestPlan, ContestTerms, contests
from rnncli.bench.contestants import Contestant
from rnncli.bench.workloads import planned
from rnncli.limits import Limits

def told(count, note):
    print(note, flush=True)

rival = Contestant("rival", "support.rivals:Rival", {{"way": "hangs"}})
calm = Contestant("calm", "support.rivals:Rival", {{}})
workloads = planned(["tiny"], ["RNN"], "float32", {{}})
terms = ContestTerms(limits=Limits(timeout=1000))
plan = ContestPlan(workloads=workloads, contestants=(calm, rival), terms=terms)
list(contests(plan, told))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_benchmark(number, monkeypatch):
    """Interrupted, told to end or killed while an implementation hangs: all processes go."""
    family = families.started(monkeypatch)
    with subprocess.Popen(
        [sys.executable, "-c", JUDGE.format(path=sys.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as judge:
        assert any("rival: loading" in line for line in judge.stdout)
        judge.send_signal(number)
        assert judge.wait() == -number
    assert family.is_gone()
