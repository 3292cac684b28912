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
        rows: values, tuples of them for several names, or `pytest.param`.
        ids: what a row is called where it fails: a function of its value, or a name for each.
    """
    names = names.replace(" ", "").split(",") if isinstance(names, str) else names
    rows = [row if isinstance(row, ROW) else pytest.param(*_values(row, names)) for row in rows]
    words = ["-".join(map(ids, row.values)) for row in rows] if callable(ids) else [*ids]
    table = [
        (row.id or word, dict(zip(names, row.values, strict=True)))
        for row, word in zip(rows, words, strict=True)
    ]
    assert table, f"a table without a row of {names}"

    def of_every_row(test):
        @functools.wraps(test)
        def claim(**others):
            broken, skips = [], []
            for name, row in table:
                try:
                    test(**row, **others)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except BROKEN as error:
                    broken.append((name, error))
            if broken:
                said = ", ".join(name for name, _ in broken)
                errors = [error for _, error in broken[:SHOWN]]
                raise BaseExceptionGroup(f"{len(broken)} of {len(table)} rows: {said}", errors)
            if len(skips) == len(table):
                raise skips[0]

        parameters = inspect.signature(test).parameters.values()
        claim.__signature__ = inspect.Signature([p for p in parameters if p.name not in names])
        return claim

    return of_every_row


def _values(row, names):
    """Return what a row gives for each name."""
    return row if len(names) > 1 else (row,)
