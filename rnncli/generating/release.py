"""Archives of packs as they are given away: whole without rnncli, and equal bytes wherever made."""

from __future__ import annotations

import gzip
import shlex
import shutil
import tarfile
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from rnncli import __version__
from rnncli.cases.library import specs_folder
from rnncli.errors import InvalidRequest
from rnncli.files.atomic import atomic_file, atomic_folder, put_file
from rnncli.files.paths import Identifier
from rnncli.files.reading import read_bytes, sha256_of
from rnncli.packs.conversion import convert_pack
from rnncli.packs.layouts import SINGLE_FILES
from rnncli.packs.manifest import SUMS
from rnncli.talk.words import code, counted, inline, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rnncli.packs.manifest import Manifest
    from rnncli.packs.pack import Pack

SUFFIX = ".tar.gz"
MUST_PASS = "must-pass.tsv"  # noqa: S105 -- a list of cases
JUDGE = "judge.c"
# The seconds of 1980-01-01, the first date that every archive format can hold.
EPOCH = 315532800

# How a kernel without Python gets its first verdict, in Markdown.
JUDGED = """\

A C99 compiler judges what your kernel makes of them. It reads `inputs` and writes `outputs`, and
of a case with a second call, whose inputs are in `calls/1/inputs`, `calls/1/outputs` as well:

    tar xzf {archive}
    cc -std=c99 -O2 -o judge {folder}/judge.c -lm
    for case in {folder}/{name}/test_*; do
      results=results/$(basename "$case")
      mkdir -p "$results/outputs"
      your_kernel "$case" "$results" 2> "$results/said" || mv "$results/said" "$results/refused.txt"
    done
    ./judge {folder}/{name} results

With IDs behind `results` the judge takes these cases alone; `./judge --help` has its exit codes. A
case that your kernel refuses is one with the reason in `refused.txt`. Where rnncli is,

    rnncli verify {folder}/{name} --results results

says of the same results which known bug gives them.
"""
RAW = """\
Each {path} has `case.json`, one entry a line, and a file of plain little-endian elements
for each tensor: `inputs/X.bin`, `outputs/Y.bin`, `tolerances/Y.bin`"""

AGREES = """\
An element agrees if it equals the expected one, if both are NaN, or if |got - expected| <=
tolerance; where none of these is true, as of a NaN that is not expected, it differs.
"""

# Layout -> what is where, and how its first verdict is reached, in Markdown.
STEPS: Mapping[str, str] = {
    "onnx": """\
Each {path} is a test case as `onnx.backend.test` and `onnx_test_runner` read it:
`model.onnx`, and `test_data_set_0` with `input_K.pb` and `output_K.pb`. `tolerance_K.pb` beside
them is ours: the tolerance of each element of output K. With rnncli:

    rnncli verify {folder}/{name} --runtime onnxruntime
""",
    "raw": f"{RAW}.\n{JUDGED}",
    "c": """\
`case.h` of each {path} is a C99 and C++17 header for a kernel that is compiled with
its test: sizes, attributes, inputs, expected outputs and their tolerances.
"""
    + AGREES,
    "hex": """\
Each {path} has a file for each tensor as `$readmemh` reads it, one element a line, and
`case.svh` with the depth, width and path of each.
"""
    + AGREES,
    "ir": f"{RAW}, with OpenVINO's model in `model.xml` and `model.bin`.\n{JUDGED}",
    "wpt": f"{RAW}, with `wpt.json`, a case of web-platform-tests.\n{JUDGED}",
    "tflite": f"{RAW}, with `model.tflite` for an interpreter.\n{JUDGED}",
    "cmsis": f"{RAW}, with `test_data.h`, whose names are CMSIS-NN's.\n{JUDGED}",
}

ROUNDED = """\
The expected outputs are the specifications' formulas in real numbers, rounded once; each element's
tolerance follows from them."""
EXACT = """\
The expected outputs are what the operators' rules give, exactly, and every one has to be met: the
tolerances are 0. Where no text has these rules, `readings` of a case tells whose they are."""

README = """\
# {title}, as {layout}

{summary}
{counted}, digest {digest}.

Conformance tests for {operators}.

{values}

Nothing here needs rnncli, whose version {version} made it.

{steps}
`sha256sum --check SHA256SUMS` within {pack} finds a file that was altered; its `manifest.json`
says what each case shows. `must-pass.tsv` has a line for each feature: whoever claims it passes all
of its cases that need no feature outside the claim. Where a sentence of the specification can be
read in two ways, `readings` has the outputs of the other way: right as well, if a whole
implementation reads it so.

Apache-2.0, see `LICENSE`.
"""


