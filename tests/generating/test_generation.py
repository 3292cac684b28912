"""Claims about generation: the same bytes always, whole or resumable, and nothing else touched."""

import json
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import h5py
import jsonschema
import numpy as np
import pytest
from support.small_suite import TEXT, small_suite

import rnncli
from rnncli.errors import InvalidRequest, NothingSelected, Unsupported
from rnncli.files.described import jsonable
from rnncli.files.lock import LOCK, writing
from rnncli.generating import generation, goldens
from rnncli.generating.generation import GenerationPlan, check, generate
from rnncli.jobs.workers import EXECUTORS, Workers
from rnncli.packs.conversion import convert_pack
from rnncli.packs.manifest import JOURNAL, MANIFEST, SPOOL, SUMS, manifest_schema
from rnncli.packs.pack import open_pack

LAYOUTS = ("onnx", "npz", "h5")


def write(folder, text=TEXT, **options):
    """Generate the small suite; return the report."""
    return generate(GenerationPlan(suite=small_suite(text), **options), folder, lambda _: None)


def findings(folder, text=TEXT, **options):
    """Check the folder against the small suite."""
    report = check(GenerationPlan(suite=small_suite(text), **options), folder, lambda _: None)
    return [*report.findings]


def contents(folder):
    """Every file below a folder but the journal of what it was made from, by path."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name != JOURNAL)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    """The small suite in every layout, as one process writes it."""
    root = tmp_path_factory.mktemp("packs")
    for layout in LAYOUTS:
        assert write(root / layout, layout=layout).failed == ()
    return root


@pytest.fixture
def pack(packs, tmp_path):
    """A copy of the pack of folders, to be spoilt."""
    return Path(shutil.copytree(packs / "onnx", tmp_path / "pack"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pack_checks_clean(packs, layout):
    """What was written is what the suite gives."""
    assert findings(packs / layout, layout=layout) == []


@pytest.mark.parametrize(("layout", "executor"), [*product(["onnx", "npz"], EXECUTORS)])
def test_bytes_do_not_depend_on_the_executor(packs, tmp_path, layout, executor):
    """Two workers of either kind write the very files that one process writes, or return them."""
    write(tmp_path / "pack", layout=layout, workers=Workers(jobs=2, executor=executor))

    assert contents(tmp_path / "pack") == contents(packs / layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("origin", LAYOUTS)
def test_layouts_convert_into_each_other(packs, tmp_path, origin, layout):
    """A converted pack is the one that `generate` writes in that layout, models included."""
    convert_pack(open_pack(packs / origin), tmp_path / "pack", layout)

    assert contents(tmp_path / "pack") == contents(packs / layout)


def test_groups_of_hdf5_have_the_attributes_of_nodes(packs):
    """Programs that read no JSON find them beside the tensors of a case."""
    with h5py.File(packs / "h5" / "vectors.h5") as file:
        for case in open_pack(packs / "h5").cases:
            found = {
                name: np.asarray(value).tolist() for name, value in file[case.id].attrs.items()
            }
            assert found == jsonable(case.attributes)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_manifests_fit_their_schema(packs, layout):
    """The manifest on disk validates, entry by entry."""
    record = json.loads((packs / layout / MANIFEST).read_bytes())

    jsonschema.validate(record, manifest_schema())


def test_sums_are_those_of_sha256sum(packs):
    """`sha256sum --check` accepts the pack, without Python."""
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", SUMS], cwd=packs / "onnx", check=False
    )

    assert done.returncode == 0


def test_a_second_run_rewrites_nothing(pack):
    """Files that are whole keep their modification times."""
    before = {path: path.stat().st_mtime_ns for path in pack.rglob("*.pb")}
    write(pack)

    assert {path: path.stat().st_mtime_ns for path in pack.rglob("*.pb")} == before


@pytest.mark.parametrize(
    ("spoil", "finding"),
    [
        (lambda path: path.unlink(), "missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "altered"),
    ],
    ids=["missing", "altered"],
)
def test_a_spoilt_file_is_found_and_mended(packs, pack, spoil, finding):
    """`--check` names the file and what is wrong with it; `generate` writes it once it is gone."""
    path = next(p for p in contents(pack) if p.endswith("output_1.pb"))
    spoil(pack / path)

    assert findings(pack) == [(path, finding)]
    if finding == "altered":
        before = contents(pack)
        with pytest.raises(InvalidRequest, match=f"{path} was changed since rnncli wrote it"):
            write(pack)
        assert {p: c for p, c in contents(pack).items() if not p.startswith(".")} == before
        (pack / path).unlink()
    write(pack)
    assert contents(pack) == contents(packs / "onnx")


def test_an_extra_file_is_found_and_left_alone(pack):
    """A stranger's file is a finding and a warning, and still there; by a name of ours as well."""
    names = ["notes.txt", "test_gru_22_half_float64/steps/output_7.pb"]
    for name in names:
        (pack / name).parent.mkdir(exist_ok=True)
        (pack / name).write_text("mine")

    assert sorted(findings(pack)) == [(name, "extra") for name in names]
    for text in (TEXT, TEXT.replace("[float16, bfloat16, float64]", "[float16, bfloat16]")):
        warned = [each for each in write(pack, text).warnings if "earlier pack" not in each]
        assert all("not part of the pack" in each for each in warned)
        assert len(warned) == 2
        assert [(pack / name).read_text() for name in names] == ["mine", "mine"]


