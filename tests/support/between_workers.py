"""What takes seconds to make is made once, by one of the processes that run the tests, for all."""

import os
import pickle
import shutil
import tempfile
from pathlib import Path

from rnncli.files.lock import in_turn

FOLDER = "RNNCLI_TESTS_FOLDER"
PATIENCE = 600  # seconds, after which a process makes it for itself


def begin():
    """Make the folder of a session of pytest, which its workers find by a variable."""
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="rnncli-tests-")


def end():
    """Remove it."""
    shutil.rmtree(os.environ.pop(FOLDER), ignore_errors=True)


def made_once(name, make):
    """Return what a function makes, or what it made in another process of this session."""
    if FOLDER not in os.environ:  # outside of pytest
        return make()
    path = Path(os.environ[FOLDER], f"{name}.pickle")
    with in_turn(path.with_suffix(".lock"), PATIENCE):
        if not path.exists():
            new = path.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps(make(), pickle.HIGHEST_PROTOCOL))
            new.rename(path)
    return pickle.loads(path.read_bytes())  # noqa: S301 -- of this session alone
