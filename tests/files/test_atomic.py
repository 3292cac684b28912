"""Files and folders are written whole or not at all, and in the place meant."""

import errno
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from rnncli.errors import InvalidRequest
from rnncli.files.atomic import (
    RECORD,
    TEMPORARY,
    atomic_file,
    atomic_folder,
    move_files,
    put_file,
    put_folder,
    remove_file,
    remove_temporaries,
)


def names(folder):
    """What is in a folder."""
    return sorted(each.name for each in folder.iterdir())


def test_the_old_file_is_there_until_the_new_is_complete(tmp_path):
    """A reader never sees half a file."""
    path = tmp_path / "x"
    path.write_text("old")
    with atomic_file(path) as stream:
        stream.write(b"new")
        assert "old" == path.read_text()

    assert "new" == path.read_text()
    assert ["x"] == names(tmp_path)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, ValueError, MemoryError])
@pytest.mark.parametrize("before", ["old", None])
def test_any_failure_leaves_what_was_there(failure, before, tmp_path):
    """Interrupts included, the failure goes on as it is."""
    path = tmp_path / "x"
    if before:
        path.write_text(before)
    with pytest.raises(failure), atomic_file(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise failure

    assert (["x"] if before else []) == names(tmp_path)
    assert not before or before == path.read_text()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EIO])
def test_what_the_disk_says_is_the_sentence(code, tmp_path):
    """Disk full, read-only, over quota: the path and the system's own words."""
    with (
        pytest.raises(InvalidRequest, match=f"^cannot write .*x: {os.strerror(code)}$"),
        atomic_file(tmp_path / "x"),
    ):
        raise OSError(code, os.strerror(code))

    assert [] == names(tmp_path)


def test_a_failing_rename_leaves_what_was_there(tmp_path, monkeypatch):
    """Even the last step may fail."""

    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    path = tmp_path / "x"
    path.write_text("old")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(InvalidRequest, match="not permitted"), atomic_file(path) as stream:
        stream.write(b"new")

    assert ["x"] == names(tmp_path)
    assert "old" == path.read_text()


@pytest.mark.parametrize("interrupted", [PermissionError, KeyboardInterrupt])
def test_a_folder_comes_back_when_the_new_one_cannot_take_its_place(
    interrupted, tmp_path, monkeypatch
):
    """Between the two renames of a folder, too, nothing is lost."""
    path = tmp_path / "x"
    with atomic_folder(path) as folder:
        (folder / "old").write_text("old")
    rename = Path.rename
    calls = []

    def second_fails(self, target):
        calls.append(target)
        if len(calls) == 2:
            raise interrupted
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", second_fails)
    with (
        pytest.raises((InvalidRequest, KeyboardInterrupt)),
        atomic_folder(path) as temporary,
    ):
        (temporary / "new").write_text("new")

    assert ["x"] == names(tmp_path)
    assert [RECORD, "old"] == names(path)


def test_new_files_have_the_usual_permissions(tmp_path):
    """As if opened for writing: the umask decides, not the way the temporary is made."""
    usual = tmp_path / "usual"
    usual.touch()
    with atomic_file(tmp_path / "x"):
        pass
    with atomic_folder(tmp_path / "f"):
        pass
    (tmp_path / "usual_folder").mkdir()

    def mode(name):
        return stat.S_IMODE((tmp_path / name).stat().st_mode)

    assert mode("usual") == mode("x")
    assert mode("usual_folder") == mode("f")


def test_a_symbolic_link_stays_and_its_target_is_written(tmp_path):
    """A link to another disk is somebody's arrangement."""
    (tmp_path / "there").mkdir()
    (tmp_path / "x").symlink_to(tmp_path / "there/x")
    with atomic_file(tmp_path / "x") as stream:
        stream.write(b"new")

    assert (tmp_path / "x").is_symlink()
    assert "new" == (tmp_path / "there/x").read_text()


