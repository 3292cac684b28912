"""A vendor's program as a subject, started once for each data set of each case.

    --command 'python3 {here}/run.py {model} {inputs} {outputs}'

The text is split into words as a shell would, but no shell runs it. These placeholders are
replaced in each word:

    {model}        model.onnx, a model of the one node
    {inputs}       a folder with input_0.pb ..., in the order of the model's inputs
    {inputs.npz}   a file with those inputs by name; also {inputs.h5}
    {outputs}      an empty folder, to be filled with output_0.pb ...
    {outputs.npz}  a file to be written, with the outputs by name; also {outputs.h5}
    {case}         case.json: operator, attributes, sizes and so on, for programs without ONNX
    {id}           the case's id
    {here}         the folder rnncli was started in

``{{`` and ``}}`` are literal braces. A program whose name has a slash is looked up in {here}, any
other as the shell would.

A case's further calls run in new processes, since every call starts the program anew. A program
therefore keeps no state between calls and is never stale.

Each vector gets a new working folder, which is deleted afterwards. All paths are absolute. The
environment is rnncli's own plus RNNCLI_CASE, the case's id; standard input is empty. Processes that
the program starts are ended with it.

    exit code 0    it ran; an output it did not write counts as missing
    exit code 3    it refuses the vector; the first line on its standard error says why
    126, 127       shells, loaders and `env` report a program they cannot start: the run ends with
    an
                   error, since no vector has reached the program
    any other      it crashed; the message is the last line on its standard error, where programs
                   and tracebacks put the error
    a signal       it crashed
    timeout        it hangs and is ended
    outputs that are unreadable or only partly written: it crashed

For a vector that must be refused, exit code 0 alone means that it ran, and 3 alone that it was
refused.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError, did_you_mean
from rnncli.files.atomic import put_file
from rnncli.files.formats import pb, write_tensors
from rnncli.files.formats.onnx_folder import MODEL
from rnncli.limits import OF_SUBJECTS, UNLIMITED
from rnncli.packs.conversion import with_model
from rnncli.packs.vector import Attempt, Status
from rnncli.subjects.results import garbage, read_file, read_folder
from rnncli.subjects.runtime import told_record
from rnncli.supervision.programs import (
    Ending,
    Supervised,
    described_limits,
    first_line,
    found_program,
    require_started,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.limits import Limits
    from rnncli.packs.vector import Vector

CASE = "case.json"
CASE_VARIABLE = "RNNCLI_CASE"
REFUSES = 3

# placeholder -> name within the working folder; None if it is not a path there.
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
    """A program of the user's; the module documents what it receives and must do.

    Args:
        command: the command line as the user wrote it.
        limits: of each vector; memory is that of the program and its children.

    Raises:
        InvalidRequest: the program does not exist, a placeholder is unknown, or none names the
            outputs.
    """

    def __init__(self, command: str, *, limits: Limits = UNLIMITED) -> None:
        self.name = command
        self._here = Path.cwd()
        self._words = words_of("--command", command)
        self._used = {name for word in self._words for name in _BRACES.findall(word) if name}
        for name in sorted(self._used - {*PLACEHOLDERS}):
            listed = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            raise InvalidRequest(
                f"--command {command}: unknown placeholder {{{name}}}"
                f"{did_you_mean(name, PLACEHOLDERS)} (known: {listed})"
            )
        if sum(name.startswith("outputs") for name in self._used) != 1:
            raise InvalidRequest(
                f"--command {command}: name one place for the outputs: {{outputs}}, a folder for"
                " output_K.pb, or {outputs.npz} or {outputs.h5}"
            )
        self._said = f"--command {command}"
        path = _filled(self._words[0], {"here": str(self._here)})
        self._program = found_program(self._said, path, self._here)
        self.limits = limits.or_else(OF_SUBJECTS)
        self._running: Supervised | None = None

    def describe(self) -> Mapping[str, str]:
        """Return the command and its limits."""
        return {"command": self.name, **described_limits(self.limits)}

    def attempt(self, vector: Vector) -> Attempt:
        """Run the program."""
        # A file the program left there that cannot be deleted must not end the run.
        with tempfile.TemporaryDirectory(prefix="rnncli-", ignore_cleanup_errors=True) as name:
            folder, given = Path(name).resolve(), with_model(vector)
            if "model" in self._used:
                put_file(folder, MODEL, given.model)
            if "case" in self._used:
                put_file(folder, CASE, json.dumps(told_record(given), indent=1).encode())
            if "outputs" in self._used:
                (folder / "outputs").mkdir()
            if "inputs" in self._used:
                (folder / "inputs").mkdir()
                for k, (tensor, values) in enumerate(given.fed.items()):
                    put_file(folder, f"inputs/input_{k}.pb", pb.serialize(tensor, values))
            for file in self._used & {"inputs.npz", "inputs.h5"}:
                write_tensors(folder / file, given.fed)

            began = time.monotonic()
            filled = {name: str(folder / path) for name, path in PLACEHOLDERS.items() if path}
            filled |= {"id": vector.id, "here": str(self._here)}
            self._running = program = Supervised(
                [str(self._program), *(_filled(word, filled) for word in self._words[1:])],
                folder=folder,
                environment={**os.environ, CASE_VARIABLE: vector.id},
                max_memory=self.limits.max_memory,
            )
            try:
                ending = program.wait(self.limits.timeout or math.inf)
            finally:
                self._running = None
                program.end()
            seconds = time.monotonic() - began
            return replace(self._judged(ending, folder, vector), seconds=seconds)

    def close(self) -> None:
        """End the program if it runs; nothing else outlives a vector."""
        if program := self._running:
            program.let_go()

    def _judged(self, ending: Ending | None, folder: Path, vector: Vector) -> Attempt:
        if ending is None:
            return Attempt(Status.TIMEOUT, message=f"did not end within {self.limits.timeout:g} s")
        require_started(self._said, self._program, ending)
        if ending.exit == REFUSES:
            reason = first_line(ending.errors)
            return Attempt(Status.REFUSED, message=reason or f"exit code {REFUSES}, no message")
        if ending.exit != 0:
            return Attempt(Status.CRASHED, message=ending.sentence)
        try:
            if "outputs" in self._used:
                names, wanted = vector.record.outputs, vector.answers.outputs
                outputs = read_folder(folder / "outputs", names, wanted)
            else:
                (file,) = (name for name in self._used if name.startswith("outputs."))
                outputs = read_file(folder / file, vector)
        except RnncliError as error:
            return garbage(error)
        return Attempt(Status.RAN, outputs)


def _filled(word: str, values: Mapping[str, str]) -> str:
    def fill(match: re.Match[str]) -> str:
        whole = match[0]
        return whole[0] if whole in ("{{", "}}") else values.get(match[1], whole)

    return _BRACES.sub(fill, word)
