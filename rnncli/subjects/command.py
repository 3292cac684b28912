"""A vendor's program, started once for each data set of each case.

    --command 'python3 {here}/run.py {model} {inputs} {outputs}'

The text is split as a shell splits words, but no shell runs it. In each word these are replaced:

    {model}        model.onnx, a model of the one node
    {inputs}       a folder with input_0.pb ..., in the order of the model's inputs
    {inputs.npz}   a file with those inputs by name; also {inputs.h5}
    {outputs}      an empty folder, to be filled with output_0.pb ...
    {outputs.npz}  a file to be written, with the outputs by name; also {outputs.h5}
    {case}         case.json: operator, attributes, sizes and so on, for who reads no ONNX
    {id}           the case's id
    {here}         the folder that rnncli was started in

``{{`` and ``}}`` are braces. A program with a slash in its name is looked for in {here}, any other
where the shell would look.

What a case asks again of the same session is asked of another process here: a program that is
started anew keeps nothing, and is never stale.

The program's working folder is a new one for every vector, deleted with all that is in it
afterwards; all paths it gets are absolute. Its environment is that of rnncli with RNNCLI_CASE, the
case's id, and its standard input is empty. What it starts is ended when it ends.

    exit code 0    it ran; an output that it has not written is missing
    exit code 3    it refuses the vector; the first line on its standard error says why
    126, 127       what shells, loaders and `env` make of a program that they cannot start: the run
                   ends with an error, for no vector has been put to anything
    any other      it crashed, and the last line on its standard error says how, for that is where
                   programs end that find an error (a traceback ends with it too)
    a signal       it crashed
    no end in time it hangs, and is ended
    outputs that cannot be read, or only half written: it crashed

Only a program that exits with 0 has said that it ran a vector that must be refused, and only one
that exits with 3 has refused it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError, did_you_mean
from rnncli.files.atomic import put_file
from rnncli.files.regular import open_regular
from rnncli.formats import pb, write_tensors
from rnncli.formats.onnx_folder import MODEL
from rnncli.packs.attempt import Attempt, Status
from rnncli.packs.conversion import with_model
from rnncli.subjects.results import garbage, read_file, read_folder
from rnncli.subjects.supervision.programs import Ending, Supervised, first_line
from rnncli.subjects.worker import node_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.formats.format import Tensors
    from rnncli.packs.vector import Vector

CASE = "case.json"
CASE_VARIABLE = "RNNCLI_CASE"
REFUSES = 3
# What a shell says of a program that it may not execute, and of one that it does not find.
UNSTARTABLE = (126, 127)

# placeholder -> name within the working folder; None where it is no path there.
PLACEHOLDERS: Mapping[str, str | None] = {
    "model": MODEL,
    "inputs": "inputs",
    "inputs.npz": "inputs.npz",
    "inputs.h5": "inputs.h5",
    "outputs": "outputs",
    "outputs.npz": "outputs.npz",
    "outputs.h5": "outputs.h5",
    "case": CASE,
    "id": None,
    "here": None,
}
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


class CommandSubject:
    """A program of the user's; see this module for what it gets and what it is to do.

    Args:
        command: as the user wrote it.
        timeout: seconds for one vector.
        max_memory: bytes that the program and all it starts may have in memory; None for any
            number.

    Raises:
        InvalidRequest: there is no such program, a placeholder is unknown, or there is no place
            for the outputs.
    """

    def __init__(
        self, command: str, *, timeout: float = 60.0, max_memory: int | None = None
    ) -> None:
        self.name = command
        self._here = Path.cwd()
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise InvalidRequest(f"--command {command}: {error}") from None
        if not self._words:
            raise InvalidRequest("--command is empty")
        self._used = _placeholders(command, self._words)
        self._program = _program(command, self._words[0], self._here)
        self._timeout, self._max_memory = timeout, max_memory
        self._running: Supervised | None = None

    def describe(self) -> Mapping[str, str]:
        """Return the command and its limits."""
        limit = {} if self._max_memory is None else {"max_memory": str(self._max_memory)}
        return {"command": self.name, "timeout": f"{self._timeout:g}", **limit}

    def attempt(self, vector: Vector) -> Attempt:
        """Run the program."""
        # What may not be deleted of what the program left there must not end the run.
        with tempfile.TemporaryDirectory(prefix="rnncli-", ignore_cleanup_errors=True) as name:
            folder = Path(name).resolve()
            self._prepare(folder, with_model(vector))
            began = time.monotonic()
            ending = self._run(folder, vector.id)
            seconds = time.monotonic() - began
            return replace(self._judged(ending, folder, vector), seconds=seconds)

    def close(self) -> None:
        """End the program where it runs; nothing of it is left between two vectors."""
        if program := self._running:
            program.let_go()

    def _prepare(self, folder: Path, vector: Vector) -> None:
        if "model" in self._used:
            put_file(f"{folder}/{MODEL}", vector.model)
        if "case" in self._used:
            put_file(f"{folder}/{CASE}", json.dumps(node_record(vector), indent=1).encode())
        if "outputs" in self._used:
            (folder / "outputs").mkdir()
        if "inputs" in self._used:
            (folder / "inputs").mkdir()
            for k, (name, values) in enumerate(vector.fed.items()):
                put_file(f"{folder}/inputs/input_{k}.pb", pb.serialize(name, values))
        for file in self._used & {"inputs.npz", "inputs.h5"}:
            write_tensors(folder / file, vector.fed)

    def _run(self, folder: Path, case_id: str) -> Ending | None:
        values = {name: str(folder / path) for name, path in PLACEHOLDERS.items() if path}
        values |= {"id": case_id, "here": str(self._here)}
        self._running = program = Supervised(
            [self._program, *(_filled(word, values) for word in self._words[1:])],
            folder=folder,
            environment={**os.environ, CASE_VARIABLE: case_id},
            max_memory=self._max_memory,
        )
        try:
            return program.wait(self._timeout)
        finally:
            self._running = None
            program.end()

    def _judged(self, ending: Ending | None, folder: Path, vector: Vector) -> Attempt:
        if ending is None:
            return Attempt(Status.TIMEOUT, message=f"did not end within {self._timeout:g} s")
        if ending.unstartable is not None or ending.exit in UNSTARTABLE:
            raise InvalidRequest(
                f"--command {self.name}: the program could not be started:"
                f" {_not_started(ending, Path(self._program))}"
            )
        if ending.exit == REFUSES:
            said = first_line(ending.errors)
            return Attempt(Status.REFUSED, message=said or f"exit code {REFUSES}, no message")
        if ending.exit != 0:
            return Attempt(Status.CRASHED, message=ending.sentence)
        try:
            return Attempt(Status.RAN, self._outputs(folder, vector))
        except RnncliError as error:
            return garbage(error)

    def _outputs(self, folder: Path, vector: Vector) -> Tensors:
        if "outputs" in self._used:
            return read_folder(folder / "outputs", vector.record["outputs"])
        (file,) = (name for name in self._used if name.startswith("outputs."))
        return read_file(folder / file)


def _placeholders(command: str, words: list[str]) -> set[str]:
    used = {found for word in words for found in _BRACES.findall(word) if found}
    for name in sorted(used - {*PLACEHOLDERS}):
        listed = ", ".join(f"{{{each}}}" for each in PLACEHOLDERS)
        raise InvalidRequest(
            f"--command {command}: unknown placeholder {{{name}}}"
            f"{did_you_mean(name, PLACEHOLDERS)} (there are: {listed})"
        )
    if sum(name.startswith("outputs") for name in used) != 1:
        raise InvalidRequest(
            f"--command {command}: name one place for the outputs: {{outputs}}, a folder for"
            " output_K.pb, or {outputs.npz} or {outputs.h5}"
        )
    return used


def _program(command: str, word: str, here: Path) -> str:
    """Find the program as it is called from the folder that rnncli was started in."""
    path = _filled(word, {"here": str(here)})
    found = shutil.which(str(here / path) if os.sep in path else path)
    if found is None:
        is_there = os.sep in path and (here / path).is_file()
        not_executable = f"the program could not be started: {path} is not executable"
        why = not_executable if is_there else f"there is no program '{path}'"
        raise InvalidRequest(f"--command {command}: {why}")
    return found


def _filled(word: str, values: Mapping[str, str]) -> str:
    def fill(match: re.Match[str]) -> str:
        whole = match[0]
        return whole[0] if whole in ("{{", "}}") else values.get(match[1], whole)

    return _BRACES.sub(fill, word)


def _not_started(ending: Ending, program: Path) -> str:
    """Name a program that was not started, and say why, in its or the system's words."""
    if ending.unstartable is None:
        return f"{program} {ending.sentence}"
    with open_regular(program) as stream:
        is_script = stream.read(2) == b"#!"
    hint = "; the interpreter that its first line names may be missing" if is_script else ""
    return f"{program}: {ending.unstartable}{hint}"
