"""Claims about bugs as edits of a plain kernel: the kernel is right, and each edit stands in it."""

from types import SimpleNamespace

import numpy as np
import pytest
from mutants.test_catalogue import EVERYTHING, recurrence_named
from support.recurrences import recurrence_of
from support.tables import every

from rnncli.backends.backend import Compute
from rnncli.backends.reference import activated
from rnncli.errors import InvalidRequest
from rnncli.mutants.bug_table import BUGS, SemanticBugs
from rnncli.mutants.catalogue import MUTANTS
from rnncli.mutants.edits import Edit, difference, edited, kernel_of
from rnncli.mutants.equivalence import lengths_of
from rnncli.mutants.mutant import MATH, RIGHT
from rnncli.mutants.walks import WALKS
from rnncli.numerics import round_to
from rnncli.recurrence.recurrence import Direction

CELLS = ("RNN", "GRU", "LSTM")
EDITED = {name: row for name, row in MUTANTS.items() if row.edits}


def clipping(row, clip, clip_hidden=True):
    """The functions f, g and h of a direction, each of which clips its argument."""
    bounds = (clip, clip, clip if clip_hidden else np.inf)
    functions = [
        lambda v, one=one, bound=bound: activated(MATH, one, bound, v)
        for one, bound in zip(row, bounds, strict=False)
    ]
    return (functions + functions[:1] * 2)[:3]


def alone(r):
    """What the text of the plain kernel gives, run as it is printed, in float64."""
    (T, N, _), (D, G, H, inputs) = r.X.shape, r.W.shape
    wide = lambda values: np.zeros(()) if values is None else values.astype(np.float64)  # noqa: E731
    bias, state = np.zeros((D, G, H)), np.zeros((D, N, H))
    call = SimpleNamespace(
        **{name: getattr(r, name) for name in ("directions", "activations", "clip")},
        **{name: getattr(r, name) for name in ("clip_hidden", "keep_initial")},
        **r.options._asdict(),
        **{name: wide(getattr(r, name)) for name in "XWR"},
        **{name: bias + wide(getattr(r, name)) for name in ("Wb", "Rb")},
        **{f"initial_{k}": state + wide(v) for k, v in zip("hc", r.initial, strict=False)},
        sizes=(T, N, inputs, D, G, H),
        lengths=lengths_of(r),
        P=None if r.P is None else wide(r.P),
    )
    written = SimpleNamespace()
    space = {"np": np, "REVERSE": Direction.REVERSE, "clipping": clipping, "written": written}
    exec(kernel_of(r.cell.name), space)  # noqa: S102 -- a file of the package
    with np.errstate(all="ignore"):
        space["kernel"](call)
    return written.Y, written.Y_h, *([written.Y_c] if len(r.initial) > 1 else ())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", EVERYTHING)
def test_the_kernel_is_right(name, cell):
    """Its text, run as it is printed, gives what the reference gives, quantised products aside."""
    r = recurrence_named(name, cell)
    if r.quantiser is not None or r.options.levels is not None:
        return
    right = RIGHT.run(r, Compute.FLOAT64)
    wanted = [*([] if right.Y is None else [right.Y]), *right.last]
    got = alone(r)[-len(wanted) :]
    precision = 2.0**-r.dtype.precision

    for one, other in zip(got, wanted, strict=True):
        pair = (each.astype(np.float64) for each in (round_to(one, r.dtype), other))
        np.testing.assert_allclose(*pair, rtol=4 * precision, atol=1e-12 + precision**2)


@every("name", EDITED)
def test_each_edit_changes_each_kernel_that_has_its_lines(name):
    """In the order in which they are written; in each cell of the bug at least one does."""
    row = EDITED[name]
    changes = [
        [edited(cell, row.edits[: k + 1]) != edited(cell, row.edits[:k]) for cell in row.cells]
        for k in range(len(row.edits))
    ]

    assert all(map(any, changes))
    assert all(map(any, zip(*changes, strict=True)))