def test_a_changed_suite_makes_files_stale(pack):
    """Another seed changes every tensor; `--check` calls them stale, `generate` renews them."""
    text = TEXT.replace("seed: 11", "seed: 12")

    assert {word for path, word in findings(pack, text) if path.endswith("input_0.pb")} == {"stale"}
    checked = check(GenerationPlan(suite=small_suite(text)), pack, lambda _: None)
    assert checked.apart == ("seed is 12, the pack's is 11",)
    write(pack, text)
    assert findings(pack, text) == []


def test_a_case_that_is_gone_leaves_no_files(pack):
    """What an earlier suite had and this one has not is removed, and told."""
    text = TEXT.replace("dtype: [float16, bfloat16, float64]", "dtype: [float16, bfloat16]")
    told = "of the earlier pack, 1 case was removed (gru_22_half_float64)"
    assert write(pack, text).warnings == (f"{pack}: {told}",)
    assert write(pack, text).warnings == ()

    assert findings(pack, text) == []
    assert not (pack / "test_gru_22_half_float64").exists()


def test_another_layout_replaces_the_first(packs, pack):
    """The same folder may go from folders to one file and back."""
    write(pack, layout="npz")
    assert contents(pack) == contents(packs / "npz")
    write(pack)
    assert contents(pack) == contents(packs / "onnx")


def test_a_damaged_manifest_is_renewed(packs, pack):
    """A manifest that somebody changed is found, and written again."""
    path = pack / MANIFEST
    path.write_bytes(path.read_bytes().replace(b'"seed": 11', b'"seed": 10', 1))

    assert (MANIFEST, "stale or altered") in findings(pack)
    write(pack)
    assert contents(pack) == contents(packs / "onnx")


@pytest.mark.parametrize("name", ["thesis.tex", MANIFEST])
def test_a_foreign_folder_is_refused_and_keeps_everything(tmp_path, name):
    """A folder with other files, even one called manifest.json, is not written to."""
    (tmp_path / name).write_text("{}")

    with pytest.raises(InvalidRequest, match="choose a"):
        write(tmp_path)
    assert contents(tmp_path) == {name: b"{}"}


def test_the_pack_of_another_suite_is_refused(pack):
    """Two suites do not share a folder."""
    before = contents(pack)

    with pytest.raises(InvalidRequest, match="pack of suite 'small', not of 'other'"):
        write(pack, TEXT.replace("suite: small", "suite: other"))
    assert contents(pack) == before


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    """A path that is a file is said to be one."""
    (tmp_path / "pack").write_text("mine")

    with pytest.raises(InvalidRequest, match="it is a file, not a folder"):
        write(tmp_path / "pack")


def test_a_selection_is_a_smaller_pack_of_the_same_bytes(packs, tmp_path):
    """-k leaves cases out and changes no other file."""
    write(tmp_path / "pack", selection="gru and not half")
    found = contents(tmp_path / "pack")
    whole = contents(packs / "onnx")

    assert {p.split("/")[0] for p in found if "/" in p} == {
        f"test_gru_14_gates_{d}_{w}"
        for d in ("forward", "bidirectional")
        for w in ("inputs", "initializers")
    }
    assert all(whole[path] == content for path, content in found.items() if "/" in path)


def test_selecting_nothing_is_an_error(tmp_path):
    """An empty pack is never made."""
    with pytest.raises(NothingSelected):
        write(tmp_path / "pack", selection="transformer")
    assert not (tmp_path / "pack").exists()


