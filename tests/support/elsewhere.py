"""Runs commands as on Windows: what it lacks of Python is taken away first.

    python elsewhere.py '[["run", "rnn_7_plain"], ...]'

Prints the exit code and the last line of each as JSON.
"""

import asyncio  # noqa: F401 -- libraries choose by the platform as they are imported
import contextlib
import io
import json
import multiprocessing.connection
import multiprocessing.spawn  # noqa: F401
import os
import select
import signal
import sys
import sysconfig

import click  # noqa: F401
import h5py  # noqa: F401
import msgspec  # noqa: F401
import numpy as np  # noqa: F401
import onnx  # noqa: F401
import rich.progress  # noqa: F401
import yaml  # noqa: F401

MODULES = ("resource", "fcntl", "pwd", "grp", "termios", "pty")
NAMES = {
    os: ("getuid", "fork", "setsid", "killpg", "sched_getaffinity", "set_blocking", "mkfifo"),
    signal: ("pthread_sigmask", "setitimer", "SIGALRM", "SIGKILL", "SIGHUP", "SIGQUIT", "SIGBUS"),
    select: ("poll", "epoll"),
}


def answer(line):
    """The exit code of a command and the last line that it said."""
    from rnncli.cli import main

    sys.argv, said = ["rnncli", *line], io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as ended:
            return [ended.code, said.getvalue().rstrip().rpartition("\n")[2]]


if __name__ == "__main__":
    for name in MODULES:
        sys.modules[name] = None
    for module, names in NAMES.items():
        for name in names:
            delattr(module, name)
    sysconfig.get_config_vars()  # of this build, which is Linux's; they are kept once read
    sys.platform = "win32"
    sys.stdout.write(json.dumps([answer(line) for line in json.loads(sys.argv[1])]))
