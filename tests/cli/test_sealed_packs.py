"""Claims about packs that are altered before or while they are judged."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.forged_packs import (
    READ,
    files_of,
    forged,
    made,
    with_flat_inputs,
    with_other_readings_of_zeros,
    with_wide_tolerances,
    with_zeros,
    without_sums,
    zeros_of,
)

from rnncli import Rule, Selected, open_pack
from rnncli import verify as verify_function
from rnncli.api.pytest_plugin import selected_cases
from rnncli.errors import InvalidRequest
from rnncli.packs.manifest import MANIFEST, SUMS

FORGERIES = {
    "expected outputs": with_zeros,
    "tolerances": with_wide_tolerances,
    "other readings": with_other_readings_of_zeros,
}


@pytest.fixture(scope="module", params=READ)
def layout(request):
    """A layout that is read back."""
    return request.param


@pytest.fixture(scope="module")
def original(layout, tmp_path_factory):
    """A folder with a pack in that layout, forgeries of it, and outputs of zeros."""
    folder = tmp_path_factory.mktemp(layout)
    pack = made(folder, layout)
    for name, change in FORGERIES.items():
        forged(pack, folder / name, change)
    zeros_of(pack, folder / "zeros.npz")
    return folder


@pytest.fixture
def place(original, tmp_path, monkeypatch):
    """A copy of that folder, to be spoilt."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def each_file(change):
    """What alters every file but the manifest and the sums."""

    def alter(place):
        for path in files_of(place / "pack"):
            change(path)

    return alter


def edited(path):
    """Change the last byte."""
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def linked(path):
    """Put a link to the same content in its place."""
    path.rename(f"{path}~")
    path.symlink_to(f"{path}~")


def hard_linked(path):
    """Put another file in its place, which has a second name."""
    path.rename(f"{path}~")
    edited(Path(f"{path}~"))
    os.link(f"{path}~", path)


def unlisted(place):
    """List no file, and expect zeros."""
    without_sums(place / "pack")
    for path in files_of(place / "expected outputs"):
        shutil.copy(path, place / "pack" / path.relative_to(place / "expected outputs"))


def edited_manifest(place):
    """Change the summary of a case."""
    path = place / "pack" / MANIFEST
    path.write_text(path.read_text().replace("Two calls", "Too calls"))


def reformatted_manifest(place):
    """Write the same values in another form, which is not what the digest is of."""
    path = place / "pack" / MANIFEST
    path.write_text(path.read_text().replace('"cases": [', '"cases":  ['))


SIDES = {
    "edited": each_file(edited),
    "cut": each_file(lambda path: path.write_bytes(path.read_bytes()[:-1])),
    "longer": each_file(lambda path: path.write_bytes(path.read_bytes() + b"\0")),
    "removed": each_file(Path.unlink),
    "linked": each_file(linked),
    "hard-linked": each_file(hard_linked),
    "unlisted": unlisted,
    "manifest edited": edited_manifest,
    "manifest reformatted": reformatted_manifest,
}
NUMPY = ("--backend", "numpy")
COMMANDS = {
    "verify": ("verify", "pack", *NUMPY),
    "verify, two workers": ("verify", "pack", *NUMPY, "-j", "2"),
    "diagnose": ("diagnose", "pack", *NUMPY),
    "relations": ("relate", "pack", *NUMPY),
    "score": ("score", "pack"),
    "convert": ("convert", "pack", "converted", "--format", "raw"),
}

# Those that compute with the inputs of a case themselves.
SCORED = [(name, COMMANDS[name]) for name in ("score", "relations")]


def in_python(place):
    """Read a vector and judge by it, in ways that no command line has."""
    pack = place / "pack"

    def answers():
        for vector in open_pack(pack).vectors():
            for each in vector.calls:
                assert each.answers.outputs, each.alternatives

    def function():
        verify_function(pack, lambda vector: np.load("zeros.npz"))

    def test_item():
        for case in selected_cases(pack, Rule(), Selected(), beside=place):
            case.judged(lambda vector: np.load("zeros.npz"))

    return {each.__name__: each for each in (answers, function, test_item)}


@pytest.mark.parametrize("side", SIDES)
def test_an_altered_pack_is_refused_by_whatever_reads_it(rnncli, place, layout, side):
    """From every side, in every layout, and each command meets every side and every layout."""
    SIDES[side](place)
    codes = {}
    for name in [*COMMANDS][([*SIDES].index(side) + READ.index(layout)) % 3 :: 3]:
        codes[name] = rnncli(*COMMANDS[name]).code
    for name, does in in_python(place).items():
        try:
            does()
            codes[name] = 0
        except InvalidRequest:
            codes[name] = 2

    assert codes == dict.fromkeys(codes, 2)


# How a program puts forged files in the place of the pack's.
HOW = {
    "overwrites": "cp -rf",
    "replaces": "cp -r --remove-destination",
    "links": "cp -rsf",
    "hard-links": "cp -rlf",
}


def program(place, name, forgery, how, *, manifest):
    """Make `./kernel`, which forges a pack when it is asked, and answers with zeros."""
    source = place / f"source of {name}"
    shutil.copytree(place / forgery, source)
    if not manifest:
        for file in (MANIFEST, SUMS):
            (source / file).unlink()
    lines = ("#!/bin/sh", f"{HOW[how]} '{source}/.' '{place}/{name}/'", 'cp zeros.npz "$1"', "")
    (place / "kernel").write_text("\n".join(lines).replace("zeros.npz", f"'{place}/zeros.npz'"))
    (place / "kernel").chmod(0o755)


