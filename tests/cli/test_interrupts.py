"""Of interrupts the first tidies up, the second ends at once, and none is lost."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

# What an interrupted program does: it says that it is up, then what it is interrupted by.
PROGRAM = """\
import signal, sys, time
from rnncli.jobs import signals
signals.begin()
signals.SECONDS_OF_ONE = {one}
def up():
    print("up", flush=True)
    time.sleep(60)
try:
    {body}
except KeyboardInterrupt as error:
    {caught}
    sys.exit(signals.report_interrupt(error))
"""


@pytest.fixture
def program():
    """Start a program that waits."""
    started = []

    def start(body="up()", caught="pass", one=60, **options):
        code = PROGRAM.format(body=body, caught=caught, one=one)
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        started.append(
            subprocess.Popen([sys.executable, "-c", code], text=True, **pipes, **options)
        )
        assert started[-1].stdout.readline() == "up\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def ended(process):
    """How a program ended, and what it said."""
    _, err = process.communicate()
    return process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_the_first_raises_and_is_told_by_the_exit_code(program, number):
    """Ctrl-C 130, Ctrl-Backslash 131, `kill` 143, a terminal that closes 129."""
    process = program()
    process.send_signal(number)

    assert ended(process) == (128 + number, "interrupted\n")


def test_what_is_left_is_said(program):
    """Whoever knows raises it again with a sentence."""
    process = program(caught='error = KeyboardInterrupt("3 of 9 are there")')
    process.send_signal(signal.SIGINT)

    assert ended(process) == (130, "interrupted: 3 of 9 are there\n")


def test_the_second_ends_at_once(program):
    """However long it would take to tidy up; and as one expects of a program that was killed."""
    process = program(caught="up()", one=0)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)

    assert ended(process) == (-signal.SIGINT, "")


def test_one_that_comes_twice_is_one(program):
    """`timeout` signals its child, and then the group that its child is in."""
    wait = 'print("tidied", flush=True); sys.stdin.read()'
    process = program(caught=wait, stdin=subprocess.PIPE)
    for _ in range(2):
        process.send_signal(signal.SIGTERM)

    assert process.stdout.readline() == "tidied\n"
    assert ended(process) == (143, "interrupted\n")


def test_what_was_ignored_stays_ignored(program):
    """`nohup rnncli` outlives its terminal."""
    ignore = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    process = program(preexec_fn=ignore)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)

    assert ended(process) == (143, "interrupted\n")


THROWN = "type('', (), {'__del__': lambda _: signal.raise_signal(signal.SIGINT)})()"
# The signal is sent again while its first exception is still being taken care of.
SLOW = """
    from rnncli.jobs import signals

    class Slow(signals.Timer):
        def start(self):
            signals.Timer = Slow.__base__  # only the first
            super().start()
            time.sleep(0.2)

    signals.Timer = Slow
"""


@pytest.mark.parametrize("before", ["", SLOW], ids=["", "slow"])
def test_none_is_lost_where_nothing_can_be_raised(program, before):
    """A signal that comes while an object is thrown away interrupts what is done next.

    The program is up before: the signal may come again before anything else is done.
    """
    process = program(body=f"print('up', flush=True)\n{before}\n    {THROWN}\n    time.sleep(60)")

    assert ended(process) == (130, "interrupted\n")


# When they come, in ms after signals are answered: before, the interpreter answers itself.
MOMENTS = (0, 60, 120, 180, 240)
ANSWERING = """
import os, rnncli.cli
from rnncli.jobs import signals
begin = signals.begin
signals.begin = lambda: begin() or os.write(1, b"up")
rnncli.cli.main()
"""


@pytest.mark.parametrize(
    "command", ["run lstm_14", "verify {core} --backend numpy -j 2 -k rnn_14", "list core"]
)
def test_no_traceback_while_modules_are_imported(command, tmp_path):
    """Ours or a worker's, when a terminal sends its signal to all that run in it."""
    core = os.path.join(os.path.dirname(__file__), "../../vectors/core")  # noqa: PTH118, PTH120
    words = [each.format(core=core) for each in command.split()]
    for moment in MOMENTS:
        process = subprocess.Popen(
            [sys.executable, "-c", ANSWERING, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=tmp_path,
        )
        os.read(process.stdout.fileno(), 2)
        time.sleep(moment / 1000)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate()
        # Python ends itself by SIGINT, 130 to a shell, where it ran text, as dataclasses do; and
        # one that has printed all it had to say is ended by it without a word.
        assert process.returncode in {130, -signal.SIGINT, 0}
        assert err == b"interrupted\n" or process.returncode == 0 or out
        assert b"Traceback" not in err


def test_a_module_in_c_is_loaded_before_the_command_is_interrupted(program):
    """An exception raised while onnx's is being loaded ends the process by SIGSEGV."""
    body = """
    from importlib.machinery import ExtensionFileLoader

    def load(self):
        signal.raise_signal(signal.SIGINT)
        up()

    load(ExtensionFileLoader("late", "/none"))
"""
    code = "def up(): print('up', flush=True)"
    process = program(body=f"{code}{body}    time.sleep(60)")

    assert ended(process) == (130, "interrupted\n")


SLOWER = """\
import pathlib, sys, time
begun = pathlib.Path(sys.argv[1])
begun.write_text(begun.read_text() + "." if begun.exists() else ".")
time.sleep(60 if len(begun.read_text()) > 2 else 0)
sys.exit(3)
"""


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_was_judged_before_an_interrupt_is_told(tmp_path, options):
    """The count, and with --json the lines; without a summary they are no whole run."""
    program, begun = tmp_path / "slower.py", tmp_path / "begun"
    program.write_text(SLOWER)
    judging = shlex.join([sys.executable, f"{program}", f"{begun}", "{inputs}", "{outputs}"])
    words = ["-m", "rnncli", "verify", "core", "-k", "rnn", "--command", judging, *options]
    process = subprocess.Popen(
        [sys.executable, *words], cwd=tmp_path, text=True, stdout=-1, stderr=-1
    )
    while not (begun.exists() and len(begun.read_text()) > 2):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()

    assert process.returncode == 130
    assert err.splitlines()[-1] == "interrupted: 2 of 60 cases were judged: 2 refused"
    kinds = [json.loads(line)["kind"] for line in out.splitlines()]
    assert kinds == (["run", "case", "case"] if options else [])
