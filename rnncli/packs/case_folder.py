"""Vectors as ONNX test cases: folders that onnx.backend.test and runtimes' runners read.

    test_ID/model.onnx
    test_ID/test_data_set_0/input_0.pb ... output_0.pb ... tolerance_0.pb ...
    test_ID/readings/clip-scope=gates/output_0.pb ... tolerance_0.pb ...
    test_ID/steps/output_0.pb ... tolerance_0.pb ...     signals of every step, if asked for
    test_ID/test_data_set_1/input_0.pb ...     if the case has a second call
    test_ID/readings_1/clip-scope=gates/output_0.pb ...

A tolerance has the number of its output; every tensor also carries its own name.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from msgspec.structs import replace
from onnx import ModelProto

from rnncli.errors import UnreadableFile
from rnncli.files.described import Sums
from rnncli.files.formats import pb
from rnncli.files.formats.onnx_folder import MODEL
from rnncli.files.formats.pb import array_of
from rnncli.files.reading import reading, sha256
from rnncli.packs.layouts import folder_of
from rnncli.packs.vector import (
    READINGS,
    STEPS,
    Answers,
    Vector,
    checked_node,
    stored_alternatives,
    stored_answers,
    stored_inputs,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rnncli.files.formats.format import Tensors
    from rnncli.operators import Node
    from rnncli.packs.pack import CaseContents, Pack
    from rnncli.packs.record import CaseRecord


def data_set(call: int) -> str:
    """Return the name of the folder of a call's inputs and answers."""
    return f"test_data_set_{call}"


def readings_of(call: int) -> str:
    """Return the name of the folder of a call's answers under other readings."""
    return f"{READINGS}_{call}" if call else READINGS


def steps_of(call: int) -> str:
    """Return the name of the folder of a call's signals."""
    return f"{STEPS}_{call}" if call else STEPS


def packed(vector: Vector) -> tuple[CaseRecord, dict[str, bytes]]:
    """Return the manifest entry of a vector, and its files by their path within the pack."""
    return with_files(vector, files_of(vector))


def with_files(vector: Vector, own: Mapping[str, bytes]) -> tuple[CaseRecord, dict[str, bytes]]:
    """Return a vector's manifest entry, and its files in any layout of folders by their path."""
    folder = folder_of(vector.id)
    files = {f"{folder}/{path}": content for path, content in own.items()}
    sums = {path: sha256(content) for path, content in files.items()}
    return replace(vector.record, files=Sums(sums)), files


def files_of(vector: Vector) -> dict[str, bytes]:
    """Return the files of a vector by their path within its folder."""
    found = {MODEL: vector.model}
    for each in vector.calls:
        folder, readings = data_set(each.call), readings_of(each.call)
        found |= _numbered(folder, "input", each.fed)
        found |= _answers(folder, each.answers)
        found |= _answers(steps_of(each.call), each.steps)
        for name, answers in each.alternatives.items():
            found |= _answers(f"{readings}/{name}", answers)
    return found


def _answers(folder: str, answers: Answers) -> dict[str, bytes]:
    return {
        **_numbered(folder, "output", answers.outputs),
        **_numbered(folder, "tolerance", answers.tolerances),
    }


def _numbered(folder: str, role: str, tensors: Tensors) -> dict[str, bytes]:
    return {
        f"{folder}/{role}_{k}.pb": pb.serialize(name, values)
        for k, (name, values) in enumerate(tensors.items())
    }


def read_case(pack: Pack, record: CaseRecord) -> Vector:
    """Return the vector of a case, whose parts are parsed on first use."""
    return StoredVector(pack.contents(record), record)


class StoredVector(Vector):
    """A vector as its files have it; each part is parsed on first use.

    Args:
        contents: the case's files.
        record: its manifest entry.
        call: the number of its data set.

    Raises:
        UnreadableFile: on use of a part, if a file is not listed or does not make sense.
    """

    _contents: CaseContents

    def __init__(self, contents: CaseContents, record: CaseRecord, call: int = 0) -> None:
        vars(self).update(id=record.id, _contents=contents, record=record, call=call)

    @cached_property
    def later(self) -> tuple[Vector, ...]:
        """The later calls; empty for a record of a later call."""
        later = enumerate(self.record.calls[1:], 1)
        found = tuple(StoredVector(self._contents, own, call) for call, own in later)
        for each in found:
            vars(each)["model"] = self.model
        return found

    @cached_property
    def model(self) -> bytes:
        """The content of the model's file."""
        return self._contents.take(MODEL)

    @cached_property
    def initializers(self) -> tuple[str, ...]:
        """The names of the inputs that the model holds."""
        return tuple(self._held)

    @cached_property
    def inputs(self) -> Tensors:
        """The inputs, in the record's order."""
        names = self.record.inputs
        fed = self._read(data_set(self.call), "input", len(names) - len(self._held))
        return stored_inputs(self.record, {**fed, **self._held})

    @cached_property
    def node(self) -> Node:
        """The node that the inputs were checked with, which is made once."""
        return checked_node(self.record, self.inputs)

    @cached_property
    def answers(self) -> Answers:
        """The expected outputs."""
        return self._answers(data_set(self.call))

    @cached_property
    def alternatives(self) -> Mapping[str, Answers]:
        """The outputs under other readings."""
        folder = readings_of(self.call)
        return stored_alternatives(
            self.record, self.answers, lambda reading: self._answers(f"{folder}/{reading}", reading)
        )

    @cached_property
    def steps(self) -> Answers:
        """The signals of every step."""
        return self._stored(steps_of(self.call), self.record.signals)

    @cached_property
    def _held(self) -> Tensors:
        if self.record.weights == "inputs":
            return {}
        model = self.model
        with reading(f"{self._contents.folder}/{MODEL}"):
            try:
                graph = ModelProto.FromString(model).graph
            except DecodeError as error:
                raise UnreadableFile("is not an ONNX model") from error
            held = {each.name: array_of(each) for each in graph.initializer}
        return {name: held[name] for name in self.record.inputs if name in held}

    def _answers(self, folder: str, reading: str = "") -> Answers:
        return self._stored(folder, self.record.answered, reading)

    def _stored(self, folder: str, names: list[str], reading: str = "") -> Answers:
        outputs, tolerances = (
            self._read(folder, role, len(names)) for role in ("output", "tolerance")
        )
        return stored_answers(self.record, outputs, tolerances, names, reading)

    def _read(self, folder: str, role: str, count: int) -> Tensors:
        found: Tensors = {}
        for path in (f"{folder}/{role}_{k}.pb" for k in range(count)):
            content = self._contents.take(path)
            with reading(f"{self._contents.folder}/{path}"):
                name, values = pb.named_tensor(content)
            found[name] = values
        return found
