"""Contested points: each has choices, a meaning for each, and operators it matters to."""

from __future__ import annotations

import pytest
from support.tables import every

from rnncli.errors import InvalidRequest
from rnncli.operators import OPERATORS
from rnncli.operators.checking import possible_readings
from rnncli.recurrence.readings import READINGS, check_reading


@pytest.mark.parametrize("name", READINGS)
def test_reading_is_a_choice_with_meanings(name):
    """Two choices at least, explained, and an operator that has it."""
    row = READINGS[name]

    assert len(row.choices) >= 2
    assert row.summary
    assert all(row.meanings.values())
    assert any(name in possible_readings(operator) for operator in OPERATORS.values())
    for choice in row.choices:
        check_reading(name, choice)


@every("operator", OPERATORS)
def test_defaults_are_choices(operator):
    """What a dialect chooses exists."""
    for name, default in possible_readings(OPERATORS[operator]).items():
        check_reading(name, default)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("clip-scop", "gates", "unknown reading 'clip-scop'; did you mean 'clip-scope'?"),
        ("clip", "gates", "unknown reading 'clip' (there are alpha-order, clip-scope"),
        ("clip-scope", "", "reading 'clip-scope' must be activations or gates, got ''"),
        ("zero-length", "ZERO", "must be zero or initial, got 'ZERO'"),
    ],
)
def test_unknown_readings_and_choices_are_refused(name, value, sentence):
    """With what there is."""
    with pytest.raises(InvalidRequest) as refusal:
        check_reading(name, value)

    assert sentence in str(refusal.value)
