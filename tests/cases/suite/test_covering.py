"""Claims about covering arrays, against enumeration of everything and against covertable."""

import hashlib
import itertools
import random

import covertable
import pytest
from support.tables import every

from rnncli.cases.suite.covering import OPEN, Constraint, Table, count_tuples, covering_array


def random_table(seed):
    """A few factors of one to four levels, and conditions that leave some rows."""
    chance = random.Random(seed)  # noqa: S311 -- numbers to try, not secrets
    counts = [chance.randint(1, 4) for _ in range(chance.randint(1, 7))]
    some_row = [chance.randrange(count) for count in counts]
    conditions = []
    for _ in range(chance.randint(0, 5)):
        size = min(len(counts), chance.randint(1, 3))
        scope = tuple(chance.sample(range(len(counts)), size))
        allowed = [
            levels
            for levels in itertools.product(*(range(counts[factor]) for factor in scope))
            if chance.random() < 0.7 or list(levels) == [some_row[factor] for factor in scope]
        ]
        conditions.append(Constraint(scope, frozenset(allowed)))
    return counts, conditions


def every_row(counts, conditions):
    """Every row that keeps all conditions, by trying all there are."""
    return [
        row
        for row in itertools.product(*map(range, counts))
        if all(tuple(row[f] for f in c.scope) in c.allowed for c in conditions)
    ]


def tuples_of(rows, factors, strength):
    """Every tuple of levels that occurs in rows."""
    return {
        (chosen, tuple(row[factor] for factor in chosen))
        for row in rows
        for chosen in itertools.combinations(range(factors), strength)
    }


@every("strength", [1, 2, 3])
@every("seed", range(60))
def test_every_feasible_tuple_is_covered_by_feasible_rows(seed, strength):
    """What occurs in any row that keeps the conditions occurs in the array, and nothing else."""
    counts, conditions = random_table(seed)
    feasible = every_row(counts, conditions)
    strength = min(strength, len(counts))

    rows = covering_array(Table(counts, conditions), strength)

    assert set(rows) <= set(feasible)
    assert len(rows) == len(set(rows))
    assert tuples_of(rows, len(counts), strength) == tuples_of(feasible, len(counts), strength)


@every("seed", range(60))
def test_rows_of_a_table_are_those_that_keep_its_conditions(seed):
    """In order, the last factor turning fastest."""
    counts, conditions = random_table(seed)

    assert list(Table(counts, conditions).rows()) == every_row(counts, conditions)


@every("seed", range(60))
def test_a_partial_row_extends_when_some_row_has_its_levels(seed):
    """Any one or two levels."""
    counts, conditions = random_table(seed)
    table, feasible = Table(counts, conditions), every_row(counts, conditions)
    pairs = [(f, level) for f, count in enumerate(counts) for level in range(count)]

    for chosen in (*((p,) for p in pairs), *itertools.combinations(pairs, 2)):
        levels = dict(chosen)
        if len(levels) == len(chosen):
            found = any(all(row[f] == level for f, level in chosen) for row in feasible)
            assert table.extends(levels) == found


@every("seed", range(60))
def test_choices_are_the_levels_with_which_a_partial_row_extends(seed):
    """Of any factor, whatever feasible levels the others have, asked in any order."""
    counts, conditions = random_table(seed)
    table, feasible = Table(counts, conditions), every_row(counts, conditions)
    chance = random.Random(seed)  # noqa: S311 -- as above

    for row in chance.sample(feasible, min(len(feasible), 20)):
        order = chance.sample(range(len(counts)), len(counts))
        levels = [OPEN] * len(counts)
        for factor in order:
            found = [
                r for r in feasible if all(o in (OPEN, n) for o, n in zip(levels, r, strict=True))
            ]
            preferred = chance.sample(range(counts[factor]), counts[factor])
            wanted = [level for level in preferred if any(r[factor] == level for r in found)]
            assert [*table.choices(levels, factor, preferred)] == wanted
            levels[factor] = row[factor]


def test_contradiction_shows_only_through_a_third_factor():
    """No condition joins the two, and yet they cannot meet."""
    only_first = Constraint((0, 2), frozenset({(0, 0), (0, 1), (1, 0)}))
    only_second = Constraint((1, 2), frozenset({(0, 0), (0, 1), (1, 1)}))
    table = Table([2, 2, 2], [only_first, only_second])

    assert not table.extends({0: 1, 1: 1})
    assert all(row[:2] != (1, 1) for row in covering_array(table, 2))


def test_all_factors_where_there_are_few():
    """Triples of two factors are all rows; nothing at all is one empty row."""
    assert sorted(covering_array(Table([2, 3]), 3)) == list(itertools.product(range(2), range(3)))
    assert covering_array(Table([]), 2) == [()]


def test_conditions_that_leave_nothing_leave_no_row():
    """Not an error here: who asks has to look."""
    nothing = Table([2, 2], [Constraint((0,), frozenset())])

    assert covering_array(nothing, 2) == []
    assert list(nothing.rows()) == []


@pytest.mark.parametrize("counts", [[3, 3, 3, 3], [2, 5, 1], [4], []])
@pytest.mark.parametrize("strength", [0, 1, 2, 3])
def test_count_of_tuples(counts, strength):
    """As many as there are to enumerate."""
    found = sum(
        len(list(itertools.product(*(range(count) for count in chosen))))
        for chosen in itertools.combinations(counts, strength)
    )

    assert count_tuples(counts, strength) == found


def test_the_rows_are_those_they_have_always_been():
    """Ids, and so every random input, depend on them: a better algorithm would change vectors."""
    together = Constraint((0, 3), frozenset({(0, 0), (0, 1), (1, 0), (2, 1)}))

    assert covering_array(Table([3, 2, 2, 2], [together]), 2) == [
        (0, 0, 0, 0),
        (0, 1, 1, 1),
        (1, 0, 1, 0),
        (1, 1, 0, 0),
        (2, 0, 0, 1),
        (2, 1, 1, 1),
    ]


def test_larger_arrays_are_those_they_have_always_been():
    """The same claim where ties are many."""
    unequal = [(a, b) for a in range(4) for b in range(3) if a != b]
    table = Table([4, 3, 3, 3, *[2] * 10], [Constraint((0, 1), frozenset(unequal))])

    digest = hashlib.sha256(repr(covering_array(table, 3)).encode()).hexdigest()

    assert digest.startswith("71283700832eaf37")


SHAPES = [([3] * 13, 2), ([4, 3, 3, 3, *[2] * 10], 3), ([5] * 6, 2), ([2] * 16, 3), ([4] * 7, 3)]


@pytest.mark.parametrize(("counts", "strength"), SHAPES)
def test_arrays_are_about_as_small_as_others_make_them(counts, strength):
    """Within a tenth of covertable's."""
    rows = covering_array(Table(counts), strength)
    others = covertable.make([list(range(count)) for count in counts], strength=strength)

    assert len(rows) <= 1.1 * len(list(others))
