"""The lines that `rnncli verify --json` and `relate --json` print, as classes, and their schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from rnncli.files.described import (
    AtLeast0,
    Described,
    Distinct,
    Number,
    Whole,
    counts_schema,
    lines_document,
)
from rnncli.judging.claim import Claim
from rnncli.judging.comparing.bias import PackBias
from rnncli.judging.comparing.verdict import MEANINGS, CaseVerdict
from rnncli.judging.explaining.diagnosis import Cause
from rnncli.judging.report import JudgedPack, JudgedSubject
from rnncli.numerics import DTYPES
from rnncli.packs.record import (
    Expectation,
    Flags,
    OperatorName,
    RequirementsRecord,
    Sizes,
    Summary,
    Tags,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    LineDtype = str
else:
    LineDtype = Annotated[
        Literal[tuple(map(str, DTYPES.values()))],
        "element type of every floating-point tensor",
    ]

# What a line has of a case's entry in the manifest.
CASE_NAMES = ("operator", "dtype", "flags", "tags", "expect", "summary", "sizes", "requirements")
ShardName = Annotated[str, Meta(pattern="^[1-9][0-9]{0,5}/[1-9][0-9]{0,5}$")]
VerdictCounts = Annotated[
    dict[str, Whole],
    Meta(extra_json_schema=counts_schema(MEANINGS)),
]


class RunLine(Described):
    """The first line: the implementation, the pack and the rule."""

    kind: Annotated[Literal["run"], "the first line: the implementation, the pack and the rule"]
    date: Annotated[str, "when the run began, in UTC, such as 2026-11-23T02:53:21Z"]
    pack: Annotated[
        JudgedPack,
        "the vectors; the digest covers every file, and is '' if checksums were not verified",
    ]
    subject: Annotated[JudgedSubject, "the implementation, with its version and settings"]
    rule: Annotated[str, "the tolerances"]
    command: Annotated[
        str,
        Meta(pattern="^(rnncli |$)"),
        "the command line of the run, without its selection of cases; '' of one from Python",
    ]
    min_cases: Annotated[Whole, "the number of cases that must be answered"]
    unproved: Annotated[Whole, "the number of refusals that show nothing, as valid cases fail, too"]
    concessions: Annotated[
        tuple[str, ...] | UnsetType,
        "the options by which it judged less than the whole pack, or not by the pack's own rule;"
        " older runs do not say",
    ] = UNSET
    shard: Annotated[
        ShardName | UnsetType,
        "i/n: every n-th of the selected cases was judged, starting with the i-th; older runs do"
        " not say",
    ] = UNSET
    claim: Annotated[
        Claim | UnsetType | None,
        "what the implementation claims, if exactly that was judged; older runs do not say",
    ] = UNSET
    max_bias: Annotated[
        Whole | UnsetType,
        "the excess of a bias beyond which it fails the run; absent if none does",
    ] = UNSET
    due: Annotated[
        Whole | UnsetType,
        "the number of cases of the pack that the shard has, each with a line unless the run"
        " stopped at a failure; older runs do not say",
    ] = UNSET


class VerdictLine(CaseVerdict, Distinct, kw_only=True):
    """A line for each case, in the pack's order."""

    kind: Annotated[Literal["case"], "a line for each case, in the pack's order"]
    margin: Annotated[Number, "the largest margin of its outputs"]
    fails: Annotated[bool, "whether it makes the run fail"]
    answered: Annotated[
        bool,
        "whether a computed element was judged, or the response to an invalid case",
    ]
    operator: OperatorName
    dtype: LineDtype
    flags: Flags
    tags: Tags
    expect: Expectation
    summary: Summary
    sizes: Sizes
    requirements: RequirementsRecord
    cause: Annotated[str, "of a case that differs, the `hypothesis` of its cause; otherwise ''"]
    repeat: Annotated[str, "the command line that judges it again"]
    relation: Annotated[
        str | UnsetType,
        "of a relation of a case, its name; '' of a case that fails as it is; absent in `verify`",
    ] = UNSET


class CauseLine(Cause, kw_only=True):
    """With --diagnose, a line for each cause of failures."""

    kind: Annotated[Literal["cause"], "with --diagnose, a line for each cause of failures"]
    sentence: Annotated[str, "all of that in words"]
    means: Annotated[str, "what goes wrong"]


class DoubtLine(Cause, kw_only=True):
    """With --diagnose, a hypothesis that fits failures but is not a cause."""

    kind: Annotated[
        Literal["doubt"],
        "with --diagnose, a hypothesis that fits failures but is not a cause",
    ]
    sentence: Annotated[str, "all of that in words"]


class PatternLine(Described):
    """With --diagnose, a property that failures have in common."""

    kind: Annotated[Literal["pattern"], "with --diagnose, a property that failures have in common"]
    sentence: Annotated[str, "the pattern in words, with counts"]
    topics: Annotated[list[str], "its subjects: units, rows, steps, inputs, clip, ..."]
    chance: Annotated[Number, "the probability that it arises by chance"]
    where: Annotated[str, "the kind of cases that fail, or ''"]
    among: Annotated[Whole, "the number of passing cases of that kind"]


class UnexplainedLine(Described):
    """With --diagnose, after the causes."""

    kind: Annotated[Literal["unexplained"], "with --diagnose, after the causes"]
    cases: Annotated[list[str], "ids of the cases that differ and that no cause explains"]


class TallyLine(Described):
    """Counts of cases."""

    cases: Annotated[Whole, "the number of cases"]
    verdicts: Annotated[VerdictCounts, "the number of cases with each verdict"]
    answered: Annotated[Whole, "the number of answered cases"]
    expected: Annotated[Whole, "the number of expected failures"]
    allowed: Annotated[Whole, "the number of verdicts that an option allows"]
    fails: Annotated[Whole, "the number of cases that make the run fail"]
    margin: Annotated[Number | None, "the largest error / tolerance; null if nothing was compared"]
    seconds: Annotated[AtLeast0, "duration of running them"]


class SummaryLine(TallyLine):
    """The last line: the counts."""

    kind: Annotated[Literal["summary"], "the last line: the counts"]
    operators: Annotated[dict[str, TallyLine], "the same for the cases of each operator"]
    flags: Annotated[dict[str, TallyLine], "the same for the cases of each flag"]
    wall_seconds: Annotated[AtLeast0, "duration of the run"]
    shortfall: Annotated[str, "the reason that a run without failures would prove nothing, or ''"]
    biases: Annotated[
        list[PackBias] | UnsetType,
        "how the errors within the tolerances lean, for each dtype with enough right calls",
    ] = UNSET


LINES: Mapping[str, type[Described]] = {
    "run": RunLine,
    "case": VerdictLine,
    "cause": CauseLine,
    "doubt": DoubtLine,
    "pattern": PatternLine,
    "unexplained": UnexplainedLine,
    "summary": SummaryLine,
}


def verification_schema() -> dict[str, Any]:
    """Return the JSON Schema of a line, draft 2020-12."""
    about = "One line: the run, a case, a cause of failures, or the summary."
    return lines_document("rnncli verify --json, rnncli relate --json", about, LINES)
