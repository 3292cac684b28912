"""A claim about every row of a table as one test, which names the rows that break it."""

import functools
import inspect

import pytest

SHOWN = 5  # rows whose errors are shown whole
ROW = type(pytest.param())
BROKEN = (Exception, pytest.fail.Exception, BaseExceptionGroup)  # a group: of a table within


def every(names, rows, ids=repr):
    """Make a test a claim about every row of a table: `pytest.mark.parametrize` as one item.

    It is for rows of which a thousand take seconds. A row must leave nothing behind, since all see
    the fixtures of one test. Several of these make a claim about every combination.

    Args:
        names: what a row gives: a name, or names with commas between them or in a tuple.
        rows: values, tuples of them for several names, or `pytest.param`; or a function that makes
            them, if that takes long: when the test runs.
        ids: what a row is called where it fails: a function of its value, or a name for each.
    """
    names = names.replace(" ", "").split(",") if isinstance(names, str) else names
    makes_them = callable(rows) and not isinstance(rows, type)  # an enumeration is a table

    @functools.cache
    def table():
        made = rows() if makes_them else rows
        params = [r if isinstance(r, ROW) else pytest.param(*_values(r, names)) for r in made]
        assert params, f"a table without a row of {names}"
        words = [""] * len(params) if callable(ids) else [*ids]
        return [
            (row.id or word, dict(zip(names, row.values, strict=True)))
            for row, word in zip(params, words, strict=True)
        ]

    if not makes_them:
        table()

    def of_every_row(test):
        @functools.wraps(test)
        def claim(**others):
            broken, skips = [], []
            for name, row in table():
                try:
                    test(**row, **others)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except BROKEN as error:
                    broken.append((name or "-".join(map(ids, row.values())), error))
            if broken:
                said = ", ".join(name for name, _ in broken)
                errors = [error for _, error in broken[:SHOWN]]
                raise BaseExceptionGroup(f"{len(broken)} of {len(table())} rows: {said}", errors)
            if len(skips) == len(table()):
                raise skips[0]

        parameters = inspect.signature(test).parameters.values()
        claim.__signature__ = inspect.Signature([p for p in parameters if p.name not in names])
        return claim

    return of_every_row


def _values(row, names):
    """Return what a row gives for each name."""
    return row if len(names) > 1 else (row,)
