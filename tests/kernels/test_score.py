"""The percentages of planted bugs that suites catch."""

import pytest
from kernels import score
from kernels.bug import HELD_OUT, TUNING
from kernels.switch_table import BUGS, KERNELS, kernel_with
from support.judged import CORE
from support.small_suite import small_suite

from rnncli.generating.generation import GenerationPlan, generate
from rnncli.packs.pack import is_pack

SESSION = """\
suite: session
summary: One case.
seed: 11
cases:
  fill:
    op: LSTM-14
    sizes: {{seq_length: 4, batch_size: 3, input_size: 2, hidden_size: 2}}
    inputs: {{sequence_lens: lengths, B: uniform}}
    calls: {calls}
"""
HALF = {half: [b.id for b in BUGS.values() if b.half == half] for half in (TUNING, HELD_OUT)}


def test_core_catches_a_bug_and_no_right_kernel():
    """By the judge of `verify`."""
    assert score.catches(CORE, kernel_with(BUGS["tiles:forget-bias-plus-one"]))
    assert not score.catches(CORE, KERNELS["tiles"]())


@pytest.mark.parametrize("name", [path.name for path in CORE.parent.iterdir() if is_pack(path)])
def test_right_kernels_raise_no_alarm(name):
    """A suite that fails one of them would count for every bug, and end the run of CI."""
    assert [] == score.false_alarms([CORE.parent / name])


def test_a_kernel_that_stops_is_caught():
    """As a crash."""

    def stopping(*_):
        raise IndexError

    assert score.catches(CORE, stopping)


def test_table_counts_each_half_apart():
    """All of one half and none of the other."""
    caught = {bug_id: {"core"} if bug.half == TUNING else set() for bug_id, bug in BUGS.items()}
    lines = [*score.table(caught, {"core": {"core"}})]

    assert lines[0] == ["half", "kind", "bugs", "core"]
    assert [TUNING, "all", str(len(HALF[TUNING])), "100.0 %"] in lines
    assert [HELD_OUT, "all", str(len(HALF[HELD_OUT])), "0.0 %"] in lines


def test_held_out_bugs_are_not_named():
    """Neither in the table nor among the missed."""
    nothing = {bug_id: set() for bug_id in BUGS}
    printed = " ".join(cell for line in score.table(nothing, {"core": {"core"}}) for cell in line)

    assert score.missed(nothing, {"core"}) == HALF[TUNING]
    assert not any(BUGS[bug_id].name in printed for bug_id in BUGS)


def test_columns_are_those_of_the_packs_that_are_there():
    """A column of a suite that is missing would be too low."""
    assert list(score.columns_of({"core", "edge"})) == ["core", "everything"]
    assert list(score.columns_of({"core", "tiles", "large"})) == [
        "core",
        "core+tiles",
        "all but large",
        "everything",
    ]


def test_every_call_of_a_case_is_put_to_the_same_session(tmp_path):
    """What is kept of an earlier call shows at a later one; a right kernel keeps nothing of it."""
    packs = {}
    for calls in (1, 2):
        text = SESSION.format(calls=calls)
        packs[calls] = tmp_path / f"calls_{calls}"
        plan = GenerationPlan(suite=small_suite(text))
        assert generate(plan, packs[calls], lambda _: None).failed == ()
    kept = BUGS["tiles:lengths-kept-by-shape"]

    assert not score.catches(packs[1], kernel_with(kept))
    assert score.catches(packs[2], kernel_with(kept))
    assert [] == score.false_alarms([*packs.values()])


@pytest.mark.parametrize(("part", "least", "code"), [(1.0, 99, 0), (0.5, 40, 0), (0.5, 60, 1)])
def test_a_minimum_of_the_held_out_half_fails_the_run(part, least, code, tmp_path, monkeypatch):
    """What suites catch may not become less unseen."""
    (tmp_path / "core").symlink_to(CORE)
    caught = HALF[HELD_OUT][: round(part * len(HALF[HELD_OUT]))]
    found = {bug_id: {"core"} if bug_id in caught else set() for bug_id in BUGS}
    monkeypatch.setattr(score, "false_alarms", lambda _: [])
    monkeypatch.setattr(score, "score", lambda *_: found)

    assert score.main([str(tmp_path), "--min-held-out", str(least)]) == code
