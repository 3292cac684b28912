"""Claims about records: a mapping that is its text, wherever it goes."""

import pickle

import pytest

from rnncli.packs.record import Record, sums_of

ENTRIES = {"id": "é", "atol": 2.5e-07, "flags": [], "files": {"b/y": "2" * 64, "a": "1" * 64}}


@pytest.fixture
def record():
    """A case of two files."""
    return Record.of(ENTRIES)


def test_a_record_reads_as_what_it_was_made_of(record):
    """Every entry is there, in its order."""
    assert list(record.items()) == list(ENTRIES.items())


def test_the_text_is_one_line_of_json(record):
    """As a manifest has it: other letters stay themselves."""
    assert record.text.startswith('{"id": "é", "atol": 2.5e-07'.encode())
    assert b"\n" not in record.text


def test_sums_are_sorted_by_path(record):
    """As `sha256sum --check` reads them."""
    assert record.sums == f"{'1' * 64}  a\n{'2' * 64}  b/y\n".encode()
    assert sums_of({}) == b""


def test_a_record_is_not_written_out_twice(record):
    """What is a record already stays the one it is."""
    assert Record.of(record) is record


def test_a_record_travels_as_its_texts(record):
    """Between processes nothing else goes, not even entries that were read."""
    assert record["id"] == "é"
    found = pickle.loads(pickle.dumps(record))  # noqa: S301 -- our own

    assert (found, found.text, found.sums) == (record, record.text, record.sums)
    assert len(pickle.dumps(found)) < len(record.text) + len(record.sums) + 150


def test_a_number_that_json_has_not_is_refused():
    """NaN in a manifest is our own bug, never text that others cannot read."""
    with pytest.raises(ValueError, match="JSON"):
        Record.of({**ENTRIES, "atol": float("nan")})
