"""Claims about the time that a run may take, and what is told of one that takes long."""

import signal
import subprocess
import sys

import numpy as np
import onnx
import pytest
from support.terminals import shown

from rnncli import evaluate, limits
from rnncli.limits import Limits, OutOfTime
from rnncli.models.loading import load_model
from rnncli.models.sessions import evaluate_model

LOOP = """<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float y) {
    n = Constant <value = int64 {1000000000000}> ()
    y = Loop (n, "", x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) { BODY }>
}"""
BODIES = {"nodes": "d = Identity (c) t = Neg (s)", "empty": "d = Identity (c) t = Identity (s)"}


def ended(program):
    """Run Python in a process of its own, to its end."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )


@pytest.fixture(params=BODIES)
def loop(request, tmp_path):
    """The file of a model that has no end."""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(LOOP.replace("BODY", BODIES[request.param])), path)
    return path


def test_a_loop_without_end_is_stopped(loop):
    """Between trips, in Python too; the sentence names node and trip."""
    with pytest.raises(OutOfTime, match=r"m.onnx: node 'Loop_1.*in trip [\d,]+ of its loop"):
        evaluate_model(load_model(loop), {"x": np.float32([1, 2])}, limits=Limits(timeout=1))


def test_the_command_line_stops_it_too(loop):
    """With exit code 2 and one sentence that says how to give it more."""
    done = subprocess.run(
        [sys.executable, "-m", "rnncli", "run", loop, "--timeout", "1"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert f"{loop}: " in done.stderr
    assert "not finished in the 1 s it was given" in done.stderr
    assert "--timeout SECONDS gives it more" in done.stderr


def test_a_long_recurrence_is_stopped_between_steps():
    """Whatever one node takes."""
    X, W = np.ones((100_000, 1, 1), np.float32), np.ones((1, 3, 1), np.float32)

    with pytest.raises(OutOfTime), limits.timed(1e-9):
        evaluate("GRU-14", {"X": X, "W": W, "R": W})


def test_an_alarm_ends_what_looks_at_no_clock():
    """Python code of any library; afterwards no alarm is left."""
    program = (
        "import signal, time\n"
        "from rnncli import limits\n"
        "try:\n"
        "    with limits.watched(0.05, 'm'):\n"
        "        time.sleep(60)\n"
        "except limits.OutOfTime as error:\n"
        "    print(error)\n"
        "with limits.watched(60, 'm'):\n"
        "    pass\n"
        "print(signal.getitimer(signal.ITIMER_REAL), signal.getsignal(signal.SIGALRM).name)\n"
    )
    done = ended(program)

    assert (done.returncode, done.stderr, done.stdout.splitlines()) == (
        0,
        "",
        [
            "m: not finished in the 0.05 s it was given; --timeout SECONDS gives it more",
            "(0.0, 0.0) SIG_DFL",
        ],
    )


def test_an_alarm_that_a_destructor_swallows_comes_again():
    """Python reports what a destructor raises and goes on; the run ends all the same, in words."""
    program = (
        "import time\n"
        "from rnncli import limits\n"
        "class Slow:\n"
        "    def __del__(self):\n"
        "        time.sleep(60)\n"
        "try:\n"
        "    with limits.watched(0.05, 'm'):\n"
        "        Slow()\n"
        "        time.sleep(60)\n"
        "except limits.OutOfTime as error:\n"
        "    print(error)\n"
    )
    done = ended(program)

    assert (done.returncode, done.stderr, done.stdout) == (
        0,
        "",
        "m: not finished in the 0.05 s it was given; --timeout SECONDS gives it more\n",
    )


def test_an_alarm_is_silent_beside_a_check_that_has_raised():
    """It may come while that error is on its way, and would take the node's name from it."""
    with limits.watched(60, "m.onnx"):
        activity = limits.current_activity()
        activity._end = 0.0
        with pytest.raises(OutOfTime, match="not finished"):
            activity.check()
        signal.raise_signal(signal.SIGALRM)


def test_a_library_that_does_not_come_back_is_left(tmp_path):
    """The process ends by itself where no Python runs any more in its main thread."""
    program = (
        "import signal, time\n"
        "from rnncli import limits\n"
        "limits.GRACE = 0.1\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])\n"
        "with limits.watched(0.1, 'm'):\n"
        "    time.sleep(60)\n"
    )
    done = ended(program)

    assert (done.returncode, done.stderr) == (
        2,
        "m: not finished in the 0.1 s it was given; --timeout SECONDS gives it more\n",
    )


def test_somebody_at_a_terminal_is_told_what_takes_so_long():
    """Which node runs, which trip, and how to stop it; in a pipe nothing is said."""
    program = (
        "import sys, threading\n"
        "from rnncli import limits\n"
        "from rnncli.talk import terminal\n"
        "heard = threading.Event()\n"
        "limits.NOTICE = 0.1\n"
        "terminal.LISTENERS.append(lambda words: print(words, flush=True) or heard.set())\n"
        "with limits.watched(None, 'm'):\n"
        "    limits.current_activity().begin(lambda: \"m: node 'Loop_0' (Loop)\")\n"
        "    limits.turn(1234)\n"
        "    heard.wait(float(sys.argv[1]))\n"
    )
    piped = subprocess.run(
        [sys.executable, "-c", program, "0.5"], capture_output=True, text=True, check=False
    )

    code, said = shown([sys.executable, "-c", program, "120"])

    assert code == 0, said
    assert said.strip() == (
        "m: node 'Loop_0' (Loop), in trip 1,234 of its loop: still running after 0.1 s; Ctrl-C"
        " stops it, --timeout SECONDS would"
    )
    assert (piped.stdout, piped.stderr) == ("", "")


def test_a_part_of_a_computation_shares_its_clock():
    """By itself it has its own time, of which a caller of the library has no signal."""
    with limits.timed(None) as whole, limits.within(1e-9, "m"):
        assert limits.current_activity() is whole
        limits.check_clock()
    with pytest.raises(OutOfTime), limits.within(1e-9, "m"):
        limits.check_clock()
