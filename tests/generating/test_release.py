"""Claims about releases: equal bytes wherever they are made, and whole without rnncli."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from support.small_suite import small_suite
from support.web_pages import Elements

from rnncli.errors import InvalidRequest, UnreadableFile
from rnncli.files.atomic import RECORD
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.generating.release import STEPS, _companions, must_pass, release
from rnncli.packs.layouts import LAYOUTS, SINGLE_FILES
from rnncli.packs.manifest import MANIFEST, digest_of
from rnncli.packs.pack import open_pack

FOLDERS = [layout for layout in LAYOUTS if layout not in SINGLE_FILES]
ONNX_OPERATORS = [layout for layout in FOLDERS if not LAYOUTS[layout].whose]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """The small suite as a pack."""
    folder = tmp_path_factory.mktemp("packs") / "small"
    assert generate(GenerationPlan(suite=small_suite()), folder, lambda _: None).failed == ()
    return folder


@pytest.fixture(scope="module")
def released(pack, tmp_path_factory):
    """A release of it in every layout that holds them."""
    folder = tmp_path_factory.mktemp("releases") / "first"
    release([open_pack(pack)], ONNX_OPERATORS, folder)
    return folder


def files_of(folder):
    """The bytes of each file that is given away."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RECORD}


@pytest.fixture
def unpacked(released, tmp_path):
    """The archive of the layout raw, as its reader sees it."""
    (archive,) = released.glob("*-raw.tar.gz")
    subprocess.run(["tar", "xzf", archive], cwd=tmp_path, check=True)
    return tmp_path / "small-raw"


def test_two_releases_have_equal_bytes(released, pack, tmp_path):
    """On another path, in another time zone, locale and mask, and by another process."""
    copy = shutil.copytree(pack, tmp_path / "another path" / "pack")
    layouts = [word for layout in ONNX_OPERATORS for word in ("--format", layout)]
    again = [sys.executable, "-m", "rnncli", "release", "again", str(copy), *layouts]
    release_again = shlex.join(again)
    elsewhere = {**os.environ, "TZ": "Pacific/Kiritimati", "LANG": "tr_TR", "LC_ALL": "C"}
    subprocess.run(
        ["sh", "-c", f"umask 077; exec {release_again}"], cwd=tmp_path, env=elsewhere, check=True
    )

    assert files_of(tmp_path / "again") == files_of(released)


def test_its_sums_are_those_of_its_archives(released):
    """`sha256sum --check` passes."""
    *archives, sums = (files_of(released)[name] for name in sorted(files_of(released))[::-1])
    lines = [line.split("  ") for line in sums.decode().splitlines()]

    assert sorted(sum_ for sum_, _ in lines) == sorted(
        hashlib.sha256(each).hexdigest() for each in archives
    )


@pytest.mark.parametrize("layout", ONNX_OPERATORS)
def test_an_archive_tells_nothing_of_who_made_it(released, layout):
    """No time, no user, no path of this machine, nothing but plain files."""
    (archive,) = released.glob(f"*-{layout}.tar.gz")
    with tarfile.open(archive) as tar:
        entries = tar.getmembers()
        page = tar.extractfile(f"small-{layout}/README.md").read().decode()

    assert {(e.type, e.mode, e.mtime, e.uid, e.gid, e.uname, e.gname) for e in entries} == {
        (tarfile.REGTYPE, 0o644, 315532800, 0, 0, "", "")
    }
    names = [entry.name for entry in entries]
    assert names == sorted(names, key=lambda name: name.split("/"))
    assert {name.split("/")[0] for name in names} == {f"small-{layout}"}
    assert "{" not in page
    assert max(map(len, page.splitlines())) <= 100


def test_what_is_in_it_is_the_pack(unpacked, pack):
    """Read back, it has the digest of its name, and the vectors of the pack."""
    found, given = open_pack(unpacked / "small"), open_pack(pack)

    assert f"digest {found.manifest.digest}." in (unpacked / "README.md").read_text()
    assert [each.id for each in found.vectors()] == [each.id for each in given.vectors()]


def test_every_feature_has_its_cases(pack):
    """Each case in the line of each of its flags, each flag once."""
    manifest = open_pack(pack).manifest
    head, *lines = (line.split("\t") for line in must_pass(manifest).splitlines())
    pairs = {(flag, case) for flag, _, cases in lines for case in cases.split()}

    assert head == ["feature", "cases", "ids"]
    assert all(int(count) == len(cases.split()) for _, count, cases in lines)
    assert pairs == {(flag, case.id) for case in manifest.cases for flag in case.flags}


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_a_compiler_and_an_archive_reach_a_verdict(unpacked):
    """The expected outputs are right, a missing one is not; nothing of ours is in reach."""
    here = unpacked.parent
    build = ["gcc", "-std=c99", "-O2", "-o", "judge", "small-raw/judge.c", "-lm"]
    subprocess.run(build, cwd=here, check=True)
    for folder in (unpacked / "small").glob("test_*/outputs"):
        shutil.copytree(folder, here / "results" / folder.parent.name / "outputs")

    def judged(*ids):
        command = ["./judge", "small-raw/small", "results", *ids]
        return subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)

    assert "pass\trnn_14_nan" in judged().stdout
    right = judged("gru_22_half_float64")
    (here / "results" / "test_gru_22_half_float64" / "outputs" / "Y_h.bin").unlink()
    wrong = judged("gru_22_half_float64")

    assert (right.returncode, wrong.returncode) == (0, 1)
    assert "1 pass. None fails" in right.stdout
    assert "1 fails" in wrong.stdout


