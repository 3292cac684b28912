"""Runs many inputs through the command line's own entry, in children that a parent watches.

A child works through a batch: it empties its sandbox, builds an input, runs the command, and tells
the outcome through a pipe. A child that dies or hangs costs the input it was at; the next child
goes on with the one after it.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from fuzz_watch import Canaries, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SECONDS = 10
MEBIBYTES = 1024
HANG_SECONDS = 30  # of wall time: other programs run on the machine, too
ASLEEP = 5  # half seconds of sleep in which nothing was done
WORDS = 64 << 10  # of standard error
# Inputs that one child works through. What damage HDF5's library takes from one file may end the
# process at a later one, as docs/security.md says: each command on .h5 has a process of its own.
BATCH, BATCHES = 100, {"h5": 1}
UNBUILT = -1000
# What a program that was built with sanitizers does where they find something: it ends with 70.
SANITIZERS = {
    "ASAN_OPTIONS": "exitcode=70:detect_leaks=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "exitcode=70:print_stacktrace=1",
}
PACKAGE = Path(__file__).parents[2]
LEVELS = 3


def never() -> bool:
    """Whether exit code 0 calls a wrong answer right, where none is judged."""
    return False


def always() -> bool:
    """Whether exit code 0 calls a wrong answer right, where no other is judged."""
    return True


@dataclass(frozen=True)
class Command:
    """One command line, and the paths that its user named.

    Attributes:
        arguments: after `rnncli`.
        reads: what may be read, folders with all that is below.
        writes: what may be written.
        stdin: what stands on standard input.
        is_green: asked after exit code 0, whether that calls a wrong answer right; `never` where
            nothing is judged, `always` where whatever is judged is wrong.
        program: what is run in a process of its own; "" for the command line, in this one.
    """

    arguments: tuple[str, ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    stdin: bytes = b""
    is_green: Callable[[], bool] = never
    program: str = ""


@dataclass
class Outcome:
    """What one input led to.

    Attributes:
        number: of the input.
        arguments: of the command.
        code: exit code; negative: the signal that ended it; None: it hung.
        seconds: of processor time.
        mebibytes: the largest resident set, beyond what was resident before.
        outside: paths that it must not have touched.
        green: whether a wrong answer was called right.
        err: the end of standard error.
        spoken: bytes on standard error.
        built: seconds that the input took to make.
    """

    number: int
    arguments: list[str] = field(default_factory=list)
    code: int | None = None
    seconds: float = 0.0
    wall: float = 0.0
    mebibytes: float = 0.0
    outside: list[str] = field(default_factory=list)
    green: bool = False
    err: str = ""
    spoken: int = 0
    built: float = 0.0

    def faults(self) -> list[str]:
        """Return which promises were broken."""
        checks = {
            f"exit {self.code}": self.code not in (0, 1, 2, 3, 5),
            "traceback": "Traceback (most recent call last)" in self.err,
            "outside": bool(self.outside),
            "green": self.green,
            "memory": self.mebibytes >= MEBIBYTES,
            "time": self.seconds >= SECONDS,
            "words": self.spoken >= WORDS,
            "silent": self.code in (2, 3, 70) and not self.spoken,
        }
        return [name for name, broken in checks.items() if broken]


@dataclass(frozen=True)
class Box:
    """Where one input lies: a sandbox, with canaries in the folders above it.

    Attributes:
        path: the sandbox, the working folder of the command.
        outer: the folders above it that hold canaries, the nearest last.
        bases: files that inputs are made from.
    """

    path: Path
    outer: tuple[Path, ...]
    bases: Path

    def empty(self) -> None:
        """Remove whatever the last input left, and make the folders of a user."""
        os.chdir(self.outer[-1])
        _remove(self.path)
        for name in ("", "home", "tmp"):
            (self.path / name).mkdir()
        os.chdir(self.path)


def _remove(path: Path) -> None:
    def writable(_, name, __) -> None:
        Path(name).parent.chmod(0o700)
        Path(name).unlink()

    shutil.rmtree(path, onerror=writable) if path.exists() else None


def make_box(root: Path, bases: Path) -> Box:
    """Lay out canaries and an empty sandbox; each level of canaries is what a thief hopes for."""
    outer = []
    for name in ("outer", "middle", "inner")[:LEVELS]:
        root = root / name
        root.mkdir(parents=True)
        shutil.copytree(bases / "canary", root / "canary")
        for path in (bases / "canary").iterdir():
            if path.is_file():
                shutil.copy(path, root / f"canary{path.suffix}")
        outer.append(root)
    return Box(root / "box", tuple(outer), bases)


@dataclass(frozen=True)
class Series:
    """Inputs of one kind.

    Attributes:
        make: builds an input in a sandbox.
        name: of the family; with the seed and its number it decides everything about an input.
        box: where inputs lie.
        seed: of all.
        entry: runs `sys.argv` and raises SystemExit; the command line's own unless given.
        extra: arguments put before all others.
    """

    make: Callable[[Box, random.Random], Command]
    name: str
    box: Box
    seed: int = 0
    entry: Callable[[], None] | None = None
    extra: tuple[str, ...] = ()

    def run(self, numbers: Iterable[int]) -> Iterator[Outcome]:
        """Yield the outcome of each of some inputs, by their numbers."""
        left, most = list(numbers), BATCHES.get(self.name, BATCH)
        while left:
            done = 0
            for outcome in _batch(self, left[:most]):
                done += 1
                yield outcome
            left = left[max(done, 1) :]

    def build(self, number: int) -> Command:
        """Build an input in the emptied sandbox."""
        self.box.empty()
        dice = random.Random(f"{self.name} {self.seed} {number}")  # noqa: S311 -- repeatable
        return self.make(self.box, dice)


def _batch(series: Series, numbers: list[int]) -> Iterator[Outcome]:
    """Run inputs in one child for as long as it lives."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(readable)
        _live(series, numbers, writable)
    os.close(writable)
    begun: Outcome | None = None
    ended = False
    for told in _told(readable, child):
        if told is None:
            ended = True
        elif told.code is None:
            begun = told
        else:
            begun = None
            yield told
    if not ended:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if begun is not None:
        code = os.waitstatus_to_exitcode(status) if ended else None
        begun.code = 70 if code == 0 else code  # an exit that the entry must not take
        begun.err = "ended its process" if ended else "hangs"
        begun.seconds, begun.mebibytes = usage.ru_utime, usage.ru_maxrss / 1024
        yield begun


