"""A folder has one writer."""

import subprocess
import sys
from threading import Thread

import pytest

from rnncli.errors import InvalidRequest
from rnncli.files.lock import LOCK, in_turn, writing

HOLDER = """
import sys
from pathlib import Path
from rnncli.files.lock import writing
with writing(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert b"held\n" == process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def test_a_second_writer_is_told_who_the_first_is(holder, tmp_path):
    """Process, machine and time are in the sentence."""
    told = rf"is being written by process {holder.pid} on \S+ since \d\d:\d\d$"
    with pytest.raises(InvalidRequest, match=told), writing(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_free(holder, tmp_path):
    """Its file is taken over, and removed in the end."""
    holder.kill()
    holder.wait()
    assert [tmp_path / LOCK] == [*tmp_path.iterdir()]
    with writing(tmp_path):
        pass

    assert [] == [*tmp_path.iterdir()]


def test_one_after_the_other_may_write(tmp_path):
    """A failure gives the lock back, too."""
    with pytest.raises(ValueError, match="fails"), writing(tmp_path):
        raise ValueError("fails")
    with writing(tmp_path):
        assert [tmp_path / LOCK] == [*tmp_path.iterdir()]

    assert [] == [*tmp_path.iterdir()]


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    """A stranger's folder may have one that leads to a file of the user's."""
    (tmp_path / "outside").write_text("of the user")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / LOCK).symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidRequest, match="cannot write"), writing(tmp_path / "pack"):
        pass

    assert "of the user" == (tmp_path / "outside").read_text()


def test_a_lock_of_two_names_is_refused(tmp_path):
    """A hard link in place of the lock: no note is written into the other file."""
    other = tmp_path / "other"
    other.write_text("a user's")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / LOCK).hardlink_to(other)

    with pytest.raises(InvalidRequest, match="is not a regular file with a single name"):
        writing(tmp_path / "pack").__enter__()

    assert other.read_text() == "a user's"


def test_who_waits_runs_after_the_holder(holder, tmp_path):
    """As soon as the lock is free; it is removed in the end."""
    events = []

    def wait():
        with in_turn(tmp_path / LOCK, patience=600):
            events.append("ran")

    waiting = Thread(target=wait)
    waiting.start()
    events.append("released")
    holder.kill()
    waiting.join()

    assert events == ["released", "ran"]
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", [LOCK, "no folder/lock"])
def test_who_cannot_wait_runs_at_once(holder, tmp_path, name):
    """Without patience, or where no lock can be."""
    events = []
    with in_turn(tmp_path / name, patience=0):
        events.append("ran")

    assert events == ["ran"]
