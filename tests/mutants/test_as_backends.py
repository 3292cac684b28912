"""Claims about mutants as backends, and their command."""

import pytest
from recurrences import recurrence_of

from rnncli.backends import backend_named
from rnncli.backends.backend import Compute
from rnncli.errors import InvalidRequest
from rnncli.mutants.catalogue import MUTANTS


@pytest.mark.parametrize("id_", MUTANTS)
def test_it_is_a_backend_of_its_cells_only(id_):
    """It supports them, and says of another cell whose bug it is."""
    backend, cells = backend_named(f"mutant:{id_}"), MUTANTS[id_].cells

    assert backend.name == f"mutant:{id_}"
    for cell in ("RNN", "GRU", "LSTM"):
        reason = backend.supports(recurrence_of(cell), Compute.FLOAT64)
        assert (reason is None) == (cell in cells)
        assert reason is None or (cells[0] in reason and reason.endswith(f"not of {cell}"))


@pytest.mark.parametrize("compute", Compute)
def test_it_computes_as_it_is_asked_to(compute):
    """In either arithmetic the bug is that of the row."""
    recurrence = recurrence_of("LSTM")
    backend = backend_named("mutant:recurrent-bias-dropped")
    found = backend.run(recurrence, compute)

    assert (found.Y == MUTANTS["recurrent-bias-dropped"].run(recurrence, compute).Y).all()
    assert (found.Y != backend_named("numpy").run(recurrence, compute).Y).any()


@pytest.mark.parametrize("name", ["mutant:", "mutant:nothing", "mutant", "mutant:mutant:x"])
def test_unknown_ids_are_refused(name):
    """A prefix alone names nothing."""
    with pytest.raises(InvalidRequest, match=r"unknown (mutant|backend)"):
        backend_named(name)