def test_a_folder_or_a_device_is_not_replaced_by_a_file(tmp_path):
    """What is in the way is named, and stays."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with (
            pytest.raises(InvalidRequest, match=f"{name}: it is a folder or a device"),
            atomic_file(tmp_path / name),
        ):
            pass

    assert ["folder", "pipe"] == names(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    """The folder that is not there is in the sentence, and is not made."""
    with (
        pytest.raises(InvalidRequest, match=r"none/x: there is no folder \S+none$"),
        atomic_file(tmp_path / "none/x"),
    ):
        pass

    assert [] == names(tmp_path)


def test_a_dead_writers_temporary_goes_and_a_living_ones_stays(tmp_path):
    """Whoever writes holds a lock that the system gives back when it dies, however it dies."""
    dead = tmp_path / ".x.0123456789ab.tmp"
    dead.write_text("half")
    other = tmp_path / ".y.0123456789ab.tmp"
    other.write_text("of another name")
    with atomic_file(tmp_path / "x") as first:
        first.write(b"first")
        with atomic_file(tmp_path / "x") as second:
            second.write(b"second")
        assert "second" == (tmp_path / "x").read_text()

    assert "first" == (tmp_path / "x").read_text()
    assert [other.name, "x"] == names(tmp_path)


def test_a_folder_that_a_dead_writer_moved_aside_comes_back(tmp_path):
    """A kill between the two renames of a folder loses nothing."""
    with atomic_folder(tmp_path / ".x.0123456789ab.old") as folder:
        (folder / "old").touch()
    (tmp_path / ".x.ba9876543210.tmp").mkdir()
    with pytest.raises(ValueError, match="fails"), atomic_folder(tmp_path / "x"):
        raise ValueError("fails")

    assert ["x"] == names(tmp_path)
    assert [RECORD, "old"] == names(tmp_path / "x")


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_small_file_replaces_a_link(link, tmp_path):
    """What a link leads to is not ours to write."""
    outside = tmp_path / "outside"
    outside.write_text("of the user")
    (tmp_path / "pack").mkdir()
    getattr(tmp_path / "pack/x", link)(outside)
    put_file(tmp_path, "pack/x", b"ours")

    assert "of the user" == outside.read_text()
    assert "ours" == (tmp_path / "pack/x").read_text()
    assert ["x"] == names(tmp_path / "pack")


@pytest.mark.parametrize("deed", ["written", "moved", "removed"])
def test_nothing_happens_behind_a_link_that_comes_after_the_check(deed, tmp_path, monkeypatch):
    """Where another process exchanges a folder for a link, what that leads to stays."""
    (tmp_path / "pack/test_x").mkdir(parents=True)
    (tmp_path / "new/test_x").mkdir(parents=True)
    (tmp_path / "new/test_x/model.onnx").write_text("ours")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/model.onnx").write_text("of the user")
    (tmp_path / "pack/test_x").rmdir()
    (tmp_path / "pack/test_x").symlink_to("../outside")
    monkeypatch.setattr("rnncli.files.atomic.below", lambda folder, path: folder / path)
    with pytest.raises(NotADirectoryError):
        {
            "written": lambda: put_file(tmp_path / "pack", "test_x/model.onnx", b"ours"),
            "moved": lambda: move_files(["test_x/model.onnx"], tmp_path / "new", tmp_path / "pack"),
            "removed": lambda: remove_file(tmp_path / "pack", "test_x/model.onnx"),
        }[deed]()

    assert ["model.onnx"] == names(tmp_path / "outside")
    assert "of the user" == (tmp_path / "outside/model.onnx").read_text()
    assert ["model.onnx"] == names(tmp_path / "new/test_x")


def test_the_only_writer_removes_every_temporary(tmp_path):
    """At any depth, and nothing else."""
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/.test_x.0123456789ab.tmp/data").mkdir(parents=True)
    for name in (".model.onnx.0123456789ab.tmp", ".model.onnx.tmp", "model.onnx"):
        (tmp_path / "a/b" / name).touch()
    remove_temporaries(tmp_path)

    assert ["b"] == names(tmp_path / "a")
    assert [".model.onnx.tmp", "model.onnx"] == names(tmp_path / "a/b")


def test_a_new_folder_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    """A disk that refuses the last file leaves none of the others."""
    files = {"model.onnx": b"m", "data/input_0.pb": b"i"}
    put_folder(f"{tmp_path}/whole", files)
    assert b"i" == (tmp_path / "whole/data/input_0.pb").read_bytes()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OSError, match="No space left"):
        put_folder(f"{tmp_path}/half", files)

    assert ["whole"] == names(tmp_path)


def test_the_longest_name_has_a_temporary(tmp_path):
    """255 bytes of it, in characters of three bytes."""
    name = "字" * 85
    with atomic_file(tmp_path / name) as stream:
        stream.write(b"x")
        (temporary,) = names(tmp_path)
        assert TEMPORARY.fullmatch(temporary)

    assert [name] == names(tmp_path)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o4755])
def test_a_new_file_is_as_private_as_the_one_that_it_replaces(tmp_path, mode):
    """From its first byte on; it never runs as another user."""
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(mode)
    with atomic_file(path) as stream:
        (temporary,) = [each for each in tmp_path.iterdir() if each != path]
        during = temporary.stat().st_mode & 0o7777
        stream.write(b"new")

    assert (during, path.stat().st_mode & 0o7777) == (mode & 0o777, mode & 0o777)
    assert path.read_text() == "new"


def states(folder):
    """What each path is, and when its content was last changed."""
    found = ((path, path.lstat()) for path in sorted(folder.rglob("*")))
    return [(path, each.st_ino, each.st_mode, each.st_mtime_ns) for path, each in found]


def into_a_link(folder, target):
    """Replace a file by a link to its own content."""
    moved = folder.parent / "moved"
    (folder / target).rename(moved)
    (folder / target).symlink_to(moved)


# What lies in an output of ours -> what makes it so, and what the refusal says.
NOT_OURS = {
    "a file": (lambda x: (x / "CNAME").write_text("a.org"), "CNAME is not of an earlier output"),
    "a file in a folder": (
        lambda x: (x / "a/notes").touch(),
        "a/notes is not of an earlier output",
    ),
    "a repository": (lambda x: (x / ".git").mkdir(), ".git is not of an earlier output"),
    "an empty folder": (lambda x: (x / "a/empty").mkdir(), "a/empty is not of an earlier output"),
    "a pipe": (lambda x: os.mkfifo(x / "pipe"), "pipe is not of an earlier output"),
    "a link to a file": (lambda x: (x / "b").symlink_to("a/one"), "b is not of an earlier output"),
    "a link to a folder": (lambda x: (x / "b").symlink_to("a"), "b is not of an earlier output"),
    "a link to nothing": (lambda x: (x / "b").symlink_to("c"), "b is not of an earlier output"),
    "an edited file": (lambda x: (x / "a/one").write_text("mine"), "a/one was changed since"),
    "a read-only file": (lambda x: (x / "a/one").chmod(0o444), "a/one is read-only"),
    "a file become a link": (lambda x: into_a_link(x, "a/one"), "a/one is not of an earlier"),
    "a folder become a link": (lambda x: into_a_link(x, "a"), "a is not of an earlier output"),
    "a list become a link": (lambda x: into_a_link(x, RECORD), "is a symbolic link"),
    "an edited list": (lambda x: (x / RECORD).open("a").write("x"), "was changed since"),
    "no list": (lambda x: (x / RECORD).unlink(), "a/one is not of an earlier output"),
}


@pytest.mark.parametrize("case", NOT_OURS)
def test_a_folder_with_anything_that_is_not_ours_stays(case, tmp_path, monkeypatch):
    """Whatever it is, however the folder is named; the first of it is in the sentence."""
    plant, sentence = NOT_OURS[case]
    folder = tmp_path / "out"
    with atomic_folder(folder) as temporary:
        (temporary / "a").mkdir()
        (temporary / "a/one").write_text("ours")
    plant(folder)
    (tmp_path / "link").symlink_to("out")
    before = states(tmp_path)
    for place, named in ((tmp_path, "out"), (tmp_path, "link"), (folder, "."), (folder, "..")):
        monkeypatch.chdir(place)
        wanted = sentence if place == tmp_path else "you work in this folder"
        with pytest.raises(InvalidRequest, match=re.escape(wanted)), atomic_folder(Path(named)):
            raise AssertionError("it must be refused before anything is made")

    assert before == states(tmp_path)


def test_a_file_that_is_saved_while_we_write_stays(tmp_path):
    """What an hour's work replaces is looked at when it is done, too."""
    with atomic_folder(tmp_path / "x"):
        pass
    with pytest.raises(InvalidRequest, match="notes is not of"), atomic_folder(tmp_path / "x"):
        (tmp_path / "x/notes").write_text("mine")

    assert [RECORD, "notes"] == names(tmp_path / "x")
    assert ["x"] == names(tmp_path)


def test_an_untouched_folder_is_replaced(tmp_path):
    """Through a link, which stays, and if files of it are gone; `sha256sum` reads the list."""
    (tmp_path / "link").symlink_to("x")
    for number in range(3):
        with atomic_folder(tmp_path / "link") as folder:
            (folder / "a").mkdir()
            for name in ("a/one", "two"):
                (folder / name).write_text(f"{number}")
        if number == 1:
            (tmp_path / "x/two").unlink()

    assert "2" == (tmp_path / "x/a/one").read_text()
    assert (tmp_path / "link").is_symlink()
    check = subprocess.run(
        ["sha256sum", "--check", RECORD], cwd=tmp_path / "x", capture_output=True, check=False
    )
    assert (check.returncode, check.stdout) == (0, b"a/one: OK\ntwo: OK\n")
