"""Results computed elsewhere, such as on a device or a simulator without Python.

They are either a folder laid out like a pack that holds only outputs:

    results/test_ID/test_data_set_0/output_0.pb ...

or a folder laid out like a raw pack, whose files are the elements and nothing else:

    results/test_ID/outputs/Y.bin ...

or one .npz or .h5 file with ID/outputs/Y or simply ID/Y; or, of one case, Y. In output_K.pb, K is
the position among the case's outputs and names a tensor that has no name itself. The outputs of a
second call are in test_data_set_1, at test_ID/calls/1/outputs/Y.bin or ID/calls/1/outputs/Y.

A device may record the signals of every step, or some of them, under the names that the pack stores
them by: in test_ID/steps/output_K.pb, at test_ID/steps/outputs/gate_i.bin or as ID/steps/gate_i.

A device reports a refusal by a file `refused.txt` beside the case's `test_data_set_0`, whose first
line may give the reason, or in a single file by a tensor `ID/refused` of any value. A refused case
has no outputs.

A case without results is missing, which is not an answer: it may have been refused or never run. A
case with some outputs missing ran, and those outputs differ. Unreadable results are a crash of that
case, not of the run. A path without any results is an error, since it must be the wrong path.

Results that are much larger than the expected outputs are not read, see `room_for`.
"""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rnncli.cases.case import frame_of
from rnncli.errors import InvalidRequest, RnncliError, UnreadableFile
from rnncli.files.formats import pb, read_tensors
from rnncli.files.formats.raw import tensor_from
from rnncli.files.paths import RelativePath, below
from rnncli.files.reading import MissingFile, open_regular, read_bytes
from rnncli.numerics import dtype_named, dtype_of
from rnncli.operators import operator_named
from rnncli.packs.case_folder import data_set, steps_of
from rnncli.packs.layouts import PREFIX, folder_of
from rnncli.packs.raw_form import RAW
from rnncli.packs.vector import (
    BYTES,
    CALLS,
    INPUTS,
    OUTPUTS,
    READINGS,
    STEPS,
    TOLERANCES,
    Attempt,
    Status,
    group_of,
)
from rnncli.supervision.programs import first_line
from rnncli.talk.words import listed, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rnncli.files.formats.format import Tensors
    from rnncli.packs.record import CaseRecord
    from rnncli.packs.vector import Vector

_OUTPUT = re.compile(r"output_(0|[1-9][0-9]{0,8})\.pb")
_CALL = re.compile(rf"{CALLS}/([1-9][0-9]{{0,8}})/")
_OTHER_ROLES = (f"{INPUTS}/", f"{TOLERANCES}/", f"{READINGS}/", f"{STEPS}/{TOLERANCES}/")
# The sizes of a signal of every step.
OF_A_SIGNAL = ("seq_length", "num_directions", "batch_size", "hidden_size")

REFUSED = "refused"
REFUSED_FILE = f"{REFUSED}.txt"
SAYS_NO_MORE = "the results say that it was refused"
LARGEST_REASON = 1 << 16  # bytes
# The most bytes of results: any of the largest type in the place of the smallest fits.
LEAST_ROOM, BYTES_PER_BYTE = 1 << 20, 8
# The least room of one file for all cases, which may hold those of a larger pack as well.
LEAST_ROOM_OF_A_FILE = 1 << 28

MOST_SEEN = 100  # files where a case's results are missing

MISSING = Attempt(Status.MISSING, message="no results for it")


def results_subject(path: str | Path) -> ResultsFolder | ResultsFile:
    """Open a path with results."""
    return ResultsFolder(Path(path)) if Path(path).is_dir() else ResultsFile(Path(path))


