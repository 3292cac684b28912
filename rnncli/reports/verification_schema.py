"""JSON Schema of the lines that `rnncli verify --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.judging.comparing.verdict import MARGIN_EDGES, MEANINGS
from rnncli.packs.manifest import CASE_FIELDS, Field
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

_VERDICT = {"enum": list(map(str, MEANINGS))}
ELEMENT_FIELDS: Mapping[str, Field] = {
    "index": Field("where it is", list_of(WHOLE)),
    "got": Field("its value", NUMBER),
    "wanted": Field("the value it should have", NUMBER),
    "tolerance": Field("how far off it may be", NUMBER),
}
OUTPUT_FIELDS: Mapping[str, Field] = {
    "name": Field("of the output", TEXT),
    "verdict": Field("", {"enum": ["pass", "acceptable", "differs"]}),
    "problem": Field("why nothing could be compared: missing, other shape or dtype; or ''", TEXT),
    "reading": Field("READING=CHOICE whose answer it is, where acceptable", TEXT),
    "size": Field("how many elements it has", WHOLE),
    "differing": Field("how many of them are beyond their tolerance", WHOLE),
    "margin": Field(
        "the largest error / tolerance; inf where a value must match exactly and does not", NUMBER
    ),
    "max_abs": Field("the largest absolute error", NUMBER),
    "max_ulp": Field("the largest error in units in the last place of its dtype", NUMBER),
    "worst": Field("the element of the largest margin", or_null(object_of(ELEMENT_FIELDS))),
    "histogram": Field(
        f"how many elements have a margin up to each of {', '.join(map(str, MARGIN_EDGES))}, and"
        " beyond; empty where nothing could be compared",
        list_of(WHOLE, maxItems=len(MARGIN_EDGES) + 1),
    ),
}
LOCALISATION_FIELDS: Mapping[str, Field] = {
    "t": Field("of the first step that is wrong in itself", WHOLE),
    "direction": Field("0 or 1", WHOLE),
    "batch": Field("counted from 0", WHOLE),
    "unit": Field("counted from 0", WHOLE),
    "steps": Field("how many of the steps computed are wrong in themselves", WHOLE),
    "of": Field("how many there are", WHOLE),
    "sentence": Field("all of that in words", TEXT),
}
RUN_FIELDS: Mapping[str, Field] = {
    "kind": Field("the first line: what was held against what", {"const": "run"}),
    "pack": Field(
        "the vectors; the digest covers every file",
        object_of({name: Field("", TEXT) for name in ("name", "digest", "folder")}),
    ),
    "subject": Field(
        "the implementation, with its version and settings",
        object_of({"name": Field("", TEXT), "about": Field("", named(TEXT))}),
    ),
    "rule": Field("how near is near enough", TEXT),
    "command": Field("that gave this, without its selection of cases", TEXT),
}
VERDICT_FIELDS: Mapping[str, Field] = {
    "kind": Field("a line for each case, in the pack's order", {"const": "case"}),
    "id": Field("of the case", TEXT),
    "verdict": Field("; ".join(f"{name}: {means}" for name, means in MEANINGS.items()), _VERDICT),
    "message": Field(
        "what the implementation said, why the case was skipped, which call is stale, or ''", TEXT
    ),
    "data_set": Field(
        "which data set of the case all of this is of: the one that fares worst", WHOLE
    ),
    "after": Field(
        "ids of the cases of the same process that a stale one must come after; empty where another"
        " call of its own session is enough",
        list_of(TEXT),
    ),
    "reading": Field("READING=CHOICE whose answers it gave, where acceptable", TEXT),
    "outputs": Field(
        "each output asked for, then those that were not", list_of(object_of(OUTPUT_FIELDS))
    ),
    "seconds": Field("what running took", SECONDS),
    "localisation": Field(
        "where the error enters, by steps recomputed from the implementation's own states",
        or_null(object_of(LOCALISATION_FIELDS)),
    ),
    "fits": Field(
        "of a case that differs: `hypothesis` -> the largest error / tolerance between its outputs"
        " and those got, of those that give just that; `rnncli mutants ID` explains one",
        named(NUMBER),
    ),
    "error_map": Field(
        "of the first output that differs: the largest margin at each row, a step of a direction,"
        " and hidden unit; at most 64 x 64",
        or_null(list_of(list_of(NUMBER, maxItems=64), maxItems=64)),
    ),
    "expected": Field("why it was expected to fail, or ''", TEXT),
    "allowed": Field("the option that allows its verdict, or ''", TEXT),
    "margin": Field("the largest of its outputs", NUMBER),
    "fails": Field("whether it makes the run fail", YES),
    "answered": Field(
        "whether an element that was computed was judged, or how an invalid case was met", YES
    ),
    **{name: CASE_FIELDS[name] for name in ("operator", "dtype", "flags", "tags", "expect")},
    "cause": Field("of a case that differs, the `hypothesis` of a cause; else ''", TEXT),
    "repeat": Field("the command line that judges it again", TEXT),
}
_TEXTS = list_of(TEXT)
CAUSE_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose a line for what is behind some failures", {"const": "cause"}),
    "hypothesis": Field("id of a mutant, READING=CHOICE, or two of those with ' + '", TEXT),
    "cell": Field("whose kernel has it, such as LSTM", TEXT),
    "explains": Field("ids of the cases whose wrong outputs it gives", _TEXTS),
    "of": Field("how many cases of that cell differ", WHOLE),
    "predicts": Field("how many cases that pass it leaves as they are", WHOLE),
    "refuted": Field("ids of cases that pass although it would be seen in them", _TEXTS),
    "margin": Field("the largest error / tolerance between its outputs and those got", NUMBER),
    "indistinguishable": Field("other hypotheses that explain and predict the same", _TEXTS),
    "contradicted": Field("ids of cases that differ otherwise than it would", _TEXTS),
    "where": Field("what the cases it explains have, and those that speak against it lack", TEXT),
    "sentence": Field("all of that in words", TEXT),
    "means": Field("what goes wrong", TEXT),
}
DOUBT_FIELDS: Mapping[str, Field] = {
    **{name: field for name, field in CAUSE_FIELDS.items() if name != "means"},
    "kind": Field("with --diagnose, what fits failures and is no cause", {"const": "doubt"}),
}
PATTERN_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose, what failures have in common", {"const": "pattern"}),
    "sentence": Field("all of it in words, with counts", TEXT),
    "topics": Field("what it is about: units, rows, steps, inputs, clip, ...", _TEXTS),
    "chance": Field("how likely chance gives it", NUMBER),
    "where": Field("which whole cases fail, or ''", TEXT),
    "among": Field("how many cases that pass are like that", WHOLE),
}
UNEXPLAINED_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose, after the causes", {"const": "unexplained"}),
    "cases": Field("ids of those that differ and that no cause explains", _TEXTS),
}
TALLY_FIELDS: Mapping[str, Field] = {
    "cases": Field("how many there are", WHOLE),
    "verdicts": Field(
        "how many have each", object_of({str(v): Field("", WHOLE) for v in MEANINGS})
    ),
    "answered": Field("how many were answered", WHOLE),
    "expected": Field("how many fail as they were expected to", WHOLE),
    "allowed": Field("how many have a verdict that an option allows", WHOLE),
    "fails": Field("how many make the run fail", WHOLE),
    "margin": Field(
        "the largest error / tolerance; null where nothing was compared", or_null(NUMBER)
    ),
    "seconds": Field("what running them took", SECONDS),
}
_TALLIES = named({"$ref": "#/$defs/tally"})
SUMMARY_FIELDS: Mapping[str, Field] = {
    "kind": Field("the last line: the counts", {"const": "summary"}),
    **TALLY_FIELDS,
    "operators": Field("the same for the cases of each operator", _TALLIES),
    "flags": Field("the same for the cases of each flag", _TALLIES),
    "wall_seconds": Field("what the run took", SECONDS),
    "shortfall": Field("why it would prove nothing that no case fails, or ''", TEXT),
}
LINES = {
    "run": RUN_FIELDS,
    "case": VERDICT_FIELDS,
    "cause": CAUSE_FIELDS,
    "doubt": DOUBT_FIELDS,
    "pattern": PATTERN_FIELDS,
    "unexplained": UNEXPLAINED_FIELDS,
    "summary": SUMMARY_FIELDS,
}


def verification_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line, draft 2020-12."""
    return lines_schema(
        "rnncli verify --json",
        "One line of it: a run, each case, what is behind the failures, a summary.",
        LINES,
        {"tally": TALLY_FIELDS},
    )
