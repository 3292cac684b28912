"""A program `rnncli` that starts at once: each call is forked from a process that imported all."""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

from fuzz_bases import preload
from support.sampling import ELSEWHERE

from rnncli.cli import main

# The program, which hands over its files, folder, arguments and variables, and its Python.
PROGRAM = '#!/bin/sh\nexec "{python}" -I -S "$0.py" "$@"\n'
CALL = """\
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"-"], [0, 1, 2])
    server.sendall(json.dumps((os.getcwd(), sys.argv[1:], {{**os.environ}})).encode())
    server.shutdown(socket.SHUT_WR)
    sys.exit(int(server.recv(8) or 1))
"""


# The process that all are forked from: it has nothing of the tests to import.
SERVER = "import sys; path = sys.path[:]; sys.path += {path!r}; from support import preloaded"
SERVER += "; sys.path[:] = path; preloaded.serve({number})"


@cache
def program_folder():
    """Return the folder of the program, which ends with this process."""
    scratch = tempfile.TemporaryDirectory(prefix="rnncli-")
    folder = Path(scratch.name)
    address = str(folder / "socket")
    (folder / "rnncli").write_text(PROGRAM.format(python=sys.executable))
    (folder / "rnncli").chmod(0o755)
    (folder / "rnncli.py").write_text(CALL.format(address=address))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        code = SERVER.format(path=sys.path, number=server.fileno())
        command = [sys.executable, "-P", "-c", code]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[server.fileno()])
    atexit.register(process.communicate)
    atexit.register(scratch.cleanup)
    (folder / "seconds").touch()
    ELSEWHERE.append(lambda: sum(map(float, (folder / "seconds").open())))
    return folder


def serve(number):
    """Fork for each call, as long as there is the process that started this one."""
    preload()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(fileno=number)
    while sys.stdin not in select.select([server, sys.stdin], [], [])[0]:
        connection, _ = server.accept()
        if os.fork() == 0:
            _attend(connection)
        connection.close()


def _attend(connection):
    """Run a call in a process of its own, and hand back its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    call = json.loads(connection.makefile().read())
    child = os.fork()
    if child == 0:
        _run(files, *call)
    _, status = os.waitpid(child, 0)
    with Path(connection.getsockname()).with_name("seconds").open("a") as file:
        file.write(f"{sum(os.times()[:4])}\n")
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run(files, folder, arguments, environment):
    """Be the program."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = map(os.path.abspath, filter(None, paths))
    sys.argv = ["rnncli", *arguments]
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115 -- until the process ends
    sys.stderr = open(2, "w", buffering=1)  # noqa: SIM115
    code = 1
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:  # noqa: BLE001 -- as a program ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
