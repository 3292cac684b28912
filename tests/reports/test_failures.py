"""Claims about the sentences on a case."""

from __future__ import annotations

import math
import subprocess
from dataclasses import replace

import pytest
from support.verifications import (
    CASES,
    HOSTILE,
    REPORTS,
    claimed,
    differing,
    every_verdict,
    judged,
    output,
    report,
)

from rnncli.judging.comparing.verdict import OutputVerdict, Verdict
from rnncli.mutants.catalogue import MUTANTS
from rnncli.reports.failures import (
    LONGEST_MESSAGE,
    excerpt,
    failure_groups,
    refusals,
    sentences,
    sentences_of,
    times,
    untried,
)
from rnncli.reports.verification import show_report
from rnncli.talk.words import visible

LINES = {case.id: list(sentences(every_verdict(), case)) for case in every_verdict().cases}


def test_a_difference_says_what_where_by_how_much_what_it_means_and_how_to_repeat_it():
    """As the design has it; what its flags test for is not said beside the bug that fits."""
    command = "rnncli verify vectors/core --runtime onnxruntime"

    assert LINES["lstm_14_reverse_float16_ragged"] == [
        (
            "Y: 6 of 40 differ (up to 3 ulp), worst at [2,0,1,3]:"
            " got 0.4312, expected 0.1187 +- 0.0004 (781x tolerance)"
        ),
        "first wrong in itself at t=2, batch 1, unit 3; enters at one step",
        "fits forget-bias-plus-one: 1 is added to the bias of the forget gate.",
        f"repeat: {command} -k id:lstm_14_reverse_float16_ragged",
    ]


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
        (["no float64"] * 2, ["rnn_0", "rnn_1"]),
        (["no float64"] * 3, ["3 cases: rnn_0, rnn_1, rnn_2"]),
        (["no float64"] * 34, ["34 cases: rnn_0, rnn_1, rnn_2, rnn_3 and 30 more"]),
        (["no LSTM(22)", "no LSTM(1)", "no GRU(3)"], ["3 cases: rnn_0, rnn_1, rnn_2"]),
        (
            [
                BATCHWISE.format("rnn.h:48", " [with T = float]", "ou nee..."),
                BATCHWISE.format("lstm_base.h:53", "", "ou need su..."),
                BATCHWISE.format("deep_cpu_gru.h:56", "", "..."),
            ],
            ["3 cases: rnn_0, rnn_1, rnn_2"],
        ),
        (["a", "b", "a", "b", "a"], ["3 cases: rnn_0, rnn_2, rnn_4", "rnn_1", "rnn_3"]),
    ],
)
def test_many_that_are_refused_for_a_like_reason_are_said_at_once(messages, titles):
    """Operators, versions and places in a source make no other reason."""
    found = untried_report(messages)
    groups = list(failure_groups(found))

    assert [group.title for group in groups] == titles
    assert sum(len(group.cases) for group in groups) == len(messages)
    (first, *_) = groups
    like = len(set(messages)) > 1 and len(first.cases) == len(messages)
    lines = list(first.sentences(found))
    assert lines[0] == f"refused: {messages[0]}{' (and alike)' * like}"
    assert lines[-1].startswith("repeat")
    assert lines[-1].endswith("-k id:rnn_0")


@pytest.mark.parametrize("verdict", [Verdict.DIFFERS, Verdict.CRASHED, Verdict.ACCEPTED])
def test_what_ran_is_said_one_by_one(verdict):
    """Two crashes with one message may have two causes."""
    cases = [judged(f"rnn_{k}", verdict, {"message": "killed"}) for k in range(9)]

    assert len(list(failure_groups(report(cases)))) == 9


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


def test_a_diagnosis_has_the_last_word():
    """Neither flags nor what fits a single case stand beside what explains the run."""
    report = REPORTS["diagnosed"]
    lines = {case.id: list(sentences(report, case)) for case in report.cases}
    explained = lines["lstm_14_reverse_float16_ragged"]

    assert any(line.startswith("diagnosis: recurrent-bias-dropped") for line in explained)
    assert not any(line.startswith(("fits ", "tests for")) for line in explained)


