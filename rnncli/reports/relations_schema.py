"""JSON Schema of the lines printed by `rnncli verify --metamorphic --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.metamorphic.judging import AXES
from rnncli.metamorphic.verdict import MEANINGS
from rnncli.packs.manifest import Field
from rnncli.reports.schema_parts import (
    NUMBER,
    SECONDS,
    TEXT,
    WHOLE,
    YES,
    lines_schema,
    list_of,
    named,
    object_of,
    or_null,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN_FIELDS: Mapping[str, Field] = {
    "kind": Field("the first line: what was judged", {"const": "run"}),
    "target": Field("the pack, suite or config, as the user named it", TEXT),
    "subject": Field(
        "the implementation, with its version and settings",
        object_of({"name": Field("", TEXT), "about": Field("", named(TEXT))}),
    ),
    "profile": Field("the profile for the bounds", TEXT),
    "relations": Field("the names of the judged relations", list_of(TEXT)),
    "command": Field("the command line of the run, without its selection", TEXT),
}
DIFFERENCE_FIELDS: Mapping[str, Field] = {
    "output": Field("its name", TEXT),
    "place": Field(
        "the axes that the output has",
        {
            "type": "object",
            "properties": dict.fromkeys(AXES.values(), WHOLE),
            "additionalProperties": False,
        },
    ),
    "index": Field("the index along the output's own axes", list_of(WHOLE)),
    "alone": Field("the original call's value", NUMBER),
    "related": Field("the value from the transformed calls", NUMBER),
    "allowed": Field("the allowed distance", NUMBER),
    "differing": Field("the number of differing elements in the output", WHOLE),
}
RELATION_FIELDS: Mapping[str, Field] = {
    "kind": Field("a line for each relation of each data set of a case", {"const": "relation"}),
    "case": Field("its id", TEXT),
    "data_set": Field("the number of the transformed data set", WHOLE),
    "relation": Field("its name; '' if the case itself has no outputs", TEXT),
    "verdict": Field(
        "; ".join(f"{status}: {means}" for status, means in MEANINGS.items()),
        {"enum": list(map(str, MEANINGS))},
    ),
    "fails": Field("whether it makes the run fail", YES),
    "message": Field(
        "the reason that it does not apply or was not judged, the implementation's message, or ''",
        TEXT,
    ),
    "equality": Field(
        "the kind of equality; '' if nothing was judged",
        {"enum": ["", "bit", "derived", "perturbed"]},
    ),
    "elements": Field("the number of compared elements", WHOLE),
    "of": Field("the number of all elements", WHOLE),
    "margin": Field("the largest distance as a fraction of the allowed one", NUMBER),
    "allowed": Field("the option that allows its verdict, or ''", TEXT),
    "seconds": Field("duration of the calls", SECONDS),
    "first": Field(
        "the first element that differs, by time, direction, sequence and unit",
        or_null(object_of(DIFFERENCE_FIELDS)),
    ),
    "repeat": Field("the command line that judges it again", TEXT),
}
SUMMARY_FIELDS: Mapping[str, Field] = {
    "kind": Field("the last line: the counts", {"const": "summary"}),
    "verdicts": Field(
        "the number of verdicts with each status",
        object_of({str(v): Field("", WHOLE) for v in MEANINGS}),
    ),
    "cases": Field("the number of cases", WHOLE),
    "judged": Field("the number of cases with a judged relation", WHOLE),
    "fails": Field("the number of verdicts that make the run fail", WHOLE),
    "wall_seconds": Field("duration of the run", SECONDS),
    "shortfall": Field("the reason that a run without failures would prove nothing, or ''", TEXT),
}
LINES = {"run": RUN_FIELDS, "relation": RELATION_FIELDS, "summary": SUMMARY_FIELDS}


def relations_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line, draft 2020-12."""
    return lines_schema(
        "rnncli verify --metamorphic --json",
        "One line: the run, a relation of a case, or the summary.",
        LINES,
    )
