"""Claims about words that agree with a number."""

import pytest

from rnncli.talk.words import counted, listed


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [
        (0, ("vector",), "0 vectors"),
        (1, ("vector",), "1 vector"),
        (2, ("vector",), "2 vectors"),
        (1, ("fails", "fail"), "1 fails"),
        (2, ("fails", "fail"), "2 fail"),
    ],
)
def test_words_agree(count, words, said):
    """One alone is singular."""
    assert counted(count, *words) == said


@pytest.mark.parametrize(
    ("names", "most", "said"),
    [("a", 1, "a"), ("abc", 3, "a, b, c"), ("abcde", 2, "a, b and 3 more")],
)
def test_of_many_names_the_first_stand_for_all(names, most, said):
    """With the number of the others."""
    assert listed(names, most) == said
