"""Results that were computed elsewhere: a device, a simulator or a colleague needs no Python.

Either a folder, laid out as a pack with nothing but outputs:

    results/test_ID/test_data_set_0/output_0.pb ...

where K of output_K.pb is the position among the outputs that the case asks for, by which a tensor
without a name of its own is named; or one .npz or .h5 file with ID/outputs/Y, or just ID/Y. What
came out of a second call stands in test_data_set_1, or at ID/calls/1/outputs/Y.

A device that refuses a case says so: by a file `refused.txt` beside the case's `test_data_set_0`,
whose first line, if it has one, says why; in one file by a tensor `ID/refused`, whatever it holds.
There are no outputs beside it.

A case of which there is nothing is missing, which is no answer: that it was refused and that nobody
ran it look the same. A case of which a part is missing ran, and that part differs. Results that
cannot be read are a crash of that case, not of the run; a place with no results at all is an error,
for it is a wrong place.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile
from rnncli.files.paths import RelativePath, below
from rnncli.files.regular import MissingFile, open_regular
from rnncli.formats import pb, read_tensors
from rnncli.packs.attempt import Attempt, Status
from rnncli.packs.case_folder import PREFIX, data_set, folder_of
from rnncli.packs.vector import CALLS, INPUTS, OUTPUTS, READINGS, TOLERANCES
from rnncli.subjects.supervision.programs import first_line, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rnncli.formats.format import Tensors
    from rnncli.packs.vector import Vector

_OUTPUT = re.compile(r"output_(0|[1-9][0-9]{0,8})\.pb")
_CALL = re.compile(rf"{CALLS}/([1-9][0-9]{{0,8}})/")
_OTHER_ROLES = (f"{INPUTS}/", f"{TOLERANCES}/", f"{READINGS}/")

REFUSED = "refused"
REFUSED_FILE = f"{REFUSED}.txt"
SAYS_NO_MORE = "the results say that it was refused"
LARGEST_REASON = 1 << 16  # bytes

MISSING = Attempt(Status.MISSING, message="no results for it")


def results_subject(path: str | Path) -> ResultsFolder | ResultsFile:
    """Open a place with results.

    Raises:
        UnreadableFile: it is missing, or damaged as a whole.
        InvalidRequest: it holds no results, or no format has its extension.
    """
    return ResultsFolder(Path(path)) if Path(path).is_dir() else ResultsFile(Path(path))


class ResultsFolder:
    """A folder for each case.

    Args:
        folder: of all.

    Raises:
        InvalidRequest: no folder in it is a case's.
    """

    def __init__(self, folder: Path) -> None:
        self.name = str(folder)
        self._folder = folder
        if not any(entry.name.startswith(PREFIX) for entry in os.scandir(folder)):
            raise InvalidRequest(
                f"{folder}: holds no results, which are {PREFIX}ID/{data_set(0)}/output_0.pb"
            )

    def describe(self) -> Mapping[str, str]:
        """Return where they are."""
        return {"results": self.name}

    def attempt(self, vector: Vector) -> Attempt:
        """Read the case's outputs."""
        try:
            folder = below(self._folder, folder_of(vector.id))
            reason = _reason(below(folder, RelativePath(REFUSED_FILE)))
            place = below(folder, RelativePath(data_set(vector.call)))
            outputs = read_folder(place, vector.record["outputs"])
        except RnncliError as error:
            return garbage(error)
        return _attempt(outputs, reason)

    def close(self) -> None:
        """There is nothing to end."""


class ResultsFile:
    """All cases in one file, read at once.

    Args:
        path: of the file; its extension says the format.

    Raises:
        UnreadableFile: it is missing or damaged.
        InvalidRequest: it holds no results, or no format has its extension.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._cases = _by_case(read_tensors(path))
        if not self._cases:
            raise InvalidRequest(f"{path}: holds no results, which are named ID/outputs/Y or ID/Y")

    def describe(self) -> Mapping[str, str]:
        """Return where they are."""
        return {"results": self.name}

    def attempt(self, vector: Vector) -> Attempt:
        """Look up the case's outputs."""
        found = self._cases.get((vector.id, vector.call), {})
        outputs = {name: values for name, values in found.items() if name != REFUSED}
        is_refused = REFUSED in found or REFUSED in self._cases.get((vector.id, 0), {})
        return _attempt(outputs, "" if is_refused else None)

    def close(self) -> None:
        """There is nothing to end."""


def _attempt(outputs: Tensors, reason: str | None) -> Attempt:
    """Return what some outputs, and what is said of a refusal if anything is, are together."""
    if reason is None:
        return Attempt(Status.RAN, outputs) if outputs else MISSING
    if outputs:
        return garbage(InvalidRequest(f"{SAYS_NO_MORE}, and hold {', '.join(outputs)}"))
    return Attempt(Status.REFUSED, message=reason or SAYS_NO_MORE)


def _reason(path: Path) -> str | None:
    """Return the first line of a file that says why a case was refused; None without one."""
    try:
        with open_regular(path) as stream:
            return first_line(stream.read(LARGEST_REASON).decode("utf-8", "replace"))
    except MissingFile:
        return None


def read_folder(folder: Path, names: Sequence[str]) -> Tensors:
    """Read the outputs in a folder; none where there is no such folder.

    Args:
        folder: with output_K.pb.
        names: of the outputs asked for; name K is that of a tensor K without a name.

    Raises:
        UnreadableFile: one is damaged, or two have the same name.
        Unsupported: one is no tensor.
    """
    try:
        entries = os.listdir(folder)  # noqa: PTH208 -- ten thousand times, and names suffice
    except (FileNotFoundError, NotADirectoryError):
        return {}
    tensors: Tensors = {}
    found = filter(None, map(_OUTPUT.fullmatch, entries))
    for position in sorted(int(match[1]) for match in found):
        own, values = pb.read_named(below(folder, RelativePath(f"output_{position}.pb")))
        name = own or (names[position] if position < len(names) else f"output_{position}")
        if name in tensors:
            raise UnreadableFile(f"{folder}: two outputs are named '{name}'")
        tensors[name] = values
    return tensors


def read_file(path: Path) -> Tensors:
    """Read the outputs of one case, named ``Y`` or ``outputs/Y``; none where there is no file.

    Raises:
        RnncliError: it cannot be read.
    """
    found = read_tensors(path) if path.exists() else {}
    return {name.removeprefix(f"{OUTPUTS}/"): values for name, values in found.items()}


def garbage(error: RnncliError) -> Attempt:
    """Return the attempt that left results which cannot be read."""
    return Attempt(Status.CRASHED, message=f"gave garbage: {printable(str(error))}")


def _by_case(tensors: Tensors) -> dict[tuple[str, int], Tensors]:
    """Return the outputs of each call of each case; what else a pack holds is left aside."""
    cases: dict[tuple[str, int], Tensors] = {}
    for full_name, values in tensors.items():
        case, _, rest = full_name.partition("/")
        call, name = _call_of(rest)
        if name and not name.startswith(_OTHER_ROLES):
            cases.setdefault((case, call), {})[name.removeprefix(f"{OUTPUTS}/")] = values
    return cases


def _call_of(name: str) -> tuple[int, str]:
    """Return which call a tensor is of, and its name there."""
    if found := _CALL.match(name):
        return int(found[1]), name[found.end() :]
    return 0, name
