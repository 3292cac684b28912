"""Patches for onnx are well formed, right, and find the bugs that their messages count.

They are applied to copies of the installed onnx's files; its own list of node tests stays as it is.
"""

import email
import itertools
import os
import re
import shutil
import subprocess
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.backend.test.case import node as node_cases
from onnx.reference import ReferenceEvaluator
from support.onnx_cases import write_as_one

import rnncli
from rnncli.cli.group import cli

FOLDER = Path(__file__).parents[2] / "docs/upstream"
OPERATORS = ["lstm", "gru"]

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="git applies the patches")


def patch_of(operator):
    """The file of an operator's patch."""
    return FOLDER / f"onnx-{operator}-node-tests.patch"


def files_of(operator):
    """What the patch changes of the package onnx: the node tests, and the evaluator's operator."""
    return [f"onnx/backend/test/case/node/{operator}.py", f"onnx/reference/ops/op_{operator}.py"]


def message_of(operator):
    """The message of the commit, on one line."""
    text = email.message_from_string(patch_of(operator).read_text("utf-8")).get_payload()
    return " ".join(text.partition("\n---\n")[0].split())


def git_apply(folder, *words):
    """Run `git apply` in a folder, whether or not a repository is around it."""
    return subprocess.run(
        ["git", "apply", *words],
        cwd=folder,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)},
        capture_output=True,
        text=True,
        check=False,
    )


def loaded(path, name):
    """Import a file under a name of its own."""
    spec = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=OPERATORS)
def operator(request):
    """The operator of a patch."""
    return request.param


@pytest.fixture(scope="module")
def patched(operator, tmp_path_factory):
    """A folder with the installed files of onnx, patched."""
    folder = tmp_path_factory.mktemp(operator)
    for name in files_of(operator):
        (folder / name).parent.mkdir(parents=True)
        shutil.copy(Path(onnx.__file__).parents[1] / name, folder / name)
    done = git_apply(folder, "--include=onnx/*", str(patch_of(operator)))
    if done.returncode:
        pytest.skip(f"onnx {onnx.__version__} has other files: {done.stderr}")
    return folder


@pytest.fixture(scope="module")
def cases(operator, patched):
    """All node tests of the patched file, by name."""
    with pytest.MonkeyPatch.context() as replaced:
        replaced.setattr(node_cases, "_NodeTestCases", [])
        replaced.setattr(node_cases, "_existing_names", {})
        loaded(patched / files_of(operator)[0], f"patched_{operator}_cases")
        return {case.name: case for case in node_cases._NodeTestCases}


@pytest.fixture(scope="module")
def added(operator, cases):
    """The node tests that the patch adds."""
    names = re.findall(r'^\+ +name="(\w+)",$', patch_of(operator).read_text("utf-8"), re.MULTILINE)
    return {name: cases[name] for name in names if name in cases}


def fed(case):
    """The inputs of a node test by name, and its outputs in order."""
    inputs, outputs = case.data_sets[0]
    names = [each.name for each in case.model.graph.input]
    return dict(zip(names, inputs, strict=True)), outputs


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_patch_is_well_formed(operator, tmp_path):
    """Its hunks are as long as they say, it changes what it must, and whoever sends it signs it."""
    done = git_apply(tmp_path, "--numstat", str(patch_of(operator)))
    text = patch_of(operator).read_text("utf-8")

    assert done.returncode == 0, done.stderr
    assert [line.split("\t")[2] for line in done.stdout.splitlines()] == [
        "docs/Operators.md",
        "docs/TestCoverage.md",
        *files_of(operator),
    ]
    assert "\nSubject: [PATCH] test(backend): " in text
    assert "Signed-off-by" not in text


def test_it_adds_four_tests_to_six(cases, added):
    """Named for the operator, and none in place of another."""
    assert (len(added), len(cases)) == (4, 10)


def test_what_its_tests_want_is_right(added):
    """Each output is that of the certified backend, proved, to 1e-5."""
    pytest.importorskip("flint", reason="needs the extra `certified`")
    for name, case in added.items():
        inputs, wanted = fed(case)
        got = rnncli.evaluate_model(case.model, inputs, backend="certified")
        for value, output in zip(wanted, case.model.graph.output, strict=True):
            np.testing.assert_allclose(value, got[output.name], rtol=0, atol=1e-5, err_msg=name)


def test_the_patched_evaluator_passes_them(operator, patched, cases):
    """The new ones and those that were there."""
    module = loaded(patched / files_of(operator)[1], f"patched_{operator}_operator")
    for name, case in cases.items():
        inputs, wanted = fed(case)
        evaluator = ReferenceEvaluator(case.model, new_ops=[getattr(module, operator.upper())])
        for value, got in zip(wanted, evaluator.run(None, inputs), strict=True):
            np.testing.assert_allclose(value, got, rtol=1e-6, atol=1e-7, err_msg=name)


def test_its_message_counts_the_bugs(operator, cases, added, tmp_path):
    """How many of how many mutants the tests kill, before and after, and each beyond the others."""
    model = write_as_one(tmp_path / "cases", cases)
    cli(["extract", str(model), "-o", str(tmp_path / "pack")], standalone_mode=False)
    matrix = rnncli.score(tmp_path / "pack", onnx=True).matrix
    kills = {row.id: {*row.kills} for row in matrix.rows}
    before = set().union(*(found for name, found in kills.items() if name not in added))
    beyond = {name: kills[name] - before for name in added}
    times = Counter(itertools.chain.from_iterable(beyond.values()))
    first, last = len(before), len(before) + len(times)
    message = message_of(operator)

    assert f"Of {matrix.total.mutants} wrong {operator.upper()} kernels, " in message
    assert f"find {first}, these four and those six {last}, at rtol 1e-3 " in message
    assert dict(re.findall(r"- (\w+), (\d+):", message)) == {
        name.removeprefix(f"test_{operator}_"): str(len(found)) for name, found in beyond.items()
    }
    assert f"several of the four: {sum(count > 1 for count in times.values())}, " in message
    assert (
        f"({patch_of(operator).name}) | {first} of {matrix.total.mutants} mutants | {last} |"
        in (FOLDER / "index.md").read_text("utf-8")
    )
