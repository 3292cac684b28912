"""Runs inputs under strace, and names what any process or C library opened or changed outside.

    python tests/fuzzing/fuzz_strace.py --family h5 --count 200

This is the second opinion on `fuzz_watch`, which hears only Python. It tells less of an input: that
its sandbox was left, not that a part of the sandbox was entered which the user did not name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
BEGIN, END = "/fuzz-begin-", "/fuzz-end"  # paths that do not exist, and stand in the log
CALLS = (
    "openat,open,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir,link,"
    "linkat,symlink,symlinkat,truncate,chmod,fchmodat,utimensat,mknod,mknodat,access,execve"
)
_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+)(?:<([^>]*)>)?")
_PATHS = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_CHANGES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
# What Python, its libraries and the C library read of themselves.
_READ = (
    *(str(HERE.parents[1] / name) for name in ("rnncli", "specs", "tests")),
    *{sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()},
    *("/usr/", "/lib", "/etc/ld.so", "/etc/localtime", "/etc/fonts", "/proc/", "/sys/"),
    *("/dev/null", "/dev/urandom", "pipe:"),
)


def main() -> int:
    """Run the fuzzer with the given arguments under strace; 1 where a sandbox was left."""
    with tempfile.TemporaryDirectory(prefix="fuzz-trace-") as name:
        log = Path(name) / "log"
        trace = ["strace", "-f", "-y", "--seccomp-bpf", "-s", "4096", "-e", f"trace={CALLS}"]
        fuzz = [sys.executable, "-W", "ignore", str(HERE / "fuzz.py"), *sys.argv[1:]]
        marked = {**os.environ, "FUZZ_MARKS": "1"}
        subprocess.run([*trace, "-o", str(log), *fuzz], env=marked, check=False)
        with log.open(errors="backslashreplace") as lines:
            inputs, found = judge(lines)
    sys.stdout.write(f"{inputs} inputs under strace; outside: {len(found)}\n")
    sys.stdout.writelines(f"    #{number} {what}\n" for number, what in sorted(found))
    return bool(found)


def judge(lines) -> tuple[int, set[tuple[int, str]]]:
    """Return how many inputs a log holds, and (number, call and path) of what was outside."""
    boxes: dict[str, tuple[int, str]] = {}  # process -> its input and sandbox
    latest = (-1, "")
    found: set[tuple[int, str]] = set()
    count = 0
    for line in lines:
        match = _LINE.match(line)
        if not match:
            continue
        process, call, arguments, result, opened = match.groups()
        if call == "access" and BEGIN in arguments:
            number, _, box = arguments.partition(BEGIN)[2].partition('"')[0].partition(":")
            boxes[process] = latest = (int(number), box)
            count += 1
        elif call == "access" and END in arguments:
            boxes.pop(process, None)
            latest = (-1, "")
        elif int(result) >= 0 and call != "access":
            number, box = boxes.get(process, latest)  # a process that an input started has none
            if box:
                found |= {(number, what) for what in _outside(call, arguments, opened, box)}
    return count, found


def _outside(call: str, arguments: str, opened: str | None, box: str) -> list[str]:
    """Return what one call touched outside a sandbox."""
    if opened is not None:
        kind = "writes" if _CHANGES.search(arguments) else "reads"
        places = [opened]
    else:
        kind = "reads" if call == "execve" else "writes"
        pairs = _PATHS.findall(arguments)
        places = [
            os.path.normpath(f"{base or box}/{path}" if path[:1] != "/" else path)
            for base, path in pairs
        ]
        places = places[-1:] if call.startswith(("symlink", "link")) else places
    allowed = (box, *(_READ if kind == "reads" else ("/dev/null",)))
    own = "/bases/" if kind == "reads" else "/bases/fonts/"
    outside = [place for place in places if not place.startswith(allowed) and own not in place]
    return [f"{kind} {place} ({call})" for place in outside]


if __name__ == "__main__":
    sys.exit(main())
