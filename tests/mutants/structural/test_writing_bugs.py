"""Claims about writing a bug of the blocked kernel: a function with a docstring is enough."""

import numpy as np
from support.recurrences import recurrence_of

from rnncli.mutants.equivalence import NO_Y
from rnncli.mutants.structural.blocked_kernel import BlockedKernel
from rnncli.mutants.structural.bug import StructuralFamily, beyond, replacing

bug = StructuralFamily("tests", block="chunk", widths=(2, 4), seen=beyond("T"))


@bug(NO_Y, changes="store", of=("GRU",))
def later_chunks_negated(right, span, history, Y):
    """Chunks of {} steps but the first write
    -H to Y.
    """  # noqa: D205 -- a sentence may take two lines
    right(span, -history if span.steps[0] else history, Y)


def test_its_name_is_the_id_and_its_docstring_the_sentence():
    """One mutant a width, which ends the id and stands in the sentence."""
    two, four = bug.rows[:2]

    assert (two.id, four.id) == ("later-chunks-negated-2", "later-chunks-negated-4")
    assert four.sentence == "Chunks of 4 steps but the first write -H to Y."
    assert (four.family, four.cells, four.blocking.chunk) == ("tests", ("GRU",), 4)


def test_it_is_seen_beyond_its_width_where_no_reason_holds():
    """A function outside the package is a mutant like those inside."""
    four = bug.rows[1]
    r = recurrence_of("GRU", T=6)
    right = BlockedKernel(four.blocking).run(r).Y

    assert four.equivalent_when(recurrence_of("GRU", T=4)) == "not reached: T beyond 4"
    assert four.equivalent_when(r) == ""
    np.testing.assert_array_equal(four.run(r).Y, [*right[:4], *-right[4:]])


def test_it_may_need_more_than_one_method():
    """One keeps what the other reads; a bug at any width has one mutant."""

    def keep(right, tile):
        right.kept["start"] = right(tile)
        return right.kept["start"]

    other = StructuralFamily("tests")

    @other(changes=replacing("finish", start=keep))
    def never_advances(right, tile, states, last):
        """The last states are the initial ones."""
        right(tile, right.kept["start"], last)

    (row,) = other.rows
    r = recurrence_of("RNN", T=3)

    assert (row.id, row.effect) == ("never-advances", "Seen at small sizes, too.")
    np.testing.assert_array_equal(row.run(r).last[0], r.initial[0])
