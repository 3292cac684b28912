"""Claims about programs under supervision: how they end is known, and nothing of them is left."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.families import becomes
from support.tables import every

from rnncli.errors import Unsupported
from rnncli.limits import held
from rnncli.supervision import programs as supervision
from rnncli.supervision import supervisor
from rnncli.supervision.programs import (
    Ending,
    Supervised,
    first_line,
    last_line,
    printable,
)

PYTHON = [sys.executable, "-I", "-S", "-c"]


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("pass", Ending(exit=0)),
        ("print('hi')", Ending(exit=0, output="hi\n")),
        ("import sys; sys.exit('no')", Ending(exit=1, errors="no\n")),
        ("import os; os.abort()", Ending(signal=6)),
        ("import sys; print(sys.stdin.read(), end='')", Ending(exit=0)),
    ],
)
def test_an_end_is_told(family, text, ending):
    """Exit code or signal, and what was written."""
    assert Supervised([*PYTHON, text]).wait(120) == ending
    assert family.is_gone()


def test_an_end_is_told_twice():
    """Asking again, or ending what has ended, changes nothing."""
    program = Supervised([*PYTHON, "raise SystemExit(4)"])

    assert [program.wait(120), program.wait(0), program.end()] == [Ending(exit=4)] * 3


def test_a_program_goes_on_until_it_is_ended(family):
    """Waiting does not end it."""
    program = Supervised(["sleep", "3600"])

    assert program.wait(0.1) is None
    assert family.members()
    assert program.end().signal == 9
    assert family.is_gone()


def test_a_program_that_is_forgotten_is_ended(family):
    """Nobody needs to remember to end it."""
    program = Supervised(["sleep", "3600"])
    program.wait(0.1)
    program._process.returncode = 0  # spares Python's warning of a process that still runs
    del program

    assert family.is_gone()


def test_a_program_that_is_none_is_told():
    """It is no crash of a program."""
    ending = Supervised(["/no/such/program"]).wait(120)

    assert ending.sentence == "could not be started: No such file or directory"


def test_a_supervisor_that_is_killed_takes_its_program_along(family):
    """It is known that it was."""
    program = Supervised(["sleep", "3600"])
    assert family.has(2)
    program._process.kill()

    assert program.wait(120).sentence == "died of SIGKILL: its supervisor was killed"
    assert family.is_gone()


STOP = "import os, time; os.kill(os.getppid(), 19); "


def test_a_supervisor_that_is_stopped_goes_on(family):
    """Whether its program ends or is ended; it still says how."""
    assert Supervised([*PYTHON, f"{STOP}os._exit(4)"]).wait(120) == Ending(exit=4)

    program = Supervised([*PYTHON, f"{STOP}print(1, flush=True); time.sleep(3600)"])
    assert family.has(2)
    assert program.wait(0.3) is None
    assert program.end() == Ending(signal=9, output="1\n")
    assert family.is_gone()


def test_a_supervisor_that_is_stopped_again_and_again_is_ended(family, monkeypatch):
    """With whatever its program has started, also in sessions of its own."""
    monkeypatch.setattr(supervision, "SECONDS_TO_END", 0.5)
    monkeypatch.setattr(supervision.signal, "SIGCONT", 0)  # so often that it never goes on
    child = "import subprocess; subprocess.Popen(['sleep', '3600'], start_new_session=True); "
    program = Supervised([*PYTHON, f"{child}{STOP}time.sleep(3600)"])
    assert family.has(3)
    program.wait(0.3)

    program.end()
    assert family.is_gone()


def test_a_supervisor_that_is_stopped_ends_with_its_owner(family):
    """However that ends: nobody else would let it go on."""
    script = f"""if 1:
        import sys; sys.path[:] = {sys.path!r}
        from rnncli.supervision.programs import Supervised
        program = Supervised({[*PYTHON, f"{STOP}print(1, flush=True); time.sleep(3600)"]!r})
        print("started", flush=True)
        sys.stdin.read()
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with owner:
        assert owner.stdout.readline() == b"started\n"
        assert becomes(lambda: "T" in map(_state, family.members()))
        owner.kill()
    assert family.is_gone()


