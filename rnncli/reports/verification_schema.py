"""JSON Schema of the lines printed by `rnncli verify --json`."""

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

# What a line has of a case's entry in the manifest.
CASE_NAMES = ("operator", "dtype", "flags", "tags", "expect", "summary", "sizes", "requirements")
_VERDICT = {"enum": list(map(str, MEANINGS))}
ELEMENT_FIELDS: Mapping[str, Field] = {
    "index": Field("its position", list_of(WHOLE)),
    "got": Field("its value", NUMBER),
    "wanted": Field("the value it should have", NUMBER),
    "tolerance": Field("its absolute tolerance", NUMBER),
}
OUTPUT_FIELDS: Mapping[str, Field] = {
    "name": Field("the output's name", TEXT),
    "verdict": Field("", {"enum": ["pass", "acceptable", "differs"]}),
    "problem": Field("why nothing was compared: missing, other shape or dtype; or ''", TEXT),
    "reading": Field("READING=CHOICE that gives this answer, if acceptable", TEXT),
    "size": Field("the number of its elements", WHOLE),
    "differing": Field("the number of elements beyond their tolerance", WHOLE),
    "margin": Field(
        "the largest error / tolerance; inf if a value must match exactly and does not", NUMBER
    ),
    "max_abs": Field("the largest absolute error", NUMBER),
    "max_ulp": Field("the largest error in units in the last place of its dtype", NUMBER),
    "worst": Field("the element of the largest margin", or_null(object_of(ELEMENT_FIELDS))),
    "histogram": Field(
        f"the number of elements with a margin up to {', '.join(map(str, MARGIN_EDGES))}, and"
        " beyond; empty if nothing was compared",
        list_of(WHOLE, maxItems=len(MARGIN_EDGES) + 1),
    ),
}
LOCALISATION_FIELDS: Mapping[str, Field] = {
    "t": Field("the first step that is wrong in itself", WHOLE),
    "direction": Field("0 or 1", WHOLE),
    "batch": Field("counted from 0", WHOLE),
    "unit": Field("counted from 0", WHOLE),
    "steps": Field("the number of steps that are wrong in themselves", WHOLE),
    "of": Field("the number of all steps", WHOLE),
    "sentence": Field("the same in words", TEXT),
}
RUN_FIELDS: Mapping[str, Field] = {
    "kind": Field("the first line: the implementation, the pack and the rule", {"const": "run"}),
    "date": Field("when the run began, in UTC, such as 2026-11-23T02:53:21Z", TEXT),
    "pack": Field(
        "the vectors; the digest covers every file",
        object_of(
            {
                **{name: Field("", TEXT) for name in ("name", "digest", "folder")},
                "notes": Field("flag -> the bug that its cases find", named(TEXT)),
            }
        ),
    ),
    "subject": Field(
        "the implementation, with its version and settings",
        object_of({"name": Field("", TEXT), "about": Field("", named(TEXT))}),
    ),
    "rule": Field("the tolerances", TEXT),
    "command": Field("the command line of the run, without its selection of cases", TEXT),
    "min_cases": Field("the number of cases that must be answered", WHOLE),
    "unproved": Field("the number of refusals that show nothing, as valid cases fail, too", WHOLE),
}
VERDICT_FIELDS: Mapping[str, Field] = {
    "kind": Field("a line for each case, in the pack's order", {"const": "case"}),
    "id": Field("the case's id", TEXT),
    "verdict": Field("; ".join(f"{name}: {means}" for name, means in MEANINGS.items()), _VERDICT),
    "message": Field(
        "the implementation's message, the reason for skipping, the stale call, or ''", TEXT
    ),
    "data_set": Field(
        "the data set of the case that this line is about: the one with the worst result", WHOLE
    ),
    "after": Field(
        "ids of the earlier cases of the same process that make this one stale; empty if another"
        " call of its own session does",
        list_of(TEXT),
    ),
    "reading": Field("READING=CHOICE that gives its answers, if acceptable", TEXT),
    "outputs": Field(
        "each requested output, then unrequested ones", list_of(object_of(OUTPUT_FIELDS))
    ),
    "seconds": Field("duration of the run of this case", SECONDS),
    "localisation": Field(
        "where the error enters, by steps recomputed from the implementation's own states",
        or_null(object_of(LOCALISATION_FIELDS)),
    ),
    "fits": Field(
        "of a case that differs: `hypothesis` that gives exactly its outputs -> the largest error /"
        " tolerance between the two; `rnncli mutants ID` explains one",
        named(NUMBER),
    ),
    "error_map": Field(
        "of the first output that differs: the largest margin for each row, a step of a direction,"
        " and hidden unit; at most 64 x 64",
        or_null(list_of(list_of(NUMBER, maxItems=64), maxItems=64)),
    ),
    "expected": Field("the reason that it was expected to fail, or ''", TEXT),
    "allowed": Field("the option that allows its verdict, or ''", TEXT),
    "margin": Field("the largest margin of its outputs", NUMBER),
    "fails": Field("whether it makes the run fail", YES),
    "answered": Field(
        "whether a computed element was judged, or the response to an invalid case", YES
    ),
    **{name: CASE_FIELDS[name] for name in CASE_NAMES},
    "cause": Field("of a case that differs, the `hypothesis` of its cause; otherwise ''", TEXT),
    "repeat": Field("the command line that judges it again", TEXT),
}
_TEXTS = list_of(TEXT)
CAUSE_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose, a line for each cause of failures", {"const": "cause"}),
    "hypothesis": Field("id of a mutant, READING=CHOICE, or two of those with ' + '", TEXT),
    "cell": Field("the cell whose kernel has it, such as LSTM", TEXT),
    "explains": Field("ids of the cases whose wrong outputs it produces", _TEXTS),
    "of": Field("the number of cases of that cell that differ", WHOLE),
    "predicts": Field("the number of passing cases that it leaves unchanged", WHOLE),
    "refuted": Field("ids of cases that pass although it would show in them", _TEXTS),
    "margin": Field("the largest error / tolerance between its outputs and the wrong ones", NUMBER),
    "indistinguishable": Field("other hypotheses that explain and predict the same", _TEXTS),
    "contradicted": Field("ids of cases that differ in another way than it would", _TEXTS),
    "where": Field("the feature of cases it explains that contradicting cases lack", TEXT),
    "sentence": Field("all of that in words", TEXT),
    "means": Field("what goes wrong", TEXT),
}
DOUBT_FIELDS: Mapping[str, Field] = {
    **{name: field for name, field in CAUSE_FIELDS.items() if name != "means"},
    "kind": Field(
        "with --diagnose, a hypothesis that fits failures but is not a cause", {"const": "doubt"}
    ),
}
PATTERN_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose, a property that failures have in common", {"const": "pattern"}),
    "sentence": Field("the pattern in words, with counts", TEXT),
    "topics": Field("its subjects: units, rows, steps, inputs, clip, ...", _TEXTS),
    "chance": Field("the probability that it arises by chance", NUMBER),
    "where": Field("the kind of cases that fail, or ''", TEXT),
    "among": Field("the number of passing cases of that kind", WHOLE),
}
UNEXPLAINED_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose, after the causes", {"const": "unexplained"}),
    "cases": Field("ids of the cases that differ and that no cause explains", _TEXTS),
}
TALLY_FIELDS: Mapping[str, Field] = {
    "cases": Field("the number of cases", WHOLE),
    "verdicts": Field(
        "the number of cases with each verdict",
        object_of({str(v): Field("", WHOLE) for v in MEANINGS}),
    ),
    "answered": Field("the number of answered cases", WHOLE),
    "expected": Field("the number of expected failures", WHOLE),
    "allowed": Field("the number of verdicts that an option allows", WHOLE),
    "fails": Field("the number of cases that make the run fail", WHOLE),
    "margin": Field("the largest error / tolerance; null if nothing was compared", or_null(NUMBER)),
    "seconds": Field("duration of running them", SECONDS),
}
_TALLIES = named({"$ref": "#/$defs/tally"})
SUMMARY_FIELDS: Mapping[str, Field] = {
    "kind": Field("the last line: the counts", {"const": "summary"}),
    **TALLY_FIELDS,
    "operators": Field("the same for the cases of each operator", _TALLIES),
    "flags": Field("the same for the cases of each flag", _TALLIES),
    "wall_seconds": Field("duration of the run", SECONDS),
    "shortfall": Field("the reason that a run without failures would prove nothing, or ''", TEXT),
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
        "One line: the run, a case, a cause of failures, or the summary.",
        LINES,
        {"tally": TALLY_FIELDS},
    )
