"""The command line, and pytest, in a forked process: what it said, and what it took."""

from __future__ import annotations

import gc
import os
import signal
import sys
from functools import cache
from importlib.metadata import entry_points
from resource import RUSAGE_SELF, getrusage
from typing import TYPE_CHECKING, NamedTuple

import pytest
from fuzz_bases import preload

from rnncli.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE = 100  # seconds, where none takes two: what has no end is killed, on any machine


class Outcome(NamedTuple):
    """What a process left behind: its code, its words, and what it took beyond this process."""

    code: int
    err: str
    mebibytes: float


@cache
def _prepare() -> None:
    """Import what a process would import by itself."""
    preload()
    for plugin in entry_points(group="pytest11"):
        plugin.load()


def _started(folder: Path, body: Callable[[], object]) -> int:
    """Fork, and run a function there that raises SystemExit; what it says goes to two files.

    Returns:
        The child.
    """
    out, err = folder / "stdout", folder / "stderr"
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        gc.freeze()  # collections leave the parent's pages alone
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        body()
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def forked(folder: Path, *arguments: object) -> Outcome:
    """Run the command line in a process forked from this one, killed where it has no end."""
    held = folder / "held"  # what the process is counted to hold from its beginning, in KiB

    def body() -> None:
        signal.alarm(PATIENCE)
        held.write_text(str(getrusage(RUSAGE_SELF).ru_maxrss))
        sys.argv = ["rnncli", *map(str, arguments)]
        main()

    _prepare()
    child = _started(folder, body)
    _, status, usage = os.wait4(child, 0)
    mebibytes = (usage.ru_maxrss - int(held.read_text())) / 1024
    return Outcome(os.waitstatus_to_exitcode(status), (folder / "stderr").read_text(), mebibytes)


def forked_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run pytest in a folder, in a process forked from this one; return exit code and output."""

    def body() -> None:
        os.chdir(folder)
        os.environ["COLUMNS"] = "120"
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = str(folder)  # for workers
        sys.exit(pytest.main(["-W", "ignore::pytest.PytestAssertRewriteWarning", *arguments]))

    _prepare()
    told = folder.with_name(f"{folder.name}-told")
    told.mkdir(exist_ok=True)
    _, status = os.waitpid(_started(told, body), 0)
    words = "".join((told / name).read_text() for name in ("stdout", "stderr"))
    return os.waitstatus_to_exitcode(status), words
