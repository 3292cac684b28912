"""The command line in a forked process: what it said, and what it took."""

from __future__ import annotations

import os
import signal
import sys
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from fuzz_bases import preload

from rnncli.cli import main

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 100  # seconds, where none takes two: what has no end is killed, on any machine


class Outcome(NamedTuple):
    """What a process left behind: its code, its words, and what it took beyond this process."""

    code: int
    err: str
    mebibytes: float


@cache
def _prepare() -> None:
    preload()


def _held() -> int:
    """What a fork of this process is counted to hold from its beginning, in KiB."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.wait4(child, 0)[2].ru_maxrss


def forked(folder: Path, *arguments: object) -> Outcome:
    """Run the command line in a process forked from this one, killed where it has no end."""
    _prepare()
    before = _held()
    out, err = folder / "stdout", folder / "stderr"
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["rnncli", *map(str, arguments)]
        code = 1
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    mebibytes = (usage.ru_maxrss - before) / 1024
    return Outcome(os.waitstatus_to_exitcode(status), err.read_text(), mebibytes)
