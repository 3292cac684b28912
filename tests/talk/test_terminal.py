"""Text that reaches a terminal only shows, and what becomes of it when a stream is full or shut."""

import json
import os
import subprocess
import sys

import pytest
from support import terminals

from rnncli.talk.terminal import folded, in_two_rows, rows_of, say
from rnncli.talk.words import one_line, visible

COLOURS = {"TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS"}
PLAIN = {name: value for name, value in os.environ.items() if name not in COLOURS}

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


LINES = {
    "": [""],
    "FAIL lstm_14": ["FAIL lstm_14"],
    "  Y: 3 of 9 differ, got 0.5": ["  Y: 3 of 9 differ,", "    got 0.5"],
    "Y: got 12, expected 3 +- 0.5": ["Y: got 12, expected", "  3 +- 0.5"],
    "FAIL 17 cases in 1.2 s": ["FAIL 17 cases in", "  1.2 s"],
    "a " + "b" * 30 + " c": ["a", "  " + "b" * 30, "  c"],
    "  repeat: rnncli verify vectors/core": ["  repeat: rnncli verify vectors/core"],
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_folded_between_words(line):
    """The rows after the first are indented; a long word is whole, and so is a command to copy."""
    assert folded(line, 20) == LINES[line]
    assert folded(line, 0) == [line]
    assert rows_of([line, line], 20) == 2 * sum(-(-max(1, len(row)) // 20) for row in LINES[line])


def test_pages_compare_lines_that_are_whole():
    """Whatever place they were folded at."""
    lines = "\n".join(f"  FAIL {'word +- 3 s ' * k}x" for k in range(40)) + "\n"

    assert max(map(len, terminals.folded(lines).splitlines())) <= terminals.COLUMNS
    assert terminals.unfolded(terminals.folded(lines)) == lines


def test_a_line_in_two_rows_keeps_its_end():
    """What a runtime says first is the same of all refusals."""
    line = f"refused: {'[ONNXRuntimeError] : 1 ' * 9}GRU does not support double yet"

    assert in_two_rows("short", 80) == "short"
    assert rows_of([in_two_rows(line, 80)], 80) == 2
    assert in_two_rows(line, 80).endswith(" GRU does not support double yet")


def test_a_line_of_our_own_in_two_rows_keeps_its_beginning():
    """It ends between words, and says so."""
    line = f"FAIL gru_22_closed: fits a-bug: {', '.join(f'word{k}' for k in range(40))}"
    short = in_two_rows(line, 80)

    assert rows_of([short], 80) == 2
    assert short.endswith(" ...")
    assert line.startswith(short.removesuffix(" ..."))


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_a_terminal_that_has_colours_gets_them(variables, coloured):
    """And none that the user does not want; what a stranger writes sets none."""
    code = f"from rnncli.talk.terminal import say; say('FAIL ' + {HOSTILE!r})"
    _, printed = terminals.shown([sys.executable, "-c", code], env={**PLAIN, **variables})

    assert printed.startswith("\x1b[31m\x1b[1mFAIL\x1b[0m" if coloured else "FAIL")
    assert r"\x1b[31m\x9b" in printed


def test_a_pipe_gets_lines_as_they_are(capsys):
    """Whole, and without colours."""
    say("FAIL " + "word " * 40)

    assert capsys.readouterr().err == "FAIL " + "word " * 40 + "\n"


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