class Results:
    """Recorded results; they hold no process."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)

    def describe(self) -> Mapping[str, str]:
        """Return the path of the results."""
        return {"results": self.name}

    def close(self) -> None:
        """Do nothing."""

    def check(self, ids: Sequence[str], known: Iterable[str]) -> None:
        """Refuse results that have none of a pack's cases, or do not say of which they are.

        Args:
            ids: the cases that are asked.
            known: all cases of the pack.

        Raises:
            InvalidRequest: their names have no id, or no id of the pack.
        """


class ResultsFolder(Results):
    """Results in a folder with one subfolder per case.

    Raises:
        InvalidRequest: no subfolder belongs to a case.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder
        if not any(entry.name.startswith(PREFIX) for entry in os.scandir(folder)):
            raise InvalidRequest(
                f"{folder}: holds no results, which are {PREFIX}ID/{data_set(0)}/output_0.pb"
                f" or {PREFIX}ID/{OUTPUTS}/Y{RAW}"
            )

    def check(self, ids: Sequence[str], known: Iterable[str]) -> None:
        """Refuse a folder that has no case of the pack."""
        there = sorted(name for name in os.listdir(self._folder) if name.startswith(PREFIX))  # noqa: PTH208
        if {folder_of(each) for each in known}.isdisjoint(there):
            case = f"{self.name}/{folder_of(next(iter(ids), 'ID'))}"
            raise InvalidRequest(
                f"{self.name}: has none of the pack's cases, but {there[0]}; expected"
                f" {case}/{data_set(0)}/output_0.pb or {case}/{OUTPUTS}/Y{RAW}"
            )

    def attempt(self, vector: Vector) -> Attempt:
        """Read the case's outputs."""
        call, wanted, signals = vector.call, vector.answers.outputs, vector.steps.outputs
        try:
            folder = below(self._folder, folder_of(vector.id))

            def read(place: str, raw: str, names: Sequence[str], wanted: Tensors) -> Tensors:
                found = read_folder(below(folder, RelativePath(place)), names, wanted)
                raw_place = below(folder, RelativePath(f"{group_of(call)}{raw}"))
                return found | read_raw_folder(raw_place, wanted)

            reason = None
            with (
                suppress(MissingFile),
                open_regular(below(folder, RelativePath(REFUSED_FILE))) as stream,
            ):
                reason = first_line(stream.read(LARGEST_REASON).decode("utf-8", "replace"))
            outputs = read(data_set(call), OUTPUTS, vector.record.outputs, wanted)
            recorded = read(steps_of(call), f"{STEPS}/{OUTPUTS}", [*signals], signals)
        except RnncliError as error:
            return garbage(error)
        attempt = _attempt(outputs, reason)
        if attempt is MISSING and folder.is_dir():  # they may lie elsewhere, or be of another call
            paths = islice((path for path in folder.rglob("*") if path.is_file()), MOST_SEEN)
            there = sorted(printable(path.relative_to(folder).as_posix()) for path in paths)
            first = next(iter(wanted), "Y")
            places = f"{group_of(call)}{OUTPUTS}/{first}{RAW} or {data_set(call)}/output_0.pb"
            message = f"{MISSING.message}: wanted {places}, there is {listed(there) or 'nothing'}"
            return replace(MISSING, message=message)
        return replace(attempt, signals=recorded)


class ResultsFile(Results):
    """The results of all cases in one file, read at once; its extension selects the format.

    Raises:
        UnreadableFile: it is missing or damaged.
        InvalidRequest: it holds no results, or no format has its extension.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._cases: dict[tuple[str, int], Tensors] = {}  # of each call of each case
        tensors = read_tensors(path)
        # Outputs that name no case are those of the only one.
        self._plain = {} if any("/" in name for name in tensors) else tensors
        for full_name, values in tensors.items():
            case, _, name = full_name.partition("/")
            call = 0
            if match := _CALL.match(name):
                call, name = int(match[1]), name[match.end() :]
            if name and not name.startswith(_OTHER_ROLES):  # a pack's other tensors
                outputs = self._cases.setdefault((case, call), {})
                outputs[name.removeprefix(f"{OUTPUTS}/")] = values
        if not (self._cases or self._plain):
            raise InvalidRequest(f"{path}: holds no results, which are named ID/outputs/Y or ID/Y")

    def check(self, ids: Sequence[str], known: Iterable[str]) -> None:
        """Refuse results whose names have no id, unless one case is asked, or none of the pack."""
        there = {case for case, _ in self._cases}
        if there and there.isdisjoint(known):
            raise InvalidRequest(
                f"{self.name}: has none of the pack's cases, but {min(there)}; results are named"
                f" ID/Y, such as {next(iter(ids), 'lstm')}/Y"
            )
        if self._plain and len(ids) != 1:
            name = next(iter(self._plain))
            raise InvalidRequest(
                f"{self.name}: '{name}' says no case, of {len(ids)}: results are named ID/{name},"
                f" such as {next(iter(ids), 'lstm')}/{name}"
            )

    def attempt(self, vector: Vector) -> Attempt:
        """Look up the case's outputs."""
        if self._plain:
            return _attempt(self._plain if vector.call == 0 else {}, None)
        recorded = self._cases.get((vector.id, vector.call), {})
        outputs, signals = {}, {}
        for name, values in recorded.items():
            if name.startswith(f"{STEPS}/"):
                signals[name.removeprefix(f"{STEPS}/").removeprefix(f"{OUTPUTS}/")] = values
            elif name != REFUSED:
                outputs[name] = values
        is_refused = REFUSED in recorded or REFUSED in self._cases.get((vector.id, 0), {})
        return replace(_attempt(outputs, "" if is_refused else None), signals=signals)


