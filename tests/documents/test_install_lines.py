"""Claims about the lines that a stranger is told to install; .ci/run runs them."""

import json
import re
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest
from support.install_lines import ELSEWHERE, FOR_USERS, LINES, PRINTED, told

from rnncli.talk.installing import install_line

CODE = "rnncli/"
SOURCES = [(place, line) for place, line in told() if not place.startswith(CODE)]


def extras(line):
    """What stands in brackets, variables of the shell aside."""
    found = re.search(r"\[([\w,]*)", line)
    return set(found[1].split(",")) - {""} if found else set()


def test_every_line_is_run():
    """By a row, or by what ELSEWHERE names; no row or reason is left over."""
    rows = {row.told for row in LINES if row.typed}
    known = {*rows, *ELSEWHERE}
    untold = {place for place, line in SOURCES if not any(map(line.startswith, known))}

    assert untold == set()
    assert {
        each for each in known if not any(line.startswith(each) for _, line in SOURCES)
    } == set()


def test_no_line_asks_an_index_for_rnncli():
    """It is not on PyPI: pages install from a checkout, messages from where this one came from."""
    assert [place for place, line in told() if re.search(r"install '?rnncli\b", line)] == []


def test_rows_have_the_extras_of_their_lines():
    """And each extra for users has a message that installs it."""
    assert [
        row.told for row in LINES if row.typed and extras(row.told) - {*row.extras.split(",")}
    ] == []
    assert {row.extras for row in LINES if not row.typed} == FOR_USERS


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (None, "pip install 'rnncli[runtimes]'"),
        ({"url": "file:///a%20b/co", "dir_info": {}}, "pip install '/a b/co[runtimes]'"),
        (
            {"url": "file:///co", "dir_info": {"editable": True}},
            "pip install -e '/co[runtimes]'",
        ),
        ({"url": "file:///d/r-1.whl", "archive_info": {}}, "pip install '/d/r-1.whl[runtimes]'"),
        (
            {"url": "https://h/r", "vcs_info": {"vcs": "git", "commit_id": "12ab"}},
            "pip install 'rnncli[runtimes] @ git+https://h/r@12ab'",
        ),
        (
            {"url": "https://h/r.whl", "archive_info": {}},
            "pip install 'rnncli[runtimes] @ https://h/r.whl'",
        ),
    ],
)
def test_a_message_installs_from_where_rnncli_came(monkeypatch, tmp_path, origin, line):
    """A folder, a wheel, a repository or an index, by the pip of the same environment."""

    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return origin and json.dumps(origin)

    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.with_name("pip").touch(0o755)
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed())
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(python.parent))

    monkeypatch.setenv("PATH", "")
    assert install_line("runtimes") == f"{python.parent}/{line}"
    monkeypatch.setenv("PATH", str(python.parent))
    assert install_line("runtimes") == line
    assert PRINTED.search(f"install it with: {line}, or not")[1] == line


def test_messages_take_their_lines_from_one_place():
    """No other module of the package spells one."""
    where = {Path(place.partition(":")[0]).name for place, _ in told() if place.startswith(CODE)}

    assert where <= {"installing.py"}
