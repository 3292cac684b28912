"""Run the command line in this process, as `main` does, or in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from rnncli.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Outcome:
    """What a call left behind."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, str]]:
        """The tab-separated table on standard output, a dict a line."""
        head, *lines = (line.split("\t") for line in self.out.splitlines())
        return [dict(zip(head, line, strict=True)) for line in lines]


@pytest.fixture
def rnncli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Call `rnncli ARGS...` in this process."""

    def call(*args: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rnncli", *map(str, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), out, err)

    return call


@pytest.fixture
def spawned() -> Callable[..., Outcome]:
    """Call `python -m rnncli ARGS...` in a process of its own."""

    def call(*args: object, stdin: str = "", stdout: Any = subprocess.PIPE) -> Outcome:
        command = [sys.executable, "-m", "rnncli", *map(str, args)]
        pipes = {"stdout": stdout, "stderr": subprocess.PIPE}
        done = subprocess.run(command, input=stdin, **pipes, text=True, check=False)
        return Outcome(done.returncode, done.stdout or "", done.stderr)

    return call
