"""Claims about functions that call functions."""

import itertools

import pytest

from rnncli.errors import InvalidRequest

MORE = ', "pkg" : 1'


def nested(levels, calls):
    """Write functions, each of which calls the next one several times in a row."""
    names = ["x", *(f"a{k}" for k in range(calls - 1)), "y"]
    lines = [
        f'<domain: "pkg", opset_import: ["" : 17, "pkg" : 1]> F{k} (x) => (y) {{ '
        + " ".join(f"{b} = pkg.F{k + 1} ({a})" for a, b in itertools.pairwise(names))
        + " }"
        for k in range(levels)
    ]
    last = f'<domain: "pkg", opset_import: ["" : 17]> F{levels} (x) => (y) {{ y = Neg (x) }}'
    return "\n".join(["g (float x) => (y) { y = pkg.F0 (x) }", *lines, last])


@pytest.mark.parametrize(
    ("levels", "calls", "reason"),
    [
        (10, 10, "function pkg::F5 has more than 200000 nodes after expanding function calls"),
        (60, 1, "calls functions more than 50 deep"),
    ],
)
def test_functions_that_would_fill_memory_are_refused_when_loaded(parse, levels, calls, reason):
    """Two kilobytes of text are 10^10 nodes; nobody begins to build them."""
    with pytest.raises(InvalidRequest, match=reason):
        parse(nested(levels, calls), more=MORE)


def test_functions_of_functions_are_sound(parse):
    """As exporters nest them."""
    assert parse(nested(10, 3), more=MORE)