def test_all_that_is_no_edit_is_a_bug_of_the_walk():
    """And no function of the walk is left over."""
    rows = [row for rows in BUGS.values() for row in rows]

    assert {row.id for row in rows if not row.edits} == {*WALKS}


MINE = """\
[mine] mine: Everything is wrong.
cell-doubled: Ct is twice what it should be.
of LSTM
- forget * C + i * g(c)
+ 2 * (forget * C + i * g(c))
"""


def test_a_bug_is_two_lines():
    """They run in any arithmetic, and are shown as a diff of the kernel's lines."""
    (row,) = SemanticBugs(MINE, "mine.txt").families["mine"]
    r = recurrence_of("LSTM", T=1, dtype="float64")
    wanted = RIGHT.run(r, Compute.FLOAT64).last[1]

    assert (row.id, row.cells, row.effect) == ("cell-doubled", ("LSTM",), "Everything is wrong.")
    np.testing.assert_allclose(row.run(r).last[1], 2 * wanted)
    np.testing.assert_allclose(row.run(r, Compute.NATIVE).last[1], 2 * wanted)
    assert difference(row.cells, row.edits).splitlines() == [
        "- new_C = forget * C + i * g(c)",
        "+ new_C = 2 * (forget * C + i * g(c))",
    ]


def test_bugs_of_one_step_are_at_work_together():
    """Whichever comes first; one that the other took the lines of cannot be."""
    r = recurrence_of("LSTM", T=1, dtype="float64", input_forget=0)
    step = (
        MUTANTS["forget-bias-plus-one"].change,
        SemanticBugs(MINE, "mine.txt").families["mine"][0].change,
    )
    one, other = (a.recurrence(b.recurrence(r)) for a, b in (step, step[::-1]))

    np.testing.assert_array_equal(
        *(RIGHT.run(each, Compute.FLOAT64).last[1] for each in (one, other))
    )
    ignored = MUTANTS["z-ignored"].change.recurrence(recurrence_of("GRU"))
    with pytest.raises(ValueError, match="hidden"):
        MUTANTS["z-inverted"].change.recurrence(ignored)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("- forget * C", "- forgets * C", "mine.txt:2: 'forgets * C + i * g(c)' does not stand in"),
        ("- forget", "forget", "mine.txt:4: neither a family, a bug, an edit nor one of of,"),
        ("- forget", "+ forget", "mine.txt:4: '+' without the '-' that says what stands there"),
        ("of LSTM", "unless NO_STEPS", "mine.txt:2: unless NO_STEPS: name 'NO_STEPS' is not"),
        ("of LSTM", "each GATE", "mine.txt:2: there are no variants 'GATE'"),
        ("[mine] mine: Everything is wrong.", "of LSTM", "mine.txt:1: 'of' of no family or bug"),
        ("of LSTM", "variants X\n  gate", "mine.txt:4: 'gate' of a variant has no value; write"),
        ("of LSTM", "variants X\n  gate='i", "mine.txt:4: No closing quotation"),
        ("of LSTM", "  gate=i", "mine.txt:3: neither a family, a bug, an edit nor one of of,"),
        ("- forget * C + i * g(c)", "- ", "mine.txt:4: '-' without what stands in the kernel"),
        ("cell-doubled", "z-ignored: Ht.\nof GRU\n- hidden\n+ z\nz-ignored", "another 'z-ignored'"),
        (MINE[MINE.index("- ") :], "", "mine.txt:2: 'cell-doubled' has no edit, and `walks` does"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(old, new, message):
    """A file and a line, and what was wanted there."""
    with pytest.raises(InvalidRequest) as refused:
        SemanticBugs(MINE.replace(old, new), "mine.txt")

    assert message in str(refused.value)


def test_edits_are_of_whole_words():
    """`r.W` is not in `r.Wb`; later lines have the indent of the first."""
    assert Edit("r.W", "r.R").applied("r.W, r.Wb, r.W[0]") == "r.R, r.Wb, r.R[0]"
    assert Edit("a = 1", "a = 1\nb = 2").applied("    a = 1\n") == "    a = 1\n    b = 2\n"