def _state(pid):
    """The letter that the kernel gives a process: T for one that is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_only_the_beginning_and_the_end_of_much_talk_are_kept():
    """Memory does not grow with it."""
    text = "print('first'); print('la\\n' * 10**6); print('last')"
    output = Supervised([*PYTHON, text]).wait(60).output

    assert (first_line(output), last_line(output)) == ("first", "last")
    assert len(output) == 2 * supervisor.KEPT


def test_of_node_the_last_line_is_the_error():
    """Its version, which it writes below, tells nothing; a line of another program stays."""
    text = "node:fs:1\n  f()\n  ^\n\nError: no 'a'\n    at f {\n  errno: -2\n}\n\nNode.js v20.1.0\n"

    assert last_line(text) == "Error: no 'a'"
    assert last_line(text.replace("Error:", "TypeError [ERR_X]:")) == "TypeError [ERR_X]: no 'a'"
    assert last_line("Error: a\nb\n") == "b"


@pytest.mark.parametrize("argument", ["", "ö\n'\"{}$", "\udcff", "x" * 60_000])
def test_arguments_arrive_as_they_are(argument):
    """Whatever their characters."""
    text = "import sys, os; os.write(1, os.fsencode(sys.argv[1])[:9])"
    ending = Supervised([*PYTHON, text, argument]).wait(120)

    assert ending.output == os.fsencode(argument)[:9].decode("utf-8", "replace")


def test_a_limit_that_cannot_be_watched_is_an_error(monkeypatch):
    """It is not dropped in silence."""
    monkeypatch.setattr(supervision.Path, "exists", lambda self: False)

    with pytest.raises(Unsupported, match="--max-memory needs a system with /proc"):
        Supervised(["true"], max_memory=1 << 20)


def test_a_system_without_sessions_is_an_error(monkeypatch):
    """There is no way to keep the promises of this module there."""
    monkeypatch.delattr(supervision.os, "killpg")

    with pytest.raises(Unsupported, match="process group"):
        Supervised(["true"])


def test_children_are_found_by_both_ways_of_looking():
    """Not every kernel lists them."""
    with subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & wait"]) as shell:
        while len(supervisor._children_listed(shell.pid)) < 2:
            time.sleep(0.01)
        listed = sorted(supervisor._children_listed(shell.pid))
        scanned = sorted(supervisor._scan()(shell.pid))
        family = supervisor.family(os.getpid())
        for pid in listed:
            os.kill(pid, 9)

    assert scanned == listed
    assert {shell.pid, *listed} <= {*family}


def test_memory_is_what_is_resident():
    """Of a process that is there; nothing of one that is gone."""
    assert supervisor.resident(os.getpid()) > 1 << 20
    assert supervisor.resident(1 << 30) == 0


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("\n \n a\tb \nc", "a b"),
        ("\x1b[31mred\x07", "[31mred"),
        ("\u202eevil", "evil"),
        ("x" * 301, "x" * 300 + "..."),
    ],
)
def test_a_line_is_fit_for_a_terminal(text, line):
    """Short, and of letters that only show themselves."""
    assert first_line(text) == line
    assert printable(line) == line[:300] + "..." * (len(line) > 300)


@every("shares_limit", [True, False], ids=str)
def test_a_program_is_freed_from_its_owners_limit_unless_it_shares_it(shares_limit):
    """What is judged may take more than the command that judges it."""
    asked = "import resource; print(resource.getrlimit(resource.RLIMIT_DATA)[0])"
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with held(256 << 20):
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        program = Supervised([*PYTHON, asked], shares_limit=shares_limit)
        found = program.wait(60)

    assert found is not None
    assert int(found.output) == (limit if shares_limit else most)
