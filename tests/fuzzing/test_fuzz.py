"""Hostile inputs of every family; and the traps themselves, which have to catch what they are for.

`python tests/fuzzing/fuzz.py --count 20000` is the same with many more inputs.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import shutil
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from fuzz_bases import (
    CONFIG,
    LAYOUTS,
    MATRIX,
    PARTLY,
    RIGHT,
    SMALL_CONFIG,
    SUITE,
    WRONG,
    make_bases,
    models,
    npz_bytes,
    sealed,
)
from fuzz_families import FAMILIES, outcomes
from fuzz_messages import PLACES, answers, put_harness
from fuzz_process import LEVELS, Command, Series, always, make_box
from support.beside import beside

from rnncli.packs.pack import open_pack

INPUTS = 25
SEED = 1  # not that of large runs, which start at 0


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    """What inputs are made from."""
    return make_bases(tmp_path_factory.mktemp("fuzz") / "bases")


NEEDS = {"judge": pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")}


@pytest.mark.parametrize(
    "family", [pytest.param(each, marks=NEEDS.get(each, ())) for each in FAMILIES]
)
def test_no_input_breaks_a_promise(tmp_path, bases, family):
    """No exit 70, traceback, path outside, gibibyte, ten seconds or green, whatever is read."""
    found = beside(outcomes, family, make_box(tmp_path, bases), SEED, range(INPUTS))

    assert [outcome.number for outcome in found] == [*range(INPUTS)]
    assert [] == [(o.number, o.faults(), o.outside, o.err) for o in found if o.faults()]


def test_inputs_are_made_from_sound_ones(tmp_path, bases):
    """Every model, config, suite and tensor succeeds before it is mutated."""
    suites = (SUITE, MATRIX, CONFIG, SMALL_CONFIG)
    files = {f"{k}.yaml": text.encode() for k, text in enumerate(suites)}
    files |= {f"{k}.onnx": content for k, content in enumerate(models())}
    lines = [("lint" if name.endswith("yaml") else "run", name) for name in files]
    files |= {"c0.npz": npz_bytes(("c0",)), "w.bin": bytes(8)}

    def make(box, dice):
        del box, dice
        for name, content in files.items():
            Path(name).write_bytes(content)
        return Command(lines.pop(), (".",))

    outcomes = [*Series(make, "x", make_box(tmp_path, bases)).run(range(len(lines)))]

    assert [] == [outcome for outcome in outcomes if outcome.code or outcome.faults()]


def test_a_manifest_is_sealed_as_packs_are(tmp_path, bases):
    """What is mutated is not refused for its digest alone."""
    content, digest = sealed(json.loads((bases / "pack_onnx" / "manifest.json").read_text()))
    (tmp_path / "manifest.json").write_bytes(content)

    assert open_pack(tmp_path).manifest.digest == digest


def test_subjects_are_as_right_as_they_are_called(tmp_path, bases):
    """In every layout: where nothing is mutated, `verify` and the harness tell them apart."""
    lines = []
    for subject, code in ((RIGHT, 0), (WRONG, 1), (PARTLY, 1)):
        for layout in LAYOUTS:
            results = str(bases / f"{subject}_{layout}")
            results += f"/vectors.{layout}" if layout in {"npz", "h5"} else ""
            lines.append(
                (code, "", ("verify", str(bases / f"pack_{layout}"), "--results", results))
            )
        verify = ("verify", str(bases / "pack_onnx"), "--harness", "./harness", "-k", "not Shape")
        lines += [(code, subject, verify), (code, subject, verify)]

    def outcome_of(number):
        """What one of them gives, in a child of its own: one that dies takes no other along."""
        _, subject, line = lines[number]

        def make(box, dice):
            del dice
            if subject:
                contents = [f"{json.dumps(each)}\n".encode() for each in answers(box, subject)]
                put_harness(contents, is_program=number % 2)
            return Command(line, (str(bases), *PLACES), ("files",))

        (outcome,) = Series(make, "x", make_box(tmp_path / str(number), bases)).run([number])
        return outcome

    outcomes = [outcome_of(number) for number in range(len(lines))]

    assert [code for code, *_ in lines] == [outcome.code for outcome in outcomes]
    assert [] == [outcome for outcome in outcomes if outcome.faults()]


def test_an_input_is_a_function_of_its_number(tmp_path, bases):
    """The same family, seed and number give the same files and command."""

    def make(box, dice):
        command = FAMILIES["manifests"](box, dice)
        content = Path("pack/manifest.json").read_bytes()
        return Command((content.decode(errors="replace")[:2000], *command.arguments))

    boxes = [make_box(tmp_path / name, bases) for name in "ab"]
    series = [Series(make, "manifests", box, entry=_nothing) for box in boxes]
    first, second = ([outcome.arguments for outcome in each.run([3, 4, 5])] for each in series)

    assert first == second
    assert len(set(map(str, first))) == 3


def _nothing() -> None:
    sys.exit(0)


def _reads() -> None:
    Path("../canary.txt").read_bytes()


def _reads_below_descriptor() -> None:
    folder = os.open("..", os.O_RDONLY | os.O_PATH)
    os.close(os.open("canary.txt", os.O_RDONLY, dir_fd=folder))


def _reads_through_link() -> None:
    Path("link").symlink_to("../../canary")
    Path("link/model.onnx").read_bytes()


def _reads_in_c() -> None:
    with h5py.File("../canary.h5") as file:
        file["x"][()]


def _writes() -> None:
    Path("../evil").write_bytes(b"x")


def _writes_in_c() -> None:
    with h5py.File("../evil.h5", "w") as file:
        file["x"] = 1


def _writes_through_hard_link() -> None:
    os.link("../canary.hard", "x")
    with open("x", "ab") as file:  # noqa: PTH123
        file.write(b"x")


def _renames() -> None:
    Path("x").write_bytes(b"x")
    os.replace("x", "../canary.txt")  # noqa: PTH105


def _writes_beside() -> None:
    Path("beside").write_bytes(b"x")


def _fails() -> None:
    raise ValueError("a bug")


def _ends() -> None:
    os._exit(0)


def _crashes() -> None:
    faulthandler.disable()  # pytest's, which would tell of it
    ctypes.string_at(0)


def _hangs() -> None:
    time.sleep(1000)


def _swells() -> None:
    np.ones(1100 << 17)


def _chatters() -> None:
    sys.stderr.write("x" * 100_000)
    sys.exit(2)


def _says_nothing() -> None:
    sys.exit(2)


def _agrees() -> None:
    sys.exit(0)


TRAPS = {
    _reads: "outside",
    _reads_below_descriptor: "outside",
    _reads_through_link: "outside",
    _reads_in_c: "outside",
    _writes: "outside",
    _writes_in_c: "outside",
    _writes_through_hard_link: "outside",
    _renames: "outside",
    _writes_beside: "outside",
    _fails: "exit 70",
    _ends: "exit 70",
    _crashes: "exit -11",
    _hangs: "exit None",
    _swells: "memory",
    _chatters: "words",
    _says_nothing: "silent",
    _agrees: "green",
}


@pytest.mark.parametrize("entry", TRAPS, ids=lambda entry: entry.__name__)
def test_trap_catches(tmp_path, bases, entry):
    """Each promise, broken on purpose, is found; and the input after it is judged by itself."""
    box = make_box(tmp_path, bases)

    def make(box, dice):
        del box, dice
        return Command(("x",), ("pack",), ("x", "link"), is_green=always)

    (outcome,) = Series(make, "x", box, entry=entry).run([0])

    assert TRAPS[entry] in outcome.faults()


def test_a_child_that_dies_costs_one_input(tmp_path, bases):
    """The inputs after the one that ended the process are run all the same."""
    box = make_box(tmp_path, bases)

    def make(box, dice):
        """Three inputs in ten end their process."""
        del box
        return Command((dice.choice("1234567890"),))

    def entry():
        os._exit(1) if sys.argv[1] in "123" else sys.exit(int(sys.argv[1] == "4"))

    outcomes = [*Series(make, "x", box, entry=entry).run(range(20))]

    assert [outcome.number for outcome in outcomes] == [*range(20)]
    assert {outcome.code for outcome in outcomes} == {0, 1}
    assert [bool(o.err) for o in outcomes] == [o.arguments[0] in "123" for o in outcomes]


def test_canaries_stand_in_every_folder_above(tmp_path, bases):
    """A path that climbs one, two or three folders finds something to read."""
    box = make_box(tmp_path, bases)

    names = ("canary.npz", "canary.h5", "canary.onnx", "canary/model.onnx")
    assert len(box.outer) == LEVELS
    assert all((folder / name).is_file() for folder in box.outer for name in names)
