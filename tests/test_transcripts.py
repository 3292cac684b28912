"""Claims about transcripts: what is shown is compared, and written where it belongs."""

import os
import subprocess
import sys

import pytest
from support.documentation import ROOT, rewrite
from support.transcripts import Transcript, elided, same

MADE = """\
Two claims that begin alike.

=== a.txt
1
$ cat a.txt
1

## the first
$ cat a.txt
1
$ echo '## no claim'

## the second
needs bash
$ echo 2 > a.txt
$ cat a.txt
1
>>> for k in range(2):
...     print(k)
>>> 1 / 0
$ rnncli ops LSTM-15 | cat
$ cat < b.txt
"""
WRITTEN = MADE.replace("$ echo '## no claim'\n", "$ echo '## no claim'\n| ## no claim\n").replace(
    "> a.txt\n$ cat a.txt\n1\n", "> a.txt\n$ cat a.txt\n2\n"
)


@pytest.fixture
def made(tmp_path):
    """A transcript that shows too little."""
    path = tmp_path / "made.txt"
    path.write_text(MADE)
    return path


def test_what_is_printed_is_written_where_it_belongs(made):
    """By position: not where the same command stands before, nor into another claim."""
    rewrite(made)
    text = made.read_text()

    assert text.startswith(WRITTEN.partition("...     print(k)\n")[0])
    assert text.endswith(
        "...     print(k)\n0\n1\n>>> 1 / 0\n! ZeroDivisionError: division by zero\n"
        "$ rnncli ops LSTM-15 | cat\n! unknown operator 'LSTM-15': there are LSTM-1, LSTM-7,"
        " LSTM-14, LSTM-22; opset 15 uses LSTM-14\n[2]\n"
        "$ cat < b.txt\n! bash: line 1: b.txt: No such file or directory\n[1]\n"
    )
    assert rewrite(made) == 0


def test_a_claim_says_which_of_its_parts_print_something_else(made, tmp_path):
    """Each claim begins with a copy of what the head leaves."""
    transcript = Transcript(made)
    parts = {
        claim: [part.text for part, _ in transcript.run(claim, tmp_path / claim)]
        for claim in transcript.claims
    }

    assert parts["the first"] == ["echo '## no claim'"]
    assert len(parts["the second"]) == 5
    assert transcript.missing("the second") == []


def test_ci_writes_nothing(made):
    """It compares."""
    done = subprocess.run(
        [sys.executable, "-m", "support.documentation", str(made)],
        env={**os.environ, "CI": "1", "PYTHONPATH": f"{ROOT}/tests"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, made.read_text()) == (1, MADE)
    assert "CI compares what is printed, and writes nothing" in done.stderr


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("a  1.25 s", "a  0.003 s", True),
        ("a  b", "a b", False),
        ("a\n\nb", "a\nb", False),
        ("3 pass", "2 pass", False),
        ("got 0.27079612", "got 0.27079619", True),
        ("got 0.27079612", "got 0.28079612", False),
        ("up to 12345 ulp", "up to 12346 ulp", False),
        ("margin 593820", "margin 593821", True),
        ("first\n...\nlast", "first\nsecond\nthird\nlast", True),
        ("first\n...\nlast", "first\nlast", True),
        ("first\n...\nlast", "first\nlast\nmore", False),
        ("first\n...", "first", True),
        ("...", "", True),
        ("got ..., wanted 1", "got 0.5, wanted 1", True),
        ("got ..., wanted 1", "got 0.5, wanted 2", False),
        ("...\nb\n...\nb", "a\nb\nc\nb", True),
        ("", "warning: something", False),
    ],
)
def test_what_is_shown_is_compared(shown, printed, agree):
    """Blanks, words and counts are; times and last digits are a machine's."""
    assert same(shown, printed) is agree


def test_what_is_left_out_stays_left_out():
    """Between lines that are much alike, and in a line that still fits."""
    shown = "first line\n...\nlast ... line 3\n"

    assert (
        elided(shown, "first line!\nx\nlast of all line 3\n")
        == "first line!\n...\nlast ... line 3\n"
    )