def _live(series: Series, numbers: list[int], pipe: int) -> NoReturn:
    try:
        _work(series, numbers, pipe)
    except BaseException:  # noqa: BLE001 -- a fault of ours: said, never taken for an input's
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(0)


def _told(pipe: int, child: int) -> Iterator[Outcome | None]:
    """Yield what a child tells; None when it has ended, nothing when it hangs."""
    rest = b""
    with os.fdopen(pipe, "rb", buffering=0) as stream:
        while _wait(stream, child):
            received = os.read(pipe, 1 << 16)
            if not received:
                yield None
                return
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                yield Outcome(**json.loads(line))


def _wait(stream, child: int) -> bool:
    """Wait until a child has said something; whether it has, or has only slept for seconds."""
    asleep, before = 0, ""
    for _ in range(2 * HANG_SECONDS):
        if select.select([stream], [], [], 0.5)[0]:
            return True
        state, *fields = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].split()
        times = str(fields[10:14])  # its own and its children's
        asleep = asleep + 1 if state == "S" and times == before and not _children(child) else 0
        before = times
        if asleep >= ASLEEP:
            return False
    return False


def _children(process: int) -> str:
    return Path(f"/proc/{process}/task/{process}/children").read_text()


def _work(series: Series, numbers: list[int], pipe: int) -> None:
    """Work through a batch, in the child."""
    os.setsid()
    gc.freeze()  # collections leave the parent's pages alone
    _furnish(series.box)
    watch = Watch(*(PACKAGE / name for name in ("rnncli", "specs", "tests/fuzzing")))
    canaries = Canaries(list(series.box.outer), series.box.path)
    entry = series.entry or _command_line()
    for number in numbers:
        outcome = Outcome(number)
        begin = time.perf_counter()
        try:
            command = series.build(number)
        except Exception:  # noqa: BLE001 -- a fault of ours, which must not pass for an input
            outcome.err, outcome.code = traceback.format_exc(), UNBUILT
            _tell(pipe, outcome)
            continue
        outcome.built = time.perf_counter() - begin
        outcome.arguments = [*series.extra, *command.arguments]
        _tell(pipe, outcome)
        _run(outcome, command, watch, series.box, entry)
        disturbed = canaries.disturbed()
        if "/" in command.reads:  # whoever passes a list of targets asks for each of them
            disturbed = [each for each in disturbed if not each.startswith("reads ")]
        outcome.outside += disturbed
        _tell(pipe, outcome)
        if outcome.mebibytes > MEBIBYTES / 2:
            return  # memory that is not given back would be the next input's


