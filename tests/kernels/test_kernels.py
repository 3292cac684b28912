"""The two kernels without bugs are right; each bug shows; each half is what its rule says."""

import hashlib

import pytest
from kernels.bug import HELD_OUT, SEMANTIC, STRUCTURAL, TUNING, Switches, bugs, half_of
from kernels.random_cases import GATES
from kernels.score import SOUND, is_asked, verdict_of
from kernels.showing import answer, call, differs, is_shown, right_outputs
from kernels.switch_table import BUGS, KERNELS
from support.shipped import vectors

# So many random calls of each cell show every bug that needs no special ones.
CALLS = 160
AGREEING = 100


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("suite", ["core", "tiles", "smoke", "diagnostic", "edge"])
def test_right_kernel_passes(kernel, suite):
    """Every valid case, in one session."""
    session = KERNELS[kernel]()
    asked = [vector for vector in vectors(suite) if is_asked(vector.record)]
    found = {vector.id: verdict_of(session, vector) for vector in asked}

    assert found
    assert {} == {case: verdict for case, verdict in found.items() if verdict not in SOUND}


@pytest.mark.parametrize("cell", GATES)
def test_right_kernels_agree(cell):
    """On random nodes of many sizes, each kernel in one session."""
    one, other = (kernel() for kernel in KERNELS.values())
    cases = [call(cell, seed) for seed in range(AGREEING)]
    apart = [
        seed
        for seed, case in enumerate(cases)
        if differs(answer(one, case), answer(other, case), part=1)
    ]

    assert [] == apart


@pytest.mark.parametrize("kernel", KERNELS)
def test_session_does_not_matter(kernel):
    """A right kernel gives the same bits in a session that has seen other calls."""
    session = KERNELS[kernel]()
    for seed in range(20):
        for cell in GATES:
            found = answer(session, call(cell, seed))
            wanted = right_outputs(kernel, cell, seed)

            assert all(wanted[name].tobytes() == found[name].tobytes() for name in wanted)


@pytest.mark.parametrize("bug_id", BUGS)
def test_bug_shows(bug_id):
    """A bug that nothing can show is not a bug."""
    assert is_shown(BUGS[bug_id], CALLS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_asks_for_rows_only(kernel):
    """No name that a kernel asks for lacks a row; the rows that it does not ask for cannot show."""

    class Asked(Switches):
        def __call__(self, name):
            names.add(name)
            return False

    names = set()
    session = KERNELS[kernel]()
    asked = Asked()
    for part in _parts(session):
        part.bug = asked
    for seed in range(40):
        for cell in GATES:
            answer(session, call(cell, seed))

    assert names <= {bug.name for bug in BUGS.values() if bug.kernel == kernel}


def _parts(session):
    """A session and what it consists of."""
    return [session, *(part for part in vars(session).values() if hasattr(part, "bug"))]


def test_half_is_a_digest():
    """Its last bit; nobody chooses."""
    assert BUGS
    for bug_id, bug in BUGS.items():
        odd = int(hashlib.sha256(bug_id.encode()).hexdigest(), 16) % 2

        assert (HELD_OUT if odd else TUNING) == bug.half == half_of(bug_id)


def test_both_halves_have_every_kind():
    """At least 150 bugs in all, and of each kernel, half and kind some."""
    kinds = {(bug.kernel, bug.half, bug.kind) for bug in BUGS.values()}

    assert len(BUGS) >= 150
    assert len(kinds) == len(KERNELS) * 2 * 2
    assert {STRUCTURAL, SEMANTIC} == {kind for *_, kind in kinds}


def test_rows_are_unique_and_say_something():
    """A table keyed by id would lose a row of the same name without a word."""
    rows = bugs()

    assert len(rows) == len(BUGS)
    assert all(row.what and set(row.cells.split()) <= set(GATES) for row in rows)
    assert all(row.report.count("#") == 1 for row in rows if row.report)
