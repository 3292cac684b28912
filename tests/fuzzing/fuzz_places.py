"""What may stand in the place of a file or a folder: links, pipes, devices, sparse files."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from fuzz_process import Box


def _to_canary(path: Path, box: Box, dice) -> None:
    names = (
        "canary",
        "canary.npz",
        "canary.h5",
        "canary.onnx",
        "canary.pb",
        "canary.txt",
        "canary.yaml",
        "canary/manifest.json",
    )
    path.symlink_to(dice.choice(box.outer) / dice.choice(names))


def _same_content_outside(path: Path, box: Box, dice) -> None:
    """A link to a file outside that is what it should be: only the path is wrong."""
    del dice
    path.symlink_to(
        box.outer[-1]
        / "canary"
        / ("model.onnx" if path.suffix == ".onnx" else "test_data_set_0/input_0.pb")
    )


def _to_inside(path: Path, box: Box, dice) -> None:
    del box
    path.symlink_to(
        dice.choice(
            (
                path.name,
                "../x",
                ".",
                "..",
                "model.onnx",
                "nowhere",
                "/proc/self/fd/0",
                "input_0.pb",
                path.name + "2",
            )
        )
    )


def _to_device(path: Path, box: Box, dice) -> None:
    del box
    path.symlink_to(
        dice.choice(
            (
                "/dev/zero",
                "/dev/stdin",
                "/dev/random",
                "/proc/self/mem",
                "/etc/passwd",
                "/dev/full",
                "/dev/tty",
            )
        )
    )


def _pipe(path: Path, _, __) -> None:
    os.mkfifo(path)


def _folder(path: Path, _, dice) -> None:
    path.mkdir()
    (path / "x").write_bytes(b"x") if dice.random() < 0.5 else None


def _sparse(path: Path, _, dice) -> None:
    path.touch()
    os.truncate(path, dice.choice((1 << 20, 1 << 31, 1 << 33, 1 << 40)))


def _socket(path: Path, _, __) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/cwd/{path}"[:100])


def _hard(path: Path, box: Box, _) -> None:
    os.link(box.outer[-1] / "canary.hard", path)


def _empty(path: Path, _, __) -> None:
    path.touch()


def _closed(path: Path, _, __) -> None:
    path.touch(0)


def _device(path: Path, _, __) -> None:
    try:
        os.mknod(path, 0o020644, os.makedev(1, 5))
    except OSError:
        path.symlink_to("/dev/zero")


PLACES = (
    _to_canary,
    _to_canary,
    _same_content_outside,
    _to_inside,
    _to_device,
    _pipe,
    _folder,
    _sparse,
    _socket,
    _hard,
    _empty,
    _closed,
    _device,
)
_NEW = (
    ".rnncli-journal",
    ".rnncli-journal.tmp",
    "manifest.json.tmp",
    ".rnncli-lock",
    "test_x",
    "test_new/model.onnx",
    "vectors.npz",
    "vectors.h5",
    "SHA256SUMS.tmp",
    "test_lstm_14_clip/readings/x",
)


def misplace(root: Path, box: Box, dice: random.Random) -> None:
    """Put something else where a file or a folder is, or where one will be written."""
    below = sorted(root.rglob("*"))
    path = root / dice.choice(_NEW) if dice.random() < 0.2 else dice.choice(below or [root / "x"])
    if not path.parent.resolve().is_relative_to(box.path.resolve()):
        return  # below a link that was planted before
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
    with contextlib.suppress(OSError):  # the place may be below one that was changed before
        path.parent.mkdir(parents=True, exist_ok=True)
        dice.choice(PLACES)(path, box, dice)
