"""Claims about an interpreter without docstrings, and a process with hardly any resources."""

from __future__ import annotations

import json
import pkgutil
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rnncli.cli.group import COMMANDS, cli
from rnncli.cli.look_up import SCHEMAS

CORE = Path(__file__).parents[2] / "vectors" / "core"
ONE = ("verify", CORE, "--backend", "numpy", "-k", "id:gru_14_clip")
TEXTS = f"""\
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from {Path(__file__).stem} import helps, schemas
print(json.dumps([helps(), schemas()]))
"""


def helps():
    """The help of each command."""
    root = click.Context(cli, info_name="rnncli")
    commands = {name: cli.get_command(root, name) for name in COMMANDS}
    return {name: each.get_help(click.Context(each, root, name)) for name, each in commands.items()}


def schemas():
    """The schemas that are printed."""
    return {name: pkgutil.resolve_name(place)() for name, place in SCHEMAS.items()}


def called(*command, optimised="", **limits):
    """Run the command line in a process of its own, with limits of resources."""
    words = [sys.executable, *filter(None, [optimised]), "-m", "rnncli", *map(str, command)]

    def begin():
        for name, limit in limits.items():
            resource.setrlimit(getattr(resource, name), (limit, limit))

    return subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=begin)


def test_texts_are_the_same_without_docstrings():
    """`python -OO` has no docstrings, which helps and schemas are made of."""
    command = [sys.executable, "-OO", "-c", TEXTS]
    found = subprocess.run(command, capture_output=True, text=True, check=True)

    assert json.loads(found.stdout) == json.loads(json.dumps([helps(), schemas()]))


@pytest.mark.parametrize("command", [ONE, ("list", "core"), ("inspect", CORE)], ids=lambda c: c[0])
def test_commands_work_without_docstrings(command):
    """With the lines that they print otherwise."""
    bare, whole = called(*command, optimised="-OO"), called(*command)

    assert (bare.returncode, bare.stdout) == (0, whole.stdout)


@pytest.mark.parametrize("limits", [{"RLIMIT_NOFILE": 14}, {"RLIMIT_FSIZE": 0}], ids=str)
def test_workers_without_room_end_in_a_sentence(limits):
    """No file may be opened, or none written: the machine says so, without a traceback."""
    done = called(*ONE[:4], "-k", "gru_14_clip", "-j", "2", **limits)

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert any(each in done.stderr for each in ("Too many open files", "temporary directory"))


@pytest.mark.parametrize(
    "option",
    ["--scheduler", "--pack-digest", "-k", "--shard", "--xfails", "--profile", "--runtime"],
)
def test_an_empty_text_is_no_value(rnncli, option):
    """As of a variable that is not set: the option would be as good as not given."""
    done = rnncli(*ONE[:4], option, "")

    assert done.code == 2
    assert f"{option} is given an empty text" in done.err
