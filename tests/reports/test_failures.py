"""Claims about the sentences on a case."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from msgspec.structs import replace as with_entries
from support.verifications import (
    HOSTILE,
    REPORTS,
    claimed,
    differing,
    every_verdict,
    judged,
    output,
    report,
)

from rnncli.judging.comparing.requirements import Requirements
from rnncli.judging.comparing.verdict import UNREQUESTED, OutputVerdict, Verdict
from rnncli.judging.explaining.diagnosis import Diagnosis
from rnncli.mutants.catalogue import MUTANTS
from rnncli.reports.failures import (
    failure_groups,
    foreign,
    refusals,
    sentences,
    sentences_of,
    untried,
)
from rnncli.reports.verification import closing, show_report
from rnncli.talk.words import visible


@pytest.mark.parametrize("verdict", Verdict)
def test_what_a_flag_finds_is_not_said_of_what_did_not_run(verdict):
    """A note under a refusal reads as if the bug had been found."""
    case = judged("reverse_1", verdict, {})
    said = any(line.startswith("tests for ") for line in sentences(every_verdict(), case))

    ran = {Verdict.DIFFERS, Verdict.ACCEPTED, Verdict.CRASHED, Verdict.TIMEOUT}
    assert said == (verdict in ran)


@pytest.mark.parametrize(("fitting", "said"), [(0, True), (1, False), (3, False), (4, True)])
def test_what_a_flag_finds_is_not_said_where_all_that_fits_is_named(fitting, said):
    """Of more bugs than are named, what the case tests for tells which is the likely one."""
    case = judged("reverse_1", Verdict.DIFFERS, {"fits": dict.fromkeys([*MUTANTS][:fitting], 0.5)})
    lines = list(sentences(every_verdict(), case))

    assert any(line.startswith("tests for ") for line in lines) == said


@pytest.mark.parametrize(
    ("name", "problem"),
    [("Z", UNREQUESTED), ("Y_c", "is missing"), ("Y_c", "shape is [1, 1]"), ("steps/gate_f", "")],
)
def test_what_a_flag_finds_is_not_said_where_no_value_of_an_output_is_wrong(name, problem):
    """One too many, missing, misshapen, or a signal: the sentence on it says all."""
    faulty = output(name, verdict=Verdict.DIFFERS)
    if problem:
        faulty = OutputVerdict(name, Verdict.DIFFERS, problem)
    for outputs, said in (((faulty,), False), ((output(verdict=Verdict.DIFFERS), faulty), True)):
        case = judged("reverse_1", Verdict.DIFFERS, {"outputs": outputs})
        lines = list(sentences(every_verdict(), case))
        assert any(line.startswith("tests for ") for line in lines) == said


@pytest.mark.parametrize(
    ("fits", "against", "said"),
    [
        (("clip-ignored x-reversed", "clip-ignored"), 0, "; what differs fits clip-ignored"),
        (("clip-ignored",), 0, "; what differs fits clip-ignored"),
        (("clip-ignored",), 2, ""),
        (("clip-ignored x-reversed",), 0, ""),
        (("clip-ignored", ""), 0, ""),
    ],
)
def test_the_last_line_names_what_all_that_differs_fits(fits, against, said):
    """Refused cases aside; nothing that passing cases rule out, nor one of several."""
    details = [{"fits": dict.fromkeys(each.split(), 0.1), "against": against} for each in fits]
    cases = [judged(f"a_{k}", Verdict.DIFFERS, each) for k, each in enumerate(details)]
    found = report([*cases, judged("b", Verdict.REFUSED, {"message": "no"})])

    (line,) = (line for line in closing(found) if line.startswith(found.title))
    assert line.endswith(f" fail{said}")


BATCHWISE = (
    "[Runtime] : 1 : Exception during initialization: /src/{} Base(const onnx::Info&){} layout_ =="
    " 0 was false. Batchwise recurrent operations (layout == 1) are not supported. If y{}"
)


def untried_report(messages, **more):
    """A report of cases that were refused with these messages, and one of another layout."""
    cases = [
        judged(f"rnn_{k}", Verdict.REFUSED, {"message": message}, requirements={"layout": 1})
        for k, message in enumerate(messages)
    ]
    kept = judged("gru_0", Verdict.PASS, {"outputs": (output(),)}, requirements={"layout": 0})
    return report([*cases, kept], **more)


@pytest.mark.parametrize(
    ("messages", "titles"),
    [
        (["no float64"], ["rnn_0"]),
        (["no float64"] * 2, ["2 cases of RNN"]),
        (["no float64"] * 34, ["34 cases of RNN"]),
        (["no LSTM(22)", "no LSTM(1)", "no GRU(3)"], ["3 cases of RNN"]),
        (
            [
                BATCHWISE.format("rnn.h:48", " [with T = float]", "ou nee..."),
                BATCHWISE.format("lstm_base.h:53", "", "ou need su..."),
                BATCHWISE.format("deep_cpu_gru.h:56", "", "..."),
            ],
            ["3 cases of RNN"],
        ),
        (["a", "b", "b", "b", "a"], ["3 cases of RNN", "2 cases of RNN"]),
    ],
)
def test_what_is_refused_for_a_like_reason_is_said_at_once(messages, titles):
    """Operators, versions and places in a source make no other reason."""
    found = untried_report(messages)
    first, *more = failure_groups(found)

    assert [group.title for group in (first, *more)] == titles
    assert sum(len(group.cases) for group in (first, *more)) == len(messages)
    alike = len({case.details.message for case in first.cases}) > 1
    lines = list(first.sentences(found))
    message = first.cases[0].details.message
    assert lines[0] == f"refused: {message}{' (and alike)' * alike}"
    assert any(f" -k id:{first.cases[0].id}" in line for line in lines)


@pytest.mark.parametrize("verdict", [Verdict.CRASHED, Verdict.TIMEOUT, Verdict.ACCEPTED])
def test_what_ran_and_has_no_outputs_goes_by_what_it_said(verdict):
    """Two messages are two groups, and none is that of another verdict."""
    messages = ["killed by SIGABRT", "killed by SIGSEGV", "killed by SIGABRT"]
    cases = [judged(f"rnn_{k}", verdict, {"message": each}) for k, each in enumerate(messages)]
    groups = failure_groups(report([*cases, judged("gru_0", Verdict.REFUSED, {"message": "no"})]))

    assert [[case.id for case in group.cases] for group in groups] == [
        ["rnn_0", "rnn_2"],
        ["rnn_1"],
        ["gru_0"],
    ]


def test_what_no_passing_case_has_is_a_group_of_its_own():
    """One error has a group for each feature that only failing cases have, and what skips it."""
    has = {
        "way": {"direction": "bidirectional"},
        "back": {"direction": "reverse"},
        "first": {"layout": 1},
        "clip": {"attributes": ["clip"]},
        "coupled": {"attributes": ["input_forget"]},
        "odd": {},
    }
    crash = {"message": "ended with signal 11"}
    cases = [
        judged(f"lstm_{name}{k}", Verdict.CRASHED, crash, requirements=needs)
        for name, needs in has.items()
        for k in range(4)
    ]
    right = [judged(f"lstm_right{k}", Verdict.PASS, {"outputs": (output(),)}) for k in range(200)]
    found = report([*cases, *right])
    groups = failure_groups(found)

    assert {group.title.partition(" with ")[2]: len(group.cases) for group in groups} == {
        "direction bidirectional or reverse": 8,
        "layout 1": 4,
        "attributes clip": 4,
        "attributes input_forget": 4,
        "": 4,
    }
    assert "to skip them and no case that passes: --require 'direction!=bidirectional|reverse'" in [
        *groups[0].sentences(found)
    ]
    assert len(failure_groups(report(cases))) == 1
    assert Requirements.parse(["attributes!=clip"]).terms == (
        next(group.apart for group in groups if "clip" in group.title),
    )


@pytest.mark.parametrize(
    ("having", "lacking", "right", "is_apart"),
    [(4, 0, 11, True), (13, 1, 1, False), (4, 33, 111, False), (6, 6, 100, True), (2, 0, 2, False)],
)
def test_what_failing_cases_may_have_by_chance_sets_none_apart(having, lacking, right, is_apart):
    """Where nearly all fail, and where others fail without it, passing cases lack much."""
    needs = [{"inputs": ["sequence_lens"]}] * having + [{}] * lacking
    cases = [
        judged(f"rnn_{k}", Verdict.DIFFERS, differing(fits={}), requirements=each)
        for k, each in enumerate(needs)
    ]
    passing = [judged(f"right_{k}", Verdict.PASS, {"outputs": (output(),)}) for k in range(right)]
    groups = failure_groups(report([*cases, *passing]))

    assert [group.apart is not None for group in groups] == [is_apart] + [False] * bool(
        is_apart and lacking
    )


def flags_of(found, *cases):
    """The flags that a group of cases, or each of them alone, is said to test for."""
    (group,) = failure_groups(replace(found, cases=[*cases, *found.cases]))
    lines = group.sentences(replace(found, cases=[*cases, *found.cases]))
    return [line.split()[2].rstrip(":") for line in lines if line.startswith("tests for ")]


def test_a_group_tests_for_what_all_of_it_have_and_no_passing_case():
    """A feature of the first case alone, or one that passes elsewhere, is not what fails."""
    wrong = differing(fits={})
    first = judged("rnn_7_a", Verdict.DIFFERS, wrong, flags=("Clip", "Ragged", "Bias"))
    other = judged("rnn_14_b", Verdict.DIFFERS, wrong, flags=("Ragged", "Bias"))
    passes = {"outputs": (output(),)}
    alike = judged("rnn_22_c", Verdict.PASS, passes, operator="RNN-22", flags=("Bias",))
    elsewhere = judged("gru_7", Verdict.PASS, passes, operator="GRU-7", flags=("Ragged", "Clip"))

    assert flags_of(report([]), first) == ["Clip", "Ragged", "Bias"]
    assert flags_of(report([alike, elsewhere]), first) == ["Clip", "Ragged"]
    assert flags_of(report([alike, elsewhere]), first, other) == ["Ragged"]


def test_a_case_all_of_whose_features_pass_elsewhere_is_described():
    """As one whose value no other case has."""
    odd = judged("rnn_0", Verdict.DIFFERS, differing(fits={}), flags=("Clip",), summary="A 2.")
    alike = judged("rnn_1", Verdict.PASS, {"outputs": (output(),)}, flags=("Clip",))

    assert "the case: A 2." in [*sentences(report([odd, alike]), odd)]
    assert "the case: A 2." not in [*sentences(report([odd]), odd)]


def test_what_a_diagnosis_doubts_is_said_with_the_doubt():
    """One report does not name a bug above that it says is unknown below."""
    cause = with_entries(
        REPORTS["diagnosed"].diagnosis.causes[0],
        hypothesis="clip-ignored",
        explains=("rnn_0",),
        refuted=("rnn_1", "rnn_2"),
    )
    case = fitting("rnn_0", "clip-ignored")
    found = replace(report([case]), diagnosis=Diagnosis(unexplained=("rnn_0",), doubts=(cause,)))
    (group,) = failure_groups(found)
    doubt = f"doubtful: {cause.doubt}: clip is not applied."

    assert group.cause(found) == doubt
    assert doubt in [*sentences(found, case)]


def fitting(case_id, *bugs, size=3):
    """A case that differs, and that these bugs fit."""
    sizes = {"seq_length": size, "batch_size": 2, "input_size": 3, "hidden_size": 3}
    return judged(case_id, Verdict.DIFFERS, differing(fits=dict.fromkeys(bugs, 0.5)), sizes=sizes)


def test_cases_that_one_bug_fits_are_said_at_once():
    """By the bugs that fit each of them; what nothing fits is another group."""
    found = report(
        [
            fitting("rnn_0", "tail", "clip-ignored"),
            fitting("gru_0", "lengths-ignored", "lengths-largest", size=9),
            fitting("gru_1", "clip-scope", "lengths-largest", "lengths-ignored", size=2),
            fitting("lstm_0", "lengths-ignored", "lengths-largest", "tail"),
            fitting("lstm_1"),
            fitting("lstm_2"),
        ]
    )
    bugs, unknown, single = failure_groups(found)

    assert bugs.title == "3 cases (2 GRU, 1 LSTM)"
    cause, example, repeat, others = bugs.sentences(found)
    assert cause == "fits lengths-ignored or lengths-largest"
    assert example.startswith("gru_1: Y: 6 of 40 differ (up to 3 ulp), worst at ")
    assert repeat.startswith("repeat gru_1: rnncli verify ")
    assert others == "others: gru_0, lstm_0"
    assert bugs.line(found) == f"FAIL {bugs.title}, such as gru_1: {cause}"
    assert next(unknown.sentences(found)) == "differs: no known bug was found"
    assert single.line(found) == "FAIL rnn_0: fits tail or clip-ignored"


def test_a_diagnosis_decides_what_is_said_at_once():
    """Its causes fit all failures together, and some bugs a few of them by chance."""
    found = REPORTS["diagnosed"]
    cause = found.diagnosis.causes[0]
    explained = [fitting("lstm_8", "tail"), fitting("lstm_9", "lengths-ignored")]
    causes = (with_entries(cause, explains=("lstm_8", "lstm_9")),)
    found = replace(report(explained), diagnosis=Diagnosis(causes))
    (group,) = failure_groups(found)

    assert group.cause(found).startswith(f"diagnosis: {cause.hypothesis}: ")


def test_relations_that_are_broken_are_said_at_once():
    """The relation is what the cases have in common."""
    cases = [
        judged(f"lstm_{k}::{name}", Verdict.DIFFERS, {"message": f"Y at t {k}"}, relation=name)
        for k, name in enumerate(["split", "again", "split"])
    ]
    refused = [
        judged(f"gru_{k}::split", Verdict.REFUSED, {"message": "no GRU"}, relation="split")
        for k in range(2)
    ]
    found = report([*cases, *refused])
    split, again, untried = failure_groups(found)

    assert next(split.sentences(found)).startswith("asked: ")
    assert "  lstm_0::split: differs: Y at t 0" in split.block(found)
    assert again.line(found) == "FAIL lstm_1::again: differs: Y at t 1"
    assert untried.line(found) == "FAIL 2 cases of GRU: refused: no GRU"


@pytest.mark.parametrize("name", REPORTS)
def test_each_failing_case_is_in_one_group(name):
    """None is lost."""
    found = REPORTS[name]
    grouped = [case.id for group in failure_groups(found) for case in group.cases]

    assert sorted(grouped) == sorted(case.id for case in found.cases if case.details.fails)


def test_a_report_says_which_requirement_skips_what_is_refused():
    """What no answered case needs, so that it loses none of them."""
    assert untried(untried_report(["no"] * 3)) == (
        "to skip the 3 refused cases: --require 'layout!=1'"
    )
    claimed_too = replace(untried_report(["no"] * 3), claim=claimed().claim)
    assert untried(claimed_too) == (
        "to leave the 3 refused cases out of the claim: require layout!=1"
    )
    assert untried(untried_report([])) == ""
    assert untried(report([judged("rnn_0", Verdict.REFUSED, {})])) == ""


def test_what_differs_has_a_diagnosis_where_that_was_asked():
    """What is behind it, or that nothing known is; nothing of what has no wrong value."""
    report = REPORTS["diagnosed"]
    diagnosis = replace(report.diagnosis, unexplained=("lstm_14_unknown",))
    report = replace(report, diagnosis=diagnosis)
    both = (*differing()["outputs"], OutputVerdict("Y_c", Verdict.DIFFERS, "is missing"))
    partial = judged("lstm_14_partial", Verdict.DIFFERS, differing(fits={}, outputs=both))
    unknown = judged("lstm_14_unknown", Verdict.DIFFERS, differing(fits={}))
    told = {
        case.id: [s for s in sentences(report, case) if s.startswith("diagnosis: ")]
        for case in (*report.cases, unknown, partial)
    }

    assert told["lstm_14_known"][0].startswith("diagnosis: clip-scope=gates: Reads whether")
    assert "clip is not applied." in told["lstm_14_reverse_float16_ragged"][0]
    assert told["lstm_14_unknown"] == ["diagnosis: no known bug gives these outputs"]
    (said,) = told["lstm_14_partial"]
    assert said.endswith("not every output can be compared with those of known bugs")
    assert told["lstm_14_missing"] == []
    assert sum(map(bool, told.values())) == 5


def test_nothing_said_can_move_the_cursor():
    """Escape sequences, direction marks and halves of characters are shown, not obeyed."""
    lines = [line for case in REPORTS["hostile"].cases for line in sentences(*_of(case))]

    assert not {char for line in lines for char in line if char in "\x00\x1b\ud800\u202e\r"}
    assert r"\x00\x1b[31m\ud800\u202e ünï→" in visible(HOSTILE)


def _of(case):
    return REPORTS["hostile"], case


def test_no_line_of_a_stranger_looks_like_one_of_ours(capsys):
    """A message, a note or a name with a line feed has a mark before each line after its first."""
    found = REPORTS["hostile"]
    texts = [*refusals(found), str(found)]
    for case in found.cases:
        texts += [*sentences(found, case), *sentences_of(case)]
    for group in failure_groups(found):
        texts += group.sentences(found)
    show_report(found)

    texts.append(capsys.readouterr().err)
    assert sum("]]>" in text for text in texts) > 100
    assert not [
        line for text in texts for line in text.splitlines() if line.strip().startswith("]")
    ]


def test_a_command_to_repeat_is_one_line_that_a_shell_takes():
    """Also where the name of a folder has a line feed."""
    found = replace(every_verdict(), command="rnncli verify 'a\nb'")
    line = found.repeat(found.cases[0].details)
    words = subprocess.run(["bash", "-c", f"printf '%s|' {line}"], capture_output=True, check=True)

    assert "\n" not in line
    assert words.stdout.startswith(b"rnncli|verify|a\nb|-k|id:")


@pytest.mark.parametrize(
    ("operator", "verdict", "said"),
    [
        ("webnn.gru", Verdict.REFUSED, True),
        ("webnn.gru", Verdict.PASS, False),
        ("GRU-14", Verdict.REFUSED, False),
        ("Nothing-1", Verdict.REFUSED, False),
    ],
)
def test_a_pack_of_another_dialect_is_told_once(operator, verdict, said):
    """If an implementation takes none of it; other refusals have their reasons."""
    refused = judged("gru_0", Verdict.REFUSED, {"message": "not registered"}, operator="webnn.lstm")
    outputs = {"outputs": (output(),)} if verdict is Verdict.PASS else {}
    found = foreign(report([refused, judged("gru_1", verdict, outputs, operator=operator)]))

    assert found.startswith("every case is refused, and all are of WebNN: ") == said
    assert bool(found) == said


def test_reasons_that_differ_in_a_name_are_one_group():
    """As where a runtime names the operator that it does not have."""
    cases = [
        judged(f"gru_{k}", Verdict.REFUSED, {"message": f"webnn:{name}(-1) is not one"})
        for k, name in enumerate(("gru", "lstm", "gruCell"))
    ]

    assert len(failure_groups(report(cases))) == 1
