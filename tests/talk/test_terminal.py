"""Text that reaches a terminal only shows, and what becomes of it when a stream is full or shut."""

import json
import subprocess
import sys

import pytest

from rnncli.talk.words import one_line, visible

# An OSC that sets a title, an SGR, C1, DEL, marks of direction and of no width, half a pair, a tag.
HOSTILE = "a\x1b]0;owned\x07\x1b[31m\x9b1m\x7f\u202e\u2066\u200f\u200b\ufeff\ud800\U000e0041\r!"


@pytest.mark.parametrize("rule", [visible, one_line])
def test_what_does_not_show_is_written_as_its_escape(rule):
    """Control characters, marks of direction and of no width, halves of pairs, tags."""
    assert rule(HOSTILE) == (
        r"a\x1b]0;owned\x07\x1b[31m\x9b1m\x7f\u202e\u2066\u200f\u200b\ufeff\ud800\U000e0041\r!"
    )


def test_text_is_left_alone():
    """Whatever the language; of line feeds and tabs only `one_line` makes escapes."""
    text = "Größe 尺寸 μέγεθος 📐 [red]\\n"

    assert visible(f"{text}\t\n\r\n") == f"{text}\t\n\n"
    assert one_line(f"{text}\t\n") == rf"{text}\t\n"


# Commands that print data, fail, and read standard input; and what each gives with open streams.
COMMANDS = {"ops": 0, "--help": 0, "--version": 0, "list core --json": 0, "run lstm_14": 0}
COMMANDS |= {"nonsense": 2, "lint nosuch.yaml": 2, "run - <&-": 2}
PRINTING = [command for command, code in COMMANDS.items() if code == 0]


def shell(line):
    """Run `rnncli` with redirections, as a user of a shell does."""
    return subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m rnncli {line}"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("lost", ["2>&-", "2>/dev/full"])
def test_lost_talk_changes_no_exit_code(command, lost):
    """A failure is told by the exit code as well."""
    done = shell(f"{command} {lost}")

    assert (done.returncode, done.stderr) == (COMMANDS[command], "")


@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.parametrize(
    ("lost", "why"),
    [
        (">&-", "Bad file descriptor"),
        ("<&- >&-", "Bad file descriptor"),
        (">/dev/full", "No space left on device"),
    ],
)
def test_lost_data_is_a_failure(command, lost, why):
    """One line says so, whatever was printed: tables, JSON, help."""
    done = shell(f"{command} {lost}")

    assert (done.returncode, done.stderr) == (2, f"standard output: {why}\n")


def test_lost_data_and_talk_are_a_failure():
    """The exit code is all that can be told."""
    assert {shell(f"ops {lost}").returncode for lost in (">&- 2>&-", ">/dev/full 2>&1")} == {2}


def test_completions_that_are_lost_are_a_failure():
    """The shell that asks for them gets an exit code as well."""
    asked = "_RNNCLI_COMPLETE=bash_complete COMP_WORDS='rnncli ops LSTM-1' COMP_CWORD=2"
    done = subprocess.run(
        ["bash", "-c", f"{asked} '{sys.executable}' -m rnncli >/dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (2, "No space left on device\n")


def test_a_shut_stream_lends_its_number_to_no_file(tmp_path):
    """What is printed does not end up in the file that was opened next."""
    page = tmp_path / "schema.json"
    done = shell(f"schema -o {page} <&- >&- 2>&-")

    assert done.returncode == 0
    written = json.loads(page.read_text("utf-8"))
    assert written.pop("$comment").startswith("written by rnncli")
    assert written == json.loads(shell("schema").stdout)


def test_an_encoding_without_the_character_is_no_failure(tmp_path):
    """What a locale cannot spell is written as an escape."""
    config = tmp_path / "gr\u00f6\u00dfe.yaml"
    config.write_text("op: nonsense\n")
    done = subprocess.run(
        [sys.executable, "-m", "rnncli", "lint", config],
        capture_output=True,
        env={"PYTHONIOENCODING": "cp437:strict", "PYTHONUTF8": "0"},
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert b"e.yaml:1:5: " in done.stdout