class Archive(NamedTuple):
    """An archive of a release."""

    name: str
    layout: str
    cases: int
    size: int  # bytes
    sha256: str


def release(packs: Sequence[Pack], layouts: Sequence[str], folder: Path) -> tuple[Archive, ...]:
    """Write an archive of each pack in each layout, and `SHA256SUMS` of them.

    Nothing in them tells when, where or by whom they were made.

    Args:
        packs: packs of different names.
        layouts: rows of `LAYOUTS` that are folders of cases.
        folder: a new or empty folder, or an earlier release, which is replaced whole.

    Raises:
        InvalidRequest: two packs have one name, or one has none that can be part of a path; a
            layout is one file or cannot hold a case; or the folder has other files.
        UnreadableFile: a file of a pack is missing or altered.
    """
    names = [name_of(pack) for pack in packs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidRequest(f"two packs have the name '{twice}'; release them into two folders")
    if single := next((layout for layout in layouts if layout in SINGLE_FILES), None):
        raise InvalidRequest(f"--format {single}: is one file already; `rnncli convert` writes it")
    with atomic_folder(folder) as temporary:
        archives = tuple(_archive(pack, layout, temporary) for pack in packs for layout in layouts)
        sums = "".join(f"{each.sha256}  {each.name}\n" for each in archives)
        put_file(temporary, SUMS, sums.encode())
    return archives


def name_of(pack: Pack) -> Identifier:
    """Return the name of a pack's suite, which becomes that of folders and files.

    Raises:
        InvalidRequest: it cannot be part of a path.
    """
    return Identifier(pack.manifest.header["suite"])


def must_pass(manifest: Manifest) -> str:
    """Return a line for each feature: the cases that whoever claims it must pass.

    A case stands in the line of each of its features, and needs all of them.
    """
    cases: dict[str, list[str]] = {}
    for record in manifest.cases:
        for flag in record.flags:
            cases.setdefault(one_line(flag), []).append(record.id)
    lines = [f"{flag}\t{len(cases[flag])}\t{' '.join(cases[flag])}" for flag in sorted(cases)]
    return "\n".join(["feature\tcases\tids", *lines, ""])


def _archive(pack: Pack, layout: str, into: Path) -> Archive:
    name = name_of(pack)
    folder = into / f"{name}-{layout}"
    folder.mkdir()
    manifest = convert_pack(pack, folder / name, layout)
    archive = f"{name}-{manifest.digest[:12]}-{layout}{SUFFIX}"
    for file, content in _companions(manifest, folder.name, archive).items():
        put_file(folder, file, content)
    # Files in the order of their paths, of nobody and of no time.
    with (
        atomic_file(into / archive) as stream,
        gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=EPOCH) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts):
            if path.is_file():
                content = read_bytes(path)
                entry = tarfile.TarInfo(path.relative_to(into).as_posix())
                entry.size, entry.mtime, entry.mode = len(content), EPOCH, 0o644
                tar.addfile(entry, BytesIO(content))
    shutil.rmtree(folder)
    size = (into / archive).stat().st_size
    return Archive(archive, layout, len(manifest.cases), size, sha256_of(into / archive))


def _companions(manifest: Manifest, folder: str, archive: str) -> dict[str, bytes]:
    """Return what lies beside a pack, by file name."""
    name, layout = manifest.header["suite"], manifest.header["layout"]
    cases = manifest.cases
    words = {"name": name, "layout": layout, "folder": folder, "archive": archive}
    words = {key: shlex.quote(word) for key, word in words.items()}  # for commands to paste
    words["path"] = code(f"{name}/test_ID")
    page = README.format(
        **words,
        title=inline(name),
        pack=code(name),
        summary=inline(manifest.header["summary"]),
        counted=counted(len(cases), "case").capitalize(),
        digest=manifest.digest,
        version=__version__,
        steps=STEPS[layout].format(**words),
        operators=", ".join(sorted({inline(case.operator.partition("-")[0]) for case in cases})),
        values=EXACT if {case.profile for case in cases} == {"exact"} else ROUNDED,
    )
    found = {"README.md": page.encode(), MUST_PASS: must_pass(manifest).encode()}
    root = specs_folder().parent
    found["LICENSE"] = read_bytes(root / "LICENSE")
    if JUDGED in STEPS[layout]:
        found[JUDGE] = read_bytes(root / "vectors" / JUDGE)
    return found
