"""Reports of relations, made up: every verdict, nothing at all, much, and malice."""

from __future__ import annotations

import math
from dataclasses import replace

from verifications import HOSTILE, SUBJECT

from rnncli.judging.report import JudgedSubject
from rnncli.metamorphic.relations import RELATIONS
from rnncli.metamorphic.report import RelationReport
from rnncli.metamorphic.run import RelationPlan
from rnncli.metamorphic.targets import CallTarget
from rnncli.metamorphic.verdict import Difference, RelationStatus, RelationVerdict
from rnncli.subjects.subject_spec import SubjectSpec

FIRST = Difference(
    "Y", {"t": 2, "direction": 0, "sequence": 1, "unit": 3}, (2, 0, 1, 3), 0.5, 0.25, 1e-6, 1
)
PLAN = RelationPlan(
    target=CallTarget("vectors/core"),
    subject=SubjectSpec(kind="runtime", name="onnxruntime"),
    relations=tuple(RELATIONS),
    command="rnncli verify vectors/core --metamorphic --runtime onnxruntime",
)


def verdict(case, relation, status, **more):
    """One verdict, which took some time."""
    return RelationVerdict(case, relation, status, **{"seconds": 0.0125, **more})


def holding(case, relation="again", **more):
    """A relation that holds for all of 40 elements."""
    known = {"equality": "derived", "elements": 40, "of": 40, "margin": 0.125}
    return verdict(case, relation, RelationStatus.HOLDS, **known, **more)


VERDICTS = (
    holding("lstm_14_forward"),
    holding("lstm_14_forward", data_set=1),
    holding("lstm_14_forward", "split"),
    verdict(
        "lstm_14_forward",
        "tiles",
        RelationStatus.BROKEN,
        equality="derived",
        elements=40,
        of=40,
        margin=250000.0,
        difference=FIRST,
    ),
    verdict(
        "lstm_14_forward",
        "padding",
        RelationStatus.BROKEN,
        equality="bit",
        elements=40,
        of=40,
        margin=math.inf,
        difference=replace(FIRST, alone=math.nan, allowed=0.0, count=3),
        data_set=1,
    ),
    verdict("gru_14_ragged", "outputs", RelationStatus.BROKEN, message="output Y_h is missing"),
    verdict("gru_14_ragged", "layout", RelationStatus.REFUSED, message="Batchwise is not there"),
    verdict(
        "gru_14_double", "", RelationStatus.REFUSED, message="float64", allowed="--allow-refused"
    ),
    verdict("gru_14_ragged", "singles", RelationStatus.CRASHED, message="killed by SIGABRT"),
    verdict("gru_14_long", "", RelationStatus.TIMEOUT, message="gave no answer in time"),
    verdict("gru_14_ragged", "longer", RelationStatus.NOT_JUDGED, message="no element"),
    verdict("gru_14_ragged", "directions", RelationStatus.NOT_APPLICABLE, message="one direction"),
)


def report(verdicts=(), plan=PLAN, subject=SUBJECT, name="core"):
    """A report of some verdicts."""
    return RelationReport(plan, name, subject, tuple(verdicts), 3.2)


def many(count=5000):
    """So many verdicts, of all kinds."""
    some = (VERDICTS[k % len(VERDICTS)] for k in range(count))
    return report(replace(each, case=f"{each.case}_{k}") for k, each in enumerate(some))


def hostile():
    """Malice in every text that is not ours."""
    target = CallTarget(HOSTILE)
    plan = replace(PLAN, target=target, profile=HOSTILE, command=HOSTILE)
    found = [
        replace(each, case=f"{HOSTILE}{k}" + "x" * 300, message=HOSTILE * 100)
        for k, each in enumerate(VERDICTS)
    ]
    return report(found, plan, JudgedSubject(HOSTILE, {HOSTILE: HOSTILE}), HOSTILE)


REPORTS = {
    "empty": report(),
    "one": report([holding("lstm_14_forward")]),
    "not judged": report(VERDICTS[-2:]),
    "every verdict": report(VERDICTS),
    "hostile": hostile(),
    "many": many(2000),
}
