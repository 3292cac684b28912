"""Reports of verifications, made up: every verdict, nothing at all, much, and malice."""

import math
from dataclasses import replace

from msgspec.structs import replace as with_entries

from rnncli.judging.claim import Claim
from rnncli.judging.comparing.verdict import (
    FAILURES,
    MARGIN_EDGES,
    OF_FAILURES,
    CaseVerdict,
    Element,
    Localisation,
    MeanError,
    OutputVerdict,
    Verdict,
)
from rnncli.judging.explaining.diagnosis import Cause, Diagnosis
from rnncli.judging.report import (
    JudgedCase,
    JudgedPack,
    JudgedSubject,
    Shard,
    VerificationReport,
)
from rnncli.packs.record import UNKNOWN
from rnncli.verifying.relations.relations import RELATIONS

NOTES = {
    "Reverse": "walks forward, or leaves the reversed Y in the order of computation",
    "Ragged": "ignores sequence_lens, or keeps values in the padding",
    "AlphaOrder": "gives an alpha to the activation of the same position",
    "ZeroLength": "returns something else than zero for a sequence of length 0",
}
PACK = JudgedPack("core", "0123456789abcdef" * 4, "vectors/core", NOTES)
SUBJECT = JudgedSubject("onnxruntime", {"version": "1.31.1", "threads": "1"})
HOSTILE = (
    "</script><script>document.title='owned'</script> & \"'`| \x00\x1b[31m\ud800\u202e ünï→\n]]>"
)


def histogram(*bins):
    """So many elements in each of these bins."""
    return tuple(bins.count(k) for k in range(len(MARGIN_EDGES) + 1))


def output(name="Y", verdict=Verdict.PASS, margin=0.12, **more):
    """One output of 40 elements."""
    beyond = {"differing": 6, "worst": Element((2, 0, 1, 3), 0.4312, 0.1187, 0.0004)}
    within = {"worst": Element((2, 0, 1, 3), 0.1187 + 1e-6, 0.1187, 0.0004)}
    known = {"size": 40, "max_abs": margin * 4e-4, "max_ulp": 3.0} | (
        beyond if verdict is Verdict.DIFFERS else within
    )
    beyond = known.get("differing", 0)
    bins = (0, *[3] * (known["size"] - beyond - 1), *[11] * beyond)
    return OutputVerdict(
        name, verdict, margin=margin, **({"histogram": histogram(*bins)} | known | more)
    )


def differing(**more):
    """A wrong output in full."""
    return {
        "outputs": (output(verdict=Verdict.DIFFERS, margin=781.25), output("Y_h")),
        "localisation": Localisation(
            *(2, 0, 1, 3, 4, 40),
            sentence="first wrong in itself at t=2, batch 1, unit 3; enters at one step",
        ),
        "fits": {"forget-bias-plus-one": 0.25},
        "error_map": ((0.1, 0.2, 0.0), (0.1, 781.25, 1.5), (math.inf, 3.0, 20.0)),
        **more,
    }


PASSING = {"outputs": (output(),)}
CASES = {
    "lstm_14_forward": (Verdict.PASS, {"outputs": (output(), output("Y_h", margin=0.02))}),
    "lstm_14_alpha_order": (
        Verdict.ACCEPTABLE,
        {
            "reading": "alpha-order=positional",
            "outputs": (
                output(verdict=Verdict.ACCEPTABLE, reading="alpha-order=positional", margin=0.4),
            ),
        },
    ),
    "gru_14_layout": (Verdict.REFUSED, {"message": "Batchwise recurrence is not supported"}),
    "lstm_14_reverse_float16_ragged": (Verdict.DIFFERS, differing()),
    "lstm_14_missing": (
        Verdict.DIFFERS,
        {"outputs": (OutputVerdict("Y_c", Verdict.DIFFERS, "is missing; there are no outputs"),)},
    ),
    "rnn_14_exact": (
        Verdict.DIFFERS,
        {
            "outputs": (
                output(
                    verdict=Verdict.DIFFERS,
                    margin=math.inf,
                    max_abs=math.inf,
                    max_ulp=math.inf,
                    worst=Element((0,), math.nan, 1.0, 0.0),
                ),
            )
        },
    ),
    "gru_14_kept": (
        Verdict.STALE,
        {
            "message": "call 2 of 3: after another call of the same session, Y is wrong; alone it"
            " is right",
            "outputs": (output(verdict=Verdict.DIFFERS, margin=12.0),),
            "data_set": 1,
        },
    ),
    "rnn_14_bad_shape": (Verdict.ACCEPTED, {"message": "W has too few rows"}),
    "gru_14_empty": (Verdict.CRASHED, {"message": "killed by SIGABRT"}),
    "gru_14_long": (Verdict.TIMEOUT, {"message": "no answer in 60 s", "seconds": 60.0}),
    "gru_14_absent": (Verdict.MISSING, {"message": "no results for it"}),
    "gru_14_double": (Verdict.REFUSED, {"message": "float64", "allowed": "--allow-refused"}),
    "lstm_22_bfloat16": (Verdict.SKIPPED, {"message": "opset 22 is not required"}),
    "lstm_14_known": (Verdict.DIFFERS, differing(expected="issue 12: ragged reverse")),
    "lstm_14_fixed": (Verdict.PASS, {"outputs": (output(),), "expected": "issue 13"}),
}


