"""Claims about what is published: one version, one licence, and vectors without the tool."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import rnncli

ROOT = Path(__file__).parents[1]
VECTORS = ROOT / "vectors"
PROJECTS = {
    path: tomllib.loads((path / "pyproject.toml").read_text("utf-8")) for path in (ROOT, VECTORS)
}


@pytest.mark.parametrize("folder", PROJECTS, ids=lambda path: path.name)
def test_the_version_stands_in_one_place(folder):
    """In the package; the project reads it there."""
    project = PROJECTS[folder]
    place = folder / project["tool"]["hatch"]["version"]["path"]

    assert "version" not in project["project"]
    assert project["project"]["dynamic"] == ["version"]
    assert re.search(r'^__version__ = "\d+\.\d+\.\d+"$', place.read_text("utf-8"), re.MULTILINE)


def test_a_citation_has_the_version_and_the_licence():
    """Of what is cited."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    licences = {project["project"]["license"] for project in PROJECTS.values()}

    assert cited["version"] == rnncli.__version__
    assert {cited["license"]} == licences
    assert f"## {rnncli.__version__}" in (ROOT / "docs" / "changelog.md").read_text("utf-8")


def test_vectors_are_found_without_the_tool():
    """In a checkout as in an installation; a wrong name is told with the right ones."""
    script = (
        "import rnncli_vectors as found, sys\n"
        "print(*found.names())\n"
        "print(found.path('core') / 'manifest.json', found.path('judge.c'), sep='\\n')\n"
        "assert 'rnncli' not in sys.modules and 'numpy' not in sys.modules\n"
        "found.path('corr')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=VECTORS, capture_output=True, text=True, check=False
    )
    names, *files = done.stdout.splitlines()

    assert names.split() == sorted(path.parent.name for path in VECTORS.glob("*/manifest.json"))
    assert all(Path(file).is_file() for file in files)
    told = f"ValueError: no pack 'corr'; there are {', '.join(names.split())}"
    assert done.stderr.splitlines()[-1] == told


def test_a_wheel_of_vectors_has_every_pack():
    """Whoever adds a pack adds it there."""
    taken = PROJECTS[VECTORS]["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]

    assert {"judge.c", *(path.parent.name for path in VECTORS.glob("*/manifest.json"))} == {*taken}
    assert {*taken.values()} == {f"rnncli_vectors/{name}" for name in taken}
