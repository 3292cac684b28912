"""Files are opened at one place; whatever else opens one is listed here, with the reason."""

import ast
from pathlib import Path

import pytest
from support.tables import every

import rnncli

PACKAGE = Path(rnncli.__file__).parent
OPENING = {
    *("open", "fdopen", "read_bytes", "read_text", "write_bytes", "write_text", "copyfile"),
    *("h5py.File", "np.load", "np.fromfile", "np.memmap", "onnx.load", "ZipFile", "FileIO"),
}
OF_OURS = {"read_bytes", "read_text", "write_bytes", "write_text"}  # functions of rnncli.files
# module -> call -> why it is no hole
ALLOWED = {
    "bench/machine.py": {"Path('/proc/cpuinfo').read_text": "of the system"},
    "bench/durations.py": {"os.open": "measures what a plain new file costs"},
    "bench/stopwatch.py": {
        "Path('/proc/self/clear_refs').write_text": "of the system",
        "Path('/proc/self/status').read_text": "of the system",
    },
    "cli/group.py": {"super().write_text": "of a help text, to a buffer"},
    "limits.py": {"_STATUS.read_text": "of the system: /proc/self/status"},
    "files/formats/h5.py": {
        "h5py.File": "of a descriptor that was checked, or in memory",
        "h5py.h5a.open": "an attribute",
        "h5py.h5g.open": "a group",
        "h5py.h5o.open": "what a link of a group leads to",
    },
    "files/formats/numpy_files.py": {
        "zipfile.ZipFile": "of a stream that was checked",
        "archive.open": "a member",
    },
    "models/archives.py": {
        "gzip.open": "of a stream that was checked",
        "tarfile.open": "of a stream that was checked",
        "zipfile.ZipFile": "of a stream that was checked",
        "member.open": "a member",
    },
    "models/tensor_values.py": {
        "np.fromfile": "of a stream that was checked",
        "np.memmap": "of a stream that was checked",
    },
    "mutants/edits.py": {"files(package).joinpath(name).read_text": "a text that ships with us"},
    "reports/pages.py": {
        "(files('rnncli.reports') / 'page' / name).read_text": "a page that ships with us"
    },
    "running/weight_conversion.py": {
        "zipfile.ZipFile": "of a stream that was checked",
        "archive.open": "a member",
    },
    "subjects/runtime.py": {"self.open": "a session"},
    "supervision/supervisor.py": {
        "open": "of the system: /proc/PID",
        "status.read_text": "of the system: /proc/PID",
    },
    "talk/installing.py": {"distribution('rnncli').read_text": "of this installation"},
    "talk/terminal.py": {"os.open": "the null device", "open": "a standard stream"},
    "generating/release.py": {"tarfile.open": "of a stream of atomic_file"},
    "verifying/case_judging.py": {"subject.open": "a subject"},
    "verifying/questions.py": {"subject.open": "a subject"},
    "verifying/whole_model.py": {"self.subject.open": "a subject", "subject.open": "the same"},
    "verifying/verification.py": {"spec.open": "a subject"},
}
MODULES = [path.relative_to(PACKAGE).as_posix() for path in sorted(PACKAGE.rglob("*.py"))]


def calls(module):
    """Every call of a module that may open a file, as it is written."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            written = ast.unparse(node.func)
            last = written.rpartition(".")[2]
            if (
                last in OPENING - OF_OURS
                or written in OPENING - OF_OURS
                or (last in OF_OURS and "." in written)
            ):
                yield written


@every("module", [m for m in MODULES if not m.startswith("files/")])
def test_files_are_opened_by_the_package_files(module):
    """A pipe would block, a device never end, a link lead out: `rnncli.files` sees to it."""
    assert {*calls(module)} <= {*ALLOWED.get(module, {})}


@pytest.mark.parametrize("module", ALLOWED)
def test_what_is_allowed_is_there(module):
    """An exception that nobody needs any more goes."""
    assert {*ALLOWED[module]} <= {*calls(module)}
