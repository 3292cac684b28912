"""The program of a command line that the user gave, and what keeps it from starting."""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest
from rnncli.files.regular import open_regular

if TYPE_CHECKING:
    from pathlib import Path

    from rnncli.limits import Limits
    from rnncli.subjects.supervision.programs import Ending

# A shell's exit codes for a program it may not execute and for one it does not find.
UNSTARTABLE = (126, 127)


def described_limits(limits: Limits) -> dict[str, str]:
    """Return the limits of a program as its description has them."""
    timeout = {"timeout": f"{limits.timeout:g}"}
    return timeout | ({} if limits.max_memory is None else {"max_memory": f"{limits.max_memory}"})


def words_of(option: str, command: str) -> list[str]:
    """Split a command line as a shell would.

    Args:
        option: the option it was given to, with its dashes.
        command: the command line.

    Raises:
        InvalidRequest: it is empty, or a quotation has no end.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InvalidRequest(f"{option} {command}: {error}") from None
    if not words:
        raise InvalidRequest(f"{option} is empty")
    return words


def found_program(said: str, path: str, here: Path) -> Path:
    """Find a program as it would be called from a folder.

    Args:
        said: the option and the command line, for messages.
        path: the program; one with a slash is relative to `here`, any other is looked up in PATH.
        here: the folder.

    Raises:
        InvalidRequest: there is no such program, or it is not executable.
    """
    program = shutil.which(str(here / path) if os.sep in path else path)
    if program is None:
        is_there = os.sep in path and (here / path).is_file()
        not_executable = f"the program could not be started: {path} is not executable"
        why = not_executable if is_there else f"there is no program '{path}'"
        raise InvalidRequest(f"{said}: {why}")
    return here / program


def require_started(said: str, program: Path, ending: Ending | None) -> None:
    """Refuse a program that ended without having been started.

    Raises:
        InvalidRequest: the system, a shell or a loader reports that it could not be started.
    """
    if ending and (ending.unstartable is not None or ending.exit in UNSTARTABLE):
        why = _not_started(ending, program)
        raise InvalidRequest(f"{said}: the program could not be started: {why}")


def _not_started(ending: Ending, program: Path) -> str:
    """Name a program that did not start, with the reason in its or the system's words."""
    if ending.unstartable is None:
        return f"{program} {ending.sentence}"
    with open_regular(program) as stream:
        is_script = stream.read(2) == b"#!"
    hint = "; the interpreter named in its first line may be missing" if is_script else ""
    return f"{program}: {ending.unstartable}{hint}"
