"""Claims about the line that says that a command still runs."""

import os
import subprocess
import sys

import pytest
from support import terminals

# Waits until the line is drawn, or for long enough that it would be, then prints.
CODE = """
import sys, time
from rnncli.talk import terminal, waiting
terminal.guard_streams()
waiting.PATIENCE, waiting.PACE = 0, 0.01
with waiting.waiting({command!r}) as line:
    while {drawn} and not line._is_drawn:
        time.sleep(0.01)
    time.sleep(0 if {drawn} else 0.2)
    waiting.PATIENCE = 60  # nothing is drawn between what is removed and what is written
    print("done", flush=True)
    line and line._ended.set()
print("after", file=sys.stderr)
"""


def shown(command, *, drawn, **variables):
    """What a terminal is sent."""
    code = CODE.format(command=command, drawn=drawn)
    env = {**os.environ, "TERM": "xterm", **variables}
    return terminals.shown([sys.executable, "-c", code], env=env)[1]


def test_a_command_that_says_nothing_says_that_it_runs():
    """And the line is gone before anything else is written, on either stream."""
    printed = shown("lint", drawn=True)
    before, _, after = printed.partition("done")

    assert before.startswith("\r\x1b[2Krnncli lint: 0 s")
    assert before.endswith("\r\x1b[2K")
    assert "rnncli" not in after.partition("after")[2]


@pytest.mark.parametrize(("command", "terminal"), [("bench", "xterm"), ("lint", "dumb")])
def test_what_measures_time_is_not_disturbed(command, terminal):
    """Nor is a terminal that cannot remove a line."""
    assert shown(command, drawn=False, TERM=terminal) == "done\nafter\n"


def test_a_pipe_gets_nothing():
    """Only what the command says."""
    code = CODE.format(command="lint", drawn=False)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (done.stdout, done.stderr) == ("done\n", "after\n")


def test_a_call_of_the_library_says_that_it_runs_as_a_command_does():
    """What is printed meanwhile, by a function that is judged, removes the line first."""
    code = """
import sys, time
from rnncli.talk import waiting
waiting.PATIENCE, waiting.PACE = 0, 0.01
with waiting.waiting_for("rnncli.verify"):
    time.sleep(0.5)
    waiting.PATIENCE = 60
    print("mine")
    print("too", file=sys.stderr)
print("after")
"""
    env = {**os.environ, "TERM": "xterm"}
    printed = terminals.shown([sys.executable, "-c", code], env=env)[1]

    assert printed.startswith("\r\x1b[2Krnncli.verify: 0 s")
    assert printed.endswith("\r\x1b[2Kmine\ntoo\nafter\n")


def test_in_a_command_there_is_one_line():
    """Which the command draws."""
    code = """
import time
from rnncli.talk import terminal, waiting
terminal.guard_streams()
waiting.PATIENCE, waiting.PACE = 0, 0.01
with waiting.waiting_for("rnncli.verify"):
    time.sleep(0.3)
print("done")
"""
    env = {**os.environ, "TERM": "xterm"}

    assert terminals.shown([sys.executable, "-c", code], env=env)[1] == "done\n"
