"""Claims about what errors suggest, and how much of a library's words they repeat."""

import pytest

from rnncli import errors
from rnncli.cli.group import PIPE_CLOSED
from rnncli.errors import EXIT_CODES, InvalidRequest, did_you_mean, explain, shortened


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("float", "float32"),
        ("bf16", "bfloat16"),
        ("xx", "x"),
        ("kye", "key"),
        ("Y_x", "Y_h"),
        ("tahn", "Tanh"),
        ("clop", "clip"),
        ("strikt", "strict"),
        ("sumary", "summary"),
        ("LSTM14", "LSTM-14"),
        ("hiden_size", "hidden_size"),
        ("lstm_14_peep", "lstm_14_peepholes"),
        ("recurrent-bias-drop", "recurrent-bias-dropped"),
    ],
)
def test_what_is_near_is_suggested(word, known):
    """A slip in a short word, a few in a long one."""
    assert (
        did_you_mean(word, ["something", known, "else", "float64"]) == f"; did you mean '{known}'?"
    )


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("README", "edge"),
        ("cuda", "numba"),
        ("case", "core"),
        ("model", "mode_of_all"),
        ("x", "y"),
        ("ab", "bc"),
        ("", "x"),
    ],
)
def test_what_is_far_is_not(word, known):
    """A suggestion that is no slip away puzzles more than none."""
    assert did_you_mean(word, [known]) == ""


def test_paragraphs_become_a_line_that_ends():
    """Of 400 characters."""
    assert shortened(" a\n\tb  c\r\n") == "a b c"
    assert shortened("x" * 400) == "x" * 400
    assert shortened("x" * 401) == "x" * 400 + "..."


def test_a_failure_is_no_flood():
    """However long the names are that a stranger's file has."""
    sentence, code = explain(InvalidRequest(f"{'x' * 100_000}: no"))

    assert (len(sentence), code) == (4003, 2)


def test_every_exit_code_is_in_the_table():
    """Whatever an error ends a command with has its line in the documentation."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.RnncliError)}

    assert codes | {0, 1, PIPE_CLOSED} <= set(EXIT_CODES)
