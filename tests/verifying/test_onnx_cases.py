"""Claims about ONNX's own recurrent node cases: what they are worth as a suite."""

import pytest

pytest.importorskip("onnx")
from support.onnx_cases import recurrent_cases, write_as_one

from rnncli.cli.group import cli
from rnncli.judging.comparing.rule import PACK_RULE
from rnncli.verifying.scoring import ONNX_RULE, ScoringPlan, score_all, select


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """Their nodes as a pack, each with what it is given in them."""
    folder = tmp_path_factory.mktemp("onnx")
    model = write_as_one(folder / "cases")
    cli(["extract", str(model), "-o", str(folder / "pack")], standalone_mode=False)
    return str(folder / "pack")


def test_they_are_eighteen():
    """Six of each operator."""
    counts = {}
    for case in recurrent_cases().values():
        (op_type,) = (node.op_type for node in case.model.graph.node if node.op_type != "Constant")
        counts[op_type] = counts.get(op_type, 0) + 1

    assert counts == {"RNN": 6, "GRU": 6, "LSTM": 6}


@pytest.mark.parametrize(("rule", "most"), [(PACK_RULE, 50), (ONNX_RULE, 45)])
def test_half_of_the_bugs_pass_them(pack, rule, most):
    """Constant weights, zero states, one step: by derived tolerances and by ONNX's own."""
    plan = ScoringPlan(suite=pack, rule=rule)
    matrix = score_all(plan, select(plan), lambda _: None)

    assert len(matrix.rows) == 18
    assert 35 < matrix.total.percent < most
