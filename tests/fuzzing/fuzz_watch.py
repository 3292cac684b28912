"""Traps: which paths a command opened, changed or listed, and whether it may have.

Python's audit events tell every path that Python code opens or changes; what C libraries open is
caught by canaries, files outside the sandbox whose access times, sizes and contents are compared.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path

LINKED = ".hard"  # a canary that inputs hold by a hard link, and may read therefore
READ, WRITE = "reads", "writes"
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_SYSTEM = (
    "/usr/share/fonts",
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices",
    "/sys/fs/cgroup",
)
_DEVICES = ("/dev/null", "/dev/urandom")
# Files that libraries read of themselves, by where they are installed.
_INSTALLED = tuple({sys.prefix, sys.base_prefix, *(p for p in sys.path if "site-packages" in p)})

# event -> (position of a path, position of the descriptor it is relative to, READ or WRITE), ...
EVENTS = {
    "os.listdir": ((0, None, READ),),
    "os.scandir": ((0, None, READ),),
    "os.chdir": ((0, None, READ),),
    "os.mkdir": ((0, 2, WRITE),),
    "os.remove": ((0, 1, WRITE),),
    "os.rmdir": ((0, 1, WRITE),),
    "os.truncate": ((0, None, WRITE),),
    "os.chmod": ((0, 2, WRITE),),
    "os.chown": ((0, 3, WRITE),),
    "os.utime": ((0, 3, WRITE),),
    "os.rename": ((0, 2, WRITE), (1, 3, WRITE)),
    "os.link": ((0, 2, READ), (1, 3, WRITE)),
    "os.symlink": ((1, 2, WRITE),),
    "ctypes.dlopen": ((0, None, READ),),
}
# Events of which the last component of the path is what is changed, not what it points to.
_OF_THE_NAME = {"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink"}
FORBIDDEN = {"os.system", "os.exec", "pickle.find_class", "socket.connect", "os.mkfifo"}


class Watch:
    """What one command did to paths, in this process; switched on between `start` and `stop`.

    Args:
        own: folders of the code under test, which it reads.
    """

    def __init__(self, *own: Path) -> None:
        self.active = False
        self.found: list[str] = []
        self._installed = (
            *_INSTALLED,
            *map(str, own),
            f"/proc/{os.getpid()}/",
            *_SYSTEM,
            *_DEVICES,
        )
        self._allowed: dict[str, tuple[str, ...]] = {}
        self._holding: set[str] = set()
        self._base = threading.local()
        sys.addaudithook(self._heard)
        self._open, os.open = os.open, self._opened

    def start(self, reads: list[Path], writes: list[Path]) -> None:
        """Begin with nothing found; a path may be read or changed below those given."""
        written = tuple(os.path.realpath(path) for path in writes)
        read = tuple(os.path.realpath(path) for path in reads)
        self._allowed = {WRITE: written, READ: (*written, *read)}
        # What a user names is found through the folder that holds it, and modules likewise.
        holding = (os.path.dirname(path) for path in (*written, *read))  # noqa: PTH120
        self._holding = {*holding, *map(os.path.realpath, sys.path)}
        self.found, self.active = [], True

    def stop(self) -> list[str]:
        """End, and return what must not have happened."""
        self.active = False
        return self.found

    def _opened(self, path, flags, mode=0o777, *, dir_fd=None):
        """Tell the audit hook what `os.open` does not: which folder a path is relative to."""
        self._base.descriptor = dir_fd
        try:
            return self._open(path, flags, mode, dir_fd=dir_fd)
        finally:
            self._base.descriptor = None

    def _heard(self, event: str, arguments: tuple) -> None:
        if not self.active:
            return
        if event == "open":
            path, _, flags = arguments
            kind = WRITE if flags & _CHANGES else READ
            follows = not flags & (os.O_NOFOLLOW | os.O_EXCL)
            self._check(path, getattr(self._base, "descriptor", None), kind, follows=follows)
        elif event in FORBIDDEN:
            self._note(f"{event} {arguments!r:.200}")
        else:
            for position, base, kind in EVENTS.get(event, ()):
                descriptor = None if base is None else arguments[base]
                follows = event not in _OF_THE_NAME
                self._check(arguments[position], descriptor, kind, follows=follows)

    def _check(self, path, descriptor, kind: str, *, follows: bool) -> None:
        """Note a path that is not below one of those allowed."""
        if path is None or "\0" in os.fsdecode(path if isinstance(path, str | bytes) else ""):
            return
        real = _real(path, descriptor, follows=follows)
        if kind == READ and (real.startswith(self._installed) or real in self._holding):
            return
        if real in _DEVICES or real.startswith(("pipe:", "socket:")):
            return
        if not any(_is_below(real, root) for root in self._allowed[kind]):
            self._note(f"{kind} {real}")

    def _note(self, sentence: str) -> None:
        if len(self.found) < 5 and sentence not in self.found:
            self.found.append(sentence)


def _is_below(path: str, root: str) -> bool:
    """Whether a path is a root, below it, or what is written beside it before it is renamed."""
    if path == root or path.startswith(f"{root.rstrip('/')}/"):
        return True
    folder, name = os.path.split(root)
    return path.startswith(f"{folder}/.{name}.")


def _real(path, descriptor, *, follows: bool) -> str:
    """Return where a path leads, links resolved; the last one only where the call follows it."""
    if isinstance(path, int):
        return str(Path(f"/proc/self/fd/{path}").readlink())
    name = os.fsdecode(path)
    if descriptor not in (None, -1):
        name = f"{Path(f'/proc/self/fd/{descriptor}').readlink()}/{name}"
    if follows:
        return os.path.realpath(name)
    folder, last = os.path.split(name.rstrip("/"))
    if last in ("", ".", ".."):
        return os.path.realpath(name)
    return f"{os.path.realpath(folder)}/{last}"


class Canaries:
    """Folders around the sandbox that no command may read or change.

    Args:
        folders: each holds canaries, files and folders of them, and one sandbox perhaps.
        sandbox: left aside.
    """

    def __init__(self, folders: list[Path], sandbox: Path) -> None:
        self._folders = folders
        self._sandbox = sandbox
        for path in self._files():
            self._sing(path)
        self._seen = self._state()

    def disturbed(self) -> list[str]:
        """Return what was read or changed since the last call."""
        now = self._state()
        if now == self._seen:
            return []
        names = {*now, *self._seen}
        found = [_difference(name, self._seen.get(name), now.get(name)) for name in sorted(names)]
        for name, status in now.items():
            if stat.S_ISREG(status[-1]) and status != self._seen.get(name):
                self._sing(Path(name))
        self._seen = self._state()
        return [sentence for sentence in found if sentence]

    @staticmethod
    def _sing(path: Path) -> None:
        """Put the access time before the last change, so that the next access moves it."""
        os.utime(path, (0, 1))

    def _files(self):
        for folder in self._folders:
            for path in folder.rglob("*"):
                if self._sandbox not in (path, *path.parents) and path.is_file():
                    yield path

    def _state(self) -> dict[str, tuple]:
        found: dict[str, tuple] = {}
        waiting = [str(folder) for folder in self._folders]
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.path in found or entry.path == str(self._sandbox):
                        continue
                    status = entry.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(status.st_mode)
                    found[entry.path] = (
                        0 if is_folder or entry.name.endswith(LINKED) else status.st_atime_ns,
                        status.st_mtime_ns * (not is_folder),
                        status.st_size * (not is_folder),
                        status.st_ino,
                        status.st_mode,
                    )
                    if is_folder:
                        waiting.append(entry.path)
        return found


def _difference(name: str, before: tuple | None, after: tuple | None) -> str:
    if before == after:
        return ""
    if before is None or after is None:
        return f"{'writes' if before is None else 'removes'} {name} (canary)"
    return f"{'reads' if before[1:] == after[1:] else 'changes'} {name} (canary)"
