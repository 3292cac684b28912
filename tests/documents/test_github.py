"""Claims about what others meet on a code-hosting site: forms, hooks, files of the community."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import click
import pytest
import yaml
from support.tables import every

from rnncli.cli.group import cli

ROOT = Path(__file__).parents[2]
GITHUB, SPECS = ROOT / ".github", ROOT / "specs"
WRITTEN = sorted(path for path in GITHUB.rglob("*") if path.suffix in {".md", ".yml"})
FORMS = sorted(set(GITHUB.glob("ISSUE_TEMPLATE/*.yml")) - {GITHUB / "ISSUE_TEMPLATE/config.yml"})
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
MODELINE = "# yaml-language-server: $schema="
# What an element of a form may be, and which of them ask for a label.
ELEMENTS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_has_what_a_form_needs(form):
    """A name, a description, and elements of known types, each with an id and a label."""
    written = yaml.safe_load(form.read_text("utf-8"))
    asked = [element for element in written["body"] if element["type"] != "markdown"]

    assert written["name"]
    assert written["description"]
    assert {element["type"] for element in written["body"]} <= ELEMENTS
    assert all(element["attributes"]["label"] for element in asked)
    assert len({element["id"] for element in asked}) == len(asked)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_every_command_that_a_file_names_exists(path):
    """So do its options."""
    text = path.read_text("utf-8")
    for call in re.findall(r"`rnncli ([a-z][^`]*)`", text):
        name, *words = shlex.split(call)
        command = cli.get_command(click.Context(cli), name)
        known = {spelled for parameter in command.params for spelled in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_every_file_that_a_file_links_to_exists(path):
    """Relative to where it stands."""
    links = re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8"))

    assert [link for link in links if not (path.parent / link).exists()] == []


def test_contributing_takes_three_commands():
    """Of which the last is what the workflow runs, each of its steps as a job."""
    text = (GITHUB / "CONTRIBUTING.md").read_text("utf-8")
    block = re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1]
    commands = [line.partition("  #")[0].strip() for line in block.splitlines()]
    workflow = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text("utf-8"))

    job = workflow["jobs"]["ci"]
    asked = subprocess.run(
        [*commands[-1].split(), "none"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert len(commands) == 3
    assert f"{commands[-1]} ${{{{ matrix.step }}}}" in {step.get("run") for step in job["steps"]}
    assert asked.returncode == 2
    told = [line.split()[0] for line in asked.stderr.splitlines()[1:]]
    assert told == job["strategy"]["matrix"]["step"]


def linted(*files: Path) -> subprocess.CompletedProcess:
    """Return what the hook says of files: its entry, its arguments, then their names."""
    (hook,) = HOOKS
    words = [*shlex.split(hook["entry"]), *hook.get("args", []), *map(str, files)]
    assert words[0] == "rnncli"
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def is_spec(path: Path) -> bool:
    """Whether the hook takes a file; statements of specifications are none."""
    (hook,) = HOOKS
    return bool(re.search(hook["files"], path.as_posix()))


stem = attrgetter("stem")


def test_the_hook_passes_our_own_specs():
    """All files below specs/ that it takes are configs and suites, and have no finding."""
    tracked = [*filter(is_spec, SPECS.rglob("*.yaml"))]
    outcome = linted(*tracked)

    assert len(tracked) > 30
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "", "")


def test_the_hook_fails_with_the_place_of_a_finding(tmp_path):
    """The exit code is what lets no commit pass."""
    path = tmp_path / "specs" / "mine.yaml"
    path.parent.mkdir()
    path.write_text("op: LSTM-14\nsizes: {hiden_size: 5}\n")
    outcome = linted(path)

    assert outcome.returncode == 1
    assert f"{path}:2:9: unknown" in outcome.stdout
    assert "did you mean 'hidden_size'?" in outcome.stdout


@every("path", sorted(filter(is_spec, SPECS.rglob("*.yaml"))), ids=stem)
def test_a_spec_tells_editors_its_schema(path):
    """The first line names the file of the schema that it is valid by."""
    first, _, _ = path.read_text("utf-8").partition("\n")
    schema = json.loads((path.parent / first.removeprefix(MODELINE)).read_text("utf-8"))

    assert first.startswith(MODELINE)
    assert ("cases" in schema["properties"]) == (path.parent.name == "suites")