def test_a_missing_extra_is_said_before_anything_is_written(tmp_path, monkeypatch):
    """A suite that asks for certified goldens never falls back on others."""
    kind = goldens.KINDS["certified"]._replace(backend="not-there")
    monkeypatch.setitem(goldens.KINDS, "certified", kind)
    monkeypatch.setattr(goldens, "backend_named", _unusable)

    with pytest.raises(
        Unsupported, match=r"pip'? install .*; --golden float64, or golden: float64 "
    ):
        write(tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


def test_no_case_is_counted_if_an_extra_is_missing(tmp_path, monkeypatch):
    """A progress bar would promise what cannot begin."""
    monkeypatch.setattr(goldens, "backend_named", _unusable)
    seen = []

    with pytest.raises(Unsupported, match=r"pip'? install"):
        rnncli.generate("smoke", output=tmp_path / "pack", progress=lambda *each: seen.append(each))
    assert seen == []


def _unusable(name):
    raise Unsupported(f"backend '{name}' does not import; install it with: pip install ...")


def test_a_case_that_fails_stops_no_other(tmp_path):
    """The others are kept for the next run, the pack has no manifest, and the reason is told."""
    text = TEXT.replace("    golden: float64\n", "")
    report = write(tmp_path / "pack", text)

    assert [made.id for made in report.failed] == ["rnn_14_nan"]
    assert "an input is NaN or infinite" in report.failed[0].error
    assert report.manifest is None
    assert not (tmp_path / "pack" / MANIFEST).exists()
    assert (tmp_path / "pack" / "test_gru_22_half_float16" / "model.onnx").exists()


def test_a_truncated_journal_is_not_trusted(packs, tmp_path):
    """Half a line at the end, and a file that is not what its line says, are made again."""
    folder = tmp_path / "pack"
    interrupt_after(folder, 5)
    journal = folder / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:40])
    spoilt = next(iter(json.loads(lines[1])["files"]))
    (folder / spoilt).write_bytes(b"")
    report = write(folder)

    assert report.reused == len(lines) - 3
    assert contents(folder) == contents(packs / "onnx")


def test_a_journal_of_another_suite_text_is_not_trusted(packs, tmp_path):
    """Nothing of a run with another seed is reused."""
    folder = tmp_path / "pack"
    interrupt_after(folder, 5, TEXT.replace("seed: 11", "seed: 12"))

    assert write(folder).reused == 0
    assert contents(folder) == contents(packs / "onnx")


def interrupt_after(folder, cases, text=TEXT):
    """Generate until so many cases are done, then raise what Ctrl-C raises."""
    left = [cases]

    def done(count):
        left[0] -= count
        if left[0] <= 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(GenerationPlan(suite=small_suite(text)), folder, done)


SCRIPT = """\
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from support.small_suite import small_suite
from rnncli.generating.generation import GenerationPlan, generate
from rnncli.jobs.workers import Workers
if __name__ == "__main__":
    print("ready", flush=True)
    plan = GenerationPlan(suite=small_suite(), layout={layout!r}, workers=Workers(jobs={jobs}))
    generate(plan, Path(sys.argv[1]), lambda _: None)
"""