COMMAND = ("--command", "./kernel {outputs.npz}")
WORKERS = {"one": (), "two": ("-j", "2"), "dask": ("-j", "2", "--executor", "dask")}


def ways(layout, workers):
    """Yield forgeries, how they come, and whether with a manifest whose digest fits.

    One worker meets each forgery that comes in each way, with its manifest in half of the layouts.
    """
    for (i, forgery), (j, how) in product(enumerate(FORGERIES), enumerate(HOW)):
        if workers == "one":
            yield forgery, how, bool((i + j + READ.index(layout)) % 2)
        elif (forgery, how) == ("expected outputs", "replaces"):
            yield from ((forgery, how, manifest) for manifest in (False, True))


@pytest.mark.skipif(sys.platform != "linux", reason="options of GNU cp")
@pytest.mark.parametrize(
    ("layout", "workers"),
    [*product(READ, ("one", "two")), ("onnx", "dask")],  # seconds each
    indirect=["layout"],
)
def test_a_program_that_forges_its_pack_is_not_green(rnncli, place, layout, workers):
    """Neither with the manifest that was there nor with one whose digest fits."""
    if workers == "dask":
        pytest.importorskip("distributed")
    codes = {}
    # Each has its own pack: what a worker has started may write a moment longer than the run lasts.
    for k, way in enumerate(ways(layout, workers)):
        name = f"pack-{k}"
        shutil.copytree(place / "pack", place / name)
        program(place, name, *way[:2], manifest=way[2])
        codes[way] = rnncli("verify", name, *COMMAND, *WORKERS[workers]).code

    assert {way: code for way, code in codes.items() if code not in (1, 2)} == {}


@pytest.mark.parametrize("manifest", [False, True])
def test_a_function_that_forges_its_pack_is_not_green(place, manifest):
    """It runs in the process that judges."""

    def function(vector):
        for path in (place / "expected outputs").rglob("*"):
            if path.is_file() and (manifest or path.name not in (MANIFEST, SUMS)):
                shutil.copy(path, place / "pack" / path.relative_to(place / "expected outputs"))
        return {name: np.zeros_like(values) for name, values in np.load("zeros.npz").items()}

    try:
        code = verify_function(place / "pack", function).exit_code
    except InvalidRequest:
        code = 2

    assert code in (1, 2)


@pytest.mark.parametrize(
    ("forgery", "sentence"), [("tolerances", "is too wide"), ("flat", "X must have 3 dimensions")]
)
def test_what_is_wrong_with_a_pack_is_not_said_of_what_is_judged(rnncli, place, forgery, sentence):
    """A pack that was sealed as it is ends the run, whatever the implementation answers."""
    forged(place / "pack", place / "flat", with_flat_inputs)
    (place / "kernel").write_text("#!/bin/sh\nexit 3\n")
    (place / "kernel").chmod(0o755)
    for subject in (COMMAND, NUMPY):
        done = rnncli("verify", forgery, *subject, "--allow-refused")
        assert (done.code, sentence in done.err) == (2, True), (subject, done.out, done.err)
    with pytest.raises(InvalidRequest, match=sentence):
        verify_function(place / forgery, lambda vector: vector.answers.outputs)


def test_tensors_that_are_not_those_of_the_record_are_refused(rnncli, place):
    """A pack that somebody made and sealed may hold tensors of any shape."""
    without_batch = forged(place / "pack", place / "flat", with_flat_inputs)
    found = {name: rnncli(*command[:1], without_batch, *command[2:]) for name, command in SCORED}

    assert {name: done.code for name, done in found.items()} == dict.fromkeys(found, 2)
    assert all("X must have 3 dimensions" in done.err for done in found.values())


def test_files_that_are_not_part_of_the_pack_are_named(rnncli, place):
    """In one line, whose name a terminal only shows; the verdicts stay."""
    (place / "pack" / "conftest.py").write_text("raise SystemExit")
    (place / "pack" / "z\x1b[31m").touch()
    done = rnncli("verify", "pack", *NUMPY)
    related = rnncli("relate", "pack", *NUMPY, "--relation", "weights")

    for each in (done, related):
        said = [line for line in each.err.splitlines() if "not part of the pack" in line]
        assert len(said) == 1
        assert "conftest.py (and 1 more)" in said[0]
        assert "\x1b" not in each.err
    assert done.code == 0


def test_a_run_that_compares_no_checksums_says_so(rnncli, place):
    """In every report, and none claims the digest."""
    digest = open_pack(place / "pack").manifest.digest
    files = ("--junit", "v.xml", "--markdown", "v.md", "--html", "v.html")
    plain = rnncli("verify", "pack", *NUMPY, "--trust", *files)
    lines = rnncli("verify", "pack", *NUMPY, "--trust", "--json").out
    told = [plain.err + plain.out, lines, *(Path(name).read_text() for name in files[1::2])]

    assert plain.code == 0
    assert [text for text in told if digest[:12] in text or "not verified" not in text] == []
    assert "--trust" in plain.err
