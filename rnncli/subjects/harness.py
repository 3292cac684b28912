"""A program that speaks the harness protocol, started once for many cases.

    --harness 'python3 my_harness.py --fast'

The text is split into words as a shell would, but no shell runs it. The program starts in the
folder rnncli was started in, with rnncli's own environment. It reads one JSON object a line from
its standard input and answers on its standard output; `harness_messages` has every message. What it
writes to standard error is for people: the last line goes into the message of a crash.

    outputs     it ran; an output that it leaves out counts as missing
    skipped     it refuses the vector, with a reason and perhaps the address of an issue
    errored     it crashed, with a message
    a line that is no such answer, outputs that cannot be read: it crashed
    an exit or a signal before the answer: it crashed
    timeout     it hangs and is ended

A program that crashed or hung is started again for the next vector. One that does not start, or
speaks another version of the protocol, is an error: no vector has reached it.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rnncli.errors import InvalidRequest, RnncliError
from rnncli.files.atomic import put_file
from rnncli.files.formats.raw import content_of, descriptor, read_described
from rnncli.files.paths import Identifier, RelativePath, below
from rnncli.limits import UNLIMITED
from rnncli.packs.vector import Attempt, Status
from rnncli.subjects.harness_messages import (
    START,
    STARTED,
    STOP,
    VERSION,
    JsonObject,
    LineChannel,
    check_start,
    kind_of,
    run_message,
)
from rnncli.subjects.kept_process import KeptSubject
from rnncli.subjects.results import garbage
from rnncli.subjects.runtime import AGAIN
from rnncli.supervision.connection import ConnectedProcess, LostError, garbled
from rnncli.supervision.programs import (
    Ending,
    Supervised,
    described_limits,
    found_program,
    require_started,
    words_of,
)
from rnncli.talk.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.limits import Limits
    from rnncli.packs.vector import Vector

# Seconds a program may take to end after `stop`, before it is killed.
SECONDS_TO_STOP = 5.0
# What keeps files from being written and is not the program's doing.
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT)


class HarnessSubject(KeptSubject["HarnessProcess"]):
    """A program of the user's; the module documents what it receives and must answer.

    Raises:
        InvalidRequest: the program does not exist.
    """

    def __init__(
        self, command: str, *, limits: Limits = UNLIMITED, seconds_to_start: float | None = None
    ) -> None:
        super().__init__(command, limits, seconds_to_start)
        self._here = Path.cwd()
        self._said = f"--harness {command}"
        word, *self._arguments = words_of("--harness", command)
        self._program = found_program(self._said, word, self._here)

    def launch(self) -> HarnessProcess:
        """Start the program."""
        argv = [str(self._program), *self._arguments]
        return HarnessProcess(argv, self._here, self.limits.max_memory)

    def introduced(self, process: HarnessProcess, deadline: float) -> Mapping[str, str]:
        """Send `start` and return the description of the implementation."""
        try:
            answer = process.exchange(START, deadline)
            about = check_start(answer)
        except LostError as error:
            require_started(self._said, self._program, error.ending)
            raise
        except InvalidRequest as error:
            raise InvalidRequest(f"{self._said}: {error}; expected {STARTED}") from None
        described = {}
        for name, value in about.items():
            text = ", ".join(value) if isinstance(value, list) else str(value)
            described[name] = printable(text)
        return {**described, "protocol": f"{VERSION}", **described_limits(self.limits)}

    def stopped(self, seconds: float) -> Ending | None:
        """Send `stop`; return how the program ended, or None if it had to be killed.

        Raises:
            InvalidRequest: no program runs, and it does not start.
        """
        return self.let_go().stopped(seconds)

    def not_started(self, why: str) -> RnncliError:
        """Return the error about a program that gives no description of itself."""
        return InvalidRequest(f"{self._said}: the program {why}")


class HarnessProcess(ConnectedProcess[JsonObject]):
    """A running program and its folder of files; see `AnsweringProcess`."""

    def __init__(self, argv: list[str], here: Path, max_memory: int | None) -> None:
        self.answered = 0
        its_input, to_program = os.pipe()
        from_program, its_output = os.pipe()
        try:
            program = Supervised(
                argv, folder=here, max_memory=max_memory, streams=(its_input, its_output)
            )
        except BaseException:
            os.close(to_program)
            os.close(from_program)
            raise
        finally:
            os.close(its_input)
            os.close(its_output)
        self._lines = LineChannel(to_program, from_program)
        super().__init__(program, self._lines)
        # A file the program left there that cannot be deleted must not end the run.
        self._temporary = tempfile.TemporaryDirectory(prefix="rnncli-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name).resolve()
        self._model, self._inputs = "", list[Path]()

    def request(self, vector: Vector, place: str) -> JsonObject:
        """Write the files of a vector and return the request to run it; see `AnsweringProcess`."""
        seq = self.answered + 1
        folder = f"{self._folder}/{seq}"
        # Files are numbered: a name is not trusted.
        rows = enumerate(vector.inputs.items())
        described = {name: descriptor(f"{folder}-{k}.bin", values) for k, (name, values) in rows}
        self._inputs = [Path(row["file"]) for row in described.values()]
        try:
            os.makedirs(folder)  # noqa: PTH103 -- for each of ten thousand cases
            for path, values in zip(self._inputs, vector.inputs.values(), strict=True):
                put_file(self._folder, path.name, content_of(values))
            if place != AGAIN:
                if self._model:
                    Path(self._model).unlink(missing_ok=True)
                self._model = f"{folder}.onnx"
                put_file(self._folder, f"{seq}.onnx", vector.model)
        except OSError as error:
            if error.errno in DISK_IS_FULL:
                raise
            reason = f"left no place for the files of the next case: {error.strerror}"
            raise LostError(reason) from error
        return run_message(seq, vector, self._model, described, folder)

    def ask(self, request: JsonObject, deadline: float) -> Attempt:
        """Run a vector; see `AnsweringProcess`."""
        self.answered = request["seq"]
        try:
            answer = self.exchange(request, deadline)
            if answer.get("seq") != request["seq"]:
                number = ascii(answer.get("seq"))
                raise garbled(f"the answer to {number:.80}, not {request['seq']}")
            kind = kind_of(answer)
            if kind == "ran":
                outputs = {}
                for name, row in answer["outputs"].items():
                    file = RelativePath(f"{self.answered}/{Identifier(row['file'])}")
                    outputs[name] = read_described(below(self._folder, file), row)
                return Attempt(Status.RAN, outputs)
            if kind == "skipped":
                message = printable(answer["message"]) or "no message"
                link = printable(answer.get("issue_url", ""))
                return Attempt(Status.REFUSED, message=f"{message} ({link})" if link else message)
            message = printable(answer["context"]["message"])
            return Attempt(Status.CRASHED, message=f"reported an error: {message}")
        except RnncliError as error:
            return garbage(error)
        finally:  # the files of the request are deleted, but for the model
            for path in self._inputs:
                with suppress(OSError):  # a folder that the program has put there
                    path.unlink()
            shutil.rmtree(f"{self._folder}/{self.answered}", ignore_errors=True)

    def stop(self) -> None:
        """Send `stop` and give the program time to end."""
        self.stopped(SECONDS_TO_STOP)

    def stopped(self, seconds: float) -> Ending | None:
        """Send `stop` and the end of its input; return how it ended, or None if it was killed."""
        try:
            self.tell(STOP, seconds)
            self._lines.finish()
            return self.program.wait(seconds)
        finally:
            self.end()

    def end(self) -> None:
        """Kill the program and its children, and delete the files."""
        super().end()
        self._temporary.cleanup()