def _mark(path: str) -> None:
    """Leave a mark in the log of system calls, if there is one."""
    if "FUZZ_MARKS" in os.environ:
        os.access(path, os.F_OK)


def _command_line() -> Callable[[], None]:
    from rnncli.cli import main

    return main


def _furnish(box: Box) -> None:
    """Give the child a home, no network of notes, and bounds that spare the machine."""
    os.environ["MPLCONFIGDIR"] = str(box.bases / "fonts")
    home = {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "home", "NUMBA_CACHE_DIR": "home"}
    for key, folder in home.items():
        os.environ[key] = str(box.path / folder)
    tempfile.tempdir = None
    sys.dont_write_bytecode = True
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + (4 << 30), most))


def _tell(pipe: int, outcome: Outcome) -> None:
    data = json.dumps(asdict(outcome)).encode() + b"\n"
    while data:
        data = data[os.write(pipe, data) :]


def _run(
    outcome: Outcome, command: Command, watch: Watch, box: Box, entry: Callable[[], None]
) -> None:
    """Run a command under watch, and note what it did."""
    err = _redirect(box.outer[0].parent, command.stdin)
    sys.argv = ["rnncli", *outcome.arguments]
    Path("/proc/self/clear_refs").write_text("5")  # the peak of memory begins anew
    held = _mebibytes("VmRSS")  # of the parent, which may have run other tests before
    reads = [box.path / name for name in command.reads]
    own = (box.path / "home", box.path / "tmp", box.bases / "fonts")
    writes = [*(box.path / name for name in command.writes), *own]
    begin, used = time.perf_counter(), time.process_time()
    watch.start(reads, writes)
    _mark(f"/fuzz-begin-{outcome.number}:{box.path}")
    outcome.code = _program(command) if command.program else _exit_code(entry)
    _mark("/fuzz-end")
    outcome.outside = watch.stop()
    outcome.seconds = time.process_time() - used
    outcome.wall = time.perf_counter() - begin
    outcome.mebibytes = _mebibytes("VmHWM") - held
    said = err.read_bytes()
    outcome.spoken = len(said)
    outcome.err = said[-4000:].decode(errors="backslashreplace")
    outcome.green = outcome.code == 0 and command.is_green()
    _forget()


def _redirect(folder: Path, stdin: bytes) -> Path:
    """Put files in the place of the standard streams; return that of standard error."""
    paths = [folder / f"{name}{os.getpid()}" for name in ("in", "out", "err")]
    paths[0].write_bytes(stdin)
    fresh = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, path in enumerate(paths):
        opened = os.open(path, fresh if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    return paths[2]


def _exit_code(entry: Callable[[], None]) -> int:
    code = 0
    try:
        entry()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001 -- nothing else may leave the entry
        traceback.print_exc()
        code = 70
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _program(command: Command) -> int:
    """Run a program, which may reserve what address space it likes, as sanitizers do."""

    def unbounded() -> None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    argv = [command.program, *command.arguments]
    environment = {**os.environ, **SANITIZERS}
    return subprocess.run(argv, env=environment, check=False, preexec_fn=unbounded).returncode


def _forget() -> None:
    """Take back what the entry adds to the process for good."""
    from rnncli.talk import terminal

    terminal.LISTENERS.clear()


def _mebibytes(kind: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(kind):
            return int(line.split()[1]) / 1024
    return 0.0
