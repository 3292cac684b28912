"""Why a mutant cannot differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.recurrences import of_constants, recurrence_of

from rnncli.mutants.equivalence import untouched


@pytest.mark.parametrize("bound", [lambda r: r, of_constants])
def test_a_change_that_leaves_every_field_is_none(bound):
    """Also where something was made of the weights, which a changed recurrence has to make anew."""
    recurrence = bound(recurrence_of("RNN"))

    assert untouched(replace)(recurrence)
    assert not untouched(lambda r: replace(r, Wb=None))(recurrence)
