"""Claims about stored measurements and what later ones are compared with."""

import json

import pytest

from rnncli.bench.measurement import (
    MeasurementRecord,
    RatioChange,
    changes,
    document,
    read_stored,
)
from rnncli.errors import InvalidRequest, UnreadableFile

TERMS = {
    "baseline": "a",
    "threads": 1,
    "compute": "native",
    "call": "evaluate",
    "clock": "wall",
    "statistic": "median",
}


def record(implementation, ratio, **known):
    """A measurement of which nothing is known but what matters."""
    known = {"workload": "tiny", "operator": "LSTM", "sizes": "T 1", "baseline": "a"} | known
    unknown = dict.fromkeys(MeasurementRecord._fields) | {"is_own": True}
    return MeasurementRecord(**unknown | known | {"implementation": implementation, "ratio": ratio})


@pytest.fixture
def stored(tmp_path):
    """Write a file of some measurements."""

    def stored(*records, **other_terms):
        path = tmp_path / "before.json"
        path.write_text(json.dumps(document(TERMS | other_terms, {}, records)))
        return path

    return stored


def test_ratios_are_compared_with_those_of_the_same_workload(stored):
    """Of other sizes, against another or not measured before, there is nothing to compare."""
    before = read_stored(stored(record("numpy", 0.5), record("numba", 1.5)), TERMS)
    now = [record("numpy", 0.4), record("numba", 1.5, sizes="T 2"), record("other", 1.0)]
    now.append(record("numba", 1.5, baseline="b"))

    (change,) = changes(before, now)

    assert (change.implementation, change.before, change.now) == ("numpy", 0.5, 0.4)
    assert change.slowdown == pytest.approx(25)


@pytest.mark.parametrize(
    ("before", "now", "percent", "exceeds"),
    [
        (1.0, 0.96, 5, False),
        (1.0, 0.95, 5, True),
        (1.0, 2.0, 0, False),
        (1.0, None, 50, True),
        (None, None, 0, False),
        (None, 1.0, 0, False),
    ],
)
def test_slower_by_more_than_allowed(before, now, percent, exceeds):
    """In percent of the time; one that ran before and does not now is worse than slow."""
    assert RatioChange("w", "LSTM", "numpy", True, before, now).exceeds(percent) is exceeds


@pytest.mark.parametrize("name", TERMS)
def test_other_terms_are_not_compared(stored, name):
    """Ratios at one thread say nothing of two."""
    with pytest.raises(InvalidRequest, match=f"was measured with {name} other, this run has"):
        read_stored(stored(record("numpy", 1.0), **{name: "other"}), TERMS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"terms": {}}',
        '{"terms": {}, "results": [{}]}',
        '{"terms": 1, "results": []}',
        json.dumps({"terms": {}, "results": [record("numpy", "fast")._asdict()]}),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, text):
    """In one sentence that names it."""
    path = tmp_path / "other.json"
    path.write_text(text)

    with pytest.raises(UnreadableFile, match="was not written by rnncli bench"):
        read_stored(path, TERMS)


def test_a_file_that_is_missing_is_refused(tmp_path):
    """By its name."""
    with pytest.raises(UnreadableFile, match=r"no\.json: no such file"):
        read_stored(tmp_path / "no.json", TERMS)
