"""Why a mutant cannot differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.recurrences import of_constants, recurrence_of

from rnncli.mutants.equivalence import UNTOUCHED, always_seen
from rnncli.mutants.mutant import ALL, mutant_of


@pytest.mark.parametrize("bound", [lambda r: r, of_constants])
def test_a_change_that_leaves_every_field_is_none(bound):
    """Also where something was made of the weights, which a changed recurrence has to make anew."""
    recurrence = bound(recurrence_of("RNN"))

    copied, dropped = (
        mutant_of("one", ALL, "", "", "", change, always_seen)
        for change in (replace, lambda r: replace(r, Wb=None))
    )

    assert copied.equivalent_when(recurrence) == UNTOUCHED
    assert dropped.equivalent_when(recurrence) == ""