def judged(case_id, verdict, more, relation=None, requirements=(), **entries):
    """One case."""
    known = {
        "id": case_id,
        "operator": "-".join(case_id.split("_")[:2]).upper(),
        "dtype": "float16" if "float16" in case_id else "float32",
        "flags": [flag for flag in NOTES if flag.lower() in case_id.replace("_", "")],
        "summary": "What it shows.",
        "expect": "rejection" if verdict is Verdict.ACCEPTED else "result",
        "reason": "W has too few rows" if verdict is Verdict.ACCEPTED else "",
        "sizes": {"seq_length": 3, "batch_size": 2, "input_size": 3, "hidden_size": 3},
    }
    needs = {
        "opset": 14,
        "dtype": "float32",
        "direction": "reverse" if "reverse" in case_id else "forward",
        "largest_size": 3,
        **dict(requirements),
    }
    known["requirements"] = with_entries(UNKNOWN.requirements, **needs)
    details = CaseVerdict(case_id, verdict, **{"seconds": 0.0125, **more})
    return JudgedCase(with_entries(UNKNOWN, **{**known, **entries}), details, relation=relation)


def report(cases=(), pack=PACK, subject=SUBJECT):
    """A report of some cases."""
    cases = tuple(cases)
    details = [case.details for case in cases]
    excuses = {each.allowed for each in details} | {"--xfails" for each in details if each.expected}
    return VerificationReport(
        pack,
        subject,
        rule="the pack's tolerances",
        cases=cases,
        seconds=3.2,
        command="rnncli verify vectors/core --runtime onnxruntime",
        concessions=tuple(sorted(filter(None, excuses))),
        due=len(cases),
    )


def every_verdict():
    """A case of each kind."""
    return report(judged(case_id, *said) for case_id, said in CASES.items())


def diagnosed():
    """The same, with what is behind the failures: two bugs, a reading, and who knows what."""
    causes = (
        Cause(
            "recurrent-bias-dropped + clip-ignored",
            "LSTM",
            explains=("lstm_14_reverse_float16_ragged",),
            of=3,
            predicts=1,
            refuted=("lstm_14_fixed",),
            margin=0.25,
            indistinguishable=("biases-dropped",),
        ),
        Cause("clip-scope=gates", "LSTM", ("lstm_14_known",), 3, 2, (), 0.5),
        Cause("computed-in-bfloat16", "RNN", ("rnn_14_exact",), 1, 0, (), math.inf),
    )
    return replace(every_verdict(), diagnosis=Diagnosis(causes, ("lstm_14_missing",)))


def many(count=2000):
    """So many, of all kinds."""
    rows = list(CASES.items())
    named = ((f"{rows[k % len(rows)][0]}_{k}", rows[k % len(rows)][1]) for k in range(count))
    return report(judged(case_id, *said) for case_id, said in named)


def hostile():
    """Malice in every text that is not ours."""
    pack = JudgedPack(HOSTILE, HOSTILE, HOSTILE, {HOSTILE: HOSTILE})
    more = differing(
        message=HOSTILE * 2000,
        fits={HOSTILE: 0.25},
        after=(HOSTILE,),
        localisation=Localisation(0, 0, 0, 0, 1, 1, HOSTILE),
        error_map=((math.nan, -1.0), (math.inf, 1e300)),
        reading=HOSTILE,
        right_with=HOSTILE,
    )
    named = dict.fromkeys(("operator", "summary", "reason"), HOSTILE)
    requirements = {
        "opset": 14,
        "dtype": "float32",
        "layout": 0,
        "weights": "inputs",
        "largest_size": 3,
        **{name: [HOSTILE] for name in ("attributes", "activations", "inputs")},
        "direction": HOSTILE,
    }
    wrong = (
        OutputVerdict(HOSTILE, Verdict.DIFFERS, HOSTILE),
        output(HOSTILE, verdict=Verdict.DIFFERS, margin=math.nan, reading=HOSTILE),
    )
    outputs = {
        **dict.fromkeys((Verdict.PASS, Verdict.UNEXERCISED), (output(HOSTILE),)),
        Verdict.ACCEPTABLE: (output(HOSTILE, verdict=Verdict.ACCEPTABLE, reading=HOSTILE),),
        **dict.fromkeys((Verdict.DIFFERS, Verdict.STALE), wrong),
    }
    lists = {"flags": [HOSTILE], "tags": [HOSTILE], "sizes": {HOSTILE: 3}}
    cases = [
        judged(
            f"{HOSTILE}{verdict}{k}" + "x" * 300,
            verdict,
            {
                name: entry
                for name, entry in {**more, **excuse, "outputs": outputs.get(verdict, ())}.items()
                if verdict in FAILURES or name not in OF_FAILURES
            },
            **named,
            **lists,
            requirements=requirements,
        )
        for verdict in Verdict
        for k, excuse in enumerate(({}, {"expected": HOSTILE}))
    ]
    found = report(cases, pack, JudgedSubject(HOSTILE, {HOSTILE: HOSTILE, "name": HOSTILE}))
    own = {"rule": HOSTILE, "command": f"rnncli {HOSTILE}", "date": HOSTILE}
    own["concessions"] = HOSTILE, "--atol", "--xfails"
    claim = Claim(HOSTILE, HOSTILE, PACK.digest, 5, ["layout=0"])
    return replace(found, **own, claim=claim)