def _attempt(outputs: Tensors, reason: str | None) -> Attempt:
    """Return the attempt that some outputs, or a recorded refusal, amount to."""
    if reason is None:
        return Attempt(Status.RAN, outputs) if outputs else MISSING
    if outputs:
        return garbage(InvalidRequest(f"{SAYS_NO_MORE}, and hold {', '.join(outputs)}"))
    return Attempt(Status.REFUSED, message=reason or SAYS_NO_MORE)


def room_for(expected: int) -> int:
    """Return the most bytes that results may have, for the bytes of the expected outputs."""
    return max(LEAST_ROOM, BYTES_PER_BYTE * expected)


def require_room(path: Path, records: Iterable[CaseRecord]) -> None:
    """Refuse a file that is too large for the results of a pack's cases, before it is read.

    Raises:
        UnreadableFile: it is missing or too large.
    """
    room = room_for(sum(map(expected_bytes, records)))
    open_regular(path, max(room, LEAST_ROOM_OF_A_FILE)).close()


def expected_bytes(record: CaseRecord) -> int:
    """Return the bytes of a case's expected outputs and signals, in all calls."""
    if record.expect != "result":
        return 0
    elements = 0
    for call in record.calls:
        operator = operator_named(call.operator)
        frame = frame_of(operator, call.sizes, call.attributes)
        if frame is not None:
            rows = [row for row in operator.outputs if row.name in call.outputs]
            signal = [frame.sizes[name] for name in OF_A_SIGNAL if name in frame.sizes]
            elements += sum(math.prod(frame.shape(row)) for row in rows)
            elements += len(call.signals) * math.prod(signal)
    return elements * dtype_named(record.dtype).numpy.itemsize


def read_folder(folder: Path, names: Sequence[str], wanted: Tensors) -> Tensors:
    """Read the outputs, or signals, in a folder; return none if it does not exist.

    Args:
        folder: holds output_K.pb.
        names: the requested outputs; name K is given to a tensor K without a name.
        wanted: the expected outputs, which bound the size of what is read.

    Raises:
        UnreadableFile: one is damaged or too large, or two have the same name.
        Unsupported: one is not a tensor.
    """
    tensors: Tensors = {}
    room = room_for(sum(values.nbytes for values in wanted.values()))
    matches = filter(None, map(_OUTPUT.fullmatch, _names_in(folder)))
    for position in sorted(int(match[1]) for match in matches):
        own, values = pb.read_named(below(folder, RelativePath(f"output_{position}.pb")), room)
        room = max(0, room - values.nbytes)
        name = own or (names[position] if position < len(names) else f"output_{position}")
        if name in tensors:
            raise UnreadableFile(f"{folder}: two outputs are named '{name}'")
        tensors[name] = values
    return tensors


def read_raw_folder(folder: Path, wanted: Tensors) -> Tensors:
    """Read the outputs in a folder of raw files; return none if it does not exist.

    A file has neither dtype nor shape. It has those of the expected output if it has its size; else
    it is bytes. An output that is not expected is not read.

    Raises:
        UnreadableFile: a file cannot be read, or is too large.
    """
    files = [name for name in sorted(_names_in(folder)) if name.endswith(RAW)]
    paths = {name.removesuffix(RAW): below(folder, RelativePath(name)) for name in files}
    found: Tensors = {}
    for name, path in paths.items():
        if (expected := wanted.get(name)) is None:
            with open_regular(path):
                found[name] = np.zeros(0, np.uint8)
            continue
        content = read_bytes(path, room_for(expected.nbytes))
        if len(content) == expected.nbytes:
            found[name] = tensor_from(content, dtype_of(expected), expected.shape)
        else:
            found[name] = np.frombuffer(content, BYTES)
    return found


def _names_in(folder: Path) -> list[str]:
    """Return the names in a folder; none if it does not exist."""
    try:
        return os.listdir(folder)  # noqa: PTH208 -- ten thousand times, and names suffice
    except (FileNotFoundError, NotADirectoryError):
        return []


def read_file(path: Path, vector: Vector) -> Tensors:
    """Read the outputs of a case, named ``Y`` or ``outputs/Y``; none if the file is missing.

    Raises:
        RnncliError: it cannot be read, or is too large.
    """
    expected = sum(values.nbytes for values in vector.answers.outputs.values())
    try:
        open_regular(path, room_for(expected)).close()
    except MissingFile:
        return {}
    tensors = read_tensors(path)
    return {name.removeprefix(f"{OUTPUTS}/"): values for name, values in tensors.items()}


def garbage(error: RnncliError) -> Attempt:
    """Return the attempt whose results cannot be read."""
    return Attempt(Status.CRASHED, message=f"gave garbage: {printable(str(error))}")
