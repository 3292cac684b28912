"""Packs that somebody altered, and programs that alter one while it is judged."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from msgspec.structs import replace as with_entries
from support.small_suite import small_suite

from rnncli.files.formats import write_tensors
from rnncli.files.reading import sha256
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.packs.conversion import convert_pack, write_cases
from rnncli.packs.layouts import LAYOUTS
from rnncli.packs.manifest import MANIFEST, SUMS, Manifest, digest_of
from rnncli.packs.pack import open_pack
from rnncli.packs.record import as_json, sums_of
from rnncli.packs.vector import Answers, Vector

# Cases whose outputs have one shape, with two calls and an answer under another reading.
TEXT = """\
suite: sealed
summary: Two calls and other readings.
seed: 11
defaults:
  sizes: {seq_length: 2, batch_size: 2, input_size: 2, hidden_size: 2}
cases:
  clip:
    attributes: {clip: 0.4}
    inputs: {initial_c: {normal: [0, 2]}}
    calls: 2
    matrix: {op: [LSTM-7, LSTM-14]}
"""
# Those that are read back, and hold such cases.
READ = tuple(name for name, row in LAYOUTS.items() if row.reader and not row.whose)


def made(folder, layout="onnx", text=TEXT):
    """Make a pack in a layout; return its folder."""
    report = generate(GenerationPlan(suite=small_suite(text)), folder / "made", lambda _: None)
    assert report.failed == ()
    convert_pack(open_pack(folder / "made"), folder / "pack", layout)
    shutil.rmtree(folder / "made")
    return folder / "pack"


def with_zeros(vector):
    """A vector that expects zeros."""
    return changed(vector, lambda each: Answers(zeros(each.outputs), each.tolerances))


def with_wide_tolerances(vector):
    """A vector whose tolerances accept zeros."""

    def widened(answers):
        wide = {
            name: np.full_like(values, np.abs(answers.outputs[name]).max())
            for name, values in answers.tolerances.items()
        }
        return Answers(answers.outputs, wide)

    return changed(vector, widened)


def with_flat_inputs(vector):
    """A vector whose input X has lost an axis."""
    own = changed(vector, lambda answers: answers)
    flat = [{**each.inputs, "X": each.inputs["X"][:, 0]} for each in own.calls]
    first, *later = [
        replace(each, inputs=inputs, later=()) for each, inputs in zip(own.calls, flat, strict=True)
    ]
    return replace(first, later=tuple(later))


def with_other_readings_of_zeros(vector):
    """A vector by whose other readings zeros are acceptable."""
    own = changed(vector, lambda each: each)
    calls = [
        replace(
            each,
            alternatives={
                name: Answers(zeros(answers.outputs), answers.tolerances)
                for name, answers in each.alternatives.items()
            },
            later=(),
        )
        for each in own.calls
    ]
    return replace(calls[0], later=tuple(calls[1:]))


def with_other_reading(reading):
    """What adds zeros as the outputs under another reading to a vector."""

    def change(vector):
        own = changed(vector, lambda each: each)
        answers = Answers(zeros(own.answers.outputs), own.answers.tolerances)
        return replace(own, alternatives={reading: answers})

    return change


def zeros(tensors):
    """Zeros in the shapes of some tensors."""
    return {name: np.zeros_like(values) for name, values in tensors.items()}


def changed(vector, change):
    """A copy of a vector with other answers to all its calls."""
    return Vector(
        id=vector.id,
        model=vector.model,
        inputs=dict(vector.inputs),
        initializers=vector.initializers,
        answers=change(vector.answers),
        alternatives=dict(vector.alternatives),
        record=vector.record,
        call=vector.call,
        later=tuple(changed(each, change) for each in vector.later),
        steps=vector.steps,
    )


def forged(pack, folder, change, amend=dict):
    """Write a pack that is like another but for its vectors and records; its digest fits."""
    original = open_pack(pack)
    vectors = [change(each) for each in original.vectors()]
    source = SimpleNamespace(manifest=original.manifest, vectors=lambda: iter(vectors))
    folder.mkdir()
    manifest = write_cases(original.manifest.header, source, folder)
    data = json.loads(manifest.contents()[MANIFEST])
    write_manifest(folder, {**data, "cases": [*map(amend, data["cases"])]})
    return folder


def write_manifest(folder, data):
    """Write a manifest of any JSON data and the sums, with the digest that fits."""
    about = {name: each for name, each in data.items() if name not in ("cases", "files", "digest")}
    lines = [f"{as_json(name)}: {as_json(value)},\n" for name, value in about.items()]
    cases = ",\n".join(map(as_json, data["cases"]))
    text = "".join(["{\n", *lines, f'"cases": [\n{cases}\n],\n"files": {as_json(data["files"])}'])
    end = f',\n"digest": "{digest_of(text.encode())}"\n}}\n'
    (folder / MANIFEST).write_bytes((text + end).encode())
    sums = sorted(map(sums_of, (data["files"], *[case["files"] for case in data["cases"]])))
    (folder / SUMS).write_bytes(b"".join(sorted(sums, key=lambda each: each[66:])))


def sealed(folder, manifest):
    """Write a manifest, whose digest fits."""
    for name, content in manifest.contents().items():
        (folder / name).write_bytes(content)


def without_sums(pack):
    """Write a manifest that lists no file, with a digest that fits."""
    manifest = open_pack(pack).manifest
    cases = tuple(with_entries(case, files={}) for case in manifest.cases)
    sealed(pack, Manifest(manifest.header, cases))


def files_of(pack):
    """The paths of all files but the manifest and the sums."""
    whole = (path for path in sorted(pack.rglob("*")) if path.is_file())
    return [path for path in whole if path.name not in (MANIFEST, SUMS)]


def zeros_of(pack, file):
    """Write the outputs of any case of a pack, all zero, to a file."""
    read = open_pack(pack)
    vector = read.read(read.manifest.cases[0])
    write_tensors(file, zeros(vector.answers.outputs))


def resealed(pack):
    """Write the manifest that fits what the listed files hold by now."""
    manifest = open_pack(pack).manifest

    def sums(files):
        there = [path for path in files if (pack / path).is_file()]
        return {path: sha256((pack / path).read_bytes()) for path in there}

    cases = tuple(with_entries(case, files=sums(case.files)) for case in manifest.cases)
    sealed(pack, Manifest(manifest.header, cases, sums(manifest.files)))