@pytest.mark.parametrize("layout", ONNX_OPERATORS)
def test_every_layout_of_folders_can_be_released(pack, tmp_path, layout):
    """One archive, with the pack's cases."""
    (archive,) = release([open_pack(pack)], [layout], tmp_path / "dist")

    assert (archive.layout, archive.cases) == (layout, len(open_pack(pack).manifest.cases))
    assert (tmp_path / "dist" / archive.name).stat().st_size == archive.size


def test_an_earlier_release_is_replaced_and_nothing_else(pack, tmp_path):
    """A folder with anything of somebody's own stays as it is."""
    opened, dist = open_pack(pack), tmp_path / "dist"
    release([opened], ["raw", "c"], dist)
    release([opened], ["c"], dist)
    assert len(files_of(dist)) == 2
    (dist / "backup.tar.gz").write_text("mine")

    with pytest.raises(InvalidRequest, match=r"dist: .*: backup\.tar\.gz is not of an earlier"):
        release([opened], ["raw"], dist)
    assert len(files_of(dist)) == 3


def test_archives_of_somebody_else_stay(pack, tmp_path):
    """With their own sums, which are right, beside them."""
    (tmp_path / "backup.tar.gz").write_text("mine")
    (tmp_path / "SHA256SUMS").write_text(f"{hashlib.sha256(b'mine').hexdigest()}  backup.tar.gz\n")
    with pytest.raises(InvalidRequest, match="SHA256SUMS is not of an earlier output"):
        release([open_pack(pack)], ["raw"], tmp_path)
    assert len(files_of(tmp_path)) == 2


@pytest.mark.parametrize("padding", [0, 1, 30, 70, 90, 100, 120])
def test_a_page_has_no_markup_of_a_pack(pack, padding):
    """Its summary and the name of its suite are text in the README of a release."""
    opened = open_pack(pack)
    text = f"{'a' * padding} <script>alert(1)<!-- --> ![x](http://y) `z"
    header = {
        **opened.manifest.header,
        "summary": text,
        "suite": text.replace("/", "").replace(":", ""),
    }
    page = _companions(replace(opened.manifest, header=header), "f", "a")["README.md"].decode()
    found = Elements(MarkdownIt("commonmark").render(page)).tags

    assert {tag for tag, _ in found} <= {"h1", "p", "code", "pre"}


@pytest.mark.parametrize("layout", STEPS)
def test_a_page_has_no_command_of_a_pack(pack, tmp_path, layout):
    """What a reader pastes runs the programs of the page alone, whatever a suite is called."""
    manifest = open_pack(pack).manifest
    name = "a && touch made || b > made; $(touch made)"
    manifest = replace(manifest, header={**manifest.header, "suite": name, "layout": layout})
    page = _companions(manifest, f"{name}-{layout}", f"{name}.tar.gz")["README.md"].decode()
    lines = "\n".join(line for line in page.splitlines() if line.startswith("    "))
    nothing = "rnncli() { :; }; tar() { :; }; cc() { :; }; mkdir() { :; }; your_kernel() { :; }\n"
    subprocess.run(["bash", "-c", nothing + lines], cwd=tmp_path, check=False)

    assert [*tmp_path.iterdir()] == []


def test_a_pack_names_no_file_outside(pack, tmp_path):
    """Its manifest is a stranger's, with a digest that fits."""
    copy = Path(shutil.copytree(pack, tmp_path / "copy"))
    begins, _, _ = (copy / MANIFEST).read_text().partition(',\n"digest"')
    begins = begins.replace('"suite": "small"', '"suite": "../../escaped"')
    digest = digest_of(begins.encode())
    (copy / MANIFEST).write_text(f'{begins},\n"digest": "{digest}"\n}}\n')
    (tmp_path / "in" / "a").mkdir(parents=True)

    with pytest.raises(InvalidRequest, match=r"\.\./\.\./escaped"):
        release([open_pack(copy)], ["raw"], tmp_path / "in" / "a" / "dist")
    assert [*tmp_path.rglob("*escaped*")] == []


def test_what_cannot_be_released_is_refused(pack, tmp_path):
    """Two packs of one name, a layout of one file, a pack that was altered; nothing is left."""
    opened = open_pack(pack)
    with pytest.raises(InvalidRequest, match="two packs have the name 'small'"):
        release([opened, opened], ["raw"], tmp_path / "dist")
    with pytest.raises(InvalidRequest, match="--format npz: is one file already"):
        release([opened], ["npz"], tmp_path / "dist")
    copy = shutil.copytree(pack, tmp_path / "copy")
    next(copy.glob("test_*/test_data_set_0/output_0.pb")).write_bytes(b"")
    with pytest.raises(UnreadableFile):
        release([open_pack(copy)], ["raw"], tmp_path / "dist")
    assert not (tmp_path / "dist").exists()
