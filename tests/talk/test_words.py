"""Claims about words that agree with a number."""

import pytest

from rnncli.talk.words import counted


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
