"""Targets, and where their files go."""

import pytest

from rnncli.cases.suite.suite import load_suite
from rnncli.errors import InvalidRequest, NothingSelected
from rnncli.judging.tolerances.tolerance import EXACT
from rnncli.running.request import ListedTarget, Request
from rnncli.running.target import load_target, short_names
from rnncli.running.tasks import all_targets, as_path, plan

REQUEST = Request(tolerance=EXACT)


def targets(*names):
    """Targets of which nothing is asked in particular."""
    return [ListedTarget(name) for name in names]


def test_listed_targets_follow_the_given_ones():
    """Blank lines and comments of a list are not targets."""
    listed = all_targets(["a"], ["b\n", "\n", "# c\n", " d \n"])

    assert [each.target for each in listed] == ["a", "b", "d"]


def test_a_suite_stands_for_its_valid_cases():
    """By name or path; a model, and what is wrong in itself, for itself."""
    smoke = [f"smoke::{entry.id}" for entry in load_suite("smoke").entries]

    listed = all_targets(["smoke", "a.onnx", "no_such"], [])

    assert [each.target for each in listed] == [*smoke, "a.onnx", "no_such"]
    with pytest.raises(NothingSelected, match="reject: every case must be rejected"):
        all_targets(["reject"], [])


def test_no_target_at_all_is_refused():
    """An empty list is not a success."""
    with pytest.raises(NothingSelected):
        all_targets([], ["# nothing\n"])


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        (["x/a.onnx", "x/b.yaml"], ["a", "b"]),
        (["x/model.onnx", "y/model.onnx"], ["x_model", "y_model"]),
        (["x/a.onnx", "x/a.yaml", "-"], ["x_a_1", "x_a_2", "stdin"]),
        (["zoo/case.tar.gz", "zoo/v1.5"], ["case", "v1.5"]),
        (["core::rnn_7_plain", "x/s.yaml::gru_7_a"], ["rnn_7_plain", "gru_7_a"]),
    ],
)
def test_names_tell_targets_apart(targets, names):
    """By file, then by folder, then by number."""
    assert short_names(targets) == names


@pytest.mark.parametrize(
    ("output", "path"),
    [("", ""), ("a.npz", "a.npz"), ("a.H5", "a.H5"), ("case", "case/"), ("v1.5/", "v1.5/")],
)
def test_path_without_extension_is_a_folder(output, path):
    """A known extension is a file, none at all a folder."""
    assert as_path(output) == path


def test_one_target_writes_to_the_path_itself():
    """Only several targets need names of their own."""
    (task,) = plan(targets("a.onnx"), REQUEST, output="out.npz", save_inputs="in.npz")

    assert (task.output, task.saved_inputs) == ("out.npz", "in.npz")


def test_several_targets_get_an_entry_each(tmp_path):
    """A folder, or a file of the format asked for."""
    folder = str(tmp_path / "out")
    cases = plan(targets("a.onnx", "b.yaml"), REQUEST, output=folder)
    files = plan(targets("a.onnx", "b.yaml"), REQUEST, output=folder, entry_format="h5")

    assert [task.output for task in cases] == [f"{folder}/a/", f"{folder}/b/"]
    assert [task.output for task in files] == [f"{folder}/a.h5", f"{folder}/b.h5"]


def test_several_targets_cannot_share_a_file():
    """The sentence names the path."""
    with pytest.raises(InvalidRequest, match=r"out\.npz: several targets"):
        plan(targets("a", "b"), REQUEST, output="out.npz")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("lstm_14_peephole", "did you mean 'lstm_14_peepholes'?"),
        ("model.onnx", "no such file"),
        (__file__, "not a target: expected .onnx"),
    ],
)
def test_unknown_target_is_explained(target, sentence):
    """A misspelt spec is suggested; a file of another kind is told what kinds there are."""
    with pytest.raises(InvalidRequest) as refusal:
        load_target(target)

    assert sentence in str(refusal.value)
