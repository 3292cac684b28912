"""Records of the cases of a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.cases.config.config import describe

if TYPE_CHECKING:
    from rnncli.cases.suite.entry import Entry
    from rnncli.cases.suite.suite import Suite


def entry_record(entry: Entry) -> dict[str, Any]:
    """Return what a suite says about a case, without reading the case."""
    return {
        "id": entry.id,
        "operator": entry.operator.name,
        "dtype": entry.dtype,
        "flags": list(entry.flags),
        "labels": {axis: label for axis, label in entry.labels.items() if label},
        "weights": entry.weights,
        "golden": entry.golden,
        "profile": entry.profile,
        "calls": entry.calls,
        "horizon": entry.horizon,
        "breaks": None if entry.breakage is None else entry.breakage.written,
    }


def case_record(suite: Suite, entry: Entry) -> dict[str, Any]:
    """Return a complete case, with what the suite says about it."""
    about = entry_record(entry)
    about |= {"suite": suite.name, "flags": {flag: suite.notes[flag] for flag in entry.flags}}
    return {"id": about.pop("id"), **describe(entry.case()), **about}