def claimed(*verdicts, cases=2, **more):
    """A run judged by a claim of so many cases, of which one is layout 0; skipped ones are not."""
    words = {Verdict.SKIPPED: {"message": "requires layout 0, has 1"}, Verdict.PASS: PASSING}
    found = [judged(f"gru_14_{k}", each, words.get(each, {})) for k, each in enumerate(verdicts)]
    claim = Claim(SUBJECT.implementation, PACK.name, PACK.digest, cases, ["layout=0"])
    return replace(report(found), **{"claim": claim, "concessions": ("--claims",), **more})


def biased(**more):
    """A run without a failure, whose errors lean toward zero in all calls but one."""
    leaning = [MeanError(k % 5 / 1000 - 0.012 if k else 0.001, (-1) ** k / 500) for k in range(24)]
    found = [
        judged(f"gru_14_{k}", Verdict.PASS, {**PASSING, "mean_errors": (mean,)})
        for k, mean in enumerate(leaning)
    ]
    return replace(report(found), **more)


FIRST = (
    "Y at t 2, direction 0, sequence 1, unit 3: 0.5, and transformed 0.25; they must be at most"
    " 1e-06 apart (derived)"
)
RELATED = {
    "lstm_14_forward::again": (
        Verdict.PASS,
        {"outputs": (output(margin=0.0),), "message": "40 of 40 elements compared (bit)"},
    ),
    "lstm_14_forward::tiles": (
        Verdict.DIFFERS,
        {"outputs": (output(verdict=Verdict.DIFFERS, margin=250000.0),), "message": FIRST},
    ),
    "lstm_14_forward::padding": (
        Verdict.DIFFERS,
        {
            "outputs": (output(verdict=Verdict.DIFFERS, margin=math.inf),),
            "message": FIRST.replace("at most 1e-06 apart (derived)", "equal (bit)"),
            "data_set": 1,
        },
    ),
    "gru_14_ragged::outputs": (Verdict.DIFFERS, {"message": "output Y_h is missing"}),
    "gru_14_ragged::layout": (Verdict.REFUSED, {"message": "Batchwise is not there"}),
    "gru_14_double": (Verdict.REFUSED, {"message": "float64", "allowed": "--allow-refused"}),
    "gru_14_ragged::singles": (Verdict.CRASHED, {"message": "killed by SIGABRT"}),
    "gru_14_long": (Verdict.TIMEOUT, {"message": "gave no answer in time"}),
    "gru_14_ragged::longer": (Verdict.SKIPPED, {"message": "longer shows nothing: no element"}),
    "gru_14_ragged::directions": (
        Verdict.SKIPPED,
        {"message": "directions does not apply: it has one direction"},
    ),
}


def related(ids=tuple(RELATED)):
    """Relations of cases, and cases that fail as they are."""
    cases = []
    for case_id in ids:
        name = case_id.partition("::")[2]
        summary = RELATIONS[name].summary if name else "the case as it is"
        record = {"flags": [name] * bool(name), "relation": name, "summary": summary}
        cases.append(judged(case_id, *RELATED[case_id], **record))
    notes = {name: row.finds for name, row in RELATIONS.items()}
    return replace(
        report(cases, JudgedPack("core.relations", PACK.digest, PACK.folder, notes)),
        rule="relations and profile standard",
        due=len({case_id.partition("::")[0] for case_id in ids}),
        command="rnncli relate vectors/core --runtime onnxruntime",
    )


REPORTS = {
    "empty": report(),
    "one": report([judged("lstm_14_forward", *CASES["lstm_14_forward"])]),
    "every verdict": every_verdict(),
    "diagnosed": diagnosed(),
    "nothing to explain": replace(report(), diagnosis=Diagnosis()),
    "hostile": hostile(),
    "many": many(),
    "a shard": replace(many(), shard=Shard(2, 3)),
    "a claim": claimed(Verdict.PASS, Verdict.SKIPPED, Verdict.PASS),
    "a broken claim": claimed(Verdict.PASS, Verdict.REFUSED),
    "biased": biased(),
    "too biased": biased(max_bias=7),
    "relations": related(),
    "relations that show nothing": related([*RELATED][-2:]),
}
