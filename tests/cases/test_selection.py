"""Claims about `-k` expressions."""

import itertools

import pytest

from rnncli.cases.selection import Selection, is_called
from rnncli.errors import InvalidRequest, NothingSelected


def selected(expression, *true):
    """Whether an expression holds where these words are true."""
    return Selection(expression)(lambda word: word in true)


@pytest.mark.parametrize(
    ("expression", "python"),
    [
        ("a", "a"),
        ("not a", "not a"),
        ("a and b or c", "a and b or c"),
        ("a or b and c", "a or b and c"),
        ("not a and b", "not a and b"),
        ("not (a and b)", "not (a and b)"),
        ("not not a or b", "not not a or b"),
        ("(a or b) and (b or c)", "(a or b) and (b or c)"),
        ("a AND NOT b", "a and not b"),
        ("((a))", "a"),
        ("a or b or not c and a", "a or b or not c and a"),
        ("a\tand\n(b)", "a and b"),
    ],
)
def test_expressions_mean_what_they_mean_in_python(expression, python):
    """For every choice of what is true."""
    for values in itertools.product((False, True), repeat=3):
        truth = dict(zip("abc", values, strict=True))
        words = [name for name, value in truth.items() if value]
        assert selected(expression, *words) == bool(eval(python, {}, truth))  # noqa: S307


def test_nothing_selects_everything():
    """So that the option can always be handed on."""
    assert selected("")
    assert selected("  \n")


FOR_DTYPES = "for dtypes `rnncli verify` has --require dtype=float32"
CASES = ["lstm_14_both", "gru_14_both_float16"]


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("lstm and gru", ""),
        ("not 14", ""),
        ("both and transformer", "; no case has 'transformer' in its id or flags"),
        ("lstm14", "; no case has 'lstm14' in its id or flags; did you mean 'lstm_14'?"),
        ("botth", "; no case has 'botth' in its id or flags; did you mean 'both'?"),
        (
            "id:lstm_14_bohh",
            "; no case has 'id:lstm_14_bohh' in its id or flags; did you mean 'lstm_14_both'?",
        ),
        ("xa or XB or xb", "; no case has 'xa' or 'xb' in its id or flags"),
        ("lstm and float32", f"; no case has 'float32' in its id or flags; {FOR_DTYPES}"),
    ],
)
def test_words_that_are_true_of_no_case_are_named(expression, hint):
    """Where nothing is selected, it is most often because of them."""
    with pytest.raises(NothingSelected) as nothing:
        Selection(expression).chosen(
            CASES, lambda case, word: word in case, "pack", lambda case: [case]
        )

    assert f"pack: '{expression}' selects no case of 2{hint}" == str(nothing.value)


def test_a_whole_id_selects_one_case():
    """Of a suite and of a pack, although it is a part of another's id."""
    assert is_called("lstm_14_both", "lstm_14_both_activations", ())
    assert not is_called("id:lstm_14_both", "lstm_14_both_activations", ())
    assert is_called("id:lstm_14_both", "lstm_14_both", ())
    assert is_called("ragged", "x", ["Ragged"])


def test_what_is_selected_keeps_its_order():
    """And is all that is true of the expression."""
    chosen = Selection("14").chosen(
        CASES, lambda case, word: word in case, "pack", lambda case: [case]
    )

    assert CASES == chosen


def test_words_are_asked_for_in_lower_case():
    """Ids are in lower case, flags compare so."""
    asked = []
    Selection("RaggedReverse or LSTM_14")(asked.append)

    assert asked == ["raggedreverse", "lstm_14"]


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("and", "expected a word at character 1"),
        ("a and", "a word is missing at character 6"),
        ("a b", "expected and, or or the end at character 3"),
        ("a not b", "expected and, or or the end at character 3"),
        ("(a", "a closing parenthesis is missing at character 3"),
        ("a)", "nothing to close at character 2"),
        ("()", "expected a word at character 2"),
        ("not", "a word is missing at character 4"),
        ("a or or b", "expected a word at character 6"),
        ("(a or b) c", "expected and, or or the end at character 10"),
    ],
)
def test_what_is_no_expression_is_refused_where_it_goes_wrong(expression, complaint):
    """With what was due there."""
    with pytest.raises(InvalidRequest) as refusal:
        Selection(expression)

    assert str(refusal.value) == f"cannot select by '{expression}': {complaint}"


def test_deep_nesting_is_no_problem():
    """No recursion that could overflow."""
    assert selected("(" * 5000 + "a" + ")" * 5000, "a")
    assert selected("not " * 4000 + "a", "a")
