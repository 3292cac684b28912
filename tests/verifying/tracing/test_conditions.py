"""Claims about conditions: each is used, and its words are what it is found by."""

from __future__ import annotations

import re

import pytest

from rnncli.errors import InvalidRequest
from rnncli.operators import OPERATORS, operator_named
from rnncli.verifying.tracing.conditions import (
    BLANKS,
    CONDITIONS,
    CONDITIONS_WITH_BLANKS,
    all_of,
    condition_named,
)
from rnncli.verifying.tracing.statements import STATEMENTS

LSTM = [operator_named("LSTM-14")]
USED = {row.when.words for row in STATEMENTS.values()}


@pytest.mark.parametrize("words", CONDITIONS)
def test_a_condition_is_of_some_statement(words):
    """Another would be dead."""
    assert any(words in used for used in USED)


@pytest.mark.parametrize("form", CONDITIONS_WITH_BLANKS)
def test_a_condition_with_blanks_is_of_some_statement(form):
    """With something in each blank."""
    pattern = re.sub(r"\{\w+\}", ".+", form)

    assert any(re.search(pattern, used) for used in USED)


def test_a_blank_is_known_by_every_operator():
    """What may be put there is read from its row; linear recurrences have no functions."""
    lacking = {
        (row.cell.projects, blank)
        for row in OPERATORS.values()
        for blank, of in BLANKS.items()
        if not of(row)
    }
    assert lacking == {(False, "function")}


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], ""),
        (["writes clip"], "writes clip"),
        (["writes clip", "is bidirectional"], "writes clip and is bidirectional"),
        (["gives B and P", "has layout 1"], "gives B and P and has layout 1"),
    ],
)
def test_conditions_are_joined_in_words(parts, words):
    """As pages and reports show them."""
    assert all_of([condition_named(each, LSTM) for each in parts]).words == words


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "unknown condition ''"),
        ("gives", "unknown condition 'gives'"),
        ("writes clip and writes layout", "unknown condition"),
        ("leaves clp out", "unknown attribute 'clp'; did you mean 'clip'?"),
        ("leaves clip ot", "did you mean 'leaves clip out'?"),
        ("gives B and nothing", "unknown input 'nothing'"),
    ],
)
def test_what_is_no_condition_is_refused(words, said):
    """With the one that may be meant."""
    with pytest.raises(InvalidRequest, match=re.escape(said)):
        condition_named(words, LSTM)
