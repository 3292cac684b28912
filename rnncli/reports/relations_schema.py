"""JSON Schema of the lines that `rnncli verify --metamorphic --json` prints."""

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
    "profile": Field("by which bounds are derived", TEXT),
    "relations": Field("those that were asked, by name", list_of(TEXT)),
    "command": Field("that gave this, without its selection of cases and relations", TEXT),
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
    "index": Field("in the output, by its own axes", list_of(WHOLE)),
    "alone": Field("the call's own value", NUMBER),
    "related": Field("what follows from the transformed calls", NUMBER),
    "allowed": Field("how far they may be apart", NUMBER),
    "differing": Field("how many elements of the output differ", WHOLE),
}
RELATION_FIELDS: Mapping[str, Field] = {
    "kind": Field("a line for each relation of each data set of a case", {"const": "relation"}),
    "case": Field("its id", TEXT),
    "data_set": Field("which data set of the case was transformed", WHOLE),
    "relation": Field("its name; '' where the case itself gave nothing", TEXT),
    "verdict": Field(
        "; ".join(f"{status}: {means}" for status, means in MEANINGS.items()),
        {"enum": list(map(str, MEANINGS))},
    ),
    "fails": Field("whether it makes the run fail", YES),
    "message": Field(
        "why it does not apply or was not judged, what the implementation said, or ''", TEXT
    ),
    "equality": Field(
        "by which was judged; '' where nothing was", {"enum": ["", "bit", "derived", "perturbed"]}
    ),
    "elements": Field("how many were compared", WHOLE),
    "of": Field("how many there are", WHOLE),
    "margin": Field("the largest distance, as a part of what is allowed", NUMBER),
    "allowed": Field("the option that allows its verdict, or ''", TEXT),
    "seconds": Field("what asking took", SECONDS),
    "first": Field(
        "the first element that differs, by time, direction, sequence and unit",
        or_null(object_of(DIFFERENCE_FIELDS)),
    ),
    "repeat": Field("the command line that judges it again", TEXT),
}
SUMMARY_FIELDS: Mapping[str, Field] = {
    "kind": Field("the last line: the counts", {"const": "summary"}),
    "verdicts": Field(
        "how many have each", object_of({str(v): Field("", WHOLE) for v in MEANINGS})
    ),
    "cases": Field("how many there are", WHOLE),
    "judged": Field("of how many cases at least one relation was judged", WHOLE),
    "fails": Field("how many verdicts make the run fail", WHOLE),
    "wall_seconds": Field("what the run took", SECONDS),
    "shortfall": Field("why it would prove nothing that no relation fails, or ''", TEXT),
}
LINES = {"run": RUN_FIELDS, "relation": RELATION_FIELDS, "summary": SUMMARY_FIELDS}


def relations_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line, draft 2020-12."""
    return lines_schema(
        "rnncli verify --metamorphic --json",
        "One line of it: a run, each relation of each case, a summary.",
        LINES,
    )
