"""Lower bounds of dependencies are above their known vulnerabilities.

Looked up on 2026-11-22 in the advisories' own threads and those of projects that took the fixes.
Advisories that come later are found by `pip-audit` where there is a network; what it finds becomes
a row here and a bound in pyproject.toml.
"""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from support.tables import every

FILE = Path(__file__).parents[1] / "pyproject.toml"

# (package, advisory, first version without it, what it is)
ADVISORIES = [
    ("onnx", "CVE-2026-27489", "1.21.0", "external data is read through symbolic links"),
    ("protobuf", "CVE-2026-0994", "6.33.5", "nested Any in JSON passes the limit of depth"),
    ("h5py", "CVE-2026-26200", "3.13", "HDF5 before 1.14.4-2: heap overflow in a crafted file"),
    ("h5py", "CVE-2025-7069", "3.16", "HDF5 before 2.0.0: heap overflow in a crafted file"),
    ("pygments", "CVE-2026-4539", "2.20", "a regular expression that takes for ever"),
    ("pyyaml", "CVE-2020-14343", "5.4", "code is run by FullLoader"),
    ("jinja2", "CVE-2025-27516", "3.1.6", "a way out of the sandbox"),
    ("pillow", "PYSEC-2026-2253", "12.3.0", "and four more, in crafted images"),
    ("fonttools", "CVE-2025-66034", "4.60.2", "files written outside the folder"),
    ("distributed", "CVE-2026-23528", "2026.1.1", "scripts in the dashboard"),
    ("tornado", "CVE-2026-49854", "6.5.6", "memory read out of bounds"),
    ("tornado", "GHSA-pw6j-qg29-8w7f", "6.5.7", "credentials of another request"),
    ("torch", "CVE-2025-32434", "2.6.0", "code is run by torch.load with weights_only"),
    ("torch", "CVE-2025-3730", "2.8.0", "ctc_loss can be made to crash"),
    ("torch", "CVE-2025-2999", "2.9.1", "unpack_sequence corrupts memory"),
    ("torch", "CVE-2025-3001", "2.10.0", "lstm_cell corrupts memory"),
    ("torch", "CVE-2025-3000", "2.13.0", "jit.script corrupts memory"),
    ("msgpack", "CVE-2026-57585", "1.2.1", "memory read out of bounds after an error"),
]
# What no release fixes yet: wheels of h5py 3.16.0, the newest, hold HDF5 2.0.0, and these are fixed
# in HDF5 2.1.0 (the first five) and 2.2.0. docs/security.md says what follows for h5 files.
UNFIXED = {
    "h5py": [
        *("CVE-2025-44904", "CVE-2025-2308", "CVE-2025-2309", "CVE-2026-26197", "CVE-2026-26199"),
        *("CVE-2026-17572", "CVE-2026-17573"),
    ]
}
DEVELOPMENT = {"test", "lint", "docs", "all"}


def requirements():
    """What users install: package -> its requirement, extras included."""
    project = tomllib.loads(FILE.read_text())["project"]
    extras = project["optional-dependencies"].items()
    lists = [project["dependencies"], *(rows for name, rows in extras if name not in DEVELOPMENT)]
    found = [Requirement(row) for rows in lists for row in rows]
    return {requirement.name: requirement for requirement in found}


def lower_bound(package):
    """The lowest version that pyproject.toml allows."""
    return max(Version(s.version) for s in requirements()[package].specifier if s.operator == ">=")


@pytest.mark.parametrize(("package", "advisory", "fixed", "what"), ADVISORIES)
def test_a_lower_bound_is_above_an_advisory(package, advisory, fixed, what):
    """And the advisory's id stands beside the bound, so that nobody lowers it unaware."""
    assert lower_bound(package) >= Version(fixed), what
    assert re.search(rf'"{package}>=[^"]*",? +# .*{advisory}', FILE.read_text()), what


@every("package", sorted(requirements()))
def test_what_is_installed_is_within_the_bounds(package):
    """An environment made by hand is looked at, too."""
    try:
        installed = version(package)
    except PackageNotFoundError:
        pytest.skip("not installed")
    assert requirements()[package].specifier.contains(installed, prereleases=True)


@pytest.mark.parametrize("package", UNFIXED)
def test_what_is_not_fixed_is_known_to_users(package):
    """Until a release fixes it, the page on security says so."""
    page = FILE.parent / "docs" / "security.md"
    if not page.exists():
        pytest.skip("there is no such page")
    text = page.read_text()
    assert [advisory for advisory in UNFIXED[package] if advisory not in text] == []
