"""What a bug must do in the recurrences that are there to show it."""

import warnings

from mutants.test_catalogue import assert_shaped_like, same


def assert_seen(row, cases):
    """It never raises, warns of nothing, and differs in some case; where it gives no reason.

    Args:
        row: the bug.
        cases: pairs of a recurrence and its right result, by name.
    """
    shown, unsaid = [], []
    for name, (r, right) in cases.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = row.run(r)
        assert_shaped_like(result, right)
        reason = row.equivalent_when(r)
        if same(result, right):
            unsaid += [] if reason else [name]
        else:
            shown.append(name)
            assert not reason, (name, reason)

    assert unsaid == []
    assert shown