@pytest.mark.parametrize(
    "terms",
    [("onnx", 1, "SIGKILL"), ("npz", 1, "SIGKILL"), ("h5", 1, "SIGTERM"), ("onnx", 2, "SIGINT")],
)
@pytest.mark.parametrize("wait", [0.005, 0.02, 0.05])
def test_a_killed_run_is_finished_by_the_next(packs, tmp_path, terms, wait):
    """After a signal at any moment nothing is torn, and a second run gives the same bytes."""
    layout, jobs, sent = terms
    script = SCRIPT.format(tests=str(Path(__file__).parents[1]), layout=layout, jobs=jobs)
    (tmp_path / "killed.py").write_text(script)
    folder, whole = tmp_path / "pack", contents(packs / layout)
    command = [sys.executable, tmp_path / "killed.py", folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"ready\n"
        time.sleep(wait)
        run.send_signal(getattr(signal, sent))
        _, said = run.communicate()
    # It ran until the signal came, if that is what ended it, whatever it was handling then.
    assert b"Error" not in b"".join(said.splitlines()[-1:]), said
    left = {path: c for path, c in contents(folder).items() if not path.startswith(".")}
    assert {path: whole[path] for path in left} == left
    write(folder, layout=layout)

    assert contents(folder) == whole


def test_a_full_disk_is_one_sentence_and_loses_nothing(packs, tmp_path):
    """When a file can no longer grow, the sentence names it, and the next run goes on."""
    folder = tmp_path / "pack"
    with (
        no_file_above(6000),
        pytest.raises(InvalidRequest, match=r"cannot write .*: File too"),
    ):
        write(folder)
    write(folder)

    assert contents(folder) == contents(packs / "onnx")


CHANGED = TEXT.replace("seed: 11", "seed: 12")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("limit", [100, 1000, 3000, 6000, 20000])
def test_no_torn_file_ever_has_a_final_name(packs, tmp_path, layout, limit):
    """Whatever a full disk leaves at a name of the pack is what the pack has there."""
    folder = tmp_path / "pack"
    with no_file_above(limit), suppress(InvalidRequest):
        write(folder, layout=layout)
    left = {path: c for path, c in contents(folder).items() if not path.startswith(".")}
    whole = contents(packs / layout)
    assert {path: whole[path] for path in left} == left
    write(folder, layout=layout)

    assert contents(folder) == whole


@contextmanager
def no_file_above(size):
    """Let no file grow beyond so many bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
@pytest.mark.parametrize("text", [TEXT, CHANGED], ids=["same", "changed"])
@pytest.mark.parametrize("name", ["test_lstm_14_clip/test_data_set_0/output_0.pb", SUMS])
def test_a_link_in_a_pack_is_never_written_through(pack, tmp_path, link, text, name):
    """What it leads to is not ours; in the place of a case's file, it is named."""
    inside = pack / name
    inside.unlink()
    outside = tmp_path / "outside"
    outside.write_text("of the user")
    getattr(inside, link)(outside)
    if name != SUMS:
        with pytest.raises(InvalidRequest, match=f"{name} was changed since rnncli wrote it"):
            write(pack, text)
        assert inside.samefile(outside)
        inside.unlink()
    write(pack, text)

    assert outside.read_text() == "of the user"
    assert not inside.is_symlink()
    assert findings(pack, text) == []


@pytest.mark.parametrize("name", ["test_lstm_14_clip", MANIFEST, JOURNAL, SPOOL])
def test_a_link_on_the_way_is_refused(pack, tmp_path, name):
    """A folder, or what is read beside the cases."""
    outside = tmp_path / "outside"
    if (pack / name).exists():
        shutil.move(pack / name, outside)
    else:
        outside.mkdir()
    (pack / name).symlink_to(outside)
    before = contents(tmp_path)
    with pytest.raises(InvalidRequest, match=r"is a symbolic link|choose|(was|were) changed"):
        write(pack, CHANGED)

    after = {path: c for path, c in contents(tmp_path).items() if not path.startswith("pack/.")}
    assert {path: before[path] for path in after} == after


def test_a_second_writer_is_refused(packs, tmp_path):
    """Two suites in one folder would be one pack of neither."""
    folder = tmp_path / "pack"
    folder.mkdir()
    with (
        writing(folder),
        pytest.raises(InvalidRequest, match=r"is being written by process \d+ on \S+ since"),
    ):
        write(folder)
    write(folder)

    assert contents(folder) == contents(packs / "onnx")


def test_a_finished_pack_stays_until_the_new_one_is_whole(pack, tmp_path):
    """Interrupted on the way to another seed it is the old one, with its manifest."""
    before = contents(pack)
    interrupt_after(pack, 5, CHANGED)
    kept = {path: c for path, c in contents(pack).items() if not path.startswith(".")}

    assert kept == before
    assert not any(open_pack(pack).problems())
    assert write(pack, CHANGED).reused >= 5
    write(tmp_path / "new", CHANGED)
    assert contents(pack) == contents(tmp_path / "new")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_finished_pack_made_again_is_left_as_it_is(packs, tmp_path, layout, monkeypatch):
    """No case is computed and no file written, as long as suite, layout and files are the same."""
    pack = tmp_path / "pack"
    shutil.copytree(packs / layout, pack)
    before = {path: path.stat().st_mtime_ns for path in pack.rglob("*")}
    with monkeypatch.context() as patched:
        patched.setattr(generation, "make_all", lambda *_: pytest.fail("computes a case"))
        report = write(pack, layout=layout)
    assert report.reused == report.cases == len(open_pack(pack).cases)
    assert {path: path.stat().st_mtime_ns for path in pack.rglob("*")} == before


@pytest.mark.parametrize("layout", ["onnx", "raw", "c"])
def test_of_a_finished_pack_only_what_is_gone_is_made_again(tmp_path, layout, monkeypatch):
    """A file of one case, the sums, or a case that another selection left out."""
    pack, asked = tmp_path / "pack", []
    make_all = generation.make_all
    write(pack, layout=layout)
    before = contents(pack)
    monkeypatch.setattr(generation, "make_all", lambda *a: asked.append(a[1]) or make_all(*a))

    gone = next(path for path in pack.glob("test_lstm_14_clip/**/*") if path.is_file())
    for unlinked, made in {gone: ["lstm_14_clip"], pack / SUMS: []}.items():
        unlinked.unlink()
        report = write(pack, layout=layout)
        assert (asked.pop(), report.reused) == (made, report.cases - len(made))
        assert contents(pack) == before

    write(pack, layout=layout, selection="not clip")
    write(pack, layout=layout)
    assert asked == [[], ["lstm_14_clip"]]
    assert contents(pack) == before


@pytest.mark.parametrize("change", [{"text": CHANGED}, {"layout": "raw"}])
def test_of_what_is_made_from_something_else_nothing_is_kept(pack, change):
    """Another seed, or another layout, makes every case anew, also if its files are whole."""
    assert write(pack, **change).reused == 0


def test_a_pack_of_one_file_is_made_as_a_whole(packs, tmp_path):
    """All of its cases are in the file that is gone."""
    pack = Path(shutil.copytree(packs / "npz", tmp_path / "pack"))
    (pack / "vectors.npz").unlink()
    assert write(pack, layout="npz").reused == 0
    assert contents(pack) == contents(packs / "npz")


def test_what_killed_writers_left_is_removed(packs, pack):
    """Temporaries at any depth, and the lock."""
    for name in (".SHA256SUMS.0123456789ab.tmp", "test_lstm_14_clip/.model.onnx.ba9876543210.tmp"):
        (pack / name).touch()
    (pack / LOCK).touch()
    write(pack)

    assert contents(pack) == contents(packs / "onnx")


def test_only_leftovers_in_a_folder_are_nothing(packs, tmp_path):
    """A run that was killed at once does not make the folder somebody else's."""
    (tmp_path / LOCK).touch()
    (tmp_path / ".x.0123456789ab.tmp").touch()
    write(tmp_path)

    assert contents(tmp_path) == contents(packs / "onnx")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: [b"", *lines],
        lambda lines: [b"null", *lines],
        lambda lines: [b"[]", *lines[1:]],
        lambda lines: [b"{}", *lines[1:]],
        lambda lines: [b'{"premises": 1, "owned": []}', *lines[1:]],
        lambda lines: [b'{"premises": {}, "owned": 1}', *lines[1:]],
        lambda lines: [b'{"premises": {}, "owned": [1]}', *lines[1:]],
        lambda lines: [lines[0].replace(b'"owned": [', b'"owned": ["../../x", '), *lines[1:]],
        lambda lines: [*lines, b"null"],
        lambda lines: [*lines, b"{}"],
        lambda lines: [*lines, b'{"id": 1}'],
        lambda lines: [*lines, lines[1].replace(b"test_", b"../test_")],
        lambda lines: [*lines, b"\xff\xfe"],
        lambda lines: [*lines, b"[" * 100_000],
        lambda lines: [*lines, b'{"a": NaN}'],
    ],
)
def test_a_journal_that_nobody_wrote_is_none(packs, tmp_path, spoil):
    """Whatever stands in it: all is made again, and nothing is our own bug."""
    folder = tmp_path / "pack"
    interrupt_after(folder, 5)
    journal = folder / JOURNAL
    journal.write_bytes(b"\n".join([*spoil(journal.read_bytes().splitlines()), b""]))

    assert write(folder).reused == 0
    assert contents(folder) == contents(packs / "onnx")


def test_a_folder_of_somebody_else_called_as_ours_is_kept(tmp_path):
    """One of an interrupted run has a journal."""
    theirs = tmp_path / "pack" / SPOOL / "notes.txt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")

    with pytest.raises(InvalidRequest, match="is not of a run that was interrupted"):
        write(tmp_path / "pack")
    assert theirs.read_text() == "mine"