@pytest.mark.parametrize(
    ("case_id", "sentence"),
    [
        ("gru_14_layout", "refused: Batchwise recurrence is not supported"),
        ("lstm_14_missing", "Y_c: is missing; there are no outputs"),
        (
            "rnn_14_exact",
            "Y: 6 of 40 differ, worst at [0]: got nan, expected 1 exactly",
        ),
        ("gru_14_double", "allowed by --allow-refused"),
        ("gru_14_absent", "missing: no results for it"),
        ("rnn_14_bad_shape", "accepted, although invalid: W has too few rows"),
        ("gru_14_empty", "crashed: killed by SIGABRT"),
        ("gru_14_long", "timeout: no answer in 60 s"),
        ("lstm_22_bfloat16", "skipped: opset 22 is not required"),
        ("lstm_14_alpha_order", "acceptable: answers as alpha-order=positional has it"),
        ("lstm_14_known", "expected to fail: issue 12: ragged reverse"),
        ("lstm_14_fixed", "pass, although expected to fail: issue 13"),
    ],
)
def test_the_first_sentence_says_what_is_wrong(case_id, sentence):
    """Of every kind of failure, and of what is no failure but worth a word."""
    assert LINES[case_id][0].startswith(sentence)


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


def test_a_pass_needs_no_words():
    """But it can be repeated."""
    assert [line.partition(":")[0] for line in LINES["lstm_14_forward"]] == ["repeat"]


@pytest.mark.parametrize("verdict", [Verdict.REFUSED, Verdict.CRASHED, Verdict.TIMEOUT])
def test_silence_is_put_in_words(verdict):
    """An implementation that died without a word has still died."""
    case = judged("x_1", verdict, {})

    assert next(sentences(every_verdict(), case)).startswith(f"{verdict}: ")


def test_values_have_the_digits_of_their_dtype():
    """Two float64 numbers that differ in their last place can be told apart."""
    worst = output(verdict=Verdict.DIFFERS).worst
    worst = type(worst)((0,), 0.1, math.nextafter(0.1, 1), 1e-17)
    case = judged(
        "x_1",
        Verdict.DIFFERS,
        {"outputs": (output(verdict=Verdict.DIFFERS, worst=worst),)},
        dtype="float64",
    )

    line = next(sentences(every_verdict(), case))
    assert "got 0.10000000000000001, expected 0.10000000000000002 " in line


def test_nothing_said_can_move_the_cursor():
    """Escape sequences, direction marks and halves of characters are shown, not obeyed."""
    lines = [line for case in REPORTS["hostile"].cases for line in sentences(*_of(case))]

    assert not {char for line in lines for char in line if char in "\x00\x1b\ud800\u202e\r"}
    assert r"\x00\x1b[31m\ud800\u202e ünï→" in visible(HOSTILE)


def _of(case):
    return REPORTS["hostile"], case


def test_a_flood_is_cut():
    """The first of it is kept, the rest counted."""
    assert len(excerpt("x" * 10**6)) < LONGEST_MESSAGE + 50
    assert excerpt("x" * 10**6).endswith("... and 998000 more characters")
    assert excerpt("a\n" * 500) == "a\n" * 19 + "a ... and 960 more characters"
    assert excerpt("  short\n") == "short"


def test_an_id_with_a_quote_is_repeated_as_written():
    """The command is one for a shell."""
    case = judged("it's_1", *CASES["lstm_14_forward"])

    assert list(sentences(every_verdict(), case))[-1].endswith("""-k 'id:it'"'"'s_1'""")


@pytest.mark.parametrize(
    ("margin", "text"),
    [
        (None, "-"),
        (0.0, "0x"),
        (0.2999, "0.3x"),
        (719.3, "719x"),
        (999.7, "1000x"),
        (1000.1, "over 1000x"),
        (7.7e43, "over 1000x"),
        (math.inf, "over 1000x"),
        (math.nan, "over 1000x"),
    ],
)
def test_margins_are_factors(margin, text):
    """Short enough for a table; beyond 1000 the number itself tells nothing."""
    assert times(margin) == text


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
