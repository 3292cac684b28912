"""The memory that a command takes at its peak, in a process of its own."""

import json
import os
import subprocess
import sys
from typing import NamedTuple

LAUNCH = """
import json, os, sys
child = os.posix_spawn(sys.executable, [sys.executable, "-m", "rnncli", *sys.argv[2:]], os.environ)
_, status, usage = os.wait4(child, 0)
with open(int(sys.argv[1]), "w") as told:
    json.dump([os.waitstatus_to_exitcode(status), usage.ru_maxrss], told)
"""


class Measured(NamedTuple):
    """How a command ended: its code, its words on stderr, bytes at its peak."""

    code: int
    words: str
    peak: int


def measured(*arguments: object) -> Measured:
    """Run rnncli from a small process, and measure it.

    A system reports as the peak of a process what its parent ever held, too (Linux: the memory
    that exec replaces). A worker of a test run may have held more than the command.
    """
    readable, writable = os.pipe()
    with os.fdopen(readable) as told:
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-S", "-c", LAUNCH, str(writable), *map(str, arguments)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                pass_fds=[writable],
            )
        finally:
            os.close(writable)
        code, peak = json.load(told)
    return Measured(code, done.stderr, peak * (1 if sys.platform == "darwin" else 1024))
