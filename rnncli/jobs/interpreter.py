"""New processes of Python, which import nothing from the folder that they are started in.

Python itself would: `python -c` and `python -m` have the working folder first in `sys.path`, and
whoever works in a folder that comes from a stranger would run the stranger's `json.py`.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rnncli.errors import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# The variable that does for processes which libraries start what -P does for ours.
SAFE_PATH = "PYTHONSAFEPATH"
# What else this process was told not to import from: flag of `sys.flags` -> option.
NARROWED = {"ignore_environment": "-E", "no_user_site": "-s"}
TAKES_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1))\n"


def python(*arguments: str) -> list[str]:
    """Return the command line of a new process of this Python."""
    narrowed = [option for flag, option in NARROWED.items() if getattr(sys.flags, flag)]
    return [sys.executable, "-P", *narrowed, *arguments]


def python_like_this(program: str, *arguments: str) -> list[str]:
    """Return the command line that runs the text of a program, importing from where we do."""
    return python("-c", TAKES_PATH + program, json.dumps(sys.path), *arguments)


@contextmanager
def children_have(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that libraries start inside, and `SAFE_PATH`.

    Raises:
        Unsupported: Python was told to ignore such variables, and not to import safely.
    """
    if sys.flags.ignore_environment and not sys.flags.safe_path:
        raise Unsupported("workers of a Python with -E would import from here; start it with -I")
    before = {name: os.environ.get(name) for name in (SAFE_PATH, *variables)}
    os.environ.update({SAFE_PATH: "1", **variables})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
