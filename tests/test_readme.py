"""The README tells the truth."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from rnncli.cli.group import COMMANDS, cli
from rnncli.profiles import PROFILES
from rnncli.recurrence.readings import READINGS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
CALLS = [
    line.partition("rnncli ")[2].partition("#")[0].partition(">")[0]
    for block in BLOCKS
    for line in block.splitlines()
    if re.search(r"(^|\| |/)rnncli ", line)
]


@pytest.mark.parametrize("call", CALLS)
def test_every_command_line_parses(call):
    """Commands and options of the tour exist; their files are the reader's."""
    name, *arguments = shlex.split(call)
    command = cli.get_command(click.Context(cli), name)
    options = {
        spelling
        for parameter in command.params
        for spelling in (*parameter.opts, *parameter.secondary_opts)
    }

    assert [word for word in arguments if re.match(r"-\D", word) and word not in options] == []


def test_every_command_and_reading_is_there():
    """No command is undocumented, nor any reading."""
    names = {f"rnncli {name}" for name in COMMANDS if name not in {"backends", "formats"}}

    assert {name for name in names if name not in README} == set()
    assert {name for name in READINGS if f"`{name}`" not in README} == set()


def test_every_profile_and_suite_is_there():
    """Whoever looks for a tolerance or for vectors finds its name."""
    suites = {path.stem for path in (ROOT / "specs" / "suites").glob("*.yaml")}

    assert {name for name in (*PROFILES, *suites) if f"`{name}`" not in README} == set()


def test_files_it_names_exist():
    """Every path of the repository in the text is there."""
    paths = re.findall(
        r"`((?:rnncli|specs|tests|vectors|docs)/[\w/.]+)`|run (tests/data/\S+)", README
    )
    missing = [path for pair in paths for path in pair if path and not (ROOT / path).exists()]

    assert missing == []


def test_top_level_is_the_designs():
    """Nothing lies about."""
    folders = {"rnncli", "specs", "vectors", "tests", "docs"}
    allowed = {"pyproject.toml", "README.md", "LICENSE", *folders}
    made_here = {"out.npz", "build", "dist"}
    found = {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}

    assert found - allowed - made_here == set()
