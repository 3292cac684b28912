"""JSON Schema of the lines that `rnncli verify --json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rnncli.judging.verdict import MARGIN_EDGES, MEANINGS
from rnncli.vectors.manifest import CASE_FIELDS, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = {"type": "string"}
_WHOLE = {"type": "integer", "minimum": 0}
_YES = {"type": "boolean"}
_SECONDS = {"type": "number", "minimum": 0}
# JSON has no infinity and no NaN.
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]}
_VERDICT = {"enum": list(map(str, MEANINGS))}


def _list(items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _named(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": items}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(fields: Mapping[str, Field]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            name: {"description": row.summary, **row.schema} if row.summary else {**row.schema}
            for name, row in fields.items()
        },
        "required": list(fields),
        "additionalProperties": False,
    }


ELEMENT_FIELDS: Mapping[str, Field] = {
    "index": Field("where it is", _list(_WHOLE)),
    "got": Field("its value", _NUMBER),
    "wanted": Field("the value it should have", _NUMBER),
    "tolerance": Field("how far off it may be", _NUMBER),
}
OUTPUT_FIELDS: Mapping[str, Field] = {
    "name": Field("of the output", _TEXT),
    "verdict": Field("", {"enum": ["pass", "acceptable", "differs"]}),
    "problem": Field("why nothing could be compared: missing, other shape or dtype; or ''", _TEXT),
    "reading": Field("READING=CHOICE whose answer it is, where acceptable", _TEXT),
    "size": Field("how many elements it has", _WHOLE),
    "differing": Field("how many of them are beyond their tolerance", _WHOLE),
    "margin": Field(
        "the largest error / tolerance; inf where a value must match exactly and does not", _NUMBER
    ),
    "max_abs": Field("the largest absolute error", _NUMBER),
    "max_ulp": Field("the largest error in units in the last place of its dtype", _NUMBER),
    "worst": Field("the element of the largest margin", _or_null(_object(ELEMENT_FIELDS))),
    "histogram": Field(
        f"how many elements have a margin up to each of {', '.join(map(str, MARGIN_EDGES))}, and"
        " beyond; empty where nothing could be compared",
        _list(_WHOLE, maxItems=len(MARGIN_EDGES) + 1),
    ),
}
LOCALISATION_FIELDS: Mapping[str, Field] = {
    "t": Field("of the first step that is wrong in itself", _WHOLE),
    "direction": Field("0 or 1", _WHOLE),
    "batch": Field("counted from 0", _WHOLE),
    "unit": Field("counted from 0", _WHOLE),
    "steps": Field("how many of the steps computed are wrong in themselves", _WHOLE),
    "of": Field("how many there are", _WHOLE),
    "sentence": Field("all of that in words", _TEXT),
}
RUN_FIELDS: Mapping[str, Field] = {
    "kind": Field("the first line: what was held against what", {"const": "run"}),
    "pack": Field(
        "the vectors; the digest covers every file",
        _object({name: Field("", _TEXT) for name in ("name", "digest", "folder")}),
    ),
    "subject": Field(
        "the implementation, with its version and settings",
        _object({"name": Field("", _TEXT), "about": Field("", _named(_TEXT))}),
    ),
    "rule": Field("how near is near enough", _TEXT),
    "command": Field("that gave this, without its selection of cases", _TEXT),
}
VERDICT_FIELDS: Mapping[str, Field] = {
    "kind": Field("a line for each case, in the pack's order", {"const": "case"}),
    "id": Field("of the case", _TEXT),
    "verdict": Field("; ".join(f"{name}: {means}" for name, means in MEANINGS.items()), _VERDICT),
    "message": Field(
        "what the implementation said, why the case was skipped, which call is stale, or ''", _TEXT
    ),
    "data_set": Field(
        "which data set of the case all of this is of: the one that fares worst", _WHOLE
    ),
    "reading": Field("READING=CHOICE whose answers it gave, where acceptable", _TEXT),
    "outputs": Field(
        "each output asked for, then those that were not", _list(_object(OUTPUT_FIELDS))
    ),
    "seconds": Field("what running took", _SECONDS),
    "localisation": Field(
        "where the error enters, by steps recomputed from the implementation's own states",
        _or_null(_object(LOCALISATION_FIELDS)),
    ),
    "fits": Field(
        "of a case that differs: `hypothesis` -> the largest error / tolerance between its outputs"
        " and those got, of those that give just that; `rnncli mutants ID` explains one",
        _named(_NUMBER),
    ),
    "error_map": Field(
        "of the first output that differs: the largest margin at each row, a step of a direction,"
        " and hidden unit; at most 64 x 64",
        _or_null(_list(_list(_NUMBER, maxItems=64), maxItems=64)),
    ),
    "expected": Field("why it was expected to fail, or ''", _TEXT),
    "allowed": Field("the option that allows its verdict, or ''", _TEXT),
    "margin": Field("the largest of its outputs", _NUMBER),
    "fails": Field("whether it makes the run fail", _YES),
    "answered": Field(
        "whether an element that was computed was judged, or how an invalid case was met", _YES
    ),
    **{name: CASE_FIELDS[name] for name in ("operator", "dtype", "flags", "tags", "expect")},
    "cause": Field("of a case that differs, the `hypothesis` of a cause; else ''", _TEXT),
    "repeat": Field("the command line that judges it again", _TEXT),
}
_TEXTS = _list(_TEXT)
CAUSE_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose a line for what is behind some failures", {"const": "cause"}),
    "hypothesis": Field("id of a mutant, READING=CHOICE, or two of those with ' + '", _TEXT),
    "cell": Field("whose kernel has it, such as LSTM", _TEXT),
    "explains": Field("ids of the cases whose wrong outputs it gives", _TEXTS),
    "of": Field("how many cases of that cell differ", _WHOLE),
    "predicts": Field("how many cases that pass it leaves as they are", _WHOLE),
    "refuted": Field("ids of cases that pass although it would be seen in them", _TEXTS),
    "margin": Field("the largest error / tolerance between its outputs and those got", _NUMBER),
    "indistinguishable": Field("other hypotheses that explain and predict the same", _TEXTS),
    "contradicted": Field("ids of cases that differ otherwise than it would", _TEXTS),
    "where": Field("what the cases it explains have, and those that speak against it lack", _TEXT),
    "sentence": Field("all of that in words", _TEXT),
    "means": Field("what goes wrong", _TEXT),
}
DOUBT_FIELDS: Mapping[str, Field] = {
    **{name: field for name, field in CAUSE_FIELDS.items() if name != "means"},
    "kind": Field("with --diagnose, what fits failures and is no cause", {"const": "doubt"}),
}
PATTERN_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose, what failures have in common", {"const": "pattern"}),
    "sentence": Field("all of it in words, with counts", _TEXT),
    "topics": Field("what it is about: units, rows, steps, inputs, clip, ...", _TEXTS),
    "chance": Field("how likely chance gives it", _NUMBER),
    "where": Field("which whole cases fail, or ''", _TEXT),
    "among": Field("how many cases that pass are like that", _WHOLE),
}
UNEXPLAINED_FIELDS: Mapping[str, Field] = {
    "kind": Field("with --diagnose, after the causes", {"const": "unexplained"}),
    "cases": Field("ids of those that differ and that no cause explains", _TEXTS),
}
TALLY_FIELDS: Mapping[str, Field] = {
    "cases": Field("how many there are", _WHOLE),
    "verdicts": Field("how many have each", _object({str(v): Field("", _WHOLE) for v in MEANINGS})),
    "answered": Field("how many were answered", _WHOLE),
    "expected": Field("how many fail as they were expected to", _WHOLE),
    "allowed": Field("how many have a verdict that an option allows", _WHOLE),
    "fails": Field("how many make the run fail", _WHOLE),
    "margin": Field(
        "the largest error / tolerance; null where nothing was compared", _or_null(_NUMBER)
    ),
    "seconds": Field("what running them took", _SECONDS),
}
_TALLIES = _named({"$ref": "#/$defs/tally"})
SUMMARY_FIELDS: Mapping[str, Field] = {
    "kind": Field("the last line: the counts", {"const": "summary"}),
    **TALLY_FIELDS,
    "operators": Field("the same for the cases of each operator", _TALLIES),
    "flags": Field("the same for the cases of each flag", _TALLIES),
    "wall_seconds": Field("what the run took", _SECONDS),
    "shortfall": Field("why it would prove nothing that no case fails, or ''", _TEXT),
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
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rnncli verify --json",
        "description": "One line of it: a run, each case, what is behind the failures, a summary.",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in LINES],
        "$defs": {
            **{kind: _object(fields) for kind, fields in LINES.items()},
            "tally": _object(TALLY_FIELDS),
        },
    }
